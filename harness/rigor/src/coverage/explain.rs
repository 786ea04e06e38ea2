//! One requirement in all that is known of it: what it says, what shows it, and how that came out last.

use super::ledger::Standing;
use super::page::{kinds, level_word};
use super::table::{Coverage, Row, is_trial_of};
use rigor_model::Profile;
use rigor_model::catalogue::{Bound, Catalogue};
use rigor_model::mistake::nearest;
use rigor_model::report::Report;
use std::fmt::Write;

/// A report, and where it lies.
#[derive(Debug, Clone)]
pub struct LastRun {
    /// The report's folder.
    pub folder: String,
    /// What stands in it.
    pub report: Report,
}

/// What is known of a requirement.
#[must_use]
pub fn explain(row: &Row, coverage: &Coverage, last: Option<&LastRun>) -> String {
    let mut text = String::new();
    let requirement = &row.requirement;
    let asked = |plane: Profile| match level_word(row, plane) {
        "-" => format!("not asked of {}", plane.name()),
        word => format!("{word} for {}", plane.name()),
    };
    let _ = writeln!(
        text,
        "{} in {}, profile {}: {}, {}\n  {}",
        requirement.id,
        requirement.area,
        requirement.profile.name(),
        asked(Profile::Kube32),
        asked(Profile::Upstream),
        requirement.must
    );
    for bound in &requirement.bounds {
        let _ = writeln!(text, "  bound: {}", bound_words(bound));
    }
    if let Some(note) = &requirement.note {
        let _ = writeln!(text, "  note: {note}");
    }
    if let Some(reason) = row.elsewhere {
        let _ = writeln!(text, "\nnothing here shows it: {reason}");
    }
    scenarios(&mut text, row, last);
    if !row.tests.is_empty() {
        text.push_str("\ntests\n");
        for proof in &row.tests {
            let _ = writeln!(text, "  {} ({})", proof.test, proof.path);
        }
    }
    mutants(&mut text, row, coverage);
    match last {
        Some(last) => {
            let when = last.report.date.as_ref().map(|date| format!(" of {date}")).unwrap_or_default();
            let _ = writeln!(text, "\nlast results: {}{when} on rig {}", last.folder, last.report.rig.name);
        }
        None => text.push_str(
            "\nlast results: no report was found; rigor run leaves one, or name one with --report\n",
        ),
    }
    text
}

fn bound_words(bound: &Bound) -> String {
    let mut words = Vec::new();
    if let Some(profile) = bound.profile {
        words.push(format!("for {}:", profile.name()));
    }
    if let Some(edge) = &bound.not_before {
        words.push(format!("not before {edge}"));
    }
    if let Some(edge) = &bound.not_after {
        words.push(format!("{}not after {edge}", if bound.not_before.is_some() { "and " } else { "" }));
    }
    if let Some(from) = &bound.from {
        words.push(format!("from {from}"));
    }
    words.join(" ")
}

fn scenarios(text: &mut String, row: &Row, last: Option<&LastRun>) {
    if row.scenarios.is_empty() {
        let _ = writeln!(
            text,
            "\nno scenario cites it; rigor new NAME --requirements {} begins one",
            row.requirement.id
        );
        return;
    }
    text.push_str("\nscenarios\n");
    for one in &row.scenarios {
        let _ = writeln!(text, "  {} ({})", one.path, kinds(&one.rigs));
        if let Some(says) = &one.says {
            let _ = writeln!(text, "    {says}");
        }
        let Some(last) = last else { continue };
        let mut ran = false;
        for trial in last.report.scenarios.iter().filter(|trial| is_trial_of(&trial.name, &one.name)) {
            ran = true;
            let case = trial.name.strip_prefix(&one.name).unwrap_or_default().trim_start_matches('/');
            let case = if case.is_empty() { String::new() } else { format!("{case}: ") };
            let why = trial.reason.as_deref().and_then(|reason| reason.lines().next());
            let why = why.map(|why| format!(", {why}")).unwrap_or_default();
            let _ = writeln!(text, "    last: {case}{}{why}", trial.outcome.name());
        }
        if !ran {
            text.push_str("    last: not in the report\n");
        }
    }
}

fn mutants(text: &mut String, row: &Row, coverage: &Coverage) {
    if coverage.ledger.is_none() || row.scenarios.is_empty() {
        return;
    }
    let concerned: Vec<_> =
        coverage.mutants().filter(|mutant| mutant.trials.iter().any(|trial| row.has_trial(trial))).collect();
    if concerned.is_empty() {
        text.push_str("\nno mutant turned a scenario of it red\n");
        return;
    }
    text.push_str("\nmutants that turned a scenario of it red\n");
    for mutant in concerned {
        let stale = match &mutant.standing {
            Standing::Valid => String::new(),
            Standing::Stale(because) => format!("; no longer counts: {because}"),
        };
        let _ =
            writeln!(text, "  {}: {} ({}{stale})", mutant.id, mutant.description, mutant.files.join(", "));
    }
}

/// The ids that somebody may mean who wrote one that is not in the catalogue, the nearest first; five at most.
#[must_use]
pub fn near_ids(wanted: &str, catalogue: &Catalogue) -> Vec<String> {
    let mut left: Vec<&str> = catalogue.iter().map(|row| row.id.as_str()).collect();
    let mut near = Vec::new();
    while near.len() < 5 {
        let Some(next) = nearest(wanted, left.iter().copied()) else { break };
        near.push(next.to_owned());
        left.retain(|id| *id != next);
    }
    near
}
