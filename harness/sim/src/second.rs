//! Second schedulers: `toy-scheduler` without its sockets, as a client of the router in virtual time.
//!
//! It lists and watches pods and nodes through the router and posts bindings and events there, under the identity of
//! kube-scheduler. Between what it sees and what it does a little time passes, drawn from the seed, so that others can be
//! faster. When the server is gone, so are its watches; it lists anew when there is a server again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

use axum::body::Body;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use rigor_trace::history::Micros;
use serde_json::Value;
use toy_scheduler::machine::{Change, Machine, Placement, Post, Said, Watched};

use crate::seed::generator;
use crate::server::{Fault, Server};
use crate::simulation::{Event, Simulation};
use crate::stream::{Lines, Reached, Reader, Stream};
use crate::strike::Step;

/// From the start of its process to its first look, in microseconds.
const START: RangeInclusive<u64> = 20_000..=60_000;
/// From what it sees to what it does, in microseconds.
const TURN: RangeInclusive<u64> = 1_000..=5_000;
/// Before it lists again what it could not.
const PAUSE: u64 = 250_000;
/// How long the server is asked to keep a watch, in seconds.
const WATCH_SECONDS: u32 = 3_600;

/// One of them.
struct Second {
    name: String,
    machine: Machine,
    /// Its watches; none where it has to list first.
    watches: Vec<Watch>,
    /// What it sends, until there is an answer.
    pending: Option<Pending>,
    /// It is to look again at this instant.
    due: Option<u64>,
    draws: fastrand::Rng,
}

struct Pending {
    said: Said,
    /// It was sent before, to a server that was gone before it answered.
    again: bool,
}

struct Watch {
    watched: Watched,
    stream: Stream,
    lines: Lines,
}

/// All that run, by the number of their start, and what they have said.
pub(crate) struct Seconds {
    authorization: HeaderValue,
    running: BTreeMap<u32, Second>,
    started: u32,
    logs: BTreeMap<String, String>,
}

impl Seconds {
    /// None, whose identity will be proved by this header.
    pub(crate) fn new(authorization: HeaderValue) -> Self {
        Self { authorization, running: BTreeMap::new(), started: 0, logs: BTreeMap::new() }
    }

    /// Whether one of this name runs.
    pub(crate) fn runs(&self, name: &str) -> bool {
        self.running.values().any(|second| second.name == name)
    }

    /// Whether one of this name runs and has seen the cluster.
    pub(crate) fn is_ready(&self, name: &str) -> bool {
        self.running.values().any(|second| second.name == name && !second.watches.is_empty())
    }

    /// What each has said, by name.
    pub(crate) fn logs(&self) -> &BTreeMap<String, String> {
        &self.logs
    }

    /// The server is gone, and with it every watch.
    pub(crate) fn lose(&mut self) {
        self.running.values_mut().for_each(Second::lose);
    }

    fn note(&mut self, name: &str, at: u64, line: &str) {
        let log = self.logs.entry(name.to_owned()).or_default();
        let _ = writeln!(log, "{:>12} {line}", Micros(at).to_string());
    }
}

impl Simulation {
    /// Starts a second scheduler, which looks at the cluster soon.
    pub(crate) fn start_scheduler(&mut self, name: &str, dry_run: bool) {
        let now = self.now();
        let number = self.seconds.started;
        self.seconds.started += 1;
        let mut draws = generator(self.seed, &format!("scheduler:{name}:{number}"));
        let at = now + draws.u64(START);
        let second = Second {
            name: name.to_owned(),
            machine: if dry_run { Machine::dry_run(name) } else { Machine::new(name) },
            watches: Vec::new(),
            pending: None,
            due: Some(at),
            draws,
        };
        self.seconds.note(name, now, "-- started");
        self.seconds.running.insert(number, second);
        self.queue.push(at, Event::Schedule(number));
    }

    /// Ends one; `false` where none of that name runs.
    pub(crate) fn end_scheduler(&mut self, name: &str, how: &str) -> bool {
        let now = self.now();
        let before = self.seconds.running.len();
        self.seconds.running.retain(|_, second| second.name != name);
        let ended = self.seconds.running.len() < before;
        if ended {
            self.seconds.note(name, now, &format!("-- {how}"));
        }
        ended
    }

