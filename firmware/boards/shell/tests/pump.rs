//! The shell against a peer, packet by packet, in virtual time: what the kubelet hears of network and
//! connections, and that its outputs are carried out.

mod bench;

use bench::{BOARD_ADDRESS, Bench, PEER_ADDRESS, PORT};
use kubelet::{Config, ConnId, Input, Now, Output, ResetReason};
use shell::{Machine, Shell};
use smoltcp::time::Duration;
use smoltcp::wire::{IpAddress, IpEndpoint};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

const SECOND: Duration = Duration::from_secs(1);

/// A machine that wants what the test says, and notes what it hears.
#[derive(Clone, Default)]
struct Script {
    heard: Rc<RefCell<Vec<String>>>,
    wants: Rc<RefCell<VecDeque<Output>>>,
    received: Rc<RefCell<Vec<u8>>>,
    deadline: Rc<RefCell<Option<u64>>>,
}

impl Machine for Script {
    fn handle(&mut self, _: Now, input: Input<'_>) {
        let heard = match input {
            Input::NetworkUp { address } => format!("up {address:?}"),
            Input::NetworkDown => "down".into(),
            Input::Connected(ConnId(id)) => format!("connected {id}"),
            Input::Closed(ConnId(id)) => format!("closed {id}"),
            Input::Tick => {
                *self.deadline.borrow_mut() = None;
                "tick".into()
            }
            Input::Received(_, bytes) => return self.received.borrow_mut().extend_from_slice(bytes),
        };
        self.heard.borrow_mut().push(heard);
    }

    fn next_output(&mut self) -> Option<Output> {
        self.wants.borrow_mut().pop_front()
    }

    fn deadline(&self) -> u64 {
        self.deadline.borrow().unwrap_or(u64::MAX)
    }
}

impl Script {
    fn want(&self, outputs: impl IntoIterator<Item = Output>) {
        self.wants.borrow_mut().extend(outputs);
    }

    fn heard(&self, what: &str) -> bool {
        self.heard.borrow().iter().any(|heard| heard == what)
    }

    /// What was heard since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.borrow_mut())
    }
}

const BOARD_MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

/// A board on a network, its script, and nothing heard yet but the address.
fn on_network(entropy: u64) -> (Bench<Script>, Script) {
    let script = Script::default();
    let machine = script.clone();
    let server = IpEndpoint::new(IpAddress::Ipv4(PEER_ADDRESS), PORT);
    let mut bench = Bench::new(entropy, |desk, card| Shell::with(desk, card, BOARD_MAC, server, |_| machine));
    assert!(bench.run(SECOND, |_| script.heard("up [10, 0, 2, 15]")), "{:?}", script.take());
    assert_eq!(script.take(), ["up [10, 0, 2, 15]"]);
    (bench, script)
}

