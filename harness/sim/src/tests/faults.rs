//! What each injected fault does, and that a schedule of them does it again.

use std::collections::BTreeSet;
use std::fmt::Write;

use rigor_model::Constants;
use rigor_model::faults::{Fault, FaultKind, FaultLevel, FaultName, Faults, Schedule, Tally};
use rigor_model::kinds::ObjectKind;
use rigor_rigs::{ApiRequest, ControlPlaneAct, LinkChange, PowerAct, World};
use rigor_trace::faults::{schedule, tally};
use rigor_trace::history::{Fact, Micros, Phase};

use super::{pass, story, world_with};
use crate::faults::Sites;
use crate::world::Simulated;

const SEED: u64 = 1;

/// A trial with one board that asks for `path`, and these faults: site, opportunity, kind.
fn struck(path: &'static str, faults: &[(&str, u64, FaultKind)]) -> Simulated {
    let faults =
        faults.iter().map(|(site, nth, kind)| Fault { site: (*site).to_owned(), nth: *nth, kind: *kind });
    let schedule = Schedule { level: FaultLevel::Harsh, faults: faults.collect() };
    let sites = Sites::new(&Faults::Listed(schedule), &Constants::default(), &["a"], SEED);
    world_with(path, SEED, sites)
}

/// When `line` first came from the console.
fn when(world: &Simulated, line: &str) -> u64 {
    let found = world
        .history()
        .records()
        .iter()
        .find(|record| matches!(&record.fact, Fact::Console { line: said, .. } if said == line));
    found.unwrap_or_else(|| panic!("no line {line:?} in\n{}", story(world))).at.0
}

/// Begins and ends of faults, each with its tenth of a second.
fn told(world: &Simulated) -> String {
    let mut told = String::new();
    for record in world.history().records() {
        let at = record.at.0 as f64 / 1e6;
        match &record.fact {
            Fact::Fault { fault, phase: Phase::Begin } => {
                writeln!(told, "{at:.1} {} {} begins", fault.site, fault.kind.name()).unwrap();
            }
            Fact::Fault { fault, phase: Phase::End } => {
                writeln!(told, "{at:.1} {} {} is over", fault.site, fault.kind.name()).unwrap();
            }
            Fact::ControlPlaneReady {} => writeln!(told, "{at:.1} the server serves").unwrap(),
            _ => {}
        }
    }
    told
}

/// What the next request for the count is answered.
fn count(world: &mut Simulated) -> String {
    world.request(ApiRequest::new("GET", "/count", None)).text
}

// Messages of a board that asks for /count: 0 opens the connection, 1 says that it is open, 2 and 3 are the first request and
// its answer, 4 and 5 the second ones.

#[test]
fn a_delayed_message_comes_as_much_later_as_was_said() {
    let mut plain = struck("/count", &[]);
    let mut late = struck("/count", &[("link:a", 3, FaultKind::Delay { micros: 700_000 })]);
    for world in [&mut plain, &mut late] {
        pass(world, 2.5);
    }
    assert_eq!(when(&late, "1"), when(&plain, "1") + 700_000);
    assert_eq!(when(&late, "2"), when(&plain, "2"));
    assert_eq!(tally(late.history()).to_string(), "1 delay");
}

#[test]
fn of_a_lost_request_the_server_knows_nothing_and_of_a_lost_answer_everything() {
    for (nth, known) in [(4, "2"), (5, "6")] {
        let mut world = struck("/count", &[("link:a", nth, FaultKind::Lose {})]);
        pass(&mut world, 4.5);
        // All that follows on the connection is lost as well.
        assert_eq!(story(&world), "0 up\n0 1\n");
        assert_eq!(count(&mut world), known);
        assert_eq!(told(&world), "0.0 the server serves\n1.1 link:a lose begins\n");
        world.power("a", PowerAct::Cut).unwrap();
        assert!(told(&world).ends_with("4.5 link:a lose is over\n"), "{}", told(&world));
    }
}

