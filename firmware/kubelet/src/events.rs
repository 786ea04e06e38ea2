//! Events the board reports on its pods: few, coalesced, and given up rather than retried for long, since
//! nothing depends on them. A repeat raises the count of the event there is, at most every ten seconds.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::http::{Content, Method, Request};
use crate::json::Json;

/// Events remembered at once.
const REMEMBERED: usize = 12;
/// Shortest time between two writes of one event, in milliseconds.
const SPACING: u64 = 10_000;

/// The pod an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Regarding {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

#[derive(Debug)]
struct Event {
    name: String,
    regarding: Regarding,
    warning: bool,
    reason: String,
    message: String,
    count: u32,
    first: String,
    last: String,
    /// The API has it.
    known: bool,
    /// Its count rose since it was written.
    changed: bool,
    not_before: u64,
}

/// The events of this boot that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Events {
    events: Vec<Event>,
}

impl Events {
    /// Takes a happening in. `id` makes a new event's name its own.
    pub(crate) fn note(
        &mut self,
        regarding: Regarding,
        (warning, reason): (bool, &str),
        message: String,
        wall: &str,
        id: u64,
    ) {
        let same = |e: &&mut Event| e.regarding == regarding && e.reason == reason && e.message == message;
        if let Some(event) = self.events.iter_mut().find(same) {
            event.count += 1;
            event.last = wall.to_string();
            event.changed = true;
            return;
        }
        if self.events.len() >= REMEMBERED {
            self.events.remove(0);
        }
        self.events.push(Event {
            // The name of an object is 253 characters at most; those of pods are ASCII.
            name: format!("{}.{id:016x}", regarding.name.get(..200).unwrap_or(&regarding.name)),
            regarding,
            warning,
            reason: reason.to_string(),
            message,
            count: 1,
            first: wall.to_string(),
            last: wall.to_string(),
            known: false,
            changed: true,
            not_before: 0,
        });
    }

    /// The write that is due at `millis`, and the event's name to tell its answer by.
    pub(crate) fn next(&mut self, millis: u64, node: &str) -> Option<(String, Request)> {
        let event = self.events.iter_mut().find(|e| e.changed && e.not_before <= millis)?;
        event.changed = false;
        event.not_before = millis + SPACING;
        let collection = format!("/api/v1/namespaces/{}/events", event.regarding.namespace);
        let request = if event.known {
            let body = Json::document(|j| {
                j.key("count").number(i64::from(event.count));
                j.field("lastTimestamp", &event.last);
            });
            let path = format!("{collection}/{}", event.name);
            Request { method: Method::Patch, path, body: Some((Content::MergePatch, body)) }
        } else {
            let body = Some((Content::Json, event.body(node)));
            Request { method: Method::Post, path: collection, body }
        };
        Some((event.name.clone(), request))
    }

    /// The write of `name` was answered; 0 stands for no answer.
    pub(crate) fn answered(&mut self, name: &str, status: u16) {
        match status {
            200..=299 => {
                if let Some(event) = self.events.iter_mut().find(|e| e.name == name) {
                    event.known = true;
                }
            }
            // Out of the server's memory, or never in it: the next repeat makes a new one.
            _ => self.events.retain(|e| e.name != name),
        }
    }

    /// When a write is due next, in milliseconds.
    pub(crate) fn deadline(&self) -> u64 {
        self.events.iter().filter(|e| e.changed).map(|e| e.not_before).min().unwrap_or(u64::MAX)
    }
}

impl Event {
    fn body(&self, node: &str) -> String {
        Json::document(|j| {
            j.field("kind", "Event");
            j.field("apiVersion", "v1");
            j.key("metadata").object(|j| {
                j.field("name", &self.name);
                j.field("namespace", &self.regarding.namespace);
            });
            j.key("involvedObject").object(|j| {
                j.field("kind", "Pod");
                j.field("apiVersion", "v1");
                j.field("namespace", &self.regarding.namespace);
                j.field("name", &self.regarding.name);
                j.field("uid", &self.regarding.uid);
            });
            j.field("type", if self.warning { "Warning" } else { "Normal" });
            j.field("reason", &self.reason);
            j.field("message", &self.message);
            j.key("count").number(i64::from(self.count));
            j.field("firstTimestamp", &self.first);
            j.field("lastTimestamp", &self.last);
            j.key("source").object(|j| {
                j.field("component", "kubelet");
                j.field("host", node);
            });
            j.field("reportingComponent", "kubelet");
            j.field("reportingInstance", node);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(events: &mut Events, pod: &str, id: u64) {
        let regarding = Regarding { namespace: "d".into(), name: pod.into(), uid: pod.into() };
        events.note(regarding, (true, "BackOff"), "m".to_string(), "t", id);
    }

    #[test]
    fn a_repeat_raises_the_count_of_the_same_event() {
        let mut events = Events::default();
        note(&mut events, "p", 1);
        let (name, request) = events.next(0, "n").unwrap();
        assert_eq!((request.method, name.as_str()), (Method::Post, "p.0000000000000001"));
        events.answered(&name, 201);
        assert_eq!(events.deadline(), u64::MAX);
        note(&mut events, "p", 2);
        note(&mut events, "p", 3);
        assert_eq!((events.next(9999, "n"), events.deadline()), (None, 10_000));
        let (same, request) = events.next(10_000, "n").unwrap();
        assert_eq!((request.method, same), (Method::Patch, name.clone()));
        assert_eq!(request.body.unwrap().1, r#"{"count":3,"lastTimestamp":"t"}"#);
        events.answered(&name, 404);
        assert_eq!(events.events.len(), 0);
    }

    #[test]
    fn no_more_than_a_dozen_are_remembered() {
        let mut events = Events::default();
        for id in 0..100 {
            note(&mut events, &format!("p{id}"), id);
        }
        assert_eq!(events.events.len(), REMEMBERED);
    }
}
