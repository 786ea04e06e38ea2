//! A board of the simulated rig: a kubelet core with power, a processor that can be halted, and a clock of its own.
//!
//! Power off is silence: the kubelet is dropped and nobody is told. A halted processor keeps its memory, its
//! clock stands, and what arrives waits in the network card. A panic of the kubelet is what it is on a real
//! board: a line on the console and a reset. Decides nothing; says what the board does as [`Effect`]s.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use kubelet::{Boot, Config, ConnId, Input, Kubelet, Now, Output, ResetReason};

use crate::link::{Carried, Connection, SEGMENT};
use crate::panics::calm;
use crate::seed::{generator, seed_of};

/// From power on to the network being up, in microseconds.
const BOOT: RangeInclusive<u64> = 40_000..=80_000;
/// A board does not look at its timers more often than this, in microseconds.
const TIMER_GRAIN: u64 = 1_000;
/// How many millionths a clock that is right counts in a million.
const RIGHT: u128 = 1_000_000;

/// What runs on a board; the kubelet core, or something simpler in tests.
pub(crate) trait Firmware {
    /// Takes one input.
    fn handle(&mut self, now: Now, input: Input<'_>);
    /// The next thing to do.
    fn next_output(&mut self) -> Option<Output>;
    /// When it wants a tick, in milliseconds since boot.
    fn deadline(&self) -> u64;
    /// What a measurement of the free heap gives, in bytes.
    fn free_heap(&self) -> u32;
}

/// The kubelet core on a board that models its heap.
pub(crate) struct Core {
    config: Config,
    kubelet: Kubelet,
}

impl Core {
    /// The image that runs the kubelet with this configuration in its flash.
    pub(crate) fn image(config: Config) -> Image {
        Box::new(move |boot| {
            Box::new(Self { kubelet: Kubelet::new(config.clone(), boot), config: config.clone() })
        })
    }
}

impl Firmware for Core {
    fn handle(&mut self, now: Now, input: Input<'_>) {
        self.kubelet.handle(now, input);
    }

    fn next_output(&mut self) -> Option<Output> {
        self.kubelet.next_output()
    }

    fn deadline(&self) -> u64 {
        self.kubelet.deadline()
    }

    fn free_heap(&self) -> u32 {
        boards_host::free_heap(&self.config, &self.kubelet)
    }
}

/// Makes what runs on a board, at each boot.
pub(crate) type Image = Box<dyn Fn(Boot) -> Box<dyn Firmware>>;

/// What a board does to the world around it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Sends on a connection; [`Carried::Open`] begins one.
    Send(Connection, Carried),
    /// Gave a connection up: what waits to be retransmitted on it is lost.
    Abandon(Connection),
    /// A line on the console.
    Line(String),
    /// Call [`Board::tick`] at this instant.
    Tick(u64),
    /// Call [`Board::boot`] with this number at this instant.
    Boot(u64, u32),
}

/// One board.
pub(crate) struct Board {
    name: String,
    image: Image,
    address: [u8; 4],
    seed: u64,
    draws: fastrand::Rng,
    /// What its clock counts in a million microseconds.
    pace: u128,
    boots: u32,
    power: Power,
    halted: Option<Halted>,
}

enum Power {
    Off,
    /// The boot with this number is under way; `late` once it should have ended while the processor was halted.
    Booting {
        reason: ResetReason,
        late: bool,
    },
    On(Running),
}

struct Running {
    firmware: Box<dyn Firmware>,
    /// When millisecond 0 of the board's clock was, moved on by the time it stood.
    clock_zero: u64,
    timer: Option<u64>,
    connections: BTreeMap<ConnId, Connection>,
}

/// A processor that stands still.
struct Halted {
    since: u64,
    arrived: Vec<(Connection, Carried)>,
}

/// Numbers the connections of a trial.
#[derive(Debug, Default)]
pub(crate) struct Numbering(u64);

impl Numbering {
    pub(crate) fn next(&mut self) -> Connection {
        self.0 += 1;
        Connection(self.0)
    }
}

impl Board {
    /// A board without power that runs `image` when it gets some.
    pub(crate) fn new(name: &str, image: Image, address: [u8; 4], seed: u64) -> Self {
        Self {
            name: name.to_owned(),
            image,
            address,
            seed,
            draws: generator(seed, &format!("board:{name}")),
            pace: RIGHT,
            boots: 0,
            power: Power::Off,
            halted: None,
        }
    }

