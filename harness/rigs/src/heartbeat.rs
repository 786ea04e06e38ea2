//! Measures the harness's own stalls: a host that stood still cannot tell a late effect from a late look.

use crate::clock::Clock;
use crate::ledger::Ledger;
use rigor_trace::{Fact, Micros};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the thread wakes.
const BEAT: Duration = Duration::from_millis(20);

/// A wake-up later than this is a stall worth noting.
const TOLERATED: Duration = Duration::from_millis(50);

/// The running thread; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    pub(crate) fn start(ledger: Arc<Ledger>) -> std::io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let theirs = over.clone();
        let thread = std::thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
            let mut last = ledger.now();
            while !theirs.load(Ordering::Relaxed) {
                Clock::sleep(BEAT);
                let now = ledger.now();
                if let Some(length) = stall(last, now) {
                    ledger.note(Fact::Stall { length });
                }
                last = now;
            }
        })?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How long the harness was held up between two beats, where that is worth noting.
fn stall(last: Micros, now: Micros) -> Option<Micros> {
    let late = now.since(last).saturating_sub(BEAT);
    (late > TOLERATED).then(|| Micros::from_duration(late))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_late_beat_is_a_stall() {
        for (passed, expected) in
            [(20_000, None), (70_000, None), (70_001, Some(50_001)), (1_020_000, Some(1_000_000))]
        {
            assert_eq!(stall(Micros(5), Micros(5 + passed)), expected.map(Micros), "{passed} us");
        }
    }
}
