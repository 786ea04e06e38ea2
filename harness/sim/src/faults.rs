//! Which faults strike where and when: drawn from the trial's seed, or taken from a schedule.
//!
//! Each site has a generator of its own and takes the same number of draws at every opportunity, whatever comes of them,
//! so that one fate does not shift the next. A fault that does not fit (a repeat of what is no request, a board that is off
//! already) does not strike and is not recorded. Nothing here acts; [`crate::strike`] and [`crate::link`] do.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rigor_model::Constants;
use rigor_model::faults::{Fault, FaultKind, FaultLevel, FaultName, Faults, Schedule, Tally};

use crate::http1;
use crate::link::{Carried, Toward};
use crate::seed::generator;

/// Draws at each opportunity.
const DRAWS: usize = 3;
/// Rates are stated in so many.
const MILLION: u64 = 1_000_000;
/// Mild delays on one link add up to less than half the slack in each stretch of this length, in microseconds.
const STRETCH: u64 = 2_000_000;
/// Between a request and its repeat whose answer nobody gets: less than the answer to the first needs, in microseconds.
const REPEAT: u64 = 150;
/// A crystal is off by no more, in millionths.
const CRYSTAL: i32 = 50;
/// A bad one is, in millionths: what the slack still covers over five minutes.
const BAD_CRYSTAL: i32 = 500;
/// How far the date that a board is told is off, in microseconds: a little, and a lot.
const OFFSETS: (i64, i64) = (10_000, 1_500_000);
/// Longest delay of a message where faults are harsh, in microseconds: longer than any client waits.
const LONGEST_DELAY: u64 = 8_000_000;
/// Longest time that the server is down, in microseconds; less than the runner waits for an answer.
const LONGEST_DOWN: u64 = 5_000_000;
/// Most writes that a step of the server that it is killed in still makes; few steps make more.
const MOST_WRITES: u64 = 16;

/// A message that is about to go over a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) toward: Toward,
    pub(crate) carried: &'a Carried,
    /// The link is cut, or what is sent on the connection is lost anyway.
    pub(crate) stuck: bool,
}

impl Message<'_> {
    fn length(&self) -> u64 {
        match self.carried {
            Carried::Bytes(bytes) => bytes.len() as u64,
            Carried::Open | Carried::Opened | Carried::End | Carried::Reset => 0,
        }
    }

    /// Whether it is one request, whole, and nothing besides.
    fn is_request(&self) -> bool {
        let (Carried::Bytes(bytes), Toward::Server) = (self.carried, self.toward) else { return false };
        let mut bytes = bytes.clone();
        matches!(http1::take_request(&mut bytes), Ok(Some(_))) && bytes.is_empty()
    }

    fn fits(&self, kind: &FaultKind) -> bool {
        !self.stuck
            && match kind {
                FaultKind::Delay { .. } | FaultKind::Reorder { .. } | FaultKind::Lose {} => true,
                FaultKind::Duplicate { .. } => self.is_request(),
                FaultKind::Cut { keep, .. } => *keep < self.length(),
                FaultKind::Clock { .. } | FaultKind::PowerCut { .. } | FaultKind::Kill { .. } => false,
            }
    }
}

/// All sites of a trial.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    links: Vec<Site>,
    boards: Vec<Site>,
    server: Site,
    /// What does not strike, …
    without: BTreeSet<FaultName>,
    /// … and how often it would have.
    withheld: Tally,
}

impl Sites {
    /// The sites of a trial with these boards.
    pub(crate) fn new(faults: &Faults, constants: &Constants, boards: &[&str], seed: u64) -> Self {
        let site = |name: String| match faults {
            Faults::None => Site { name, ..Site::default() },
            Faults::Drawn(level) => {
                let plan = Plan::draw(*level, constants, seed);
                let draws = generator(seed, &format!("faults:{name}"));
                let source = Source::Drawn(Drawn { draws, plan, struck: 0, recent: VecDeque::new() });
                Site { name, next: 0, source }
            }
            Faults::Listed(schedule) => Site::listed(name, schedule),
        };
        Self {
            links: boards.iter().map(|board| site(format!("link:{board}"))).collect(),
            boards: boards.iter().map(|board| site(format!("board:{board}"))).collect(),
            server: site("server".to_owned()),
            without: BTreeSet::new(),
            withheld: Tally::default(),
        }
    }

