//! The history of a trial in real time, as every rig of processes and every cluster keeps it: facts come from many threads
//! through the ledger and enter the history in one place, [`Recording::take_in`].

use crate::clock::Clock;
use crate::heartbeat::Heartbeat;
use crate::ledger::{Ledger, Noted};
use crate::recorder::{Recorder, Source};
use crate::streams::Feed;
use crate::world::{Infra, ToolOutcome};
use rigor_model::act::Tool;
use rigor_trace::{Fact, History, Micros, Ran};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use tokio::runtime::Handle;

/// A trial's clock, its ledger, and the thread that measures the harness's own stalls: what there is before anything is
/// watched.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) clock: Clock,
    heartbeat: Heartbeat,
    facts: Receiver<Noted>,
}

/// What has been recorded, and what records on. The recorder is dropped first, so that it does not see what is cleaned up.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Recorder,
    _heartbeat: Heartbeat,
    pub(crate) ledger: Arc<Ledger>,
    facts: Receiver<Noted>,
    history: History,
    clock: Clock,
    runtime: Handle,
    /// Longest wait for the first list of what is watched.
    patience: Duration,
}

impl Opening {
    /// The trial's time begins.
    pub(crate) fn begin() -> Result<Self, Infra> {
        let clock = Clock::start();
        let (ledger, facts) = Ledger::new(clock);
        let ledger = Arc::new(ledger);
        let heartbeat = Heartbeat::start(ledger.clone())
            .map_err(|error| Infra::transient(format!("no heartbeat thread: {error}")))?;
        Ok(Self { ledger, clock, heartbeat, facts })
    }

    /// Watches `feeds`; nothing if their first lists do not come within `patience`, and also later ones have to.
    pub(crate) fn record(
        self,
        runtime: &Handle,
        source: Source,
        feeds: &[Feed],
        patience: Duration,
    ) -> Option<Recording> {
        let recorder = Recorder::start(runtime, source, feeds);
        recorder.wait_synced(runtime, patience).then(|| Recording {
            recorder,
            _heartbeat: self.heartbeat,
            ledger: self.ledger,
            facts: self.facts,
            history: History::new(),
            clock: self.clock,
            runtime: runtime.clone(),
            patience,
        })
    }
}

impl Recording {
    pub(crate) fn now(&self) -> Micros {
        self.clock.now()
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Watches one more stream from now on; `false` when the server gives no list of it.
    pub(crate) fn watch(&mut self, feed: Feed) -> bool {
        self.recorder.add(&self.runtime, feed);
        self.recorder.wait_synced(&self.runtime, self.patience)
    }

    /// Moves what the threads have noted into the history.
    pub(crate) fn take_in(&mut self) {
        while let Ok((at, fact)) = self.facts.try_recv() {
            self.history.push(at, fact);
        }
    }

    /// Appends a fact of the runner's own. That the trial has started, which learns the time of day, comes first of all with
    /// `of_rig` after it: before what the threads have noted since the world was opened.
    pub(crate) fn record(&mut self, fact: Fact, of_rig: impl IntoIterator<Item = Fact>) {
        match fact {
            Fact::TrialStarted { scenario, rig, case, seed, wall, constants, faults } => {
                let wall = wall.or_else(|| Some(self.clock.wall()));
                let started = Fact::TrialStarted { scenario, rig, case, seed, wall, constants, faults };
                if self.history.is_empty() {
                    self.history.push(Micros::ZERO, started);
                    for fact in of_rig {
                        self.history.push(Micros::ZERO, fact);
                    }
                } else {
                    self.ledger.note(started);
                }
            }
            other => self.ledger.note(other),
        }
        self.take_in();
    }

    /// Lets time pass until `until`, or until something new is noted.
    pub(crate) fn wait(&mut self, until: Micros) {
        let before = self.history.len();
        self.take_in();
        if self.history.len() == before
            && let Ok((at, fact)) = self.facts.recv_timeout(self.clock.until(until))
        {
            self.history.push(at, fact);
            self.take_in();
        }
    }

    /// Appends a run of a program.
    pub(crate) fn ran(&mut self, tool: Tool, begun: Micros, argv: &[String], outcome: &ToolOutcome) {
        let ran = Ran {
            begun,
            argv: argv.to_vec(),
            status: outcome.code,
            stdout: outcome.stdout.clone(),
            stderr: outcome.stderr.clone(),
        };
        self.ledger.note(match tool {
            Tool::Kubectl => Fact::Kubectl(ran),
            Tool::Etcdctl => Fact::Etcdctl(ran),
        });
        self.take_in();
    }
}
