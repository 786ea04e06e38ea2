//! Records what the API server shows: every version of every object, from lists and watches, and pulses that bound
//! when each write can have happened.
//!
//! A stream that is lost is a `Gap`, followed by a new list and `Synced`. A watch that the server ends in an
//! orderly way goes on from the last resourceVersion, without a gap, because nothing can be missed.

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::streams::STREAMS;
use reqwest::Client;
use rigor_trace::{Fact, Verb};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

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
    source: Source,
    first: Arc<watch::Sender<usize>>,
    tasks: Vec<JoinHandle<()>>,
    /// How many streams have not given their first list.
    unsynced: watch::Receiver<usize>,
}

#[derive(Debug, Clone)]
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
            .map(|(stream, path)| {
                let (stream, path) = ((*stream).to_owned(), (*path).to_owned());
                runtime.spawn(follow(source.clone(), stream, path, first.clone()))
            })
            .collect();
        tasks.push(runtime.spawn(pulse(source.clone())));
        Self { source, first, tasks, unsynced }
    }

    /// Watches one more stream from now on.
    pub(crate) fn add(&mut self, runtime: &Handle, stream: &str, path: &str) {
        self.first.send_modify(|unsynced| *unsynced += 1);
        let follow = follow(self.source.clone(), stream.to_owned(), path.to_owned(), self.first.clone());
        self.tasks.push(runtime.spawn(follow));
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

async fn follow(source: Source, stream: String, path: String, first: Arc<watch::Sender<usize>>) {
    let (stream, path) = (stream.as_str(), path.as_str());
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

    /// A server that gives each connection the next answer and then closes it; returns what was asked for.
    fn server(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        use std::io::{BufRead, BufReader, Write};
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut socket, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
                asked.push(lines.next().unwrap().unwrap());
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                socket.write_all(answer.as_bytes()).unwrap();
            }
            asked
        });
        (base, serving)
    }

    fn whole(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    fn chunked(lines: &[&str], last: bool) -> String {
        let chunks: String =
            lines.iter().map(|line| format!("{:x}\r\n{line}\n\r\n", line.len() + 1)).collect();
        let end = if last { "0\r\n\r\n" } else { "" };
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{end}")
    }

    fn told(fact: &Fact) -> String {
        match fact {
            Fact::Object { stream, verb, object } => {
                format!("{stream} {verb:?} {} {}", object["kind"], object["metadata"]["name"])
            }
            Fact::Synced { stream } => format!("{stream} synced"),
            Fact::Gap { stream, .. } => format!("{stream} gap"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_watch_goes_on_after_an_orderly_end_and_starts_anew_after_a_loss() {
        let pod = |verb: &str, name: &str, version: u32| {
            format!(
                "{{\"type\":\"{verb}\",\"object\":{{\"kind\":\"Pod\",\"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"{version}\"}}}}}}"
            )
        };
        let list = |version: u32, names: &[&str]| {
            let items: Vec<String> =
                names.iter().map(|name| format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}")).collect();
            format!(
                "{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\"}},\"items\":[{}]}}",
                items.join(",")
            )
        };
        let (base, serving) = server(vec![
            whole(&list(5, &["p"])),
            chunked(&[&pod("ADDED", "q", 7), &pod("BOOKMARK", "", 9)], true),
            chunked(&[&pod("DELETED", "q", 11)], false),
            whole(&list(12, &["p"])),
            chunked(
                &["{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old resource version\"}}"],
                true,
            ),
        ]);
        let (ledger, facts) = Ledger::new(Clock::start());
        let source = Source {
            client: Client::builder().no_proxy().build().unwrap(),
            base,
            token: "t".to_owned(),
            ledger: Arc::new(ledger),
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let first = Arc::new(watch::Sender::new(1));
        let following = runtime.spawn(follow(source, "pods".to_owned(), "/api/v1/pods".to_owned(), first));
        let asked = serving.join().unwrap();
        let facts: Vec<Fact> =
            (0..8).map(|_| facts.recv_timeout(Duration::from_secs(60)).unwrap().1).collect();
        following.abort();
        let seen: Vec<String> = facts.iter().map(told).collect();
        assert_eq!(
            seen,
            [
                "pods Listed \"Pod\" \"p\"",
                "pods synced",
                "pods Added \"Pod\" \"q\"",
                "pods Deleted \"Pod\" \"q\"",
                "pods gap",
                "pods Listed \"Pod\" \"p\"",
                "pods synced",
                "pods gap",
            ]
        );
        let versions: Vec<Option<&str>> = asked
            .iter()
            .map(|line| line.split_once("resourceVersion=").map(|(_, rest)| rest.split_once(' ').unwrap().0))
            .collect();
        assert_eq!(versions, [None, Some("5"), Some("9"), None, Some("12")]);
        let Fact::Gap { reason, .. } = &facts[7] else { panic!("{:?}", facts[7]) };
        assert_eq!(reason, "error in the watch: too old resource version");
    }
}
