//! WATCH: where it starts, what bookmarks say, and how it refuses.

use std::time::Duration;

use axum::body::Body;
use futures_util::FutureExt;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{MAPS, map, refused, version};
use crate::rig::{ADMIN, PODS, Rig, foreign};

/// All lines of a watch that lasts ten seconds, during which `during` happens.
fn watch_as(rig: &Rig, url: &str, accept: &str, during: impl Fn()) -> Vec<Value> {
    let request = Request::get(format!("{url}timeoutSeconds=10")).header("accept", accept);
    let response = rig.send(ADMIN, request, Body::empty());
    assert_eq!(response.status(), 200, "{url}");
    assert_eq!(response.headers()["content-type"], "application/json");
    during();
    rig.pass(Duration::from_secs(10));
    let body = response.into_body().collect().now_or_never().expect("a watch must end").unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn shown(lines: &[Value]) -> Vec<String> {
    let show = |line: &Value| {
        let mark = line.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some();
        let name = match line["type"].as_str().unwrap() {
            "BOOKMARK" if mark => "end",
            "BOOKMARK" => "-",
            "ERROR" => line["object"]["reason"].as_str().unwrap(),
            _ => line["object"]["metadata"]["name"].as_str().unwrap(),
        };
        format!("{} {name}", line["type"].as_str().unwrap())
    };
    lines.iter().map(show).collect()
}

#[test]
fn the_options_decide_where_a_watch_starts() {
    let rig = Rig::new();
    let old = version(&rig.create(MAPS, &map("a")));
    rig.create(MAPS, &map("b"));
    let mut written = 0;
    let mut check = |query: &str, expected: &[&str]| {
        written += 1;
        let lines = watch_as(&rig, &format!("{MAPS}?watch=1&{query}&"), "application/json", || {
            rig.patch(&format!("{MAPS}/a"), &json!({"data": {"n": written.to_string()}}));
        });
        assert_eq!(shown(&lines), expected, "{query}");
    };
    check("", &["ADDED a", "ADDED b", "MODIFIED a"]);
    check("resourceVersion=0", &["ADDED a", "ADDED b", "MODIFIED a"]);
    check("allowWatchBookmarks=true", &["ADDED a", "ADDED b", "BOOKMARK end", "MODIFIED a", "BOOKMARK -"]);
    let streaming = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    check(streaming, &["ADDED a", "ADDED b", "MODIFIED a"]);
    let both = format!("{streaming}&allowWatchBookmarks=true");
    check(&both, &["ADDED a", "ADDED b", "BOOKMARK end", "MODIFIED a", "BOOKMARK -"]);
    check(
        &format!("{both}&resourceVersion={old}"),
        &["ADDED a", "ADDED b", "BOOKMARK end", "MODIFIED a", "BOOKMARK -"],
    );
    check("sendInitialEvents=false&resourceVersionMatch=NotOlderThan", &["MODIFIED a"]);
    let after = version(&rig.get(MAPS));
    check(&format!("resourceVersion={after}"), &["MODIFIED a"]);
    check(
        &format!("resourceVersion={after}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"),
        &["MODIFIED a", "MODIFIED a"],
    );
    check("fieldSelector=metadata.name%3Db", &["ADDED b"]);
    check("labelSelector=none", &[]);
}

#[test]
fn a_marked_bookmark_carries_an_empty_list_and_the_version() {
    let rig = Rig::new();
    let made = version(&rig.create(MAPS, &map("a")));
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&";
    let check = |accept: &str, kind: &str, blueprint: &str| {
        let lines = watch_as(&rig, &format!("{MAPS}?{query}"), accept, || {});
        let mark = lines.iter().find(|line| line["type"] == "BOOKMARK").unwrap();
        assert_eq!(mark["object"]["kind"], kind, "{mark}");
        assert!(version(&mark["object"]) >= made, "{mark}");
        let annotations = &mark["object"]["metadata"]["annotations"];
        assert_eq!(annotations["k8s.io/initial-events-end"], "true");
        assert_eq!(annotations["kubernetes.io/initial-events-list-blueprint"], blueprint, "{mark}");
    };
    // base64 of {"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":null} and of its partial kin.
    let list =
        "eyJraW5kIjoiQ29uZmlnTWFwTGlzdCIsImFwaVZlcnNpb24iOiJ2MSIsIm1ldGFkYXRhIjp7fSwiaXRlbXMiOm51bGx9Cg==";
    let partial = "eyJraW5kIjoiUGFydGlhbE9iamVjdE1ldGFkYXRhTGlzdCIsImFwaVZlcnNpb24iOiJtZXRhLms4cy5pby92MSIsIm1ldGFkYXRhIjp7fSwiaXRlbXMiOm51bGx9Cg==";
    check("application/json", "ConfigMap", list);
    check("application/json;as=Table;v=v1;g=meta.k8s.io", "Table", list);
    check("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "PartialObjectMetadata", partial);
}

#[test]
fn watches_that_make_no_sense_are_refused() {
    let rig = Rig::new();
    let check =
        |query: &str, code: u16, words: &str| refused(&rig, &format!("{MAPS}?watch=1&{query}"), code, words);
    check(
        "sendInitialEvents=true",
        422,
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    );
    check(
        "resourceVersionMatch=NotOlderThan&resourceVersion=1",
        422,
        "forbidden for watch unless sendInitialEvents",
    );
    check("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", 422, "resourceVersionMatch");
    check("resourceVersion=x", 500, "strconv.ParseUint");
    check("timeoutSeconds=x", 400, "strconv.ParseInt");
    check("fieldSelector=data.k%3Dv", 400, "is not a known field selector");
    check("labelSelector=%3Da", 400, "expected: !, identifier");
}

#[test]
fn forgotten_and_future_versions_are_told_in_the_first_line() {
    let rig = Rig::with(|config| config.watch_history = 4);
    for n in 0..10 {
        rig.create(MAPS, &map(&format!("m{n}")));
    }
    let check = |query: &str, accept: &str, code: u16, reason: &str, words: &str| {
        let lines = watch_as(&rig, &format!("{MAPS}?watch=1&{query}&"), accept, || {});
        assert_eq!(lines.len(), 1, "{query}");
        assert_eq!((&lines[0]["type"], &lines[0]["object"]["kind"]), (&json!("ERROR"), &json!("Status")));
        assert_eq!(
            (&lines[0]["object"]["code"], &lines[0]["object"]["reason"]),
            (&json!(code), &json!(reason))
        );
        assert!(lines[0]["object"]["message"].as_str().unwrap().contains(words), "{}", lines[0]);
    };
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    check("resourceVersion=1", "application/json", 410, "Expired", "too old resource version: 1 (");
    check(
        "resourceVersion=1&allowWatchBookmarks=true",
        "application/json",
        410,
        "Expired",
        "too old resource version: 1 (",
    );
    check("resourceVersion=1", table, 410, "Expired", "too old resource version: 1 (");
    check(
        "resourceVersion=99999999",
        "application/json",
        504,
        "Timeout",
        "Too large resource version: 99999999",
    );
}

#[test]
fn what_starts_or_stops_to_match_is_added_or_deleted() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("p"));
    let label = |value: Value| {
        rig.patch(&format!("{PODS}/p"), &json!({"metadata": {"labels": {"app": value}}}));
    };
    let check = |selector: &str, steps: &[Value], expected: &[&str]| {
        label(Value::Null);
        let now = version(&rig.get(PODS));
        let lines = watch_as(
            &rig,
            &format!("{PODS}?watch=1&resourceVersion={now}&{selector}&"),
            "application/json",
            || {
                steps.iter().for_each(|step| label(step.clone()));
            },
        );
        assert_eq!(shown(&lines), expected, "{selector} {steps:?}");
        let versions: Vec<u64> = lines.iter().map(|line| version(&line["object"])).collect();
        assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    };
    let (a, b, none) = (json!("a"), json!("b"), Value::Null);
    check("labelSelector=app%3Da", &[a.clone(), b.clone()], &["ADDED p", "DELETED p"]);
    check("labelSelector=app%3Da", &[b.clone(), none.clone()], &[]);
    check(
        "labelSelector=app",
        &[a.clone(), b.clone(), none.clone()],
        &["ADDED p", "MODIFIED p", "DELETED p"],
    );
    check("labelSelector=%21app", &[a.clone(), none.clone()], &["DELETED p", "ADDED p"]);
    check("labelSelector=app%21%3Da", &[a.clone(), b.clone()], &["DELETED p", "ADDED p"]);
    check("labelSelector=app%20in%20%28a%2Cb%29", &[a.clone(), b.clone()], &["ADDED p", "MODIFIED p"]);
    check("labelSelector=app%20notin%20%28a%29", &[b, a], &["MODIFIED p", "DELETED p"]);
}

#[test]
fn tables_come_row_by_row_with_their_columns_once() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("a"));
    rig.create(PODS, &foreign("b"));
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let lines = watch_as(&rig, &format!("{PODS}?watch=1&"), accept, || {
        rig.patch(&format!("{PODS}/a"), &json!({"metadata": {"labels": {"x": "1"}}}));
    });
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ADDED", "ADDED", "MODIFIED"]);
    for line in &lines {
        assert_eq!(line["object"]["kind"], "Table", "{line}");
        assert_eq!(line["object"]["rows"].as_array().unwrap().len(), 1, "{line}");
    }
    let columns = |line: &Value| line["object"]["columnDefinitions"].as_array().map_or(0, Vec::len);
    assert!(columns(&lines[0]) > 4, "{}", lines[0]);
    assert_eq!((columns(&lines[1]), columns(&lines[2])), (0, 0), "columns come with the first line only");
}
