//! Boards as emulators: stock QEMU's `virt` machine with a true rv32imc processor, running the firmware image.
//!
//! Power is the emulator's process, a halted processor is QMP `stop`, a cut link is QMP `set_link`. The board
//! reaches the host through QEMU's user network, and there the relay, so that the end of an emulator is silence.

use crate::binaries::on_path;
use crate::board::Machine;
use crate::process::Process;
use crate::qmp::{Qmp, QmpError};
use crate::world::Infra;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Every extension of QEMU's default rv32 that an ESP32-C3 lacks is switched off.
const CPU: &str = "rv32,a=false,f=false,d=false,h=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false";

/// Longest wait for an answer on the QMP socket.
const QMP_LIMIT: Duration = Duration::from_secs(10);

/// Where in the machine's memory the image looks for its configuration.
const CONFIG_WINDOW: u64 = 0x8018_0000;

/// Network backend and device names on the command line.
const NETDEV: &str = "n0";

/// An emulator and what it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emulator {
    /// The program.
    pub program: PathBuf,
    /// Arguments that select machine and processor.
    pub machine: Vec<String>,
    /// The firmware image.
    pub firmware: PathBuf,
}

impl Emulator {
    /// The emulator of a rig file (`named`: program and machine), or the usual one.
    ///
    /// # Errors
    /// The program is not installed.
    pub fn find(named: &[String], firmware: PathBuf) -> Result<Self, Infra> {
        let (name, machine) = match named {
            [name, machine @ ..] => (name.as_str(), machine.to_vec()),
            [] => ("qemu-system-riscv32", usual_machine()),
        };
        let program = on_path(name).ok_or_else(|| {
            Infra::lasting(
                format!("the emulator {name} is not installed"),
                "install it (Debian: apt-get install qemu-system-misc; or ci/bootstrap), or name another in the rig file",
            )
        })?;
        Ok(Self { program, machine, firmware })
    }
}

fn usual_machine() -> Vec<String> {
    ["-M", "virt", "-cpu", CPU].map(str::to_owned).to_vec()
}

