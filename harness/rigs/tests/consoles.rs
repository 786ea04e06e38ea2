//! Images and console lines on boards whose emulator is a line of shell: it tells its image and what it has stored, and
//! stores what is typed. No firmware of this repository reads its console.

use rigor_model::{Capability, Constants, Rig};
use rigor_rigs::{Bench, BoardSpec, Infra, PowerAct, World, processes};
use rigor_trace::{Fact, Micros};
use std::path::{Path, PathBuf};

const EMULATOR: &str = r#"#!/bin/sh
storage=$1
while [ $# -gt 1 ]; do
  [ "$1" = -kernel ] && image=$2
  shift
done
echo "image $(cat "$image"), stored $(tr -d '\377' <"$storage")"
while read -r line; do
  printf '%s' "$line" >"$storage"
  echo "read $line"
done
"#;

/// A rig of such boards with two images, as its file would state it.
fn rig(folder: &Path, console_input: bool) -> Rig {
    use std::os::unix::fs::PermissionsExt;
    let write = |name: &str, text: &str| -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let emulator = write("emulator", EMULATOR);
    std::fs::set_permissions(&emulator, std::fs::Permissions::from_mode(0o755)).unwrap();
    let old = write("old.elf", "old");
    let constants = "{leaseDuration: 4s, renewInterval: 1s, noExecuteDelay: 3s, tolerationSeconds: 6s, checkPeriod: 500ms, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms}";
    let source = format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {{name: typed}}\nspec:\n  kind: qemu\n  constants: {constants}\n  emulator: [\"{}\", \"${{storage}}\"]\n  storageBytes: 4096\n  images: {{old: \"{}\"}}\n",
        emulator.display(),
        old.display()
    );
    let mut rig = Rig::parse("typed.yaml", &source).unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    assert!(!rig.capabilities.contains(&Capability::ConsoleInput), "has to be said");
    if console_input {
        rig.capabilities.insert(Capability::ConsoleInput);
    }
    rig
}

fn open(rig: &Rig, folder: &Path) -> Box<dyn World> {
    let own = folder.join("own.elf");
    std::fs::write(&own, "own").unwrap();
    let control_plane = rigor_rigs::binaries::find(rigor_rigs::binaries::Artifact::ControlPlane).unwrap();
    let bench = Bench {
        control_plane,
        port: 0,
        boards: rigor_rigs::bench::Boards::Qemu(rigor_rigs::qemu::Emulator::find(rig, Ok(own)).unwrap()),
        scheduler: rigor_rigs::scheduler::SchedulerBench::find(None),
        flags: Vec::new(),
        etcd: false,
    };
    processes::open(&bench, &Constants::default(), &[BoardSpec::named("a")], 1)
        .unwrap_or_else(|infra| panic!("{}", infra.whole()))
}

/// Waits for a line on the console, and returns all that were read.
fn until(world: &mut dyn World, wanted: &str) -> Vec<String> {
    let limit = world.now() + std::time::Duration::from_secs(60);
    loop {
        let lines: Vec<String> = world
            .history()
            .records()
            .iter()
            .filter_map(|record| match &record.fact {
                Fact::Console { line, .. } => Some(line.clone()),
                _ => None,
            })
            .collect();
        if lines.iter().any(|line| line == wanted) {
            return lines;
        }
        assert!(world.now() < limit, "no {wanted:?} in {lines:?}");
        world.wait(limit);
    }
}

#[test]
fn an_image_that_reads_its_console_is_sent_lines_and_flashed() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = open(&rig(folder.path(), true), folder.path());
    let world = world.as_mut();
    until(world, "image own, stored ");
    world.send("a", "colour = red").unwrap();
    until(world, "read colour = red");
    world.flash("a", Some("old"), false).unwrap();
    until(world, "image old, stored colour = red");
    world.flash("a", None, true).unwrap();
    world.send("a", "last").unwrap();
    let lines = until(world, "read last");
    assert_eq!(lines[3..], ["image own, stored ", "read last"], "{lines:?}");
}

#[test]
fn a_board_without_power_and_one_that_reads_nothing_refuse_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = open(&rig(folder.path(), true), folder.path());
    world.power("a", PowerAct::Cut).unwrap();
    let refused = |outcome: Result<(), Infra>| outcome.unwrap_err().to_string();
    assert_eq!(refused(world.send("a", "hello")), "board a has no power: nobody reads its console");
    assert_eq!(refused(world.send("b", "hello")), "no board is called b");
    assert_eq!(refused(world.flash("a", Some("new"), false)), "the rig has no image new");
    // A flash starts the board, whatever it was before, and is recorded with what was put on it.
    let begun = world.now();
    world.flash("a", Some("old"), false).unwrap();
    until(world.as_mut(), "image old, stored ");
    let flashes: Vec<&Fact> = world
        .history()
        .records()
        .iter()
        .map(|record| &record.fact)
        .filter(|fact| matches!(fact, Fact::Flash { .. }))
        .collect();
    let [Fact::Flash { board, image, sha256, erased: false, begun: at }] = flashes.as_slice() else {
        panic!("{flashes:?}")
    };
    assert_eq!((board.as_str(), image.as_deref()), ("a", Some("old")));
    // Of the three bytes `old`.
    assert_eq!(sha256, "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4");
    assert!(*at >= begun && *at > Micros::ZERO);
}