/// As [`on_network`], with a connection under `id`.
fn connected(id: ConnId) -> (Bench<Script>, Script) {
    let (mut bench, script) = on_network(1);
    script.want([Output::Open(id)]);
    let expected = format!("connected {}", id.0);
    assert!(bench.run(SECOND, |_| script.heard(&expected)), "{:?}", script.take());
    script.take();
    (bench, script)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

#[test]
fn an_address_is_leased_within_milliseconds() {
    let (bench, _) = on_network(1);
    assert!(bench.desk.time.get() < 10_000, "{} µs", bench.desk.time.get());
    let lines = bench.lines();
    assert!(lines[0].starts_with("dhcp address=10.0.2.15/24 router=10.0.2.2 after "), "{lines:?}");
    assert_eq!(BOARD_ADDRESS.octets(), [10, 0, 2, 15]);
}

#[test]
fn a_request_longer_than_every_buffer_arrives_whole() {
    let (mut bench, script) = connected(ConnId::REQUESTS);
    let request = pattern(30_000);
    let (head, body) = request.split_at(700);
    script
        .want([Output::Send(ConnId::REQUESTS, head.to_vec()), Output::Send(ConnId::REQUESTS, body.to_vec())]);
    assert!(bench.run(SECOND, |bench| bench.peer.connections[0].received.len() == request.len()));
    assert!(bench.peer.connections[0].received == request);
}

#[test]
fn an_answer_longer_than_the_window_arrives_whole_before_the_close() {
    let (mut bench, script) = connected(ConnId::WATCH);
    let answer = pattern(15_000);
    bench.peer.send(0, &answer);
    bench.peer.close(0);
    assert!(bench.run(SECOND, |_| script.heard("closed 1")), "{:?}", script.take());
    assert!(*script.received.borrow() == answer);
    assert_eq!(script.take(), ["closed 1"]);
}

#[test]
fn a_reset_is_heard_once() {
    let (mut bench, script) = connected(ConnId::REQUESTS);
    bench.peer.reset(0);
    bench.run(SECOND, |_| false);
    assert_eq!(script.take(), ["closed 0"]);
}

#[test]
fn a_closed_connection_is_dropped_for_the_peer_too_and_not_heard_of_again() {
    let (mut bench, script) = connected(ConnId::WATCH);
    bench.peer.send(0, b"late");
    script.want([Output::Close(ConnId::WATCH)]);
    assert!(bench.run(SECOND, |bench| bench.peer.is_over(0)));
    bench.run(SECOND, |_| false);
    assert_eq!(script.take(), [""; 0]);
}

#[test]
fn close_and_open_at_once_resets_the_old_and_dials_a_new_port() {
    let (mut bench, script) = connected(ConnId::REQUESTS);
    script.want([Output::Close(ConnId::REQUESTS), Output::Open(ConnId::REQUESTS)]);
    assert!(bench.run(SECOND, |_| script.heard("connected 0")), "{:?}", script.take());
    assert!(bench.peer.is_over(0));
    assert!(!bench.peer.is_over(1));
    assert_ne!(bench.peer.connections[0].port, bench.peer.connections[1].port);
}

#[test]
fn two_connections_live_side_by_side() {
    let (mut bench, script) = on_network(1);
    script.want([Output::Open(ConnId::REQUESTS), Output::Open(ConnId::WATCH)]);
    assert!(bench.run(SECOND, |_| script.heard("connected 0") && script.heard("connected 1")));
    bench.peer.reset(1);
    assert!(bench.run(SECOND, |_| script.heard("closed 0") || script.heard("closed 1")));
    assert_eq!(script.take().iter().filter(|heard| heard.starts_with("closed")).count(), 1);
    assert_eq!([bench.peer.is_over(0), bench.peer.is_over(1)], [false, true]);
}

#[test]
fn a_cut_cable_is_down_at_once_and_heals_with_a_new_lease() {
    let (mut bench, script) = connected(ConnId::REQUESTS);
    bench.cable.cut.set(true);
    bench.run(Duration::from_secs(60), |_| false);
    assert_eq!(script.take(), ["down"]);
    bench.cable.cut.set(false);
    assert!(bench.run(SECOND, |_| script.heard("up [10, 0, 2, 15]")), "{:?}", script.take());
    script.take();
    script.want([Output::Open(ConnId::REQUESTS)]);
    assert!(bench.run(SECOND, |_| script.heard("connected 0")), "{:?}", script.take());
    assert_eq!(bench.lines()[1..3], ["network carrier lost".to_string(), "network carrier back".to_string()]);
}

#[test]
fn a_silent_peer_is_given_up_after_half_a_minute() {
    let (mut bench, script) = connected(ConnId::WATCH);
    bench.cable.lossy.set(true);
    // The last sign of life may be as old as a keep-alive interval.
    assert!(!bench.run(Duration::from_secs(19), |_| script.heard("closed 1")), "{:?}", script.take());
    assert!(bench.run(Duration::from_secs(12), |_| script.heard("closed 1")), "{:?}", script.take());
}

#[test]
fn a_jammed_card_does_not_keep_the_board_awake() {
    let (mut bench, script) = connected(ConnId::REQUESTS);
    bench.cable.jammed.set(true);
    script.want([Output::Send(ConnId::REQUESTS, pattern(5000))]);
    // `run` fails when the shell asks in a loop.
    bench.run(SECOND, |_| false);
    bench.cable.jammed.set(false);
    assert!(bench.run(SECOND, |bench| bench.peer.connections[0].received.len() == 5000));
}

#[test]
fn a_tick_comes_when_it_is_due() {
    let (mut bench, script) = on_network(1);
    *script.deadline.borrow_mut() = Some(2_500);
    assert!(bench.run(Duration::from_secs(5), |_| script.heard("tick")));
    assert_eq!(bench.desk.time.get(), 2_500_000);
}

#[test]
fn a_flood_does_not_hold_up_a_tick() {
    let (mut bench, script) = on_network(1);
    bench.cable.flood(1000);
    *script.deadline.borrow_mut() = Some(0);
    assert_eq!(bench.shell.turn(), Some(0), "the rest of the flood is due at once");
    assert_eq!(script.take(), ["tick"]);
    assert!(bench.cable.waiting() > 900, "{} left", bench.cable.waiting());
    assert!(bench.run(SECOND, |bench| bench.cable.waiting() == 0));
}

#[test]
fn boots_differ_in_their_local_ports() {
    let ports: BTreeSet<u16> = (0..20)
        .map(|entropy| {
            let (mut bench, script) = on_network(entropy);
            script.want([Output::Open(ConnId::REQUESTS)]);
            assert!(bench.run(SECOND, |_| script.heard("connected 0")));
            bench.peer.connections[0].port
        })
        .collect();
    assert!(ports.len() >= 18, "{ports:?}");
}

#[test]
fn the_kubelet_registers_its_node_over_the_first_connection() {
    let config = Config::from_json(
        br#"{"nodeName":"a","server":"http://10.0.2.2:8080","token":"t-a","board":{"name":"bench","arch":"riscv32imc"}}"#,
    )
    .unwrap();
    let mut bench =
        Bench::new(1, |desk, card| Shell::new(desk, card, BOARD_MAC, config, ResetReason::PowerOn).unwrap());
    let request = |bench: &Bench<kubelet::Kubelet>| {
        bench.peer.connections.first().map(|first| String::from_utf8(first.received.clone()).unwrap())
    };
    assert!(
        bench.run(SECOND, |bench| request(bench).is_some_and(|text| text.contains("\"Node\""))),
        "{:?}",
        bench.lines()
    );
    let request = request(&bench).unwrap();
    assert!(request.starts_with("POST /api/v1/nodes HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("Bearer t-a\r\n"), "{request}");
    assert!(bench.lines()[0].starts_with("rigor kubelet "), "{:?}", bench.lines());
}