/// First line of the emulator's `--version`.
pub(crate) fn version(emulator: &Path) -> Result<String, Infra> {
    let output = Command::new(emulator).arg("--version").output().map_err(|error| {
        Infra::lasting(
            format!("{} could not be run: {error}", emulator.display()),
            "check that it is a program for this machine",
        )
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(line) if output.status.success() => Ok(line.trim().to_owned()),
        Some(_) | None => Err(Infra::lasting(
            format!("{} --version failed with {}", emulator.display(), output.status),
            "reinstall the emulator",
        )),
    }
}

/// SHA-256 of a file, in hex.
pub(crate) fn sha256(image: &Path) -> Result<String, Infra> {
    let bytes = std::fs::read(image).map_err(|error| {
        Infra::lasting(format!("{} cannot be read: {error}", image.display()), "build it with ci/firmware")
    })?;
    let mut hex = String::new();
    for byte in Sha256::digest(&bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}

/// A board that is an emulator.
#[derive(Debug)]
pub(crate) struct QemuMachine {
    pub(crate) emulator: Emulator,
    pub(crate) config: PathBuf,
    pub(crate) socket: PathBuf,
    /// Position among the trial's boards; gives the board its hardware address and its network.
    pub(crate) index: u8,
}

impl QemuMachine {
    /// The host's address as the board sees it.
    pub(crate) fn host_address(index: u8) -> String {
        format!("10.0.{}.2", network(index))
    }

    fn qmp(&self) -> Result<Qmp, Infra> {
        Qmp::connect(&self.socket, QMP_LIMIT).map_err(infra)
    }
}

/// Third byte of the board's network; 2 for the first one is QEMU's own default.
fn network(index: u8) -> u8 {
    index.saturating_add(2)
}

fn infra(error: QmpError) -> Infra {
    Infra::transient(error.to_string())
}

impl Machine for QemuMachine {
    fn command(&self) -> Command {
        // A socket left by an emulator that was killed would be taken for the new one's.
        let _ = std::fs::remove_file(&self.socket);
        let net = network(self.index);
        let mut command = Command::new(&self.emulator.program);
        command
            .args(&self.emulator.machine)
            .args(["-bios", "none", "-display", "none", "-monitor", "none", "-m", "4M"])
            .arg("-kernel")
            .arg(&self.emulator.firmware)
            .args(["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"])
            .arg("-netdev")
            .arg(format!("user,id={NETDEV},net=10.0.{net}.0/24,host={}", Self::host_address(self.index)))
            .arg("-device")
            .arg(format!("virtio-net-device,netdev={NETDEV},mac=52:54:00:72:67:{:02x}", self.index))
            .arg("-qmp")
            .arg(format!("unix:{},server=on,wait=off", self.socket.display()))
            .arg("-device")
            .arg(format!("loader,file={},addr={CONFIG_WINDOW:#x},force-raw=on", self.config.display()));
        command
    }

    fn started(&mut self, _: &Process, link_up: bool) -> Result<(), Infra> {
        if link_up {
            return Ok(());
        }
        self.set_link(false)
    }

    fn halt(&mut self, _: &Process, halted: bool) -> Result<(), Infra> {
        let mut qmp = self.qmp()?;
        if halted { qmp.stop() } else { qmp.resume() }.map_err(infra)
    }

    fn set_link(&mut self, up: bool) -> Result<(), Infra> {
        self.qmp()?.set_link(NETDEV, up).map_err(infra)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(index: u8) -> QemuMachine {
        QemuMachine {
            emulator: Emulator {
                program: "qemu".into(),
                machine: usual_machine(),
                firmware: "fw.elf".into(),
            },
            config: "a.json".into(),
            socket: "a.qmp".into(),
            index,
        }
    }

    #[test]
    fn the_command_line_is_a_true_rv32imc_board() {
        let command = machine(1).command();
        let line: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        insta::assert_snapshot!(line.join("\n"), @r#"
        -M
        virt
        -cpu
        rv32,a=false,f=false,d=false,h=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false
        -bios
        none
        -display
        none
        -monitor
        none
        -m
        4M
        -kernel
        fw.elf
        -chardev
        stdio,id=console,signal=off
        -serial
        chardev:console
        -netdev
        user,id=n0,net=10.0.3.0/24,host=10.0.3.2
        -device
        virtio-net-device,netdev=n0,mac=52:54:00:72:67:01
        -qmp
        unix:a.qmp,server=on,wait=off
        -device
        loader,file=a.json,addr=0x80180000,force-raw=on
        "#);
    }

    #[test]
    fn no_two_boards_share_an_address() {
        let mut seen = std::collections::BTreeSet::new();
        for index in 0..=99 {
            let command = machine(index).command();
            let line: Vec<_> =
                command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
            let networks: Vec<String> = line
                .iter()
                .filter(|argument| argument.contains("mac=") || argument.contains("net=10"))
                .cloned()
                .collect();
            assert_eq!(networks.len(), 2);
            for network in networks {
                assert!(seen.insert(network.clone()), "{network} twice");
            }
        }
    }

    #[test]
    fn a_missing_emulator_comes_with_its_remedy() {
        let error = Emulator::find(&["qemu-system-nowhere".to_owned()], "fw.elf".into()).unwrap_err();
        assert_eq!(error.to_string(), "the emulator qemu-system-nowhere is not installed");
        assert!(error.remedy.is_some_and(|remedy| remedy.contains("qemu-system-misc")));
        assert!(!error.transient);
    }

    #[test]
    fn an_image_is_known_by_its_hash() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let hash = sha256(file.path()).unwrap();
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(sha256(Path::new("/nowhere")).is_err());
    }
}
