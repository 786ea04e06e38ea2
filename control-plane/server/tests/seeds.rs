//! Every input that the fuzz targets keep, through the same functions: what was found once is not lost again.

#[path = "../../fuzz/src/targets.rs"]
mod targets;

use std::path::Path;

/// The folder of a target's seeds, and what it does with them.
type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("decode", targets::decode),
    ("patch", targets::patch),
    ("quantities", targets::quantities),
    ("router", targets::router),
    ("selectors", targets::selectors),
];

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
        let mut kept: Vec<_> =
            std::fs::read_dir(seeds.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        kept.sort();
        assert!(!kept.is_empty(), "{name} has no seeds");
        for path in kept {
            let data = std::fs::read(&path).unwrap();
            if std::panic::catch_unwind(|| target(&data)).is_err() {
                broken.push(path);
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
