//! Which scenario and which test shows each requirement: no row of the catalogue without one, or without a reason.
//!
//! Scenarios say it in their head (`requirements:`), black-box tests in their doc comment (`/// BIND-02: …`) or in their
//! name (`ext_03_…`). `docs/requirements.md` is written from that; what stands in it must be so, and it has a row for each
//! requirement. What was added since it was written is no mistake: `UPDATE_REQUIREMENTS=1` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use rigor::suite::Suites;

/// Where tests of the running programs are, beside the suites.
const BLACK_BOX: &[&str] =
    &["control-plane/server/tests/catalogue", "control-plane/toy-scheduler/tests/catalogue"];
const UPDATE: &str = "UPDATE_REQUIREMENTS";
const PAGE: &str = "docs/requirements.md";
const FOREIGN: &str = "how Kubernetes' own node lifecycle goes: only a real Kubernetes shows it";
/// The requirements that nothing here shows, and why.
const SHOWN_ELSEWHERE: &[(&str, &str)] = &[
    ("JOB-09", "the built-in Job controller counts as kube32 does (JOB-03): only a real Kubernetes shows it"),
    ("UP-01", FOREIGN),
    ("UP-02", FOREIGN),
    ("UP-03", FOREIGN),
    ("UP-04", FOREIGN),
    ("UP-05", FOREIGN),
    ("UP-06", FOREIGN),
];

