//! Blind spots: a lost watch leaves open what happened, unless the lists on both sides settle it; a
//! stall of the harness leaves upper bounds open.

use std::time::Duration;

use serde_json::Value;

use super::Bench;
use crate::history::Micros;
use crate::index::{Blind, ObjectKey, Version};
use crate::interval::Interval;
use crate::timeline::{Look, Source};

impl Bench<'_, '_> {
    /// Why nothing certain can be said about the look in a stretch of time, if so.
    pub(super) fn blind_spot(&self, look: &Look, from: Micros, until: Micros) -> Option<String> {
        if let Look::Occurrences { of: Source::Log { path, .. }, .. } = look {
            return self.unread_log(path, from);
        }
        let selection = look.selection()?;
        let plural = selection.stream;
        if !self.view.synced(plural) && self.view.stream(plural).is_none() {
            return Some(format!("nobody watched {plural}"));
        }
        self.view.blind(plural).iter().find_map(|blind| {
            let end = blind.end.map_or(self.view.now(), |(_, at)| at);
            let touches = blind.since <= until && end >= from;
            (touches && !self.settled(look, blind)).then(|| {
                let end = blind.end.map_or("now".to_owned(), |(_, at)| at.to_string());
                format!(
                    "the watch of {plural} was lost from {} to {end} ({}), and the lists on both sides do not settle what happened",
                    blind.since, blind.reason
                )
            })
        })
    }

    /// Until when a stream that the look needs, and that was lost before `closes`, is waited for: it may see again, and the lists on
    /// both sides may settle what happened.
    pub(super) fn waits_to_see(&self, look: &Look, closes: Interval) -> Option<Micros> {
        let until = closes.latest + BLIND_PATIENCE;
        let selection = look.selection().filter(|_| !self.ended && self.view.now() < until)?;
        let blind = self.view.blind(selection.stream);
        let is_blind = blind.iter().any(|blind| blind.end.is_none() && blind.since <= closes.latest);
        is_blind.then_some(until)
    }

    /// Whether the lists on both sides of a gap settle what the look could have seen in it.
    fn settled(&self, look: &Look, blind: &Blind) -> bool {
        let (Some(selection), Some((seen_again, end))) = (look.selection(), blind.end) else { return false };
        let short = self.view.time_up(blind.since, end) <= self.view.slack();
        // Events stay for an hour, so what is in neither list did not happen; other objects may have
        // come and gone.
        if !short && selection.kind != "Event" {
            let objects = selection.objects(&self.view);
            let whole = match &selection.names {
                Some(names) => names.len() == objects.len(),
                None => false,
            };
            if !whole {
                return false;
            }
        }
        selection
            .objects(&self.view)
            .into_iter()
            .all(|(key, versions)| self.object_settled(look, key, versions, blind.record, seen_again, short))
    }

    fn object_settled(
        &self,
        look: &Look,
        _key: &ObjectKey,
        versions: &[Version],
        lost: usize,
        seen_again: usize,
        short: bool,
    ) -> bool {
        let before = versions.iter().rfind(|version| version.record < lost);
        let after = versions.iter().rfind(|version| version.record <= seen_again);
        match (before, after) {
            (Some(before), Some(after)) if before.record == after.record => true,
            (Some(before), Some(after)) if !before.gone && !after.gone => {
                let (was, is) = (self.view.object(before), self.view.object(after));
                if was["metadata"]["uid"] != is["metadata"]["uid"] {
                    return false;
                }
                let (Some(was), Some(is)) = (look.projected(was), look.projected(is)) else { return true };
                // What changed is a change with an interval of its own; what did not change is settled
                // if it was too short to go and come back, or carries the time of its last change.
                was != is || short || has_transition(&was)
            }
            (_, _) => true,
        }
    }

    /// Why an upper bound cannot be held against anyone, if the harness itself was held up.
    pub(super) fn stalled(&self, from: Micros, until: Micros) -> Option<String> {
        self.view
            .longest_stall(from, until + self.view.lag())
            .filter(|length| *length > self.view.slack())
            .map(|length| format!("the harness itself was held up for {length:?} in the window"))
    }

    /// Whether everything up to an instant is known by now.
    pub(super) fn known_until(&self, instant: Interval) -> Result<(), Micros> {
        let until = instant.latest + self.view.lag();
        if self.view.now() >= until { Ok(()) } else { Err(until) }
    }
}

/// Whether a value carries the time of its last change.
fn has_transition(value: &Value) -> bool {
    match value {
        Value::Object(object) => {
            object.contains_key("lastTransitionTime")
                || object.contains_key("timeAdded")
                || object.values().any(has_transition)
        }
        Value::Array(items) => items.iter().any(has_transition),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// How long a stream that is blind is given to see again before a verdict is given up.
const BLIND_PATIENCE: Duration = Duration::from_secs(60);
