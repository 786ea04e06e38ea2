//! Watches: what they show, in which order, and how they end. Bodies are drained without waiting.

use std::time::Duration;

use axum::body::Body;
use futures_util::FutureExt;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::rig::{ADMIN, PODS, Rig, foreign};

pub struct Watch {
    body: Body,
    held: String,
    pub ended: bool,
}

impl Watch {
    /// A watch of whatever stands at `path`, with its query.
    pub fn of(rig: &Rig, path: &str) -> Self {
        let response = rig.send(ADMIN, Request::get(path), Body::empty());
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), held: String::new(), ended: false }
    }

    /// What came since the last time, as `TYPE name`.
    pub fn lines(&mut self) -> Vec<String> {
        self.events()
            .iter()
            .map(|event| format!("{} {}", text(&event["type"]), text(&event["object"]["metadata"]["name"])))
            .collect()
    }

    /// What came since the last time.
    pub fn events(&mut self) -> Vec<Value> {
        while let Some(frame) = self.body.frame().now_or_never() {
            match frame {
                Some(frame) => self.held += std::str::from_utf8(frame.unwrap().data_ref().unwrap()).unwrap(),
                None => {
                    self.ended = true;
                    break;
                }
            }
        }
        std::mem::take(&mut self.held).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn watch_as(rig: &Rig, accept: &str, query: &str) -> Watch {
    let request = Request::get(format!("{PODS}?watch=1&{query}")).header("accept", accept);
    let response = rig.send(ADMIN, request, Body::empty());
    assert_eq!(response.status(), 200);
    Watch { body: response.into_body(), held: String::new(), ended: false }
}

fn watch(rig: &Rig, query: &str) -> Watch {
    watch_as(rig, "application/json", query)
}

fn labelled(name: &str, app: &str) -> Value {
    let mut pod = foreign(name);
    pod["metadata"]["labels"] = json!({"app": app});
    pod
}

fn version(rig: &Rig) -> String {
    rig.get(PODS)["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[test]
fn a_watch_shows_every_change_once_and_in_order() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("before"));
    let mut watch = watch(&rig, &format!("resourceVersion={}", version(&rig)));
    assert!(watch.lines().is_empty());
    rig.create(PODS, &foreign("p"));
    assert_eq!(watch.lines(), ["ADDED p"]);
    rig.patch(&format!("{PODS}/p"), &json!({"metadata": {"labels": {"x": "1"}}}));
    rig.patch(&format!("{PODS}/p"), &json!({"metadata": {"labels": {"x": "1"}}}));
    rig.delete(&format!("{PODS}/p"));
    let events = watch.events();
    let kinds: Vec<&str> = events.iter().map(|event| text(&event["type"])).collect();
    assert_eq!(
        kinds,
        ["MODIFIED", "MODIFIED", "DELETED"],
        "a change, the mark of the deletion, and the deletion"
    );
    let versions: Vec<u64> = events
        .iter()
        .map(|event| text(&event["object"]["metadata"]["resourceVersion"]).parse().unwrap())
        .collect();
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    assert!(!watch.ended);
}

#[test]
fn a_watch_without_a_version_begins_with_what_exists() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("a"));
    rig.create(PODS, &foreign("b"));
    for query in ["", "resourceVersion=0"] {
        let mut watch = watch(&rig, query);
        assert_eq!(watch.lines(), ["ADDED a", "ADDED b"], "{query}");
        rig.patch(&format!("{PODS}/a"), &json!({"metadata": {"labels": {"q": rig.now().as_nanos().to_string(), "w": query.len().to_string()}}}));
        assert_eq!(watch.lines(), ["MODIFIED a"]);
    }
}

#[test]
fn a_selector_turns_changes_into_additions_and_deletions() {
    let rig = Rig::new();
    rig.create(PODS, &labelled("p", "b"));
    let mut by_label = watch(&rig, &format!("labelSelector=app%3Da&resourceVersion={}", version(&rig)));
    let mut unbound =
        watch(&rig, &format!("fieldSelector=spec.nodeName%3D&resourceVersion={}", version(&rig)));
    let mut bound =
        watch(&rig, &format!("fieldSelector=spec.nodeName%3Dn&resourceVersion={}", version(&rig)));
    let label = |app: &str| rig.patch(&format!("{PODS}/p"), &json!({"metadata": {"labels": {"app": app}}}));
    label("a");
    assert_eq!(by_label.lines(), ["ADDED p"]);
    let changed = label("b");
    let events = by_label.events();
    assert_eq!(text(&events[0]["type"]), "DELETED");
    assert_eq!(events[0]["object"]["metadata"]["labels"]["app"], "a", "as it was");
    assert_eq!(events[0]["object"]["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"]);
    label("c");
    assert!(by_label.lines().is_empty());

    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    rig.create(&format!("{PODS}/p/binding"), &binding);
    assert_eq!(unbound.lines().last().unwrap(), "DELETED p");
    assert_eq!(bound.lines(), ["ADDED p"]);
}

