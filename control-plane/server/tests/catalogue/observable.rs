//! What can be observed of the server: metrics, health checks, its log, and the audit log that scenarios assert on.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::Client;
use crate::plane::{Plane, binding, node, pod, pod_for_nobody};

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
    let pods: Vec<_> = (0..3).map(|_| plane.admin.watch(PODS, 240)).collect();
    let nodes = plane.admin.watch("/api/v1/nodes", 240);
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
        .until("/apis/apps/v1/namespaces/default/deployments", 240, |one| one["status"]["replicas"] == 2);
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

/// Structured logs: every line of standard error is a JSON document.
#[test]
fn logs_are_json_where_asked() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::tls(dir.path(), &["--store", "memory", "--log-format", "json"]);
    plane.admin.post(PODS, &pod("p")).is(201);
    let log = plane.log();
    assert!(!log.is_empty());
    for line in log.lines() {
        let document: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(document.is_object(), "{line}");
    }
}

/// The lines of an audit log.
fn audit(path: &Path) -> Vec<Value> {
    // Where nothing is to be kept there may be no file.
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// What happens while an audited server runs; the server is stopped, so that its log is complete.
fn audited(level: &str, run: impl Fn(&Plane)) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "nobody-token,nobody,17,\"a,b\"\n").unwrap();
    let log = dir.path().join("audit.log");
    let flags = [
        "--store",
        "memory",
        "--controllers=*,-scheduler",
        "--token-auth-file",
        tokens.to_str().unwrap(),
        "--audit-log-path",
        log.to_str().unwrap(),
        "--audit-level",
        level,
    ];
    let plane = Plane::tls(dir.path(), &flags);
    run(&plane);
    plane.stop();
    audit(&log)
}

/// The one event of a request that has ended.
#[track_caller]
fn the<'a>(events: &'a [Value], verb: &str, uri: &str) -> &'a Value {
    let found: Vec<&Value> = events
        .iter()
        .filter(|event| {
            event["verb"] == verb && event["requestURI"] == uri && event["stage"] == "ResponseComplete"
        })
        .collect();
    assert_eq!(found.len(), 1, "{verb} {uri}: {events:#?}");
    found[0]
}

