//! Starts child processes that cannot outlive the harness, however it ends.
//!
//! Linux sends the parent-death signal when the *thread* that forked ends, so one thread that lives as long as the
//! process does all the forking. Children stay in the harness's process group, where Ctrl-C and a test runner's
//! signals reach them too. This is the only module with unsafe code: `pre_exec`, whose closure makes two system
//! calls and allocates nothing.

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

type Job = (Command, Sender<io::Result<Child>>);

static SPAWNER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();

/// Starts `command`; the kernel kills the child when the harness ends.
///
/// # Errors
/// As `Command::spawn`.
pub fn spawn(command: Command) -> io::Result<Child> {
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, queue) = channel();
        std::thread::Builder::new()
            .name("rigor-spawner".to_owned())
            .spawn(move || serve(&queue))
            .expect("the spawner thread starts");
        Mutex::new(jobs)
    });
    let (answer, child) = channel();
    let gone = || io::Error::other("the spawner thread has ended");
    spawner.lock().unwrap_or_else(PoisonError::into_inner).send((command, answer)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

fn serve(queue: &Receiver<Job>) {
    for (mut command, answer) in queue {
        die_with_parent(&mut command);
        // A caller that gave up leaves a child nobody waits for: end it here.
        if let Err(unclaimed) = answer.send(command.spawn())
            && let Ok(mut child) = unclaimed.0
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[expect(unsafe_code, reason = "pre_exec has no safe form; the closure is async-signal-safe")]
fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    let hook = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died between fork and the line above; then nobody would send the signal.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(3)) }
    };
    // SAFETY: between fork and exec the closure makes two system calls and neither allocates nor locks.
    unsafe { command.pre_exec(hook) };
}
