//! What happens to an object between the wire and the store: defaults, admission, validation, immutability,
//! generation, and the split between an object and its status.
//!
//! Objects come typed from [`crate::decode`] or [`crate::patch`]; what comes out is ready to be written. The store
//! sets the resourceVersion and holds the write to the version it was prepared from.

mod endpoints;
mod generation;
mod generic;
mod go;
mod jobs;
mod meta;
mod names;
mod plain;
mod pod;
mod pod_defaults;
mod pod_spec;
mod priority;
mod rbac;
mod resources;
mod rollout;
mod service;
mod workloads;

use jiff::Timestamp;
use serde_json::Value;

use crate::decode::{self, Dialect};
use crate::json;
use crate::kinds::Kind;
use crate::status::{ApiError, Cause};

pub use pod::{admit_service_account, is_mirror, service_account_missing};
pub use priority::{admit_default_class, system_classes};
pub use service::allocate as allocate_for_service;

/// What the preparation of any object depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The wall-clock time of the request.
    pub now: Timestamp,
    /// Whose rules hold where they differ.
    pub dialect: Dialect,
    /// `tolerationSeconds` of the tolerations that admission adds (NODE-13, NODE-21); `None` switches that off.
    pub eviction_seconds: Option<i64>,
}

/// What a new object is given from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// What follows `generateName` in a generated name: five characters.
    pub name_suffix: &'a str,
    /// The address of a new service that asks for none; without one it has none.
    pub cluster_ip: Option<&'a str>,
    /// The priority classes that there are, for a new pod; those of the system need not be among them.
    pub classes: &'a [Value],
}

/// `metadata.creationTimestamp` of an object that is made now.
#[must_use]
pub fn creation_timestamp(context: &Context) -> Value {
    meta::creation_timestamp(context)
}

/// Prepares a new object. `namespace` is that of the request's path.
///
/// Errors: 400 for another namespace or a resourceVersion in the body, 403 for a pod priority that no class gives,
/// 422 with a cause for each field that is wrong.
pub fn prepare_create(
    kind: &Kind,
    namespace: Option<&str>,
    mut object: Value,
    identity: &Identity<'_>,
    context: &Context,
) -> Result<Value, ApiError> {
    meta::settle_namespace(kind, namespace, &mut object)?;
    meta::fill_new(&mut object, identity, context)?;
    match kind.resource {
        "pods" => pod::create(&mut object, identity, context)?,
        "deployments" | "replicasets" | "daemonsets" | "jobs" => {
            workloads::defaults(kind, &mut object);
            workloads::create(kind, &mut object);
        }
        _ => plain::create(kind, &mut object, identity),
    }
    generation::begin(kind, &mut object);
    let mut causes = Vec::new();
    match kind.resource {
        "pods" => pod::validate(kind, &object, context, &mut causes),
        _ => {
            meta::validate(kind, &object, meta::name_check(kind), &mut causes);
            workloads::validate(kind, &object, context.dialect, &mut causes);
            plain::validate(kind, &object, context, &mut causes);
        }
    }
    finish(kind, object, causes, context)
}

/// Prepares a replacement (PUT) of `old`; the path's name and namespace are `old`'s.
///
/// Errors: as [`prepare_update`]; also 400 for another name or namespace and 409 for another uid.
pub fn prepare_replacement(
    kind: &Kind,
    old: &Value,
    mut new: Value,
    context: &Context,
) -> Result<Value, ApiError> {
    check_identity(kind, old, &mut new)?;
    prepare_update(kind, old, new, context)
}

/// As [`prepare_replacement`], for a PUT of the status subresource.
///
/// Errors: as [`prepare_status_update`]; also 400 for another name or namespace and 409 for another uid.
pub fn prepare_status_replacement(
    kind: &Kind,
    old: &Value,
    mut new: Value,
    context: &Context,
) -> Result<Value, ApiError> {
    check_identity(kind, old, &mut new)?;
    prepare_status_update(kind, old, new, context)
}

fn check_identity(kind: &Kind, old: &Value, new: &mut Value) -> Result<(), ApiError> {
    let own = |field: &str| json::text(old, &["metadata", field]);
    check_url(kind, own("name"), kind.namespaced.then(|| own("namespace")), new)?;
    let wanted = json::text(new, &["metadata", "uid"]);
    if !wanted.is_empty() && wanted != own("uid") {
        let (namespace, name) = (own("namespace"), own("name"));
        return Err(ApiError::precondition_failed(kind, namespace, name, "UID", wanted, own("uid")));
    }
    Ok(())
}

