//! Boards as emulators: stock QEMU's `virt` machine with a true rv32imc processor, running the firmware image.
//!
//! Power is the emulator's process, a halted processor is QMP `stop`. The board's network card is joined to the
//! harness's own network by a unix socket; links are cut there, and the end of an emulator is silence there.

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
        Some(line) if output.status.success() && is_too_old(line) => Err(Infra::lasting(
            format!(
                "{} cannot be put on the boards' network (-netdev stream): {}",
                emulator.display(),
                line.trim()
            ),
            "install QEMU 7.2 or newer",
        )),
        Some(line) if output.status.success() => Ok(line.trim().to_owned()),
        Some(_) | None => Err(Infra::lasting(
            format!("{} --version failed with {}", emulator.display(), output.status),
            "reinstall the emulator",
        )),
    }
}

/// Whether a QEMU that tells this version lacks `-netdev stream`, which came with 7.2; one that tells none may have it.
fn is_too_old(version: &str) -> bool {
    let Some((_, numbers)) = version.split_once(" version ") else { return false };
    let mut numbers = numbers.split(|other: char| !other.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (7_u32, 2_u32),
        _ => false,
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
    /// Where QMP is spoken.
    pub(crate) socket: PathBuf,
    /// Where the network listens for this board.
    pub(crate) network: PathBuf,
    /// Position among the trial's boards; gives the board its hardware address.
    pub(crate) index: usize,
}

impl QemuMachine {
    fn qmp(&self) -> Result<Qmp, Infra> {
        Qmp::connect(&self.socket, QMP_LIMIT).map_err(infra)
    }
}

/// Arguments that put a network card on the network backend: a device of its own, or the one that is part of an
/// Espressif chip.
fn card(machine: &[String], mac: &str) -> [String; 2] {
    let selected = machine.iter().map(|word| word.split_once('=').map_or(&**word, |(_, name)| name));
    if selected.into_iter().any(|name| name.starts_with("esp32")) {
        ["-net".to_owned(), format!("nic,netdev={NETDEV},model=open_eth,macaddr={mac}")]
    } else {
        ["-device".to_owned(), format!("virtio-net-device,netdev={NETDEV},mac={mac}")]
    }
}

fn infra(error: QmpError) -> Infra {
    Infra::transient(error.to_string())
}

impl Machine for QemuMachine {
    fn command(&self) -> Command {
        // A socket left by an emulator that was killed would be taken for the new one's.
        let _ = std::fs::remove_file(&self.socket);
        let mac = rigor_switch::address::board_mac(self.index).to_string().replace('-', ":");
        let mut command = Command::new(&self.emulator.program);
        command
            .args(&self.emulator.machine)
            .args(["-bios", "none", "-display", "none", "-monitor", "none", "-m", "4M"])
            .arg("-kernel")
            .arg(&self.emulator.firmware)
            .args(["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"])
            .arg("-netdev")
            .arg(format!(
                "stream,id={NETDEV},server=off,addr.type=unix,addr.path={}",
                escaped(&self.network.display().to_string())
            ))
            .args(card(&self.emulator.machine, &mac))
            .arg("-qmp")
            .arg(format!("unix:{},server=on,wait=off", self.socket.display()))
            .arg("-device")
            .arg(format!("loader,file={},addr={CONFIG_WINDOW:#x},force-raw=on", self.config.display()));
        command
    }

    fn halt(&mut self, _: &Process, halted: bool) -> Result<(), Infra> {
        let mut qmp = self.qmp()?;
        if halted { qmp.stop() } else { qmp.resume() }.map_err(infra)
    }
}

/// A value as QEMU's option lists take it: commas doubled.
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(index: usize) -> QemuMachine {
        QemuMachine {
            emulator: Emulator {
                program: "qemu".into(),
                machine: usual_machine(),
                firmware: "fw.elf".into(),
            },
            config: "a.json".into(),
            socket: "a.qmp".into(),
            network: "a,b.net".into(),
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
        stream,id=n0,server=off,addr.type=unix,addr.path=a,,b.net
        -device
        virtio-net-device,netdev=n0,mac=52:54:00:72:67:01
        -qmp
        unix:a.qmp,server=on,wait=off
        -device
        loader,file=a.json,addr=0x80180000,force-raw=on
        "#);
    }

    #[test]
    fn an_espressif_chip_keeps_the_card_that_is_part_of_it() {
        for (words, expected) in [
            (&["-M", "esp32c3"][..], "-net nic,netdev=n0,model=open_eth,macaddr=MAC"),
            (&["-machine", "type=esp32c3"], "-net nic,netdev=n0,model=open_eth,macaddr=MAC"),
            (&["-M", "virt", "-cpu", "rv32"], "-device virtio-net-device,netdev=n0,mac=MAC"),
        ] {
            let machine: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(card(&machine, "MAC").join(" "), expected, "{words:?}");
        }
    }

    #[test]
    fn an_emulator_from_before_stream_sockets_is_known_by_its_version() {
        for (version, expected) in [
            ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", false),
            ("QEMU emulator version 10.0.2", false),
            ("QEMU emulator version 9.2.2 (esp_develop_9.2.2_20250817)", false),
            ("QEMU emulator version 7.1.0", true),
            ("QEMU emulator version 5.2.0 (Debian 1:5.2+dfsg-11+deb11u3)", true),
            ("something else", false),
        ] {
            assert_eq!(is_too_old(version), expected, "{version}");
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
