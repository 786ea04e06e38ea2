//! The field numbers and wire types of the schema, judged by the prost types of `k8s-pb`.
//!
//! For each kind an object is made with every field of its type set, each to a value of its own. Written as protobuf it
//! must be understood by `k8s-pb` without a field too many, `k8s-pb` must know each value by the name that JSON gives
//! it, and what `k8s-pb` writes must be read here as the object that was made.

use std::collections::BTreeMap;

use prost::Message;
use serde_json::{Map, Value, json};

use super::*;
use crate::options::FieldValidation;
use crate::{Dialect, Expected, decode};

/// Numbers from here on are values; smaller ones may be counts and flags.
const FIRST: i64 = 100_000;

/// What is set so far: the field that each value belongs to.
#[derive(Default)]
struct Filler {
    fields: BTreeMap<i64, &'static str>,
    /// The types that are being filled; one inside itself is left out.
    within: Vec<&'static str>,
}

type Wired = (Vec<u8>, u8);

impl Filler {
    fn next(&mut self, field: &'static str) -> i64 {
        let id = FIRST + i64::try_from(self.fields.len()).unwrap();
        self.fields.insert(id, field);
        id
    }

    /// A value for a field, as JSON and as the payload and wire type of protobuf.
    fn value(&mut self, field: &'static str, shape: &Shape) -> (Value, Wired) {
        let text = |id: i64| (json!(format!("v{id}")), (format!("v{id}").into_bytes(), 2));
        match shape {
            Shape::Text => text(self.next(field)),
            Shape::Bytes => {
                let text = format!("v{}", self.next(field));
                (json!(typed::base64(text.as_bytes())), (text.into_bytes(), 2))
            }
            Shape::Bool => (json!(true), (varint(1), 0)),
            Shape::Int32 | Shape::Int64 => {
                let id = self.next(field);
                (json!(id), (varint(id), 0))
            }
            Shape::Double => (json!(0.5), (0.5_f64.to_le_bytes().to_vec(), 1)),
            Shape::Time => {
                let message = [field_of(1, &(varint(1_000_000_000), 0)), field_of(2, &(varint(0), 0))];
                (json!("2001-09-09T01:46:40Z"), (message.concat(), 2))
            }
            Shape::MicroTime => {
                let message = [field_of(1, &(varint(1_000_000_000), 0)), field_of(2, &(varint(5000), 0))];
                (json!("2001-09-09T01:46:40.000005Z"), (message.concat(), 2))
            }
            Shape::Quantity => {
                let id = self.next(field).to_string();
                (json!(id), (field_of(1, &(id.into_bytes(), 2)), 2))
            }
            Shape::IntOrString => {
                let id = self.next(field);
                let message = [field_of(1, &(varint(0), 0)), field_of(2, &(varint(id), 0))].concat();
                (json!(id), ([message, field_of(3, &(Vec::new(), 2))].concat(), 2))
            }
            Shape::Raw => {
                let raw = json!({"a": true});
                (raw.clone(), (field_of(1, &(raw.to_string().into_bytes(), 2)), 2))
            }
            Shape::Fields => unreachable!("managed fields are left out"),
            // A list inside a map is a message whose field 1 repeats.
            Shape::List(of) => {
                let (value, wired) = self.value(field, of);
                (json!([value]), (field_of(1, &wired), 2))
            }
            Shape::Map(of) => {
                let (value, wired) = self.value(field, of);
                let entry = [field_of(1, &(b"k".to_vec(), 2)), field_of(2, &wired)].concat();
                (json!({"k": value}), (entry, 2))
            }
            Shape::Object(name) => {
                let (value, message) = self.object(schema::find(name).unwrap());
                (value, (message, 2))
            }
        }
    }

