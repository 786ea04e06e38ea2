//! Puts the default roles and bindings into the store, and what is missing of them back (`autoupdate`), as Kubernetes does at
//! each start.
//!
//! All writes are under way at once, so that a store which commits in groups takes them in a few steps.

use std::sync::{Arc, LazyLock};

use control_plane_api::strategy::{self, Context, Identity};
use control_plane_api::{ApiError, Dialect, kinds};
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Rule;
use super::defaults;
use crate::random::Random;
use crate::service::Service;
use crate::store::{Expect, Key, StoreError};

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// A default, and what is kept of it where it is missing.
struct Prepared {
    resource: &'static str,
    wanted: Value,
    /// But for what is each object's own: its uid, and when it was made.
    kept: Result<Value, ApiError>,
}

/// They are the same wherever they are put, and preparing them took half of what opening a control plane costs.
static PREPARED: LazyLock<Vec<Prepared>> = LazyLock::new(|| {
    let context = Context { now: Timestamp::UNIX_EPOCH, dialect: Dialect::Kube32, eviction_seconds: None };
    let prepared = defaults::all().into_iter().map(|(resource, wanted)| {
        let kept = prepare(resource, wanted.clone(), "", &context);
        Prepared { resource, wanted, kept }
    });
    prepared.collect()
});

fn prepare(resource: &str, wanted: Value, uid: &str, context: &Context) -> Result<Value, ApiError> {
    let Some(kind) = kinds::by_resource(resource) else { return Err(ApiError::resource_not_found()) };
    let namespace = wanted["metadata"]["namespace"].as_str().map(ToOwned::to_owned);
    let identity = Identity { uid, name_suffix: "", cluster_ip: None, classes: &[] };
    strategy::prepare_create(kind, namespace.as_deref(), wanted, &identity, context)
}

/// Brings the defaults up to date. `random` gives the uids of what is made.
///
/// # Errors
/// When the store cannot be written.
pub async fn reconcile(service: &Service, random: &Random) -> anyhow::Result<()> {
    let mut writes = Vec::new();
    {
        let snapshot = service.fresh().snapshot().clone();
        let now = strategy::creation_timestamp(&service.context());
        for Prepared { resource, wanted, kept } in PREPARED.iter() {
            let text = |field: &str| wanted["metadata"][field].as_str().unwrap_or_default().to_owned();
            let key = Key::new(resource, &text("namespace"), &text("name"));
            let stored = snapshot.get(resource, &key.namespace, &key.name);
            let write = match (stored, kept) {
                (None, Ok(kept)) => Ok(Some((made(kept, &random.uid(), &now), Expect::Absent))),
                (None, Err(error)) => Err(error),
                (Some(stored), _) => Ok(repaired(stored, wanted)),
            };
            let write = write
                .map_err(|error| anyhow::anyhow!("default {resource} {}: {}", key.name, error.message))?;
            writes.extend(write.map(|(object, expect)| service.store.put(key, object, expect)));
        }
    }
    for written in join_all(writes).await {
        match written {
            Ok(_) => {}
            // Another control plane on the same store was first, with the same defaults.
            Err(StoreError::Exists | StoreError::Conflict { .. }) => {}
            Err(error) => anyhow::bail!("the default roles cannot be written: {error}"),
        }
    }
    // A short history may not hold all of these.
    service.catch_up().await;
    Ok(())
}

/// A new object like `kept`.
fn made(kept: &Value, uid: &str, now: &Value) -> Value {
    let mut object = kept.clone();
    object["metadata"]["uid"] = Value::from(uid);
    object["metadata"]["creationTimestamp"] = now.clone();
    object
}