    /// There is something to see for the one with this number.
    pub(crate) fn rouse_scheduler(&mut self, number: u32) {
        let now = self.now();
        if let Some(second) = self.seconds.running.get_mut(&number)
            && second.due.is_none()
        {
            let at = now + second.draws.u64(TURN);
            second.due = Some(at);
            self.queue.push(at, Event::Schedule(number));
        }
    }

    /// There is a server again, for all of them.
    pub(crate) fn rouse_schedulers(&mut self) {
        let numbers: Vec<u32> = self.seconds.running.keys().copied().collect();
        for number in numbers {
            self.rouse_scheduler(number);
        }
    }

    /// The turn of the one with this number: it takes in what there is to see, and looks at one pod.
    ///
    /// # Errors
    /// The server failed at what it was asked, or said what no server may say.
    pub(crate) fn schedule(&mut self, number: u32) -> Result<(), Fault> {
        let now = self.now();
        let Some(mut second) = self.seconds.running.remove(&number) else { return Ok(()) };
        if second.due != Some(now) {
            self.seconds.running.insert(number, second);
            return Ok(());
        }
        second.due = None;
        let turn = self.step(|it| it.take_turn(number, &mut second));
        if !self.server.is_up() {
            second.lose();
        }
        for line in second.machine.take_log() {
            self.seconds.note(&second.name, now, &line);
        }
        let again = match &turn {
            Ok(_) if !self.server.is_up() => None,
            Ok(_) if second.watches.is_empty() => Some(now + PAUSE),
            Ok(_) if second.pending.is_some() || second.machine.waits() => Some(now + second.draws.u64(TURN)),
            Ok(_) | Err(_) => None,
        };
        if let Some(at) = again {
            second.due = Some(at);
            self.queue.push(at, Event::Schedule(number));
        }
        self.seconds.running.insert(number, second);
        match turn? {
            Step::Taken(true) => self.decide(),
            Step::Taken(false) | Step::Killed(_) => Ok(()),
        }
    }

    /// Whether the server was asked for anything.
    fn take_turn(&mut self, number: u32, second: &mut Second) -> Result<bool, Fault> {
        if !self.server.is_up() {
            return Ok(false);
        }
        let now = self.time.wall().as_microsecond();
        let client = Client { authorization: &self.seconds.authorization, number };
        let mut asked = false;
        if !second.read()? {
            second.lose();
        }
        if second.watches.is_empty() {
            second.list(&client, &mut self.server)?;
            asked = true;
        }
        if second.watches.is_empty() {
            return Ok(asked);
        }
        let next = || second.machine.look(now).map(|said| Pending { said, again: false });
        let Some(pending) = second.pending.take().or_else(next) else { return Ok(asked) };
        let (said, again) = (pending.said.clone(), pending.again);
        // Should the server be gone before it answers, the same is sent once more.
        second.pending = Some(Pending { again: true, ..pending });
        let event = match said {
            Said::Event(post) => {
                client.post(&second.name, &mut self.server, &post)?;
                None
            }
            Said::Bind(placement, post) => {
                let (status, body) = client.post(&second.name, &mut self.server, &post)?;
                let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
                let message = answer["message"].as_str().unwrap_or_default();
                let done = again
                    && status == StatusCode::CONFLICT
                    && client.is_on(&second.name, &mut self.server, &placement)?;
                let code = if done { 201 } else { status.as_u16() };
                second.machine.answered(&placement, code, message, now)
            }
        };
        second.pending = event.map(|post| Pending { said: Said::Event(post), again: false });
        Ok(true)
    }
}

impl Second {
    /// It sees nothing any more, until it lists again.
    fn lose(&mut self) {
        self.watches.clear();
        self.machine.lost();
    }

    /// Takes in what the watches have to say; `false` when one has ended.
    fn read(&mut self) -> Result<bool, Fault> {
        let mut whole = true;
        for watch in &mut self.watches {
            let (machine, watched) = (&mut self.machine, watch.watched);
            let (stream, lines) = (&mut watch.stream, &mut watch.lines);
            let mut outcome = Ok(true);
            let reached = stream.read(|data| {
                lines.feed(data, |line| {
                    if outcome == Ok(true) {
                        outcome = take(machine, watched, line);
                    }
                });
            });
            whole &= outcome.map_err(Fault::Wrong)? && reached == Reached::Pause;
        }
        Ok(whole)
    }

