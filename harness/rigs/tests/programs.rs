//! The profiles of the test runner build what their trials start. Otherwise trials of a fresh checkout find no program, and those
//! of one that is not fresh find an old one.

use std::path::Path;

#[test]
fn every_program_of_trials_is_built_before_them() {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.config/programs");
    let setup = std::fs::read_to_string(setup).unwrap();
    for (program, variable) in [
        ("control-plane", "RIGOR_CONTROL_PLANE"),
        ("kubelet-host", "RIGOR_KUBELET_HOST"),
        ("toy-scheduler", "RIGOR_TOY_SCHEDULER"),
    ] {
        for part in [format!("--bin {program}"), format!("echo \"{variable}=")] {
            assert!(setup.contains(&part), ".config/programs has no `{part}`");
        }
    }
}
