//! The event loop: takes the next event of the queue, gives it to its component, and puts what comes of it back in.
//!
//! The order of everything is the queue's, exact to the microsecond. After each event that reached the server its
//! controllers run and its watches are read, so the history knows of a write at the very instant of it. Whatever
//! goes wrong inside ends the server's process and is kept as the trial's [`Infra`]; time still passes then,
//! so that a runner that waits is not left hanging.

use axum::body::Body;
use http::{HeaderValue, Request, Response};
use rigor_rigs::Infra;
use rigor_trace::history::{Fact, History, Micros, ProcessEvent};

use crate::board::{Board, Effect, Numbering};
use crate::clock::Time;
use crate::faults::{Message, Sites};
use crate::link::{Carried, Connection, Link, Parcel, Ticket, Toward};
use crate::observer::Observer;
use crate::panics::calm;
use crate::queue::Queue;
use crate::second::Seconds;
use crate::seed::generator;
use crate::server::{Fault, Outgoing, Server};
use crate::stream::Reader;
use crate::strike::{Step, Struck};

/// Something that is to happen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A parcel is at the end of the link of the board with this index.
    Arrive(usize, Ticket),
    /// A timer of the board with this index.
    Tick(usize),
    /// The boot with this number of the board with this index.
    Boot(usize, u32),
    /// A controller of the server.
    Due,
    /// The turn of the second scheduler with this number.
    Schedule(u32),
    /// The request with this number comes a second time.
    Repeat(u64),
    /// The power of the board with this index may come back after the power cut with this number.
    PowerBack(usize, u64),
    /// The server may be started again after the kill with this number.
    ServerBack(u64),
}

/// A board and its link.
pub(crate) struct Seat {
    pub(crate) board: Board,
    pub(crate) link: Link,
}

/// The trial's whole state.
pub(crate) struct Simulation {
    pub(crate) seed: u64,
    pub(crate) time: Time,
    pub(crate) history: History,
    pub(crate) seats: Vec<Seat>,
    pub(crate) server: Server,
    pub(crate) sites: Sites,
    pub(crate) struck: Struck,
    pub(crate) seconds: Seconds,
    observer: Observer,
    pub(crate) queue: Queue<Event>,
    pub(crate) numbering: Numbering,
    due: Option<u64>,
    runner_woken: bool,
    broken: Option<Infra>,
}

impl Simulation {
    /// A trial at microsecond 0: the server does not run, no board has power.
    pub(crate) fn new(
        seed: u64,
        time: Time,
        server: Server,
        boards: Vec<Board>,
        authorization: HeaderValue,
        scheduler: HeaderValue,
    ) -> Self {
        let seats = boards.into_iter().map(|board| {
            let draws = |what: &str| generator(seed, &format!("{what}:{}", board.name()));
            let link = Link::new(draws("link"), draws("loss"));
            Seat { board, link }
        });
        Self {
            seed,
            time,
            history: History::new(),
            seats: seats.collect(),
            server,
            sites: Sites::default(),
            struck: Struck::default(),
            seconds: Seconds::new(scheduler),
            observer: Observer::new(authorization),
            queue: Queue::new(),
            numbering: Numbering::default(),
            due: None,
            runner_woken: false,
            broken: None,
        }
    }

    /// The present instant.
    pub(crate) fn now(&self) -> u64 {
        self.time.now()
    }

    /// Records a fact at the present instant.
    pub(crate) fn record(&mut self, fact: Fact) {
        self.history.push(Micros(self.now()), fact);
    }

    /// Why the trial cannot go on.
    ///
    /// # Errors
    /// Something went wrong inside, now or before.
    pub(crate) fn sound(&self) -> Result<(), Infra> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Lets virtual time pass until `until`, or until `enough` says so after an event.
    pub(crate) fn run(&mut self, until: u64, mut enough: impl FnMut(&mut Self) -> bool) {
        while let Some((at, event)) = self.queue.pop(until) {
            self.time.set(at);
            let outcome = calm(|| self.happen(event))
                .unwrap_or_else(|message| Err(Fault::Wrong(format!("{event:?} panicked: {message}"))));
            if let Err(fault) = outcome {
                self.fail(fault);
            }
            if enough(self) {
                return;
            }
        }
        self.time.set(until);
    }

