//! Records what the API server shows: every version of every object, from lists and watches, and pulses that bound
//! when each write can have happened.
//!
//! A stream that is lost is a `Gap`, followed by a new list and `Synced`. A watch that the server ends in an
//! orderly way goes on from the last resourceVersion, without a gap, because nothing can be missed.

use crate::clock::Clock;
use crate::ledger::Ledger;
use reqwest::Client;
use rigor_trace::{Fact, Verb};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What is watched: the stream's name and where its collection is. One that is not served is left out.
const STREAMS: [(&str, &str); 14] = [
    ("configmaps", "/api/v1/configmaps"),
    ("daemonsets", "/apis/apps/v1/daemonsets"),
    ("deployments", "/apis/apps/v1/deployments"),
    ("endpoints", "/api/v1/endpoints"),
    ("events", "/api/v1/events"),
    ("jobs", "/apis/batch/v1/jobs"),
    ("leases", "/apis/coordination.k8s.io/v1/leases"),
    ("namespaces", "/api/v1/namespaces"),
    ("nodes", "/api/v1/nodes"),
    ("pods", "/api/v1/pods"),
    ("replicasets", "/apis/apps/v1/replicasets"),
    ("secrets", "/api/v1/secrets"),
    ("serviceaccounts", "/api/v1/serviceaccounts"),
    ("services", "/api/v1/services"),
];

/// How often the server's resourceVersion is asked for.
const PULSE: Duration = Duration::from_millis(100);

/// Between two attempts while the server is away.
const RETRY: Duration = Duration::from_millis(20);

/// Longest wait for an answer that is not a watch.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How often the server is asked to end a watch and let it be taken up anew, in seconds.
const WATCH_SECONDS: u32 = 3600;

/// The running recorder; it stops when dropped.
#[derive(Debug)]
pub(crate) struct Recorder {
    tasks: Vec<JoinHandle<()>>,
    /// How many streams have not given their first list.
    unsynced: watch::Receiver<usize>,
}

#[derive(Clone)]
struct Source {
    client: Client,
    base: String,
    token: String,
    ledger: Arc<Ledger>,
}

