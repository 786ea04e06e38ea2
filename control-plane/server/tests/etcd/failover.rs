//! Two control planes on one etcd while things break: nothing that was acknowledged is lost, nothing is made twice, and the
//! controllers act once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::etcd::Etcd;
use crate::http::{call, get, try_call, watch};
use crate::planes::{LEASE, PODS, SHORT, bound, join, judging_plane, plane, pod, signal, spec, until};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

fn deployment(replicas: usize) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec()},
    }})
}

fn holder(url: &str) -> String {
    get(url, LEASE)["spec"]["holderIdentity"].as_str().unwrap().to_owned()
}

#[expect(clippy::disallowed_methods, reason = "how long it took is printed, nothing depends on it")]
fn now() -> Instant {
    Instant::now()
}

/// Waits until somebody else holds the lease: who, and from when.
fn handed_over(url: &str, before: &str) -> (String, Timestamp) {
    let lease = until(url, LEASE, LEASES, |lease| {
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        !holder.is_empty() && holder != before
    });
    (lease["spec"]["holderIdentity"].as_str().unwrap().to_owned(), stamp(&lease["spec"]["acquireTime"]))
}

fn stamp(value: &Value) -> Timestamp {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no stamp: {value}"))
}

/// What writers were told: each write under a name of its own, none tried again.
#[derive(Default)]
struct Told {
    made: Vec<String>,
    unsure: Vec<String>,
    refused: usize,
}

/// Writes through one control plane until it is told to stop.
fn write(url: &str, writer: &str, stop: &AtomicBool, made: &AtomicUsize) -> Told {
    let mut told = Told::default();
    for n in 0.. {
        if stop.load(Ordering::SeqCst) {
            return told;
        }
        let name = format!("{writer}-{n}");
        match try_call(url, "POST", CONFIGMAPS, &json!({"metadata": {"name": name}})) {
            Ok((201, _)) => {
                made.fetch_add(1, Ordering::SeqCst);
                told.made.push(name);
            }
            Ok((504, status)) => {
                assert!(status["message"].as_str().unwrap().contains("not known"), "{status}");
                told.unsure.push(name);
            }
            Ok((code, status)) => {
                assert_eq!((code, status["kind"].as_str()), (500, Some("Status")), "{status}");
                told.refused += 1;
            }
            // The control plane was killed, and nobody took the request.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return told,
            // It was killed before it said anything.
            Err(_) => told.unsure.push(name),
        }
    }
    told
}

/// Waits until writers got so many more answers of success.
fn progress(made: &AtomicUsize, more: usize) {
    let start = made.load(Ordering::SeqCst);
    // Where no more succeed, the test runner ends this.
    while made.load(Ordering::SeqCst) < start + more {
        std::thread::yield_now();
    }
}

