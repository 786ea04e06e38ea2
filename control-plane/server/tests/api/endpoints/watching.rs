//! Watches of what is computed: each change once, at the version of its cause, from any version that is still known.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ENDPOINTS, SERVICES, SLICES, addresses, member, ready, run, service, slices, version};
use crate::rig::{PODS, Rig};
use crate::watches::Watch;

/// `TYPE name@version` of each event.
fn told(events: &[Value]) -> Vec<String> {
    let one = |event: &Value| {
        let (kind, object) = (event["type"].as_str().unwrap(), &event["object"]);
        format!("{kind} {}@{}", object["metadata"]["name"].as_str().unwrap(), version(object))
    };
    events.iter().map(one).collect()
}

#[test]
fn ep_05_a_pod_that_turns_ready_shows_at_once_as_an_event_of_that_version() {
    let rig = Rig::new();
    let listed = rig.get(ENDPOINTS);
    let mut endpoints = Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&resourceVersion={}", version(&listed)));
    let mut slices = Watch::of(&rig, &format!("{SLICES}?watch=1&resourceVersion={}", version(&listed)));
    let made = version(&rig.create(SERVICES, &service("web")));
    assert_eq!(told(&endpoints.events()), [format!("ADDED web@{made}")]);
    let added = slices.events();
    assert_eq!((added.len(), &added[0]["type"]), (1, &json!("ADDED")));
    let name = added[0]["object"]["metadata"]["name"].as_str().unwrap();
    rig.create(PODS, &member("w0", "web"));
    assert!(endpoints.events().is_empty() && slices.events().is_empty());
    run(&rig, "w0", "10.0.0.7", false);
    endpoints.events();
    slices.events();
    let caused = version(&run(&rig, "w0", "10.0.0.7", true));
    let events = endpoints.events();
    assert_eq!(told(&events), [format!("MODIFIED web@{caused}")]);
    assert_eq!(addresses(&events[0]["object"]), "10.0.0.7 | ");
    let events = slices.events();
    assert_eq!(told(&events), [format!("MODIFIED {name}@{caused}")]);
    assert_eq!(ready(&events[0]["object"]), ["10.0.0.7"]);
    // What is of no account to them is no event.
    let annotations = json!({"metadata": {"annotations": {"a": "b"}}});
    rig.patch(&format!("{PODS}/w0"), &annotations);
    rig.patch(&format!("{SERVICES}/web"), &annotations);
    assert!(endpoints.events().is_empty() && slices.events().is_empty());
    rig.delete(&format!("{SERVICES}/web"));
    let (gone, gone_slice) = (endpoints.events(), slices.events());
    assert_eq!((gone.len(), &gone[0]["type"]), (1, &json!("DELETED")));
    assert!(version(&gone[0]["object"]) > caused, "at the version of the deletion");
    assert_eq!(version(&gone[0]["object"]), version(&gone_slice[0]["object"]));
    assert_eq!(addresses(&gone[0]["object"]), "10.0.0.7 | ", "as it was at last");
}

#[test]
fn ep_05_a_pod_of_two_services_changes_both_at_one_version() {
    let rig = Rig::new();
    for name in ["one", "two"] {
        let mut service = service(name);
        service["spec"]["selector"] = json!({"app": "web"});
        rig.create(SERVICES, &service);
    }
    rig.create(PODS, &member("w0", "web"));
    let mut watch =
        Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&resourceVersion={}", version(&rig.get(PODS))));
    let caused = version(&run(&rig, "w0", "10.0.0.7", true));
    let both = [format!("MODIFIED one@{caused}"), format!("MODIFIED two@{caused}")];
    assert_eq!(told(&watch.events()), both);
    // Who was cut off between the two knows this version, and not whether that was all of it.
    let resume =
        |query: &str| Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&{query}resourceVersion={caused}"));
    assert_eq!(told(&resume("").events()), both);
    assert!(resume("fieldSelector=metadata.name%3Dtwo&").events().is_empty(), "one object is known or not");
    let unrelated = version(&rig.create(PODS, &member("other", "none")));
    run(&rig, "w0", "10.0.0.8", true);
    let mut later = Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&resourceVersion={unrelated}"));
    assert_eq!(later.events().len(), 2, "and once only");
    assert!(later.events().is_empty());
}

