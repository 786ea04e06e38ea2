//! A rig of processes, resolved: every program and image that its trials start has been found.
//!
//! What is missing is told once, before the first trial, with its remedy.

use crate::binaries::{Artifact, find};
use crate::qemu::{Emulator, sha256, version};
use crate::scheduler::SchedulerBench;
use crate::world::Infra;
use rigor_model::report::RigReport;
use rigor_model::{Rig, RigKind};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// What plays the boards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boards {
    /// Processes of the host shell.
    Host {
        /// The program `kubelet-host`.
        kubelet: PathBuf,
    },
    /// Emulators.
    Qemu(Emulator),
}

/// A rig of processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bench {
    /// The program `control-plane`.
    pub control_plane: PathBuf,
    /// Port of the control plane; 0 for any free one.
    pub port: u16,
    /// What plays the boards.
    pub boards: Boards,
    /// What second schedulers are.
    pub scheduler: SchedulerBench,
    /// Flags of the control plane besides the rig's own.
    pub flags: Vec<String>,
    /// Whether the control plane keeps its state in an etcd that is started with it.
    pub etcd: bool,
}

impl Bench {
    /// Finds what a rig of kind `host` or `qemu` needs.
    ///
    /// # Errors
    /// A program or image is missing, or the rig is of no such kind.
    pub fn find(rig: &Rig) -> Result<Self, Infra> {
        let boards = match rig.kind {
            RigKind::Host => Boards::Host { kubelet: find(Artifact::KubeletHost)? },
            RigKind::Qemu => Boards::Qemu(Emulator::find(rig, find(Artifact::QemuFirmware))?),
            RigKind::Sim | RigKind::External => {
                return Err(Infra::lasting(
                    format!("a rig of kind {} has no processes", rig.kind.name()),
                    "name a rig of kind host or qemu",
                ));
            }
        };
        Ok(Self {
            control_plane: find(Artifact::ControlPlane)?,
            port: 0,
            boards,
            scheduler: SchedulerBench::find(rig.equipment.scheduler.as_ref()),
            flags: Vec::new(),
            etcd: false,
        })
    }

    /// Looks whether the control plane has flags of these names, by what it says of itself. What it makes of their values
    /// only its start tells.
    ///
    /// # Errors
    /// It has no flag of that name.
    pub fn check_flags(&self, flags: &[String]) -> Result<(), Infra> {
        if flags.is_empty() {
            return Ok(());
        }
        // A program that does not answer is told when it is started.
        let Ok(help) = Command::new(&self.control_plane).arg("--help").output() else { return Ok(()) };
        let help = String::from_utf8_lossy(&help.stdout);
        let sign = |c: char| !c.is_ascii_alphanumeric() && c != '-';
        let known: BTreeSet<&str> = help.split(sign).filter(|word| word.starts_with("--")).collect();
        let name = |flag: &String| flag.split('=').next().unwrap_or_default().to_owned();
        match flags.iter().map(name).find(|name| !known.is_empty() && !known.contains(name.as_str())) {
            Some(name) => Err(Infra::lasting(
                format!("the control plane does not take the scenario's flags: it has no {name}"),
                "correct spec.controlPlane.flags; control-plane --help lists what there is",
            )),
            None => Ok(()),
        }
    }

    /// What a report says of it.
    ///
    /// # Errors
    /// The emulator does not tell its version, or the image cannot be read.
    pub fn describe(&self, rig: &Rig) -> Result<RigReport, Infra> {
        let (emulator, firmware_sha256) = match &self.boards {
            Boards::Host { .. } => (None, None),
            Boards::Qemu(emulator) => (Some(version(&emulator.program)?), Some(sha256(&emulator.firmware)?)),
        };
        Ok(RigReport {
            name: rig.name.clone(),
            kind: rig.kind,
            machine: rig.machine.clone(),
            emulator,
            firmware_sha256,
            control_plane: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn flags_that_the_program_does_not_name_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("control-plane");
        std::fs::write(
            &program,
            "#!/bin/sh\necho 'Options:'\necho '  -v, --verbose=LEVEL  loud'\necho '      --plain-http'\n",
        )
        .unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut bench = Bench {
            control_plane: program,
            port: 0,
            boards: Boards::Host { kubelet: PathBuf::new() },
            scheduler: SchedulerBench::find(None),
            flags: Vec::new(),
            etcd: false,
        };
        let check =
            |bench: &Bench, flag: &str| bench.check_flags(&[flag.to_owned()]).map_err(|error| error.what);
        assert_eq!(check(&bench, "--verbose=3"), Ok(()));
        assert_eq!(check(&bench, "--plain-http"), Ok(()));
        let said = "the control plane does not take the scenario's flags: it has no --plain";
        assert_eq!(check(&bench, "--plain=1"), Err(said.to_owned()));
        bench.control_plane = folder.path().join("none");
        assert_eq!(check(&bench, "--plain=1"), Ok(()), "what cannot be asked is told when it is started");
    }
}
