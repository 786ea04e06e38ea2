//! The harness's own eyes: every version of every object, by list and watch through the router.
//!
//! Sees what the recorder of a real rig sees, by the same requests and under the same streams, but at the very
//! instant of each write. A stream that is lost is a `Gap`, followed by a new list and `Synced`; a watch that the
//! server ends in an orderly way goes on from the last resourceVersion, because nothing can be missed.

use axum::body::Body;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use rigor_rigs::streams::STREAMS;
use rigor_trace::history::{Fact, Verb};
use serde_json::Value;

use crate::server::{Fault, Server};
use crate::stream::{Lines, Reached, Reader, Stream};

/// How long the server is asked to keep a watch, in seconds.
const WATCH_SECONDS: u32 = 3_600;
/// Watches in a row that may end without having shown anything.
const MOST_EMPTY: u32 = 3;
/// Who it is in the log of requests.
const WHO: &str = "observer";

/// All streams.
pub(crate) struct Observer {
    streams: Vec<Watched>,
    authorization: HeaderValue,
}

struct Watched {
    name: String,
    path: String,
    version: String,
    state: State,
}

enum State {
    /// Nothing is known until the next list.
    Blind,
    /// The server has no such resource.
    NotServed,
    Watching {
        stream: Stream,
        lines: Lines,
    },
}

impl Observer {
    /// An observer with an administrator's credentials that has not looked yet.
    pub(crate) fn new(authorization: HeaderValue) -> Self {
        let streams = STREAMS.iter().map(|(name, path)| Watched::new(name, path)).collect();
        Self { streams, authorization }
    }

    /// Looks at one more stream from the next look on.
    pub(crate) fn add(&mut self, name: &str, path: &str) {
        self.streams.push(Watched::new(name, path));
    }

    /// Lists and watches everything that it does not see.
    ///
    /// # Errors
    /// The server failed at it.
    pub(crate) fn look(&mut self, server: &mut Server, facts: &mut Vec<Fact>) -> Result<(), Fault> {
        for (index, watched) in self.streams.iter_mut().enumerate() {
            if matches!(watched.state, State::Blind) && watched.list(server, &self.authorization, facts)? {
                watched.watch(index, server, &self.authorization, facts)?;
            }
        }
        Ok(())
    }

    /// Takes in what the watch with this index has to say.
    ///
    /// # Errors
    /// The server failed, or said what no server may say.
    pub(crate) fn read(
        &mut self,
        index: usize,
        server: &mut Server,
        facts: &mut Vec<Fact>,
    ) -> Result<(), Fault> {
        let Some(watched) = self.streams.get_mut(index) else { return Ok(()) };
        if watched.read(facts)? {
            watched.watch(index, server, &self.authorization, facts)?;
        }
        if matches!(watched.state, State::Blind) && watched.list(server, &self.authorization, facts)? {
            watched.watch(index, server, &self.authorization, facts)?;
        }
        Ok(())
    }

    /// Takes in what the watch with this index has to say, and asks for nothing more.
    ///
    /// # Errors
    /// The server said what no server may say.
    pub(crate) fn drain(&mut self, index: usize, facts: &mut Vec<Fact>) -> Result<(), Fault> {
        self.streams.get_mut(index).map_or(Ok(false), |watched| watched.read(facts)).map(|_| ())
    }

    /// The server is gone, and with it every watch.
    pub(crate) fn lose(&mut self, reason: &str, facts: &mut Vec<Fact>) {
        for watched in &mut self.streams {
            watched.lose(reason, facts);
        }
    }
}

impl Watched {
    fn new(name: &str, path: &str) -> Self {
        Self { name: name.to_owned(), path: path.to_owned(), version: String::new(), state: State::Blind }
    }