/// More than a watch makes ready at once, all of one version: none of it is lost where a client reads piece by piece.
#[test]
fn ep_05_a_pod_of_many_services_changes_all_of_them() {
    let rig = Rig::new();
    let names: Vec<String> = (0..200).map(|n| format!("s{n:03}-{}", "x".repeat(40))).collect();
    for name in &names {
        let mut service = service(name);
        service["spec"]["selector"] = json!({"app": "web"});
        rig.create(SERVICES, &service);
    }
    rig.create(PODS, &member("w0", "web"));
    let mut watch =
        Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&resourceVersion={}", version(&rig.get(PODS))));
    let caused = version(&run(&rig, "w0", "10.0.0.7", true));
    let expected: Vec<String> = names.iter().map(|name| format!("MODIFIED {name}@{caused}")).collect();
    assert_eq!(told(&watch.events()), expected);
}

#[test]
fn ep_05_selectors_choose_among_computed_objects() {
    let rig = Rig::new();
    let mut of_web =
        Watch::of(&rig, &format!("{SLICES}?watch=1&labelSelector=kubernetes.io%2Fservice-name%3Dweb"));
    let mut by_name = Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&fieldSelector=metadata.name%3Dother"));
    let mut labelled = Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&labelSelector=tier%3Dfront"));
    rig.create(SERVICES, &service("web"));
    rig.create(SERVICES, &service("other"));
    assert_eq!(of_web.events().len(), 1);
    assert_eq!(by_name.lines(), ["ADDED other"]);
    rig.patch(&format!("{SERVICES}/web"), &json!({"metadata": {"labels": {"tier": "front"}}}));
    assert_eq!(labelled.lines(), ["ADDED web"]);
    rig.patch(&format!("{SERVICES}/web"), &json!({"metadata": {"labels": {"tier": null}}}));
    assert_eq!(labelled.lines(), ["DELETED web"]);
    let mut old = Watch::of(&rig, "/api/v1/watch/namespaces/default/endpoints/web");
    assert_eq!(old.lines(), ["ADDED web"]);
}

#[test]
fn a_watch_goes_on_from_any_version_that_is_known_also_after_a_restart() {
    let mut rig = Rig::new();
    rig.create(SERVICES, &service("web"));
    rig.create(PODS, &member("w0", "web"));
    let start = version(&rig.get(PODS));
    let causes = [false, true, false].map(|ready| version(&run(&rig, "w0", "10.0.0.7", ready)));
    let expected = causes.map(|cause| format!("MODIFIED web@{cause}"));
    let from = |rig: &Rig, version: u64| {
        told(&Watch::of(rig, &format!("{ENDPOINTS}?watch=1&resourceVersion={version}")).events())
    };
    assert_eq!(from(&rig, start), expected);
    assert_eq!(from(&rig, causes[0]), expected[1..]);
    let listed = rig.get(ENDPOINTS);
    rig.restart();
    assert_eq!(from(&rig, start), expected, "the store of this test remembers");
    assert_eq!(rig.get(ENDPOINTS)["items"], listed["items"]);
}