/// The pods of the deployment that ever were, by name, as etcd's whole history shows them through a watch from `version`.
fn pods_ever(url: &str, version: &str) -> BTreeMap<String, usize> {
    let mut added = BTreeMap::new();
    let path = format!("{PODS}?watch=1&labelSelector=app%3Dweb&resourceVersion={version}&timeoutSeconds=1");
    for event in watch(url, &path) {
        assert_ne!(event["type"], "ERROR", "{event}");
        if event["type"] == "ADDED" {
            *added.entry(event["object"]["metadata"]["name"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    added
}

#[test]
fn etcd_and_a_leader_killed_under_load_lose_and_double_nothing() {
    const REPLICAS: usize = 6;
    let Some(mut etcd) = Etcd::start() else { return };
    let mut one = plane(&etcd, &SHORT);
    // It leads before it serves. Whoever leads later, on a busy machine, this is the name that must not lead in the end.
    let first = holder(&one.url);
    let two = plane(&etcd, &SHORT);
    join(&two.url, "board-1", 2 * REPLICAS);
    let version = get(&two.url, PODS)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    call(&two.url, "POST", DEPLOYMENTS, &deployment(REPLICAS / 2), 201);

    let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (stop, made) = (&stop, &made);
    let urls = [one.url.clone(), two.url.clone()];
    let followed = format!("{CONFIGMAPS}?watch=1&resourceVersion={version}&timeoutSeconds=280");
    let followed = watch(&two.url, &followed);
    let (told, seen) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|n| {
                let url = urls[n % 2].as_str();
                scope.spawn(move || write(url, &format!("w{n}"), stop, made))
            })
            .collect();
        let watching = scope.spawn(move || {
            let mut seen = BTreeMap::<String, usize>::new();
            for event in followed {
                assert_eq!(event["type"], "ADDED", "{event}");
                let name = event["object"]["metadata"]["name"].as_str().unwrap().to_owned();
                if name == "last" {
                    break;
                }
                *seen.entry(name).or_default() += 1;
            }
            seen
        });
        progress(made, 100);
        etcd.kill();
        etcd.restart();
        let back = now();
        progress(made, 100);
        println!("writes succeed again {:?} after etcd serves again", back.elapsed());
        let scaled = json!({"spec": {"replicas": REPLICAS}});
        call(&two.url, "PATCH", &format!("{DEPLOYMENTS}/web"), &scaled, 200);
        let killed = now();
        one.process.child.kill().unwrap();
        one.process.child.wait().unwrap();
        handed_over(&two.url, &first);
        println!("another leads {:?} after the leader was killed (lease of 8 s)", killed.elapsed());
        progress(made, 50);
        stop.store(true, Ordering::SeqCst);
        let told: Vec<Told> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        call(&two.url, "POST", CONFIGMAPS, &json!({"metadata": {"name": "last"}}), 201);
        (told, watching.join().unwrap())
    });

    let list = get(&two.url, CONFIGMAPS);
    let there: BTreeSet<&str> =
        list["items"].as_array().unwrap().iter().filter_map(|map| map["metadata"]["name"].as_str()).collect();
    let made: BTreeSet<&str> = told.iter().flat_map(|told| &told.made).map(String::as_str).collect();
    let unsure: BTreeSet<&str> = told.iter().flat_map(|told| &told.unsure).map(String::as_str).collect();
    let refused: usize = told.iter().map(|told| told.refused).sum();
    println!("{} writes acknowledged, {} unsure, {refused} refused", made.len(), unsure.len());
    let lost: Vec<&&str> = made.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let refused_yet_there: Vec<&&str> = there
        .iter()
        .filter(|name| !made.contains(*name) && !unsure.contains(*name) && **name != "last")
        .collect();
    assert!(refused_yet_there.is_empty(), "refused and made all the same: {refused_yet_there:?}");
    // The watch went through all of it, and told of each object once.
    let shown: BTreeSet<&str> = seen.keys().map(String::as_str).collect();
    let expected: BTreeSet<&str> = there.iter().copied().filter(|name| *name != "last").collect();
    assert_eq!(shown, expected);
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");

    // The controllers made each pod once, whoever led.
    let selected = format!("{PODS}?labelSelector=app%3Dweb");
    until(&two.url, &selected, PODS, |list| bound(list) == REPLICAS);
    let ever = pods_ever(&two.url, &version);
    assert_eq!(ever.len(), REPLICAS, "{ever:?}");

    // Another comes in its place and finds everything.
    let three = plane(&etcd, &SHORT);
    assert_eq!(get(&three.url, CONFIGMAPS)["items"].as_array().unwrap().len(), there.len());
    // Watches that began elsewhere, before it was there, go on at this one.
    assert_eq!(pods_ever(&three.url, &version), ever);
}

#[test]
fn a_leader_that_ends_hands_over_at_once() {
    let Some(etcd) = Etcd::start() else { return };
    // So long that only giving up the lease explains that another leads at all.
    let long = ["--leader-elect-lease-duration=3600s", "--leader-elect-renew-deadline=3000s"];
    let mut one = plane(&etcd, &long);
    let first = holder(&one.url);
    let two = plane(&etcd, &long);
    join(&two.url, "board-1", 1);
    let asked = now();
    signal(&one, "TERM");
    handed_over(&two.url, &first);
    println!("another leads {:?} after the leader was asked to end (lease of an hour)", asked.elapsed());
    assert!(one.process.child.wait().unwrap().success());
    call(&two.url, "POST", PODS, &pod("after"), 201);
    until(&two.url, PODS, PODS, |list| bound(list) == 1);
}

#[test]
fn a_leader_that_stood_still_finds_another_in_its_place_and_decides_nothing() {
    const PLACES: usize = 4;
    let Some(etcd) = Etcd::start() else { return };
    let one = &plane(&etcd, &SHORT);
    let first = holder(&one.url);
    let two = &plane(&etcd, &SHORT);
    join(&two.url, "board-1", PLACES);
    signal(one, "STOP");
    let (second, _) = handed_over(&two.url, &first);
    for n in 0..PLACES {
        call(&two.url, "POST", PODS, &pod(&format!("p-{n}")), 201);
    }
    until(&two.url, PODS, PODS, |list| bound(list) == PLACES);
    signal(one, "CONT");
    for n in 0..PLACES {
        call(&one.url, "POST", PODS, &pod(&format!("late-{n}")), 201);
    }
    let pods = get(&one.url, PODS);
    assert_eq!((pods["items"].as_array().unwrap().len(), bound(&pods)), (2 * PLACES, PLACES));
    assert_eq!(holder(&one.url), second);
    // It is as good as new: when the other one ends, it leads again.
    signal(two, "TERM");
    handed_over(&one.url, &second);
    call(&one.url, "DELETE", &format!("{PODS}/p-0"), &json!({"gracePeriodSeconds": 0}), 200);
    until(&one.url, PODS, PODS, |list| bound(list) == PLACES);
}

/// Elections slow enough that a toleration counted anew by the next leader would end long after the old one's.
const SLOW: [&str; 4] = [
    "--leader-elect-lease-duration=12s",
    "--leader-elect-renew-deadline=8s",
    "--leader-elect-retry-period=1s",
    "--not-ready-timeout=1s",
];

#[test]
fn node_12_a_new_leader_goes_on_with_a_toleration_from_time_added() {
    const TOLERATED: i64 = 16;
    let Some(etcd) = Etcd::start() else { return };
    let mut one = judging_plane(&etcd, &SLOW);
    let first = holder(&one.url);
    let two = judging_plane(&etcd, &SLOW);
    let mut lost = pod("lost");
    lost["spec"]["nodeName"] = json!("board-1");
    lost["spec"]["tolerations"] = json!([{
        "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED,
    }]);
    call(&two.url, "POST", PODS, &lost, 201);
    join(&two.url, "board-1", 1);
    // The board renews once and never again.
    let lease = json!({"metadata": {"name": "board-1"}, "spec": {
        "holderIdentity": "board-1", "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z",
    }});
    call(&two.url, "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", &lease, 201);
    let no_execute = |node: &Value| {
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.into_iter().find(|taint| taint["effect"] == "NoExecute")
    };
    let nodes = "/api/v1/nodes";
    let tainted = until(&two.url, &format!("{nodes}/board-1"), nodes, |node| no_execute(node).is_some());
    let added = stamp(&no_execute(&tainted).unwrap()["timeAdded"]);
    one.process.child.kill().unwrap();
    one.process.child.wait().unwrap();
    let (_, acquired) = handed_over(&two.url, &first);

    let disrupted = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|one| one["type"] == "DisruptionTarget" && one["status"] == "True")
    };
    let evicted = until(&two.url, &format!("{PODS}/lost"), PODS, |pod| disrupted(pod).is_some());
    let evicted = stamp(&disrupted(&evicted).unwrap()["lastTransitionTime"]);
    let (since_added, since_acquired) = (evicted - added, evicted - acquired);
    let tolerated = jiff::SignedDuration::from_secs(TOLERATED);
    println!("evicted {since_added} after timeAdded, {since_acquired} after the new leader took over");
    assert!(since_added >= tolerated, "too early");
    assert!(since_acquired < tolerated, "the toleration began anew");
}
