//! The tests of the running programs that show requirements, read from their sources: a test says it in its doc comment
//! (`/// BIND-02: …`) or in its name (`ext_03_…`). And the requirements that nothing here can show, with the reason.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where tests of the running programs are, beside the suites.
const BLACK_BOX: [&str; 2] =
    ["control-plane/server/tests/catalogue", "control-plane/toy-scheduler/tests/catalogue"];

const FOREIGN: &str =
    "how Kubernetes' own node lifecycle goes: only a real Kubernetes shows it, or a recording of one";

/// The requirements that no control plane here shows, and why; observed scenarios may.
const SHOWN_ELSEWHERE: [(&str, &str); 7] = [
    (
        "JOB-09",
        "the built-in Job controller counts as kube32 does (JOB-03): only a real Kubernetes shows it, or a recording of one",
    ),
    ("UP-01", FOREIGN),
    ("UP-02", FOREIGN),
    ("UP-03", FOREIGN),
    ("UP-04", FOREIGN),
    ("UP-05", FOREIGN),
    ("UP-06", FOREIGN),
];

/// A test that names a requirement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Proof {
    /// Its function.
    pub test: String,
    /// Its file, from the root of the tree.
    pub path: String,
}

/// Why nothing here can show that requirement, if that is so.
#[must_use]
pub fn elsewhere(id: &str) -> Option<&'static str> {
    SHOWN_ELSEWHERE.iter().find(|(other, _)| *other == id).map(|(_, reason)| *reason)
}

/// The tests of the tree at `root`, by the requirements that they name. Nothing where its sources are not there.
pub(super) fn proofs(root: &Path) -> BTreeMap<String, BTreeSet<Proof>> {
    let mut found: BTreeMap<String, BTreeSet<Proof>> = BTreeMap::new();
    for path in BLACK_BOX.iter().flat_map(|folder| sources(&root.join(folder))) {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        for (test, ids) in tests(&std::fs::read_to_string(&path).unwrap_or_default()) {
            for id in ids {
                found.entry(id).or_default().insert(Proof { test: test.clone(), path: name.clone() });
            }
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let (folders, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    let source = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    files.into_iter().filter(source).chain(folders.iter().flat_map(|folder| sources(folder))).collect()
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

#[cfg(test)]
mod at_work {
    use super::*;

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

    #[test]
    fn a_tree_without_sources_has_no_tests() {
        assert!(proofs(Path::new("/nowhere")).is_empty());
    }
}
