//! A harness that is killed outright leaves neither processes nor files. The harness is played by this test binary, started
//! anew with the ignored test below as its only work.

use rigor_rigs::clock::Clock;
use rigor_rigs::place::Place;
use rigor_rigs::process::{Input, Listener, Process, Stream};
use rigor_trace::Micros;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
struct Deaf;

impl Listener for Deaf {
    fn line(&self, _: Stream, _: &str) {}
    fn exited(&self, _: i32, _: bool) {}
}

#[test]
#[ignore = "the harness that is killed, started by the test below"]
fn doomed_harness() {
    let mut command = Command::new("sleep");
    command.arg("600");
    let child = std::thread::spawn(move || Process::start(command, Input::Nothing, Arc::new(Deaf)).unwrap())
        .join()
        .unwrap();
    assert!(child.running(), "the thread that asked has ended, the child must not have");
    let place = Place::new().unwrap();
    place.write("file", "content").unwrap();
    println!("child {} {}", child.id(), place.file("").display());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

#[test]
fn nothing_outlives_a_killed_harness() {
    let mut harness = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "doomed_harness", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(harness.stdout.take().unwrap()).lines();
    let said = lines
        .map(Result::unwrap)
        .find_map(|line| line.rsplit_once("child ").map(|(_, rest)| rest.to_owned()))
        .expect("the harness says what it has");
    let (child, place) = said.split_once(' ').unwrap();
    let (child, place) = (child.parse().unwrap(), Path::new(place));
    assert!(alive(child) && place.exists());
    harness.kill().unwrap();
    harness.wait().unwrap();
    let clock = Clock::start();
    while alive(child) || place.exists() {
        assert!(
            clock.now() < Micros(60_000_000),
            "process {child} or {} outlived the harness",
            place.display()
        );
        Clock::sleep(Duration::from_millis(5));
    }
}

/// Neither gone nor a zombie that waits for init.
fn alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
