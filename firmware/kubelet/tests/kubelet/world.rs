//! One board, one API server, and the wires between them, on a virtual clock. Every message takes a
//! millisecond if not told otherwise; the link can be cut and healed, the board's power switched, the server stopped.

use std::collections::BTreeMap;

use kubelet::{Boot, Config, ConnId, Input, Kubelet, Now, Output, ResetReason};
use serde_json::{Value, json};

use crate::api::{Api, Reply, swell};

enum Delivery {
    Connected,
    Refused,
    ToBoard(Vec<u8>),
    ToServer(Vec<u8>),
    End,
}

/// One connection; a new number for each opening.
#[derive(Default)]
struct Wire {
    epoch: u64,
    open: bool,
    buffer: Vec<u8>,
    /// The version up to which a watch has been told.
    watch: Option<(u64, u64)>,
}

pub struct World {
    pub api: Api,
    pub kubelet: Kubelet,
    pub now: u64,
    pub console: Vec<(u64, String)>,
    /// Bytes of an answer delivered at once; 0 for all.
    pub slice: usize,
    pub server_up: bool,
    /// Whether watches end when the kubelet asked them to.
    pub watches_end: bool,
    pub link_up: bool,
    /// How long a message is on its way, in milliseconds.
    pub latency: u64,
    /// How much later than answers the watch speaks.
    pub watch_delay: u64,
    /// Heap the kubelet's own records take, in bytes.
    pub records: u32,
    power: bool,
    /// The processor stands still, and with it the board's clock; what arrives meanwhile waits.
    hung: bool,
    waiting: Vec<(usize, u64, Delivery)>,
    boot_at: u64,
    boots: u64,
    wires: [Wire; 2],
    queue: BTreeMap<(u64, u64), (usize, u64, Delivery)>,
    sequence: u64,
    ticks: u64,
}

pub fn config(extra: Value) -> Config {
    let mut json = json!({
        "nodeName": "a", "server": "http://10.0.2.2:18080", "token": "secret", "heapBytes": 204_800,
        "board": {"name": "test", "arch": "riscv32imc"},
        "capabilities": {"gpio": [0, 1, 2, 3, 4, 5], "reservedGpio": [11], "i2c": 1, "uart": 1, "adc": 5, "rmtTx": 2, "rmtRx": 2},
    });
    for (key, value) in extra.as_object().unwrap() {
        json[key] = value.clone();
    }
    Config::from_json(json.to_string().as_bytes()).unwrap()
}

impl World {
    /// A board that has just been given power and an address.
    pub fn new() -> World {
        World::with(config(json!({})), Api::new("a"))
    }

    pub fn with(config: Config, api: Api) -> World {
        let kubelet = Kubelet::new(config, Boot { reason: ResetReason::PowerOn, seed: 1 });
        let mut world = World {
            api,
            kubelet,
            now: 0,
            console: Vec::new(),
            slice: 0,
            server_up: true,
            watches_end: true,
            link_up: true,
            latency: 1,
            watch_delay: 0,
            records: 0,
            power: true,
            hung: false,
            waiting: Vec::new(),
            boot_at: 0,
            boots: 1,
            wires: Default::default(),
            queue: BTreeMap::new(),
            sequence: 0,
            ticks: 0,
        };
        world.input(Input::NetworkUp { address: [10, 0, 2, 15] });
        world
    }

    /// A board that is up and has registered.
    pub fn ready() -> World {
        let mut world = World::new();
        world.run(500);
        assert!(world.said("kubelet ready node=a"), "{:#?}", world.console);
        world
    }

    /// Lets `millis` pass.
    pub fn run(&mut self, millis: u64) {
        let until = self.now + millis;
        let ticks = self.ticks;
        loop {
            self.tell_watches();
            let runs = self.power && !self.hung;
            let deadline = if runs { self.kubelet.deadline().saturating_add(self.boot_at) } else { u64::MAX };
            let next = self.queue.keys().next().map_or(u64::MAX, |(at, _)| *at);
            let watch_end = self.wires.iter().filter_map(|w| w.watch).map(|(_, end)| end).min();
            let watch_end = watch_end.filter(|_| self.watches_end).unwrap_or(u64::MAX);
            let at = deadline.min(next).min(watch_end);
            if at > until {
                break;
            }
            self.now = self.now.max(at);
            if watch_end <= self.now {
                self.end_watches();
            } else if next <= self.now {
                let (_, (conn, epoch, delivery)) = self.queue.pop_first().unwrap();
                self.deliver(conn, epoch, delivery);
            } else {
                self.input(Input::Tick);
            }
            let spent = self.ticks - ticks;
            assert!(spent < 100 + millis / 10, "the kubelet spins: {spent} ticks in {millis} ms");
        }
        self.now = until;
    }

