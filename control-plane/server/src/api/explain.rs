//! `/explain-schedule/NAMESPACE/POD`: what the scheduler makes of each node for a pod, as it stands at this moment.
//!
//! The very code that places pods answers, over what it knows.

use control_plane_api::{ApiError, kinds};
use control_plane_core::Key;
use control_plane_core::scheduler::{self, Explained, Verdict};
use serde_json::{Value, json};

use crate::service::Service;

/// The explanation.
///
/// # Errors
/// 404 for a pod that is not there.
pub fn schedule(service: &Service, namespace: &str, name: &str) -> Result<Value, ApiError> {
    let reflector = service.fresh();
    let snapshot = reflector.snapshot();
    let Some(pod) = snapshot.at("pods", &Key::new(namespace, name)) else {
        let kind = kinds::by_resource("pods").ok_or_else(ApiError::resource_not_found)?;
        return Err(ApiError::not_found(kind, name));
    };
    let scheduler_name = pod["spec"]["schedulerName"].as_str().unwrap_or("default-scheduler");
    let mut explanation = json!({
        "namespace": namespace,
        "pod": name,
        "schedulerName": scheduler_name,
        "nodeName": pod["spec"]["nodeName"],
    });
    let Some(profile) = service.scheduler.profiles.get(scheduler_name).copied() else {
        explanation["outcome"] =
            format!("no profile of the built-in scheduler places pods of schedulerName {scheduler_name}")
                .into();
        return Ok(explanation);
    };
    let assumed = service.assumed();
    // A pod that is bound is explained as if it looked for a node again.
    let mut free = pod.as_ref().clone();
    if let Some(spec) = free["spec"].as_object_mut() {
        spec.remove("nodeName");
    }
    explanation["profile"] = profile.name.into();
    explanation["outcome"] = match scheduler::schedule(profile, &free, snapshot, &assumed) {
        Verdict::Bind { node, .. } => format!("{node} is the best node"),
        Verdict::Unschedulable { message } => message,
    }
    .into();
    let nodes = scheduler::explain(profile, &free, snapshot, &assumed);
    explanation["nodes"] = nodes.iter().map(node).collect();
    Ok(explanation)
}

fn node(explained: &Explained) -> Value {
    let filters: Vec<Value> = explained
        .filters
        .iter()
        .map(|(name, reasons)| json!({"name": name, "passed": reasons.is_empty(), "reasons": reasons}))
        .collect();
    let mut node = json!({"name": explained.node, "filters": filters});
    if let Some(ratings) = &explained.ratings {
        let per_mille = |share: &scheduler::Share| u64::try_from(share.per_mille()).unwrap_or(u64::MAX);
        node["ratings"] = ratings
            .iter()
            .map(
                |(name, weight, share)| json!({"name": name, "weight": weight, "perMille": per_mille(share)}),
            )
            .collect();
        let score =
            scheduler::Score::mean_of(ratings.iter().map(|(_, weight, share)| (*weight, *share)).collect());
        node["scorePerMille"] = u64::try_from(score.per_mille()).unwrap_or(u64::MAX).into();
    }
    node
}
