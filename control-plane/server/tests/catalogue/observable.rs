//! What can be observed of the server: metrics, health checks, its log, and the audit log that scenarios assert on.

use std::collections::BTreeMap;

use serde_json::json;

use crate::client::Client;
use crate::plane::{Plane, binding, node, pod_for_nobody};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A sample's name, labels and value.
type Sample = (String, BTreeMap<String, String>, f64);

/// The samples of the text format; every sample's family has its HELP and TYPE before it.
#[track_caller]
fn scrape(client: &Client) -> Vec<Sample> {
    let answer = client.get("/metrics");
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert!(
        answer.headers["content-type"].to_str().unwrap().starts_with("text/plain"),
        "{:?}",
        answer.headers
    );
    let text = answer.text();
    let mut family = String::new();
    let mut samples = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap().to_owned();
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (head, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = head.split_once('{').unwrap_or((head, ""));
        assert!(name.starts_with(&family), "{name} is not declared: {line}");
        let labels = labels.trim_end_matches('}').split("\",").filter_map(|label| label.split_once("=\""));
        let labels =
            labels.map(|(key, value)| (key.to_owned(), value.trim_end_matches('"').to_owned())).collect();
        samples.push((name.to_owned(), labels, value.parse().unwrap()));
    }
    samples
}

/// The sum of the samples of a name that carry these labels.
fn sum(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    let carries = |have: &BTreeMap<String, String>| {
        labels.iter().all(|(key, value)| have.get(*key).is_some_and(|found| found == value))
    };
    samples.iter().filter(|sample| sample.0 == name && carries(&sample.1)).map(|sample| sample.2).sum()
}

/// Requests by verb, resource and code, and how long they took.
#[test]
fn requests_are_counted_by_verb_resource_and_code() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "redb"]);
    let admin = &plane.admin;
    let before = scrape(admin);
    node(admin, "n");
    for name in ["a", "b", "c"] {
        admin.post(PODS, &pod_for_nobody(name)).is(201);
    }
    admin.post(PODS, &pod_for_nobody("a")).refused(409, "AlreadyExists", &[]);
    admin.post(&format!("{PODS}/a/binding"), &binding("a", "n")).is(201);
    admin.get(&format!("{PODS}/a")).is(200);
    admin.get(&format!("{PODS}/absent")).refused(404, "NotFound", &[]);
    admin.get(PODS).is(200);
    admin.get("/api/v1/pods").is(200);
    admin.merge(&format!("{PODS}/a"), &json!({"metadata": {"labels": {"x": "y"}}})).is(200);
    admin.delete(&format!("{PODS}/b?gracePeriodSeconds=0")).is(200);
    admin.watch(PODS, 1).for_each(drop);
    let after = scrape(admin);
    for (verb, code, subresource, times) in [
        ("POST", "201", "", 3.0),
        ("POST", "409", "", 1.0),
        ("POST", "201", "binding", 1.0),
        ("GET", "200", "", 1.0),
        ("GET", "404", "", 1.0),
        ("LIST", "200", "", 2.0),
        ("PATCH", "200", "", 1.0),
        ("DELETE", "200", "", 1.0),
        ("WATCH", "200", "", 1.0),
    ] {
        let labels = [("verb", verb), ("resource", "pods"), ("code", code), ("subresource", subresource)];
        let count = |samples: &[Sample]| sum(samples, "apiserver_request_total", &labels);
        assert_eq!(count(&after) - count(&before), times, "{labels:?}");
        let labels = [("verb", verb), ("resource", "pods"), ("subresource", subresource)];
        assert!(sum(&after, "apiserver_request_duration_seconds_count", &labels) >= times, "{labels:?}");
        assert!(sum(&after, "apiserver_request_duration_seconds_sum", &labels) > 0.0, "{labels:?}");
        let all = [&labels[..], &[("le", "+Inf")]].concat();
        assert_eq!(
            sum(&after, "apiserver_request_duration_seconds_bucket", &all),
            sum(&after, "apiserver_request_duration_seconds_count", &labels)
        );
    }
    // The store's latency, under whatever name.
    let store = |samples: &[Sample]| -> f64 {
        let of_store = |name: &str| {
            ["store", "storage", "etcd"].iter().any(|word| name.contains(word))
                && name.ends_with("duration_seconds_count")
        };
        samples.iter().filter(|sample| of_store(&sample.0)).map(|sample| sample.2).sum()
    };
    assert!(store(&after) >= store(&before) + 7.0, "{} then {}", store(&before), store(&after));
}

