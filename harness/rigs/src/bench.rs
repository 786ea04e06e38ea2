//! A rig of processes, resolved: every program and image that its trials start has been found.
//!
//! What is missing is told once, before the first trial, with its remedy.

use crate::binaries::{Artifact, find};
use crate::qemu::{Emulator, sha256, version};
use crate::scheduler::SchedulerBench;
use crate::world::Infra;
use rigor_model::report::RigReport;
use rigor_model::{Rig, RigKind};
use std::path::PathBuf;

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
        })
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
