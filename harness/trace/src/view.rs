//! A history as it was known at some time: nothing recorded later is seen, so that judging again gives
//! the same verdict.

use std::time::Duration;

use jiff::Timestamp;
use rigor_model::expect::Speaker;
use serde_json::Value;

use crate::faults::Injected;
use crate::history::{
    ControlPlaneAct, Fact, Fault, FaultKind, FaultLevel, History, Micros, Phase, Ran, Record, VIRTUAL_EPOCH,
};
use crate::index::{Blind, ObjectKey, StepMarks, Stream, Version};
use crate::interval::Interval;

/// The first `end` records of a history, asked at `now`.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    history: &'a History,
    end: usize,
    now: Micros,
    slack: Duration,
}

impl<'a> View<'a> {
    /// The first `end` records, asked at `now`.
    pub fn new(history: &'a History, end: usize, now: Micros, slack: Duration) -> View<'a> {
        View { history, end: end.min(history.len()), now, slack }
    }

    /// When it is asked.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// The slack in force.
    pub fn slack(&self) -> Duration {
        self.slack
    }

    /// The records that are seen.
    pub fn records(&self) -> &'a [Record] {
        &self.history.records()[..self.end]
    }

    /// The first of a list of record numbers that are seen.
    fn seen<'r>(&self, numbers: &'r [usize]) -> &'r [usize] {
        &numbers[..numbers.partition_point(|record| *record < self.end)]
    }

    /// Whether times are exact (virtual time).
    pub fn exact(&self) -> bool {
        !self.history.index().real_time
    }

    /// How long after an instant everything up to it is known.
    pub fn lag(&self) -> Duration {
        if self.exact() { Duration::from_micros(1) } else { self.slack }
    }

    /// The trial's own namespace.
    pub fn namespace(&self) -> &'a str {
        self.history.index().namespace()
    }

    /// The stream of that plural, if anything of it was seen.
    pub(crate) fn stream(&self, plural: &str) -> Option<&'a Stream> {
        self.history.index().streams.get(plural)
    }

    /// The versions of an object that are seen, oldest first.
    pub fn versions(&self, plural: &str, key: &ObjectKey) -> &'a [Version] {
        self.stream(plural)
            .and_then(|stream| stream.object(key))
            .map_or(&[], |(_, all)| self.seen_versions(all))
    }

    pub(crate) fn seen_versions<'v>(&self, versions: &'v [Version]) -> &'v [Version] {
        &versions[..versions.partition_point(|version| version.record < self.end)]
    }

    /// Whether the stream's first list is in.
    pub fn synced(&self, plural: &str) -> bool {
        self.stream(plural).is_some_and(|stream| !self.seen(&stream.syncs).is_empty())
    }

    /// The times in which a stream was blind after its first list, as far as is seen; an open one ends now.
    pub fn blind(&self, plural: &str) -> Vec<Blind> {
        let Some(stream) = self.stream(plural) else { return Vec::new() };
        stream
            .blind
            .iter()
            .filter(|blind| blind.record < self.end)
            .map(|blind| Blind { end: blind.end.filter(|(record, _)| *record < self.end), ..blind.clone() })
            .collect()
    }

    /// The object of a version (its last state, for an end).
    pub fn object(&self, version: &Version) -> &'a Value {
        let body = &self.history.records()[version.body].fact;
        if let Fact::Object { object, .. } = body { object } else { &Value::Null }
    }

    /// When a version came to be.
    pub fn interval(&self, version: &Version) -> Interval {
        let index = self.history.index();
        if self.exact() {
            return Interval::new(version.blind_since.unwrap_or(version.at), version.at);
        }
        let mut earliest = version.blind_since.map_or(Micros::ZERO, |since| since - self.slack);
        let mut latest = version.at;
        if let (Some(delivery), None) = (index.delivery, version.blind_since) {
            earliest = earliest.max(version.at - delivery.as_duration());
        }
        let Some(resource_version) = version.resource_version else { return Interval::new(earliest, latest) };
        if let Some((record, sent, at)) = index.creations.get(&resource_version)
            && *record < self.end
        {
            earliest = earliest.max(*sent);
            latest = latest.min(*at);
        }
        let pulses = &index.pulses[..index.pulses.partition_point(|pulse| pulse.record < self.end)];
        if index.pulses_fell {
            for pulse in pulses {
                if pulse.resource_version < resource_version {
                    earliest = earliest.max(pulse.sent);
                } else {
                    latest = latest.min(pulse.at);
                }
            }
        } else {
            let split = pulses.partition_point(|pulse| pulse.resource_version < resource_version);
            if let Some(before) = split.checked_sub(1).and_then(|last| pulses.get(last)) {
                earliest = earliest.max(before.sent);
            }
            if let Some(after) = pulses.get(split) {
                latest = latest.min(after.at);
            }
        }
        Interval::new(earliest, latest)
    }

    /// When a fact that is no object happened, from what its record says.
    pub fn fact_interval(&self, record: &Record) -> Interval {
        let since = if let Fact::Request { sent: since, .. }
        | Fact::Power { begun: since, .. }
        | Fact::Link { begun: since, .. }
        | Fact::ControlPlane { begun: since, .. }
        | Fact::Scheduler { begun: since, .. }
        | Fact::Flash { begun: since, .. }
        | Fact::Kubectl(Ran { begun: since, .. })
        | Fact::Etcdctl(Ran { begun: since, .. }) = &record.fact
        {
            *since
        } else if record.fact.line().is_some() && !self.exact() {
            // A line may have lain in a buffer, though not for longer than the slack.
            record.at - self.slack
        } else {
            record.at
        };
        Interval::new(since, record.at)
    }

    /// The versions of a node's lease that renewed it, as far as they are seen, oldest first.
    pub(crate) fn renewals(&self, key: &ObjectKey) -> impl DoubleEndedIterator<Item = &'a Version> + use<'a> {
        let versions = self.versions("leases", key);
        let renewals = self.history.index().renewals.get(key).map_or(&[][..], Vec::as_slice);
        renewals.iter().filter_map(move |place| versions.get(*place))
    }

    /// The last renewal that may have been accepted by an instant.
    pub(crate) fn last_renewal_before(&self, key: &ObjectKey, latest: Micros) -> Option<Interval> {
        let may = |version: &&Version| self.interval(version).earliest <= latest;
        let index = self.history.index();
        if index.pulses_fell || index.delivery.is_some() {
            return self.renewals(key).rev().find(may).map(|version| self.interval(version));
        }
        // What had arrived by then was accepted by then; of what came later only the next few may have been: with every
        // version the earliest instant rises, but for those of which more is known than that a pulse came before them.
        let plain = |version: &&Version| {
            let created =
                version.resource_version.is_some_and(|number| index.creations.contains_key(&number));
            version.blind_since.is_none() && !created
        };
        let versions = self.versions("leases", key);
        let renewals = self.history.index().renewals.get(key).map_or(&[][..], Vec::as_slice);
        let renewals = &renewals[..renewals.partition_point(|place| *place < versions.len())];
        let arrived = renewals.partition_point(|place| versions[*place].at <= latest);
        let later = renewals[arrived..].iter().map(|place| &versions[*place]);
        let later = later.take_while(|version| may(version) || !plain(version)).filter(may).last();
        let found = later.or_else(|| arrived.checked_sub(1).map(|last| &versions[renewals[last]]));
        found.map(|version| self.interval(version))
    }

    /// Records of requests that are seen, by number.
    pub(crate) fn request_numbers(&self) -> &'a [usize] {
        self.seen(&self.history.index().requests)
    }

    /// Records of somebody's lines that are seen, by number.
    pub(crate) fn line_numbers(&self, of: &Speaker) -> &'a [usize] {
        let index = self.history.index();
        let lines = match of {
            Speaker::Board(board) => index.console.get(board),
            Speaker::Scheduler(name) => index.printed.get(name),
        };
        self.seen(lines.map_or(&[][..], Vec::as_slice))
    }

    /// Whether a record is seen.
    pub(crate) fn sees(&self, record: usize) -> bool {
        record < self.end
    }

    /// A record.
    pub(crate) fn record(&self, number: usize) -> &'a Record {
        &self.history.records()[number]
    }

    /// The records of a step's ends that are seen.
    pub(crate) fn step(&self, index: usize) -> StepMarks {
        let marks = self.history.index().steps.get(&index).copied().unwrap_or_default();
        let seen = |record: Option<usize>| record.filter(|record| *record < self.end);
        StepMarks { begin: seen(marks.begin), end: seen(marks.end) }
    }

    /// Requests that are seen, oldest first.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = &'a Record> + use<'a> {
        let records = self.history.records();
        self.request_numbers().iter().map(move |record| &records[*record])
    }

    /// Somebody's lines that are seen, oldest first.
    pub fn lines(&self, of: &Speaker) -> impl Iterator<Item = &'a Record> + use<'a> {
        let records = self.history.records();
        self.line_numbers(of).iter().map(move |record| &records[*record])
    }

    /// Acts on the rig and runs of programs that are seen, oldest first.
    pub fn acts(&self) -> impl Iterator<Item = &'a Record> + use<'a> {
        let records = self.history.records();
        self.seen(&self.history.index().acts).iter().map(move |record| &records[*record])
    }

    /// Marks that are seen, oldest first.
    pub fn marks(&self) -> impl DoubleEndedIterator<Item = &'a Record> + use<'a> {
        let records = self.history.records();
        self.seen(&self.history.index().marks).iter().map(move |record| &records[*record])
    }

    /// The faults that were injected, as far as is seen.
    pub(crate) fn injected(&self) -> impl Iterator<Item = &'a Injected> + use<'a> {
        let end = self.end;
        self.history.index().faults.iter().take_while(move |fault| fault.record < end)
    }

    /// The harsh faults that are seen, in the order in which they began, with their ends. There are none where faults are mild.
    pub(crate) fn harsh_faults(&self) -> impl Iterator<Item = (&'a Injected, Option<Micros>)> + use<'a> {
        let (index, end) = (self.history.index(), self.end);
        let over = move |fault: &Injected| fault.end.filter(|(record, _)| *record < end).map(|(_, at)| at);
        self.injected()
            .filter(|fault| index.level == FaultLevel::Harsh && fault.is_harsh())
            .map(move |fault| (fault, over(fault)))
    }

    /// When the control plane last began to serve.
    pub fn serving(&self) -> Option<Interval> {
        let record = &self.history.records()[*self.seen(&self.history.index().serving).last()?];
        let begun = self
            .acts()
            .filter_map(|act| {
                let Fact::ControlPlane { act, begun } = &act.fact else { return None };
                matches!(act, ControlPlaneAct::Restart | ControlPlaneAct::Start).then_some(*begun)
            })
            .filter(|begun| *begun <= record.at)
            .last();
        // A fault killed it, and the rig started it again when the fault was over.
        let killed = self.harsh_faults().filter(|(fault, _)| fault.is_kill() && fault.at <= record.at).last();
        let over = |end: Option<Micros>| end.filter(|end| *end <= record.at);
        let begun = begun.max(killed.map(|(fault, end)| over(end).unwrap_or(fault.at)));
        Some(Interval::new(begun.unwrap_or(Micros::ZERO), record.at))
    }

    /// The times in which acts kept the control plane from running: from the end of a stop or kill to the begin of the next start,
    /// in order. One in which it served all the same, in which etcdctl wrote into its store, or which is not over, is left out.
    pub(crate) fn away(&self) -> Vec<(Micros, Micros)> {
        let (records, index) = (self.history.records(), self.history.index());
        let (acts, serving) = (self.seen(&index.acts), self.seen(&index.serving));
        let mut numbers: Vec<usize> = acts.iter().chain(serving).copied().collect();
        numbers.sort_unstable();
        let mut away = Vec::new();
        let mut since: Option<Micros> = None;
        for record in numbers.into_iter().map(|number| &records[number]) {
            match &record.fact {
                Fact::ControlPlane { act: ControlPlaneAct::Stop | ControlPlaneAct::Kill, .. } => {
                    since = since.or(Some(record.at));
                }
                Fact::ControlPlane { act: ControlPlaneAct::Start | ControlPlaneAct::Restart, begun } => {
                    away.extend(since.take().filter(|since| since < begun).map(|since| (since, *begun)));
                }
                Fact::ControlPlaneReady {} => since = None,
                Fact::Etcdctl(ran) if !ran.gets() => since = None,
                _ => {}
            }
        }
        away
    }

    /// How long a stretch of time was with the control plane able to write.
    pub(crate) fn time_up(&self, from: Micros, until: Micros) -> Duration {
        let mut up = until.since(from);
        let mut down_since: Option<Micros> = None;
        let mut subtract = |since: Micros, end: Micros| {
            let (since, end) = (since.max(from), end.min(until));
            up = up.saturating_sub(end.since(since));
        };
        let index = self.history.index();
        let records = self.history.records();
        let (acts, serving) = (self.seen(&index.acts), self.seen(&index.serving));
        let faults = self.injected().map(|fault| fault.record);
        let mut numbers: Vec<usize> = acts.iter().chain(serving).copied().chain(faults).collect();
        numbers.sort_unstable();
        for record in numbers.into_iter().map(|number| &records[number]) {
            if let Fact::ControlPlane { act, begun } = &record.fact {
                match act {
                    ControlPlaneAct::Stop | ControlPlaneAct::Kill => {
                        down_since = down_since.or(Some(record.at));
                    }
                    ControlPlaneAct::Restart => {
                        subtract(*begun, record.at);
                        down_since = None;
                    }
                    ControlPlaneAct::Start => {}
                }
            } else if let Fact::Fault {
                fault: Fault { kind: FaultKind::Kill { .. }, .. },
                phase: Phase::Begin,
            } = &record.fact
            {
                down_since = down_since.or(Some(record.at));
            } else if matches!(&record.fact, Fact::Etcdctl(ran) if !ran.gets()) {
                // It wrote in its stead.
                down_since = None;
            } else if matches!(record.fact, Fact::ControlPlaneReady {})
                && let Some(since) = down_since.take()
            {
                subtract(since, record.at);
            }
        }
        if let Some(since) = down_since {
            subtract(since, until);
        }
        up
    }

    /// The longest stall of the harness that touches a stretch of time.
    pub fn longest_stall(&self, from: Micros, until: Micros) -> Option<Duration> {
        let records = self.history.records();
        self.seen(&self.history.index().stalls)
            .iter()
            .filter_map(|record| {
                let Record { at, fact: Fact::Stall { length }, .. } = &records[*record] else { return None };
                Some((*at, length.as_duration()))
            })
            .filter(|(at, length)| *at >= from && *at - *length <= until)
            .map(|(_, length)| length)
            .max()
    }

    /// When a time stamp of the server was, on the trial's clock. Stamps are as wide as their last digit.
    pub fn stamp(&self, text: &str) -> Option<Interval> {
        let stamp: Timestamp = text.parse().ok()?;
        let digits =
            text.split_once('.').map_or(0, |(_, rest)| rest.chars().take_while(char::is_ascii_digit).count());
        let grain = 1_000_000_i64 / 10_i64.pow(u32::try_from(digits.min(6)).unwrap_or(6));
        let since = stamp.as_microsecond();
        let (low, high) = self.clock_offset()?;
        let at = |micros: i64| Micros(u64::try_from(micros.max(0)).unwrap_or(0));
        Some(Interval::new(at(since - high), at(since + grain - 1 - low)))
    }

    /// The server's clock less the trial's, in microseconds: not below the first, not above the second.
    fn clock_offset(&self) -> Option<(i64, i64)> {
        let clock = &self.history.index().clock;
        let told =
            clock[..clock.partition_point(|(record, _)| *record < self.end)].last().map(|(_, told)| *told);
        let wall = match &self.history.index().wall {
            Some(wall) => wall.parse::<Timestamp>().ok()?.as_microsecond(),
            None => VIRTUAL_EPOCH.parse::<Timestamp>().ok()?.as_microsecond(),
        };
        match told {
            Some((low, high)) if self.exact() && (low..=high).contains(&wall) => Some((wall, wall)),
            Some(told) => Some(told),
            None if self.exact() => Some((wall, wall)),
            // Nothing was asked yet: the harness' own clock, taken to be within a second of the server's.
            None => Some((wall - 1_000_000, wall + 1_000_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rigor_model::{Constants, FaultLevel};
    use serde_json::json;

    use super::*;
    use crate::history::Verb;

    /// A history of renewals with pulses and blind spots between them, in real or in virtual time.
    fn renewals(real: bool, happened: &[(u8, u64)]) -> History {
        let mut history = History::new();
        let wall = real.then(|| "2026-01-01T00:00:00Z".to_owned());
        let (scenario, rig) = ("s".to_owned(), "r".to_owned());
        let (constants, faults) = (Constants::default(), FaultLevel::None);
        history.push(
            Micros(0),
            Fact::TrialStarted { scenario, rig, case: None, seed: 1, wall, constants, faults },
        );
        history.push(Micros(0), Fact::Synced { stream: "leases".into() });
        let (mut now, mut version, mut blind) = (0, 1, false);
        for (what, after) in happened {
            now += after;
            let at = Micros(now * 1000);
            match what {
                0..=3 => {
                    version += 1;
                    let verb = if blind { Verb::Listed } else { Verb::Modified };
                    let object = json!({"metadata": {"namespace": "kube-node-lease", "name": "a",
                        "resourceVersion": version.to_string()}, "spec": {"renewTime": format!("{}", version / 2)}});
                    history.push(at, Fact::Object { stream: "leases".into(), verb, object });
                }
                4 | 5 => {
                    let sent = Micros(now.saturating_sub(3) * 1000);
                    history.push(at, Fact::Pulse { sent, resource_version: version });
                }
                6 => {
                    blind = true;
                    history.push(at, Fact::Gap { stream: "leases".into(), reason: "lost".into() });
                }
                _ => {
                    blind = false;
                    history.push(at, Fact::Synced { stream: "leases".into() });
                }
            }
        }
        history
    }

    /// What was listed after a gap came after it; of the next, without a pulse, that much is not known.
    #[test]
    fn a_renewal_after_one_that_a_list_showed_may_be_the_last() {
        let history = renewals(true, &[(0, 10), (0, 10), (6, 30), (0, 5), (7, 1), (0, 10), (0, 10)]);
        let view = View::new(&history, history.len(), history.last_at(), Duration::from_millis(20));
        let key = ("kube-node-lease".to_owned(), "a".to_owned());
        let found = view.last_renewal_before(&key, Micros(0)).unwrap();
        assert_eq!((found.earliest, found.latest), (Micros(0), Micros(76_000)));
    }

    proptest! {
        /// The short way to the last renewal before an instant finds what looking at all of them does.
        #[test]
        fn the_last_renewal_before_an_instant_is_found(
            real: bool, happened in proptest::collection::vec((0_u8..8, 1_u64..40), 0..60), latest in 0_u64..1500,
        ) {
            let history = renewals(real, &happened);
            let view = View::new(&history, history.len(), history.last_at(), Duration::from_millis(20));
            let (key, latest) = (("kube-node-lease".to_owned(), "a".to_owned()), Micros(latest * 1000));
            let mut all = view.renewals(&key).map(|version| view.interval(version));
            let expected = all.rfind(|when| when.earliest <= latest);
            prop_assert_eq!(view.last_renewal_before(&key, latest), expected);
        }
    }
}
