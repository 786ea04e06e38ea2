//! What second schedulers print: occurrences, as the lines of consoles are.

use rigor_trace::history::{Fact, Micros, SchedulerAct};
use rigor_trace::{jsonl, monitors};
use serde_json::json;

use super::story::{Story, scenario};

/// What the step after the start of the scheduler `toy` comes to. The start is from 1 s to 1.2 s, the step until 9 s.
fn told_over(mut story: Story, step: &str, tell: impl Fn(&mut Story)) -> String {
    let scenario = scenario(&format!("- scheduler: {{name: toy, do: start}}\n{step}"));
    let act = SchedulerAct::Start;
    story.begin(1_000, 0).printed(1_100, "toy", "INFO ready: schedules for toy");
    story.fact(1_200, Fact::Scheduler { name: "toy".into(), act, begun: Micros(1_000_000) });
    story.end(1_200, 0).begin(1_200, 1);
    tell(&mut story);
    story.end(9_000, 1);
    story.told_of(&scenario, 1)
}

fn told(step: &str) -> String {
    told_over(Story::exact(), step, |story| {
        story.printed(2_000, "toy", "INFO default/lamp would be bound to n1 (dry run)");
        story.printed(2_500, "other", "INFO default/lamp bound to n2");
        story.console(2_600, "a", "pod default/lamp bound to n3");
        story.printed(3_000, "toy", "INFO default/desk would be bound to n4 (dry run)");
    })
}

#[test]
fn they_are_expected_counted_and_ruled_out_by_the_schedulers_name() {
    let check = |step: &str, expected: &str| assert_eq!(told(step), expected, "{step}");
    // What came while the scheduler was started counts, as it does with boards.
    check("- expect: {console: {scheduler: toy, matches: 'ready: schedules for'}, within: 5s}", "pass");
    check("- expect: {console: {scheduler: toy, matches: would be bound}, within: 5s}", "pass");
    check(
        "- expect: {console: {scheduler: toy, matches: would be bound}, count: 2, between: [0s, 5s]}",
        "pass",
    );
    check(
        "- expect: {console: {scheduler: toy, matches: would be bound}, count: 1, between: [0s, 5s]}",
        "fail: 2 in the window, where the count is 1 | 2.000 s in the window: output of the scheduler toy: INFO default/lamp would be bound to n1 (dry run) (seq 11) | 3.000 s in the window: output of the scheduler toy: INFO default/desk would be bound to n4 (dry run) (seq 14)",
    );
    // Neither another scheduler's lines nor a board's are its own.
    check("- never: {console: {scheduler: toy, matches: lamp bound to}, for: 5s}", "pass");
    check(
        "- never: {console: {scheduler: toy, matches: desk would be}, for: 5s}",
        "fail: it was so at 3.000 s: output of the scheduler toy: INFO default/desk would be bound to n4 (dry run)",
    );
    check(
        "- expect: {console: {scheduler: toy, matches: lamp bound to}, within: 2s}",
        "fail: it never came; the scheduler's last lines in that time: | 1.100 s INFO ready: schedules for toy | 2.000 s INFO default/lamp would be bound to n1 (dry run) | 3.000 s INFO default/desk would be bound to n4 (dry run)",
    );
    check(
        "- expect: {console: {scheduler: toy, matches: lamp}, from: begin + 3s, within: 2s}",
        "fail: it never came; the scheduler toy printed nothing in that time",
    );
    check("- expect: {console: {board: a, matches: lamp bound to n3}, within: 5s}", "pass");
    check("- never: {console: {board: a, matches: would be bound}, for: 5s}", "pass");
}

#[test]
fn their_groups_are_captured() {
    let captured = |group: &str| {
        format!(
            "- capture: {{console: {{scheduler: toy, matches: '{group} would be bound to (?<node>[a-z0-9]+)'}}, within: 5s}}"
        )
    };
    assert_eq!(told(&captured("lamp")), "pass");
    assert_eq!(
        told(&captured("chair")),
        "fail: no such line came; the scheduler's last lines in that time: | 1.100 s INFO ready: schedules for toy | 2.000 s INFO default/lamp would be bound to n1 (dry run) | 3.000 s INFO default/desk would be bound to n4 (dry run)"
    );
    let steps = "- scheduler: {name: toy, do: start}\n- capture: {console: {scheduler: toy, matches: 'to (?<node>n[0-9])'}}";
    let mut story = Story::exact();
    story.begin(1_000, 0).end(1_200, 0).begin(1_200, 1);
    story.printed(1_300, "toy", "default/lamp would be bound to n1").end(2_000, 1);
    let verdict = story.judged(&scenario(steps)).steps.remove(1).1;
    assert_eq!(json!(verdict.captured), json!({"node": "n1"}));
}

#[test]
fn they_are_as_old_as_lines_of_consoles_can_be() {
    for step in [
        "- expect: {console: {LOOK, matches: bound}, within: 3s}",
        "- never: {console: {LOOK, matches: bound}, for: 3s}",
        "- expect: {console: {LOOK, matches: bound}, between: [1s, 2s]}",
    ] {
        for story in [Story::exact(), Story::real()] {
            let mut outcomes = Vec::new();
            for at in (1_300..7_000).step_by(100) {
                let by = |look: &str, tell: &dyn Fn(&mut Story)| {
                    let told = told_over(story.clone(), &step.replace("LOOK", look), tell);
                    told.split(':').next().unwrap_or_default().to_owned()
                };
                let board = by("board: a", &|story| {
                    story.console(at, "a", "bound");
                });
                let scheduler = by("scheduler: toy", &|story| {
                    story.printed(at, "toy", "bound");
                });
                assert_eq!(scheduler, board, "{step} at {at} ms");
                outcomes.push(scheduler);
            }
            outcomes.dedup();
            assert!(outcomes.len() > 1, "{step}: {outcomes:?}");
        }
    }
}

/// A scheduler may print whatever it likes: what monitors read on consoles is said by boards.
#[test]
fn monitors_leave_them_alone() {
    let lines = [
        "12 PANIC index out of bounds at pods.rs:3",
        "rigor kubelet 0.1.0 board=qemu-virt reset=watchdog",
        "pod default/lamp container main started",
    ];
    let mut story = Story::exact();
    for name in ["a", "b"] {
        for line in lines {
            story.printed(100, name, line);
        }
    }
    story.printed(900_000, "a", "up to the end");
    let seen = monitors::all(&scenario("- wait: 1s"), &story.history);
    assert_eq!(seen, []);
}

#[test]
fn their_records_are_written_and_read() {
    let mut story = Story::exact();
    story.printed(100, "toy", "ready");
    let mut file = Vec::new();
    jsonl::write(&story.history, &mut file).expect("written");
    let text = String::from_utf8(file.clone()).expect("text");
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(last, r#"{"seq":6,"at":100000,"kind":"SchedulerLine","name":"toy","line":"ready"}"#);
    let read = jsonl::read(file.as_slice()).expect("read");
    assert_eq!(read[0].records(), story.history.records());
}
