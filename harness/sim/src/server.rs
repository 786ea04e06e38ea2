//! The server's process: router, controllers and the connections of the boards, between start and end.
//!
//! Does what hyper and the production loop do around the router, in no time: requests are answered the instant
//! their last byte arrives, controllers run after each request and when they are due. A handler that waits, or
//! anything that panics, is a [`Fault`]: the process is taken down and the trial is an infrastructure error.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use futures_util::FutureExt;
use http::{Method, Request, Response, StatusCode};
use tower::Service;

use crate::clock::{HttpDate, ProcessClock, Time};
use crate::fuse::Fuse;
use crate::http1::{self, Framing};
use crate::link::{Carried, Connection};
use crate::panics::calm;
use crate::plane::{Launch, Plane};
use crate::stream::{Reached, Reader, Stream, Woken};

/// So many times in a row controllers may say that they are due at once.
const MOST_TURNS: u32 = 1_000;

/// Why the server's process does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It did what it must never do, in one sentence.
    Wrong(String),
    /// Its fuse has blown in the middle of what it did.
    Killed,
}

impl Fault {
    /// In one sentence.
    pub(crate) fn text(self) -> String {
        match self {
            Fault::Wrong(what) => what,
            Fault::Killed => "it was killed where nothing kills it".to_owned(),
        }
    }
}

/// Something the server sends to a board.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) board: usize,
    pub(crate) connection: Connection,
    pub(crate) carried: Carried,
}

/// One line of the log of requests.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub(crate) at: u64,
    pub(crate) what: String,
}

/// The server, running or not.
pub(crate) struct Server {
    launch: Box<dyn Launch>,
    time: Time,
    lives: u32,
    running: Option<Running>,
    woken: Arc<Woken>,
    fuse: Arc<Fuse>,
    /// The date as each board is told it.
    dates: BTreeMap<usize, BoardDate>,
    log: Vec<Logged>,
}

/// How far the date that a board is told is off, in microseconds.
#[derive(Debug, Default)]
struct BoardDate {
    offset: i64,
    date: HttpDate,
}

struct Running {
    plane: Box<dyn Plane>,
    router: Router,
    clock: Arc<ProcessClock>,
    connections: BTreeMap<Connection, Served>,
}

/// The server's end of a board's connection.
struct Served {
    board: usize,
    input: Vec<u8>,
    answer: Option<Answer>,
}

/// An answer in chunks that is not complete.
struct Answer {
    stream: Stream,
    last: bool,
}

