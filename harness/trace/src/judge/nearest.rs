//! The nearest thing that did happen: what a failure tells besides what it missed.

use rigor_model::expect::Speaker;
use rigor_model::pattern::Count;

use super::Bench;
use super::message::{TOLD, describe, evidence, listed};
use crate::history::{Fact, Record};
use crate::index::Version;
use crate::interval::Interval;
use crate::matching::Difference;
use crate::timeline::{Look, Source, log_answer, occurrences};

impl Bench<'_, '_> {
    /// Where a look is about numbers or names: how many there were in the end, and who was missing.
    pub(super) fn numbers(&self, look: &Look, count: Option<&Count>, until: Interval) -> String {
        let Look::State { selection, matcher, .. } = look else { return String::new() };
        let mut there: Vec<(&str, bool)> = Vec::new();
        for (key, versions) in selection.objects(&self.view) {
            let last = versions.iter().rfind(|version| !until.is_before(self.view.interval(version)));
            let object = last.filter(|version| !version.gone).map(|version| self.view.object(version));
            if let Some(object) = object.filter(|object| selection.selects(object)) {
                there.push((&key.1, matcher.as_ref().is_none_or(|matcher| matcher.matches(Some(object)))));
            }
        }
        let matching = there.iter().filter(|(_, matches)| *matches).count();
        match (count, &selection.names) {
            (Some(count), _) => {
                let of = if matcher.is_some() { format!(" of {}", there.len()) } else { String::new() };
                format!(": when the window closed there were {matching}{of}, where the count is {count}")
            }
            (None, Some(names)) if names.len() > 1 => {
                let missing: Vec<&str> = names
                    .iter()
                    .map(String::as_str)
                    .filter(|name| !there.iter().any(|(there, matches)| there == name && *matches))
                    .collect();
                format!(": when the window closed it was not so for {}", missing.join(", "))
            }
            (None, _) => String::new(),
        }
    }

    /// The version of a selected object, inside the window if there is one, with the fewest differences.
    pub(super) fn closest(
        &self,
        look: &Look,
        from: Interval,
        until: Interval,
    ) -> Option<(&Version, Vec<Difference>)> {
        let selection = look.selection()?;
        let matcher = look.matcher();
        let mut best: Option<(usize, &Version, Vec<Difference>)> = None;
        for (_, versions) in selection.objects(&self.view) {
            for (position, version) in versions.iter().enumerate() {
                let object = self.view.object(version);
                let over =
                    versions.get(position + 1).is_some_and(|next| self.view.interval(next).is_before(from));
                if version.gone
                    || over
                    || until.is_before(self.view.interval(version))
                    || !selection.selects(object)
                {
                    continue;
                }
                let differences =
                    matcher.map(|matcher| matcher.differences(Some(object))).unwrap_or_default();
                if differences.is_empty() {
                    continue;
                }
                // The newest of equally close ones says most.
                if best.as_ref().is_none_or(|(least, ..)| differences.len() <= *least) {
                    best = Some((differences.len(), version, differences));
                }
            }
        }
        best.map(|(_, version, differences)| (version, differences))
    }

    pub(super) fn differences(&self, look: &Look, record: usize) -> Vec<Difference> {
        let Fact::Object { object, .. } = &self.history.records()[record].fact else { return Vec::new() };
        look.matcher().map(|matcher| matcher.differences(Some(object))).unwrap_or_default()
    }

    /// Things of the kind that happened but did not match.
    pub(super) fn near_misses(&self, of: &Source, from: Interval) -> String {
        match of {
            Source::Events { selection, .. } => {
                let any = Source::Events { selection: selection.clone(), matcher: None, pattern: None };
                let look = Look::Occurrences { of: of.clone(), count: None };
                let closest = occurrences(&self.view, &any)
                    .into_iter()
                    .filter(|occurrence| !occurrence.when.is_before(from))
                    .map(|occurrence| (self.differences(&look, occurrence.record), occurrence))
                    .min_by_key(|(differences, _)| differences.len());
                match closest {
                    Some((differences, occurrence)) => format!(
                        "; closest was {}, at {}, which differs:{}{}",
                        self.described(occurrence.record),
                        occurrence.when,
                        listed(&differences),
                        evidence(Some(occurrence.record))
                    ),
                    None => "; there was no Event at all in that time".to_owned(),
                }
            }
            Source::Console { of, .. } => {
                let lines: Vec<&Record> =
                    self.view.lines(of).filter(|record| record.at >= from.earliest).collect();
                let Some(last) = lines.last() else {
                    return match of {
                        Speaker::Board(board) => format!("; the console of {board} was silent in that time"),
                        Speaker::Scheduler(name) => {
                            format!("; the scheduler {name} printed nothing in that time")
                        }
                    };
                };
                let shown = lines[lines.len().saturating_sub(TOLD)..].iter();
                let shown: String = shown
                    .map(|record| format!("\n    {} {}", record.at, record.fact.line().unwrap_or_default()))
                    .collect();
                let whose = match of {
                    Speaker::Board(_) => "console",
                    Speaker::Scheduler(_) => "scheduler",
                };
                format!("; the {whose}'s last lines in that time:{shown}{}", shown_by(last))
            }
            Source::Requests(asked) => {
                let made: Vec<&Record> =
                    self.view.requests().filter(|record| record.at >= from.earliest).collect();
                // The right request with another answer says more than any other request.
                if let Some(near) = made.iter().rev().find(|record| asked.is_made(record)) {
                    return format!(
                        "; closest was {}, at {}, which differs:{}{}",
                        describe(near),
                        near.at,
                        listed(&asked.differences(near)),
                        shown_by(near)
                    );
                }
                if made.is_empty() {
                    return "; no request was made in that time".to_owned();
                }
                let lines = made[made.len().saturating_sub(TOLD)..].iter();
                let lines: String =
                    lines.map(|record| format!("\n    {} {}", record.at, describe(record))).collect();
                let last = made.last().map(|record| shown_by(record)).unwrap_or_default();
                format!("; the last requests in that time:{lines}{last}")
            }
            Source::Log { path, .. } => {
                let last = self
                    .view
                    .requests()
                    .rev()
                    .take_while(|record| record.at >= from.earliest)
                    .find_map(|record| Some((record, log_answer(&record.fact, path)?.1)));
                match last {
                    None => format!("; {}", self.why_unread(path)),
                    Some((record, text)) if text.is_empty() => {
                        format!("; the log was empty at {}", record.at)
                    }
                    Some((record, text)) => {
                        let lines: Vec<&str> = text.lines().collect();
                        let shown = lines[lines.len().saturating_sub(TOLD)..].iter();
                        let shown: String = shown.map(|line| format!("\n    {line}")).collect();
                        format!("; the log's last lines at {}:{shown}{}", record.at, shown_by(record))
                    }
                }
            }
        }
    }
}

/// Where a record stands.
fn shown_by(record: &Record) -> String {
    evidence(usize::try_from(record.seq).ok())
}
