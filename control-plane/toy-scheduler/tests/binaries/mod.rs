//! Where the binaries of other crates are: beside the tests in cargo's target directory, or where a variable says.

use std::path::PathBuf;

/// The control plane's binary.
pub fn control_plane() -> PathBuf {
    if let Some(path) = std::env::var_os("RIGOR_CONTROL_PLANE") {
        return path.into();
    }
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(|deps| deps.parent()).unwrap().join("control-plane");
    assert!(
        path.is_file(),
        "{} is missing: run `cargo build -p control-plane`, or set RIGOR_CONTROL_PLANE",
        path.display()
    );
    path
}
