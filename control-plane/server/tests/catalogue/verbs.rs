//! Lists and watches while others write: pages of one snapshot, every change once and in order, selectors that objects
//! cross, and what is said to someone who comes too late.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::Client;
use crate::plane::{Plane, binding, pod_for_nobody};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn start(flags: &[&str]) -> (tempfile::TempDir, Plane) {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::plain(dir.path(), &[&["--store", "memory", "--no-auth"], flags].concat());
    (dir, plane)
}

fn map(name: &str, team: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"team": team}}, "data": {"n": "0"}})
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Pages are of one moment, whatever happens between them.
#[test]
fn pages_are_of_one_snapshot() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    for n in 0..30 {
        admin.post(MAPS, &map(&format!("m{n:02}"), "red")).is(201);
    }
    let whole = admin.get(MAPS).is(200);
    let mut page = admin.get(&format!("{MAPS}?limit=7")).is(200);
    assert_eq!(page["metadata"]["remainingItemCount"], 23);
    let moment = page["metadata"]["resourceVersion"].clone();
    assert_eq!(moment, whole["metadata"]["resourceVersion"]);
    let mut items = page["items"].as_array().unwrap().clone();
    let mut pages = 1;
    while let Some(next) = page["metadata"]["continue"].as_str() {
        // Between any two pages: one made, one changed, one gone, all ahead of the reader.
        admin.post(MAPS, &map(&format!("m{}-late", 29 - pages), "red")).is(201);
        admin.merge(&format!("{MAPS}/m{}", 29 - pages), &json!({"data": {"n": "1"}})).is(200);
        admin.delete(&format!("{MAPS}/m2{}", pages - 1)).is(200);
        let query = format!("{MAPS}?limit=7&continue={}", next.replace('+', "%2B").replace('=', "%3D"));
        page = admin.get(&query).is(200);
        assert_eq!(page["metadata"]["resourceVersion"], moment);
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        pages += 1;
    }
    assert_eq!(pages, 5);
    assert_eq!(page["metadata"].get("remainingItemCount"), None);
    assert_eq!(Value::Array(items), whole["items"]);
}

/// Many writers, several watchers: each sees every change once, in the order of versions, and ends up with the list.
#[test]
fn watchers_see_every_change_once_and_in_order() {
    let (_dir, plane) = start(&[]);
    let from = version(&plane.admin.get(MAPS).is(200));
    let path = format!("{MAPS}?resourceVersion={from}");
    let watches: Vec<_> = (0..3).map(|_| plane.admin.watch(&path, 300)).collect();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let admin: Client = plane.admin.clone();
            scope.spawn(move || {
                for n in 0..12 {
                    let name = format!("m-{writer}-{n}");
                    admin.post(MAPS, &map(&name, "red")).is(201);
                    admin.merge(&format!("{MAPS}/{name}"), &json!({"data": {"n": "1"}})).is(200);
                    if n % 3 == 0 {
                        admin.delete(&format!("{MAPS}/{name}")).is(200);
                    }
                }
            });
        }
    });
    let changes = 8 * (12 + 12 + 4);
    let histories: Vec<Vec<Value>> = watches.into_iter().map(|watch| watch.take(changes).collect()).collect();
    assert!(histories.iter().all(|history| history == &histories[0]));
    let versions: Vec<u64> =
        histories[0].iter().map(|event| version(&event["object"]).parse().unwrap()).collect();
    assert!(versions.is_sorted_by(|before, after| before < after), "{versions:?}");
    let mut state = BTreeMap::new();
    for event in &histories[0] {
        let object = event["object"].clone();
        let known = state.contains_key(&name(&object));
        match event["type"].as_str().unwrap() {
            "ADDED" => assert!(!known, "{event}"),
            "MODIFIED" => assert!(known, "{event}"),
            "DELETED" => assert!(state.remove(&name(&object)).is_some(), "{event}"),
            other => panic!("{other}: {event}"),
        }
        if event["type"] != "DELETED" {
            state.insert(name(&object), object);
        }
    }
    let list = plane.admin.get(MAPS).is(200);
    for item in list["items"].as_array().unwrap() {
        let seen = state.remove(&name(item)).unwrap();
        assert_eq!((&item["metadata"], &item["data"]), (&seen["metadata"], &seen["data"]));
    }
    assert_eq!(state.len(), 0, "the watch knows more than the list: {state:?}");
    // Anyone may start in the middle and sees the rest.
    let middle = versions[changes / 2];
    let rest: Vec<Value> = plane.admin.watch(&format!("{MAPS}?resourceVersion={middle}"), 2).collect();
    assert_eq!(rest, histories[0][changes / 2 + 1..]);
}

