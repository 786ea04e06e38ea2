//! The program's name, as it says it.

use std::process::Command;

/// Not the package's, which nobody asked for.
#[test]
fn its_version_names_the_program() {
    let output = Command::new(env!("CARGO_BIN_EXE_kubelet-host")).arg("--version").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("kubelet-host {}\n", env!("CARGO_PKG_VERSION")));
}