    /// The same sites, of whose faults these do not strike. Each is drawn and counts towards the limits of its site as if it
    /// had struck.
    pub(crate) fn withholding(self, without: &BTreeSet<FaultName>) -> Self {
        Self { without: without.clone(), ..self }
    }

    /// The faults that would have struck and were withheld.
    pub(crate) fn withheld(&self) -> &Tally {
        &self.withheld
    }

    /// The fault, if it is not to be withheld.
    fn unless_withheld(&mut self, fault: Option<Fault>) -> Option<Fault> {
        let fault = fault?;
        if !self.without.contains(&fault.kind.named()) {
            return Some(fault);
        }
        self.withheld.count(&fault.kind);
        None
    }

    /// What happens to the next message on the link of the board with this index.
    pub(crate) fn message(&mut self, board: usize, now: u64, message: Message<'_>) -> Option<Fault> {
        let site = self.links.get_mut(board)?;
        let draw = |drawn: &mut Drawn, draws| drawn.message(now, draws, message.length());
        let fault = site.next(now, draw, |kind| message.fits(kind));
        self.unless_withheld(fault)
    }

    /// What the clocks of the board with this index are: its first opportunity.
    pub(crate) fn clock(&mut self, board: usize) -> Option<Fault> {
        let fits = |kind: &FaultKind| matches!(kind, FaultKind::Clock { .. });
        let fault = self.boards.get_mut(board)?.next(0, |drawn, draws| drawn.clock(draws), fits);
        self.unless_withheld(fault)
    }

    /// Whether the board with this index loses its power between two of its events; `fits` if it can.
    pub(crate) fn power(&mut self, board: usize, now: u64, fits: bool) -> Option<Fault> {
        let fits = |kind: &FaultKind| fits && matches!(kind, FaultKind::PowerCut { .. });
        let fault = self.boards.get_mut(board)?.next(now, |drawn, draws| drawn.power(now, draws), fits);
        self.unless_withheld(fault)
    }

    /// Whether the server is killed before its next step or in it; `fits` if it can be.
    pub(crate) fn kill(&mut self, now: u64, fits: bool) -> Option<Fault> {
        let fits = |kind: &FaultKind| fits && matches!(kind, FaultKind::Kill { .. });
        let fault = self.server.next(now, |drawn, draws| drawn.kill(now, draws), fits);
        self.unless_withheld(fault)
    }
}

/// Numbers the opportunities of one site.
#[derive(Debug, Default)]
struct Site {
    name: String,
    next: u64,
    source: Source,
}

#[derive(Debug, Default)]
enum Source {
    #[default]
    Quiet,
    Drawn(Drawn),
    Listed(BTreeMap<u64, FaultKind>),
}

impl Site {
    fn listed(name: String, schedule: &Schedule) -> Self {
        let mine = schedule.faults.iter().filter(|fault| fault.site == name);
        let source = Source::Listed(mine.map(|fault| (fault.nth, fault.kind)).collect());
        Self { name, next: 0, source }
    }

    /// What strikes at the next opportunity.
    fn next(
        &mut self,
        now: u64,
        draw: impl FnOnce(&mut Drawn, [u64; DRAWS]) -> Option<FaultKind>,
        fits: impl FnOnce(&FaultKind) -> bool,
    ) -> Option<Fault> {
        let nth = self.next;
        self.next += 1;
        let kind = match &mut self.source {
            Source::Quiet => None,
            Source::Listed(listed) => listed.get(&nth).copied().filter(fits),
            Source::Drawn(drawn) => {
                let draws = std::array::from_fn(|_| drawn.draws.u64(..));
                let kind = draw(drawn, draws).filter(fits);
                if let Some(kind) = &kind {
                    drawn.note(now, kind);
                }
                kind
            }
        };
        kind.map(|kind| Fault { site: self.name.clone(), nth, kind })
    }
}

