//! LIST: versions, pages, and what becomes of a page whose version is forgotten.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use super::{MAPS, get, map, names, refused, version};
use crate::rig::{ADMIN, Rig};

/// Five maps, each at its own version, and the version of the third.
fn five(rig: &Rig) -> u64 {
    let made: Vec<Value> = (0..5).map(|n| rig.create(MAPS, &map(&format!("m{n}")))).collect();
    version(&made[2])
}

#[test]
fn the_version_decides_what_is_listed() {
    let rig = Rig::new();
    let third = five(&rig);
    rig.delete(&format!("{MAPS}/m0"));
    let now = version(&rig.get(MAPS));
    let (then, today) = (vec!["m0", "m1", "m2"], vec!["m1", "m2", "m3", "m4"]);
    let check = |query: &str, expected: &[&str], at: u64| {
        let list = rig.get(&format!("{MAPS}?{query}"));
        assert_eq!(names(&list), expected, "{query}");
        assert_eq!(version(&list), at, "{query}");
    };
    check("", &today, now);
    check("resourceVersion=", &today, now);
    check("resourceVersion=0", &today, now);
    check("resourceVersion=0&resourceVersionMatch=NotOlderThan", &today, now);
    check(&format!("resourceVersion={third}"), &today, now);
    check(&format!("resourceVersion={third}&resourceVersionMatch=NotOlderThan"), &today, now);
    check(&format!("resourceVersion={third}&resourceVersionMatch=Exact"), &then, third);
    check(&format!("resourceVersion={third}&limit=9"), &then, third);
    check(&format!("resourceVersion={third}&limit=2"), &then[..2], third);
    check(&format!("resourceVersion={third}&resourceVersionMatch=NotOlderThan&limit=2"), &today[..2], now);
    check("resourceVersion=0&limit=2", &today, now);
    check("limit=2", &today[..2], now);
    check("limit=0", &today, now);
}

#[test]
fn versions_that_cannot_be_had_are_refused() {
    let rig = Rig::new();
    let check = |query: &str, code: u16, words: &str| refused(&rig, &format!("{MAPS}?{query}"), code, words);
    let unset = "resourceVersionMatch is forbidden unless resourceVersion is provided";
    let zero = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
    check("resourceVersionMatch=Exact", 422, unset);
    check("resourceVersionMatch=NotOlderThan", 422, unset);
    check("resourceVersion=0&resourceVersionMatch=Exact", 422, zero);
    check(
        "resourceVersion=1&resourceVersionMatch=exact",
        422,
        "supported values: \"Exact\", \"NotOlderThan\", \"\"",
    );
    check("resourceVersion=x", 500, "strconv.ParseUint: parsing \"x\": invalid syntax");
    check("resourceVersion=-1", 500, "strconv.ParseUint: parsing \"-1\": invalid syntax");
    check("resourceVersion=99999999", 504, "Too large resource version: 99999999, current: ");
    check("resourceVersion=99999999&resourceVersionMatch=Exact", 504, "Too large resource version");
    check("limit=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax");
    check("limit=", 400, "strconv.ParseInt: parsing \"\": invalid syntax");
    check(
        "limit=9223372036854775808",
        400,
        "strconv.ParseInt: parsing \"9223372036854775808\": value out of range",
    );
    check("timeoutSeconds=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax");
    check("continue=x", 400, "illegal base64 data at input byte 0");
    check(
        "resourceVersionMatch=Exact&continue=abc&resourceVersion=1",
        422,
        "forbidden when continue is provided",
    );
}

#[test]
fn timeouts_that_are_none_are_refused_where_something_is_waited_for() {
    let rig = Rig::new();
    let invalid = |why: &str| format!("invalid timeout specified in the request URL - time: {why}");
    for path in [MAPS, "/api/v1/namespaces/default", "/apis", "/api/v1", "/version"] {
        let asked = |timeout: &str| format!("{path}?timeout={timeout}");
        refused(&rig, &asked("abc"), 400, &invalid("invalid duration \"abc\""));
        refused(&rig, &asked("5"), 400, &invalid("missing unit in duration \"5\""));
        refused(&rig, &asked("5d"), 400, &invalid("unknown unit \"d\" in duration \"5d\""));
        for good in ["", "0", "32s", "1m30s"] {
            assert_eq!(get(&rig, &asked(good)).status, 200, "{path} {good}");
        }
    }
    // Nobody waits for an answer of a watch, and boards keep no logs.
    let watch = Request::get(format!("{MAPS}?watch=1&timeout=abc"));
    assert_eq!(rig.send(ADMIN, watch, Body::empty()).status(), 200);
    let write = |method: &str| rig.call(method, &format!("{MAPS}/absent?timeout=abc"), &json!({}));
    for method in ["PUT", "PATCH", "DELETE"] {
        assert!(write(method).refused(400).contains("invalid timeout"));
    }
    // As in Kubernetes, before it counts who asks.
    let stranger = rig.call_as("nobody's", "GET", &format!("{MAPS}?timeout=abc"), &Value::Null);
    assert!(stranger.refused(400).contains("invalid timeout"));
}

