//! Metrics and health checks, over the router.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use control_plane::store::{
    Answer, Change, Entry, Expect, Figures, Key, Listing, Scope, Signal, Store, StoreError, Turn,
};
use control_plane::{Config, ControlPlane, MemoryStore};
use futures_util::FutureExt;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::rig::{ADMIN, PODS, Rig, board, foreign, pod};

fn metrics(rig: &Rig) -> String {
    let answer = rig.ask(ADMIN, Request::get("/metrics"), Body::empty());
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.text
}

/// The value of the one sample with this name and these labels, or 0 where there is none yet.
fn sample(metrics: &str, name: &str, labels: &[&str]) -> f64 {
    let of = |line: &&str| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    };
    let found: Vec<&str> = metrics.lines().filter(of).collect();
    assert!(found.len() <= 1, "{found:#?}");
    found.first().map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[test]
fn requests_are_counted_by_verb_resource_scope_and_code() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("p"));
    rig.get(&format!("{PODS}/p"));
    rig.get(&format!("{PODS}/p"));
    rig.get("/api/v1/pods");
    rig.call("GET", &format!("{PODS}/q"), &Value::Null).refused(404);
    rig.call("POST", &format!("{PODS}?dryRun=All"), &foreign("r")).expect(201);
    rig.call("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale", &Value::Null).refused(404);
    rig.call_as("wrong", "GET", PODS, &Value::Null).refused(401);
    let text = metrics(&rig);
    let check = |labels: &[&str], expected: f64| {
        assert!(
            (sample(&text, "apiserver_request_total", labels) - expected).abs() < 0.5,
            "{labels:?}\n{text}"
        );
    };
    let pods = r#"group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1""#;
    check(&[pods, r#"code="200""#], 2.0);
    check(&[pods, r#"code="404""#], 1.0);
    check(&[r#"resource="pods",scope="cluster",subresource="",verb="LIST""#, r#"code="200""#], 1.0);
    check(&[r#"verb="POST""#, r#"scope="namespace""#, r#"dry_run="""#, r#"code="201""#], 1.0);
    check(&[r#"verb="POST""#, r#"dry_run="All""#, r#"code="201""#], 1.0);
    check(&[r#"group="apps""#, r#"subresource="scale""#, r#"code="404""#], 1.0);
    check(&[r#"verb="LIST""#, r#"resource="pods""#, r#"code="401""#], 1.0);
    let count = sample(&text, "apiserver_request_duration_seconds_count", &[pods]);
    assert!((count - 3.0).abs() < 0.5, "{text}");
    // The request for the metrics is itself under way.
    let inflight = sample(&text, "apiserver_current_inflight_requests", &[r#"request_kind="readOnly""#]);
    assert!((inflight - 1.0).abs() < 0.5, "{text}");
}

#[test]
fn nothing_that_a_client_chooses_becomes_a_label() {
    let rig = Rig::new();
    let series = || metrics(&rig).lines().filter(|line| line.starts_with("apiserver_")).count();
    let hostile = |n: usize| {
        for path in [
            format!("/made-up-{n}"),
            format!("/api/v1/namespaces/made-up-{n}/pods"),
            format!("/api/v1/namespaces/default/pods/made-up-{n}"),
            format!("/api/v1/namespaces/default/pods/p/made-up-{n}"),
            format!("/apis/made-up-{n}/v1/things"),
            format!("/livez/made-up-{n}"),
            format!("/openapi/v3/made-up-{n}"),
            format!("/api/v1/pods?dryRun=made-up-{n}"),
        ] {
            rig.call("GET", &path, &Value::Null);
            let method = format!("MADEUP{n}");
            rig.ask(ADMIN, Request::builder().method(method.as_str()).uri(&path), Body::empty());
        }
    };
    hostile(0);
    // The first scrape is a request too, which the second one shows.
    series();
    let before = series();
    (1..20).for_each(hostile);
    assert_eq!(series(), before);
    assert!(!metrics(&rig).to_ascii_lowercase().contains("made-up"), "{}", metrics(&rig));
}

#[test]
fn watches_are_counted_while_they_are_open_and_their_events_for_good() {
    let rig = Rig::new();
    rig.create(PODS, &foreign("p"));
    let response = rig.send(ADMIN, Request::get(format!("{PODS}?watch=1")), Body::empty());
    let mut body = response.into_body();
    assert!(body.frame().now_or_never().is_some());
    let watch = r#"resource="pods",scope="namespace",subresource="",verb="WATCH""#;
    let check = |name: &str, labels: &[&str], expected: f64| {
        let text = metrics(&rig);
        assert!((sample(&text, name, labels) - expected).abs() < 0.5, "{name} {labels:?}\n{text}");
    };
    check("apiserver_longrunning_requests", &[watch], 1.0);
    check("apiserver_current_inflight_requests", &[r#"request_kind="readOnly""#], 1.0);
    check("apiserver_request_total", &[watch], 0.0);
    check("apiserver_watch_events_total", &[r#"kind="Pod""#], 1.0);
    rig.create(PODS, &foreign("q"));
    assert!(body.frame().now_or_never().is_some());
    check("apiserver_watch_events_total", &[r#"kind="Pod""#], 2.0);
    drop(body);
    check("apiserver_longrunning_requests", &[watch], 0.0);
    check("apiserver_request_total", &[watch, r#"code="200""#], 1.0);
}

#[test]
fn store_controllers_and_scheduler_are_measured() {
    let rig = Rig::new();
    rig.join("a", &board());
    rig.create(PODS, &pod("placed", &json!({})));
    rig.create(PODS, &pod("too-big", &json!({"memory": "300Ki"})));
    rig.pass(Duration::from_secs(20));
    let text = metrics(&rig);
    let value = |name: &str, labels: &[&str]| sample(&text, name, labels);
    assert!((value("apiserver_storage_objects", &[r#"resource="pods""#]) - 2.0).abs() < 0.5, "{text}");
    assert!(
        value("apiserver_storage_objects", &[r#"resource="leases.coordination.k8s.io""#]) > 0.5,
        "{text}"
    );
    assert!(
        (value("scheduler_schedule_attempts_total", &[r#"result="scheduled""#]) - 1.0).abs() < 0.5,
        "{text}"
    );
    assert!(value("scheduler_schedule_attempts_total", &[r#"result="unschedulable""#]) > 2.0, "{text}");
    assert!((value("scheduler_pending_pods", &[]) - 1.0).abs() < 0.5, "{text}");
    let revision: f64 = rig.get(PODS)["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!((value("rigor_store_revision", &[]) - revision).abs() < 0.5, "{text}");
    assert!((value("rigor_store_history_length", &[]) - (revision - 1.0)).abs() < 0.5, "{text}");
    // The tests' clock stands still inside a request, so only the count of the durations can be known.
    assert!(value("rigor_store_write_duration_seconds_count", &[r#"operation="put""#]) > 10.0, "{text}");
    let lifecycle = [r#"controller="node-lifecycle""#, r#"outcome="applied""#];
    assert!(value("rigor_controller_decisions_total", &lifecycle) > 0.5, "{text}");
    assert!(value("rigor_controller_turns_total", &[]) > 10.0, "{text}");
    assert!((value("rigor_build_info", &[]) - 1.0).abs() < 0.5, "{text}");
    // Every line is a comment, or a sample whose value is a number.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok() && name.starts_with(|c: char| c.is_ascii_lowercase()), "{line}");
    }
    assert_eq!(text.matches("# TYPE apiserver_request_total counter\n").count(), 1, "{text}");
}

#[test]
fn metrics_are_text_for_prometheus_and_not_for_everyone() {
    let rig = Rig::new();
    let answer = rig.ask(ADMIN, Request::get("/metrics"), Body::empty());
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    for token in ["", "nobody-token", "a-token"] {
        rig.call_as(token, "GET", "/metrics", &Value::Null).refused(403);
    }
    rig.call("POST", "/metrics", &Value::Null).refused(405);
}

#[test]
fn health_checks_are_named_and_can_be_left_out() {
    let rig = Rig::new();
    let get = |path: &str| rig.call("GET", path, &Value::Null);
    for (path, expected) in [
        ("/livez", "ok"),
        ("/livez/ping", "ok"),
        ("/livez/etcd", "ok"),
        ("/readyz/informer-sync", "ok"),
        ("/readyz/store", "ok"),
        ("/healthz?exclude=etcd", "ok"),
        ("/livez?verbose", "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]controllers ok\nlivez check passed\n"),
        (
            "/readyz?verbose&exclude=store&exclude=x&exclude=y",
            "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]controllers ok\n[+]store excluded: ok\n[+]informer-sync ok\n[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"x\", \"y\"\nreadyz check passed\n",
        ),
    ] {
        let answer = get(path);
        assert_eq!((answer.status, answer.text.as_str()), (200, expected), "{path}");
    }
    let absent = get("/readyz/nonesuch");
    assert_eq!((absent.status, absent.text.as_str()), (404, "404 page not found\n"));
    let paths = rig.get("/")["paths"].to_string();
    for path in ["/livez/controllers", "/readyz/shutdown", "/metrics"] {
        assert!(paths.contains(&format!("\"{path}\"")), "{paths}");
    }
}

#[test]
fn whoever_is_asked_to_end_is_not_ready_but_alive() {
    let rig = Rig::new();
    rig.plane.begin_end();
    let answer = rig.call("GET", "/readyz", &Value::Null);
    assert_eq!(answer.status, 500);
    assert!(
        answer.text.ends_with("[-]shutdown failed: reason withheld\nreadyz check failed\n"),
        "{}",
        answer.text
    );
    assert_eq!(rig.call("GET", "/livez", &Value::Null).text, "ok");
    let why = rig.call("GET", "/readyz/shutdown", &Value::Null);
    assert_eq!((why.status, why.text.as_str()), (500, "internal server error: process is shutting down\n"));
    assert_eq!(rig.call("GET", "/readyz?exclude=shutdown", &Value::Null).status, 200);
}

#[test]
fn controllers_that_stand_still_are_a_reason_to_be_restarted() {
    let rig = Rig::new();
    // Time passes and nobody calls the controllers.
    rig.advance(Duration::from_secs(61));
    let ask = || {
        let request = Request::get("/livez").body(Body::empty()).unwrap();
        let answer = rig.plane.router().oneshot(request).now_or_never().unwrap().unwrap();
        let status = answer.status().as_u16();
        (status, answer.into_body().collect().now_or_never().unwrap().unwrap().to_bytes())
    };
    let (status, text) = ask();
    assert_eq!(status, 500);
    assert!(String::from_utf8_lossy(&text).contains("[-]controllers failed: reason withheld\n"), "{text:?}");
    rig.plane.reconcile().now_or_never().unwrap();
    assert_eq!(ask().0, 200);
}

/// A store whose medium can be made to fail.
struct Failing {
    store: MemoryStore,
    failing: AtomicBool,
    panicking: AtomicBool,
}

impl Failing {
    fn refusal(&self) -> Option<StoreError> {
        let failing = self.failing.load(Ordering::SeqCst);
        failing.then(|| StoreError::Unavailable("No space left on device".into()))
    }
}

impl Store for Failing {
    fn get<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Entry>> {
        assert!(!self.panicking.load(Ordering::SeqCst), "a mistake in the server");
        self.store.get(key)
    }

    fn list<'a>(&'a self, scope: Scope<'a>, at: Option<u64>) -> Answer<'a, Listing> {
        self.store.list(scope, at)
    }

    fn put(&self, key: Key, object: Value, expect: Expect) -> Answer<'_, Entry> {
        match self.refusal() {
            Some(refusal) => Box::pin(std::future::ready(Err(refusal))),
            None => self.store.put(key, object, expect),
        }
    }

    fn delete(&self, key: Key, revision: u64) -> Answer<'_, Entry> {
        match self.refusal() {
            Some(refusal) => Box::pin(std::future::ready(Err(refusal))),
            None => self.store.delete(key, revision),
        }
    }

    fn revision(&self) -> u64 {
        self.store.revision()
    }

    fn catch_up(&self) -> Answer<'_, u64> {
        self.store.catch_up()
    }

    fn turn(&self, topic: &'static str) -> Turn {
        self.store.turn(topic)
    }

    fn put_in_turn(&self, key: Key, object: Value, expect: Expect, _: Turn) -> Answer<'_, Entry> {
        self.put(key, object, expect)
    }

    fn changes(&self, after: u64) -> Result<Vec<Arc<Change>>, StoreError> {
        self.store.changes(after)
    }

    fn signal(&self) -> &Arc<Signal> {
        self.store.signal()
    }

    fn latency(&self) -> Duration {
        self.store.latency()
    }

    fn figures(&self) -> Figures {
        self.store.figures()
    }
}

#[test]
fn a_full_disk_is_not_ready_alive_and_over_by_itself_once_there_is_room() {
    let rig = Rig::new();
    let store = Arc::new(Failing {
        store: MemoryStore::new(),
        failing: AtomicBool::new(false),
        panicking: AtomicBool::new(false),
    });
    let config = Config { plain_http: true, no_auth: true, ..Config::default() };
    let plane = ControlPlane::open(config, Arc::clone(&store) as Arc<dyn Store>, rig.clock.clone(), 1);
    let plane = plane.now_or_never().unwrap().unwrap();
    let call = |method: &str, path: &str, body: Body| {
        let request = Request::builder().method(method).uri(path).body(body).unwrap();
        let answer = plane.router().oneshot(request).now_or_never().unwrap().unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    let namespace = || Body::from(json!({"metadata": {"name": "n"}}).to_string());
    assert_eq!(call("GET", "/readyz", Body::empty()).0, 200);
    store.failing.store(true, Ordering::SeqCst);
    assert!(call("POST", "/api/v1/namespaces", namespace()).0 >= 500);
    let (status, text) = call("GET", "/readyz", Body::empty());
    assert_eq!(status, 500);
    assert!(text.contains("[-]store failed: reason withheld\n") && !text.contains("No space"), "{text}");
    assert!(call("GET", "/readyz/store", Body::empty()).1.contains("No space left on device"));
    assert_eq!(call("GET", "/livez", Body::empty()).0, 200);
    assert_eq!(call("GET", "/api/v1/namespaces", Body::empty()).0, 200);
    plane.reconcile().now_or_never().unwrap();
    assert_eq!(call("GET", "/readyz", Body::empty()).0, 500);
    let (_, text) = call("GET", "/metrics", Body::empty());
    assert!(sample(&text, "rigor_store_write_failures_total", &[]) > 1.5, "{text}");
    store.failing.store(false, Ordering::SeqCst);
    plane.reconcile().now_or_never().unwrap();
    assert_eq!(call("GET", "/readyz", Body::empty()), (200, "ok".into()));
    assert_eq!(call("POST", "/api/v1/namespaces", namespace()).0, 201);
}

#[test]
fn a_panic_is_an_answer_with_500_and_a_count_and_nothing_else() {
    let rig = Rig::new();
    let store = Failing { store: MemoryStore::new(), failing: false.into(), panicking: false.into() };
    let store = Arc::new(store);
    let config = Config { plain_http: true, no_auth: true, ..Config::default() };
    let plane = ControlPlane::open(config, Arc::clone(&store) as Arc<dyn Store>, rig.clock.clone(), 1);
    let plane = plane.now_or_never().unwrap().unwrap();
    let get = |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = plane.router().oneshot(request).now_or_never().unwrap().unwrap();
        let (head, body) = answer.into_parts();
        let body = body.collect().now_or_never().unwrap().unwrap().to_bytes();
        (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
    };
    store.panicking.store(true, Ordering::SeqCst);
    let (status, headers, text) = get("/api/v1/namespaces/default");
    assert_eq!(status, 500);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&answer["kind"], &answer["reason"]), (&json!("Status"), &json!("InternalError")));
    assert!(headers.contains_key("audit-id") && !text.contains("a mistake"), "{text}");
    store.panicking.store(false, Ordering::SeqCst);
    assert_eq!(get("/api/v1/namespaces/default").0, 200);
    let (_, _, text) = get("/metrics");
    assert!((sample(&text, "rigor_request_panics_total", &[]) - 1.0).abs() < 0.5, "{text}");
    let inflight = sample(&text, "apiserver_current_inflight_requests", &[r#"request_kind="readOnly""#]);
    assert!((inflight - 1.0).abs() < 0.5, "{text}");
    let failed = sample(&text, "apiserver_request_total", &[r#"resource="namespaces""#, r#"code="500""#]);
    assert!((failed - 1.0).abs() < 0.5, "{text}");
}
