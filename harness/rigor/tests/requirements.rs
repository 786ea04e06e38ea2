//! Which scenario and which test shows each requirement: no row of the catalogue without one, or without a reason.
//!
//! `docs/requirements.md` is what `rigor coverage --format markdown` prints; what stands in it must be so, and it has a row
//! for each requirement. What was added since it was written is no mistake: `UPDATE_REQUIREMENTS=1` writes it anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rigor::coverage::{Coverage, elsewhere, markdown};
use rigor::suite::Suites;

const UPDATE: &str = "UPDATE_REQUIREMENTS";
const PAGE: &str = "docs/requirements.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn coverage() -> Coverage {
    Coverage::read(&root(), &Suites::new(root().join("suites")), None).unwrap()
}

/// The rows of a page by their first cell; a requirement's id has a number at its end.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .map(|line| line.trim_end_matches('|').split(" |").map(str::trim).collect::<Vec<&str>>());
    rows.filter(|cells| cells[0].ends_with(|sign: char| sign.is_ascii_digit())).collect()
}

/// What a cell lists.
fn listed(cell: &str) -> BTreeSet<&str> {
    cell.split(", ").filter(|item| !item.is_empty()).collect()
}

/// What is wrong with a page: a level that is another, a link or a rig that nothing bears out, a requirement without a row.
fn wrong(page: &str, right: &str) -> Vec<String> {
    let (found, must) = (rows(page), rows(right));
    let mut wrong = Vec::new();
    for cells in &found {
        let id = cells[0];
        let Some(real) = must.iter().find(|real| real[0] == id) else {
            wrong.push(format!("{id} is no requirement"));
            continue;
        };
        if cells.len() != real.len() || cells[1..3] != real[1..3] {
            wrong.push(format!("{id} is told in another way, or with other levels"));
            continue;
        }
        for (cell, real) in cells[3..].iter().zip(&real[3..]) {
            let (told, real) = (listed(cell), listed(real));
            wrong.extend(told.difference(&real).map(|item| format!("{id} is not shown by {item}")));
        }
        if cells[3..].iter().all(|cell| cell.is_empty()) {
            wrong.push(format!("{id} has nothing in its row"));
        }
    }
    let has = |id: &str| found.iter().any(|cells| cells[0] == id);
    wrong.extend(must.iter().filter(|real| !has(real[0])).map(|real| format!("{} has no row", real[0])));
    wrong
}

#[test]
fn each_requirement_has_a_scenario_or_a_reason_for_none() {
    let coverage = coverage();
    let mut wrong = Vec::new();
    for row in &coverage.rows {
        match (!row.scenarios.is_empty(), row.elsewhere) {
            (true, None) | (false, Some(_)) => {}
            // What recordings show is shown by no control plane here all the same.
            (true, Some(_)) if row.scenarios.iter().all(|one| one.name.starts_with("upstream/")) => {}
            (false, None) => wrong.push(format!("{}: no scenario names it", row.requirement.id)),
            (true, Some(_)) => {
                wrong.push(format!("{} is shown: it needs no reason any more", row.requirement.id))
            }
        }
    }
    // Of words like UTF-16 only those count that begin as a requirement does.
    let area = |id: &str| id.split('-').next().unwrap_or_default().to_owned();
    let areas: BTreeSet<String> = coverage.rows.iter().map(|row| area(&row.requirement.id)).collect();
    for id in coverage.strangers.iter().filter(|id| areas.contains(&area(id))) {
        wrong.push(format!("{id} is cited, but is no requirement"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(coverage.rows.len() > 140 && elsewhere("UP-01").is_some(), "the tree was read");
}

#[test]
fn the_page_of_requirements_is_true() {
    let path = root().join(PAGE);
    let right = markdown(&coverage(), false);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &right).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let wrong = wrong(&found, &right);
    assert!(
        wrong.is_empty(),
        "{PAGE}: {}\nrun {UPDATE}=1 cargo test -p rigor --test requirements",
        wrong.join("\n")
    );
}

#[test]
fn a_row_that_lies_or_lacks_is_found() {
    let right = markdown(&coverage(), false);
    let check = |page: &str, expected: &[&str]| assert_eq!(wrong(page, &right), expected);
    check(&right, &[]);
    let row = |id: &str| right.lines().find(|line| line.starts_with(&format!("| {id} "))).unwrap().to_owned();
    check(&right.replace(&row("BIND-03"), ""), &["BIND-03 has no row"]);
    let other = |cells: &str| right.replace(&row("BIND-03"), &format!("| BIND-03 | {cells} |"));
    check(&other("core | core |  |  | "), &["BIND-03 has nothing in its row"]);
    check(&other("core | - | sim |  | "), &["BIND-03 is told in another way, or with other levels"]);
    check(
        &other("core | core | sim | [binding/second-binding](../suites/binding/second-binding.yaml) | "),
        &["BIND-03 is not shown by [binding/second-binding](../suites/binding/second-binding.yaml)"],
    );
    check(&other("core | core | moon |  | "), &["BIND-03 is not shown by moon"]);
    check(&right.replace("| BIND-03 |", "| BIND-99 |"), &["BIND-99 is no requirement", "BIND-03 has no row"]);
}

/// The files of limitations that ship name what is there.
#[test]
fn shipped_limitations_are_right() {
    let (suites, mut files) = (Suites::new(root().join("suites")), 0);
    let catalogue = suites.catalogue().unwrap();
    for entry in fs::read_dir(root().join("rigs/limitations")).unwrap() {
        let path = entry.unwrap().path();
        let known = rigor::limits::load(&path, &suites, &catalogue).unwrap_or_else(|error| panic!("{error}"));
        assert!(!known.entries.is_empty(), "{}", path.display());
        files += 1;
    }
    assert!(files > 0, "none was read");
}
