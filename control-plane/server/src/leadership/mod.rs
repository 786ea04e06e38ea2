//! Which of several control planes decides: the one that holds a Lease in kube-system, as Kubernetes' controllers elect theirs.
//!
//! Two things keep a second one from deciding. In time: a leader that could not renew for the renew deadline stops by its own
//! monotonic clock, before the lease's duration is over and another may begin. In the store: each term has a mark, and every
//! decision is written in a transaction that compares it, so a leader that slept through its end (SIGSTOP, a stalled disk) can
//! write nothing after the next one began.

mod candidate;
mod record;

pub use self::candidate::{Candidate, Timing};

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::store::Signal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
    number: u64,
    /// The instant before the last renewal was asked for.
    renewed: Duration,
}

/// Whether this process leads, and in which term.
pub struct Leadership {
    clock: Arc<dyn Clock>,
    renew_deadline: Duration,
    term: Mutex<Option<Term>>,
    changed: Arc<Signal>,
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("term", &*self.held()).finish_non_exhaustive()
    }
}

impl Leadership {
    /// Nobody's so far.
    pub fn new(clock: Arc<dyn Clock>, renew_deadline: Duration) -> Self {
        Self { clock, renew_deadline, term: Mutex::default(), changed: Arc::default() }
    }

    fn held(&self) -> MutexGuard<'_, Option<Term>> {
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The term in which this process leads now.
    pub fn term(&self) -> Option<u64> {
        let now = self.clock.mono();
        let term = *self.held();
        term.filter(|term| now.saturating_sub(term.renewed) < self.renew_deadline).map(|term| term.number)
    }

    /// Raised when this process begins or ceases to lead.
    pub fn changed(&self) -> &Arc<Signal> {
        &self.changed
    }

    /// It leads from now on; `asked` is the instant before the lease was asked for.
    pub fn begin(&self, number: u64, asked: Duration) {
        *self.held() = Some(Term { number, renewed: asked });
        self.changed.raise();
    }

    /// The lease was renewed.
    fn renew(&self, asked: Duration) {
        if let Some(term) = self.held().as_mut() {
            term.renewed = asked;
        }
    }

    /// The term is over, as the store said.
    pub fn lose(&self, number: u64) {
        let mut held = self.held();
        if held.is_some_and(|term| term.number == number) {
            *held = None;
            drop(held);
            self.changed.raise();
        }
    }

    /// It gives up to lead.
    pub fn end(&self) {
        *self.held() = None;
        self.changed.raise();
    }
}