/// What faults a trial has on the whole, drawn once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    level: FaultLevel,
    /// Faults begin from then on, in microseconds.
    from: u64,
    /// From then on no fault begins, in microseconds.
    until: u64,
    /// Of a million messages so many are delayed, …
    delay: u64,
    reorder: u64,
    duplicate: u64,
    lose: u64,
    cut: u64,
    /// After so many of a million events of a board its power goes.
    power: u64,
    /// After so many of a million steps of the server it is killed.
    kill: u64,
    /// Most messages lost or cut on one link, power cuts of one board, kills.
    most: (u64, u64, u64),
    /// Half the slack, in microseconds.
    half_slack: u64,
    /// Longest time that a board is dark, in microseconds.
    longest_dark: u64,
}

impl Plan {
    fn draw(level: FaultLevel, constants: &Constants, seed: u64) -> Self {
        let mut draws = generator(seed, "faults:plan");
        let mut scale = |low, high| scaled(draws.u64(..), low, high);
        let micros = |length: std::time::Duration| u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        // Short trials want faults at once, long ones also late: half of the plans begin with the trial, and the
        // instants of the others and all lengths spread evenly over scales from a second to ten minutes.
        let (from, length) = (scale(1_000_000, 600_000_000), scale(1_000_000, 600_000_000));
        let plan = Self {
            level,
            from,
            until: 0,
            delay: scale(10_000, 400_000),
            reorder: scale(5_000, 150_000),
            duplicate: scale(5_000, 200_000),
            lose: scale(500, 60_000),
            cut: scale(500, 60_000),
            power: scale(500, 50_000),
            kill: scale(200, 50_000),
            most: (scale(1, 16), scale(1, 4), scale(1, 6)),
            half_slack: micros(constants.slack) / 2,
            longest_dark: micros(constants.lease_duration).saturating_mul(2).max(1_000_000),
        };
        let from = if draws.bool() { 0 } else { plan.from };
        match level {
            FaultLevel::None => Self { from: 0, until: 0, ..plan },
            // Nothing has to converge afterwards: they go on to the end.
            FaultLevel::Mild => Self { from: 0, until: u64::MAX, lose: 0, cut: 0, power: 0, kill: 0, ..plan },
            FaultLevel::Harsh => Self { from, until: from.saturating_add(length), ..plan },
        }
    }
}

/// What a site draws.
#[derive(Debug)]
struct Drawn {
    draws: fastrand::Rng,
    plan: Plan,
    /// Faults so far of which there is a limited number.
    struck: u64,
    /// When and by how much messages were delayed of late.
    recent: VecDeque<(u64, u64)>,
}

impl Drawn {
    fn is_on(&self, now: u64) -> bool {
        (self.plan.from..self.plan.until).contains(&now)
    }

    fn message(&mut self, now: u64, draws: [u64; DRAWS], length: u64) -> Option<FaultKind> {
        let [which, amount, more] = draws;
        let plan = self.plan;
        let longest = match plan.level {
            FaultLevel::None => return None,
            FaultLevel::Mild => self.allowance(now),
            FaultLevel::Harsh => LONGEST_DELAY,
        };
        let mut which = which % MILLION;
        let mut hit = |rate: u64| {
            let hit = which < rate;
            which = if hit { u64::MAX } else { which - rate };
            hit
        };
        // All are asked in one order, so that each has its own part of the million.
        let hits = [plan.delay, plan.reorder, plan.duplicate, plan.lose, plan.cut].map(&mut hit);
        if !self.is_on(now) {
            return None;
        }
        let limited = self.struck < plan.most.0;
        match hits {
            [true, ..] if longest > 0 => {
                Some(FaultKind::Delay { micros: scaled(amount, longest.min(500), longest) })
            }
            [_, true, ..] if longest > 0 => {
                Some(FaultKind::Reorder { at_most: scaled(amount, longest.min(5_000), longest) })
            }
            [_, _, true, ..] => Some(match plan.level {
                FaultLevel::None | FaultLevel::Mild => {
                    FaultKind::Duplicate { after: amount % REPEAT, second: false }
                }
                FaultLevel::Harsh => match more % 2 {
                    0 => FaultKind::Duplicate { after: amount % REPEAT, second: false },
                    _ => FaultKind::Duplicate { after: scaled(amount, 100, 1_000_000), second: true },
                },
            }),
            [_, _, _, true, _] if limited => Some(FaultKind::Lose {}),
            [.., true] if limited && length > 0 => {
                Some(FaultKind::Cut { keep: amount % length, silent: more % 2 == 0 })
            }
            _ => None,
        }
    }

