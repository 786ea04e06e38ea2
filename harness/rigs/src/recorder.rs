//! Records what the API server shows: every version of every object, from lists and watches, and pulses that bound
//! when each write can have happened.
//!
//! A stream that is lost is a `Gap`, followed by new lists and `Synced`. A watch that the server ends in an
//! orderly way goes on from the last resourceVersion, without a gap, because nothing can be missed. A stream may be
//! several lists and watches; they are lost and found again together, since a list is taken for all that there is.

use crate::clock::Clock;
use crate::http;
use crate::ledger::Ledger;
use crate::streams::Feed;
use crate::world::Infra;
use futures_util::future::{BoxFuture, select_all};
use reqwest::{Client, Response};
use rigor_trace::{Fact, Verb};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

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

/// How a list or watch came to its end.
enum Lost {
    /// The resource is not served.
    NotServed,
    /// The watch was ended in an orderly way; it can go on from this resourceVersion.
    Orderly(String),
    /// What was missed is not known.
    Blind(String),
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

/// A path with one more parameter of its query.
fn with(path: &str, parameter: &str) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}{parameter}")
}

impl Source {
    /// Notes all objects of a collection, page by page; the version is that of the first page, which is the one that
    /// all pages show.
    async fn list(&self, stream: &str, path: &str) -> Result<String, Lost> {
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

    async fn get(&self, path: String) -> Result<Value, Lost> {
        let response = (self.ask)(path).await.map_err(Lost::Blind)?;
        match response.status().as_u16() {
            200 => response.json().await.map_err(|error| Lost::Blind(http::innermost(&error))),
            404 => Err(Lost::NotServed),
            status => Err(Lost::Blind(format!("status {status}"))),
        }
    }

    /// Watches on and on from `version`; why it cannot any more.
    async fn keep_watching(&self, stream: &str, path: &str, mut version: String) -> String {
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

fn version_of(object: &Value) -> Option<&str> {
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

    fn client() -> Client {
        http::client(http::plain().unwrap(), |builder| builder).unwrap()
    }

    fn feed(paths: &[&str]) -> Feed {
        Feed { stream: "pods".to_owned(), paths: paths.iter().map(|path| (*path).to_owned()).collect() }
    }

    #[test]
    fn long_lists_come_in_pages_and_what_is_not_the_trials_is_passed_over() {
        let page = |version: u32, name: &str, more: &str| {
            whole(&format!(
                "{{\"kind\":\"PodList\",\"metadata\":{{\"resourceVersion\":\"{version}\",\"continue\":\"{more}\"}},\"items\":[{{\"metadata\":{{\"name\":\"{name}\"}}}}]}}"
            ))
        };
        let event = |name: &str| {
            format!(
                "{{\"type\":\"ADDED\",\"object\":{{\"kind\":\"Pod\",\"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"9\"}}}}}}"
            )
        };
        let (base, serving) = server(vec![
            page(5, "ours-1", "a/b="),
            page(6, "theirs-1", "c"),
            page(6, "ours-2", ""),
            chunked(&[&event("theirs-2"), &event("ours-3")], false),
        ]);
        let (ledger, facts) = Ledger::new(Clock::start());
        let source = Source {
            page: Some(1),
            keep: Arc::new(|_, object| {
                object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("ours"))
            }),
            ..Source::local(client(), &base, "t", Arc::new(ledger)).unwrap()
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let first = Arc::new(watch::Sender::new(1));
        let feed = feed(&["/api/v1/pods?fieldSelector=x"]);
        let following = runtime.spawn(follow(source, feed, first));
        let seen: Vec<String> =
            (0..5).map(|_| told(&facts.recv_timeout(Duration::from_secs(60)).unwrap().1)).collect();
        let asked = serving.join().unwrap();
        following.abort();
        assert_eq!(
            seen,
            [
                "pods Listed \"Pod\" \"ours-1\"",
                "pods Listed \"Pod\" \"ours-2\"",
                "pods synced",
                "pods Added \"Pod\" \"ours-3\"",
                "pods gap",
            ]
        );
        let paths: Vec<&str> = asked.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
        assert_eq!(
            paths[..3],
            [
                "/api/v1/pods?fieldSelector=x&limit=1",
                "/api/v1/pods?fieldSelector=x&limit=1&continue=a%2Fb%3D",
                "/api/v1/pods?fieldSelector=x&limit=1&continue=c",
            ]
        );
        assert!(paths[3].contains("&watch=true&") && paths[3].ends_with("resourceVersion=5"), "{}", paths[3]);
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
        let source = Source::local(client(), &base, "t", Arc::new(ledger)).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let first = Arc::new(watch::Sender::new(1));
        let following = runtime.spawn(follow(source, feed(&["/api/v1/pods"]), first));
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
