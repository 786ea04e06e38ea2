//! Protobuf bodies as the components of Kubernetes send them, made with its published message types.

use k8s_pb::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use k8s_pb::apimachinery::pkg::runtime::{TypeMeta, Unknown};
use prost::Message;

/// The type of such a body.
pub const TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What the components accept.
pub const ACCEPT: &str = "application/vnd.kubernetes.protobuf, */*";
const MAGIC: &[u8] = b"k8s\0";

/// A message in its envelope.
pub fn body(api_version: &str, kind: &str, message: &impl Message) -> Vec<u8> {
    let type_meta = TypeMeta { api_version: Some(api_version.to_owned()), kind: Some(kind.to_owned()) };
    let unknown = Unknown {
        type_meta: Some(type_meta),
        raw: Some(message.encode_to_vec()),
        content_encoding: Some(String::new()),
        content_type: Some(String::new()),
    };
    [MAGIC, &unknown.encode_to_vec()].concat()
}

/// The kind and the message of an answer.
#[track_caller]
pub fn read<M: Message + Default>(body: &[u8]) -> (String, M) {
    let unknown = Unknown::decode(body.strip_prefix(MAGIC).expect("the magic of a protobuf body")).unwrap();
    let message = M::decode(unknown.raw.unwrap_or_default().as_slice()).unwrap();
    (unknown.type_meta.unwrap().kind.unwrap(), message)
}

/// Metadata as Go writes it: every plain field is there, empty or not.
pub fn meta(namespace: &str, name: &str) -> ObjectMeta {
    let empty = || Some(String::new());
    ObjectMeta {
        name: Some(name.to_owned()),
        generate_name: empty(),
        namespace: Some(namespace.to_owned()),
        self_link: empty(),
        uid: empty(),
        resource_version: empty(),
        generation: Some(0),
        creation_timestamp: Some(Time::default()),
        ..ObjectMeta::default()
    }
}

/// An instant with microseconds.
pub fn micro_time(seconds: i64, nanos: i32) -> MicroTime {
    MicroTime { seconds: Some(seconds), nanos: Some(nanos) }
}