#[test]
fn a_repeated_request_is_acted_on_twice_and_answered_once() {
    let mut first = struck("/count", &[("link:a", 4, FaultKind::Duplicate { after: 100, second: false })]);
    let mut second =
        struck("/count", &[("link:a", 4, FaultKind::Duplicate { after: 500_000, second: true })]);
    let mut plain = struck("/count", &[]);
    for world in [&mut first, &mut second, &mut plain] {
        pass(world, 3.0);
    }
    assert_eq!(story(&first), "0 up\n0 1\n1 2\n2 4\n");
    assert_eq!(story(&second), "0 up\n0 1\n1 3\n2 4\n");
    assert_eq!(when(&first, "2"), when(&plain, "2"));
    assert_eq!(when(&second, "3"), when(&plain, "2") + 500_000);
    // What is no request cannot be asked twice.
    let mut answer = struck("/count", &[("link:a", 3, FaultKind::Duplicate { after: 100, second: false })]);
    pass(&mut answer, 3.0);
    assert_eq!(tally(answer.history()).total(), 0);
}

#[test]
fn a_connection_ends_in_the_middle_of_an_answer_or_of_a_watch_s_line() {
    let cut = |silent| FaultKind::Cut { keep: 20, silent };
    let mut answer = struck("/count", &[("link:a", 5, cut(false))]);
    pass(&mut answer, 4.2);
    assert_eq!(story(&answer), "0 up\n0 1\n1 con\n1 closed\n2 3\n3 4\n4 5\n");
    let mut silent = struck("/count", &[("link:a", 5, cut(true))]);
    pass(&mut silent, 4.2);
    assert_eq!(story(&silent), "0 up\n0 1\n1 con\n");
    assert_eq!(count(&mut silent), "6");
    // The fourth message after the request is the first line: one chunk of a length, the line and their ends.
    let line = FaultKind::Cut { keep: 6, silent: false };
    let mut watch = struck("/watch", &[("link:a", 4, line)]);
    pass(&mut watch, 4.9);
    let story = story(&watch);
    assert!(story.contains("\n2 due\n2 closed\n"), "{story}");
    assert!(story.ends_with("4 due at 4s\n"), "{story}");
}

#[test]
fn a_request_cut_in_the_middle_is_none() {
    let mut world = struck("/count", &[("link:a", 4, FaultKind::Cut { keep: 10, silent: false })]);
    pass(&mut world, 1.5);
    assert_eq!(story(&world), "0 up\n0 1\n1 closed\n");
    assert_eq!(count(&mut world), "2");
}

#[test]
fn the_clocks_of_a_board_are_its_own() {
    let clock = |offset, ppm| [("board:a", 0, FaultKind::Clock { offset, ppm })];
    let mut fast = struck("/count", &clock(0, 100_000));
    let mut plain = struck("/count", &[]);
    for world in [&mut fast, &mut plain] {
        pass(world, 12.0);
    }
    let between = |world: &Simulated| (when(world, "11") - when(world, "1")) as f64 / 1e6;
    assert!((between(&plain) - 10.0).abs() < 0.01, "{}", between(&plain));
    assert!((between(&fast) - 10.0 / 1.1).abs() < 0.01, "{}", between(&fast));
    let mut behind = struck("/watch", &clock(-5_000_000, 0));
    pass(&mut behind, 0.5);
    assert!(story(&behind).contains("date: Wed, 31 Dec 2025 23:59:55 GMT"), "{}", story(&behind));
}

// The server's opportunities: a request, what its controllers do about it, and the time after that; each of three a request.

#[test]
fn a_killed_server_loses_what_had_not_left_it_and_comes_back() {
    let acted = |nth, writes| {
        let kill = FaultKind::Kill { down: 2_500_000, writes };
        let mut world = struck("/count", &[("server", nth, kill)]);
        pass(&mut world, 4.5);
        (story(&world), told(&world))
    };
    // Before it took the request, when it had counted, and when it had its answer ready.
    for (writes, count) in [(0, "1\n4 2"), (1, "2\n4 3"), (2, "2\n4 3")] {
        let told = acted(0, writes).0;
        assert_eq!(told, format!("0 up\n0 closed\n1 closed\n2 closed\n3 {count}\n"), "{writes} writes");
    }
    let (_, facts) = acted(0, 1);
    assert_eq!(
        facts,
        "0.0 the server serves\n0.1 server kill begins\n2.6 server kill is over\n2.6 the server serves\n"
    );
    for nth in [1, 2] {
        assert_eq!(
            acted(nth, 0).0,
            "0 up\n0 1\n0 closed\n1 closed\n2 closed\n3 2\n4 3\n",
            "opportunity {nth}"
        );
    }
}

