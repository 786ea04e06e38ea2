//! A wake-up for whoever follows the store: no queue, no value, no runtime. Listeners keep their own cursor and look again.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
struct State {
    raised: u64,
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

/// Wakes all its [`Listener`]s when raised.
#[derive(Debug, Default)]
pub struct Signal {
    state: Mutex<State>,
}

impl Signal {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes every listener.
    pub fn raise(&self) {
        let wakers = {
            let mut state = self.state();
            state.raised += 1;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_values().for_each(Waker::wake);
    }

    /// A new listener, which has seen everything up to now.
    pub fn listen(self: &Arc<Self>) -> Listener {
        let mut state = self.state();
        state.next += 1;
        Listener { signal: Arc::clone(self), id: state.next, seen: state.raised }
    }
}

/// One follower of a [`Signal`].
#[derive(Debug)]
pub struct Listener {
    signal: Arc<Signal>,
    id: u64,
    seen: u64,
}

impl Listener {
    /// Ready when the signal was raised since the last time this was ready; otherwise wakes `context` when it is.
    pub fn poll_raised(&mut self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.signal.state();
        if state.raised != self.seen {
            self.seen = state.raised;
            return Poll::Ready(());
        }
        state.wakers.insert(self.id, context.waker().clone());
        Poll::Pending
    }

    /// Waits until [`Self::poll_raised`] is ready.
    pub async fn raised(&mut self) {
        poll_fn(|context| self.poll_raised(context)).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.signal.state().wakers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_raise_is_seen_once_by_each_listener_and_never_missed() {
        let signal = Arc::new(Signal::default());
        let (mut first, mut second) = (signal.listen(), signal.listen());
        assert_eq!(first.raised().now_or_never(), None);
        signal.raise();
        signal.raise();
        assert_eq!(first.raised().now_or_never(), Some(()));
        assert_eq!(first.raised().now_or_never(), None);
        assert_eq!(second.raised().now_or_never(), Some(()));
        assert_eq!(signal.listen().raised().now_or_never(), None);
    }

    #[test]
    fn a_dropped_listener_leaves_no_waker_behind() {
        let signal = Arc::new(Signal::default());
        let mut listener = signal.listen();
        assert_eq!(listener.raised().now_or_never(), None);
        assert_eq!(signal.state().wakers.len(), 1);
        drop(listener);
        assert_eq!(signal.state().wakers.len(), 0);
    }
}
