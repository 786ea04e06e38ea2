//! The garbage collector: dependants go with their owners (DEPL-03).
//!
//! Background: the owner is gone, its dependants are deleted. Orphan and Foreground: the owner waits with a finalizer
//! until its dependants have been let go of, or are gone. A reference is known by its uid; one of a kind that the
//! server does not serve is never taken for dangling.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::decision::{Decision, Write};
use crate::json;
use crate::snapshot::{Key, Object, Owner, Place, Snapshot};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What the collector knows of the kinds that owner references name.
#[derive(Debug, Clone, Default)]
pub struct GarbageConfig {
    /// Plural resource by (group, kind), `""` for the core group. All of their objects are in the snapshot.
    pub kinds: BTreeMap<(String, String), &'static str>,
    /// Those of them whose objects live in namespaces.
    pub namespaced: BTreeSet<&'static str>,
}

/// The objects that the collector has to look at: those that name an owner which does not exist, and those that wait with
/// one of its finalizers.
#[must_use]
pub fn candidates(snapshot: &Snapshot, config: &GarbageConfig) -> Vec<Place> {
    let references = snapshot.references();
    let dangling = references.owners().filter(|(owner, _)| is_gone(snapshot, config, owner));
    let mut candidates = references.waiting().clone();
    candidates.extend(dangling.flat_map(|(_, places)| places).cloned());
    candidates.into_iter().collect()
}

/// Whether an object is being deleted and waits for its dependants to be let go of, or to be gone.
pub(crate) fn waits(object: &Value) -> bool {
    json::is_terminating(object) && (has_finalizer(object, ORPHAN) || has_finalizer(object, FOREGROUND))
}

/// Looks at one object: as an owner that waits, else as a dependant.
#[must_use]
pub fn decide(snapshot: &Snapshot, config: &GarbageConfig, resource: &'static str, key: &Key) -> Decision {
    let Some(object) = snapshot.at(resource, key) else {
        return Decision::nothing("the object is gone");
    };
    if json::is_terminating(object) {
        return if has_finalizer(object, ORPHAN) {
            orphan(snapshot, resource, object)
        } else if has_finalizer(object, FOREGROUND) {
            foreground(snapshot, resource, object)
        } else {
            Decision::nothing("the object is being deleted already")
        };
    }
    let owners = json::list(object, &["metadata", "ownerReferences"]);
    let is_dangling = |reference: &&Value| is_gone(snapshot, config, &Owner::of(reference, &key.namespace));
    let dangling: Vec<&Value> = owners.iter().filter(is_dangling).collect();
    if dangling.is_empty() {
        return Decision::nothing("every owner exists");
    }
    let write = if dangling.len() == owners.len() {
        delete(resource, object)
    } else {
        let gone = dangling.iter().filter_map(|owner| json::text(owner, &["uid"]));
        let object = gone.fold(Value::clone(object), |object, uid| without_owner(&object, uid));
        Write::Update { resource, subresource: None, object }
    };
    Decision { writes: vec![write], ..Decision::nothing("an owner is gone") }
}

/// `object` without its references to the owner with this uid.
pub(super) fn without_owner(object: &Value, uid: &str) -> Value {
    let mut object = object.clone();
    let metadata = json::object_mut(&mut object, &["metadata"]);
    if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
        owners.retain(|owner| json::text(owner, &["uid"]) != Some(uid));
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
    object
}

/// Whether the owner that references name does not exist, for sure: its kind is served, and no object with its uid is where
/// they can reach it.
fn is_gone(snapshot: &Snapshot, config: &GarbageConfig, owner: &Owner) -> bool {
    let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let Some(resource) = config.kinds.get(&(group.to_owned(), owner.kind.clone())) else {
        return false;
    };
    if owner.namespace.is_empty() && config.namespaced.contains(resource) {
        // No reference says which namespace: as in Kubernetes, such an owner cannot be found, and so not be missed either.
        return false;
    }
    match snapshot.find_uid(&owner.uid) {
        Some((found, key)) => {
            found != resource || !key.namespace.is_empty() && key.namespace != owner.namespace
        }
        None => true,
    }
}

fn dependants<'a>(
    snapshot: &'a Snapshot,
    owner: &'a Value,
) -> impl Iterator<Item = (&'static str, &'a Object, &'a Value)> {
    let uid = json::uid(owner);
    snapshot.references().dependants(uid).into_iter().filter_map(move |(resource, key)| {
        let object = snapshot.at(resource, key)?;
        let owners = json::list(object, &["metadata", "ownerReferences"]);
        let owner = owners.iter().find(|owner| json::text(owner, &["uid"]) == Some(uid))?;
        Some((*resource, object, owner))
    })
}

/// Lets go of the dependants, then of the owner; the order of the writes keeps that order.
fn orphan(snapshot: &Snapshot, resource: &'static str, owner: &Object) -> Decision {
    let mut writes: Vec<Write> = dependants(snapshot, owner)
        .map(|(resource, object, _)| {
            let object = without_owner(object, json::uid(owner));
            Write::Update { resource, subresource: None, object }
        })
        .collect();
    writes.push(without_finalizer(resource, owner, ORPHAN));
    Decision { writes, ..Decision::nothing("its dependants are to live on") }
}

/// Deletes the dependants, and lets go of the owner once none is left that blocks it.
fn foreground(snapshot: &Snapshot, resource: &'static str, owner: &Object) -> Decision {
    let blocking = dependants(snapshot, owner)
        .filter(|(_, _, reference)| json::is_true(reference, &["blockOwnerDeletion"]))
        .count();
    if blocking == 0 {
        let write = without_finalizer(resource, owner, FOREGROUND);
        return Decision { writes: vec![write], ..Decision::nothing("no dependant is left") };
    }
    let writes = dependants(snapshot, owner)
        .filter(|(_, object, _)| !json::is_terminating(object))
        .map(|(resource, object, _)| delete(resource, object))
        .collect();
    Decision { writes, ..Decision::nothing("its dependants go first") }
}

/// `object` is to lose this finalizer.
pub(super) fn without_finalizer(resource: &'static str, object: &Value, finalizer: &str) -> Write {
    let mut object = object.clone();
    let metadata = json::object_mut(&mut object, &["metadata"]);
    if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
        finalizers.retain(|it| it.as_str() != Some(finalizer));
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }
    Write::Update { resource, subresource: None, object }
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    json::list(object, &["metadata", "finalizers"]).iter().any(|it| it.as_str() == Some(finalizer))
}

fn delete(resource: &'static str, object: &Value) -> Write {
    Write::Delete {
        resource,
        namespace: json::namespace(object).to_owned(),
        name: json::name(object).to_owned(),
        uid: Some(json::uid(object).to_owned()),
        resource_version: None,
        grace_seconds: None,
    }
}
