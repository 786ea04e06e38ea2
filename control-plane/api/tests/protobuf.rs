//! What `kubectl create` of version 1.32 sends in protobuf, read and prepared as if it had sent JSON.

use control_plane_api::options::FieldValidation;
use control_plane_api::strategy::{self, Context, Identity};
use control_plane_api::{Dialect, decode, kinds, protobuf};
use serde_json::Value;

const BODIES: &str = include_str!("data/protobuf.txt");

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The JSON of the body recorded for a resource, decoded strictly for its kind.
fn decoded(resource: &str) -> Value {
    let hex = BODIES.lines().find_map(|line| line.strip_prefix(resource)?.strip_prefix(' ')).unwrap();
    let kind = kinds::all().iter().find(|kind| kind.plural == resource).unwrap();
    let json = protobuf::to_json(&bytes(hex)).unwrap();
    decode::decode(kind.into(), &json, FieldValidation::Strict, Dialect::Kubernetes).unwrap().object
}

#[test]
fn every_recorded_body_is_taken() {
    let mut seen = 0;
    for line in BODIES.lines().filter(|line| !line.starts_with('#')) {
        let resource = line.split(' ').next().unwrap();
        let object = decoded(resource);
        let kind = kinds::all().iter().find(|kind| kind.plural == resource).unwrap();
        if kind.is_stored() {
            let now = "2026-11-29T12:00:00Z".parse().unwrap();
            let context = Context { now, dialect: Dialect::Kubernetes, eviction_seconds: Some(300) };
            let identity = Identity { uid: "u", name_suffix: "abcde", cluster_ip: None, classes: &[] };
            let namespace = kind.namespaced.then_some("default");
            let made = strategy::prepare_create(kind, namespace, object, &identity, &context).unwrap();
            assert_eq!(made["metadata"]["uid"], "u", "{resource}");
        }
        seen += 1;
    }
    assert_eq!(seen, 9);
}

#[test]
fn values_arrive() {
    let cases = [
        ("serviceaccounts", "/metadata/name", "x"),
        ("configmaps", "/data/a", "1"),
        ("secrets", "/data/x", "eQ=="),
        ("services", "/spec/ports/0/name", "80-8080"),
        ("services", "/spec/selector/app", "web"),
        ("namespaces", "/metadata/name", "t"),
        ("selfsubjectaccessreviews", "/spec/resourceAttributes/verb", "create"),
        ("deployments", "/spec/template/spec/containers/0/image", "nginx"),
        ("deployments", "/spec/selector/matchLabels/app", "dd"),
        ("jobs", "/spec/template/spec/containers/0/command/1", "hi"),
        ("jobs", "/spec/template/spec/restartPolicy", "Never"),
    ];
    for (resource, pointer, expected) in cases {
        let object = decoded(resource);
        assert_eq!(object.pointer(pointer).and_then(Value::as_str), Some(expected), "{resource} {pointer}");
    }
    assert_eq!(decoded("deployments")["spec"]["replicas"], 2);
    assert_eq!(decoded("services").pointer("/spec/ports/0/targetPort"), Some(&Value::from(8080)));
}