    /// Whether there is something to watch.
    fn list(
        &mut self,
        server: &mut Server,
        authorization: &HeaderValue,
        facts: &mut Vec<Fact>,
    ) -> Result<bool, Fault> {
        let response = server.call(WHO, get(&self.path, authorization)?)?;
        if response.status() == http::StatusCode::NOT_FOUND {
            self.state = State::NotServed;
            return Ok(false);
        }
        let status = response.status();
        let mut body = Vec::new();
        let mut stream = Stream::new(response.into_body(), Reader::Runner, server.woken());
        let reached = stream.read(|data| body.extend_from_slice(data));
        let fault = |what: &str| Fault::Wrong(format!("the list of {} {what}", self.name));
        if !status.is_success() || reached != Reached::End {
            return Err(fault(&format!("was answered {status}, {reached:?}")));
        }
        let mut list: Value =
            serde_json::from_slice(&body).map_err(|error| fault(&format!("is no JSON: {error}")))?;
        self.version = version_of(&list).ok_or_else(|| fault("has no resourceVersion"))?.to_owned();
        let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
        let api_version = list["apiVersion"].take();
        if let Value::Array(items) = list["items"].take() {
            for mut object in items {
                // Items of a list carry neither; a watch's objects do.
                if let (Some(fields), Some(kind)) = (object.as_object_mut(), &kind) {
                    fields.entry("kind").or_insert_with(|| kind.as_str().into());
                    fields.entry("apiVersion").or_insert_with(|| api_version.clone());
                }
                facts.push(Fact::Object { stream: self.name.clone(), verb: Verb::Listed, object });
            }
        }
        facts.push(Fact::Synced { stream: self.name.clone() });
        Ok(true)
    }

    /// Watches from the last version on, again if the server ends it at once.
    fn watch(
        &mut self,
        index: usize,
        server: &mut Server,
        authorization: &HeaderValue,
        facts: &mut Vec<Fact>,
    ) -> Result<(), Fault> {
        for _ in 0..MOST_EMPTY {
            let path = format!(
                "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={}",
                self.path, self.version
            );
            let response = server.call(WHO, get(&path, authorization)?)?;
            if !response.status().is_success() {
                let status = response.status();
                self.lose(&format!("status {} to a watch", status.as_u16()), facts);
                return Ok(());
            }
            let stream = Stream::new(response.into_body(), Reader::Observer(index), server.woken());
            self.state = State::Watching { stream, lines: Lines::default() };
            if !self.read(facts)? {
                return Ok(());
            }
        }
        Err(Fault::Wrong(format!("watches of {} end as soon as they begin", self.name)))
    }

    /// Notes what there is to read; `true` when the watch came to an orderly end.
    fn read(&mut self, facts: &mut Vec<Fact>) -> Result<bool, Fault> {
        let State::Watching { stream, lines } = &mut self.state else { return Ok(false) };
        let (name, version) = (self.name.as_str(), &mut self.version);
        let mut lost = None;
        let reached = stream.read(|data| {
            lines.feed(data, |line| {
                if lost.is_none() {
                    lost = take_event(name, line, version, facts).err();
                }
            });
        });
        match (lost, reached) {
            (Some(reason), _) | (None, Reached::Broken(reason)) => {
                self.lose(&reason, facts);
                Ok(false)
            }
            (None, Reached::Pause) => Ok(false),
            (None, Reached::End) => Ok(true),
        }
    }

    fn lose(&mut self, reason: &str, facts: &mut Vec<Fact>) {
        match self.state {
            State::Blind | State::NotServed => {}
            State::Watching { .. } => {
                facts.push(Fact::Gap { stream: self.name.clone(), reason: reason.to_owned() });
            }
        }
        self.state = State::Blind;
    }
}

fn get(path: &str, authorization: &HeaderValue) -> Result<Request<Body>, Fault> {
    let request = Request::get(path).header(AUTHORIZATION, authorization).body(Body::empty());
    request.map_err(|error| Fault::Wrong(format!("{path}: {error}")))
}

/// Notes one line of a watch, or says why the stream is lost.
fn take_event(name: &str, line: &[u8], version: &mut String, facts: &mut Vec<Fact>) -> Result<(), String> {
    let mut event: Value = serde_json::from_slice(line).map_err(|error| format!("a watch line: {error}"))?;
    let object = event["object"].take();
    let verb = match event["type"].as_str() {
        Some("ADDED") => Some(Verb::Added),
        Some("MODIFIED") => Some(Verb::Modified),
        Some("DELETED") => Some(Verb::Deleted),
        Some("BOOKMARK") => None,
        Some("ERROR") => {
            return Err(format!("error in the watch: {}", object["message"].as_str().unwrap_or("?")));
        }
        other => return Err(format!("a watch event of type {other:?}")),
    };
    if let Some(seen) = version_of(&object) {
        seen.clone_into(version);
    }
    if let Some(verb) = verb {
        facts.push(Fact::Object { stream: name.to_owned(), verb, object });
    }
    Ok(())
}

fn version_of(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}
