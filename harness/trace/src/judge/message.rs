//! What a failure says: the sentence, the window and the instants on it, the nearest thing that did
//! happen and how it differs, and where the evidence lies.

use std::collections::BTreeMap;

use rigor_model::expect::{ExpectWindow, Span};
use rigor_model::expr::Instant;
use rigor_model::pattern::Count;

use super::Bench;
use crate::history::{Fact, Micros, Phase, Record, flash_words, link_words};
use crate::interval::Interval;
use crate::matching::Difference;
use crate::timeline::{Look, Occurrence};

/// How many differences of the closest object are told.
pub(super) const TOLD: usize = 4;

/// A window with its edges resolved, told only when there is something to tell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Window<'i> {
    Expect { window: &'i ExpectWindow, not_before: Option<Interval>, not_after: Interval },
    Span { span: &'i Span, from: Interval, until: Interval },
    Capture { until: Micros },
}

impl<'i> Window<'i> {
    /// The edges as they are written.
    pub(super) fn edges(self) -> Vec<&'i Instant> {
        match self {
            Window::Expect { window: ExpectWindow::Within { from, .. }, .. } => vec![from],
            Window::Expect { window: ExpectWindow::Between { not_before, not_after }, .. } => {
                vec![not_before, not_after]
            }
            Window::Span { span, .. } => vec![&span.from, &span.until],
            Window::Capture { .. } => Vec::new(),
        }
    }

    /// The edges and the instants that they are computed from, each on a line.
    fn lines(self, bench: &Bench<'_, '_>) -> String {
        let mut lines = match self {
            Window::Expect { window: ExpectWindow::Within { from, length }, not_after, .. } => {
                vec![format!("not after  {not_after}   = {from} + {length}")]
            }
            Window::Expect {
                window: ExpectWindow::Between { not_before: lower, not_after: upper },
                not_before,
                not_after,
            } => {
                let lower = not_before.map(|edge| format!("not before {edge}   = {lower}"));
                lower.into_iter().chain([format!("not after  {not_after}   = {upper}")]).collect()
            }
            Window::Capture { until } => vec![format!("not after  {until}")],
            Window::Span { span, from, until } => {
                vec![format!("from  {from}   = {}", span.from), format!("until {until}   = {}", span.until)]
            }
        };
        if let Window::Expect { window, not_after, .. } = self {
            let plain = match window {
                ExpectWindow::Within { from, length } => {
                    bench.resolve(from).map(|from| from.plus(length.resolve(&bench.constants)))
                }
                ExpectWindow::Between { not_after, .. } => bench.resolve(not_after),
            };
            lines.extend(plain.ok().and_then(|plain| bench.why_later(plain, not_after)));
        }
        let bases = self.edges().into_iter().flat_map(Instant::bases);
        let named: BTreeMap<String, &Instant> = bases.map(|base| (base.to_string(), base)).collect();
        for (name, base) in
            named.into_iter().filter(|(_, base)| !matches!(base, Instant::Begin | Instant::Start))
        {
            if let Ok(when) = bench.resolve(base) {
                lines.push(format!("{name} was at {when}"));
            }
        }
        lines.into_iter().map(|line| format!("\n  {line}")).collect()
    }
}

impl Bench<'_, '_> {
    /// Sentence, window, and a reason.
    pub(super) fn explain(&self, window: Window<'_>, why: &str) -> String {
        format!("{}{}\n  {why}", self.sentence(), window.lines(self))
    }

    /// Something was found, outside its window.
    pub(super) fn found_outside(
        &self,
        record: Option<usize>,
        when: Interval,
        how: &str,
        window: Window<'_>,
    ) -> String {
        let what = record.map_or("it was so from the start".to_owned(), |record| self.described(record));
        format!(
            "{}{}\n  it came at {when}, {how}: {what}{}",
            self.sentence(),
            window.lines(self),
            evidence(record)
        )
    }

    /// Something was so that must not be, or the other way round.
    pub(super) fn happened(
        &self,
        look: &Look,
        record: Option<usize>,
        when: Interval,
        what: &str,
        window: Window<'_>,
    ) -> String {
        let mut text = format!("{}{}\n  {what} at {when}", self.sentence(), window.lines(self));
        match record {
            Some(record) => {
                text += &format!(": {}", self.described(record));
                let differences = self.differences(look, record);
                text += &listed(&differences);
            }
            None => match look {
                Look::State { selection, .. } if selection.objects(&self.view).is_empty() => {
                    text += &format!(": no {} of that selection was there", selection.kind);
                }
                Look::State { .. } | Look::Occurrences { .. } => text += ": so it was from the start",
            },
        }
        text + &evidence(record)
    }

    /// Nothing of the kind was found: tells what came closest.
    pub(super) fn never_came(
        &self,
        look: &Look,
        from: Interval,
        until: Interval,
        window: Window<'_>,
    ) -> String {
        let head = format!("{}{}", self.sentence(), window.lines(self));
        match look {
            Look::State { selection, count, .. } => {
                let numbers = self.numbers(look, count.as_ref(), until);
                match self.closest(look, from, until) {
                    Some((version, differences)) => {
                        let when = self.view.interval(version);
                        let what = self.described(version.record);
                        format!(
                            "{head}\n  it never came{numbers}; closest was {what}, at {when}, which differs:{}{}",
                            listed(&differences),
                            evidence(Some(version.record))
                        )
                    }
                    None if numbers.is_empty() => {
                        format!("{head}\n  it never came: no {} of that selection was there", selection.kind)
                    }
                    None => format!("{head}\n  it never came{numbers}"),
                }
            }
            Look::Occurrences { of, .. } => format!("{head}\n  it never came{}", self.near_misses(of, from)),
        }
    }

