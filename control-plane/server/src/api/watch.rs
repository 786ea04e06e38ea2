//! Watches: response bodies that follow the store with a cursor of their own.
//!
//! A body never waits for a timer. It yields what the history holds, then waits for the store's signal; the end of its time and
//! its bookmarks are decided by [`Watches::fire`], which `reconcile` calls at the due instants. A client that reads slowly
//! holds no queue: when the history has moved past its cursor it gets a 410 and lists again.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use control_plane_api::ApiError;
use http_body::{Body, Frame};
use prometheus::IntCounter;
use serde_json::{Value, json};

use super::filter::Filter;
use super::view::View;
use crate::store::{Change, Effect, Entry, Listener, Signal, Store, StoreError};

/// How long a watch lasts when the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// How often a client that likes bookmarks gets one.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// So long before the end of a watch it gets its last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// So many bytes of lines, and one more line, are made before the client has taken them: a slow one holds no more.
const AT_ONCE: usize = 64 * 1024;

#[derive(Debug)]
struct Timer {
    end: Duration,
    bookmark: Option<Duration>,
    bookmark_due: bool,
    ended: bool,
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    timers: BTreeMap<u64, Timer>,
    /// The process is ending: a watch that opens now ends at once.
    ending: bool,
}

/// The instants at which open watches have something to do.
#[derive(Debug, Default)]
pub struct Watches {
    state: Mutex<State>,
    /// Raised when a watch opens, whose instants may be earlier than those known before.
    opened: Arc<Signal>,
}

impl Watches {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, end: Duration, bookmark: Option<Duration>) -> (u64, Listener) {
        let signal = Arc::new(Signal::default());
        let listener = signal.listen();
        let id = {
            let mut state = self.state();
            state.next += 1;
            let (id, ended) = (state.next, state.ending);
            state.timers.insert(id, Timer { end, bookmark, bookmark_due: false, ended, signal });
            id
        };
        self.opened.raise();
        (id, listener)
    }

    /// Raised when a watch opens.
    pub fn opened(&self) -> &Arc<Signal> {
        &self.opened
    }

    /// Ends watches whose time is up and makes bookmarks due; answers the next instant at which to be called.
    pub fn fire(&self, now: Duration) -> Option<Duration> {
        let mut state = self.state();
        for timer in state.timers.values_mut() {
            let mut wake = false;
            if timer.bookmark.is_some_and(|due| due <= now) {
                timer.bookmark_due = true;
                wake = true;
                let next = (now + BOOKMARK_PERIOD).min(timer.end.saturating_sub(LAST_BOOKMARK));
                timer.bookmark = (next > now).then_some(next);
            }
            if timer.end <= now && !timer.ended {
                timer.ended = true;
                wake = true;
            }
            if wake {
                timer.signal.raise();
            }
        }
        let open = state.timers.values().filter(|timer| !timer.ended);
        open.map(|timer| timer.bookmark.map_or(timer.end, |bookmark| bookmark.min(timer.end))).min()
    }

    /// Ends every watch, for a clean end of the process: also those that clients open when theirs has ended.
    pub fn end_all(&self) {
        let mut state = self.state();
        state.ending = true;
        for timer in state.timers.values_mut() {
            timer.ended = true;
            timer.signal.raise();
        }
    }

    /// Whether a bookmark is due (taken once) and whether the watch has ended.
    fn take(&self, id: u64) -> (bool, bool) {
        match self.state().timers.get_mut(&id) {
            Some(timer) => (std::mem::take(&mut timer.bookmark_due), timer.ended),
            None => (false, true),
        }
    }
}

/// Which changes of which objects a watch shows, and how.
pub struct Subject {
    /// Which objects.
    pub filter: Filter,
    /// How they are shown.
    pub view: View,
    /// Counts the lines that are sent.
    pub sent: IntCounter,
}

/// The body of a watch's response.
pub struct WatchBody {
    subject: Subject,
    store: Arc<dyn Store>,
    watches: Arc<Watches>,
    id: u64,
    timer: Listener,
    changes: Listener,
    /// Lines to send before any change.
    ready: Vec<u8>,
    /// The last revision that was looked at.
    cursor: u64,
    /// A table's columns were sent, which is done once.
    headed: bool,
    done: bool,
}

impl WatchBody {
    /// A watch of what happens after `cursor`, that first sends `existing` as additions and, when `mark` is set, the bookmark
    /// that says they are complete.
    #[expect(clippy::too_many_arguments, reason = "each is one independent choice of the request")]
    pub fn start(
        subject: Subject,
        store: Arc<dyn Store>,
        watches: Arc<Watches>,
        now: Duration,
        timeout: Option<Duration>,
        bookmarks: bool,
        existing: &[Entry],
        cursor: u64,
        mark: bool,
    ) -> Self {
        let end = now.saturating_add(timeout.unwrap_or(DEFAULT_TIMEOUT));
        let last = end.saturating_sub(LAST_BOOKMARK);
        let bookmark = bookmarks.then_some((now + BOOKMARK_PERIOD).min(last)).filter(|due| *due > now);
        let (id, timer) = watches.open(end, bookmark);
        let changes = store.listen(subject.filter.scope().resource);
        let mut body = Self {
            subject,
            store,
            watches,
            id,
            timer,
            changes,
            ready: Vec::new(),
            cursor,
            headed: false,
            done: false,
        };
        for entry in existing {
            body.entry("ADDED", entry);
        }
        if mark {
            let bookmark = body.subject.view.bookmark(cursor, true);
            body.line("BOOKMARK", &bookmark);
        }
        body
    }

