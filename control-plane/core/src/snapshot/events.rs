//! How long ago each Event was last written, which decides when it goes.
//!
//! Counted on the monotonic clock from the accepted write, whatever its stamps say. Of one that was in the store when the process
//! started only the stamps tell: the newest of them counts, and one that has none, or tells of a time to come, counts from the
//! start.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::Key;
use crate::json;
use crate::time::{self, Now};

/// Where an Event says when it happened.
const STAMPS: [&[&str]; 4] =
    [&["lastTimestamp"], &["series", "lastObservedTime"], &["eventTime"], &["metadata", "creationTimestamp"]];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    /// An instant on the monotonic clock.
    at: Duration,
    /// How old the Event was then.
    age: Duration,
}

/// Events by the instants of their last writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Events {
    written: BTreeMap<Key, Written>,
}

impl Events {
    /// The Events whose last write is at least `age` ago.
    pub(super) fn older_than(&self, age: Duration, now: Duration) -> impl Iterator<Item = &Key> + use<'_> {
        let is_over = move |it: &Written| it.age + now.saturating_sub(it.at) >= age;
        self.written.iter().filter(move |(_, it)| is_over(it)).map(|(key, _)| key)
    }

    /// Takes in an accepted write.
    pub(super) fn observe(&mut self, key: &Key, new: Option<&Value>, now: &Now) {
        match new {
            Some(_) => self.written.insert(key.clone(), Written { at: now.mono, age: Duration::ZERO }),
            None => self.written.remove(key),
        };
    }

    /// Takes in an Event that was in the store when the process started.
    pub(super) fn restore(&mut self, key: &Key, event: &Value, now: &Now) {
        let stamps = STAMPS.iter().filter_map(|path| time::parse(json::text(event, path)?));
        let age = stamps.max().map_or(Duration::ZERO, |stamp| time::elapsed(now.wall, stamp));
        self.written.insert(key.clone(), Written { at: now.mono, age });
    }
}
