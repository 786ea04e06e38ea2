//! The simulation with something small in the place of server and kubelet: what time, links, power and the byte
//! bridge do, apart from what Kubernetes does.

mod faults;
mod small;

use std::fmt::Write;
use std::sync::Arc;

use kubelet::{Boot, ConnId, Input, Now, Output};
use rigor_model::kinds::ObjectKind;
use rigor_rigs::{ApiRequest, ControlPlaneAct, LinkChange, PowerAct, World};
use rigor_trace::history::{Fact, Micros};
use serde_json::{Value, json};

use self::small::SmallLaunch;
use crate::board::{Board, Firmware, Image};
use crate::clock::Time;
use crate::faults::Sites;
use crate::seed::generator;
use crate::server::Server;
use crate::simulation::Simulation;
use crate::world::{Simulated, Tokens, bearer};

/// Asks for a path over one connection every second, and says on the console what it gets.
struct Asker {
    path: &'static str,
    outputs: Vec<Output>,
    open: bool,
    next: u64,
}

const PERIOD: u64 = 1_000;

impl Firmware for Asker {
    fn handle(&mut self, now: Now, input: Input<'_>) {
        let conn = ConnId(0);
        match input {
            Input::NetworkUp { .. } => {
                self.outputs.extend([Output::Log("up".to_owned()), Output::Open(conn)]);
            }
            Input::Connected(_) => {
                self.open = true;
                self.next = now.millis;
            }
            Input::Received(_, bytes) => {
                let text = String::from_utf8_lossy(bytes);
                let last = text.lines().rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
                self.outputs.push(Output::Log(last));
            }
            Input::Closed(_) => {
                self.open = false;
                self.next = now.millis + PERIOD;
                self.outputs.push(Output::Log("closed".to_owned()));
            }
            Input::NetworkDown | Input::Tick => {}
        }
        if now.millis < self.next {
            return;
        }
        self.next = now.millis + PERIOD;
        if self.open && self.path == "/explode" {
            panic!("the firmware gave up");
        }
        self.outputs.push(match self.open {
            true => Output::Send(conn, format!("GET {} HTTP/1.1\r\n\r\n", self.path).into_bytes()),
            false => Output::Open(conn),
        });
        if self.open && self.path == "/watch" {
            self.next = u64::MAX;
        }
    }

    fn next_output(&mut self) -> Option<Output> {
        (!self.outputs.is_empty()).then(|| self.outputs.remove(0))
    }

    fn deadline(&self) -> u64 {
        self.next
    }

    fn free_heap(&self) -> u32 {
        1_000
    }
}

fn asker(path: &'static str) -> Image {
    Box::new(move |_: Boot| Box::new(Asker { path, outputs: Vec::new(), open: false, next: u64::MAX }))
}

/// A trial with one board, `a`, that asks for `path`.
fn world(path: &'static str, seed: u64) -> Simulated {
    world_with(path, seed, Sites::default())
}

/// The same with faults.
fn world_with(path: &'static str, seed: u64, sites: Sites) -> Simulated {
    let time = Time::default();
    let server = Server::new(Box::new(SmallLaunch(Arc::default())), time.clone());
    let board = Board::new("a", asker(path), [10, 0, 1, 1], seed);
    let proof = bearer(Tokens.admin()).unwrap();
    let simulation = Simulation::new(seed, time, server, vec![board], proof.clone(), proof);
    let simulation = simulation.with_faults(sites);
    Simulated::start(simulation, generator(seed, "control-plane")).unwrap()
}

/// Lets time pass until `seconds`, whatever happens.
fn pass(world: &mut Simulated, seconds: f64) {
    let until = Micros((seconds * 1e6) as u64);
    while world.now() < until {
        world.wait(until);
    }
}

/// Console lines and process ends, each with its second.
fn story(world: &Simulated) -> String {
    let mut story = String::new();
    for record in world.history().records() {
        let at = record.at.0 / 1_000_000;
        match &record.fact {
            Fact::Console { line, .. } => writeln!(story, "{at} {line}").unwrap(),
            Fact::Process { who, .. } => writeln!(story, "{at} {who} exited").unwrap(),
            _ => {}
        }
    }
    story
}