impl Recorder {
    /// Starts watching `base` (`http://ADDR:PORT`) with the administrator's token.
    pub(crate) fn start(
        runtime: &Handle,
        client: Client,
        base: &str,
        token: &str,
        ledger: Arc<Ledger>,
    ) -> Self {
        let source = Source { client, base: base.to_owned(), token: token.to_owned(), ledger };
        let first = watch::Sender::new(STREAMS.len());
        let unsynced = first.subscribe();
        let first = Arc::new(first);
        let mut tasks: Vec<_> = STREAMS
            .iter()
            .map(|(stream, path)| runtime.spawn(follow(source.clone(), stream, path, first.clone())))
            .collect();
        tasks.push(runtime.spawn(pulse(source)));
        Self { tasks, unsynced }
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

/// How a list or watch came to its end.
enum Lost {
    /// The resource is not served.
    NotServed,
    /// The watch was ended in an orderly way; it can go on from this resourceVersion.
    Orderly(String),
    /// What was missed is not known.
    Blind(String),
}

async fn follow(source: Source, stream: &str, path: &str, first: Arc<watch::Sender<usize>>) {
    let mut counted = false;
    let mut count = |first: &watch::Sender<usize>| {
        if !counted {
            counted = true;
            first.send_modify(|unsynced| *unsynced -= 1);
        }
    };
    loop {
        let mut version = match source.list(stream, path).await {
            Ok(version) => version,
            Err(Lost::NotServed) => return count(&first),
            Err(Lost::Orderly(_) | Lost::Blind(_)) => {
                Clock::pause(RETRY).await;
                continue;
            }
        };
        source.ledger.note(Fact::Synced { stream: stream.to_owned() });
        count(&first);
        let reason = loop {
            match source.watch(stream, path, &version).await {
                Lost::Orderly(last) if last != version => version = last,
                // An empty watch that ends at once would be asked for without pause.
                Lost::Orderly(_) => Clock::pause(RETRY).await,
                Lost::Blind(reason) => break reason,
                Lost::NotServed => break "the resource is no longer served".to_owned(),
            }
        };
        source.ledger.note(Fact::Gap { stream: stream.to_owned(), reason });
    }
}

async fn pulse(source: Source) {
    loop {
        let sent = source.ledger.now();
        if let Ok(Ok(list)) = tokio::time::timeout(PULSE * 10, source.get("/api/v1/namespaces?limit=1")).await
            && let Some(resource_version) = version_of(&list).and_then(|version| version.parse().ok())
        {
            source.ledger.note(Fact::Pulse { sent, resource_version });
        }
        Clock::pause(PULSE).await;
    }
}

impl Source {
    async fn list(&self, stream: &str, path: &str) -> Result<String, Lost> {
        let mut list = tokio::time::timeout(ANSWER_LIMIT, self.get(path))
            .await
            .map_err(|_| Lost::Blind("no answer to a list".to_owned()))??;
        let version = version_of(&list)
            .map(str::to_owned)
            .ok_or_else(|| Lost::Blind("a list without version".to_owned()))?;
        let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
        let api_version = list["apiVersion"].clone();
        if let Value::Array(items) = list["items"].take() {
            for mut object in items {
                // Items of a list carry neither; a watch's objects do.
                if let (Some(fields), Some(kind)) = (object.as_object_mut(), &kind) {
                    fields.entry("kind").or_insert_with(|| kind.as_str().into());
                    fields.entry("apiVersion").or_insert_with(|| api_version.clone());
                }
                self.ledger.note(Fact::Object { stream: stream.to_owned(), verb: Verb::Listed, object });
            }
        }
        Ok(version)
    }

    async fn get(&self, path: &str) -> Result<Value, Lost> {
        let blind = |error: reqwest::Error| Lost::Blind(reason(&error));
        let response = self
            .client
            .get(format!("{}{path}", self.base))
            .bearer_auth(&self.token)
            .send()
            .await
            .map_err(blind)?;
        match response.status().as_u16() {
            200 => response.json().await.map_err(blind),
            404 => Err(Lost::NotServed),
            status => Err(Lost::Blind(format!("status {status}"))),
        }
    }

    /// Notes what comes until the watch ends.
    async fn watch(&self, stream: &str, path: &str, version: &str) -> Lost {
        let query = format!(
            "{}{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}",
            self.base
        );
        let mut response = match self.client.get(query).bearer_auth(&self.token).send().await {
            Ok(response) if response.status().as_u16() == 200 => response,
            Ok(response) => return Lost::Blind(format!("status {} to a watch", response.status().as_u16())),
            Err(error) => return Lost::Blind(reason(&error)),
        };
        let mut lines = Lines::default();
        let mut last = version.to_owned();
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    for line in lines.feed(&bytes) {
                        if let Err(lost) = self.event(stream, &line, &mut last) {
                            return Lost::Blind(lost);
                        }
                    }
                }
                Ok(None) => return Lost::Orderly(last),
                Err(error) => return Lost::Blind(reason(&error)),
            }
        }
    }

    fn event(&self, stream: &str, line: &[u8], last: &mut String) -> Result<(), String> {
        let mut event: Value =
            serde_json::from_slice(line).map_err(|error| format!("a watch line: {error}"))?;
        let object = event["object"].take();
        let verb = match event["type"].as_str() {
            Some("ADDED") => Verb::Added,
            Some("MODIFIED") => Verb::Modified,
            Some("DELETED") => Verb::Deleted,
            Some("BOOKMARK") => {
                keep_version(&object, last);
                return Ok(());
            }
            Some("ERROR") => {
                return Err(format!("error in the watch: {}", object["message"].as_str().unwrap_or("?")));
            }
            other => return Err(format!("a watch event of type {other:?}")),
        };
        keep_version(&object, last);
        self.ledger.note(Fact::Object { stream: stream.to_owned(), verb, object });
        Ok(())
    }
}

fn keep_version(object: &Value, last: &mut String) {
    if let Some(version) = version_of(object) {
        version.clone_into(last);
    }
}

fn version_of(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}

/// The innermost cause, which says more than "error sending request".
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Splits a byte stream at line ends.
#[derive(Debug, Default)]
struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.pending.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            if !line.trim_ascii().is_empty() {
                lines.push(line);
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_the_bytes_are_split() {
        let stream = b"{\"a\":1}\n\n{\"b\":\"\xc3\xa4\"}\r\n{\"c\"";
        for size in 1..=stream.len() {
            let mut lines = Lines::default();
            let whole: Vec<Vec<u8>> = stream.chunks(size).flat_map(|piece| lines.feed(piece)).collect();
            assert_eq!(
                whole,
                [b"{\"a\":1}\n".to_vec(), b"{\"b\":\"\xc3\xa4\"}\r\n".to_vec()],
                "in pieces of {size}"
            );
            assert_eq!(lines.pending, b"{\"c\"");
        }
    }
}
