//! A child process with its output read line by line and its end noticed at once.
//!
//! The process is reaped by its own waiting thread; `signal` can never hit a reused process id, because reaping and
//! signalling exclude each other. Dropping a `Process` kills it and waits for its end.

use crate::spawn::spawn;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, set_parent_process_death_signal, waitid,
};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest line kept from a child, in bytes; the rest of a longer one becomes further lines.
const LONGEST_LINE: u64 = 64 * 1024;

/// Which of the child's streams a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// What a child tells its owner; called from the reading and waiting threads.
pub trait Listener: Send + Sync + 'static {
    /// A line without its end.
    fn line(&self, from: Stream, text: &str);
    /// The process ended with exit code `code` (-1 when a signal ended it); `asked` when the owner had signalled it to.
    fn exited(&self, code: i32, asked: bool);
}

#[derive(Debug, Default)]
struct State {
    /// Set once reaped.
    status: Option<ExitStatus>,
    /// The owner asked for the end.
    asked: bool,
    /// Both output streams have been read to their end and the listener was told.
    drained: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the kernel for SIGTERM when the process that started this one ends, as a test runner that is killed does.
pub fn end_with_parent() {
    // Where the kernel cannot, children are still ended with this process.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
}

/// What a child reads on its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input<'a> {
    /// The end, at once.
    Nothing,
    /// This text, and then the end.
    Text(&'a str),
    /// What [`Process::say`] says, for as long as it runs.
    Open,
}

/// Why a line was not said.
#[derive(Debug, thiserror::Error)]
pub enum Unsaid {
    /// The child leaves unread what was said before.
    #[error("it leaves unread what was said before")]
    Unread,
    /// It has ended, or was started with another [`Input`].
    #[error("it does not listen")]
    Deaf,
}

/// A running (or ended) child process.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    shared: Arc<Shared>,
    /// Its standard input, where that stays open.
    stdin: Option<ChildStdin>,
}

impl Process {
    /// Starts `command` with `input` as its standard input and both outputs read.
    ///
    /// # Errors
    /// As `Command::spawn`.
    pub fn start(mut command: Command, input: Input<'_>, listener: Arc<dyn Listener>) -> io::Result<Self> {
        let stdin = if input == Input::Nothing { Stdio::null() } else { Stdio::piped() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(command)?;
        let stdin = match (child.stdin.take(), input) {
            (Some(mut stdin), Input::Text(input)) => {
                let input = input.to_owned();
                // A child that does not read must not hold up its owner.
                std::thread::spawn(move || stdin.write_all(input.as_bytes()));
                None
            }
            (Some(stdin), Input::Open) => {
                let flags = fcntl_getfl(&stdin)?;
                fcntl_setfl(&stdin, flags | OFlags::NONBLOCK)?;
                Some(stdin)
            }
            (Some(_), Input::Nothing) | (None, _) => None,
        };
        let pid = Pid::from_child(&child);
        let shared = Arc::new(Shared::default());
        let mut readers = Vec::new();
        if let Some(out) = child.stdout.take() {
            readers.push(read_lines(out, Stream::Out, listener.clone())?);
        }
        if let Some(err) = child.stderr.take() {
            readers.push(read_lines(err, Stream::Err, listener.clone())?);
        }
        let theirs = shared.clone();
        std::thread::Builder::new()
            .name(format!("wait-{}", pid.as_raw_nonzero()))
            .spawn(move || wait_for(child, readers, &theirs, listener.as_ref()))?;
        Ok(Self { pid, shared, stdin })
    }

    /// Writes a line to a child that was started with [`Input::Open`], whole or not at all and without waiting. Lines up to
    /// 4095 bytes are whole.
    ///
    /// # Errors
    /// The child does not listen, or there is no more room for what it does not read.
    pub fn say(&self, line: &str) -> Result<(), Unsaid> {
        let mut stdin = self.stdin.as_ref().filter(|_| self.running()).ok_or(Unsaid::Deaf)?;
        // A pipe takes what is no longer than this in one piece, or refuses it.
        match stdin.write_all(format!("{line}\n").as_bytes()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Unsaid::Unread),
            Err(_) => Err(Unsaid::Deaf),
        }
    }

    /// Process id, for messages.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether it has not ended yet.
    #[must_use]
    pub fn running(&self) -> bool {
        self.shared.lock().status.is_none()
    }

    /// Sends a signal; `false` when the process had already ended. An end that follows counts as asked for when
    /// the signal is one that ends.
    pub fn signal(&self, signal: Signal) -> bool {
        let mut state = self.shared.lock();
        if state.status.is_some() {
            return false;
        }
        if matches!(signal, Signal::KILL | Signal::TERM | Signal::INT) {
            state.asked = true;
        }
        kill_process(self.pid, signal).is_ok()
    }

