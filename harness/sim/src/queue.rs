//! The queue of everything that is still to happen, in exact order of virtual time.
//!
//! Two events of one microsecond run in the order in which they were put in; nothing here knows a real clock.
//! The count of events taken so far numbers them, so that a panic can name the event that caused it.

use std::collections::BTreeMap;

/// Events by instant in microseconds, then by order of insertion.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    waiting: BTreeMap<(u64, u64), E>,
    pushed: u64,
    taken: u64,
}

impl<E> Queue<E> {
    /// A queue in which nothing is to happen.
    pub(crate) fn new() -> Self {
        Self { waiting: BTreeMap::new(), pushed: 0, taken: 0 }
    }

    /// Puts in an event that happens at `at` microseconds.
    pub(crate) fn push(&mut self, at: u64, event: E) {
        self.waiting.insert((at, self.pushed), event);
        self.pushed += 1;
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next event if it happens at `until` or before.
    pub(crate) fn pop(&mut self, until: u64) -> Option<(u64, E)> {
        if self.next_at()? > until {
            return None;
        }
        let ((at, _), event) = self.waiting.pop_first()?;
        self.taken += 1;
        Some((at, event))
    }

    /// How many events were taken so far: the number of the event that is running.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;

    #[test]
    fn events_come_by_instant_and_then_in_the_order_they_were_put_in() {
        let mut queue = Queue::new();
        for (at, name) in [(5, "late"), (3, "first of 3"), (3, "second of 3"), (1, "early")] {
            queue.push(at, name);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(4)).collect();
        assert_eq!(order, [(1, "early"), (3, "first of 3"), (3, "second of 3")]);
        assert_eq!((queue.next_at(), queue.taken()), (Some(5), 3));
        assert_eq!(queue.pop(5), Some((5, "late")));
        assert_eq!(queue.pop(u64::MAX), None);
    }
}