    /// The node's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Lets its clock run fast by so many millionths, or slow.
    pub(crate) fn set_drift(&mut self, ppm: i32) {
        self.pace = RIGHT.saturating_add_signed(ppm.into());
    }

    /// Milliseconds that its clock counts in `micros`.
    fn millis(&self, micros: u64) -> u64 {
        u64::try_from(u128::from(micros) * self.pace / RIGHT / 1_000).unwrap_or(u64::MAX)
    }

    /// The first microsecond at which its clock has counted `millis`.
    fn micros(&self, millis: u64) -> u64 {
        u64::try_from((u128::from(millis) * 1_000 * RIGHT).div_ceil(self.pace)).unwrap_or(u64::MAX)
    }

    /// Whether its processor can do something.
    pub(crate) fn is_running(&self) -> bool {
        self.is_on() && self.halted.is_none()
    }

    /// Whether it still wants this connection.
    pub(crate) fn wants(&self, connection: Connection) -> bool {
        matches!(&self.power, Power::On(running) if running.connections.values().any(|it| *it == connection))
    }

    /// Whether it has power.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.power, Power::Off)
    }

    /// Power goes away: no goodbye, and what the board had not sent successfully is lost.
    pub(crate) fn cut(&mut self) -> Vec<Effect> {
        let connections = match std::mem::replace(&mut self.power, Power::Off) {
            Power::On(running) => running.connections,
            Power::Off | Power::Booting { .. } => BTreeMap::new(),
        };
        self.halted = None;
        connections.into_values().map(Effect::Abandon).collect()
    }

    /// Power comes on; does nothing to a board that has it.
    pub(crate) fn restore(&mut self, now: u64) -> Vec<Effect> {
        if self.is_on() { Vec::new() } else { vec![self.begin_boot(now, ResetReason::PowerOn)] }
    }

    fn begin_boot(&mut self, now: u64, reason: ResetReason) -> Effect {
        self.boots += 1;
        self.power = Power::Booting { reason, late: false };
        Effect::Boot(now + self.draws.u64(BOOT), self.boots)
    }

    /// The boot with this number has come to where the network is up.
    pub(crate) fn boot(&mut self, now: u64, number: u32, numbering: &mut Numbering) -> Vec<Effect> {
        let Power::Booting { reason, late } = &mut self.power else { return Vec::new() };
        if number != self.boots {
            return Vec::new();
        }
        if self.halted.is_some() {
            *late = true;
            return Vec::new();
        }
        let boot =
            Boot { reason: *reason, seed: seed_of(self.seed, &format!("boot:{}:{number}", self.name)) };
        self.power = Power::On(Running {
            firmware: (self.image)(boot),
            clock_zero: now,
            timer: None,
            connections: BTreeMap::new(),
        });
        self.run(now, Input::NetworkUp { address: self.address }, numbering)
    }

    /// The processor stops.
    pub(crate) fn halt(&mut self, now: u64) {
        if self.is_on() && self.halted.is_none() {
            self.halted = Some(Halted { since: now, arrived: Vec::new() });
        }
    }

    /// The processor goes on where it stopped, and finds what arrived meanwhile.
    pub(crate) fn resume(&mut self, now: u64, numbering: &mut Numbering) -> Vec<Effect> {
        let Some(halted) = self.halted.take() else { return Vec::new() };
        let mut effects = match &mut self.power {
            Power::Off => Vec::new(),
            Power::Booting { late: true, .. } => self.boot(now, self.boots, numbering),
            Power::Booting { late: false, .. } => Vec::new(),
            Power::On(running) => {
                running.clock_zero += now - halted.since;
                running.timer = None;
                self.arm(now, 0).into_iter().collect()
            }
        };
        for (connection, carried) in halted.arrived {
            effects.extend(self.arrive(now, connection, carried, numbering));
        }
        effects
    }

    /// Something of the network arrives.
    pub(crate) fn arrive(
        &mut self,
        now: u64,
        connection: Connection,
        carried: Carried,
        numbering: &mut Numbering,
    ) -> Vec<Effect> {
        if let Some(halted) = &mut self.halted {
            halted.arrived.push((connection, carried));
            return Vec::new();
        }
        let Power::On(running) = &mut self.power else { return Vec::new() };
        let Some(id) = running.connections.iter().find(|(_, it)| **it == connection).map(|(id, _)| *id)
        else {
            return match carried {
                Carried::Reset => Vec::new(),
                Carried::Open | Carried::Opened | Carried::Bytes(_) | Carried::End => {
                    vec![Effect::Send(connection, Carried::Reset)]
                }
            };
        };
        match carried {
            Carried::Open => Vec::new(),
            Carried::Opened => self.run(now, Input::Connected(id), numbering),
            Carried::Bytes(bytes) => {
                let mut effects = Vec::new();
                for segment in bytes.chunks(SEGMENT) {
                    if !self.has(id, connection) {
                        break;
                    }
                    effects.extend(self.run(now, Input::Received(id, segment), numbering));
                }
                effects
            }
            Carried::End | Carried::Reset => {
                running.connections.remove(&id);
                let mut effects = vec![Effect::Abandon(connection)];
                effects.extend(self.run(now, Input::Closed(id), numbering));
                effects
            }
        }
    }

    fn has(&self, id: ConnId, connection: Connection) -> bool {
        matches!(&self.power, Power::On(running) if running.connections.get(&id) == Some(&connection))
    }

    /// A timer of the board may have come due.
    pub(crate) fn tick(&mut self, now: u64, numbering: &mut Numbering) -> Vec<Effect> {
        if self.halted.is_some() {
            return Vec::new();
        }
        match &mut self.power {
            Power::On(running) if running.timer == Some(now) => {
                running.timer = None;
                self.run(now, Input::Tick, numbering)
            }
            Power::Off | Power::Booting { .. } | Power::On(_) => Vec::new(),
        }
    }

    /// Gives the firmware one input and does what it wants.
    fn run(&mut self, now: u64, input: Input<'_>, numbering: &mut Numbering) -> Vec<Effect> {
        let Power::On(running) = &self.power else { return Vec::new() };
        let millis = self.millis(now - running.clock_zero);
        let Power::On(running) = &mut self.power else { return Vec::new() };
        let board_now = Now { millis, free_heap: running.firmware.free_heap() };
        let grain = if input == Input::Tick { TIMER_GRAIN } else { 0 };
        let firmware = &mut running.firmware;
        let outputs = calm(|| {
            firmware.handle(board_now, input);
            std::iter::from_fn(|| firmware.next_output()).collect::<Vec<_>>()
        });
        match outputs {
            Ok(outputs) => {
                let mut effects = Vec::new();
                for output in outputs {
                    perform(output, &mut running.connections, numbering, &mut effects);
                }
                effects.extend(self.arm(now, grain));
                effects
            }
            Err(message) => {
                let mut effects = self.cut();
                effects.push(Effect::Line(format!("PANIC {message}")));
                effects.push(self.begin_boot(now, ResetReason::Panic));
                effects
            }
        }
    }

    /// Sets the timer by the firmware's deadline, not before `grain` from now.
    fn arm(&mut self, now: u64, grain: u64) -> Option<Effect> {
        let Power::On(running) = &self.power else { return None };
        let deadline = running.firmware.deadline();
        let after_boot = self.micros(deadline);
        let Power::On(running) = &mut self.power else { return None };
        if deadline == u64::MAX {
            running.timer = None;
            return None;
        }
        let due = after_boot.saturating_add(running.clock_zero).max(now + grain);
        if running.timer == Some(due) {
            return None;
        }
        running.timer = Some(due);
        Some(Effect::Tick(due))
    }
}

/// Turns one output of the firmware into effects; consecutive bytes of one connection travel together.
fn perform(
    output: Output,
    connections: &mut BTreeMap<ConnId, Connection>,
    numbering: &mut Numbering,
    effects: &mut Vec<Effect>,
) {
    match output {
        Output::Open(id) => {
            let connection = numbering.next();
            if let Some(old) = connections.insert(id, connection) {
                effects.extend([Effect::Abandon(old), Effect::Send(old, Carried::Reset)]);
            }
            effects.push(Effect::Send(connection, Carried::Open));
        }
        Output::Send(id, bytes) => {
            let Some(connection) = connections.get(&id).copied() else { return };
            match effects.last_mut() {
                Some(Effect::Send(last, Carried::Bytes(sent))) if *last == connection => sent.extend(bytes),
                _ => effects.push(Effect::Send(connection, Carried::Bytes(bytes))),
            }
        }
        Output::Close(id) => {
            if let Some(connection) = connections.remove(&id) {
                effects.extend([Effect::Abandon(connection), Effect::Send(connection, Carried::Reset)]);
            }
        }
        Output::Log(line) => effects.push(Effect::Line(line)),
    }
}