    /// Waits until it has ended and its output is read; `None` when that takes longer than `limit`.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let state = self.shared.lock();
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(state, limit, |state| !state.drained)
            .unwrap_or_else(PoisonError::into_inner);
        state.status
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        let _ = self.wait(Duration::from_secs(5));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.running() {
            self.kill();
        }
    }
}

fn wait_for(mut child: Child, readers: Vec<JoinHandle<()>>, shared: &Shared, listener: &dyn Listener) {
    let pid = Pid::from_child(&child);
    // Wait without reaping: the id stays taken until the lock is held, so `signal` cannot miss.
    while let Err(rustix::io::Errno::INTR) =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
    {}
    let (status, asked) = {
        let mut state = shared.lock();
        let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(0));
        state.status = Some(status);
        (status, state.asked)
    };
    for reader in readers {
        let _ = reader.join();
    }
    listener.exited(status.code().unwrap_or(-1), asked);
    shared.lock().drained = true;
    shared.changed.notify_all();
}

fn read_lines(
    source: impl Read + Send + 'static,
    from: Stream,
    listener: Arc<dyn Listener>,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("lines".to_owned()).spawn(move || {
        let mut source = BufReader::new(source);
        let mut line = Vec::new();
        loop {
            line.clear();
            match source.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    let text = String::from_utf8_lossy(&line);
                    listener.line(from, text.trim_end_matches(['\n', '\r']));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Listener for Heard {
        fn line(&self, from: Stream, text: &str) {
            self.0.lock().unwrap().push(format!("{from:?} {text}"));
        }
        fn exited(&self, code: i32, asked: bool) {
            self.0.lock().unwrap().push(format!("exited {code} asked={asked}"));
        }
    }

    const LIMIT: Duration = Duration::from_secs(60);

    fn shell(script: &str, input: Input<'_>) -> (Process, Arc<Heard>) {
        let heard = Arc::new(Heard::default());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        (Process::start(command, input, heard.clone()).unwrap(), heard)
    }

    #[test]
    fn lines_come_before_the_end_and_the_end_is_told() {
        let check = |script: &str, input: Input<'_>, expected: &[&str]| {
            let (process, heard) = shell(script, input);
            assert!(process.wait(LIMIT).is_some());
            assert_eq!(*heard.0.lock().unwrap(), expected, "{script}");
            assert!(!process.signal(Signal::TERM), "a signal to a process that has ended");
        };
        check("echo one; echo two; exit 3", Input::Nothing, &["Out one", "Out two", "exited 3 asked=false"]);
        check(
            "echo bad >&2; printf unfinished >&2",
            Input::Nothing,
            &["Err bad", "Err unfinished", "exited 0 asked=false"],
        );
        check("cat", Input::Text("in\n"), &["Out in", "exited 0 asked=false"]);
        check("cat", Input::Nothing, &["exited 0 asked=false"]);
        check("kill -9 $$", Input::Nothing, &["exited -1 asked=false"]);
    }

    #[test]
    fn an_end_that_was_asked_for_is_told_apart() {
        let (process, heard) = shell("exec sleep 600", Input::Nothing);
        assert!(process.running());
        assert!(process.wait(Duration::from_millis(1)).is_none());
        process.kill();
        assert!(!process.running());
        assert_eq!(*heard.0.lock().unwrap(), ["exited -1 asked=true"]);
    }

    #[test]
    fn a_stopped_process_is_not_an_ended_one() {
        let (process, heard) = shell("exec sleep 600", Input::Nothing);
        assert!(process.signal(Signal::STOP) && process.signal(Signal::CONT));
        assert!(process.running());
        drop(process);
        assert_eq!(*heard.0.lock().unwrap(), ["exited -1 asked=true"]);
    }

    #[test]
    fn what_is_said_is_read_line_by_line() {
        let (process, heard) = shell("while read -r line; do echo \"got $line\"; done", Input::Open);
        process.say("one two").unwrap();
        process.say("").unwrap();
        while heard.0.lock().unwrap().len() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(*heard.0.lock().unwrap(), ["Out got one two", "Out got "]);
        process.kill();
        assert!(matches!(process.say("late"), Err(Unsaid::Deaf)));
        let (deaf, _) = shell("exec sleep 600", Input::Nothing);
        assert!(matches!(deaf.say("hello"), Err(Unsaid::Deaf)));
    }

    #[test]
    fn what_nobody_reads_is_refused_and_holds_nobody_up() {
        let (process, _) = shell("exec sleep 600", Input::Open);
        let line = "x".repeat(1000);
        let unsaid = (0..1000).find_map(|_| process.say(&line).err());
        assert!(matches!(unsaid, Some(Unsaid::Unread)), "{unsaid:?}");
    }

    #[test]
    fn a_missing_program_is_an_error_not_a_process() {
        let error =
            Process::start(Command::new("/nowhere/at-all"), Input::Nothing, Arc::new(Heard::default()))
                .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