/// Reads pages to the end, and writes between them.
fn pages(rig: &Rig, first: &str, between: impl Fn(usize)) -> (Vec<String>, Vec<u64>) {
    let (mut seen, mut versions, mut url) = (Vec::new(), Vec::new(), first.to_owned());
    loop {
        let page = rig.get(&url);
        seen.extend(names(&page));
        versions.push(version(&page));
        between(versions.len());
        let Some(token) = page["metadata"]["continue"].as_str() else { break };
        url = format!("{first}&continue={token}");
    }
    (seen, versions)
}

#[test]
fn pages_show_one_snapshot_whatever_is_written_meanwhile() {
    let rig = Rig::new();
    five(&rig);
    let (seen, versions) = pages(&rig, &format!("{MAPS}?limit=1"), |page| {
        rig.create(MAPS, &map(&format!("m2-{page}")));
        let _ = rig.call("DELETE", &format!("{MAPS}/m{}", 5 - page), &Value::Null);
    });
    assert_eq!(seen, ["m0", "m1", "m2", "m3", "m4"]);
    assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
}

#[test]
fn a_selector_is_applied_on_every_page() {
    let rig = Rig::new();
    for n in 0..6 {
        let mut own = map(&format!("m{n}"));
        own["metadata"]["labels"] = json!({"odd": (n % 2).to_string()});
        rig.create(MAPS, &own);
    }
    let (seen, versions) = pages(&rig, &format!("{MAPS}?limit=1&labelSelector=odd%3D1"), |_| {});
    assert_eq!(seen, ["m1", "m3", "m5"]);
    assert_eq!(versions.len(), 3, "the last page says that it is the last");
}

#[test]
fn a_page_whose_version_is_forgotten_can_be_gone_on_with_or_begun_anew() {
    let rig = Rig::with(|config| config.watch_history = 8);
    five(&rig);
    let first = rig.get(&format!("{MAPS}?limit=2"));
    let token = first["metadata"]["continue"].as_str().unwrap();
    for n in 0..20 {
        rig.patch(&format!("{MAPS}/m4"), &json!({"data": {"n": n.to_string()}}));
    }
    rig.create(MAPS, &map("m5"));
    let answer = get(&rig, &format!("{MAPS}?limit=2&continue={token}"));
    assert_eq!(answer.body["reason"], "Expired");
    let fresh = answer.body["metadata"]["continue"].as_str().unwrap().to_owned();
    let message = answer.refused(410);
    assert!(
        message
            .starts_with("The provided continue parameter is too old to display a consistent list result.")
    );
    assert!(message.contains("use the continue token in this response"), "{message}");
    let second = rig.get(&format!("{MAPS}?limit=2&continue={fresh}"));
    assert_eq!(names(&second), ["m2", "m3"]);
    assert_eq!(version(&second), version(&rig.get(MAPS)), "at the newest version");
    let token = second["metadata"]["continue"].as_str().unwrap();
    let third = rig.get(&format!("{MAPS}?limit=2&continue={token}"));
    assert_eq!(names(&third), ["m4", "m5"], "with what was made meanwhile");
    assert_eq!(third["metadata"]["continue"], Value::Null);
}

#[test]
fn a_token_does_not_reach_out_of_its_place() {
    let rig = Rig::new();
    rig.create("/api/v1/namespaces", &json!({"metadata": {"name": "other"}}));
    rig.create("/api/v1/namespaces/other/configmaps", &map("secret"));
    five(&rig);
    let everywhere = rig.get("/api/v1/configmaps?limit=1");
    let token = everywhere["metadata"]["continue"].as_str().unwrap();
    let page = rig.get(&format!("{MAPS}?limit=500&continue={token}"));
    assert!(names(&page).iter().all(|name| name.starts_with('m')), "{page}");
}

#[test]
fn one_object_can_be_asked_for_no_older_than_a_version() {
    let rig = Rig::new();
    let made = rig.create(MAPS, &map("m"));
    let check = |query: &str, code: u16| {
        assert_eq!(get(&rig, &format!("{MAPS}/m?{query}")).status, code, "{query}");
    };
    check("", 200);
    check("resourceVersion=0", 200);
    check(&format!("resourceVersion={}", version(&made)), 200);
    check("resourceVersion=99999999", 504);
    check("resourceVersion=x", 500);
}
