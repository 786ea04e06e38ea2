//! Where everything that happens in a trial is noted: one channel from many threads into the history.
//!
//! The clock is read while the channel is locked, so facts come out in the order of their instants.

use crate::clock::Clock;
use rigor_trace::{Fact, Micros};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// A fact with the instant the harness knew of it.
pub(crate) type Noted = (Micros, Fact);

/// The writing end, shared by all threads of a trial.
#[derive(Debug)]
pub(crate) struct Ledger {
    clock: Clock,
    out: Mutex<Sender<Noted>>,
}

impl Ledger {
    /// A ledger and the end it is read from.
    pub(crate) fn new(clock: Clock) -> (Self, Receiver<Noted>) {
        let (out, facts) = channel();
        (Self { clock, out: Mutex::new(out) }, facts)
    }

    /// The trial's clock.
    pub(crate) fn now(&self) -> Micros {
        self.clock.now()
    }

    /// Notes a fact as known now.
    pub(crate) fn note(&self, fact: Fact) {
        let out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody reads any more once the trial is over; then the fact does not matter.
        let _ = out.send((self.clock.now(), fact));
    }
}
