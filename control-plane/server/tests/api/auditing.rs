//! The audit log over the router, kept in memory: what stands in it, and what never does.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use control_plane::config::AuditLevel;
use control_plane::observe::Origin;
use control_plane::observe::audit::AuditMemory;
use futures_util::FutureExt;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::rig::{ADMIN, PODS, Rig, foreign};

fn audited(level: AuditLevel) -> (Rig, Arc<AuditMemory>) {
    let rig = Rig::new();
    let sink = Arc::new(AuditMemory::default());
    rig.plane.audit_to(level, sink.clone());
    (rig, sink)
}

fn events(sink: &AuditMemory) -> Vec<Value> {
    sink.take().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_event_says_who_asked_what_of_whom_and_how_it_ended() {
    let (rig, sink) = audited(AuditLevel::Metadata);
    rig.advance(Duration::from_millis(1_500));
    let request = Request::get(format!("{PODS}?limit=5&labelSelector=a%3Db"))
        .header("user-agent", "kubectl/v1.32")
        .header("audit-id", "mine")
        .extension(Origin(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7))));
    rig.ask(ADMIN, request, Body::empty());
    let expected = json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "mine",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/default/pods?limit=5&labelSelector=a%3Db",
        "verb": "list",
        "user": {"username": "admin", "uid": "admin-uid", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["10.0.0.7"],
        "userAgent": "kubectl/v1.32",
        "objectRef": {"resource": "pods", "namespace": "default", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2026-01-01T00:00:01.750000Z",
        "stageTimestamp": "2026-01-01T00:00:01.750000Z",
    });
    let mut found = events(&sink);
    assert_eq!(found.len(), 1, "{found:#?}");
    let annotations = found[0].as_object_mut().unwrap().remove("annotations").unwrap();
    assert_eq!(annotations["authorization.k8s.io/decision"], "allow");
    assert!(annotations["authorization.k8s.io/reason"].is_string());
    assert_eq!(found, [expected]);
}

#[test]
fn the_audit_id_of_the_answer_is_the_events() {
    let (rig, sink) = audited(AuditLevel::Metadata);
    let answer = rig.call("GET", "/version", &Value::Null);
    let found = events(&sink);
    assert_eq!(found[0]["auditID"].as_str(), answer.headers["audit-id"].to_str().ok());
    assert_eq!((&found[0]["verb"], &found[0]["objectRef"]), (&json!("get"), &Value::Null));
}

