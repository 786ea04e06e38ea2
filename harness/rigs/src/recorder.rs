//! Records what the API server shows: every version of every object, from lists and watches, and pulses that bound
//! when each write can have happened.
//!
//! A stream that is lost is a `Gap`, followed by new lists and `Synced`. A watch that the server ends in an
//! orderly way goes on from the last resourceVersion, without a gap, because nothing can be missed. A stream may be
//! several lists and watches; they are lost and found again together, since a list is taken for all that there is.

mod source;
#[cfg(test)]
mod tests;

use crate::clock::Clock;
use crate::streams::Feed;
use futures_util::future::select_all;
use rigor_trace::Fact;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use source::Source;
use source::{Lost, version_of};

/// The running recorder; it stops when dropped.
#[derive(Debug)]
pub(crate) struct Recorder {
    source: Source,
    first: Arc<watch::Sender<usize>>,
    tasks: Vec<JoinHandle<()>>,
    /// How many streams have not given their first list.
    unsynced: watch::Receiver<usize>,
}

impl Recorder {
    /// Starts listing and watching.
    pub(crate) fn start(runtime: &Handle, source: Source, feeds: &[Feed]) -> Self {
        let first = watch::Sender::new(feeds.len());
        let unsynced = first.subscribe();
        let first = Arc::new(first);
        let mut tasks: Vec<_> = feeds
            .iter()
            .map(|feed| runtime.spawn(follow(source.clone(), feed.clone(), first.clone())))
            .collect();
        tasks.push(runtime.spawn(pulse(source.clone())));
        Self { source, first, tasks, unsynced }
    }

    /// Watches one more stream from now on.
    pub(crate) fn add(&mut self, runtime: &Handle, feed: Feed) {
        self.first.send_modify(|unsynced| *unsynced += 1);
        self.tasks.push(runtime.spawn(follow(self.source.clone(), feed, self.first.clone())));
    }

    /// Waits until every stream has given its first list; `false` when that takes longer than `limit`.
    pub(crate) fn wait_synced(&self, runtime: &Handle, limit: Duration) -> bool {
        let mut unsynced = self.unsynced.clone();
        runtime.block_on(async {
            let synced = unsynced.wait_for(|count| *count == 0);
            tokio::time::timeout(limit, synced).await.is_ok_and(|outcome| outcome.is_ok())
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn follow(source: Source, feed: Feed, first: Arc<watch::Sender<usize>>) {
    let stream = feed.stream.as_str();
    let mut counted = false;
    let mut count = |first: &watch::Sender<usize>| {
        if !counted {
            counted = true;
            first.send_modify(|unsynced| *unsynced -= 1);
        }
    };
    loop {
        let mut watched = Vec::new();
        let mut lost = false;
        for path in &feed.paths {
            match source.list(stream, path).await {
                Ok(version) => watched.push((path.as_str(), version)),
                Err(Lost::NotServed) => {}
                Err(Lost::Orderly(_) | Lost::Blind(_)) => {
                    lost = true;
                    break;
                }
            }
        }
        if lost {
            Clock::pause(source.retry).await;
            continue;
        }
        if watched.is_empty() {
            return count(&first);
        }
        source.ledger.note(Fact::Synced { stream: stream.to_owned() });
        count(&first);
        let watches =
            watched.into_iter().map(|(path, version)| Box::pin(source.keep_watching(stream, path, version)));
        let (reason, ..) = select_all(watches).await;
        source.ledger.note(Fact::Gap { stream: stream.to_owned(), reason });
    }
}

async fn pulse(source: Source) {
    loop {
        let sent = source.ledger.now();
        let answer = source.get(source.pulse_path.clone());
        if let Ok(Ok(list)) = tokio::time::timeout(source.pulse * 10, answer).await
            && let Some(resource_version) = version_of(&list).and_then(|version| version.parse().ok())
        {
            source.ledger.note(Fact::Pulse { sent, resource_version });
        }
        Clock::pause(source.pulse).await;
    }
}
