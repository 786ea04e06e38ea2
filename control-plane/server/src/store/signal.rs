//! A wake-up for whoever follows the store: no queue, no value, no runtime. Listeners keep their own cursor and look again.
//!
//! A listener may care for some topics only (resources): what happens elsewhere does not wake it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
struct State {
    /// Times that everyone was woken.
    everyone: u64,
    /// Times that something happened at all.
    raised: u64,
    /// Times that something happened, by topic.
    topics: BTreeMap<String, u64>,
    next: u64,
    wakers: BTreeMap<u64, (Option<Vec<String>>, Waker)>,
}

impl State {
    /// Rises whenever a listener of these topics (of all there are, without any) has something to look at.
    fn count(&self, topics: Option<&[String]>) -> u64 {
        let of = |topic: &String| self.topics.get(topic).copied().unwrap_or(0);
        match topics {
            None => self.raised,
            Some(topics) => self.everyone + topics.iter().map(of).sum::<u64>(),
        }
    }
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
            state.everyone += 1;
            std::mem::take(&mut state.wakers)
        };
        wakers.into_values().for_each(|(_, waker)| waker.wake());
    }

    /// Wakes the listeners of these topics, and those of all topics.
    pub fn raise_for<'a>(&self, topics: impl IntoIterator<Item = &'a str>) {
        let woken: Vec<Waker> = {
            let mut state = self.state();
            state.raised += 1;
            let mut raised = BTreeSet::new();
            for topic in topics {
                raised.insert(topic);
                match state.topics.get_mut(topic) {
                    Some(count) => *count += 1,
                    None => {
                        state.topics.insert(topic.to_owned(), 1);
                    }
                }
            }
            let concerned = |topics: &Option<Vec<String>>| {
                topics
                    .as_ref()
                    .is_none_or(|topics| topics.iter().any(|topic| raised.contains(topic.as_str())))
            };
            let ids: Vec<u64> =
                state.wakers.iter().filter(|(_, (topics, _))| concerned(topics)).map(|(id, _)| *id).collect();
            ids.iter().filter_map(|id| state.wakers.remove(id)).map(|(_, waker)| waker).collect()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// A new listener, which has seen everything up to now.
    pub fn listen(self: &Arc<Self>) -> Listener {
        self.listener(None)
    }

    /// As [`Self::listen`], for some topics.
    pub fn listen_to(self: &Arc<Self>, topics: &[&str]) -> Listener {
        self.listener(Some(topics.iter().map(|topic| (*topic).to_owned()).collect()))
    }

    fn listener(self: &Arc<Self>, topics: Option<Vec<String>>) -> Listener {
        let mut state = self.state();
        state.next += 1;
        let seen = state.count(topics.as_deref());
        Listener { signal: Arc::clone(self), id: state.next, topics, seen }
    }
}

/// One follower of a [`Signal`].
#[derive(Debug)]
pub struct Listener {
    signal: Arc<Signal>,
    id: u64,
    topics: Option<Vec<String>>,
    seen: u64,
}

impl Listener {
    /// Ready when the signal was raised since the last time this was ready; otherwise wakes `context` when it is.
    pub fn poll_raised(&mut self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.signal.state();
        let count = state.count(self.topics.as_deref());
        if count != self.seen {
            self.seen = count;
            return Poll::Ready(());
        }
        state.wakers.insert(self.id, (self.topics.clone(), context.waker().clone()));
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
    fn a_listener_of_a_topic_hears_of_it_and_of_what_is_for_everyone() {
        let signal = Arc::new(Signal::default());
        let (mut pods, mut nodes, mut all) =
            (signal.listen_to(&["pods"]), signal.listen_to(&["nodes"]), signal.listen());
        let mut heard = |pods: &mut Listener| {
            [pods, &mut nodes, &mut all].map(|listener| listener.raised().now_or_never().is_some())
        };
        assert_eq!(heard(&mut pods), [false, false, false]);
        signal.raise_for(["pods", "leases"]);
        assert_eq!(heard(&mut pods), [true, false, true]);
        assert_eq!(heard(&mut pods), [false, false, false]);
        signal.raise();
        assert_eq!(heard(&mut pods), [true, true, true]);
        signal.raise_for(["pods"]);
        assert_eq!(signal.listen_to(&["pods"]).raised().now_or_never(), None);
        assert_eq!(heard(&mut pods), [true, false, true]);
        let mut either = signal.listen_to(&["services", "pods"]);
        for (topic, expected) in [("pods", Some(())), ("nodes", None), ("services", Some(()))] {
            assert_eq!(either.raised().now_or_never(), None);
            signal.raise_for([topic]);
            assert_eq!(either.raised().now_or_never(), expected, "{topic}");
        }
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