#[test]
fn a_forgotten_version_is_gone_and_one_to_come_is_too_large() {
    let rig = Rig::with(|config| config.watch_history = 16);
    rig.create(SERVICES, &service("web"));
    rig.create(PODS, &member("w0", "web"));
    let mut slow =
        Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&resourceVersion={}", version(&rig.get(PODS))));
    for n in 0..20 {
        run(&rig, "w0", "10.0.0.7", n % 2 == 0);
    }
    let code = |events: &[Value]| events.last().unwrap()["object"]["code"].clone();
    assert_eq!(code(&slow.events()), 410);
    assert!(slow.ended);
    assert_eq!(code(&Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&resourceVersion=2")).events()), 410);
    assert_eq!(code(&Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&resourceVersion=99999")).events()), 504);
    let listed =
        rig.call("GET", &format!("{ENDPOINTS}?resourceVersion=2&resourceVersionMatch=Exact"), &Value::Null);
    assert_eq!(listed.status, 410);
}

/// Nobody computes for so long that the store forgets what came in between: everything is computed anew.
#[test]
fn after_a_gap_lists_are_right_and_watches_list_again() {
    let rig = Rig::with(|config| config.watch_history = 4);
    rig.create(SERVICES, &service("web"));
    rig.create(SERVICES, &service("idle"));
    rig.create(PODS, &member("w0", "web"));
    let idle = rig.get(&format!("{ENDPOINTS}/idle"));
    let mut watch = Watch::of(&rig, &format!("{ENDPOINTS}?watch=1"));
    assert_eq!(watch.lines(), ["ADDED idle", "ADDED web"]);
    let last = super::histories::behind(&rig, "w0");
    assert_eq!(addresses(&rig.get(&format!("{ENDPOINTS}/web"))), "10.0.0.9 | ");
    assert!(version(&rig.get(&format!("{ENDPOINTS}/web"))) >= last);
    assert_eq!(rig.get(&format!("{ENDPOINTS}/idle")), idle, "what did not change keeps its version");
    assert_eq!(watch.events().last().unwrap()["object"]["code"], 410);
    let from = version(&rig.get(ENDPOINTS));
    let mut watch = Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&resourceVersion={from}"));
    run(&rig, "w0", "10.0.0.10", true);
    assert_eq!(watch.lines(), ["MODIFIED web"]);
}

#[test]
fn streaming_lists_end_with_their_mark_and_bookmarks_move_on() {
    let rig = Rig::new();
    rig.create(SERVICES, &service("web"));
    let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = Watch::of(&rig, &format!("{ENDPOINTS}?{query}&timeoutSeconds=600"));
    let events = watch.events();
    assert_eq!(events[0]["type"], "ADDED");
    assert_eq!(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let newest = version(&rig.create(PODS, &member("unrelated", "none")));
    rig.pass(Duration::from_secs(61));
    let events = watch.events();
    assert_eq!((events.len(), &events[0]["type"]), (1, &json!("BOOKMARK")));
    assert!(version(&events[0]["object"]) >= newest, "though nothing was to be told");
    // From there on nothing is missed.
    let mut resumed =
        Watch::of(&rig, &format!("{ENDPOINTS}?watch=1&resourceVersion={}", version(&events[0]["object"])));
    rig.create(PODS, &member("w0", "web"));
    let caused = version(&run(&rig, "w0", "10.0.0.7", true));
    assert_eq!(told(&resumed.events()), [format!("MODIFIED web@{caused}")]);
}

#[test]
fn two_control_planes_on_one_store_tell_of_the_same_versions() {
    let mut rig = Rig::new();
    rig.create(SERVICES, &service("web"));
    rig.create(PODS, &member("w0", "web"));
    run(&rig, "w0", "10.0.0.7", false);
    let first = rig.plane.clone();
    rig.restart();
    let mut here = Watch::of(&rig, &format!("{SLICES}?watch=1"));
    let second = std::mem::replace(&mut rig.plane, first);
    let mut there = Watch::of(&rig, &format!("{SLICES}?watch=1"));
    run(&rig, "w0", "10.0.0.7", true);
    let objects = slices(&rig, "web");
    rig.plane = second;
    assert_eq!(slices(&rig, "web"), objects);
    let (here, there) = (here.events(), there.events());
    assert_eq!(here.len(), 2);
    assert_eq!(here, there);
}
