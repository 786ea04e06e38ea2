//! Every input that the fuzz targets keep, through the same functions: what was found once is not lost again.

#[path = "../../fuzz/src/targets.rs"]
mod targets;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folder of a target's seeds, and what it does with them.
type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("decode", targets::decode),
    ("patch", targets::patch),
    ("quantities", targets::quantities),
    ("router", |input| drop(targets::router(input))),
    ("selectors", targets::selectors),
];

/// The inputs that are kept for a target.
fn kept(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let mut kept: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    kept.sort();
    assert!(!kept.is_empty(), "{target} has no seeds");
    kept
}

#[test]
fn every_kept_input_is_handled() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    let mut folders: Vec<_> =
        std::fs::read_dir(&seeds).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    folders.sort();
    let known: Vec<_> = TARGETS.iter().map(|(name, _)| std::ffi::OsString::from(name)).collect();
    assert_eq!(folders, known, "each target has its folder of seeds");
    let mut broken = Vec::new();
    for (name, target) in TARGETS {
        for path in kept(name) {
            let data = std::fs::read(&path).unwrap();
            if std::panic::catch_unwind(|| target(&data)).is_err() {
                broken.push(path);
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Fuzzing starts from these: where they only got refusals, it would stay at the door.
#[test]
fn the_routers_inputs_reach_every_verb_and_the_usual_refusals() {
    let mut told = BTreeSet::new();
    for path in kept("router") {
        let answers = targets::router(&std::fs::read(path).unwrap());
        told.extend(answers.into_iter().map(|(method, code)| format!("{method} {code}")));
    }
    let wanted = [
        "DELETE 200",
        "DELETE 404",
        "DELETE 409",
        "GET 200",
        "GET 400",
        "GET 401",
        "GET 403",
        "GET 404",
        "GET 406",
        "GET 504",
        "PATCH 200",
        "PATCH 415",
        "PATCH 422",
        "POST 201",
        "POST 403",
        "POST 404",
        "POST 409",
        "POST 422",
        "PUT 200",
        "PUT 405",
        "PUT 409",
        "PUT 422",
    ];
    let missing: Vec<_> = wanted.iter().filter(|one| !told.contains(**one)).collect();
    assert!(missing.is_empty(), "{missing:?} of {told:?}");
}

/// A kept input does alone what it did after all others: each has a control plane of its own.
#[test]
fn what_an_input_does_depends_on_nothing_but_itself() {
    let inputs = kept("router");
    let all = |inputs: &mut dyn Iterator<Item = &PathBuf>| -> Vec<(PathBuf, Vec<targets::Told>)> {
        inputs.map(|path| (path.clone(), targets::router(&std::fs::read(path).unwrap()))).collect()
    };
    let (mut there, mut back) = (all(&mut inputs.iter()), all(&mut inputs.iter().rev()));
    there.sort();
    back.sort();
    assert_eq!(there, back);
}
