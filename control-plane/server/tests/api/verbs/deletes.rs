//! DELETE of one and of many: options in the body and the query, propagation, grace, finalizers and selectors.

use serde_json::{Value, json};

use super::{MAPS, get, map, names, version};
use crate::rig::{PASS, PODS, Rig, foreign};

fn options(fields: Value) -> Value {
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    for (field, value) in fields.as_object().unwrap() {
        options[field] = value.clone();
    }
    options
}

fn bound(rig: &Rig, name: &str) {
    let mut pod = foreign(name);
    pod["spec"]["nodeName"] = json!("n");
    rig.create(PODS, &pod);
}

#[test]
fn the_period_of_grace_comes_from_the_body_or_the_query() {
    let rig = Rig::new();
    let check = |query: &str, body: Value, grace: i64| {
        bound(&rig, "p");
        let answer = rig.call("DELETE", &format!("{PODS}/p{query}"), &body).expect(200);
        assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], grace, "{query} {body}");
        let there = get(&rig, &format!("{PODS}/p")).status;
        assert_eq!(there, if grace == 0 { 404 } else { 200 }, "{query} {body}");
        rig.call("DELETE", &format!("{PODS}/p?gracePeriodSeconds=0"), &Value::Null);
    };
    check("", Value::Null, 30);
    check("", options(json!({})), 30);
    check("", options(json!({"gracePeriodSeconds": 5})), 5);
    check("?gracePeriodSeconds=7", Value::Null, 7);
    check("?gracePeriodSeconds=0", Value::Null, 0);
    check("", options(json!({"gracePeriodSeconds": 0})), 0);
    check("?gracePeriodSeconds=-1", Value::Null, 1);
    check("", json!({"gracePeriodSeconds": 4}), 4);
}

#[test]
fn options_that_make_no_sense_are_refused_and_nothing_is_deleted() {
    let rig = Rig::new();
    rig.create(MAPS, &map("m"));
    let check = |query: &str, body: Value, code: u16, words: &str| {
        let answer = rig.call("DELETE", &format!("{MAPS}/m{query}"), &body);
        assert_eq!(answer.status, code, "{query} {body}: {}", answer.text);
        assert!(answer.body["message"].as_str().unwrap().contains(words), "{query} {body}: {}", answer.text);
        assert_eq!(get(&rig, &format!("{MAPS}/m")).status, 200);
    };
    let policies = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
    check("?propagationPolicy=Nope", Value::Null, 422, policies);
    check("", options(json!({"propagationPolicy": "Nope"})), 422, policies);
    let both = options(json!({"propagationPolicy": "Orphan", "orphanDependents": true}));
    check("", both, 422, "orphanDependents and deletionPropagation cannot be both set");
    check("?dryRun=Some", Value::Null, 422, "dryRun: Unsupported value");
    check("", options(json!({"dryRun": ["Some"]})), 422, "dryRun: Unsupported value");
    check(
        "",
        options(json!({"preconditions": {"uid": "1"}})),
        409,
        "the UID in the precondition (1) does not match",
    );
    check(
        "",
        options(json!({"preconditions": {"resourceVersion": "1"}})),
        409,
        "the ResourceVersion in the precondition (1)",
    );
    check("", json!({"kind": "Pod", "apiVersion": "v1"}), 500, "no kind \"Pod\" is registered");
    check("", options(json!({"gracePeriodSeconds": "x"})), 500, "cannot unmarshal string");
}

#[test]
fn preconditions_that_hold_let_it_go() {
    let rig = Rig::new();
    for field in ["uid", "resourceVersion"] {
        let made = rig.create(MAPS, &map("m"));
        let body = options(json!({"preconditions": {field: made["metadata"][field]}}));
        rig.call("DELETE", &format!("{MAPS}/m"), &body).expect(200);
    }
}

/// A map that owns another, which is what garbage collection looks at.
fn family(rig: &Rig, blocking: bool) {
    let owner = rig.create(MAPS, &map("owner"));
    let mut owned = map("owned");
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": blocking,
    }]);
    rig.create(MAPS, &owned);
}