#[test]
fn a_server_dies_in_the_middle_of_a_controller_s_turn() {
    // Its turn is due every 2 s, and the line that it says then is its one write. Three opportunities are those of the request
    // that watches, the next ones those of the first turn.
    for (writes, said) in [(0, "0"), (1, "1")] {
        let kill = FaultKind::Kill { down: 1_500_000, writes };
        let mut world = struck("/watch", &[("server", 3, kill)]);
        pass(&mut world, 3.6);
        assert!(told(&world).contains("2.0 server kill begins"), "{}", told(&world));
        assert!(!story(&world).contains("due"), "what it said went to nobody: {}", story(&world));
        let lines = world.request(ApiRequest::new("GET", "/said", None)).text;
        assert_eq!(lines, said, "{writes} writes");
    }
}

#[test]
fn the_runner_s_request_waits_for_a_server_that_a_fault_has_killed_but_not_for_ever() {
    let mut world = struck("/count", &[("server", 2, FaultKind::Kill { down: 2_500_000, writes: 0 })]);
    pass(&mut world, 0.5);
    let mut hasty = ApiRequest::new("GET", "/count", None);
    hasty.timeout = Micros(500_000);
    assert_eq!(world.request(hasty).error.as_deref(), Some("connection refused"));
    assert_eq!(world.now(), Micros(1_000_000));
    assert_eq!(count(&mut world), "2");
    assert!((2_500_000..2_700_000).contains(&world.now().0), "{}", world.now());
    let last = world.history().records().iter().rev().find_map(|record| match &record.fact {
        Fact::Request { sent, .. } => Some((*sent, record.at)),
        _ => None,
    });
    assert_eq!(last, Some((world.now(), world.now())), "it was sent when there was a server");
    // What the scenario itself stopped is refused at once.
    world.control_plane(ControlPlaneAct::Stop).unwrap();
    let answer = world.request(ApiRequest::new("GET", "/count", None));
    assert_eq!(answer.error.as_deref(), Some("connection refused"));
}

#[test]
fn a_kind_that_the_scenario_brings_along_is_watched_once_there_is_a_server_again() {
    let mut world = struck("/count", &[("server", 2, FaultKind::Kill { down: 1_000_000, writes: 0 })]);
    pass(&mut world, 0.5);
    world.watch(ObjectKind::own("Copy", "v1", "configmaps", true)).unwrap();
    pass(&mut world, 2.0);
    let synced =
        world.history().records().iter().filter(
            |record| matches!(&record.fact, Fact::Synced { stream } if stream.contains("configmaps")),
        );
    // The observer's own stream at both starts, and the new one at the second.
    assert_eq!(synced.count(), 3);
    assert!(story(&world).ends_with("1 2\n"), "{}", story(&world));
}

#[test]
fn a_server_that_the_scenario_stops_stays_down_although_a_fault_had_killed_it() {
    let mut world = struck("/count", &[("server", 2, FaultKind::Kill { down: 1_000_000, writes: 0 })]);
    pass(&mut world, 0.5);
    world.control_plane(ControlPlaneAct::Stop).unwrap();
    pass(&mut world, 3.0);
    assert!(told(&world).ends_with("0.5 server kill is over\n"), "{}", told(&world));
    world.control_plane(ControlPlaneAct::Start).unwrap();
    assert_eq!(count(&mut world), "2");
    let mut restarted = struck("/count", &[("server", 2, FaultKind::Kill { down: 1_000_000, writes: 0 })]);
    pass(&mut restarted, 0.5);
    restarted.control_plane(ControlPlaneAct::Restart).unwrap();
    assert!(restarted.now() < Micros(700_000));
    assert_eq!(count(&mut restarted), "2");
}

// The board's opportunities: 0 is its clock, 1 the end of its boot, 2 that it is connected, 3 the first answer, …

