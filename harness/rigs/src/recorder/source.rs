//! Whom the recorder asks, and how it lists and watches there. What is seen is noted at once.

use crate::clock::Clock;
use crate::http;
use crate::ledger::Ledger;
use crate::world::Infra;
use futures_util::future::BoxFuture;
use reqwest::{Client, Response};
use rigor_trace::{Fact, Verb};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for an answer that is not a watch.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How often the server is asked to end a watch and let it be taken up anew, in seconds.
const WATCH_SECONDS: u32 = 3600;

/// Asks for a path; the answer's body is not read yet. An error is why there is none.
type Ask = dyn Fn(String) -> BoxFuture<'static, Result<Response, String>> + Send + Sync;

/// Whether an object of a stream is to be recorded.
type Keep = dyn Fn(&str, &Value) -> bool + Send + Sync;

/// Whom the recorder asks, and how.
#[derive(Clone)]
pub(crate) struct Source {
    /// Asks for a path.
    pub(crate) ask: Arc<Ask>,
    /// Where facts go.
    pub(crate) ledger: Arc<Ledger>,
    /// What is recorded of what is seen.
    pub(crate) keep: Arc<Keep>,
    /// How often the server's resourceVersion is asked for.
    pub(crate) pulse: Duration,
    /// A list that tells it, and little else.
    pub(crate) pulse_path: String,
    /// Between two attempts while the server is away.
    pub(crate) retry: Duration,
    /// Longest page of a list, where lists may be long.
    pub(crate) page: Option<u32>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("pulse_path", &self.pulse_path).finish_non_exhaustive()
    }
}

impl Source {
    /// A server of the harness's own at `base` (`http://ADDR:PORT`): everything is recorded, and polling costs nobody.
    pub(crate) fn local(client: Client, base: &str, token: &str, ledger: Arc<Ledger>) -> Result<Self, Infra> {
        let base = base.to_owned();
        let proof = http::bearer(token).map_err(Infra::transient)?;
        let ask = move |path: String| -> BoxFuture<'static, Result<Response, String>> {
            let request = client.get(format!("{base}{path}")).headers(proof.clone());
            Box::pin(async move { request.send().await.map_err(|error| http::innermost(&error)) })
        };
        Ok(Self {
            ask: Arc::new(ask),
            ledger,
            keep: Arc::new(|_, _| true),
            pulse: Duration::from_millis(100),
            pulse_path: "/api/v1/namespaces?limit=1".to_owned(),
            retry: Duration::from_millis(20),
            page: None,
        })
    }
}

/// How a list or watch came to its end.
pub(super) enum Lost {
    /// The resource is not served.
    NotServed,
    /// The watch was ended in an orderly way; it can go on from this resourceVersion.
    Orderly(String),
    /// What was missed is not known.
    Blind(String),
}

/// A path with one more parameter of its query.
fn with(path: &str, parameter: &str) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}{parameter}")
}

impl Source {
    /// Notes all objects of a collection, page by page; the version is that of the first page, which is the one that
    /// all pages show.
    pub(super) async fn list(&self, stream: &str, path: &str) -> Result<String, Lost> {
        let paged = self.page.map_or_else(|| path.to_owned(), |limit| with(path, &format!("limit={limit}")));
        let mut next = paged.clone();
        let mut version = None;
        loop {
            let mut list = tokio::time::timeout(ANSWER_LIMIT, self.get(next))
                .await
                .map_err(|_| Lost::Blind("no answer to a list".to_owned()))??;
            if version.is_none() {
                version = version_of(&list).map(str::to_owned);
            }
            let token = list["metadata"]["continue"].as_str().filter(|token| !token.is_empty());
            let more = token.map(|token| with(&paged, &format!("continue={}", escaped(token))));
            self.note_items(stream, &mut list);
            match more {
                Some(more) => next = more,
                None => return version.ok_or_else(|| Lost::Blind("a list without version".to_owned())),
            }
        }
    }

    fn note_items(&self, stream: &str, list: &mut Value) {
        let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
        let api_version = list["apiVersion"].clone();
        let Value::Array(items) = list["items"].take() else { return };
        for mut object in items {
            // Items of a list carry neither; a watch's objects do.
            if let (Some(fields), Some(kind)) = (object.as_object_mut(), &kind) {
                fields.entry("kind").or_insert_with(|| kind.as_str().into());
                fields.entry("apiVersion").or_insert_with(|| api_version.clone());
            }
            self.note(stream, Verb::Listed, object);
        }
    }

    fn note(&self, stream: &str, verb: Verb, object: Value) {
        if (self.keep)(stream, &object) {
            self.ledger.note(Fact::Object { stream: stream.to_owned(), verb, object });
        }
    }

    pub(super) async fn get(&self, path: String) -> Result<Value, Lost> {
        let response = (self.ask)(path).await.map_err(Lost::Blind)?;
        match response.status().as_u16() {
            200 => response.json().await.map_err(|error| Lost::Blind(http::innermost(&error))),
            404 => Err(Lost::NotServed),
            status => Err(Lost::Blind(format!("status {status}"))),
        }
    }

    /// Watches on and on from `version`; why it cannot any more.
    pub(super) async fn keep_watching(&self, stream: &str, path: &str, mut version: String) -> String {
        loop {
            match self.watch(stream, path, &version).await {
                Lost::Orderly(last) if last != version => version = last,
                // An empty watch that ends at once would be asked for without pause.
                Lost::Orderly(_) => Clock::pause(self.retry).await,
                Lost::Blind(reason) => return reason,
                Lost::NotServed => return "the resource is no longer served".to_owned(),
            }
        }
    }

    /// Notes what comes until the watch ends.
    async fn watch(&self, stream: &str, path: &str, version: &str) -> Lost {
        let query = with(
            path,
            &format!(
                "watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}"
            ),
        );
        let mut response = match (self.ask)(query).await {
            Ok(response) if response.status().as_u16() == 200 => response,
            Ok(response) => return Lost::Blind(format!("status {} to a watch", response.status().as_u16())),
            Err(error) => return Lost::Blind(error),
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
                Err(error) => return Lost::Blind(http::innermost(&error)),
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
        self.note(stream, verb, object);
        Ok(())
    }
}

fn keep_version(object: &Value, last: &mut String) {
    if let Some(version) = version_of(object) {
        version.clone_into(last);
    }
}

pub(super) fn version_of(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}

/// A text as a value in a query.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// Splits a byte stream at line ends.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) pending: Vec<u8>,
}

impl Lines {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
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