    /// Runs until `done`, at most `most` milliseconds, and says how long it took.
    pub fn run_until(&mut self, most: u64, done: impl Fn(&World) -> bool) -> u64 {
        let start = self.now;
        while !done(self) {
            assert!(self.now < start + most, "not within {most} ms; console: {:#?}", self.console);
            self.run(1);
        }
        self.now - start
    }

    /// Power goes and comes back after `off` milliseconds; nobody tells the server.
    pub fn power_cycle(&mut self, off: u64) {
        self.power = false;
        self.drop_wires();
        self.run(off);
        self.power = true;
        self.boots += 1;
        self.boot_at = self.now;
        let boot = Boot { reason: ResetReason::PowerOn, seed: self.boots };
        self.kubelet = Kubelet::new(self.kubelet.config().clone(), boot);
        self.input(Input::NetworkUp { address: [10, 0, 2, 15] });
    }

    /// The processor stands still for `millis` and goes on as if nothing had been.
    pub fn hang(&mut self, millis: u64) {
        self.hung = true;
        self.run(millis);
        self.hung = false;
        self.boot_at += millis;
        for (conn, epoch, delivery) in std::mem::take(&mut self.waiting) {
            self.sequence += 1;
            self.queue.insert((self.now, self.sequence), (conn, epoch, delivery));
        }
    }

    /// The server ends and takes every connection with it.
    pub fn stop_server(&mut self) {
        self.server_up = false;
        self.close_connections();
    }

    /// The server closes every connection.
    pub fn close_connections(&mut self) {
        for conn in 0..2 {
            if self.wires[conn].open {
                self.send(conn, Delivery::End);
            }
            self.wires[conn].watch = None;
        }
    }

    /// The bytes arrive on the watch as they are.
    pub fn inject_watch(&mut self, bytes: &[u8]) {
        self.send(1, Delivery::ToBoard(chunk(bytes)));
    }

    /// Nothing that was said on the watch so far arrives, and nothing will: the connection stands, deaf.
    pub fn deafen_watch(&mut self) {
        self.wires[1].watch = None;
    }

    pub fn said(&self, part: &str) -> bool {
        self.console.iter().any(|(_, line)| line.contains(part))
    }

    pub fn pod(&self, name: &str) -> &Value {
        self.api.pods.get(name).unwrap_or(&Value::Null)
    }

    pub fn status(&self, name: &str) -> &Value {
        &self.pod(name)["status"]
    }

    pub fn phase(&self, name: &str) -> &str {
        self.status(name)["phase"].as_str().unwrap_or("")
    }

    pub fn container(&self, name: &str) -> &Value {
        &self.status(name)["containerStatuses"][0]
    }