    /// A watch that says only why it cannot be had: watches report this inside a 200.
    pub fn refusal(error: &ApiError) -> Bytes {
        line("ERROR", &error.to_status()).into()
    }

    /// An object as this watch shows it.
    fn shown(&mut self, object: &Value) -> Value {
        let mut shown = self.subject.view.watched(object);
        let headed = std::mem::replace(&mut self.headed, true);
        if headed && let Some(columns) = shown.get_mut("columnDefinitions") {
            *columns = Value::Null;
        }
        shown
    }

    fn line(&mut self, kind: &str, object: &Value) {
        self.subject.sent.inc();
        self.ready.extend(line(kind, object));
    }

    /// A line about a stored version; its text is shared with everyone else who shows it as it is stored.
    fn entry(&mut self, kind: &str, entry: &Entry) {
        if !self.subject.view.is_stored_form() {
            let shown = self.shown(&entry.object);
            return self.line(kind, &shown);
        }
        self.subject.sent.inc();
        let text = entry.text();
        self.ready.reserve(text.len() + kind.len() + 24);
        for part in [&b"{\"type\":\""[..], kind.as_bytes(), b"\",\"object\":", &text, b"}\n"] {
            self.ready.extend_from_slice(part);
        }
    }

    /// Takes in what the history holds after the cursor, up to as much as is sent at once. Answers whether that was all.
    fn catch_up(&mut self) -> bool {
        // Revisions at which nothing of interest was written count as seen too: bookmarks say so.
        let reached = self.store.revision();
        match self.store.changes(self.cursor) {
            Ok(changes) => {
                for change in changes {
                    // What one write changed is told as a whole, since the cursor stands behind all of it.
                    if self.ready.len() >= AT_ONCE && change.revision > self.cursor {
                        return false;
                    }
                    self.cursor = change.revision;
                    if let Some((kind, entry)) = self.subject.filter.transition(&change) {
                        self.entry(kind, &entry);
                    }
                }
                self.cursor = self.cursor.max(reached);
            }
            Err(error) => {
                let error = match error {
                    StoreError::Compacted { asked, oldest } => ApiError::too_old(asked, oldest),
                    other @ (StoreError::Exists
                    | StoreError::Conflict { .. }
                    | StoreError::Unavailable(_)
                    | StoreError::Uncertain(_)
                    | StoreError::Deposed) => ApiError::internal(&other.to_string()),
                };
                self.line("ERROR", &error.to_status());
                self.done = true;
            }
        }
        true
    }
}

impl Filter {
    /// Whether a watch tells of a change.
    pub fn shows(&self, change: &Change) -> bool {
        self.transition(change).is_some()
    }

    /// What a change is to someone who sees only what this filter lets through.
    fn transition(&self, change: &Change) -> Option<(&'static str, Entry)> {
        if !self.covers(&change.key) {
            return None;
        }
        let before = change.previous.as_ref().filter(|previous| self.selects(&previous.object));
        match (&change.effect, before) {
            (Effect::Put(entry), None) if self.selects(&entry.object) => Some(("ADDED", entry.clone())),
            (Effect::Put(entry), Some(_)) if self.selects(&entry.object) => Some(("MODIFIED", entry.clone())),
            (Effect::Put(_), None) | (Effect::Deleted(_), None) => None,
            // It no longer matches: what it was, at the revision of the change.
            (Effect::Put(_), Some(before)) => {
                let mut object = (*before.object).clone();
                object["metadata"]["resourceVersion"] = json!(change.revision.to_string());
                Some(("DELETED", Entry::new(change.revision, Arc::new(object))))
            }
            (Effect::Deleted(entry), Some(_)) => Some(("DELETED", entry.clone())),
        }
    }
}

fn line(kind: &str, object: &Value) -> Vec<u8> {
    let mut text = format!("{{\"type\":\"{kind}\",\"object\":{object}}}").into_bytes();
    text.push(b'\n');
    text
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            // Listeners first: what happens from here on wakes this task.
            let raised =
                self.timer.poll_raised(context).is_ready() | self.changes.poll_raised(context).is_ready();
            if !self.done && self.catch_up() {
                let (bookmark, ended) = self.watches.take(self.id);
                if bookmark && !self.done {
                    let bookmark = self.subject.view.bookmark(self.cursor, false);
                    self.line("BOOKMARK", &bookmark);
                }
                self.done |= ended;
            }
            if !self.ready.is_empty() {
                let lines = std::mem::take(&mut self.ready);
                return Poll::Ready(Some(Ok(Frame::data(lines.into()))));
            }
            if self.done {
                return Poll::Ready(None);
            }
            if !raised {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        self.watches.state().timers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_end_open_watches_and_those_opened_afterwards_end() {
        let watches = Watches::default();
        let end = Duration::from_secs(60);
        let (before, _listener) = watches.open(end, None);
        assert_eq!(watches.take(before), (false, false));
        watches.end_all();
        let (after, _listener) = watches.open(end, None);
        assert_eq!((watches.take(before), watches.take(after)), ((false, true), (false, true)));
        assert_eq!(watches.fire(Duration::ZERO), None);
    }
}
