//! Where objects are in etcd: `/registry/<resource>/<namespace>/<name>`, as Kubernetes lays them out (GHOST-06).
//!
//! Values are JSON as Kubernetes writes it with `--storage-media-type=application/json`: resourceVersion is not in them, it is
//! the revision of the key. What is no object has its place under `rigor.dev/`.

use control_plane_api::Kind;
use control_plane_api::kinds;
use serde_json::Value;

use crate::store::table::at_revision;
use crate::store::{Entry, Key};

/// Storage names that differ from the plural, as compiled into Kubernetes.
const SPECIAL: &[(&str, &str)] = &[
    ("endpoints", "services/endpoints"),
    ("ingresses", "ingress"),
    ("nodes", "minions"),
    ("replicationcontrollers", "controllers"),
    ("services", "services/specs"),
];
/// Groups whose API servers put the group before the resource.
const GROUPED: &[&str] = &["apiextensions.k8s.io", "apiregistration.k8s.io"];
/// What control planes tell each other besides objects.
const MARKS: &str = "rigor.dev/";

/// The places under one prefix.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Ends with a slash.
    prefix: String,
}

/// What stands at a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// An object.
    Object(Key),
    /// A mark of this name.
    Mark(String),
    /// Nothing of ours.
    Foreign,
}

fn segment(kind: &Kind) -> String {
    if let Some((_, special)) = SPECIAL.iter().find(|(resource, _)| *resource == kind.resource) {
        return (*special).to_owned();
    }
    if GROUPED.contains(&kind.group) {
        return format!("{}/{}", kind.group, kind.resource);
    }
    kind.resource.to_owned()
}

impl Layout {
    /// The layout under `prefix`, such as `/registry`; slashes at its ends do not matter.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: format!("/{}/", prefix.trim_matches('/')) }
    }

    /// Everything that may be ours, as the first key and the first key behind.
    pub fn range(&self) -> (Vec<u8>, Vec<u8>) {
        (self.prefix.clone().into_bytes(), behind(&self.prefix))
    }

    /// The objects of one resource, in all namespaces or one.
    pub fn scope(&self, resource: &str, namespace: Option<&str>) -> Option<(Vec<u8>, Vec<u8>)> {
        let kind = kinds::by_resource(resource)?;
        let mut start = format!("{}{}/", self.prefix, segment(kind));
        if let Some(namespace) = namespace.filter(|_| kind.namespaced) {
            start = format!("{start}{namespace}/");
        }
        let end = behind(&start);
        Some((start.into_bytes(), end))
    }

    /// The key of an object; none for what is not stored.
    pub fn of(&self, key: &Key) -> Option<String> {
        let kind = kinds::by_resource(&key.resource)?;
        let Key { namespace, name, .. } = key;
        Some(match kind.namespaced {
            true => format!("{}{}/{namespace}/{name}", self.prefix, segment(kind)),
            false => format!("{}{}/{name}", self.prefix, segment(kind)),
        })
    }

    /// The key of a mark.
    pub fn mark(&self, name: &str) -> String {
        format!("{}{MARKS}{name}", self.prefix)
    }

    /// What stands at `key`.
    pub fn place(&self, key: &[u8]) -> Place {
        let path = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(&self.prefix));
        let Some(path) = path else { return Place::Foreign };
        if let Some(mark) = path.strip_prefix(MARKS) {
            return Place::Mark(mark.to_owned());
        }
        // Longest first: `services/specs` stands before a resource that were called `services`.
        let stored = kinds::all().iter().filter(|kind| kind.is_stored());
        let found = stored.filter_map(|kind| {
            let rest = path.strip_prefix(&segment(kind))?.strip_prefix('/')?;
            let (namespace, name) = if kind.namespaced { rest.split_once('/')? } else { ("", rest) };
            let fits = !name.is_empty() && !name.contains('/') && kind.namespaced != namespace.is_empty();
            fits.then(|| Key::new(kind.resource, namespace, name))
        });
        let mut found = found.take(1);
        found.next().map_or(Place::Foreign, Place::Object)
    }
}