#[test]
fn a_watch_ends_at_its_time_and_not_before() {
    let rig = Rig::new();
    let mut watch = watch(&rig, "resourceVersion=1&timeoutSeconds=7");
    rig.pass(Duration::from_millis(6999));
    watch.events();
    assert!(!watch.ended);
    rig.pass(Duration::from_millis(1));
    watch.events();
    assert!(watch.ended);
}

#[test]
fn bookmarks_come_before_the_end_and_every_minute() {
    let rig = Rig::new();
    let mut watch = watch(
        &rig,
        &format!("allowWatchBookmarks=true&timeoutSeconds=130&resourceVersion={}", version(&rig)),
    );
    let mut seen = Vec::new();
    for second in 1..=130 {
        rig.pass(Duration::from_secs(1));
        for event in watch.events() {
            assert_eq!(event["type"], "BOOKMARK");
            assert_eq!(event["object"]["kind"], "Pod");
            assert_eq!(event["object"]["metadata"]["resourceVersion"], version(&rig));
            seen.push(second);
        }
    }
    assert_eq!(seen, [60, 120, 128]);
    assert!(watch.ended);
}

#[test]
fn a_streaming_list_is_ended_by_a_marked_bookmark() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("a"));
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let events = watch(&rig, query).events();
    assert_eq!(events.iter().map(|event| text(&event["type"])).collect::<Vec<_>>(), ["ADDED", "BOOKMARK"]);
    assert_eq!(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[test]
fn a_watch_from_forgotten_or_future_versions_says_so_in_its_first_line() {
    let rig = Rig::with(|config| config.watch_history = 4);
    for n in 0..8 {
        rig.create(PODS, &foreign(&format!("p{n}")));
    }
    let mut old = watch(&rig, "resourceVersion=1");
    let events = old.events();
    assert_eq!((&events[0]["type"], &events[0]["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(events[0]["object"]["reason"], "Expired");
    assert!(text(&events[0]["object"]["message"]).starts_with("too old resource version: 1 ("));
    assert!(old.ended);
    let events = watch(&rig, "resourceVersion=99999999").events();
    assert_eq!(events[0]["object"]["code"], 504);
    assert!(
        text(&events[0]["object"]["message"]).starts_with("Timeout: Too large resource version: 99999999")
    );
}

#[test]
fn a_watch_that_reads_too_slowly_is_told_to_list_again() {
    let rig = Rig::with(|config| config.watch_history = 4);
    let mut slow = watch(&rig, &format!("resourceVersion={}", version(&rig)));
    for n in 0..8 {
        rig.create(PODS, &foreign(&format!("p{n}")));
    }
    let events = slow.events();
    assert_eq!(events.last().unwrap()["object"]["code"], 410);
    assert!(slow.ended);
}

#[test]
fn watches_show_tables_and_metadata_where_asked() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("a"));
    let events = watch_as(&rig, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "").events();
    assert_eq!(events[0]["object"]["kind"], "Table");
    assert_eq!(events[0]["object"]["rows"][0]["cells"][0], "a");
    let events = watch_as(&rig, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "").events();
    assert_eq!(events[0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(events[0]["object"]["metadata"]["name"], "a");
    assert_eq!(events[0]["object"]["spec"], Value::Null);
}

#[test]
fn the_old_watch_path_follows_one_object() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("a"));
    rig.create(PODS, &foreign("b"));
    let mut watch = Watch::of(&rig, "/api/v1/watch/namespaces/default/pods/b");
    assert_eq!(watch.lines(), ["ADDED b"]);
}

#[test]
fn a_clean_end_of_the_server_ends_its_watches() {
    let rig = Rig::new();
    let mut watch = watch(&rig, "");
    rig.plane.end_watches();
    watch.events();
    assert!(watch.ended);
}