/// Names that clients make up do not become labels.
#[test]
fn strangers_do_not_make_time_series() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory"]);
    let admin = &plane.admin;
    let ask_all = |from: usize| {
        for n in from..from + 50 {
            let path = format!("/api/v1/namespaces/ns-{n}/pods/pod-{n}");
            admin.get(&path).refused(404, "NotFound", &[]);
            assert_eq!(admin.get(&format!("/apis/group-{n}/v1/things")).code, 404);
            assert_eq!(admin.get(&format!("/nowhere/{n}")).code, 404);
            let verb = format!("VERB{n}");
            assert!((400..500).contains(&admin.exchange(&verb, PODS, &[], "").code));
        }
    };
    ask_all(0);
    // A scrape counts itself from the next one on.
    scrape(admin);
    let before = scrape(admin).len();
    ask_all(50);
    let after = scrape(admin).len();
    assert!(after <= before, "{before} samples, then {after}");
}

/// Open watches are counted while they are open.
#[test]
fn open_watches_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory"]);
    let open = |resource: &str| {
        let labels = [("verb", "WATCH"), ("resource", resource)];
        sum(&scrape(&plane.admin), "apiserver_longrunning_requests", &labels)
    };
    assert_eq!((open("pods"), open("nodes")), (0.0, 0.0));
    let pods: Vec<_> = (0..3).map(|_| plane.admin.watch(PODS, 20)).collect();
    let nodes = plane.admin.watch("/api/v1/nodes", 20);
    assert_eq!((open("pods"), open("nodes")), (3.0, 1.0));
    drop((pods, nodes));
    // The server learns of it by the connection's end; each scrape is a chance to see it.
    assert!((0..2000).any(|_| (open("pods"), open("nodes")) == (0.0, 0.0)));
}

/// Controllers' work shows.
#[test]
fn controllers_work_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory"]);
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "rigor.dev/pause"}]}}}});
    let work = || -> f64 {
        let samples = scrape(&plane.admin);
        let of = |sample: &&Sample| {
            sample.0.contains("controller") && sample.1.values().any(|value| value.contains("deployment"))
        };
        samples.iter().filter(of).map(|sample| sample.2).sum()
    };
    let before = work();
    plane.admin.post("/apis/apps/v1/namespaces/default/deployments", &web).is(201);
    plane
        .admin
        .until("/apis/apps/v1/namespaces/default/deployments", 20, |one| one["status"]["replicas"] == 2);
    assert!(work() > before, "{before}");
}

/// Health: each check by name, excluded ones, and ones that are not there.
#[test]
fn health_is_told_by_check() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "redb"]);
    let admin = &plane.admin;
    for path in ["/livez", "/readyz", "/healthz"] {
        let answer = admin.get(path);
        assert_eq!((answer.code, answer.text().as_str()), (200, "ok"), "{path}");
        let verbose = admin.get(&format!("{path}?verbose"));
        assert_eq!(verbose.code, 200);
        let text = verbose.text();
        let checks: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("[+]")?.strip_suffix(" ok")).collect();
        assert!(checks.contains(&"ping"), "{text}");
        let end = format!("{} check passed", path.trim_start_matches('/'));
        assert_eq!(text.lines().rfind(|line| !line.is_empty()), Some(end.as_str()));
        for check in checks {
            assert_eq!(admin.get(&format!("{path}/{check}")).text(), "ok", "{path}/{check}");
        }
        let without = admin.get(&format!("{path}?verbose&exclude=ping")).text();
        assert!(!without.contains("[+]ping ok"), "{without}");
        let none = admin.get(&format!("{path}/nonesuch"));
        assert_eq!((none.code, none.text().trim()), (404, "404 page not found"));
        // Health is nobody's secret.
        let anonymous = admin.with(&admin.credentials().anonymous());
        assert_eq!(anonymous.get(path).code, 200);
    }
}
