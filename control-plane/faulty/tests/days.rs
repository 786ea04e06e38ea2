//! A day has one ledger, whatever seeds its runs were given.

use control_plane_faulty::fault::Kind;
use control_plane_faulty::ledger::{self, Ledger};
use control_plane_faulty::mutant::Mutant;

#[test]
fn a_run_with_another_seed_keeps_what_the_day_has() {
    let root = tempfile::tempdir().unwrap();
    let line = |id: &str, suites: &str| {
        let mutant = Mutant {
            id: id.into(),
            kind: Kind::Cargo,
            description: String::new(),
            requirements: Vec::new(),
            files: Vec::new(),
            digest: String::new(),
            equivalent: None,
            overlapping: false,
        };
        mutant.line(suites, 1)
    };
    Ledger::new("2026-11-29", 1, "s").take(root.path(), line("a", "s")).unwrap();
    let mut again = Ledger::of_day(&ledger::all(root.path()).unwrap(), "2026-11-29", 2, "t");
    again.take(root.path(), line("b", "t")).unwrap();
    let read = ledger::all(root.path()).unwrap();
    assert_eq!(ledger::newest(&read).keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((read.len(), read[0].seed, read[0].suites.as_str()), (1, 2, "t"));
    assert!(Ledger::of_day(&read, "2026-11-30", 2, "t").lines.is_empty(), "another day");
}