impl Server {
    /// A server that does not run yet.
    pub(crate) fn new(launch: Box<dyn Launch>, time: Time) -> Self {
        Self {
            fuse: launch.fuse(),
            launch,
            time,
            lives: 0,
            running: None,
            woken: Arc::default(),
            dates: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// Whether the process runs.
    pub(crate) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// The process dies once it has made so many more writes.
    pub(crate) fn arm(&self, writes: u64) {
        self.fuse.arm(writes);
    }

    /// It lives on, or the next one does.
    pub(crate) fn disarm(&self) {
        self.fuse.disarm();
    }

    /// Tells a board a date that is off by so many microseconds.
    pub(crate) fn set_offset(&mut self, board: usize, micros: i64) {
        self.dates.entry(board).or_default().offset = micros;
    }

    /// The date for a board.
    fn date(&mut self, board: usize) -> &str {
        let told = self.dates.entry(board).or_default();
        told.date.at(self.time.wall_off_by(told.offset))
    }

    /// Who has something to read.
    pub(crate) fn woken(&self) -> &Arc<Woken> {
        &self.woken
    }

    /// Requests and events of the process so far, for the evidence.
    pub(crate) fn log(&self) -> &[Logged] {
        &self.log
    }

    /// Notes something in the log.
    pub(crate) fn note(&mut self, what: String) {
        self.log.push(Logged { at: self.time.now(), what });
    }

    /// Starts the process; it serves at once.
    ///
    /// # Errors
    /// It did not come up.
    pub(crate) fn start(&mut self) -> Result<(), Fault> {
        self.lives += 1;
        let clock = Arc::new(ProcessClock::start(&self.time));
        let (launch, life) = (&mut self.launch, self.lives);
        let started = calm(|| {
            let plane = launch.launch(Arc::clone(&clock), life)?;
            let router = plane.router();
            Ok((plane, router))
        });
        let (plane, router) = started
            .map_err(|message| panicked("the start of the server", &message))?
            .map_err(Fault::Wrong)?;
        self.running = Some(Running { plane, router, clock, connections: BTreeMap::new() });
        self.note(format!("-- started, life {life}"));
        Ok(())
    }

    /// Ends the process, orderly or not: the machine it ran on closes its connections.
    pub(crate) fn end(&mut self, how: &str) -> Vec<Outgoing> {
        let Some(running) = self.running.take() else { return Vec::new() };
        self.note(format!("-- {how}"));
        let ended = running.connections.iter();
        ended
            .map(|(connection, served)| Outgoing {
                board: served.board,
                connection: *connection,
                carried: Carried::End,
            })
            .collect()
    }

    /// Calls the router on behalf of `who`.
    ///
    /// # Errors
    /// The handler waited or panicked.
    pub(crate) fn call(&mut self, who: &str, request: Request<Body>) -> Result<Response<Body>, Fault> {
        let Some(running) = &mut self.running else {
            return Err(Fault::Wrong("a request reached a server that does not run".to_owned()));
        };
        let asked = format!("{who} {} {}", request.method(), request.uri());
        let router = &mut running.router;
        let answer = calm(|| router.call(request).now_or_never())
            .map_err(|message| panicked(&format!("the handler of {asked}"), &message))?;
        let Some(answer) = answer else {
            if self.fuse.is_blown() {
                self.note(format!("{asked} was not answered"));
                return Err(Fault::Killed);
            }
            return Err(Fault::Wrong(format!(
                "the handler of {asked} waited for something instead of answering"
            )));
        };
        let response = answer.unwrap_or_else(|never| match never {});
        self.note(format!("{asked} {}", response.status().as_u16()));
        Ok(response)
    }

    /// Runs the controllers until none is due now, and returns when the next one is.
    ///
    /// # Errors
    /// A controller waited, panicked, or is due again and again.
    pub(crate) fn reconcile(&mut self) -> Result<Option<u64>, Fault> {
        let Some(running) = &self.running else { return Ok(None) };
        for _ in 0..MOST_TURNS {
            let due = calm(|| running.plane.reconcile())
                .map_err(|message| panicked("a controller", &message))?
                .map_err(|wrong| if self.fuse.is_blown() { Fault::Killed } else { Fault::Wrong(wrong) })?;
            let Some(due) = due.map(|due| running.clock.instant_of(due)) else { return Ok(None) };
            if due > self.time.now() {
                return Ok(Some(due));
            }
        }
        Err(Fault::Wrong(format!("controllers were due at once {MOST_TURNS} times in a row")))
    }

    /// Takes what arrived from a board; `true` in the answer when the router was called.
    ///
    /// # Errors
    /// See [`Server::call`].
    pub(crate) fn arrive(
        &mut self,
        board: (usize, &str),
        connection: Connection,
        carried: Carried,
    ) -> Result<(Vec<Outgoing>, bool), Fault> {
        let outgoing = |carried| Outgoing { board: board.0, connection, carried };
        let connections = self.running.as_mut().map(|running| &mut running.connections);
        let served = connections.and_then(|connections| match carried {
            Carried::Open => {
                connections.insert(connection, Served { board: board.0, input: Vec::new(), answer: None });
                connections.get_mut(&connection)
            }
            Carried::End | Carried::Reset => {
                connections.remove(&connection);
                None
            }
            Carried::Opened | Carried::Bytes(_) => connections.get_mut(&connection),
        });
        match (carried, served) {
            (Carried::End | Carried::Reset, _) | (Carried::Opened, Some(_)) => Ok((Vec::new(), false)),
            (Carried::Open | Carried::Opened | Carried::Bytes(_), None) => {
                Ok((vec![outgoing(Carried::Reset)], false))
            }
            (Carried::Open, Some(_)) => Ok((vec![outgoing(Carried::Opened)], false)),
            (Carried::Bytes(bytes), Some(served)) => {
                served.input.extend(bytes);
                let mut out = Vec::new();
                let called = self.serve(board.1, connection, &mut out)?;
                Ok((out, called))
            }
        }
    }

    /// Answers the requests that are complete on a connection, until one has an answer that goes on.
    fn serve(&mut self, who: &str, connection: Connection, out: &mut Vec<Outgoing>) -> Result<bool, Fault> {
        let mut called = false;
        loop {
            let Some(Served { board, input, answer: None }) = self.served(connection) else {
                return Ok(called);
            };
            let board = *board;
            let outgoing = |carried| Outgoing { board, connection, carried };
            let taken = match http1::take_request(input) {
                Ok(None) => return Ok(called),
                Ok(Some(taken)) => taken,
                Err(damaged) => {
                    let answer = http1::bad_request(self.date(board));
                    out.extend([outgoing(Carried::Bytes(answer)), outgoing(Carried::End)]);
                    self.close(connection);
                    self.note(format!("{who} sent bytes that are no request: {}", damaged.0));
                    return Ok(called);
                }
            };
            called = true;
            let bodiless = *taken.request.method() == Method::HEAD;
            let response = self.call(who, taken.request)?;
            let woken = Arc::clone(&self.woken);
            let date = self.date(board);
            let (bytes, ended) = begin(response, bodiless, taken.last, date, connection, &woken)?;
            out.push(outgoing(Carried::Bytes(bytes)));
            match ended {
                Some(answer) => self.set_answer(connection, Some(answer)),
                None if taken.last => {
                    out.push(outgoing(Carried::End));
                    self.close(connection);
                }
                None => {}
            }
        }
    }

    /// Sends on what a streamed answer has to give; `true` in the answer when the router was called after it.
    ///
    /// # Errors
    /// See [`Server::call`].
    pub(crate) fn drain(
        &mut self,
        connection: Connection,
        who: impl Fn(usize) -> String,
    ) -> Result<(Vec<Outgoing>, bool), Fault> {
        let Some(Served { board, answer: Some(answer), .. }) = self.served(connection) else {
            return Ok((Vec::new(), false));
        };
        let (board, last) = (*board, answer.last);
        let mut bytes = Vec::new();
        let reached = read_chunks(&mut answer.stream, &mut bytes)?;
        let outgoing = |carried| Outgoing { board, connection, carried };
        let mut out = Vec::new();
        if !bytes.is_empty() {
            out.push(outgoing(Carried::Bytes(bytes)));
        }
        let mut called = false;
        match reached {
            Reached::Pause => {}
            Reached::End if !last => {
                self.set_answer(connection, None);
                called = self.serve(&who(board), connection, &mut out)?;
            }
            Reached::End | Reached::Broken(_) => {
                out.push(outgoing(Carried::End));
                self.close(connection);
            }
        }
        Ok((out, called))
    }

    fn served(&mut self, connection: Connection) -> Option<&mut Served> {
        self.running.as_mut()?.connections.get_mut(&connection)
    }

    fn set_answer(&mut self, connection: Connection, answer: Option<Answer>) {
        if let Some(served) = self.served(connection) {
            served.answer = answer;
        }
    }

    fn close(&mut self, connection: Connection) {
        if let Some(running) = &mut self.running {
            running.connections.remove(&connection);
        }
    }
}

/// The first bytes of an answer, and the rest of it when it is a stream that goes on.
fn begin(
    response: Response<Body>,
    bodiless: bool,
    last: bool,
    date: &str,
    connection: Connection,
    woken: &Arc<Woken>,
) -> Result<(Vec<u8>, Option<Answer>), Fault> {
    let (parts, body) = response.into_parts();
    let empty = bodiless || matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let mut stream = Stream::new(body, Reader::Connection(connection), woken);
    let framing = stream.length().map_or(Framing::Chunks, Framing::Length);
    let mut bytes = http1::head(&Response::from_parts(parts, Body::empty()), framing, last, date);
    if empty {
        return Ok((bytes, None));
    }
    match framing {
        Framing::Length(length) => {
            let before = bytes.len();
            let reached = calm(|| stream.read(|data| bytes.extend_from_slice(data)))
                .map_err(|message| panicked("the body of an answer", &message))?;
            if reached != Reached::End || (bytes.len() - before) as u64 != length {
                return Err(Fault::Wrong(format!(
                    "an answer of {length} bytes did not come whole: {reached:?}"
                )));
            }
            Ok((bytes, None))
        }
        Framing::Chunks => match read_chunks(&mut stream, &mut bytes)? {
            Reached::Pause => Ok((bytes, Some(Answer { stream, last }))),
            Reached::End => Ok((bytes, None)),
            Reached::Broken(error) => {
                Err(Fault::Wrong(format!("an answer broke off at its beginning: {error}")))
            }
        },
    }
}

/// Appends the chunks that are there now, and the last one at the end.
fn read_chunks(stream: &mut Stream, bytes: &mut Vec<u8>) -> Result<Reached, Fault> {
    let reached = calm(|| stream.read(|data| http1::chunk(bytes, data)))
        .map_err(|message| panicked("the body of an answer", &message))?;
    if reached == Reached::End {
        bytes.extend_from_slice(http1::LAST_CHUNK);
    }
    Ok(reached)
}

fn panicked(who: &str, message: &str) -> Fault {
    Fault::Wrong(format!("{who} panicked: {message}"))
}