    fn happen(&mut self, event: Event) -> Result<(), Fault> {
        let now = self.now();
        match event {
            Event::Arrive(index, ticket) => {
                let Some(parcel) = self.seats[index].link.arrive(ticket) else { return Ok(()) };
                for overtaken in self.seats[index].link.overtaken(now, &parcel) {
                    self.queue.push(now, Event::Arrive(index, overtaken));
                }
                match parcel.toward {
                    Toward::Board => {
                        let effects = self.seats[index].board.arrive(
                            now,
                            parcel.connection,
                            parcel.carried,
                            &mut self.numbering,
                        );
                        self.perform(index, effects);
                        self.strike_board(index);
                        Ok(())
                    }
                    Toward::Server => self.ask(index, parcel.connection, parcel.carried),
                }
            }
            Event::Tick(index) => {
                let effects = self.seats[index].board.tick(now, &mut self.numbering);
                self.perform(index, effects);
                self.strike_board(index);
                Ok(())
            }
            Event::Boot(index, number) => {
                let effects = self.seats[index].board.boot(now, number, &mut self.numbering);
                self.perform(index, effects);
                self.strike_board(index);
                Ok(())
            }
            Event::Due if self.due == Some(now) => {
                self.due = None;
                self.decide()
            }
            Event::Due => Ok(()),
            Event::Schedule(number) => self.schedule(number),
            Event::Repeat(number) => self.repeat(number),
            Event::PowerBack(index, number) => {
                self.power_back(index, number);
                Ok(())
            }
            Event::ServerBack(number) => self.server_back(number),
        }
    }

    /// Gives the server what arrived from a board, and lets it do what follows from that.
    fn ask(&mut self, index: usize, connection: Connection, carried: Carried) -> Result<(), Fault> {
        let is_step = matches!(carried, Carried::Bytes(_));
        let arrive = |it: &mut Self| {
            let who = (index, it.seats[index].board.name());
            it.server.arrive(who, connection, carried)
        };
        let asked = if is_step { self.step(arrive)? } else { Step::Taken(arrive(self)?) };
        match asked {
            Step::Taken((outgoing, called)) => {
                self.transmit(outgoing);
                if called { self.decide() } else { Ok(()) }
            }
            Step::Killed(acted) => {
                // What it had to say never left.
                let ends = acted.into_iter().flat_map(|(outgoing, _)| outgoing);
                self.transmit(ends.filter(|it| it.carried == Carried::End).collect());
                Ok(())
            }
        }
    }

    /// Lets the server's controllers do what follows from what was written, or what is due.
    pub(crate) fn decide(&mut self) -> Result<(), Fault> {
        if let Step::Taken(()) = self.step(Self::settle)? {
            self.rest();
        }
        Ok(())
    }

    /// Does what a board wants.
    pub(crate) fn perform(&mut self, index: usize, effects: Vec<Effect>) {
        let now = self.now();
        for effect in effects {
            let seat = &mut self.seats[index];
            match effect {
                Effect::Send(connection, carried) => {
                    self.send(index, connection, Toward::Server, carried);
                }
                Effect::Abandon(connection) => {
                    seat.link.abandon(connection, Toward::Server);
                    self.end_silence(connection);
                }
                Effect::Line(line) => {
                    let board = seat.board.name().to_owned();
                    let line = match line.strip_prefix("PANIC ") {
                        Some(message) => format!("PANIC {message} ({})", self.place()),
                        None => line,
                    };
                    self.record(Fact::Console { board, line });
                }
                Effect::Tick(at) => self.queue.push(at, Event::Tick(index)),
                Effect::Boot(at, number) => self.queue.push(at.max(now), Event::Boot(index, number)),
            }
        }
    }

    /// Puts what the server says on the links.
    pub(crate) fn transmit(&mut self, outgoing: Vec<Outgoing>) {
        for Outgoing { board, connection, carried } in outgoing {
            self.send(board, connection, Toward::Board, carried);
        }
    }

    fn send(&mut self, index: usize, connection: Connection, toward: Toward, carried: Carried) {
        let now = self.now();
        let stuck = self.seats[index].link.is_stuck(connection, toward);
        let fault = self.sites.message(index, now, Message { toward, carried: &carried, stuck });
        let repeat = fault.as_ref().and_then(|fault| self.strike_message(index, connection, &carried, fault));
        let parcel = Parcel { connection, toward, carried };
        let arrivals = self.seats[index].link.send(now, parcel, fault.as_ref().map(|fault| &fault.kind));
        for (at, ticket) in arrivals {
            self.queue.push(at, Event::Arrive(index, ticket));
            if let Some(repeat) = &repeat {
                self.queue.push(repeat.at(at).max(now), Event::Repeat(repeat.number));
            }
        }
    }

    /// A board's processor goes on.
    pub(crate) fn resume(&mut self, index: usize) -> Vec<Effect> {
        let now = self.now();
        self.seats[index].board.resume(now, &mut self.numbering)
    }

