//! Boards as processes of the host shell (`kubelet-host`): the firmware's kubelet over the host's own sockets.

use crate::board::Machine;
use crate::process::Process;
use crate::world::Infra;
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::Command;

/// A board that is a process.
#[derive(Debug)]
pub(crate) struct HostMachine {
    pub(crate) binary: PathBuf,
    pub(crate) config: PathBuf,
}

impl Machine for HostMachine {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--config").arg(&self.config);
        command
    }

    fn halt(&mut self, process: &Process, halted: bool) -> Result<(), Infra> {
        let signal = if halted { Signal::STOP } else { Signal::CONT };
        if process.signal(signal) {
            Ok(())
        } else {
            Err(Infra::transient(format!("process {} ended before it could be signalled", process.id())))
        }
    }
}
