//! Injected faults, and what they change in a verdict: the one place that knows.
//!
//! Mild faults change nothing. With harsh ones monitors hold and nothing may be too early, as ever. Upper edges count from the last fault
//! that began before the window closed. What a fault may rightly break (`never`, `always`, `unchanged`, exact counts, and
//! what was so before a window's base) is excused where a fault or its aftermath lies in its window, and told of.

use std::time::Duration;

use rigor_model::expr::Instant;

use super::{Bench, Unresolved, Verdict};
use crate::faults::Injected;
use crate::history::Micros;
use crate::interval::Interval;

/// The longest time that a board waits before it tries again what failed.
const BOARD_RETRY: Duration = Duration::from_secs(10);

/// The longest time that a board that lost its connection waits before it opens the next: 2 s and a quarter of jitter.
const RECONNECT: Duration = Duration::from_millis(2_500);

/// The least step of time between two looks at an expectation that waits for a fault to be over.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// From when until when a fault did harm, as far as is known.
#[derive(Debug, Clone, Copy)]
struct Harm<'a> {
    fault: &'a Injected,
    begin: Micros,
    end: Micros,
}

impl<'h> Bench<'h, '_> {
    /// The faults that may break what a scenario says, in the order in which they began. One that is not over yet ends now.
    fn harm(&self) -> impl Iterator<Item = Harm<'h>> + use<'h> {
        let now = self.view.now();
        self.view.harsh_faults().map(move |(fault, end)| {
            let end = end.unwrap_or(if fault.lasts { now } else { fault.over() });
            Harm { fault, begin: fault.at, end }
        })
    }

    /// How long after a fault its effects may still come: until a board that was cut off is in contact again, and what was decided
    /// of it meanwhile is decided anew.
    fn aftermath(&self) -> Duration {
        let constants = &self.constants;
        constants.lease_duration
            + constants.check_period
            + constants.retry_period
            + constants.controller_period
            + BOARD_RETRY
    }

    /// How long after a fault its victims may still wait before they try again.
    fn respite(&self) -> Duration {
        if self.judge.scenario().boards.is_empty() { Duration::ZERO } else { RECONNECT }
    }

    /// An upper edge that lies `own` after what it counts from: from when a board tried again after the last fault, if that is
    /// later. A fault that began after the window had closed moves nothing: until then there was quiet for as long as the bound says.
    pub(super) fn late_edge(&self, edge: Interval, own: Duration) -> Interval {
        let own = own + self.respite();
        self.harm().fold(edge, |edge, harm| {
            if harm.begin > edge.latest {
                return edge;
            }
            let waits = harm.fault.lasts && harm.end == self.view.now();
            let own = if waits { own.max(LOOK_AGAIN) } else { own };
            edge.later(Interval::exactly(harm.end + own))
        })
    }

    /// How long after what it counts from an instant lies.
    pub(super) fn own_time(&self, instant: &Instant) -> Result<Duration, Unresolved> {
        let extreme = |all: &[Instant], last: bool| -> Result<Duration, Unresolved> {
            let mut chosen: Option<(Micros, Duration)> = None;
            for one in all {
                let (when, own) = (self.resolve(one)?.latest, self.own_time(one)?);
                if chosen.is_none_or(|(best, _)| (when > best) == last && when != best) {
                    chosen = Some((when, own));
                }
            }
            Ok(chosen.map_or(Duration::ZERO, |(_, own)| own))
        };
        match instant {
            Instant::Plus(from, length) => Ok(self.own_time(from)? + length.resolve(&self.constants)),
            Instant::Minus(from, length) => {
                Ok(self.own_time(from)?.saturating_sub(length.resolve(&self.constants)))
            }
            Instant::Latest(all) => extreme(all, true),
            Instant::Earliest(all) => extreme(all, false),
            Instant::Named(_)
            | Instant::Start
            | Instant::Begin
            | Instant::Serving
            | Instant::LastRenewal { .. }
            | Instant::Stamp { .. }
            | Instant::Mark { .. }
            | Instant::Request { .. } => Ok(Duration::ZERO),
        }
    }

    /// Why an upper edge lies later than it is written, if so.
    pub(super) fn why_later(&self, plain: Interval, moved: Interval) -> Option<String> {
        let last = self.harm().filter(|harm| harm.begin <= moved.latest && plain != moved).last()?;
        Some(format!("the upper edge counts from the last fault, {}", told(last)))
    }

    /// The fault that may have brought about what came at `when` and was looked for from `from` on: it began before, and window and
    /// effect lie in it or in its aftermath.
    pub(super) fn excuse(&self, when: Interval, from: Interval) -> Option<String> {
        let aftermath = self.aftermath();
        let to_blame = |harm: &Harm<'_>| {
            let over = harm.end + aftermath;
            harm.begin <= when.latest && when.earliest <= over && from.earliest <= over
        };
        let harm = self.harm().filter(to_blame).last()?;
        Some(format!("faults in its window: {}", told(harm)))
    }

    /// Why nobody could see in a stretch of time, if a fault had killed the server.
    pub(super) fn blinded(&self, when: Interval) -> Option<String> {
        let dark =
            |harm: &Harm<'_>| harm.fault.is_kill() && harm.begin <= when.latest && when.earliest <= harm.end;
        Some(format!("nobody could see what happened: {}", told(self.harm().filter(dark).last()?)))
    }

    /// A failure, or, where there is an excuse for it, the same as a pass that says so.
    pub(super) fn unless_excused(failure: Verdict, excuse: Option<String>) -> Verdict {
        match excuse {
            None => failure,
            Some(excuse) => {
                let text = failure.message.clone().unwrap_or_default();
                Verdict { excused: Some(format!("{text}\n  excused: {excuse}")), ..failure.passed() }
            }
        }
    }
}

fn told(harm: Harm<'_>) -> String {
    let (kind, site) = (harm.fault.fault.kind.name(), &harm.fault.fault.site);
    if harm.begin == harm.end {
        return format!("{kind} at {site} at {}", harm.begin);
    }
    format!("{kind} at {site} from {} to {}", harm.begin, harm.end)
}