    /// A wrong number of occurrences.
    #[expect(clippy::too_many_arguments, reason = "all of it stands in the message")]
    pub(super) fn miscounted(
        &self,
        look: &Look,
        all: &[Occurrence],
        count: &Count,
        (certain, possible): (u64, u64),
        opens: Interval,
        closes: Interval,
        window: Window<'_>,
    ) -> String {
        let number =
            if certain == possible { certain.to_string() } else { format!("{certain} to {possible}") };
        let mut text = format!(
            "{}{}\n  {number} in the window, where the count is {count}",
            self.sentence(),
            window.lines(self)
        );
        for occurrence in all.iter().rev().take(TOLD).rev() {
            let where_ = if occurrence.when.is_before(opens) {
                "before the window"
            } else if closes.is_before(occurrence.when) {
                "after the window"
            } else {
                "in the window"
            };
            let times =
                if occurrence.times > 1 { format!(" ({} times)", occurrence.times) } else { String::new() };
            text += &format!(
                "\n    {} {where_}{times}: {} (seq {})",
                occurrence.when,
                self.described(occurrence.record),
                occurrence.record
            );
        }
        if let (true, Look::Occurrences { of, .. }) = (all.is_empty(), look) {
            text += &self.near_misses(of, opens);
        }
        text
    }

    pub(super) fn described(&self, record: usize) -> String {
        describe(&self.history.records()[record])
    }
}

/// A record in few words.
pub(crate) fn describe(record: &Record) -> String {
    match &record.fact {
        Fact::Object { verb, object, .. } => {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let metadata = &object["metadata"];
            let mut name = text(&metadata["name"]);
            if let Some(namespace) = metadata["namespace"].as_str() {
                name = format!("{namespace}/{name}");
            }
            let mut told = format!(
                "{} {name} (resourceVersion {}, {verb:?})",
                text(&object["kind"]),
                text(&metadata["resourceVersion"])
            );
            if object["kind"] == "Event" {
                told = format!(
                    "Event {} on {}: {}",
                    text(&object["reason"]),
                    text(&object["involvedObject"]["name"]),
                    text(&object["message"])
                );
            }
            told
        }
        Fact::Console { board, line } => format!("console of {board}: {line}"),
        Fact::SchedulerLine { name, line } => format!("output of the scheduler {name}: {line}"),
        Fact::Request { method, path, status, as_user, .. } => {
            format!("{method} {path} as {as_user}: {status}")
        }
        Fact::Synced { stream } => format!("it was no longer in the list of {stream}"),
        Fact::Power { board, act, .. } => format!("power of {board}: {}", act.name()),
        Fact::Link { board, act, micros, percent, .. } => {
            format!("link of {board}: {}", link_words(*act, *micros, *percent))
        }
        Fact::ControlPlane { act, .. } => format!("control plane: {}", act.name()),
        Fact::Scheduler { name, act, .. } => format!("scheduler {name}: {}", act.name()),
        Fact::Flash { board, image, sha256, erased, .. } => {
            format!("flash of {board}: {}", flash_words(image.as_deref(), sha256, *erased))
        }
        Fact::Sent { board, line } => format!("sent to the console of {board}: {line}"),
        Fact::Mark { name, subject } => {
            format!("mark {name}{}", subject.iter().map(|of| format!(" of {of}")).collect::<String>())
        }
        Fact::ControlPlaneReady {} => "the control plane serves".to_owned(),
        Fact::Process { who, status, .. } => format!("{who} ended with {status}"),
        Fact::Fault { fault, phase: Phase::Begin } => {
            format!("fault at {}: {}", fault.site, fault.kind.name())
        }
        Fact::Fault { fault, phase: Phase::End } => {
            format!("fault at {} is over: {}", fault.site, fault.kind.name())
        }
        Fact::TrialStarted { .. }
        | Fact::Namespace { .. }
        | Fact::Board { .. }
        | Fact::Delivery { .. }
        | Fact::Gap { .. }
        | Fact::Pulse { .. }
        | Fact::Kubectl(_)
        | Fact::Etcdctl(_)
        | Fact::Step { .. }
        | Fact::Instant { .. }
        | Fact::Stall { .. }
        | Fact::TrialEnded {} => format!("record {}", record.seq),
    }
}

pub(super) fn listed(differences: &[Difference]) -> String {
    let mut text: String = differences
        .iter()
        .take(TOLD)
        .map(|difference| {
            let path = if difference.path.is_empty() { "the object" } else { &difference.path };
            format!("\n    {path}: expected {}, found {}", difference.expected, difference.found)
        })
        .collect();
    if differences.len() > TOLD {
        text += &format!("\n    and {} more", differences.len() - TOLD);
    }
    text
}

pub(super) fn evidence(record: Option<usize>) -> String {
    match record {
        Some(record) => format!("\n  evidence: events.jsonl, seq {record}"),
        None => String::new(),
    }
}