/// For each id what shows it, as links of Markdown.
type Shown = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Ids such as `NODE-07` in a text.
fn ids(text: &str) -> Vec<String> {
    let id = |word: &&str| {
        word.split_once('-').is_some_and(|(area, number)| {
            area.len() > 1
                && area.bytes().all(|byte| byte.is_ascii_uppercase())
                && number.len() == 2
                && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '-');
    words.filter(id).map(str::to_owned).collect()
}

/// The id that a test's name begins with: `ext_03_…`.
fn id_of_name(name: &str) -> Option<String> {
    let mut parts = name.split('_');
    let id = format!("{}-{}", parts.next()?.to_uppercase(), parts.next()?);
    ids(&id).pop()
}

/// The tests of a source file and the ids that each names.
fn tests(source: &str) -> Vec<(String, BTreeSet<String>)> {
    let (mut found, mut told, mut test) = (Vec::new(), Vec::new(), false);
    for line in source.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            told.extend(ids(doc));
        } else if line.starts_with("#[") {
            test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        } else {
            let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            if let (true, Some((name, _))) = (test, name.and_then(|rest| rest.split_once('('))) {
                told.extend(id_of_name(name));
                found.push((name.to_owned(), told.iter().cloned().collect()));
            }
            told.clear();
            test = false;
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (folders, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    let source = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    files.into_iter().filter(source).chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// What the tree shows: scenarios, and black-box tests.
fn shown(root: &Path, suites: &Suites) -> (Shown, Shown) {
    let (mut scenarios, mut proofs) = (Shown::new(), Shown::new());
    for file in suites.files().unwrap() {
        let link = format!("[{0}](../suites/{0}.yaml)", file.name());
        for id in file.head().unwrap().requirements {
            scenarios.entry(id).or_default().insert(link.clone());
        }
    }
    for folder in BLACK_BOX {
        for path in sources(&root.join(folder)) {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            for (test, told) in tests(&fs::read_to_string(&path).unwrap()) {
                for id in told {
                    proofs.entry(id).or_default().insert(format!("[{test}](../{name})"));
                }
            }
        }
    }
    (scenarios, proofs)
}

fn page(suites: &Suites, scenarios: &Shown, proofs: &Shown) -> String {
    let mut text = format!(
        "# Requirements and what shows them\n\n\
         Each row of [suites/requirements.yaml](../suites/requirements.yaml), with the scenarios and the tests of the running\n\
         programs that judge it. Beside these, the crates' own tests cite requirements in their comments.\n\n\
         A scenario says in its head what it shows, a test in its doc comment or its name. This page is written from that by\n\
         `{UPDATE}=1 cargo test -p rigor --test requirements`; the same test fails where a requirement has neither, or where\n\
         this page names what is not there.\n"
    );
    let none = BTreeSet::new();
    let list = |links: &BTreeSet<String>| links.iter().cloned().collect::<Vec<_>>().join(", ");
    let mut area = String::new();
    let catalogue = suites.catalogue().unwrap();
    let mut rows: Vec<_> = catalogue.iter().collect();
    rows.sort_by_key(|row| row.area.clone());
    for row in rows {
        if row.area != area {
            area.clone_from(&row.area);
            let _ =
                write!(text, "\n## {area}\n\n| | profile | scenarios | tests |\n| --- | --- | --- | --- |\n");
        }
        let scenarios = list(scenarios.get(&row.id).unwrap_or(&none));
        let mut proofs = list(proofs.get(&row.id).unwrap_or(&none));
        if let Some(reason) = reason(&row.id) {
            proofs = format!("none: {reason}");
        }
        let _ = writeln!(text, "| {} | {} | {scenarios} | {proofs} |", row.id, row.profile.name());
    }
    text
}

fn reason(id: &str) -> Option<&'static str> {
    SHOWN_ELSEWHERE.iter().find(|(other, _)| *other == id).map(|(_, reason)| *reason)
}

/// What is wrong with a page: a link that nothing bears out, a requirement without a row.
fn wrong(page: &str, suites: &Suites, scenarios: &Shown, proofs: &Shown) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rows = BTreeSet::new();
    for cells in page.lines().filter_map(|line| line.strip_prefix("| ")).map(|line| line.split(" | ")) {
        let cells: Vec<&str> = cells.map(|cell| cell.trim_end_matches('|').trim()).collect();
        let [id, _, told @ ..] = cells.as_slice() else { continue };
        if ids(id).is_empty() {
            continue;
        }
        rows.insert((*id).to_owned());
        let real: BTreeSet<&String> =
            [scenarios, proofs].iter().filter_map(|of| of.get(*id)).flatten().collect();
        let links = told.iter().flat_map(|cell| cell.split(", ")).filter(|link| link.starts_with('['));
        let links: Vec<String> = links.map(str::to_owned).collect();
        wrong.extend(
            links
                .iter()
                .filter(|link| !real.contains(link))
                .map(|link| format!("{id} is not shown by {link}")),
        );
        if links.is_empty() && reason(id).is_none() {
            wrong.push(format!("{id} has nothing in its row"));
        }
    }
    let catalogue = suites.catalogue().unwrap();
    let known: BTreeSet<String> = catalogue.iter().map(|row| row.id.clone()).collect();
    wrong.extend(known.difference(&rows).map(|id| format!("{id} has no row")));
    wrong.extend(rows.difference(&known).map(|id| format!("{id} is no requirement")));
    wrong
}

#[test]
fn each_requirement_has_a_scenario_or_a_test_or_a_reason_for_none() {
    let root = root();
    let suites = Suites::new(root.join("suites"));
    let (scenarios, proofs) = shown(&root, &suites);
    let catalogue = suites.catalogue().unwrap();
    let mut wrong = Vec::new();
    for row in catalogue.iter() {
        let shown = scenarios.contains_key(&row.id) || proofs.contains_key(&row.id);
        match (shown, reason(&row.id)) {
            (true, None) | (false, Some(_)) => {}
            (false, None) => wrong.push(format!("{}: neither a scenario nor a test names it", row.id)),
            (true, Some(_)) => wrong.push(format!("{} is shown: take it out of SHOWN_ELSEWHERE", row.id)),
        }
    }
    // Of words like UTF-16 only those count that begin as a requirement does.
    let area = |id: &str| id.split('-').next().unwrap_or_default().to_owned();
    let areas: BTreeSet<String> = catalogue.iter().map(|row| area(&row.id)).collect();
    let unknown = |id: &&String| catalogue.get(id).is_none() && areas.contains(&area(id));
    for id in scenarios.keys().chain(proofs.keys()).filter(unknown) {
        wrong.push(format!("{id} is cited, but is no requirement"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_page_of_requirements_is_true() {
    let root = root();
    let suites = Suites::new(root.join("suites"));
    let (scenarios, proofs) = shown(&root, &suites);
    let path = root.join(PAGE);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, page(&suites, &scenarios, &proofs)).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let wrong = wrong(&found, &suites, &scenarios, &proofs);
    assert!(
        wrong.is_empty(),
        "{PAGE}: {}\nrun {UPDATE}=1 cargo test -p rigor --test requirements",
        wrong.join("\n")
    );
}

#[test]
fn a_row_that_lies_or_lacks_is_found() {
    let root = root();
    let suites = Suites::new(root.join("suites"));
    let (scenarios, proofs) = shown(&root, &suites);
    let right = page(&suites, &scenarios, &proofs);
    let check = |page: &str, expected: &[&str]| {
        assert_eq!(wrong(page, &suites, &scenarios, &proofs), expected);
    };
    check(&right, &[]);
    let row = |id: &str| right.lines().find(|line| line.starts_with(&format!("| {id} "))).unwrap().to_owned();
    check(&right.replace(&row("BIND-03"), ""), &["BIND-03 has no row"]);
    check(&right.replace(&row("BIND-03"), "| BIND-03 | both |  |  |"), &["BIND-03 has nothing in its row"]);
    let lie = "| BIND-03 | both | [binding/second-binding](../suites/binding/second-binding.yaml) |  |";
    check(
        &right.replace(&row("BIND-03"), lie),
        &["BIND-03 is not shown by [binding/second-binding](../suites/binding/second-binding.yaml)"],
    );
}

#[test]
fn tests_name_their_requirements_in_comments_or_names() {
    let source = "/// BIND-02: not twice, nor by BIND-10.\n#[test]\nfn twice() {}\n\n/// EXT-01\nfn help() {}\n\n\
                  #[tokio::test(flavor = \"multi_thread\")]\nasync fn ext_03_fits() {}\n\n#[test]\nfn ds_08_too() {}\n";
    let named = |told: &[&str]| told.iter().map(|&id| id.to_owned()).collect::<BTreeSet<_>>();
    let expected = vec![
        ("twice".to_owned(), named(&["BIND-02", "BIND-10"])),
        ("ext_03_fits".to_owned(), named(&["EXT-03"])),
        ("ds_08_too".to_owned(), named(&["DS-08"])),
    ];
    assert_eq!(tests(source), expected);
}
