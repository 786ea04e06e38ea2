//! The local copy of what etcd holds, and the task that keeps it current from etcd's watch.
//!
//! The watch covers the whole key space of etcd, not only the prefix: every revision is then seen, also one at which somebody
//! else wrote, so that "my copy has reached revision R" is known without progress notifications (those of etcd before 3.4.25
//! may run ahead of the events they stand for). When the stream breaks, it goes on after the last revision that was seen;
//! when etcd has compacted that one, everything is read anew and followers get to know that the history begins there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::client::{CallError, Client};
use super::layout::{Layout, Place, decode};
use super::proto::{Event, KeyValue, RangeRequest, WatchResponse, signed, unsigned};
use crate::clock::pause;
use crate::store::table::{Table, at_revision};
use crate::store::{Change, Effect, Entry, Key, Signal};

/// Keys that are read in one piece.
const PAGE: i64 = 1000;
/// Pauses between attempts to reach etcd again.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// Objects, their history, and marks, all as of one revision.
#[derive(Debug)]
pub struct Copy {
    pub table: Table,
    /// When each mark was last written.
    pub marks: BTreeMap<String, u64>,
    /// Keys in the place of objects whose values are none.
    pub unreadable: BTreeSet<Key>,
}

/// What the store, its fenced views and its task share.
#[derive(Debug)]
pub struct Shared {
    pub client: Client,
    pub layout: Layout,
    pub history: usize,
    pub signal: Arc<Signal>,
    /// Transactions of this process that wrote.
    pub writes: AtomicU64,
    copy: Mutex<Copy>,
    reached: watch::Sender<u64>,
}

impl Shared {
    /// Reads everything, as far back as the history is to reach where etcd still knows it.
    ///
    /// # Errors
    /// When etcd does not answer.
    pub async fn load(client: Client, layout: Layout, history: usize) -> Result<(Self, u64), CallError> {
        let newest = newest(&client, &layout).await?;
        let earlier = newest.saturating_sub(history as u64).max(1);
        let loaded = match load(&client, &layout, earlier).await {
            Err(CallError::Compacted) => load(&client, &layout, newest).await?,
            loaded => loaded?,
        };
        let (revision, objects, marks, unreadable) = loaded;
        let copy = Copy { table: Table::new(revision, objects, history), marks, unreadable };
        let reached = watch::Sender::new(revision);
        let shared = Self {
            client,
            layout,
            history,
            signal: Arc::default(),
            writes: AtomicU64::new(0),
            copy: Mutex::new(copy),
            reached,
        };
        Ok((shared, newest))
    }

    pub fn copy(&self) -> MutexGuard<'_, Copy> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the copy has reached a revision.
    pub async fn reach(&self, revision: u64) {
        let mut reached = self.reached.subscribe();
        // The sender lives as long as `self`.
        drop(reached.wait_for(|reached| *reached >= revision).await);
    }

    /// Follows etcd for ever.
    pub async fn follow(self: Arc<Self>) {
        let mut break_off = FIRST_PAUSE;
        loop {
            match self.follow_once(&mut break_off).await {
                CallError::Compacted => self.read_anew().await,
                error => {
                    tracing::warn!(%error, "the watch of etcd ended; trying again");
                    pause(break_off).await;
                    break_off = (break_off * 2).min(LAST_PAUSE);
                }
            }
        }
    }

    async fn follow_once(&self, break_off: &mut Duration) -> CallError {
        let next = self.copy().table.revision() + 1;
        let mut stream = match self.client.watch(signed(next)).await {
            Ok(stream) => stream,
            Err(error) => return error,
        };
        loop {
            match stream.message().await {
                Ok(Some(response)) if response.compact_revision != 0 => return CallError::Compacted,
                Ok(Some(response)) if response.canceled => return CallError::Lost(response.cancel_reason),
                Ok(Some(response)) => {
                    *break_off = FIRST_PAUSE;
                    self.take_in(response);
                }
                Ok(None) => return CallError::Lost("the stream ended".into()),
                Err(status) => return status.into(),
            }
        }
    }

