//! Kinds that are kept for others to work with: what the clients that made them count on is filled in, nothing else is
//! read into them. Their types come from the schema, their metadata is checked as everyone's.

use serde_json::{Map, Value, json};

use super::pod_defaults;
use crate::json::{self, set_default};
use crate::kinds::Kind;

/// Fills in a new object. What a client says of its status is dropped, as Kubernetes does.
pub(super) fn create(kind: &Kind, object: &mut Value) {
    if kind.has_status() {
        json::object_mut(object, &[]).remove("status");
    }
    if matches!(kind.resource, "persistentvolumes" | "persistentvolumeclaims") {
        object["status"] = json!({"phase": "Pending"});
    }
    defaults(kind, object);
}

/// Fills in what an object leaves open, new or changed.
pub(super) fn defaults(kind: &Kind, object: &mut Value) {
    match kind.resource {
        "statefulsets" => stateful_set(object),
        "replicationcontrollers" => {
            template(object, &["spec", "template"]);
            let spec = json::object_mut(object, &["spec"]);
            set_default(spec, "replicas", 1);
            if let Some(labels) = spec["template"].pointer("/metadata/labels").cloned() {
                set_default(json::object_mut(object, &["spec"]), "selector", labels.clone());
                set_default(json::object_mut(object, &["metadata"]), "labels", labels);
            }
        }
        "podtemplates" => template(object, &["template"]),
        "cronjobs" => cron_job(object),
        "persistentvolumeclaims" => {
            set_default(json::object_mut(object, &["spec"]), "volumeMode", "Filesystem");
        }
        "persistentvolumes" => {
            let spec = json::object_mut(object, &["spec"]);
            set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
            set_default(spec, "volumeMode", "Filesystem");
        }
        "storageclasses" => {
            let class = json::object_mut(object, &[]);
            set_default(class, "reclaimPolicy", "Delete");
            set_default(class, "volumeBindingMode", "Immediate");
        }
        "horizontalpodautoscalers" => {
            set_default(json::object_mut(object, &["spec"]), "minReplicas", 1);
        }
        _ => {}
    }
}

fn template(object: &mut Value, path: &[&str]) {
    let template = json::object_mut(object, path);
    set_default(template, "metadata", json!({"creationTimestamp": null}));
    set_default(template, "spec", json!({}));
    pod_defaults::pod_spec(&mut template["spec"]);
}

fn stateful_set(object: &mut Value) {
    template(object, &["spec", "template"]);
    let spec = json::object_mut(object, &["spec"]);
    set_default(spec, "podManagementPolicy", "OrderedReady");
    set_default(spec, "replicas", 1);
    set_default(spec, "revisionHistoryLimit", 10);
    set_default(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    set_default(spec, "updateStrategy", json!({}));
    let member = |spec: &mut Map<String, Value>, name: &str, fill: fn(&mut Map<String, Value>)| {
        if let Some(Value::Object(map)) = spec.get_mut(name) {
            fill(map);
        }
    };
    member(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
        set_default(policy, "whenDeleted", "Retain");
        set_default(policy, "whenScaled", "Retain");
    });
    member(spec, "updateStrategy", |strategy| {
        set_default(strategy, "type", "RollingUpdate");
        if strategy["type"] == "RollingUpdate" {
            set_default(strategy, "rollingUpdate", json!({}));
            if let Some(Value::Object(update)) = strategy.get_mut("rollingUpdate") {
                set_default(update, "partition", 0);
            }
        }
    });
    for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        set_default(json::object_mut(claim, &["spec"]), "volumeMode", "Filesystem");
        set_default(json::object_mut(claim, &["status"]), "phase", "Pending");
    }
}

fn cron_job(object: &mut Value) {
    template(object, &["spec", "jobTemplate", "spec", "template"]);
    let spec = json::object_mut(object, &["spec"]);
    set_default(spec, "concurrencyPolicy", "Allow");
    set_default(spec, "suspend", false);
    set_default(spec, "successfulJobsHistoryLimit", 3);
    set_default(spec, "failedJobsHistoryLimit", 1);
}