/// The audit log at its usual level: who asked what of which object, and what came of it.
#[test]
fn the_audit_log_says_who_did_what_to_which_object() {
    let events = audited("metadata", |plane| {
        let nobody = plane.admin.with(&plane.admin.credentials().bearer("nobody-token"));
        let answer = plane.admin.post(PODS, &pod("p"));
        answer.is(201);
        plane.admin.get("/api/v1/pods?limit=5").is(200);
        nobody.get("/api/v1/secrets").forbidden(&[]);
        plane.admin.post(&format!("{PODS}/p/binding"), &binding("p", "n")).is(201);
        plane.admin.watch(PODS, 1).for_each(drop);
        plane.admin.delete("/api/v1/nodes/absent").refused(404, "NotFound", &[]);
        plane.admin.with(&plane.admin.credentials().bearer("wrong")).get("/version").refused(
            401,
            "Unauthorized",
            &[],
        );
    });
    for event in &events {
        assert_eq!(event["kind"], "Event", "{event}");
        assert_eq!(event["apiVersion"], "audit.k8s.io/v1", "{event}");
        assert_eq!(event["level"], "Metadata", "{event}");
        assert_eq!(event.get("requestObject"), None, "{event}");
        assert_eq!(event.get("responseObject"), None, "{event}");
        for key in ["auditID", "stage", "requestURI", "verb", "requestReceivedTimestamp", "stageTimestamp"] {
            assert!(event[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {event}");
        }
    }
    let made = the(&events, "create", PODS);
    assert_eq!(made["user"]["username"], "kubernetes-admin");
    assert!(made["user"]["groups"].as_array().unwrap().contains(&json!("system:masters")));
    assert_eq!(made["objectRef"]["resource"], "pods");
    assert_eq!(made["objectRef"]["namespace"], "default");
    assert_eq!(made["objectRef"]["apiVersion"], "v1");
    assert_eq!(made["responseStatus"]["code"], 201);
    assert_eq!(made["sourceIPs"], json!(["127.0.0.1"]));
    let listed = the(&events, "list", "/api/v1/pods?limit=5");
    assert_eq!(listed["objectRef"].get("name"), None);
    let denied = the(&events, "list", "/api/v1/secrets");
    assert_eq!(denied["user"]["username"], "nobody");
    assert_eq!(denied["user"]["uid"], "17");
    assert_eq!(denied["responseStatus"]["code"], 403);
    let bound = the(&events, "create", &format!("{PODS}/p/binding"));
    assert_eq!(bound["objectRef"]["subresource"], "binding");
    assert_eq!(bound["objectRef"]["name"], "p");
    let watched =
        events.iter().filter(|event| event["verb"] == "watch" && event["stage"] == "ResponseComplete");
    assert_eq!(watched.filter(|event| event["objectRef"]["resource"] == "pods").count(), 1);
    let absent = the(&events, "delete", "/api/v1/nodes/absent");
    assert_eq!(absent["objectRef"]["name"], "absent");
    assert_eq!(absent["responseStatus"]["code"], 404);
    let ids: std::collections::BTreeSet<&str> = events
        .iter()
        .filter(|event| event["stage"] == "ResponseComplete")
        .map(|event| event["auditID"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), events.iter().filter(|event| event["stage"] == "ResponseComplete").count());
}

/// The answer carries the id of its audit event.
#[test]
fn answers_carry_their_audit_id() {
    let id = std::cell::RefCell::new(String::new());
    let events = audited("metadata", |plane| {
        let answer = plane.admin.get(PODS);
        *id.borrow_mut() = answer.headers["audit-id"].to_str().unwrap().to_owned();
        let own = plane.admin.exchange("GET", "/api/v1/nodes", &[("audit-id", "asked-for")], "");
        assert_eq!(own.headers["audit-id"], "asked-for");
    });
    assert_eq!(the(&events, "list", PODS)["auditID"], *id.borrow());
    assert_eq!(the(&events, "list", "/api/v1/nodes")["auditID"], "asked-for");
}

/// More at higher levels, nothing at none; what is secret stays so.
#[test]
fn levels_say_how_much_is_kept() {
    let run = |plane: &Plane| {
        plane.admin.post(PODS, &pod("p")).is(201);
        plane.admin.get(&format!("{PODS}/p")).is(200);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hush-hush"}});
        plane.admin.post("/api/v1/namespaces/default/secrets", &secret).is(201);
        plane.admin.with(&plane.admin.credentials().bearer("nobody-token")).get("/version").is(200);
    };
    let none = audited("none", run);
    assert_eq!(none, Vec::<Value>::new());
    let request = audited("request", run);
    let made = the(&request, "create", PODS);
    assert_eq!(made["level"], "Request");
    assert_eq!(made["requestObject"]["metadata"]["name"], "p");
    assert_eq!(made.get("responseObject"), None);
    let both = audited("request-response", run);
    let made = the(&both, "create", PODS);
    assert_eq!(made["level"], "RequestResponse");
    assert_eq!(made["requestObject"]["metadata"]["name"], "p");
    assert!(made["responseObject"]["metadata"]["uid"].is_string(), "{made}");
    let read = the(&both, "get", &format!("{PODS}/p"));
    assert_eq!(read["responseObject"]["metadata"]["name"], "p");
    for events in [&request, &both] {
        let text = format!("{events:?}");
        assert!(!text.contains("nobody-token"), "a token is in the audit log");
        assert!(
            !text.contains("hush-hush") && !text.contains("aHVzaC1odXNo"),
            "a secret is in the audit log"
        );
    }
}
