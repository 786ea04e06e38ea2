//! Boards as emulators: stock QEMU's `virt` machine with a true rv32imc processor, running the firmware image.
//!
//! Power is the emulator's process, a halted processor is QMP `stop`. The board's network card is joined to the
//! harness's own network by a unix socket; links are cut there, and the end of an emulator is silence there.

use crate::binaries::on_path;
use crate::board::Machine;
use crate::process::Process;
use crate::qmp::{Qmp, QmpError};
use crate::world::Infra;
use rigor_model::equipment::STORAGE;
use rigor_model::{Capability, Rig};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Every extension of QEMU's default rv32 that an ESP32-C3 lacks is switched off.
const CPU: &str = "rv32,a=false,f=false,d=false,h=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false";

/// Longest wait for an answer on the QMP socket.
const QMP_LIMIT: Duration = Duration::from_secs(10);

/// Where in the machine's memory the image looks for its configuration.
const CONFIG_WINDOW: u64 = 0x8018_0000;

/// A piece of flash with nothing in it.
static BLANK: [u8; 64 * 1024] = [0xff; 64 * 1024];

/// Network backend and device names on the command line.
const NETDEV: &str = "n0";

/// An emulator and what it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emulator {
    /// The program.
    pub program: PathBuf,
    /// Arguments that select machine and processor.
    pub machine: Vec<String>,
    /// The firmware image that boards begin with.
    pub firmware: PathBuf,
    /// Images that they can be flashed with, by name.
    pub images: BTreeMap<String, PathBuf>,
    /// Size of the file that is a board's storage, in bytes; `${storage}` in `machine` is its path.
    pub storage_bytes: Option<u32>,
    /// Whether what runs on them reads its console.
    pub listens: bool,
}

impl Emulator {
    /// The emulator of a rig file, or the usual one, with what the file says of its boards. `firmware` is looked at last: the
    /// emulator takes longest to come by.
    ///
    /// # Errors
    /// The program is not installed, or an image is missing.
    pub fn find(rig: &Rig, firmware: Result<PathBuf, Infra>) -> Result<Self, Infra> {
        let (name, machine) = match rig.emulator.as_slice() {
            [name, machine @ ..] => (name.as_str(), machine.to_vec()),
            [] => ("qemu-system-riscv32", usual_machine()),
        };
        let program = on_path(name).ok_or_else(|| {
            Infra::lasting(
                format!("the emulator {name} is not installed"),
                "install it (Debian: apt-get install qemu-system-misc; or ci/bootstrap), or name another in the rig file",
            )
        })?;
        let mut images = BTreeMap::new();
        for (name, file) in &rig.equipment.images {
            let file = PathBuf::from(file);
            if !file.is_file() {
                return Err(Infra::lasting(
                    format!("the image {name} is to be {}, but no file is there", file.display()),
                    "build it, or correct spec.images of the rig file",
                ));
            }
            images.insert(name.clone(), file);
        }
        Ok(Self {
            program,
            machine,
            firmware: firmware?,
            images,
            storage_bytes: rig.equipment.storage_bytes,
            listens: rig.capabilities.contains(&Capability::ConsoleInput),
        })
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
    /// What it runs.
    pub(crate) image: PathBuf,
    /// The file that is its storage, if it has any.
    pub(crate) storage: PathBuf,
    pub(crate) config: PathBuf,
    /// Where QMP is spoken.
    pub(crate) socket: PathBuf,
    /// Where the network listens for this board.
    pub(crate) network: PathBuf,
    /// Position among the trial's boards; gives the board its hardware address.
    pub(crate) index: usize,
}

impl QemuMachine {
    /// A board with nothing stored.
    pub(crate) fn erased(self) -> Result<Self, Infra> {
        self.erase()?;
        Ok(self)
    }

