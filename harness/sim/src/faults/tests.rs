//! What is drawn: how bad, how often, when, and that one draw shifts no other.

use std::collections::BTreeSet;

use super::{BAD_CRYSTAL, CRYSTAL, Message, STRETCH, Sites, scaled};
use crate::link::{Carried, Toward};
use rigor_model::Constants;
use rigor_model::faults::{Fault, FaultKind, FaultLevel, FaultName, Faults, Tally};

const EVERY: u64 = 50_000;

/// What strikes in `count` messages, events of the board and steps of the server, one of each every 50 ms.
fn run(level: FaultLevel, seed: u64, count: u64, stuck: impl Fn(u64) -> bool) -> Vec<(u64, Fault)> {
    run_without(&BTreeSet::new(), level, seed, count, stuck).0
}

/// The same where some faults do not strike, and what did not strike therefore.
fn run_without(
    without: &BTreeSet<FaultName>,
    level: FaultLevel,
    seed: u64,
    count: u64,
    stuck: impl Fn(u64) -> bool,
) -> (Vec<(u64, Fault)>, Tally) {
    let sites = Sites::new(&Faults::Drawn(level), &Constants::default(), &["a"], seed);
    let mut sites = sites.withholding(without);
    let mut struck: Vec<(u64, Fault)> = sites.clock(0).into_iter().map(|fault| (0, fault)).collect();
    let carried = Carried::Bytes(b"GET / HTTP/1.1\r\n\r\n".to_vec());
    for number in 0..count {
        let now = number * EVERY;
        let message = Message { toward: Toward::Server, carried: &carried, stuck: stuck(number) };
        let now_struck = [sites.message(0, now, message), sites.power(0, now, true), sites.kill(now, true)];
        struck.extend(now_struck.into_iter().flatten().map(|fault| (now, fault)));
    }
    (struck, sites.withheld().clone())
}

#[test]
fn mild_faults_are_what_the_slack_covers() {
    let half_slack = 250_000;
    let mut longest = 0;
    for seed in 0..100 {
        let mut late: Vec<(u64, u64)> = Vec::new();
        for (at, fault) in run(FaultLevel::Mild, seed, 2_000, |_| false) {
            match fault.kind {
                FaultKind::Delay { micros } | FaultKind::Reorder { at_most: micros } => {
                    late.push((at, micros))
                }
                FaultKind::Duplicate { after, second } => assert!(after < 200 && !second, "seed {seed}"),
                FaultKind::Clock { offset, ppm } => {
                    assert!(offset.abs() <= 10_000 && ppm.abs() <= CRYSTAL, "seed {seed}: {fault:?}");
                }
                FaultKind::Lose {}
                | FaultKind::Cut { .. }
                | FaultKind::PowerCut { .. }
                | FaultKind::Kill { .. } => panic!("seed {seed}: {fault:?}"),
            }
        }
        for (index, (at, _)) in late.iter().enumerate() {
            let stretch = late[index..].iter().take_while(|(other, _)| other - at <= STRETCH);
            let sum: u64 = stretch.map(|(_, micros)| micros).sum();
            assert!(sum < half_slack, "seed {seed}: {sum} us from {at} on");
            longest = longest.max(sum);
        }
    }
    assert!(longest > half_slack * 9 / 10, "no more than {longest} us of {half_slack} are used");
}

#[test]
fn harsh_faults_are_of_every_kind_early_and_late_and_stop() {
    let mut seen = std::collections::BTreeMap::new();
    let (mut early, mut late) = (0, 0);
    for seed in 0..100 {
        let struck = run(FaultLevel::Harsh, seed, 12_000, |_| false);
        for (_, fault) in &struck {
            *seen.entry(fault.kind.name()).or_insert(0) += 1;
            if let FaultKind::Clock { ppm, .. } = fault.kind {
                assert!(ppm.abs() <= BAD_CRYSTAL);
            }
        }
        let proper = || struck.iter().filter(|(_, fault)| fault.kind.name() != "clock").map(|(at, _)| *at);
        early += usize::from(proper().next().is_some_and(|at| at < 5_000_000));
        late += usize::from(proper().next_back().is_some_and(|at| at > 60_000_000));
    }
    let all = ["clock", "cut", "delay", "duplicate", "kill", "lose", "power-cut", "reorder"];
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), all);
    assert!(early > 25 && late > 25, "{early} trials had early faults, {late} late ones");
    // Twenty minutes and more after the last instant at which faults may begin, none does.
    let ended = (0..10).all(|seed| {
        run(FaultLevel::Harsh, seed, 40_000, |_| false).iter().all(|(at, _)| *at <= 1_200_000_000)
    });
    assert!(ended);
}

#[test]
fn a_fault_that_does_not_fit_shifts_no_other() {
    let unlimited = |stuck: bool| -> Vec<(u64, Fault)> {
        let all =
            (0..50).flat_map(|seed| run(FaultLevel::Harsh, seed, 1_000, |number| stuck && number < 500));
        let is_unlimited =
            |kind: &FaultKind| matches!(kind, FaultKind::Delay { .. } | FaultKind::Reorder { .. });
        all.filter(|(at, fault)| *at >= 500 * EVERY && is_unlimited(&fault.kind)).collect()
    };
    assert!(unlimited(false).len() > 100);
    assert_eq!(unlimited(false), unlimited(true));
}

#[test]
fn lengths_spread_over_their_scales() {
    let lengths: Vec<u64> =
        (0..8_000).map(|draw: u64| scaled(draw.wrapping_mul(0x9e37_79b9_7f4a_7c15), 10, 80)).collect();
    assert!(lengths.iter().all(|length| (10..=80).contains(length)));
    for low in [10, 20, 40] {
        let share = lengths.iter().filter(|length| (low..low * 2).contains(*length)).count();
        assert!((1_600..2_400).contains(&share), "{share} from {low} on");
    }
    assert_eq!((scaled(7, 5, 5), scaled(7, 0, 0)), (5, 0));
}

#[test]
fn a_fault_that_is_withheld_is_counted_and_shifts_no_other() {
    let mut told = Tally::default();
    for seed in 0..50 {
        let all = run(FaultLevel::Harsh, seed, 4_000, |_| false);
        for kind in FaultName::ALL {
            let without = BTreeSet::from([kind]);
            let (rest, withheld) = run_without(&without, FaultLevel::Harsh, seed, 4_000, |_| false);
            let (gone, left): (Vec<_>, Vec<_>) =
                all.iter().cloned().partition(|(_, fault)| fault.kind.named() == kind);
            assert_eq!(rest, left, "seed {seed} without {}", kind.name());
            assert_eq!((withheld.of(kind), withheld.total()), (gone.len() as u64, gone.len() as u64));
            told.add(&withheld);
        }
    }
    assert!(FaultName::ALL.into_iter().all(|kind| told.of(kind) > 0), "{told}");
}