    /// A link carries again.
    pub(crate) fn heal(&mut self, index: usize) {
        let now = self.now();
        for (at, ticket) in self.seats[index].link.heal(now) {
            self.queue.push(at, Event::Arrive(index, ticket));
        }
    }

    /// Calls the router for the runner, and lets the server do what follows from it.
    ///
    /// # Errors
    /// The handler waited or panicked.
    pub(crate) fn call(&mut self, who: &str, request: Request<Body>) -> Result<Response<Body>, Fault> {
        self.server.call(who, request)
    }

    /// Starts the server's process, records `act` and that it serves, and looks at everything again.
    ///
    /// # Errors
    /// It did not come up, or failed at once.
    pub(crate) fn start_server(&mut self, act: Option<Fact>) -> Result<(), Fault> {
        self.server.start()?;
        let mut facts: Vec<Fact> = act.into_iter().chain([Fact::ControlPlaneReady {}]).collect();
        let looked = self.observer.look(&mut self.server, &mut facts);
        self.record_all(facts);
        looked?;
        self.rouse_schedulers();
        self.settle()
    }

    /// Watches another stream from now on.
    ///
    /// # Errors
    /// The server failed at it.
    pub(crate) fn watch(&mut self, name: &str, path: &str) -> Result<(), Fault> {
        self.observer.add(name, path);
        if !self.server.is_up() {
            // It is looked at when there is a server again.
            return Ok(());
        }
        let mut facts = Vec::new();
        let looked = self.observer.look(&mut self.server, &mut facts);
        self.record_all(facts);
        looked?;
        self.settle()
    }

    /// Ends the server's process. The observer has seen what was written until then.
    pub(crate) fn end_server(&mut self, how: &str) {
        self.look_once_more();
        let outgoing = self.server.end(how);
        self.transmit(outgoing);
        self.due = None;
        self.seconds.lose();
        let mut facts = Vec::new();
        self.observer.lose(&format!("the control plane was {how}"), &mut facts);
        self.record_all(facts);
    }

    /// Lets the observer read what its watches have to give.
    pub(crate) fn look_once_more(&mut self) {
        for reader in self.server.woken().take() {
            if let Reader::Observer(index) = reader {
                let mut facts = Vec::new();
                // What goes wrong here is a gap, which the end of the server makes anyway.
                let _ = self.observer.drain(index, &mut facts);
                self.record_all(facts);
            }
        }
    }

    /// Runs controllers that are due, reads bodies that have more to give, until the server is quiet.
    pub(crate) fn settle(&mut self) -> Result<(), Fault> {
        loop {
            let due = self.server.reconcile()?;
            let mut called = false;
            for reader in self.server.woken().take() {
                match reader {
                    Reader::Observer(index) => {
                        let mut facts = Vec::new();
                        let read = self.observer.read(index, &mut self.server, &mut facts);
                        self.record_all(facts);
                        read?;
                    }
                    Reader::Connection(connection) => {
                        let seats = &self.seats;
                        let name = |index: usize| seats[index].board.name().to_owned();
                        let (outgoing, again) = self.server.drain(connection, name)?;
                        self.transmit(outgoing);
                        called |= again;
                    }
                    Reader::Runner => self.runner_woken = true,
                    Reader::Scheduler(number) => self.rouse_scheduler(number),
                }
            }
            if !called {
                if let Some(at) = due.filter(|_| due != self.due) {
                    self.queue.push(at, Event::Due);
                }
                self.due = due;
                return Ok(());
            }
        }
    }

    /// Whether the body that the runner reads has more since the last time this was asked.
    pub(crate) fn runner_woken(&mut self) -> bool {
        std::mem::take(&mut self.runner_woken)
    }

    pub(crate) fn record_all(&mut self, facts: Vec<Fact>) {
        for fact in facts {
            self.record(fact);
        }
    }

    /// Where the run is: enough to find the same event again.
    fn place(&self) -> String {
        format!("event {} at {} with seed {}", self.queue.taken(), Micros(self.now()), self.seed)
    }

    /// Takes the server down for good, and keeps why.
    pub(crate) fn fail(&mut self, fault: Fault) -> Infra {
        let what = format!("{}: {}", self.place(), fault.text());
        let infra = Infra::lasting(what.clone(), "run the same scenario with the same seed to meet it again");
        self.end_server(&format!("taken down: {what}"));
        self.record(Fact::Process {
            who: "control-plane".to_owned(),
            event: ProcessEvent::Exited,
            status: -1,
        });
        self.broken.get_or_insert(infra).clone()
    }
}