#[test]
fn requests_are_answered_and_streams_go_on() {
    let mut counting = world("/count", 1);
    pass(&mut counting, 2.5);
    insta::assert_snapshot!(story(&counting), @r"
    0 up
    0 1
    1 2
    2 3
    ");
    let mut watching = world("/watch", 1);
    pass(&mut watching, 4.5);
    insta::assert_snapshot!(story(&watching), @r"
    0 up
    0 date: Thu, 01 Jan 2026 00:00:00 GMT
    2 due at 2s
    4 due at 4s
    ");
}

#[test]
fn a_cut_link_loses_nothing_that_tcp_repeats_and_nothing_crosses_it() {
    let mut world = world("/count", 1);
    pass(&mut world, 1.5);
    world.link("a", LinkChange::Cut).unwrap();
    pass(&mut world, 5.0);
    let before = story(&world);
    world.link("a", LinkChange::Heal).unwrap();
    pass(&mut world, 7.0);
    insta::assert_snapshot!(before, @r"
    0 up
    0 1
    1 2
    ");
    insta::assert_snapshot!(story(&world).strip_prefix(&before).unwrap(), @r"
    5 3
    5 4
    5 5
    5 6
    6 7
    ");
}

#[test]
fn a_power_cut_is_silent_and_the_board_begins_anew() {
    let mut world = world("/watch", 1);
    pass(&mut world, 3.0);
    world.power("a", PowerAct::Cut).unwrap();
    pass(&mut world, 6.0);
    let before = story(&world);
    assert!(world.request(ApiRequest::new("POST", "/say", None)).status == 200);
    world.power("a", PowerAct::Restore).unwrap();
    pass(&mut world, 9.0);
    insta::assert_snapshot!(before, @r"
    0 up
    0 date: Thu, 01 Jan 2026 00:00:00 GMT
    2 due at 2s
    ");
    insta::assert_snapshot!(story(&world).strip_prefix(&before).unwrap(), @r"
    6 up
    6 date: Thu, 01 Jan 2026 00:00:06 GMT
    8 due at 8s
    ");
}

#[test]
fn a_hung_board_does_nothing_and_takes_up_where_it_stood() {
    let after_hang = |path, from: f64, to: f64| {
        let mut world = world(path, 1);
        pass(&mut world, from);
        world.power("a", PowerAct::Hang).unwrap();
        pass(&mut world, to);
        let before = story(&world);
        world.power("a", PowerAct::Resume).unwrap();
        pass(&mut world, to + 1.2);
        let infra = world.power("b", PowerAct::Hang).unwrap_err();
        assert_eq!(infra.to_string(), "no board is called b");
        story(&world).strip_prefix(&before).unwrap().to_owned()
    };
    // Asked at 0 and 1; of the second until the next one, half was left when the clock stood.
    insta::assert_snapshot!(after_hang("/count", 1.5, 9.8), @"10 3");
    // What the server sent meanwhile had waited in the network card.
    insta::assert_snapshot!(after_hang("/watch", 1.5, 5.0), @r"
    5 due at 2s
    5 due at 4s
    6 due at 6s
    ");
}

#[test]
fn a_killed_server_closes_connections_and_refuses_new_ones_until_it_is_started() {
    let mut world = world("/count", 1);
    pass(&mut world, 0.5);
    world.control_plane(ControlPlaneAct::Kill).unwrap();
    let answer = world.request(ApiRequest::new("GET", "/count", None));
    assert_eq!((answer.status, answer.error.as_deref()), (0, Some("connection refused")));
    pass(&mut world, 3.0);
    world.control_plane(ControlPlaneAct::Start).unwrap();
    assert!(world.control_plane(ControlPlaneAct::Start).unwrap_err().to_string().contains("running already"));
    pass(&mut world, 5.0);
    insta::assert_snapshot!(story(&world), @r"
    0 up
    0 1
    0 closed
    1 closed
    2 closed
    3 2
    4 3
    ");
}

#[test]
fn a_handler_that_waits_is_an_infrastructure_error_that_names_the_request() {
    let mut world = world("/count", 7);
    pass(&mut world, 0.5);
    let answer = world.request(ApiRequest::new("GET", "/wait", None));
    insta::assert_snapshot!(
        answer.error.unwrap(),
        @"event 5 at 0.500 s with seed 7: the handler of admin GET /wait waited for something instead of answering"
    );
    pass(&mut world, 1.5);
    insta::assert_snapshot!(story(&world), @r"
    0 up
    0 1
    0 control-plane exited
    0 closed
    ");
    insta::assert_snapshot!(
        world.control_plane(ControlPlaneAct::Restart).unwrap_err(),
        @"event 5 at 0.500 s with seed 7: the handler of admin GET /wait waited for something instead of answering"
    );
}

#[test]
fn a_board_s_request_that_waits_or_panics_ends_the_server_and_not_the_run() {
    for (path, what) in [("/wait", "waited for something"), ("/panic", "panicked: out of order")] {
        let mut world = world(path, 7);
        pass(&mut world, 1.5);
        let infra = world.power("a", PowerAct::Cut).unwrap_err().to_string();
        assert!(infra.contains(what) && infra.contains(&format!("a GET {path}")), "{infra}");
        assert!(infra.contains("event ") && infra.contains("seed 7"), "{infra}");
        assert!(story(&world).contains("control-plane exited"), "{}", story(&world));
    }
}

#[test]
fn a_panic_of_a_board_is_a_line_on_its_console_and_a_reset() {
    let mut world = world("/explode", 7);
    pass(&mut world, 0.15);
    insta::assert_snapshot!(story(&world), @r"
    0 up
    0 PANIC the firmware gave up (event 3 at 0.067 s with seed 7)
    0 up
    0 PANIC the firmware gave up (event 6 at 0.111 s with seed 7)
    ");
}

#[test]
fn a_watch_of_the_runner_lasts_until_its_limit() {
    let mut world = world("/count", 1);
    let mut request = ApiRequest::new("GET", "/watch", None);
    request.timeout = Micros(5_000_000);
    let answer = world.request(request);
    assert_eq!(world.now(), Micros(5_000_000));
    insta::assert_snapshot!(answer.error.unwrap(), @"no complete answer within the time limit");
}

/// What the observer noted, a line each.
fn seen(world: &Simulated) -> String {
    let mut seen = String::new();
    for record in world.history().records() {
        let at = record.at.0 / 1_000_000;
        match &record.fact {
            Fact::Object { stream, verb, object } => {
                writeln!(seen, "{at} {stream} {verb:?} {} {}", object["kind"], object["metadata"]["name"])
                    .unwrap();
            }
            Fact::Synced { stream } => writeln!(seen, "{at} {stream} synced").unwrap(),
            Fact::Gap { stream, reason } => writeln!(seen, "{at} {stream} gap: {reason}").unwrap(),
            Fact::ControlPlane { act, begun } => writeln!(seen, "{at} {act:?}, begun at {begun}").unwrap(),
            Fact::ControlPlaneReady {} => writeln!(seen, "{at} ready").unwrap(),
            _ => {}
        }
    }
    seen
}

#[test]
fn the_observer_lists_watches_and_says_when_it_was_blind() {
    let mut world = world("/count", 1);
    let say = |world: &mut Simulated, kind: &str, name: &str| {
        let object = json!({"kind": "ConfigMap", "metadata": {"name": name, "resourceVersion": "6"}, "message": "too old"});
        let event: Value = json!({"type": kind, "object": object});
        world.request(ApiRequest::new("POST", "/say", Some(&event)));
    };
    say(&mut world, "ADDED", "new");
    say(&mut world, "BOOKMARK", "mark");
    say(&mut world, "DELETED", "new");
    pass(&mut world, 1.0);
    say(&mut world, "ERROR", "none");
    pass(&mut world, 1.5);
    world.control_plane(ControlPlaneAct::Kill).unwrap();
    pass(&mut world, 3.0);
    world.control_plane(ControlPlaneAct::Start).unwrap();
    insta::assert_snapshot!(seen(&world), @r#"
    0 ready
    0 configmaps Listed "ConfigMap" "old"
    0 configmaps synced
    0 configmaps Added "ConfigMap" "new"
    0 configmaps Deleted "ConfigMap" "new"
    1 configmaps gap: error in the watch: too old
    1 configmaps Listed "ConfigMap" "old"
    1 configmaps synced
    1 configmaps gap: the control plane was killed
    1 Kill, begun at 1.500 s
    3 Start, begun at 3.000 s
    3 ready
    3 configmaps Listed "ConfigMap" "old"
    3 configmaps synced
    "#);
}

#[test]
fn another_stream_is_watched_when_asked_for_and_after_a_restart() {
    let mut world = world("/count", 1);
    world.watch(ObjectKind::own("Copy", "v1", "configmaps", true)).unwrap();
    world.watch(ObjectKind::own("Widget", "example.com/v1", "widgets", true)).unwrap();
    let synced = |world: &Simulated, stream: &str| seen(world).matches(&format!("{stream} synced")).count();
    assert_eq!(synced(&world, "configmaps"), 2);
    world.control_plane(ControlPlaneAct::Restart).unwrap();
    assert_eq!(synced(&world, "configmaps"), 4);
    // What the server does not have shows nothing, and says so by never being synced.
    assert_eq!(synced(&world, "widgets.example.com"), 0);
}

#[test]
fn a_history_begins_with_the_trial() {
    let mut world = world("/count", 1);
    assert!(world.history().is_empty());
    world.record(Fact::TrialStarted {
        scenario: "s".to_owned(),
        rig: "sim".to_owned(),
        case: None,
        seed: 1,
        wall: None,
        constants: rigor_model::Constants::default(),
        faults: rigor_model::FaultLevel::None,
    });
    let kinds: Vec<_> = world.history().records().iter().map(|it| (it.seq, &it.fact)).collect();
    assert!(
        matches!(kinds[..], [(0, Fact::TrialStarted { .. }), (1, Fact::ControlPlaneReady {}), ..]),
        "{kinds:?}"
    );
}

#[test]
fn one_seed_gives_one_history_and_another_one_another() {
    let run = |seed| {
        let mut world = world("/count", seed);
        pass(&mut world, 2.0);
        world.link("a", LinkChange::Cut).unwrap();
        pass(&mut world, 4.0);
        world.link("a", LinkChange::Heal).unwrap();
        world.power("a", PowerAct::Cycle).unwrap();
        world.control_plane(ControlPlaneAct::Restart).unwrap();
        pass(&mut world, 9.0);
        let lines = world.history().records().iter().map(|it| serde_json::to_string(it).unwrap());
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