#[test]
fn refusals_are_recorded_with_their_reason_and_unknown_users_without_a_name() {
    let (rig, sink) = audited(AuditLevel::Metadata);
    rig.call_as("nobody-token", "DELETE", &format!("{PODS}/p"), &Value::Null).refused(403);
    rig.call_as("made-up", "GET", PODS, &Value::Null).refused(401);
    rig.call_as("", "GET", PODS, &Value::Null).refused(403);
    rig.call("GET", &format!("{PODS}/p"), &Value::Null).refused(404);
    rig.call("GET", "/apis/nope", &Value::Null);
    let found = events(&sink);
    let codes: Vec<_> = found.iter().map(|event| event["responseStatus"]["code"].clone()).collect();
    assert_eq!(codes, [403, 401, 403, 404, 404]);
    assert_eq!(found[0]["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(found[0]["objectRef"]["name"], "p");
    assert_eq!(found[0]["responseStatus"]["reason"], "Forbidden");
    assert_eq!((&found[1]["verb"], &found[1]["objectRef"]["resource"]), (&json!("list"), &json!("pods")));
    assert_eq!(found[0]["user"]["username"], "nobody");
    assert_eq!(found[1]["user"], json!({}));
    assert_eq!(found[1].get("annotations"), None);
    assert_eq!(found[2]["user"]["username"], "system:anonymous");
    let status = &found[3]["responseStatus"];
    assert_eq!((&status["reason"], &status["status"]), (&json!("NotFound"), &json!("Failure")));
    assert_eq!(status["message"], "pods \"p\" not found");
}

#[test]
fn bodies_stand_in_the_event_as_the_level_says() {
    for level in [AuditLevel::Metadata, AuditLevel::Request, AuditLevel::RequestResponse] {
        let (rig, sink) = audited(level);
        let yaml = "metadata: {name: y}\nspec: {schedulerName: x, containers: [{name: c, image: i}]}\n";
        let request = Request::post(PODS).header("content-type", "application/yaml");
        assert_eq!(rig.ask(ADMIN, request, Body::from(yaml)).status, 201);
        rig.call("PATCH", &format!("{PODS}/y"), &json!({"metadata": {"labels": {"a": "b"}}})).expect(200);
        let found = events(&sink);
        assert_eq!(found.len(), 2);
        assert_eq!((&found[0]["verb"], &found[1]["verb"]), (&json!("create"), &json!("patch")));
        assert_eq!(found[0]["objectRef"]["name"], "y", "{level:?}");
        let requested = level >= AuditLevel::Request;
        assert_eq!(found[0].pointer("/requestObject/spec/schedulerName").is_some(), requested, "{level:?}");
        assert_eq!(found[1].pointer("/requestObject/metadata/labels/a").is_some(), requested, "{level:?}");
        let answered = level >= AuditLevel::RequestResponse;
        assert_eq!(found[0].pointer("/responseObject/metadata/uid").is_some(), answered, "{level:?}");
    }
}

#[test]
fn a_watch_has_an_event_when_it_starts_and_one_when_it_ends() {
    let (rig, sink) = audited(AuditLevel::RequestResponse);
    let response = rig.send(ADMIN, Request::get(format!("{PODS}?watch=1&timeoutSeconds=30")), Body::empty());
    let started = events(&sink);
    assert_eq!(started.len(), 1);
    assert_eq!((&started[0]["stage"], &started[0]["verb"]), (&json!("ResponseStarted"), &json!("watch")));
    rig.pass(Duration::from_secs(31));
    drop(response.into_body().collect().now_or_never().expect("the watch has ended"));
    let ended = events(&sink);
    assert_eq!(ended.len(), 1, "{ended:#?}");
    assert_eq!(
        (&ended[0]["stage"], &ended[0]["auditID"]),
        (&json!("ResponseComplete"), &started[0]["auditID"])
    );
    assert_eq!(ended[0]["requestReceivedTimestamp"], started[0]["requestReceivedTimestamp"]);
    assert_ne!(ended[0]["stageTimestamp"], started[0]["stageTimestamp"]);
}

#[test]
fn secrets_and_tokens_are_never_recorded() {
    const HIDDEN: &str = "aHVzaC1odXNo";
    let (rig, sink) = audited(AuditLevel::RequestResponse);
    let secrets = "/api/v1/namespaces/default/secrets";
    rig.create(secrets, &json!({"metadata": {"name": "s"}, "data": {"k": HIDDEN}}));
    rig.create(secrets, &json!({"metadata": {"name": "t"}, "stringData": {"k": HIDDEN}}));
    rig.get(&format!("{secrets}/s"));
    rig.get(secrets);
    rig.patch(&format!("{secrets}/s"), &json!({"data": {"l": HIDDEN}}));
    // Wrong in ways whose refusal could quote it.
    for bad in [
        json!({"metadata": {"name": "u"}, "data": {HIDDEN: {}}}),
        json!({"metadata": {"name": "u"}, "data": {"k": format!("!{HIDDEN}")}}),
        json!({"metadata": {"name": "u"}, "data": HIDDEN}),
        json!({"metadata": {"name": "u"}, "type": format!("kubernetes.io/{HIDDEN}"), "data": {"k": HIDDEN}}),
        json!({"kind": HIDDEN, "metadata": {"name": "u"}}),
    ] {
        rig.call("POST", secrets, &bad);
        rig.call("PUT", &format!("{secrets}/s"), &bad);
    }
    rig.call(
        "POST",
        &format!("{secrets}?fieldValidation=Strict"),
        &json!({"metadata": {"name": "v"}, HIDDEN: 1}),
    );
    let watched = rig.send(ADMIN, Request::get(format!("{secrets}?watch=1")), Body::empty());
    drop(watched);
    rig.call("DELETE", &format!("{secrets}/s"), &Value::Null).expect(200);
    // Refused before anyone knows for sure what they are about.
    rig.call_as("made-up", "POST", secrets, &json!({"data": {"k": HIDDEN}})).refused(401);
    rig.ask(
        ADMIN,
        Request::builder().method("BREW").uri(secrets),
        Body::from(format!("{{\"k\":\"{HIDDEN}\"}}")),
    );
    rig.call("POST", "/api/v1/namespaces/default/secretz", &json!({"data": {"k": HIDDEN}})).refused(404);
    let lines = sink.take();
    assert!(lines.len() > 16, "{}", lines.len());
    for line in &lines {
        assert!(!line.contains(HIDDEN) && !line.contains("hush-hush"), "{line}");
        assert!(!line.contains(ADMIN), "{line}");
        assert!(line.contains(r#""level":"Metadata""#), "{line}");
    }
}

#[test]
fn long_bodies_are_left_out_and_the_event_says_so() {
    let (rig, sink) = audited(AuditLevel::Request);
    let map = json!({"metadata": {"name": "m"}, "data": {"k": "x".repeat(200_000)}});
    rig.create("/api/v1/namespaces/default/configmaps", &map);
    let lines = sink.take();
    assert!(lines[0].len() < 10_000);
    assert!(lines[0].contains(r#""audit.k8s.io/truncated":"true""#), "{}", lines[0]);
    assert!(lines[0].contains(r#""name":"m""#), "{}", lines[0]);
}

#[test]
fn nothing_is_recorded_at_level_none_and_the_answers_are_the_same() {
    let (rig, sink) = audited(AuditLevel::None);
    rig.create(PODS, &foreign("p"));
    assert_eq!(sink.take(), Vec::<String>::new());
    let (other, recorded) = audited(AuditLevel::RequestResponse);
    other.create(PODS, &foreign("p"));
    assert_eq!(rig.pod("p"), other.pod("p"));
    assert_eq!(recorded.take().len(), 2);
}