    /// Storage as it leaves the factory: every bit set.
    fn erase(&self) -> Result<(), Infra> {
        let Some(bytes) = self.emulator.storage_bytes else { return Ok(()) };
        let written = File::create(&self.storage).and_then(|file| {
            let mut file = BufWriter::new(file);
            let mut left = bytes as usize;
            while left > 0 {
                let piece = left.min(BLANK.len());
                file.write_all(&BLANK[..piece])?;
                left -= piece;
            }
            file.flush()
        });
        written.map_err(|error| {
            Infra::transient(format!("{} could not be written: {error}", self.storage.display()))
        })
    }

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
        let storage = escaped(&self.storage.display().to_string());
        let hole = format!("${{{STORAGE}}}");
        command
            .args(self.emulator.machine.iter().map(|argument| argument.replace(&hole, &storage)))
            .args(["-bios", "none", "-display", "none", "-monitor", "none", "-m", "4M"])
            .arg("-kernel")
            .arg(&self.image)
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

    fn listens(&self) -> bool {
        self.emulator.listens
    }

    fn image(&self, name: Option<&str>) -> Result<PathBuf, Infra> {
        let Some(name) = name else { return Ok(self.emulator.firmware.clone()) };
        self.emulator.images.get(name).cloned().ok_or_else(|| {
            Infra::lasting(
                format!("the rig has no image {name}"),
                "state it under spec.images of the rig file",
            )
        })
    }

    fn flash(&mut self, image: PathBuf, erase: bool) -> Result<(), Infra> {
        self.image = image;
        if erase { self.erase() } else { Ok(()) }
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
                images: [("previous".to_owned(), "old.elf".into())].into(),
                storage_bytes: None,
                listens: false,
            },
            image: "fw.elf".into(),
            storage: "a,b.storage".into(),
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
        let error = Emulator::find(&rig("emulator: [qemu-system-nowhere]"), Ok("fw.elf".into())).unwrap_err();
        assert_eq!(error.to_string(), "the emulator qemu-system-nowhere is not installed");
        assert!(error.remedy.is_some_and(|remedy| remedy.contains("qemu-system-misc")));
        assert!(!error.transient);
    }

    /// A rig file with one more line.
    fn rig(line: &str) -> Rig {
        let constants = "{leaseDuration: 4s, renewInterval: 1s, noExecuteDelay: 3s, tolerationSeconds: 6s, checkPeriod: 500ms, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms}";
        let source = format!(
            "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {{name: r}}\nspec:\n  kind: qemu\n  constants: {constants}\n  {line}\n"
        );
        Rig::parse("r.yaml", &source).unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
    }

    #[test]
    fn an_image_that_is_not_there_is_told_before_the_first_trial() {
        let error = Emulator::find(
            &rig("emulator: [/bin/sh]\n  images: {old: /nowhere/old.elf}"),
            Ok("fw.elf".into()),
        );
        let error = error.unwrap_err();
        assert_eq!(error.to_string(), "the image old is to be /nowhere/old.elf, but no file is there");
        assert!(!error.transient);
    }

    #[test]
    fn a_board_is_flashed_with_what_the_rig_states_and_keeps_what_it_stored() {
        let folder = tempfile::tempdir().unwrap();
        let mut board = machine(0);
        board.emulator.storage_bytes = Some(100_000);
        board.emulator.machine = vec!["-drive".to_owned(), "format=raw,file=${storage}".to_owned()];
        board.storage = folder.path().join("a.storage");
        let mut board = board.erased().unwrap();
        let stored = || std::fs::read(folder.path().join("a.storage")).unwrap();
        assert!(stored().len() == 100_000 && stored().iter().all(|byte| *byte == 0xff));
        let line = |board: &QemuMachine| {
            let command = board.command();
            let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            words.join(" ")
        };
        assert!(
            line(&board).contains("a.storage") && line(&board).contains("-kernel fw.elf "),
            "{}",
            line(&board)
        );
        std::fs::write(&board.storage, "settings").unwrap();
        board.flash(board.image(Some("previous")).unwrap(), false).unwrap();
        assert!(line(&board).contains("-kernel old.elf "), "{}", line(&board));
        assert_eq!(stored(), b"settings");
        board.flash(board.image(None).unwrap(), true).unwrap();
        assert!(line(&board).contains("-kernel fw.elf "));
        assert_eq!(stored().len(), 100_000);
        let error = board.image(Some("next")).unwrap_err();
        assert_eq!(error.to_string(), "the rig has no image next");
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
