//! Field and label selectors in all their forms, on lists.

use serde_json::{Value, json};

use super::{escape, get, names};
use crate::rig::{PODS, Rig, foreign};

/// What a selector selects of a collection; the message where it is refused.
fn select(rig: &Rig, url: &str, parameter: &str, selector: &str) -> Result<Vec<String>, (u16, String)> {
    let answer = get(rig, &format!("{url}?{parameter}={}", escape(selector)));
    match answer.status {
        200 => Ok(names(&answer.body)),
        code => Err((code, answer.refused(code))),
    }
}

fn pods() -> Rig {
    let rig = Rig::new();
    let make = |name: &str, labels: Value, spec: &[(&str, &str)]| {
        let mut pod = foreign(name);
        pod["metadata"]["labels"] = labels;
        for (field, value) in spec {
            pod["spec"][*field] = json!(value);
        }
        rig.create(PODS, &pod);
    };
    make("a", json!({"app": "web", "tier": "front", "n": "5"}), &[("nodeName", "n1")]);
    make("b", json!({"app": "web", "n": "15"}), &[("restartPolicy", "Never")]);
    make("c", json!({"app": "db", "tier": ""}), &[("nodeName", "n2"), ("schedulerName", "mine")]);
    make("d", Value::Null, &[]);
    let running =
        json!({"status": {"phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]}});
    rig.patch(&format!("{PODS}/a/status"), &running);
    rig
}

#[test]
fn pods_by_field() {
    let rig = pods();
    let check = |selector: &str, expected: &[&str]| {
        assert_eq!(select(&rig, PODS, "fieldSelector", selector).unwrap(), expected, "{selector}");
    };
    check("", &["a", "b", "c", "d"]);
    check("metadata.name=a", &["a"]);
    check("metadata.name==a", &["a"]);
    check("metadata.name!=a", &["b", "c", "d"]);
    check("metadata.name=", &[]);
    check("metadata.namespace=default", &["a", "b", "c", "d"]);
    check("metadata.namespace!=default", &[]);
    check("spec.nodeName=n1", &["a"]);
    check("spec.nodeName=", &["b", "d"]);
    check("spec.nodeName!=", &["a", "c"]);
    check("spec.nodeName!=n1,spec.nodeName!=n2", &["b", "d"]);
    check("spec.nodeName=n1,spec.nodeName=n2", &[]);
    check("spec.schedulerName=mine", &["c"]);
    check("spec.schedulerName!=mine,spec.nodeName=n1", &["a"]);
    check("spec.restartPolicy=Never", &["b"]);
    check("spec.hostNetwork=true", &[]);
    check("spec.hostNetwork=false", &["a", "b", "c", "d"]);
    check("spec.serviceAccountName=default", &["a", "b", "c", "d"]);
    check("status.phase=Running", &["a"]);
    check("status.phase!=Running,spec.nodeName!=", &["c"]);
    check("status.podIP=10.0.0.9", &["a"]);
    check("status.nominatedNodeName=", &["a", "b", "c", "d"]);
    check(",metadata.name=a,", &["a"]);
}

#[test]
fn fields_that_a_kind_has_not_are_refused() {
    let rig = Rig::new();
    let check = |url: &str, selector: &str, message: &str| {
        let refused = select(&rig, url, "fieldSelector", selector).unwrap_err();
        assert_eq!(refused, (400, message.to_owned()), "{url} {selector}");
    };
    let own = "is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    check(PODS, "spec.foo=x", "field label not supported: spec.foo");
    check(PODS, "metadata.name=a,spec.foo!=x", "field label not supported: spec.foo");
    check(PODS, "involvedObject.name=x", "field label not supported: involvedObject.name");
    check("/api/v1/nodes", "spec.podCIDR=x", "field label not supported: spec.podCIDR");
    check("/api/v1/nodes", "metadata.namespace=x", "field label not supported: metadata.namespace");
    check("/api/v1/namespaces", "name=x", "field label not supported: name");
    check("/api/v1/secrets", "data=x", "field label not supported: data");
    check("/api/v1/events", "regarding.name=x", "field label not supported: regarding.name");
    check(
        "/apis/events.k8s.io/v1/events",
        "involvedObject.name=x",
        "field label not supported: involvedObject.name",
    );
    check(
        "/apis/batch/v1/jobs",
        "spec.suspend=true",
        "field label \"spec.suspend\" not supported for batchv1.Job",
    );
    check("/api/v1/configmaps", "data.k=v", &format!("\"data.k\" {own}"));
    check("/apis/apps/v1/deployments", "spec.replicas=1", &format!("\"spec.replicas\" {own}"));
    check(PODS, "bad", "invalid selector: 'bad'; can't understand 'bad'");
    check(PODS, "metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b");
}

#[test]
fn other_kinds_by_field() {
    let rig = Rig::new();
    let check = |url: &str, selector: &str, expected: &[&str]| {
        assert_eq!(select(&rig, url, "fieldSelector", selector).unwrap(), expected, "{url} {selector}");
    };
    rig.create("/api/v1/nodes", &json!({"metadata": {"name": "up"}}));
    rig.create("/api/v1/nodes", &json!({"metadata": {"name": "down"}, "spec": {"unschedulable": true}}));
    check("/api/v1/nodes", "spec.unschedulable=true", &["down"]);
    check("/api/v1/nodes", "spec.unschedulable=false", &["up"]);
    check("/api/v1/nodes", "metadata.name!=up", &["down"]);
    check("/api/v1/namespaces", "status.phase=Active,metadata.name=default", &["default"]);
    check("/api/v1/namespaces", "status.phase=Terminating", &[]);
    let secrets = "/api/v1/namespaces/default/secrets";
    rig.create(secrets, &json!({"metadata": {"name": "s"}, "type": "example.com/kind"}));
    rig.create(secrets, &json!({"metadata": {"name": "t"}}));
    check(secrets, "type=example.com/kind", &["s"]);
    check(secrets, "type=Opaque", &["t"]);
}

#[test]
fn events_by_field_under_both_names() {
    let rig = Rig::new();
    let url = "/api/v1/namespaces/default/events";
    let make = |name: &str, about: &str, reason: &str, kind: &str| {
        let event = json!({
            "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": about, "uid": format!("uid-{about}")},
            "reason": reason, "type": kind, "message": "m",
            "source": {"component": "me"},
            "reportingComponent": "me",
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1,
        });
        rig.create(url, &event);
    };
    make("e1", "p", "Started", "Normal");
    make("e2", "p", "Failed", "Warning");
    make("e3", "q", "Failed", "Warning");
    let newer = "/apis/events.k8s.io/v1/namespaces/default/events";
    let check = |selector: &str, renamed: &str, expected: &[&str]| {
        assert_eq!(select(&rig, url, "fieldSelector", selector).unwrap(), expected, "{selector}");
        assert_eq!(select(&rig, newer, "fieldSelector", renamed).unwrap(), expected, "{renamed}");
    };
    check("involvedObject.name=p", "regarding.name=p", &["e1", "e2"]);
    check("involvedObject.name!=p", "regarding.name!=p", &["e3"]);
    check("involvedObject.kind=Pod,reason=Failed", "regarding.kind=Pod,reason=Failed", &["e2", "e3"]);
    check("involvedObject.uid=uid-q", "regarding.uid=uid-q", &["e3"]);
    check(
        "involvedObject.namespace=default,type!=Warning",
        "regarding.namespace=default,type!=Warning",
        &["e1"],
    );
    check("reason!=Failed", "reason!=Failed", &["e1"]);
    check("reportingComponent=me", "reportingController=me", &["e1", "e2", "e3"]);
    check("involvedObject.fieldPath=", "regarding.fieldPath=", &["e1", "e2", "e3"]);
    assert_eq!(select(&rig, url, "fieldSelector", "source=me").unwrap().len(), 3);
}

#[test]
fn pods_by_label() {
    let rig = pods();
    let check = |selector: &str, expected: &[&str]| {
        assert_eq!(select(&rig, PODS, "labelSelector", selector).unwrap(), expected, "{selector}");
    };
    check("", &["a", "b", "c", "d"]);
    check("app=web", &["a", "b"]);
    check("app==web", &["a", "b"]);
    check("app!=web", &["c", "d"]);
    check("app in (web)", &["a", "b"]);
    check("app in (web, db)", &["a", "b", "c"]);
    check("app notin (web)", &["c", "d"]);
    check("app notin (web,db)", &["d"]);
    check("app", &["a", "b", "c"]);
    check("!app", &["d"]);
    check("tier=", &["c"]);
    check("tier", &["a", "c"]);
    check("app=web,tier", &["a"]);
    check("app=web,!tier", &["b"]);
    check("app in (web,db),tier notin (front)", &["b", "c"]);
    check("n>5", &["b"]);
    check("n<15", &["a"]);
    check("n>4,n<16", &["a", "b"]);
    check("app in ()", &[]);
    check("tier in (,front)", &["a", "c"]);
    check(" app = web , tier ", &["a"]);
    check("app=web,app=db", &[]);
}

#[test]
fn labels_that_cannot_be_selected_by_are_refused() {
    let rig = Rig::new();
    let check = |selector: &str, words: &str| {
        let (code, message) = select(&rig, PODS, "labelSelector", selector).unwrap_err();
        assert_eq!(code, 400, "{selector}");
        assert!(message.contains(words), "{selector}: {message}");
    };
    check("app in web", "unable to parse requirement: found 'web' expected: '('");
    check("=a", "found '=', expected: !, identifier, or 'end of string'");
    check("x y=1", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt");
    check("a=b c", "found 'c', expected: ',' or 'end of string'");
    check("app>x", "for 'Gt', 'Lt' operators, the value must be an integer");
    check("bad key!", "expected");
    check("-a=b", "name part must consist of alphanumeric characters");
    check("a=-b", "a valid label must be an empty string or consist of alphanumeric characters");
    check("app in (a", "expected: ',' or ')'");
}