    /// How much a mild delay may add now.
    fn allowance(&mut self, now: u64) -> u64 {
        while self.recent.front().is_some_and(|(at, _)| at + STRETCH < now) {
            self.recent.pop_front();
        }
        let spent: u64 = self.recent.iter().map(|(_, micros)| micros).sum();
        self.plan.half_slack.saturating_sub(1).saturating_sub(spent)
    }

    fn clock(&self, draws: [u64; DRAWS]) -> Option<FaultKind> {
        let (offset, ppm) = match self.plan.level {
            FaultLevel::None => return None,
            FaultLevel::Mild => (OFFSETS.0, CRYSTAL),
            FaultLevel::Harsh => (OFFSETS.1, BAD_CRYSTAL),
        };
        let within = |draw: u64, most: i64| {
            i64::try_from(draw % (2 * most.unsigned_abs() + 1)).unwrap_or_default() - most
        };
        let ppm = i32::try_from(within(draws[1], ppm.into())).unwrap_or_default();
        Some(FaultKind::Clock { offset: within(draws[0], offset), ppm })
    }

    fn power(&self, now: u64, draws: [u64; DRAWS]) -> Option<FaultKind> {
        let strikes =
            self.is_on(now) && self.struck < self.plan.most.1 && draws[0] % MILLION < self.plan.power;
        strikes.then(|| FaultKind::PowerCut { dark: scaled(draws[1], 50_000, self.plan.longest_dark) })
    }

    fn kill(&self, now: u64, draws: [u64; DRAWS]) -> Option<FaultKind> {
        let strikes =
            self.is_on(now) && self.struck < self.plan.most.2 && draws[0] % MILLION < self.plan.kill;
        let writes = if draws[2].is_multiple_of(2) { 0 } else { scaled(draws[2] / 2, 1, MOST_WRITES) };
        strikes.then(|| FaultKind::Kill { down: scaled(draws[1], 30_000, LONGEST_DOWN), writes })
    }

    /// A fault struck.
    fn note(&mut self, now: u64, kind: &FaultKind) {
        match kind {
            FaultKind::Delay { micros } | FaultKind::Reorder { at_most: micros } => match self.plan.level {
                FaultLevel::Mild => self.recent.push_back((now, *micros)),
                FaultLevel::None | FaultLevel::Harsh => {}
            },
            FaultKind::Lose {}
            | FaultKind::Cut { .. }
            | FaultKind::PowerCut { .. }
            | FaultKind::Kill { .. } => {
                self.struck += 1;
            }
            FaultKind::Duplicate { .. } | FaultKind::Clock { .. } => {}
        }
    }
}

/// A number from `low` to `high`, the same chance for each doubling; whole numbers only, so that every machine draws the
/// same. `low` is not zero.
fn scaled(draw: u64, low: u64, high: u64) -> u64 {
    let low = low.max(1);
    let octaves = u64::from((high / low).max(1).ilog2()) + 1;
    let base = low << (draw % octaves);
    (base + (draw / octaves) % base).min(high)
}

#[cfg(test)]
mod tests;
