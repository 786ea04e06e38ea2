//! What the shadow workspace needs so that cargo takes it. No test builds it: that takes minutes.

use std::collections::BTreeMap;
use std::path::Path;

use control_plane_faulty::shadow::CRATES;

#[test]
fn whatever_a_copied_crate_depends_on_is_copied_too() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let workspace = read("Cargo.toml");
    let ours: BTreeMap<&str, &str> = workspace
        .lines()
        .filter_map(|line| line.split_once(" = { path = \""))
        .filter_map(|(name, rest)| Some((name, rest.split_once('"')?.0)))
        .collect();
    assert!(ours.len() >= CRATES.len(), "{ours:?}");
    for folder in CRATES {
        for line in read(&format!("{folder}/Cargo.toml")).lines() {
            let name = line.split([' ', '.', '=']).next().unwrap_or_default();
            if let Some(needed) = ours.get(name) {
                assert!(CRATES.contains(needed), "{folder} depends on {needed}, which CRATES does not name");
            }
        }
    }
}
