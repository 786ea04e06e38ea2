//! What of the suites runs on a cluster that is there already, and why the rest does not: the table of
//! docs/external.md, made from the scenarios themselves. `UPDATE_DOCS=1` writes it anew.

use rigor::filter::Filter;
use rigor::plan::plan;
use rigor::suite::Suites;
use rigor_model::{Capability, Profile, Rig};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- made by the test external: UPDATE_DOCS=1 -->\n";
const END: &str = "<!-- end -->\n";

fn rig() -> Rig {
    let source = "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {name: theirs}\nspec:\n  kind: external\n  boards: {a: kitchen, b: garden}\n  boardTokens: {a: a, b: b}\n  constants: {leaseDuration: 15s, renewInterval: 5s, noExecuteDelay: 15s, tolerationSeconds: 300s, checkPeriod: 500ms, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms}\n";
    let mut rig = Rig::parse("theirs.yaml", source).unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    if let Some(external) = &mut rig.external {
        external.probed.clear();
    }
    rig
}

/// The kind of a reason, without names and numbers.
fn kind(reason: &str) -> String {
    if let Some((_, lacking)) = reason.split_once(" lacks ") {
        return format!("needs {lacking}");
    }
    let kinds = [
        ("outside the trial's namespace", "writes outside the trial's namespace and nodes"),
        ("it wants ", "wants another constant than the cluster's"),
        ("for a Node's name", "writes a board's letter for its Node"),
        ("boards, and the rig", "needs more than two boards"),
    ];
    let found = kinds.into_iter().find(|(words, _)| reason.contains(words));
    found.map_or_else(|| panic!("a reason of no known kind: {reason}"), |(_, kind)| kind.to_owned())
}

fn table() -> String {
    let suites = Suites::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites"));
    let catalogue = suites.catalogue().unwrap();
    let shared = rig();
    let mut own = shared.clone();
    own.capabilities.insert(Capability::ExclusiveCluster);
    let mut areas: BTreeMap<String, (usize, usize, usize)> = BTreeMap::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for file in suites.files().unwrap() {
        let of = |rig: &Rig| plan(&file, &catalogue, rig, &[Profile::Both], &Filter::All);
        for (ours, theirs) in of(&own).into_iter().zip(of(&shared)) {
            let area = theirs.name.split('/').next().unwrap_or_default().to_owned();
            let row = areas.entry(area).or_default();
            row.0 += 1;
            row.1 += usize::from(theirs.skip.is_none());
            row.2 += usize::from(ours.skip.is_none());
            if let Some(reason) = theirs.skip {
                *reasons.entry(kind(&reason)).or_default() += 1;
            }
        }
    }
    let mut text =
        "| area | trials | run on a shared cluster | with `exclusive-cluster` |\n| --- | --- | --- | --- |\n"
            .to_owned();
    for (area, (all, shared, own)) in &areas {
        let _ = writeln!(text, "| {area} | {all} | {shared} | {own} |");
    }
    let sum = areas.values().fold((0, 0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1, sum.2 + row.2));
    let _ = writeln!(text, "| all | {} | {} | {} |\n", sum.0, sum.1, sum.2);
    text.push_str("| why a trial is skipped on a shared cluster | trials |\n| --- | --- |\n");
    for (reason, count) in &reasons {
        let _ = writeln!(text, "| {reason} | {count} |");
    }
    assert!(sum.1 > 50 && sum.2 > sum.1 && sum.0 > sum.2, "{text}");
    text
}

#[test]
fn the_page_says_what_runs_and_what_does_not() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/external.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the begin of the table");
    let (found, tail) = rest.split_once(END).expect("the end of the table");
    let wanted = table();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{wanted}{END}{tail}")).unwrap();
        return;
    }
    // What was added since it was written is no mistake; what is said of trials that are not there is one.
    let (said, is) = (rows(found), rows(&wanted));
    for (key, numbers) in &said {
        let now = is.get(key).unwrap_or_else(|| panic!("`{key}` is no row any more: {UPDATE}"));
        assert!(
            numbers.iter().zip(now).all(|(said, is)| said <= is),
            "`{key}`: {numbers:?}, now {now:?}: {UPDATE}"
        );
    }
    assert!(said.len() > 10, "{found}");
}

const UPDATE: &str = "UPDATE_DOCS=1 cargo test -p rigor --test external";

/// The numbers of each row, by its first cell.
fn rows(table: &str) -> BTreeMap<String, Vec<usize>> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let numbers =
        |cells: &[String]| cells.iter().filter_map(|cell| cell.parse().ok()).collect::<Vec<usize>>();
    let lines = table.lines().map(cells).filter(|cells| cells.len() > 3 && !numbers(cells).is_empty());
    lines.map(|cells| (cells[1].clone(), numbers(&cells))).collect()
}