/// The stored object with what it lacks of the default; nothing when it lacks nothing or is not to be touched.
fn repaired(stored: &Arc<Value>, wanted: &Value) -> Option<(Value, Expect)> {
    let annotation = stored["metadata"]["annotations"].get(AUTOUPDATE).and_then(Value::as_str);
    if annotation == Some("false") || !stored["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let mut object = (**stored).clone();
    for field in ["annotations", "labels"] {
        let missing = wanted["metadata"][field].as_object().into_iter().flatten();
        for (name, value) in
            missing.filter(|(name, _)| stored["metadata"][field].get(name.as_str()).is_none())
        {
            object["metadata"][field][name.as_str()] = value.clone();
        }
    }
    if wanted["rules"].is_array() {
        let held = Rule::all_of(stored);
        let missing = Rule::all_of(wanted);
        let missing = missing
            .iter()
            .filter(|rule| rule.pieces().iter().any(|piece| !held.iter().any(|held| held.covers(piece))));
        extend(&mut object, "rules", missing.map(Rule::to_value).collect());
    } else {
        if stored["roleRef"] != wanted["roleRef"] {
            object["roleRef"] = wanted["roleRef"].clone();
        }
        let held = stored["subjects"].as_array().map_or(&[] as &[Value], Vec::as_slice);
        let missing = wanted["subjects"].as_array().into_iter().flatten();
        extend(&mut object, "subjects", missing.filter(|one| !held.contains(one)).cloned().collect());
    }
    let revision = stored["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse();
    let expect = Expect::Revision(revision.unwrap_or_default());
    (object != **stored).then_some((object, expect))
}

fn extend(object: &mut Value, field: &str, more: Vec<Value>) {
    if more.is_empty() {
        return;
    }
    match object[field].as_array_mut() {
        Some(list) => list.extend(more),
        None => object[field] = json!(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(wanted: &Value) -> Arc<Value> {
        let mut stored = wanted.clone();
        stored["metadata"]["resourceVersion"] = json!("7");
        Arc::new(stored)
    }

    fn default(resource: &str, name: &str) -> Value {
        defaults::all()
            .into_iter()
            .find(|(of, it)| *of == resource && it["metadata"]["name"] == name)
            .unwrap()
            .1
    }

    #[test]
    fn a_default_is_made_as_if_it_were_created() {
        let now = "2026-05-04T03:02:01Z".parse().unwrap();
        for dialect in [Dialect::Kube32, Dialect::Kubernetes] {
            let context = Context { now, dialect, eviction_seconds: Some(300) };
            for Prepared { resource, wanted, kept } in PREPARED.iter() {
                let created = prepare(resource, wanted.clone(), "an-uid", &context);
                let kept = kept.as_ref().unwrap();
                assert_eq!(created.unwrap(), made(kept, "an-uid", &strategy::creation_timestamp(&context)));
            }
        }
    }

    #[test]
    fn what_is_missing_is_put_back_and_what_was_added_stays() {
        let wanted = default("clusterroles", "system:basic-user");
        assert_eq!(repaired(&stored(&wanted), &wanted), None);
        let mut less = wanted.clone();
        let own = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
        less["rules"] = json!([own]);
        less["metadata"]["labels"] = json!({"mine": "true"});
        let (object, expect) = repaired(&stored(&less), &wanted).unwrap();
        assert_eq!(expect, Expect::Revision(7));
        assert_eq!(object["rules"].as_array().unwrap().len(), 3);
        assert_eq!(object["rules"][0], own);
        assert_eq!(object["metadata"]["labels"]["mine"], "true");
        assert_eq!(object["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
        less["metadata"]["annotations"][AUTOUPDATE] = json!("false");
        assert_eq!(repaired(&stored(&less), &wanted), None);
    }

    #[test]
    fn a_binding_gets_its_subjects_and_its_role_back() {
        let wanted = default("clusterrolebindings", "system:public-info-viewer");
        let mut other = wanted.clone();
        other["subjects"] = json!([wanted["subjects"][1], {"kind": "User", "name": "mine"}]);
        other["roleRef"]["name"] = json!("cluster-admin");
        let (object, _) = repaired(&stored(&other), &wanted).unwrap();
        assert_eq!(object["roleRef"], wanted["roleRef"]);
        let names: Vec<&str> =
            object["subjects"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(names, ["system:unauthenticated", "mine", "system:authenticated"]);
    }
}