    /// Lists and watches both kinds; where the server refuses one, neither is watched.
    fn list(&mut self, client: &Client<'_>, server: &mut Server) -> Result<(), Fault> {
        for watched in Watched::ALL {
            let (status, body) = client.get(&self.name, server, watched.path())?;
            let mut list: Value = serde_json::from_slice(&body).unwrap_or_default();
            let version = list["metadata"]["resourceVersion"].as_str().map(str::to_owned);
            let (Value::Array(items), Some(version), true) =
                (list["items"].take(), version, status.is_success())
            else {
                self.lose();
                return Ok(());
            };
            self.machine.listed(watched, items).map_err(Fault::Wrong)?;
            let path = format!(
                "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}",
                watched.path()
            );
            let response = server.call(&self.name, client.request(Request::get(path), Body::empty())?)?;
            let stream = Stream::new(response.into_body(), Reader::Scheduler(client.number), server.woken());
            self.watches.push(Watch { watched, stream, lines: Lines::default() });
        }
        if self.read()? {
            return Ok(());
        }
        self.lose();
        Ok(())
    }
}

/// Takes in a line of a watch; `false` when the watch is of no more use.
fn take(machine: &mut Machine, watched: Watched, line: &[u8]) -> Result<bool, String> {
    let mut event: Value = serde_json::from_slice(line).map_err(|error| format!("a watch line: {error}"))?;
    let object = event["object"].take();
    let change = match event["type"].as_str() {
        Some("ADDED" | "MODIFIED") => Change::Applied,
        Some("DELETED") => Change::Deleted,
        Some("BOOKMARK") => return Ok(true),
        Some("ERROR") => return Ok(false),
        other => return Err(format!("a watch event of type {other:?}")),
    };
    machine.seen(watched, change, object).map(|()| true)
}

/// How one of them asks the server.
struct Client<'a> {
    authorization: &'a HeaderValue,
    number: u32,
}

impl Client<'_> {
    fn request(&self, request: http::request::Builder, body: Body) -> Result<Request<Body>, Fault> {
        let request = request.header(AUTHORIZATION, self.authorization).body(body);
        request.map_err(|error| Fault::Wrong(format!("a second scheduler's request: {error}")))
    }

    fn get(&self, who: &str, server: &mut Server, path: &str) -> Result<(StatusCode, Vec<u8>), Fault> {
        let response = server.call(who, self.request(Request::get(path), Body::empty())?)?;
        self.whole(response, server)
    }

    fn post(&self, who: &str, server: &mut Server, post: &Post) -> Result<(StatusCode, Vec<u8>), Fault> {
        let request = Request::post(&post.path).header(CONTENT_TYPE, "application/json");
        let response = server.call(who, self.request(request, Body::from(post.body.to_string()))?)?;
        self.whole(response, server)
    }

    /// Whether a binding whose answer was lost had been made after all.
    fn is_on(&self, who: &str, server: &mut Server, placed: &Placement) -> Result<bool, Fault> {
        let path = format!("/api/v1/namespaces/{}/pods/{}", placed.pod.namespace, placed.pod.name);
        let (_, body) = self.get(who, server, &path)?;
        let found: Value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(found["metadata"]["uid"] == placed.pod.uid && found["spec"]["nodeName"] == placed.node)
    }

    /// The answer; one that goes on is none to a list or a write.
    fn whole(&self, response: Response<Body>, server: &Server) -> Result<(StatusCode, Vec<u8>), Fault> {
        let status = response.status();
        let mut body = Vec::new();
        let mut stream = Stream::new(response.into_body(), Reader::Scheduler(self.number), server.woken());
        match stream.read(|data| body.extend_from_slice(data)) {
            Reached::End => Ok((status, body)),
            reached => {
                Err(Fault::Wrong(format!("an answer to a second scheduler did not come whole: {reached:?}")))
            }
        }
    }
}