#[test]
fn power_goes_between_any_two_events_and_comes_back() {
    for nth in 1..6 {
        let mut world = struck("/count", &[("board:a", nth, FaultKind::PowerCut { dark: 2_500_000 })]);
        pass(&mut world, 6.0);
        let told = told(&world);
        let lines: Vec<&str> = told.lines().skip(1).map(|line| &line[4..]).collect();
        assert_eq!(lines, ["board:a power-cut begins", "board:a power-cut is over"], "opportunity {nth}");
        let story = story(&world);
        assert_eq!(story.matches("up\n").count(), 2, "opportunity {nth}: {story}");
        assert!(!story.contains("closed"), "power off is silence; opportunity {nth}: {story}");
    }
}

#[test]
fn the_scenario_s_acts_on_power_go_before_faults() {
    let dark = |path| {
        let mut world = struck(path, &[("board:a", 3, FaultKind::PowerCut { dark: 2_000_000 })]);
        pass(&mut world, 0.5);
        assert!(told(&world).ends_with("0.1 board:a power-cut begins\n"), "{}", told(&world));
        world
    };
    let over = "0.5 board:a power-cut is over\n";
    // Cut by the scenario: it does not come back before the scenario says so.
    let mut world = dark("/count");
    world.power("a", PowerAct::Cut).unwrap();
    pass(&mut world, 5.0);
    assert!(told(&world).ends_with(over) && story(&world).matches("up\n").count() == 1);
    world.power("a", PowerAct::Restore).unwrap();
    pass(&mut world, 6.0);
    assert_eq!(story(&world).matches("up\n").count(), 2);
    // Restored or cycled by the scenario: it comes at once, and once.
    for act in [PowerAct::Restore, PowerAct::Cycle] {
        let mut world = dark("/count");
        world.power("a", act).unwrap();
        pass(&mut world, 5.0);
        assert!(told(&world).ends_with(over), "{}", told(&world));
        assert_eq!(story(&world), "0 up\n0 1\n0 up\n0 2\n1 3\n2 4\n3 5\n4 6\n");
    }
    // Halted by the scenario: it has power again and does nothing until it is resumed.
    let mut world = dark("/count");
    world.power("a", PowerAct::Hang).unwrap();
    pass(&mut world, 5.0);
    assert!(told(&world).ends_with(over) && story(&world).matches("up\n").count() == 1);
    world.power("a", PowerAct::Resume).unwrap();
    pass(&mut world, 6.0);
    assert_eq!(story(&world).matches("up\n").count(), 2);
    // A board that is halted or cut loses nothing more.
    let every: Vec<_> = (6..50).map(|nth| ("board:a", nth, FaultKind::PowerCut { dark: 1_000 })).collect();
    for act in [PowerAct::Cut, PowerAct::Hang] {
        let mut world = struck("/watch", &every);
        pass(&mut world, 0.5);
        world.power("a", act).unwrap();
        pass(&mut world, 30.0);
        assert_eq!(told(&world), "0.0 the server serves\n", "{act:?}");
    }
}

#[test]
fn a_link_can_be_slow_and_lose_packets_until_it_is_healed() {
    let mut plain = struck("/count", &[]);
    let mut slow = struck("/count", &[]);
    for world in [&mut plain, &mut slow] {
        pass(world, 0.5);
    }
    slow.link("a", LinkChange::Delay(std::time::Duration::from_millis(300))).unwrap();
    for world in [&mut plain, &mut slow] {
        pass(world, 2.9);
    }
    // There and back.
    assert_eq!(when(&slow, "3"), when(&plain, "3") + 600_000);
    slow.link("a", LinkChange::Heal).unwrap();
    for world in [&mut plain, &mut slow] {
        pass(world, 3.5);
    }
    assert!(
        when(&slow, "4").abs_diff(when(&plain, "4")) < 5_000,
        "{} and {}",
        when(&slow, "4"),
        when(&plain, "4")
    );

    slow.link("a", LinkChange::Loss(20)).unwrap();
    pass(&mut slow, 60.0);
    slow.link("a", LinkChange::Heal).unwrap();
    pass(&mut slow, 70.0);
    let said: Vec<u64> =
        story(&slow).lines().filter_map(|line| line.split_once(' ')?.1.parse().ok()).collect();
    assert_eq!(said, (1..=70).collect::<Vec<u64>>(), "TCP repeats what is lost, in order");
    let late = (5..60).filter(|number| when(&slow, &number.to_string()) % 1_000_000 > 150_000).count();
    assert!((10..50).contains(&late), "{late} of 55 answers were late");

    slow.link("a", LinkChange::Loss(100)).unwrap();
    pass(&mut slow, 600.0);
    assert!(story(&slow).contains("closed"), "a connection on which nothing comes through is given up");
    slow.link("a", LinkChange::Heal).unwrap();
    pass(&mut slow, 800.0);
    assert!(story(&slow).lines().last().unwrap().starts_with("799 "), "{}", story(&slow));
}

