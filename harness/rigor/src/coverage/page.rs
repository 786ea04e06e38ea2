//! The table as text for a terminal, as a page of Markdown, and as JSON for programs.

use super::ledger::{Standing, VerdictOfMutant};
use super::table::{Coverage, Row, level};
use crate::terminal::many;
use rigor_model::catalogue::Feature;
use rigor_model::{Profile, RigKind};
use serde_json::{Value, json};
use std::fmt::Write;

/// The profiles of control planes, of which each asks for a requirement in its own way.
const PLANES: [Profile; 2] = [Profile::Kube32, Profile::Upstream];

/// How much a profile asks for it, as a word.
pub(super) fn level_word(row: &Row, profile: Profile) -> &'static str {
    match level(&row.requirement, profile) {
        Some(Feature::Core) => "core",
        Some(Feature::Extended) => "extended",
        None => "-",
    }
}

pub(super) fn kinds(rigs: &[RigKind]) -> String {
    if rigs.is_empty() {
        return "no rig: rigor judge".to_owned();
    }
    rigs.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

/// The table for a terminal.
#[must_use]
pub fn text(coverage: &Coverage) -> String {
    let mut text = String::new();
    for row in &coverage.rows {
        let levels = PLANES.map(|plane| format!("{} {}", plane.name(), level_word(row, plane)));
        let _ = writeln!(text, "{:<9} {} ({})", row.requirement.id, row.requirement.area, levels.join(", "));
        for one in &row.scenarios {
            let kills = match (&coverage.ledger, one.kills.len()) {
                (None, _) => String::new(),
                (Some(_), 0) => "; turned red by no mutant".to_owned(),
                (Some(_), _) => format!("; turned red by {}", one.kills.join(", ")),
            };
            let _ = writeln!(text, "            {} ({}){kills}", one.name, kinds(&one.rigs));
        }
        for proof in &row.tests {
            let _ = writeln!(text, "            test {} ({})", proof.test, proof.path);
        }
        match row.elsewhere {
            Some(reason) => {
                let _ = writeln!(text, "            nothing here: {reason}");
            }
            None if row.scenarios.is_empty() && row.tests.is_empty() => {
                text.push_str("            nothing\n")
            }
            None => {}
        }
    }
    text.push_str(&summary(coverage));
    text
}

/// What the table comes to.
fn summary(coverage: &Coverage) -> String {
    let count = |has: &dyn Fn(&Row) -> bool| coverage.rows.iter().filter(|row| has(row)).count();
    let mut text = format!(
        "{}: {} with scenarios, {} with tests only, {} with a reason for neither, {} with nothing\n",
        many(coverage.rows.len(), "requirement"),
        count(&|row| !row.scenarios.is_empty()),
        count(&|row| row.scenarios.is_empty() && !row.tests.is_empty()),
        count(&|row| row.elsewhere.is_some() && row.scenarios.is_empty() && row.tests.is_empty()),
        count(&|row| row.elsewhere.is_none() && row.scenarios.is_empty() && row.tests.is_empty()),
    );
    if coverage.ledger.is_none() {
        text.push_str("no ledger of mutants\n");
        return text;
    }
    let mutants = |verdict| {
        let valid = coverage.mutants().filter(|mutant| mutant.standing == Standing::Valid);
        valid.filter(|mutant| mutant.verdict == verdict).count()
    };
    let stale = coverage.mutants().filter(|mutant| mutant.standing != Standing::Valid).count();
    let _ = writeln!(
        text,
        "{}: {} killed, {} survived, {} equivalent, {} invalid, {stale} no longer count; {} have one that turns a scenario red",
        many(coverage.mutants().count(), "mutant"),
        mutants(VerdictOfMutant::Killed),
        mutants(VerdictOfMutant::Survived),
        mutants(VerdictOfMutant::Equivalent),
        mutants(VerdictOfMutant::Invalid),
        many(count(&|row| !row.kills().is_empty()), "requirement"),
    );
    text
}

/// The table as `docs/requirements.md`; with `mutants`, a column of those that turn a row's scenarios red.
#[must_use]
pub fn markdown(coverage: &Coverage, mutants: bool) -> String {
    let mut text = "# Requirements and what shows them\n\n\
         Each row of [suites/requirements.yaml](../suites/requirements.yaml): how much the two profiles of control planes ask for it, the scenarios\n\
         that judge it with the sorts of rigs that can run them, and the tests of the running programs. Beside these, the crates' own tests cite\n\
         requirements in their comments.\n\n\
         A scenario says in its head what it shows, a test in its doc comment or its name. This page is what `rigor coverage --format markdown`\n\
         prints; `UPDATE_REQUIREMENTS=1 cargo test -p rigor --test requirements` writes it, and the same test fails where a requirement has neither,\n\
         or where this page says what is not so. `rigor explain ID` tells all of one row.\n"
        .to_owned();
    let mut area = "";
    for row in &coverage.rows {
        if row.requirement.area != area {
            area = &row.requirement.area;
            let (head, line) = if mutants { (" mutants |", " --- |") } else { ("", "") };
            let _ = write!(
                text,
                "\n## {area}\n\n| | kube32 | upstream | rigs | scenarios | tests |{head}\n| --- | --- | --- | --- | --- | --- |{line}\n"
            );
        }
        let _ = writeln!(text, "{}", cells(row, mutants));
    }
    text
}

fn cells(row: &Row, mutants: bool) -> String {
    let link = |text: &str, path: &str| format!("[{text}](../{path})");
    let scenarios: Vec<String> =
        row.scenarios.iter().map(|one| link(&one.name, &format!("suites/{}.yaml", one.name))).collect();
    let tests: Vec<String> = row.tests.iter().map(|proof| link(&proof.test, &proof.path)).collect();
    let tests = row.elsewhere.map_or_else(|| tests.join(", "), |reason| format!("none: {reason}"));
    let rigs = if row.scenarios.is_empty() { String::new() } else { kinds(&row.rigs()) };
    let [kube32, upstream] = PLANES.map(|plane| level_word(row, plane));
    let kills = if mutants { format!(" {} |", row.kills().join(", ")) } else { String::new() };
    format!(
        "| {} | {kube32} | {upstream} | {rigs} | {} | {tests} |{kills}",
        row.requirement.id,
        scenarios.join(", ")
    )
}

/// The table for programs: `requirements`, and `mutants` where there is a ledger.
#[must_use]
pub fn object(coverage: &Coverage) -> Value {
    let rows: Vec<Value> = coverage.rows.iter().map(row_object).collect();
    let mut object = json!({"requirements": rows});
    if let Some(ledger) = &coverage.ledger {
        object["mutants"] = json!(ledger.mutants);
    }
    object
}

fn row_object(row: &Row) -> Value {
    let scenarios: Vec<Value> = row
        .scenarios
        .iter()
        .map(|one| {
            let rigs: Vec<&str> = one.rigs.iter().map(|kind| kind.name()).collect();
            json!({"name": one.name, "path": one.path, "says": one.says, "rigs": rigs, "mutants": one.kills})
        })
        .collect();
    let levels: serde_json::Map<String, Value> = PLANES
        .into_iter()
        .filter_map(|plane| {
            let level = level_word(row, plane);
            (level != "-").then(|| (plane.name().to_owned(), json!(level)))
        })
        .collect();
    json!({
        "id": row.requirement.id,
        "area": row.requirement.area,
        "profile": row.requirement.profile.name(),
        "levels": levels,
        "must": row.requirement.must,
        "scenarios": scenarios,
        "tests": row.tests,
        "elsewhere": row.elsewhere,
    })
}