#[test]
fn propagation_decides_what_becomes_of_dependents() {
    let check = |query: &str, body: Value, finalizer: &str, left: &[&str]| {
        let rig = Rig::new();
        family(&rig, true);
        let answer = rig.call("DELETE", &format!("{MAPS}/owner{query}"), &body).expect(200);
        let expected = if finalizer.is_empty() { Value::Null } else { json!([finalizer]) };
        assert_eq!(answer["metadata"]["finalizers"], expected, "{query} {body}: {answer}");
        rig.pass(PASS * 5);
        let mut names = names(&rig.get(MAPS));
        names.retain(|name| name.starts_with("own"));
        assert_eq!(names, left, "{query} {body}");
        if !left.is_empty() {
            let owned = rig.get(&format!("{MAPS}/owned"));
            assert_eq!(owned["metadata"]["ownerReferences"], Value::Null, "{owned}");
        }
    };
    check("", Value::Null, "", &[]);
    check("?propagationPolicy=Background", Value::Null, "", &[]);
    check("", options(json!({"propagationPolicy": "Background"})), "", &[]);
    check("?propagationPolicy=Foreground", Value::Null, "foregroundDeletion", &[]);
    check("?propagationPolicy=Orphan", Value::Null, "orphan", &["owned"]);
    check("", options(json!({"orphanDependents": true})), "orphan", &["owned"]);
    check("", options(json!({"orphanDependents": false})), "", &[]);
}

#[test]
fn finalizers_keep_an_object_and_none_can_be_added() {
    let rig = Rig::new();
    let mut held = map("m");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let made = rig.create(MAPS, &held);
    let url = format!("{MAPS}/m");
    let going = rig.delete(&url);
    assert_eq!(going["kind"], "ConfigMap");
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 0);
    assert!(version(&going) > version(&made));
    assert_eq!(rig.delete(&url), going, "again, and nothing is written");
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    let message = rig.call("PATCH", &url, &more).refused(422);
    assert!(message.contains("no new finalizers can be added if the object is being deleted"), "{message}");
    rig.patch(&url, &json!({"data": {"still": "writable"}}));
    let undone = rig.patch(&url, &json!({"metadata": {"deletionTimestamp": null}}));
    assert!(undone["metadata"]["deletionTimestamp"].is_string(), "a deletion is not taken back");
    rig.patch(&url, &json!({"metadata": {"finalizers": null}}));
    assert_eq!(get(&rig, &url).status, 404);
}

#[test]
fn many_are_deleted_by_selectors_and_options() {
    let check = |query: &str, body: Value, answered: &[&str], left: &[&str]| {
        let rig = Rig::new();
        for (name, group) in [("a", "x"), ("b", "x"), ("c", "y")] {
            let mut own = map(name);
            own["metadata"]["labels"] = json!({"group": group});
            rig.create(MAPS, &own);
        }
        let answer = rig.call("DELETE", &format!("{MAPS}{query}"), &body).expect(200);
        assert_eq!(answer["kind"], "ConfigMapList");
        let own = |list: &Value| {
            let mut names = names(list);
            names.retain(|name| name.len() == 1);
            names
        };
        assert_eq!(own(&answer), answered, "{query} {body}");
        assert_eq!(own(&rig.get(MAPS)), left, "{query} {body}");
    };
    check("", Value::Null, &["a", "b", "c"], &[]);
    check("?labelSelector=group%3Dx", Value::Null, &["a", "b"], &["c"]);
    check("?labelSelector=group%21%3Dx", Value::Null, &["c"], &["a", "b"]);
    check("?fieldSelector=metadata.name%3Db", Value::Null, &["b"], &["a", "c"]);
    check("?labelSelector=group%3Dx&fieldSelector=metadata.name%21%3Da", Value::Null, &["b"], &["a", "c"]);
    check("?labelSelector=group%3Dnone", Value::Null, &[], &["a", "b", "c"]);
    check("?dryRun=All", Value::Null, &["a", "b", "c"], &["a", "b", "c"]);
    check("", options(json!({"dryRun": ["All"]})), &["a", "b", "c"], &["a", "b", "c"]);
    check("?limit=1", Value::Null, &["a"], &["b", "c"]);
}

#[test]
fn an_evicted_pod_says_so_while_it_goes() {
    let rig = Rig::new();
    bound(&rig, "p");
    let url = format!("{PODS}/p/eviction");
    let eviction = |options: Value| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": options});
    let stale = rig.call("POST", &url, &eviction(json!({"preconditions": {"resourceVersion": "1"}})));
    assert_eq!(stale.status, 409, "{}", stale.text);
    assert_eq!(rig.pod("p")["status"]["conditions"], Value::Null, "nothing was written");
    let current = rig.pod("p")["metadata"]["resourceVersion"].clone();
    let body = eviction(json!({"preconditions": {"resourceVersion": current}, "gracePeriodSeconds": 9}));
    let answer = rig.call("POST", &url, &body).expect(201);
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    let pod = rig.pod("p");
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 9);
    let condition = &pod["status"]["conditions"][0];
    assert_eq!(condition["type"], "DisruptionTarget");
    assert_eq!(condition["reason"], "EvictionByEvictionAPI");
    assert_eq!(condition["message"], "Eviction API: evicting");
}
