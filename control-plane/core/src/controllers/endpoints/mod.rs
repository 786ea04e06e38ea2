//! Endpoints and EndpointSlices as a function of a Service and the pods of its namespace (EP-01 … EP-04).
//!
//! Nobody writes these objects and nothing of them is kept: [`compute`] says what they are, and [`Index`] which of them a
//! change may have altered, at the cost of the services of one namespace and the pods of those concerned.

mod backend;
mod identity;
mod index;
mod objects;
mod ports;

pub use index::Index;

use serde_json::Value;

use backend::Backend;

use crate::json;

/// The resources that are computed.
pub const RESOURCES: [&str; 2] = ["endpoints", "endpointslices"];

/// The resources that they are computed from.
pub const SOURCES: [&str; 2] = ["pods", "services"];

/// Who computes them, as the label `endpointslice.kubernetes.io/managed-by` says it.
pub const MANAGER: &str = "endpoints.rigor.dev";

/// Where kube32 and Kubernetes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointsConfig {
    /// Slices keep pods that are terminating, with conditions that say so, as Kubernetes' do (EP-02).
    pub slices_keep_terminating: bool,
}

/// The labels that the pods of `service` have; nothing where no endpoints are computed for it (EP-02).
#[must_use]
pub fn selector(service: &Value) -> Option<&serde_json::Map<String, Value>> {
    if json::text(service, &["spec", "type"]) == Some("ExternalName") {
        return None;
    }
    json::get(service, &["spec", "selector"])?.as_object().filter(|labels| !labels.is_empty())
}

/// Whether a service with this selector selects `pod`, which is of its namespace.
fn selects(selector: &serde_json::Map<String, Value>, pod: &Value) -> bool {
    let labels = json::get(pod, &["metadata", "labels"]);
    selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

/// The Endpoints and the slices of `service`, in this order, given the pods that it selects in the order of their names. They
/// have everything but a resourceVersion and a generation, which are of whoever serves them.
#[must_use]
pub fn compute<'a>(
    service: &Value,
    pods: impl IntoIterator<Item = &'a Value>,
    config: EndpointsConfig,
) -> Vec<(&'static str, Value)> {
    if selector(service).is_none() {
        return Vec::new();
    }
    let backends: Vec<Backend<'_>> = pods.into_iter().filter_map(Backend::of).collect();
    let [endpoints, endpoint_slices] = RESOURCES;
    let mut computed = vec![(endpoints, objects::endpoints(service, &backends))];
    let slices = objects::slices(service, &backends, config);
    computed.extend(slices.into_iter().map(|slice| (endpoint_slices, slice)));
    computed
}