/// Holds the name and namespace in the body of a PUT against those of its path, also before the object is looked up.
///
/// Errors: 400 where they differ.
pub fn check_url(
    kind: &Kind,
    name: &str,
    namespace: Option<&str>,
    object: &mut Value,
) -> Result<(), ApiError> {
    meta::settle_namespace(kind, namespace, object)?;
    let given = json::text(object, &["metadata", "name"]);
    if given.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// Prepares what a patch or a controller made of `old`: the status stays, the generation follows the spec.
///
/// A result that equals `old` need not be written.
///
/// Errors: 409 for an old resourceVersion, 422 with a cause for each field that is wrong or may not change.
pub fn prepare_update(
    kind: &Kind,
    old: &Value,
    mut new: Value,
    context: &Context,
) -> Result<Value, ApiError> {
    check_version(kind, old, &new)?;
    meta::carry_over(old, &mut new);
    if kind.has_status() {
        keep_field(old, &mut new, "status");
    }
    let mut causes = Vec::new();
    validate_meta(kind, old, &new, &mut causes);
    match kind.resource {
        "pods" => {
            pod::default_update(&mut new, old, context);
            pod::validate_update(kind, old, &new, context, &mut causes);
        }
        "deployments" | "replicasets" | "daemonsets" | "jobs" => {
            workloads::default_update(kind, old, &mut new);
            meta::validate_update(old, &new, &mut causes);
            workloads::validate(kind, &new, context.dialect, &mut causes);
            workloads::validate_update(kind, old, &new, &mut causes);
        }
        _ => {
            plain::default_update(kind, old, &mut new);
            plain::validate(kind, &new, context, &mut causes);
            plain::validate_update(kind, old, &new, &mut causes);
        }
    }
    generation::raise(kind, old, &mut new, context);
    finish(kind, new, causes, context)
}

/// Prepares a write of the status subresource: the spec stays.
///
/// Errors: 404 for a kind without one, 409 for an old resourceVersion, 422 for a status that is wrong.
pub fn prepare_status_update(
    kind: &Kind,
    old: &Value,
    mut new: Value,
    context: &Context,
) -> Result<Value, ApiError> {
    if !kind.has_status() {
        return Err(ApiError::resource_not_found());
    }
    check_version(kind, old, &new)?;
    meta::carry_over(old, &mut new);
    keep_field(old, &mut new, "spec");
    let mut causes = Vec::new();
    match kind.resource {
        "pods" => {
            pod::status_update(old, &mut new);
            pod::validate_status(old, &new, &mut causes);
        }
        "deployments" => {
            let labels = json::at(old, &["metadata", "labels"]).cloned();
            let meta = json::object_mut(&mut new, &["metadata"]);
            match labels {
                Some(labels) => meta.insert("labels".to_owned(), labels),
                None => meta.remove("labels"),
            };
        }
        "nodes" => plain::validate_node_status(&new, context.dialect, &mut causes),
        _ => {}
    }
    validate_meta(kind, old, &new, &mut causes);
    finish(kind, new, causes, context)
}

/// Prepares a write of the `finalize` subresource of a namespace: only `spec.finalizers` changes.
///
/// Errors: 409 for an old resourceVersion.
pub fn prepare_finalize(kind: &Kind, old: &Value, new: &Value, context: &Context) -> Result<Value, ApiError> {
    check_version(kind, old, new)?;
    let mut next = old.clone();
    let finalizers = json::list(new, &["spec", "finalizers"]).to_vec();
    json::object_mut(&mut next, &["spec"]).insert("finalizers".to_owned(), Value::Array(finalizers));
    finish(kind, next, Vec::new(), context)
}

/// Whether a PUT of an absent object creates it.
pub fn creates_on_update(kind: &Kind) -> bool {
    matches!(kind.resource, "leases" | "events" | "services")
}

/// The checks of metadata that every update goes through, whatever its kind.
fn validate_meta(kind: &Kind, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    meta::validate(kind, new, meta::name_check(kind), causes);
    meta::validate_update(old, new, causes);
}

fn check_version(kind: &Kind, old: &Value, new: &Value) -> Result<(), ApiError> {
    let version = |object| json::text(object, &["metadata", "resourceVersion"]).to_owned();
    let (wanted, found) = (version(new), version(old));
    if !wanted.is_empty() && wanted != found {
        return Err(ApiError::stale(kind, json::text(old, &["metadata", "name"])));
    }
    Ok(())
}

fn keep_field(old: &Value, new: &mut Value, field: &str) {
    let map = json::object_mut(new, &[]);
    match old.get(field) {
        Some(value) => map.insert(field.to_owned(), value.clone()),
        None => map.remove(field),
    };
}

/// Refuses an object with causes; brings one without into the form in which it is kept.
fn finish(kind: &Kind, object: Value, causes: Vec<Cause>, context: &Context) -> Result<Value, ApiError> {
    if !causes.is_empty() {
        return Err(ApiError::invalid(kind, json::text(&object, &["metadata", "name"]), causes));
    }
    decode::canonical(kind.into(), object, context.dialect)
}

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod endpoints_tests;
#[cfg(test)]
mod service_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod workload_tests;
