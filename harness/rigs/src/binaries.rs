//! Finds the programs and images a rig runs, and says what to do where one is missing.
//!
//! Order: the environment variable, beside the running executable (a cargo target directory), `target/` below the
//! working directory or one above it.

use crate::world::Infra;
use std::env;
use std::path::{Path, PathBuf};

/// A program or image that a rig needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifact {
    /// The binary `control-plane`.
    ControlPlane,
    /// The binary `kubelet-host`.
    KubeletHost,
    /// The binary `toy-scheduler`.
    ToyScheduler,
    /// The firmware image of the QEMU board.
    QemuFirmware,
}

impl Artifact {
    /// Environment variable that names it.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::ControlPlane => "RIGOR_CONTROL_PLANE",
            Self::KubeletHost => "RIGOR_KUBELET_HOST",
            Self::ToyScheduler => "RIGOR_TOY_SCHEDULER",
            Self::QemuFirmware => "RIGOR_FIRMWARE",
        }
    }

    /// Path relative to a profile's directory inside a cargo target directory.
    fn beside(self) -> &'static str {
        match self {
            Self::ControlPlane => "control-plane",
            Self::KubeletHost => "kubelet-host",
            Self::ToyScheduler => "toy-scheduler",
            Self::QemuFirmware => "../firmware/qemu-virt.elf",
        }
    }

    /// Path relative to the repository's root.
    fn below_root(self) -> &'static str {
        match self {
            Self::ControlPlane => "target/debug/control-plane",
            Self::KubeletHost => "target/debug/kubelet-host",
            Self::ToyScheduler => "target/debug/toy-scheduler",
            Self::QemuFirmware => "target/firmware/qemu-virt.elf",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::ControlPlane => "control-plane binary",
            Self::KubeletHost => "kubelet-host binary",
            Self::ToyScheduler => "toy-scheduler binary",
            Self::QemuFirmware => "firmware image",
        }
    }

    fn build(self) -> &'static str {
        match self {
            Self::ControlPlane => "cargo build -p control-plane",
            Self::KubeletHost => "cargo build -p boards-host",
            Self::ToyScheduler => "cargo build -p toy-scheduler",
            Self::QemuFirmware => "ci/firmware",
        }
    }
}

/// Where `artifact` is.
///
/// # Errors
/// It is nowhere, or not where the variable says.
pub fn find(artifact: Artifact) -> Result<PathBuf, Infra> {
    let variable = env::var_os(artifact.variable()).map(PathBuf::from);
    let executable = env::current_exe().ok();
    find_in(artifact, variable.as_deref(), executable.as_deref(), &env::current_dir().unwrap_or_default())
}

fn find_in(
    artifact: Artifact,
    variable: Option<&Path>,
    executable: Option<&Path>,
    working: &Path,
) -> Result<PathBuf, Infra> {
    let (what, name) = (artifact.what(), artifact.variable());
    if let Some(path) = variable {
        return if path.is_file() {
            Ok(path.to_owned())
        } else {
            Err(Infra::lasting(
                format!("{name} says the {what} is {}, but no file is there", path.display()),
                format!("build it ({}) or correct the path", artifact.build()),
            ))
        };
    }
    let beside = executable.and_then(profile_directory).map(|dir| dir.join(artifact.beside()));
    let above = working.ancestors().map(|dir| dir.join(artifact.below_root()));
    if let Some(found) = beside.iter().cloned().chain(above).find(|place| place.is_file()) {
        return Ok(found);
    }
    let places = beside.into_iter().chain([working.join(artifact.below_root())]);
    let looked: Vec<String> = places.map(|place| place.display().to_string()).collect();
    Err(Infra::lasting(
        format!("no {what}; looked at {}", looked.join(" and ")),
        format!("run `{}`, or set {name}", artifact.build()),
    ))
}

/// `target/debug` for `target/debug/rigor` and for `target/debug/deps/suites-…`.
fn profile_directory(executable: &Path) -> Option<&Path> {
    let dir = executable.parent()?;
    if dir.file_name().is_some_and(|name| name == "deps") { dir.parent() } else { Some(dir) }
}

/// The program `name` on the search path.
#[must_use]
pub fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(name)).find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_environment_goes_before_the_build() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for file in ["env", "built/debug/control-plane", "target/debug/control-plane"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        let check = |variable: Option<&str>, executable: Option<&str>| {
            let [variable, executable] = [variable, executable].map(|path| path.map(|path| root.join(path)));
            find_in(Artifact::ControlPlane, variable.as_deref(), executable.as_deref(), root)
                .map(|found| found.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
                .map_err(|error| error.to_string().replace(root.to_str().unwrap(), "ROOT"))
        };
        let found = |path: &str| Ok(path.to_owned());
        assert_eq!(check(Some("env"), Some("built/debug/rigor")), found("env"));
        assert_eq!(check(None, Some("built/debug/rigor")), found("built/debug/control-plane"));
        assert_eq!(check(None, Some("built/debug/deps/suites-1")), found("built/debug/control-plane"));
        assert_eq!(check(None, Some("elsewhere/rigor")), found("target/debug/control-plane"));
        assert_eq!(
            check(Some("no"), None),
            Err("RIGOR_CONTROL_PLANE says the control-plane binary is ROOT/no, but no file is there"
                .to_owned())
        );
        let below = root.join("suites/deep");
        let found_above = find_in(Artifact::ControlPlane, None, None, &below).unwrap();
        assert_eq!(found_above, root.join("target/debug/control-plane"));
        fs::remove_file(root.join("target/debug/control-plane")).unwrap();
        assert_eq!(
            check(None, Some("elsewhere/rigor")),
            Err("no control-plane binary; looked at ROOT/elsewhere/control-plane and ROOT/target/debug/control-plane"
                .to_owned())
        );
    }
}
