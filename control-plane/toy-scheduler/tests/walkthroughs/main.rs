//! The walkthroughs in docs/ are run as they stand there: each command of a page's `console` blocks, in one shell, in an
//! empty directory, with the real programs; and what they print is compared with what the page shows.
//!
//! What varies is written so:
//! - `…` stands for anything within a line, and alone on a line for any lines;
//! - blanks count as one, however many: columns are as wide as what stands in them;
//! - ports 6443, 2379 and 2380 stand for free ones;
//! - a command that only reads (`kubectl get`, `kubectl describe`, `etcdctl get`, `grep`) is repeated for a while until it
//!   prints what the page shows, as a reader would do.
//!
//! Where a program that a page needs is not on PATH, its test says so and is skipped.

#[path = "../binaries/mod.rs"]
mod binaries;
mod compare;
mod page;
#[path = "../../../server/tests/support/port.rs"]
mod port;
mod shell;

use std::path::Path;
use std::process::{Command, Stdio};

use page::Step;
use shell::Shell;

fn missing(programs: &[&str]) -> Option<String> {
    let found = |program: &&&str| {
        let mut find = Command::new("sh");
        find.args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status().unwrap().success()
    };
    programs.iter().find(|program| !found(program)).map(|program| (*program).to_owned())
}

fn walk(page: &str, programs: &[&str]) {
    if let Some(program) = missing(programs) {
        println!("skipped: {program} is not on PATH");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let steps = page::steps(&text);
    assert!(steps.len() > 5, "{page} has no steps to speak of");
    let mut shell = Shell::start();
    for Step { line, command, output } in steps {
        let said = shell.run(&command, &output);
        assert!(
            compare::matches(&output, &said),
            "docs/{page}, line {line}:\n$ {command}\n--- the page shows\n{}\n--- it prints\n{}",
            output.join("\n"),
            said.join("\n"),
        );
    }
}

#[test]
fn binding_by_hand() {
    walk("walkthrough-binding.md", &["kubectl"]);
}

#[test]
fn a_scheduler_in_a_page() {
    walk("walkthrough-scheduler.md", &["kubectl"]);
}

#[test]
fn scheduling_onto_a_machine_that_does_not_exist() {
    walk("walkthrough-ghost.md", &["kubectl", "etcd", "etcdctl", "openssl"]);
}