    /// A condition of an object's status.
    pub fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
        let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        conditions.iter().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
    }

    pub fn allocatable(&self, resource: &str) -> u64 {
        let text = self.api.nodes["a"]["status"]["allocatable"][resource].as_str();
        text.and_then(|t| t.parse().ok()).unwrap_or_else(|| panic!("no allocatable {resource}"))
    }

    pub fn input(&mut self, input: Input<'_>) {
        if !self.power {
            return;
        }
        self.ticks += u64::from(input == Input::Tick);
        let free_heap = self.kubelet.config().heap_bytes - self.kubelet.reserved_bytes() - self.records;
        let now = Now { millis: self.now - self.boot_at, free_heap };
        self.kubelet.handle(now, input);
        assert!(self.kubelet.deadline() > now.millis);
        while let Some(output) = self.kubelet.next_output() {
            match output {
                Output::Open(ConnId(conn)) => {
                    let wire = &mut self.wires[usize::from(conn)];
                    assert!(!wire.open, "connection {conn} was open");
                    *wire = Wire { epoch: wire.epoch + 1, open: true, ..Wire::default() };
                    let answer = if self.server_up { Delivery::Connected } else { Delivery::Refused };
                    self.send(usize::from(conn), answer);
                }
                Output::Send(ConnId(conn), bytes) => {
                    assert!(self.wires[usize::from(conn)].open, "sent on a closed connection");
                    self.send(usize::from(conn), Delivery::ToServer(bytes));
                }
                Output::Close(ConnId(conn)) => {
                    let wire = &mut self.wires[usize::from(conn)];
                    assert!(wire.open, "connection {conn} was not open");
                    (wire.open, wire.watch) = (false, None);
                }
                Output::Log(line) => self.console.push((self.now, line)),
            }
        }
    }

    fn drop_wires(&mut self) {
        for wire in &mut self.wires {
            (wire.open, wire.watch) = (false, None);
        }
    }

    fn send(&mut self, conn: usize, delivery: Delivery) {
        self.send_later(conn, delivery, self.latency);
    }

    fn send_later(&mut self, conn: usize, delivery: Delivery, delay: u64) {
        if self.link_up {
            self.sequence += 1;
            let epoch = self.wires[conn].epoch;
            self.queue.insert((self.now + delay, self.sequence), (conn, epoch, delivery));
        }
    }

    fn deliver(&mut self, conn: usize, epoch: u64, delivery: Delivery) {
        if !self.link_up || !self.wires[conn].open || self.wires[conn].epoch != epoch {
            return;
        }
        if self.hung && !matches!(delivery, Delivery::ToServer(_)) {
            self.waiting.push((conn, epoch, delivery));
            return;
        }
        let id = ConnId(conn as u8);
        match delivery {
            Delivery::Connected => self.input(Input::Connected(id)),
            Delivery::Refused | Delivery::End => {
                (self.wires[conn].open, self.wires[conn].watch) = (false, None);
                self.input(Input::Closed(id));
            }
            Delivery::ToBoard(bytes) => {
                let slice = if self.slice == 0 { bytes.len().max(1) } else { self.slice };
                for part in bytes.chunks(slice) {
                    if self.wires[conn].open && self.wires[conn].epoch == epoch {
                        self.input(Input::Received(id, part));
                    }
                }
            }
            Delivery::ToServer(bytes) => {
                if !self.server_up {
                    return;
                }
                let mut buffer = std::mem::take(&mut self.wires[conn].buffer);
                buffer.extend_from_slice(&bytes);
                while let Some(reply) = self.api.take(&mut buffer, self.now) {
                    match reply {
                        Reply::Answer { bytes, delay } => {
                            self.send_later(conn, Delivery::ToBoard(bytes), self.latency + delay);
                        }
                        Reply::Watch { head, from, until } => {
                            self.send(conn, Delivery::ToBoard(head));
                            self.wires[conn].watch = Some((from, until));
                        }
                        Reply::Nothing => {}
                    }
                }
                self.wires[conn].buffer = buffer;
            }
        }
    }

    fn tell_watches(&mut self) {
        for conn in 0..2 {
            let Some((told, until)) = self.wires[conn].watch else { continue };
            if told < self.api.oldest {
                let gone = json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old", "status": "Failure"}});
                self.send(conn, Delivery::ToBoard(chunk(format!("{gone}\n").as_bytes())));
                self.wires[conn].watch = None;
                continue;
            }
            let fresh: Vec<String> = self
                .api
                .history
                .iter()
                .filter(|(v, _)| *v > told)
                .map(|(_, line)| format!("{}\n", swell(line, self.api.swollen)))
                .collect();
            for line in fresh {
                self.send_later(
                    conn,
                    Delivery::ToBoard(chunk(line.as_bytes())),
                    self.latency + self.watch_delay,
                );
            }
            self.wires[conn].watch = Some((self.api.version.max(told), until));
        }
    }

    fn end_watches(&mut self) {
        for conn in 0..2 {
            if self.wires[conn].watch.is_some_and(|(_, until)| until <= self.now) {
                self.wires[conn].watch = None;
                self.send(conn, Delivery::ToBoard(b"0\r\n\r\n".to_vec()));
            }
        }
    }
}

/// One chunk of a chunked body.
fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A pod with one container of a builtin workload, bound to the board.
pub fn pod(name: &str, workload: &str, memory: &str) -> Value {
    pod_with(name, json!({"args": [workload], "resources": {"requests": {"memory": memory}}}), json!({}))
}

/// A pod bound to the board, with fields of its container and of its spec.
pub fn pod_with(name: &str, container: Value, spec: Value) -> Value {
    let mut object = json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "creationTimestamp": "2027-01-15T08:00:00Z"},
        "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "rigor.dev/builtin", "args": ["pause"]}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}]},
    });
    for (key, value) in container.as_object().unwrap() {
        object["spec"]["containers"][0][key] = value.clone();
    }
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}
