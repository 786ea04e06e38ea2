//! Collects what a child process writes, with the instant of each line, for the evidence of a trial.

use crate::ledger::Ledger;
use crate::process::{Listener, Stream};
use rigor_trace::history::ProcessEvent;
use rigor_trace::{Fact, Micros};
use std::fmt::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most text kept of one process, in bytes; of a longer log the beginning is kept.
const LONGEST_LOG: usize = 16 << 20;

#[derive(Debug, Default)]
struct Kept {
    text: String,
    /// The last non-empty line, for messages.
    last: String,
    /// The awaited line has come.
    ready: bool,
    ended: bool,
}

/// How a process that has to announce itself is getting on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It said that it is ready.
    Ready,
    /// It ended before.
    Ended,
    /// Neither, within the limit.
    Waiting,
}

/// Which lines of a process are facts of the history.
#[derive(Debug)]
enum Told {
    Nothing,
    /// Those of standard output, which is this board's console; they are not kept besides.
    Console(String),
    /// All of them, printed by the second scheduler of this name.
    Scheduler(String),
}

/// A process's output.
#[derive(Debug)]
pub(crate) struct Log {
    who: String,
    ledger: Arc<Ledger>,
    /// A part of the line that says the process is ready.
    ready: String,
    told: Told,
    kept: Mutex<Kept>,
    changed: Condvar,
}

impl Log {
    /// The log of a process that prints a line with `ready` in it once it serves.
    pub(crate) fn of_server(who: &str, ready: &str, ledger: Arc<Ledger>) -> Self {
        Self {
            who: who.to_owned(),
            ledger,
            ready: ready.to_owned(),
            told: Told::Nothing,
            kept: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The log of a board, whose standard output is its console.
    pub(crate) fn of_board(board: &str, ledger: Arc<Ledger>) -> Self {
        Self {
            who: format!("board:{board}"),
            ledger,
            ready: String::new(),
            told: Told::Console(board.to_owned()),
            kept: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The log of a second scheduler that prints a line with `ready` in it once it serves; each line is a fact, too.
    pub(crate) fn of_scheduler(name: &str, ready: &str, ledger: Arc<Ledger>) -> Self {
        let told = Told::Scheduler(name.to_owned());
        Self { told, ..Self::of_server(&format!("scheduler:{name}"), ready, ledger) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets that the process was ready: it is about to be started anew.
    pub(crate) fn rearm(&self) {
        let mut kept = self.lock();
        kept.ready = false;
        kept.ended = false;
    }

    /// Waits until the process is ready or has ended.
    pub(crate) fn wait_ready(&self, limit: Duration) -> Start {
        let (kept, _) = self
            .changed
            .wait_timeout_while(self.lock(), limit, |kept| !kept.ready && !kept.ended)
            .unwrap_or_else(PoisonError::into_inner);
        match (kept.ready, kept.ended) {
            (true, _) => Start::Ready,
            (false, true) => Start::Ended,
            (false, false) => Start::Waiting,
        }
    }

    /// Everything kept, a line each with its instant.
    pub(crate) fn text(&self) -> String {
        self.lock().text.clone()
    }

    /// The last line that was not empty.
    pub(crate) fn last_line(&self) -> String {
        self.lock().last.clone()
    }

    fn keep(&self, at: Micros, line: &str) {
        let mut kept = self.lock();
        if kept.text.len() < LONGEST_LOG {
            let _ = writeln!(kept.text, "{:>12} {line}", at.to_string());
        }
        if !line.trim().is_empty() {
            line.trim().clone_into(&mut kept.last);
        }
        if !self.ready.is_empty() && line.contains(&self.ready) {
            kept.ready = true;
            self.changed.notify_all();
        }
    }
}

impl Listener for Log {
    fn line(&self, from: Stream, text: &str) {
        match (&self.told, from) {
            (Told::Console(board), Stream::Out) => {
                self.ledger.note(Fact::Console { board: board.clone(), line: text.to_owned() });
            }
            (Told::Scheduler(name), Stream::Out | Stream::Err) => {
                // Before it is kept, because that may end the wait for the line: it came before the start was done.
                self.ledger.note(Fact::SchedulerLine { name: name.clone(), line: text.to_owned() });
                self.keep(self.ledger.now(), text);
            }
            (Told::Nothing, Stream::Out) | (Told::Nothing | Told::Console(_), Stream::Err) => {
                self.keep(self.ledger.now(), text);
            }
        }
    }

    fn exited(&self, code: i32, asked: bool) {
        self.keep(
            self.ledger.now(),
            &format!("-- ended, exit code {code}{}", if asked { ", as asked" } else { "" }),
        );
        if !asked {
            let event = ProcessEvent::Exited;
            self.ledger.note(Fact::Process { who: self.who.clone(), event, status: code });
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }
}
