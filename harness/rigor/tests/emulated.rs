//! What only boards in emulators show: `cargo nextest run --profile qemu` runs these, on the rig that `RIGOR_RIG` names.
//!
//! The scenarios are those that `acts.rs` runs on the simulated rig.

#[path = "bench/acts.rs"]
mod bench;

use bench::{folder, rig, tried};
use rigor_rigs::binaries::{Artifact, find};
use std::path::Path;

/// The rig, and what the trials of a file came to on it.
fn passes(file: &str, change: impl FnOnce(&mut rigor_model::Rig), evidence: &Path) {
    let mut rig = rig(&std::env::var("RIGOR_RIG").unwrap_or_else(|_| "qemu-short".to_owned()));
    change(&mut rig);
    for trial in tried(&folder().join(file), rig, evidence) {
        assert_eq!(trial.came, "pass", "{}", trial.title);
    }
}

/// Of a line of `network.log`: how many frames were sent, and how many of them the link's loss took.
fn frames(log: &str, way: &str) -> (u64, u64) {
    let line = log.lines().find(|line| line.contains(way)).unwrap_or_else(|| panic!("no {way} in\n{log}"));
    let number = |before: &str| {
        let (_, rest) = line.split_once(before).unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    (number(": "), number("of these "))
}

#[test]
fn delay_and_loss_act_on_the_link_of_an_emulated_board() {
    let evidence = tempfile::tempdir().unwrap();
    passes("slow-link.yaml", |_| {}, evidence.path());
    let log = std::fs::read_to_string(evidence.path().join("slow-link/network.log")).unwrap();
    for way in ["from board a", "to board a"] {
        let (sent, lost) = frames(&log, way);
        assert!(0 < lost && lost < sent, "{way}: {lost} of {sent} lost\n{log}");
    }
    for way in ["from board b", "to board b"] {
        assert_eq!(frames(&log, way).1, 0, "{way}\n{log}");
    }
}

#[test]
fn an_emulated_board_is_flashed() {
    let evidence = tempfile::tempdir().unwrap();
    let image = find(Artifact::QemuFirmware).unwrap_or_else(|infra| panic!("{}", infra.whole()));
    let copy = evidence.path().join("copy.elf");
    std::fs::copy(image, &copy).unwrap();
    let images = [("copy".to_owned(), copy.display().to_string())].into();
    // As docs/rigs.md has it: storage that the image does not use does it no harm.
    let emulator = [
        "qemu-system-riscv32",
        "-M",
        "virt",
        "-cpu",
        "rv32,a=false,f=false,d=false,h=false,zba=false,zbb=false,zbc=false,zbs=false,sstc=false",
        "-drive",
        "if=none,id=storage,format=raw,file=${storage}",
        "-device",
        "virtio-blk-device,drive=storage",
    ];
    let change = |rig: &mut rigor_model::Rig| {
        rig.emulator = emulator.map(str::to_owned).to_vec();
        rig.equipment.images = images;
        rig.equipment.storage_bytes = Some(32 << 20);
    };
    passes("flash.yaml", change, evidence.path());
    let console = std::fs::read_to_string(evidence.path().join("flash/console-a.log")).unwrap();
    assert_eq!(console.matches("rigor kubelet ").count(), 3, "a start, and one a flash:\n{console}");
    let flashes: Vec<&str> = console.lines().filter(|line| line.contains("-- flash: ")).collect();
    let (first, second) = match flashes.as_slice() {
        [first, second] => (first, second),
        other => panic!("{other:?}\n{console}"),
    };
    assert!(first.contains("image copy, sha256 "), "{first}");
    assert!(
        second.contains("the rig's own image, sha256 ") && second.ends_with("storage erased"),
        "{second}"
    );
}

#[test]
fn a_second_scheduler_is_a_process_beside_emulated_boards() {
    let evidence = tempfile::tempdir().unwrap();
    passes("second-scheduler.yaml", |_| {}, evidence.path());
    let log = std::fs::read_to_string(evidence.path().join("second-scheduler/scheduler-second.log")).unwrap();
    assert!(log.contains("bound to n2"), "{log}");
}
