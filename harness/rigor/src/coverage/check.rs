//! What is missing in the table: requirements that nothing shows, and requirements whose scenarios no mutant turns red.

use super::table::{Coverage, Row};

/// A requirement with something missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Its id.
    pub id: String,
    /// What is missing, and what to do.
    pub said: String,
}

/// The gaps of the table; with `mutants` also those that only mutants show. A requirement that nothing here can show, with
/// a reason, has none.
#[must_use]
pub fn gaps(coverage: &Coverage, mutants: bool) -> Vec<Gap> {
    let rows = coverage.rows.iter().filter(|row| row.elsewhere.is_none());
    let said = rows.filter_map(|row| Some((row, missing(row, coverage, mutants)?)));
    said.map(|(row, said)| Gap { id: row.requirement.id.clone(), said }).collect()
}

fn missing(row: &Row, coverage: &Coverage, mutants: bool) -> Option<String> {
    let id = &row.requirement.id;
    if row.scenarios.is_empty() {
        let tests = match row.tests.len() {
            0 => "nothing shows it".to_owned(),
            1 => "only a test shows it".to_owned(),
            many => format!("only {many} tests show it"),
        };
        return Some(format!("no scenario cites it, {tests}; rigor new NAME --requirements {id} begins one"));
    }
    if !mutants || !row.kills().is_empty() {
        return None;
    }
    let concerned =
        coverage.mutants().filter(|mutant| mutant.trials.iter().any(|trial| row.has_trial(trial)));
    let stale = concerned.count();
    let names: Vec<&str> = row.scenarios.iter().map(|one| one.name.as_str()).collect();
    Some(match stale {
        0 => format!(
            "no mutant turns {} red; add one that breaks what it asks, and run ci/mutants again",
            names.join(", ")
        ),
        stale => format!(
            "no mutant that still counts turns {} red ({stale} did before something changed); run ci/mutants again",
            names.join(", ")
        ),
    })
}