fn drawn(path: &'static str, seed: u64, faults: &Faults) -> Simulated {
    drawn_without(&BTreeSet::new(), path, seed, faults)
}

fn drawn_without(without: &BTreeSet<FaultName>, path: &'static str, seed: u64, faults: &Faults) -> Simulated {
    let sites = Sites::new(faults, &Constants::default(), &["a"], seed).withholding(without);
    let mut world = world_with(path, seed, sites);
    world.record(Fact::TrialStarted {
        scenario: "s".to_owned(),
        rig: "sim".to_owned(),
        case: None,
        seed,
        wall: None,
        constants: Constants::default(),
        faults: faults.level(),
    });
    pass(&mut world, 40.0);
    world
}

fn lines(world: &Simulated) -> String {
    let lines = world.history().records().iter().map(|it| serde_json::to_string(it).unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_faults_of_a_history_as_a_schedule_give_the_same_history() {
    let mut injected = Tally::default();
    for seed in 0..150 {
        for level in [FaultLevel::Mild, FaultLevel::Harsh] {
            for path in ["/count", "/watch"] {
                let found = drawn(path, seed, &Faults::Drawn(level));
                let again = drawn(path, seed, &Faults::Listed(schedule(found.history())));
                assert_eq!(lines(&found), lines(&again), "seed {seed}, {level}, {path}");
                injected.add(&tally(found.history()));
            }
        }
    }
    for kind in FaultName::ALL {
        assert!(injected.of(kind) > 0, "no {} among {injected}", kind.name());
    }
}

#[test]
fn a_schedule_with_one_fault_less_is_the_same_up_to_that_fault() {
    let mut tried = 0;
    for seed in 0..40 {
        let found = drawn("/count", seed, &Faults::Drawn(FaultLevel::Harsh));
        let mut fewer = schedule(found.history());
        let Some(left_out) = fewer.faults.pop() else { continue };
        let again = drawn("/count", seed, &Faults::Listed(fewer));
        let until = found.history().records().iter().position(
            |record| matches!(&record.fact, Fact::Fault { fault, phase: Phase::Begin } if *fault == left_out),
        );
        let until = until.unwrap();
        assert_eq!(found.history().records()[..until], again.history().records()[..until], "seed {seed}");
        assert!(!lines(&again).contains(&serde_json::to_string(&left_out).unwrap()), "seed {seed}");
        tried += 1;
    }
    assert!(tried > 30, "{tried} histories had faults");
}

#[test]
fn what_is_withheld_leaves_no_trace_but_its_number_and_the_rest_replays() {
    let without = BTreeSet::from([FaultName::PowerCut, FaultName::Kill, FaultName::Clock, FaultName::Delay]);
    let (mut withheld, mut injected) = (Tally::default(), Tally::default());
    for seed in 0..60 {
        let found = drawn_without(&without, "/count", seed, &Faults::Drawn(FaultLevel::Harsh));
        let listed = Faults::Listed(schedule(found.history()));
        let again = drawn_without(&without, "/count", seed, &listed);
        assert_eq!(lines(&found), lines(&again), "seed {seed}");
        assert_eq!(again.withheld(), Tally::default(), "a schedule of what struck has nothing to withhold");
        assert!(!lines(&found).contains("\"server\""), "seed {seed}: the server is not killed");
        withheld.add(&found.withheld());
        injected.add(&tally(found.history()));
    }
    for kind in FaultName::ALL {
        let (kept, away) = (injected.of(kind), withheld.of(kind));
        assert_eq!(
            (kept > 0, away > 0),
            (!without.contains(&kind), without.contains(&kind)),
            "{}",
            kind.name()
        );
    }
}