/// The first key that does not begin so; `start` ends with a slash.
fn behind(start: &str) -> Vec<u8> {
    let mut end = start.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

/// An object as it is stored.
pub fn encode(mut object: Value) -> (Vec<u8>, Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    (object.to_string().into_bytes(), object)
}

/// A stored object, at the revision of its key; none when it is not a JSON object.
pub fn decode(value: &[u8], revision: u64) -> Option<Entry> {
    let object: Value = serde_json::from_slice(value).ok()?;
    object.is_object().then(|| Entry::new(revision, at_revision(object, revision).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_where_kubernetes_puts_them() {
        let layout = Layout::new("/registry");
        let check = |key: Key, expected: &str| {
            assert_eq!(layout.of(&key).as_deref(), Some(expected));
            assert_eq!(layout.place(expected.as_bytes()), Place::Object(key));
        };
        check(Key::new("pods", "default", "p"), "/registry/pods/default/p");
        check(Key::new("nodes", "", "n"), "/registry/minions/n");
        check(Key::new("services", "default", "s"), "/registry/services/specs/default/s");
        check(Key::new("namespaces", "", "default"), "/registry/namespaces/default");
        check(Key::new("leases", "kube-system", "l"), "/registry/leases/kube-system/l");
        check(Key::new("events", "default", "p.1"), "/registry/events/default/p.1");
        check(Key::new("deployments", "default", "d"), "/registry/deployments/default/d");
        assert_eq!(layout.of(&Key::new("no-such-kind", "", "x")), None);
    }

    #[test]
    fn every_stored_kind_has_a_place_of_its_own() {
        let layout = Layout::new("a/b/");
        for kind in kinds::all().iter().filter(|kind| kind.is_stored()) {
            let namespace = if kind.namespaced { "ns" } else { "" };
            let key = Key::new(kind.resource, namespace, "system:x");
            let place = layout.of(&key).unwrap();
            assert!(place.starts_with("/a/b/"), "{place}");
            assert_eq!(layout.place(place.as_bytes()), Place::Object(key), "{place}");
        }
    }

    #[test]
    fn what_is_no_object_is_told_apart() {
        let layout = Layout::new("/registry");
        assert_eq!(layout.place(layout.mark("term").as_bytes()), Place::Mark("term".into()));
        let foreign = [
            "/registry/pods",
            "/registry/pods/default",
            "/registry/pods/default/a/b",
            "/other/pods/default/p",
        ];
        for key in foreign.into_iter().chain(["/registry/masterleases/10.0.0.1", "/registry/minions/"]) {
            assert_eq!(layout.place(key.as_bytes()), Place::Foreign, "{key}");
        }
        assert_eq!(layout.place(b"/registry/pods/default/\xFF"), Place::Foreign);
    }

    #[test]
    fn scopes_hold_their_own_objects_only() {
        let layout = Layout::new("/registry");
        let (start, end) = layout.scope("pods", Some("default")).unwrap();
        assert_eq!((start, end), (b"/registry/pods/default/".to_vec(), b"/registry/pods/default0".to_vec()));
        let (start, _) = layout.scope("nodes", None).unwrap();
        assert_eq!(start, b"/registry/minions/");
    }

    #[test]
    fn the_revision_is_not_in_the_value_but_in_the_entry() {
        let (bytes, _) = encode(json!({"metadata": {"name": "a", "resourceVersion": "7"}}));
        assert_eq!(bytes, br#"{"metadata":{"name":"a"}}"#);
        let entry = decode(&bytes, 9).unwrap();
        assert_eq!((entry.revision, &entry.object["metadata"]["resourceVersion"]), (9, &json!("9")));
        assert_eq!(decode(b"k8s\0\x0a\x01", 9), None);
    }
}
