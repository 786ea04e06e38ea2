//! Two control planes on one etcd while things break: nothing that was acknowledged is lost, nothing is made twice, and the
//! controllers act once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::http::{call, get, try_call, watch};
use crate::planes::{LEASE, PODS, Plane, SHORT, bound, join, plane, pod, signal, spec, until};
use crate::server::Etcd;

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

/// Waits until somebody else holds the lease.
fn handed_over(url: &str, before: &str) -> String {
    let lease = until(url, LEASE, LEASES, |lease| {
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        !holder.is_empty() && holder != before
    });
    lease["spec"]["holderIdentity"].as_str().unwrap().to_owned()
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
    let began = now();
    while made.load(Ordering::SeqCst) < start + more {
        assert!(began.elapsed().as_secs() < 30, "no more writes succeed");
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
    let (mut one, two) = (plane(&etcd, &SHORT), plane(&etcd, &SHORT));
    join(&two.url, "board-1", 2 * REPLICAS);
    let first = holder(&two.url);
    let version = get(&two.url, PODS)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    call(&two.url, "POST", DEPLOYMENTS, &deployment(REPLICAS / 2), 201);

    let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (stop, made) = (&stop, &made);
    let urls = [one.url.clone(), two.url.clone()];
    let followed = format!("{CONFIGMAPS}?watch=1&resourceVersion={version}&timeoutSeconds=60");
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
        println!("another leads {:?} after the leader was killed (lease of 3 s)", killed.elapsed());
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
    // Long enough that only giving up the lease explains what is seen.
    let (mut one, two) = (plane(&etcd, &[]), plane(&etcd, &[]));
    let first = holder(&two.url);
    join(&two.url, "board-1", 1);
    let asked = now();
    signal(&one, "TERM");
    handed_over(&two.url, &first);
    println!("another leads {:?} after the leader was asked to end (lease of 15 s)", asked.elapsed());
    assert!(asked.elapsed().as_secs() < 10);
    assert!(one.process.child.wait().unwrap().success());
    call(&two.url, "POST", PODS, &pod("after"), 201);
    until(&two.url, PODS, PODS, |list| bound(list) == 1);
}

#[test]
fn a_leader_that_stood_still_finds_another_in_its_place_and_decides_nothing() {
    const PLACES: usize = 4;
    let Some(etcd) = Etcd::start() else { return };
    let planes: [Plane; 2] = [plane(&etcd, &SHORT), plane(&etcd, &SHORT)];
    let [one, two] = &planes;
    join(&two.url, "board-1", PLACES);
    let first = holder(&two.url);
    signal(one, "STOP");
    let second = handed_over(&two.url, &first);
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