    fn take_in(&self, response: WatchResponse) {
        let Some(last) = response.events.last().and_then(|event| event.kv.as_ref()) else { return };
        let revision = unsigned(last.mod_revision);
        {
            let mut copy = self.copy();
            let seen = copy.table.revision();
            let news = |event: &Event| event.kv.as_ref().is_some_and(|kv| unsigned(kv.mod_revision) > seen);
            for event in response.events.into_iter().filter(news) {
                self.apply(&mut copy, event);
            }
            copy.table.advance(revision);
        }
        self.signal.raise();
        self.reached.send_replace(revision);
    }

    fn apply(&self, copy: &mut Copy, event: Event) {
        let Some(kv) = event.kv else { return };
        let revision = unsigned(kv.mod_revision);
        let key = match self.layout.place(&kv.key) {
            Place::Object(key) => key,
            Place::Mark(name) => {
                match event.kind {
                    0 => copy.marks.insert(name, revision),
                    _ => copy.marks.remove(&name),
                };
                return;
            }
            Place::Foreign => return,
        };
        let previous = copy.table.get(&key).cloned();
        let put = if event.kind == 0 { decode(&kv.value, revision) } else { None };
        if event.kind == 0 && put.is_none() {
            tracing::error!(?key, "somebody wrote what is no JSON object; it is taken for removed");
            copy.unreadable.insert(key.clone());
        } else {
            copy.unreadable.remove(&key);
        }
        let effect = match (put, &previous) {
            (Some(entry), _) => Effect::Put(entry),
            (None, Some(previous)) => {
                let last = at_revision((*previous.object).clone(), revision);
                Effect::Deleted(Entry::new(revision, Arc::new(last)))
            }
            (None, None) => return,
        };
        copy.table.apply(Change { revision, key, previous, effect });
    }

    /// Reads everything again where the watch cannot go on.
    async fn read_anew(&self) {
        let mut break_off = FIRST_PAUSE;
        loop {
            let loaded = match newest(&self.client, &self.layout).await {
                Ok(newest) => load(&self.client, &self.layout, newest).await,
                Err(error) => Err(error),
            };
            match loaded {
                Ok((revision, objects, marks, unreadable)) => {
                    let table = Table::new(revision, objects, self.history);
                    *self.copy() = Copy { table, marks, unreadable };
                    self.signal.raise();
                    self.reached.send_replace(revision);
                    tracing::warn!(revision, "etcd had compacted what came next: everything was read anew");
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "etcd cannot be read; trying again");
                    pause(break_off).await;
                    break_off = (break_off * 2).min(LAST_PAUSE);
                }
            }
        }
    }
}

/// The newest revision of etcd as its members agree on it: every write acknowledged before is at or before it.
pub async fn newest(client: &Client, layout: &Layout) -> Result<u64, CallError> {
    let request =
        RangeRequest { key: layout.mark("none").into(), keys_only: true, ..RangeRequest::default() };
    let response = client.range(request).await?;
    Ok(response.header.map_or(0, |header| unsigned(header.revision)))
}

/// All keys of a range at a revision, in pieces.
pub async fn read_range(
    client: &Client,
    range: (Vec<u8>, Vec<u8>),
    revision: u64,
) -> Result<Vec<KeyValue>, CallError> {
    let (mut key, range_end) = range;
    let mut all = Vec::new();
    loop {
        let request = RangeRequest {
            key: key.clone(),
            range_end: range_end.clone(),
            limit: PAGE,
            revision: signed(revision),
            keys_only: false,
        };
        let response = client.range(request).await?;
        let more = response.more;
        all.extend(response.kvs);
        match all.last() {
            Some(last) if more => {
                key.clone_from(&last.key);
                key.push(0);
            }
            _ => return Ok(all),
        }
    }
}

type Loaded = (u64, BTreeMap<Key, Entry>, BTreeMap<String, u64>, BTreeSet<Key>);

async fn load(client: &Client, layout: &Layout, revision: u64) -> Result<Loaded, CallError> {
    let (mut objects, mut marks, mut unreadable) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for kv in read_range(client, layout.range(), revision).await? {
        let written = unsigned(kv.mod_revision);
        match layout.place(&kv.key) {
            Place::Object(key) => match decode(&kv.value, written) {
                Some(entry) => drop(objects.insert(key, entry)),
                None => drop(unreadable.insert(key)),
            },
            Place::Mark(name) => {
                marks.insert(name, written);
            }
            Place::Foreign => {}
        }
    }
    Ok((revision, objects, marks, unreadable))
}