/// The events of a watch as `TYPE name`.
fn told(plane: &Plane, query: &str) -> Vec<String> {
    let events = plane.admin.watch(query, 1);
    events.map(|event| format!("{} {}", event["type"].as_str().unwrap(), name(&event["object"]))).collect()
}

/// Objects that come to match, or no longer do, are ADDED and DELETED to whoever selects; for labels and for fields.
#[test]
fn selectors_are_crossed_as_added_and_deleted() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    admin.post(MAPS, &map("a", "red")).is(201);
    let from = version(&admin.post(MAPS, &map("b", "blue")).is(201));
    let paint = |name: &str, team: Value| {
        admin.merge(&format!("{MAPS}/{name}"), &json!({"metadata": {"labels": {"team": team}}})).is(200)
    };
    paint("b", json!("red"));
    paint("a", json!("blue"));
    paint("b", json!("red2"));
    paint("a", Value::Null);
    admin.delete(&format!("{MAPS}/b")).is(200);
    let watch =
        |selector: &str| told(&plane, &format!("{MAPS}?resourceVersion={from}&labelSelector={selector}"));
    assert_eq!(watch("team%3Dred"), ["ADDED b", "DELETED a", "DELETED b"]);
    assert_eq!(watch("team%3Dblue"), ["DELETED b", "ADDED a", "DELETED a"]);
    assert_eq!(watch("team+in+%28red%2Cred2%29"), ["ADDED b", "DELETED a", "MODIFIED b", "DELETED b"]);
    assert_eq!(watch("team%21%3Dred"), ["DELETED b", "ADDED a", "ADDED b", "MODIFIED a", "DELETED b"]);
    assert_eq!(watch("%21team"), ["ADDED a"]);
    assert_eq!(watch("team"), ["MODIFIED b", "MODIFIED a", "MODIFIED b", "DELETED a", "DELETED b"]);

    let from = version(&admin.post(PODS, &pod_for_nobody("p")).is(201));
    admin.post(&format!("{PODS}/p/binding"), &binding("p", "n")).is(201);
    admin.merge(&format!("{PODS}/p/status"), &json!({"status": {"phase": "Failed"}})).is(200);
    admin.delete(&format!("{PODS}/p?gracePeriodSeconds=0")).is(200);
    let watch =
        |selector: &str| told(&plane, &format!("{PODS}?resourceVersion={from}&fieldSelector={selector}"));
    // Even without grace a pod is first marked, then removed.
    assert_eq!(watch("spec.nodeName%3Dn"), ["ADDED p", "MODIFIED p", "MODIFIED p", "DELETED p"]);
    assert_eq!(watch("spec.nodeName%3D"), ["DELETED p"]);
    assert_eq!(watch("status.phase%21%3DFailed"), ["MODIFIED p", "DELETED p"]);
    assert_eq!(watch("spec.nodeName%3Dn%2Cstatus.phase%3DFailed"), ["ADDED p", "MODIFIED p", "DELETED p"]);
    assert_eq!(watch("metadata.name%3Dq"), Vec::<String>::new());
}

