//! What is printed at the end: how many of each kind were killed, and who survived.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::fault::Kind;
use crate::ledger::{How, Line, Verdict};

/// The table of kills by kind, then each survivor by name.
#[must_use]
pub fn table(lines: &[Line]) -> String {
    let mut text = format!(
        "{:<10} {:>6} {:>6} {:>9} {:>11} {:>8}\n",
        "", "tried", "killed", "survived", "equivalent", "invalid"
    );
    for kind in Kind::ALL {
        let of_kind: Vec<&Line> = lines.iter().filter(|line| line.kind == kind).collect();
        let count = |verdict| of_kind.iter().filter(|line| line.verdict == verdict).count();
        let _ = writeln!(
            text,
            "{kind:<10} {:>6} {:>6} {:>9} {:>11} {:>8}",
            of_kind.len(),
            count(Verdict::Killed),
            count(Verdict::Survived),
            count(Verdict::Equivalent),
            count(Verdict::Invalid)
        );
    }
    let mut hows: BTreeMap<How, usize> = BTreeMap::new();
    for how in lines.iter().filter_map(|line| line.how) {
        *hows.entry(how).or_default() += 1;
    }
    let told: Vec<String> = hows.iter().map(|(how, count)| format!("{count} {}", told_how(*how))).collect();
    if !told.is_empty() {
        let _ = writeln!(text, "killed by: {}", told.join(", "));
    }
    for line in lines.iter().filter(|line| line.verdict == Verdict::Survived) {
        let _ =
            writeln!(text, "survived: {} - {} [{}]", line.id, line.description, line.requirements.join(", "));
    }
    text
}

fn told_how(how: How) -> &'static str {
    match how {
        How::Red => "a red trial",
        How::Undecided => "an undecided trial",
        How::Panic => "a panic or a broken rig",
        How::Timeout => "the time limit",
        How::Exit => "the end of the harness",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_and_survivors_named() {
        let line = |id: &str, kind, verdict, how| Line {
            id: id.into(),
            kind,
            description: "It is late.".into(),
            requirements: vec!["NODE-03".into()],
            files: Vec::new(),
            mutant: String::new(),
            suites: String::new(),
            verdict,
            how,
            reason: None,
            trials: Vec::new(),
            broke: Vec::new(),
            rig: String::new(),
            seed: 1,
            seconds: 0.0,
        };
        let text = table(&[
            line("late", Kind::HandMade, Verdict::Survived, None),
            line("early", Kind::HandMade, Verdict::Killed, Some(How::Red)),
            line("deaf", Kind::Firmware, Verdict::Killed, Some(How::Timeout)),
            line("x", Kind::Cargo, Verdict::Invalid, None),
        ]);
        let words: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            words,
            [
                "tried killed survived equivalent invalid",
                "hand-made 2 1 1 0 0",
                "firmware 1 1 0 0 0",
                "cargo 1 0 0 0 1",
                "killed by: 1 a red trial, 1 the time limit",
                "survived: late - It is late. [NODE-03]",
            ]
        );
    }
}