    fn object(&mut self, entry: &'static Type) -> (Value, Vec<u8>) {
        self.within.push(entry.name);
        let mut object = Map::new();
        let mut parts: Vec<(Vec<u32>, Vec<u8>)> = Vec::new();
        for field in entry.fields.values() {
            let mut inner = &field.shape;
            while let Shape::List(of) | Shape::Map(of) = inner {
                inner = of;
            }
            let again = matches!(inner, Shape::Object(name) if self.within.contains(name));
            if field.numbers.is_empty() || field.name == "managedFields" || again {
                continue;
            }
            let number = *field.numbers.last().unwrap();
            let (value, wired) = match &field.shape {
                Shape::List(of) => {
                    let (value, wired) = self.value(field.name, of);
                    (json!([value]), wired)
                }
                shape => self.value(field.name, shape),
            };
            object.insert(field.name.to_owned(), value);
            parts.push((field.numbers.clone(), field_of(number, &wired)));
        }
        self.within.pop();
        (Value::Object(object), nest(&parts, 0))
    }
}

/// Joins fields to a message, with those of inlined messages in messages of their own.
fn nest(parts: &[(Vec<u32>, Vec<u8>)], depth: usize) -> Vec<u8> {
    let mut numbers: Vec<u32> = parts.iter().map(|(path, _)| path[depth]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut message = Vec::new();
    for number in numbers {
        let here: Vec<_> = parts.iter().filter(|(path, _)| path[depth] == number).cloned().collect();
        match here.as_slice() {
            [(path, field)] if path.len() == depth + 1 => message.extend(field),
            inlined => message.extend(field_of(number, &(nest(inlined, depth + 1), 2))),
        }
    }
    message
}

fn varint(value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(u64::try_from(value).unwrap(), &mut bytes);
    bytes
}

fn field_of(number: u32, (payload, wire): &Wired) -> Vec<u8> {
    let length = if *wire == 2 { varint(i64::try_from(payload.len()).unwrap()) } else { Vec::new() };
    [varint(i64::from(number << 3 | u32::from(*wire))), length, payload.clone()].concat()
}

/// The name under which prost's pretty debug text shows each value.
fn names(debug: &str) -> BTreeMap<i64, Vec<String>> {
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut names = BTreeMap::new();
    for line in debug.lines() {
        let indent = line.len() - line.trim_start().len();
        above.retain(|(deep, _)| *deep < indent);
        let (name, value) = match line.trim_start().split_once(": ") {
            Some((name, value)) if !name.starts_with('"') => (Some(name), value),
            Some((_, value)) => (None, value),
            None => (None, line.trim_start()),
        };
        above.extend(name.map(|name| (indent, plain(name))));
        let value = value.trim_end_matches(',').trim_matches('"').trim_start_matches('v');
        if let Ok(id) = value.parse::<i64>() {
            names.insert(id, above.iter().map(|(_, name)| name.clone()).collect());
        }
    }
    names
}

fn plain(name: &str) -> String {
    name.trim_start_matches("r#").replace('_', "").to_lowercase()
}

/// Parts of values that have a name of their own in protobuf.
const PARTS: &[&str] = &["string", "intval", "items"];

fn judge<T: Message + Default + std::fmt::Debug>(api_version: &str, kind: &str) -> usize {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let entry = match kind {
        "DeleteOptions" => schema::find("meta.v1.DeleteOptions"),
        kind => schema::find_kind(group, version, kind),
    };
    let mut filler = Filler::default();
    let (mut object, message) = filler.object(entry.unwrap_or_else(|| panic!("{kind}")));
    let understood = T::decode(message.as_slice()).unwrap_or_else(|why| panic!("{kind}: {why}"));
    let written = understood.encode_to_vec();
    assert_eq!(written.len(), message.len(), "{kind}: k8s-pb does not know all of {understood:#?}");

    let known = names(&format!("{understood:#?}"));
    for (id, field) in &filler.fields {
        let Some(above) = known.get(id) else {
            // Bytes are shown as numbers.
            assert!(
                matches!(*field, "data" | "binaryData" | "caBundle" | "request" | "certificate"),
                "{kind}: {field}"
            );
            continue;
        };
        let name = above.iter().rev().find(|name| !PARTS.contains(&name.as_str())).unwrap();
        assert_eq!(*name, plain(field), "{kind}: {above:?}");
    }

    let of = |number: u32, bytes: &[u8]| field_of(number, &(bytes.to_vec(), 2));
    let type_meta = [of(1, api_version.as_bytes()), of(2, kind.as_bytes())].concat();
    let body = [MAGIC.to_vec(), of(1, &type_meta), of(2, &written)].concat();
    let read = to_json(&body).unwrap();
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    assert_eq!(serde_json::from_slice::<Value>(&read).unwrap(), object, "{kind}");
    if kind != "DeleteOptions" {
        let (group, version, kind) = entry.unwrap().gvks[0];
        let expected = Expected { group, version, kind };
        let typed = decode::decode(expected, &read, FieldValidation::Strict, Dialect::Kubernetes).unwrap();
        assert_eq!(typed.object["metadata"]["name"], object["metadata"]["name"], "{kind}");
    }
    filler.fields.len()
}

macro_rules! judge {
    ($($version:literal $($kind:ident)*, $home:path;)*) => {{
        let mut counts = Vec::new();
        $({
            use $home as home;
            $(counts.push((stringify!($kind), judge::<home::$kind>($version, stringify!($kind))));)*
        })*
        counts
    }};
}

#[test]
fn k8s_pb_agrees_about_every_field() {
    let counts = judge! {
        "v1" Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod
            PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount, k8s_pb::api::core::v1;
        "v1" DeleteOptions, k8s_pb::apimachinery::pkg::apis::meta::v1;
        "admissionregistration.k8s.io/v1" MutatingWebhookConfiguration ValidatingAdmissionPolicy
            ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration, k8s_pb::api::admissionregistration::v1;
        "apiregistration.k8s.io/v1" APIService, k8s_pb::kube_aggregator::pkg::apis::apiregistration::v1;
        "apps/v1" ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet, k8s_pb::api::apps::v1;
        "authentication.k8s.io/v1" SelfSubjectReview TokenRequest TokenReview, k8s_pb::api::authentication::v1;
        "authorization.k8s.io/v1" LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
            SubjectAccessReview, k8s_pb::api::authorization::v1;
        "autoscaling/v1" Scale, k8s_pb::api::autoscaling::v1;
        "autoscaling/v2" HorizontalPodAutoscaler, k8s_pb::api::autoscaling::v2;
        "batch/v1" CronJob Job, k8s_pb::api::batch::v1;
        "certificates.k8s.io/v1" CertificateSigningRequest, k8s_pb::api::certificates::v1;
        "coordination.k8s.io/v1" Lease, k8s_pb::api::coordination::v1;
        "discovery.k8s.io/v1" EndpointSlice, k8s_pb::api::discovery::v1;
        "events.k8s.io/v1" Event, k8s_pb::api::events::v1;
        "flowcontrol.apiserver.k8s.io/v1" FlowSchema PriorityLevelConfiguration, k8s_pb::api::flowcontrol::v1;
        "networking.k8s.io/v1" Ingress IngressClass NetworkPolicy, k8s_pb::api::networking::v1;
        "node.k8s.io/v1" RuntimeClass, k8s_pb::api::node::v1;
        "policy/v1" Eviction PodDisruptionBudget, k8s_pb::api::policy::v1;
        "rbac.authorization.k8s.io/v1" ClusterRole ClusterRoleBinding Role RoleBinding, k8s_pb::api::rbac::v1;
        "scheduling.k8s.io/v1" PriorityClass, k8s_pb::api::scheduling::v1;
        "storage.k8s.io/v1" CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment, k8s_pb::api::storage::v1;
    };
    let of = |kind: &str| counts.iter().find(|(name, _)| *name == kind).unwrap().1;
    assert!(of("Pod") > 500, "{}", of("Pod"));
    assert!(counts.iter().map(|(_, count)| count).sum::<usize>() > 3000, "{counts:?}");
}
