//! Draws histories, follows them, and prints the smallest one that breaks a rule.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use super::acts::{Act, BOARDS, Course, KINDS, Kind, Place, Stay, course};
use super::plant::Plant;
use super::printed;
use super::rest::comes_to_rest;
use super::rules::Violation;

/// The most acts of a history.
const MOST: usize = 40;

/// How many histories where `PROPTEST_CASES` does not say.
const HISTORIES: u32 = 400;

/// Follows a course to its end and beyond, until a rule is broken. `done` is what was done until then.
fn follow(course: &Course, done: &mut Vec<Act>, ticks: &Cell<u64>) -> Result<(), Violation> {
    let mut plant = Plant::new();
    let mut outcome = course.0.iter().try_for_each(|act| {
        done.push(act.clone());
        plant.perform(act)
    });
    if outcome.is_ok() {
        outcome = plant.mend().iter().try_for_each(|act| {
            done.push(act.clone());
            plant.perform(act)
        });
    }
    if outcome.is_ok() {
        outcome = comes_to_rest(&mut plant).inspect_err(|_| done.push(Act::Wait { millis: 60_000 }));
    }
    ticks.set(ticks.get() + plant.ticks);
    outcome
}

/// What a course that failed for `reason` comes to, as a scenario.
fn report(course: &Course, reason: &str) -> String {
    let mut done = Vec::new();
    let again = catch_unwind(AssertUnwindSafe(|| follow(course, &mut done, &Cell::new(0))));
    let violation = match again {
        Ok(Err(violation)) => violation,
        // Whatever a controller that ended does not do: the first thing to look for is what it would have done next.
        Ok(Ok(())) | Err(_) => {
            Violation::new("NODE-09", format!("not a rule: {reason}"), printed::well(BOARDS[0]))
        }
    };
    let Violation { requirement, sentence, .. } = &violation;
    format!("{requirement}: {sentence}\n\n{}", printed::scenario(&done, &violation))
}

/// So many histories, or as many as `PROPTEST_CASES` says.
fn config() -> Config {
    let config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return config;
    }
    Config { cases: HISTORIES, max_shrink_iters: 3_000, ..config }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "how many histories a minute are followed is a figure of this test"
)]
fn no_history_loses_a_pod_promises_too_much_acts_too_early_or_never_comes_to_rest() {
    let begun = Instant::now();
    let (histories, acts, ticks) = (Cell::new(0_u32), Cell::new(0), Cell::new(0));
    let outcome = TestRunner::new(config()).run(&course(MOST), |course| {
        histories.set(histories.get() + 1);
        acts.set(acts.get() + course.0.len());
        let outcome = follow(&course, &mut Vec::new(), &ticks);
        outcome.map_err(|violation| TestCaseError::fail(violation.sentence))
    });
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} histories of {} acts and {} half seconds in {seconds:.1} s: {:.0} a minute",
        histories.get(),
        acts.get(),
        ticks.get(),
        f64::from(histories.get()) * 60.0 / seconds
    );
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, course)) => panic!("{}", report(&course, reason.message())),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// Every act there is, and every expectation: the harness reads the same file.
#[test]
fn histories_are_printed_as_scenarios() {
    let acts = [
        Act::Play { node: "n1", memory: 64, gpio: 4 },
        Act::Create { pod: 0, memory: 16, gpio: 1, place: Place::Anywhere, stay: Stay::Default },
        Act::Create { pod: 1, memory: 1, gpio: 0, place: Place::OnBoards, stay: Stay::Seconds(7) },
        Act::Create { pod: 2, memory: 0, gpio: 2, place: Place::OnPlayed, stay: Stay::Forever },
        Act::Deploy { replicas: 2 },
        Act::Deploy { replicas: 3 },
        Act::Spread,
        Act::Work { completions: 2, parallelism: 1, ends_well: true },
        Act::Note { kind: Kind::Deployment, text: 1 },
        Act::Power { board: "a", on: false },
        Act::Link { board: "b", up: false },
        Act::Wait { millis: 6_500 },
        Act::Renewals { node: "n1", on: false },
        Act::Cordon { node: "b", on: true },
        Act::Label { node: "c", on: false },
        Act::Restart { down: 500 },
        Act::Crash { writes: 3 },
        Act::Delete { pod: 1 },
        Act::Cull { kind: Kind::DaemonSet },
        Act::DeleteNode { node: "c" },
        Act::Power { board: "a", on: true },
        Act::Link { board: "b", up: true },
        Act::Cordon { node: "b", on: false },
        Act::Label { node: "c", on: true },
        Act::Renewals { node: "n1", on: true },
        Act::Report { node: "n1" },
        Act::DeleteNode { node: "n1" },
        Act::Drop { kind: Kind::Job },
        Act::Wait { millis: 500 },
    ];
    let bare = super::plant::bare(0, (16, 1), Place::Anywhere, Stay::Default);
    let mut owned = bare.clone();
    owned["metadata"]["labels"] = serde_json::json!({"app": "web"});
    let mut expectations = vec![
        printed::never_unknown("a"),
        printed::never_no_execute("n1"),
        printed::unknown("a"),
        printed::no_execute("a"),
        printed::well("b"),
        printed::exists("p0"),
        printed::runs("p0"),
        printed::never_on(&bare, "a"),
        printed::unmoved(&bare),
        printed::bound(&owned),
        printed::evicted(&bare),
        printed::not_ready(&bare),
        printed::gone(&owned),
        printed::says(Kind::Deployment, "updatedReplicas", 0),
        printed::says(Kind::Deployment, "replicas", 3),
        printed::succeeded(2),
        printed::job("Complete"),
        printed::at_rest("nodes", "n1"),
        printed::at_rest("pods", "p0"),
        printed::at_rest("deployments", "web"),
    ];
    for kind in KINDS {
        expectations.extend([
            printed::so_many(kind, 2),
            printed::at_most(kind, 0),
            printed::all_ready(kind, 1),
        ]);
    }
    let violation =
        Violation::new("NODE-23", "pod \"p0\" is lost: ${nobody} deleted it", expectations.join("\n    - "));
    let printed = printed::scenario(&acts, &violation);
    let kept = include_str!("printed.yaml");
    assert!(printed == kept, "histories/printed.yaml should be:\n{printed}");
}