/// What a dry run answers is what would be, and nothing is.
#[test]
fn dry_runs_change_nothing() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    admin.post(MAPS, &map("m", "red")).is(201);
    let before = admin.get(MAPS).is(200);
    let made = admin.post(&format!("{MAPS}?dryRun=All"), &map("dry", "red")).is(201);
    assert!(made["metadata"]["uid"].is_string());
    let one = format!("{MAPS}/m?dryRun=All");
    assert_eq!(admin.merge(&one, &json!({"data": {"n": "9"}})).is(200)["data"]["n"], "9");
    assert_eq!(admin.put(&one, &map("m", "blue")).is(200)["metadata"]["labels"]["team"], "blue");
    admin.delete(&one).is(200);
    admin.delete(&format!("{MAPS}?dryRun=All")).is(200);
    admin.post(&format!("{MAPS}?dryRun=All"), &map("m", "red")).refused(409, "AlreadyExists", &[]);
    admin.post(&format!("{MAPS}?dryRun=Some"), &map("x", "red")).refused(422, "Invalid", &["dryRun"]);
    assert_eq!(admin.get(MAPS).is(200), before);
}

/// Concurrent read-modify-write with versions: no update is lost.
#[test]
fn versions_keep_updates_from_being_lost() {
    let (_dir, plane) = start(&[]);
    plane.admin.post(MAPS, &map("counter", "red")).is(201);
    let path = format!("{MAPS}/counter");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (admin, path) = (plane.admin.clone(), &path);
            scope.spawn(move || {
                let mut left = 10;
                while left > 0 {
                    let mut read = admin.get(path).is(200);
                    let count: u32 = read["data"]["n"].as_str().unwrap().parse().unwrap();
                    read["data"]["n"] = json!((count + 1).to_string());
                    let answer = admin.put(path, &read);
                    match answer.code {
                        200 => left -= 1,
                        _ => drop(answer.refused(409, "Conflict", &["the object has been modified"])),
                    }
                }
            });
        }
    });
    assert_eq!(plane.admin.get(&path).is(200)["data"]["n"], "80");
}

/// Whoever comes too late is told so, by list, by page and by watch; a fresh list puts him right.
#[test]
fn too_late_is_told() {
    let (_dir, plane) = start(&["--watch-history", "50"]);
    let admin = &plane.admin;
    for n in 0..20 {
        admin.post(MAPS, &map(&format!("m{n:02}"), "red")).is(201);
    }
    let old = version(&admin.get(MAPS).is(200));
    let page = admin.get(&format!("{MAPS}?limit=5")).is(200);
    let next = page["metadata"]["continue"].as_str().unwrap().replace('+', "%2B").replace('=', "%3D");
    for n in 0..2000 {
        admin.merge(&format!("{MAPS}/m00"), &json!({"data": {"n": n.to_string()}})).is(200);
    }
    let exact = format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    admin.get(&exact).refused(410, "Expired", &["too old"]);
    let expired = admin.get(&format!("{MAPS}?limit=5&continue={next}")).refused(410, "Expired", &[]);
    // The refusal carries a token that goes on without the promise of one moment.
    let again = expired["metadata"]["continue"].as_str().unwrap().replace('+', "%2B").replace('=', "%3D");
    let rest = admin.get(&format!("{MAPS}?continue={again}")).is(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 15);
    let answer = admin.get(&format!("{MAPS}?watch=true&timeoutSeconds=2&resourceVersion={old}"));
    assert!([200, 410].contains(&answer.code), "{}", answer.text());
    let text = answer.text();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let status = if events[0]["type"] == "ERROR" { &events[0]["object"] } else { &events[0] };
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")), "{events:?}");
    let fresh = version(&admin.get(MAPS).is(200));
    admin.merge(&format!("{MAPS}/m01"), &json!({"data": {"n": "1"}})).is(200);
    assert_eq!(told(&plane, &format!("{MAPS}?resourceVersion={fresh}")), ["MODIFIED m01"]);
}
