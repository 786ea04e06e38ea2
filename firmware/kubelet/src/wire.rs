//! What the kubelet reads of the API's objects. Fields it has no use for are skipped by the parser and
//! take no heap; a null stands for an absent field, as it does in Kubernetes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{Deserialize, Deserializer};

use crate::quantity::Quantity;

fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(input: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(input)?.unwrap_or_default())
}

/// Metadata of any object.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) resource_version: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) creation_timestamp: String,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) deletion_grace_period_seconds: Option<i64>,
}

impl Metadata {
    /// The resourceVersion as a number; 0 when it is not one.
    pub(crate) fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }
}

/// Any object, when only its metadata matters.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct AnyObject {
    #[serde(deserialize_with = "nullable")]
    pub(crate) metadata: Metadata,
    /// `message` of a Status, for the console.
    #[serde(deserialize_with = "nullable")]
    pub(crate) message: String,
}

/// The kind of a watch event.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct WatchKind {
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub(crate) kind: String,
}

/// A watch event, once its kind is known.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct WatchObject<T> {
    pub(crate) object: T,
}

/// The `object` of an ERROR event.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct WatchStatus {
    #[serde(deserialize_with = "nullable")]
    pub(crate) code: u16,
    #[serde(deserialize_with = "nullable")]
    pub(crate) message: String,
}

/// A pod.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    #[serde(deserialize_with = "nullable")]
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    pub(crate) spec: PodSpec,
    #[serde(deserialize_with = "nullable")]
    pub(crate) status: PodStatus,
}

/// When containers are started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}

impl<'de> Deserialize<'de> for RestartPolicy {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text: Option<String> = Option::deserialize(input)?;
        Ok(match text.as_deref() {
            Some("OnFailure") => RestartPolicy::OnFailure,
            Some("Never") => RestartPolicy::Never,
            // The server validates; an absent policy means Always.
            _ => RestartPolicy::Always,
        })
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    #[serde(deserialize_with = "nullable")]
    pub(crate) node_name: String,
    pub(crate) restart_policy: RestartPolicy,
    #[serde(deserialize_with = "nullable")]
    pub(crate) containers: Vec<ContainerSpec>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) init_containers: Vec<ContainerSpec>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct ContainerSpec {
    #[serde(deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) image: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) args: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) resources: Resources,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Resources {
    #[serde(deserialize_with = "nullable")]
    pub(crate) requests: BTreeMap<String, Quantity>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) limits: BTreeMap<String, Quantity>,
}

impl Resources {
    /// What is asked of `resource`: the request, or the limit where there is none.
    pub(crate) fn asked(&self, resource: &str) -> Option<u64> {
        self.requests.get(resource).or_else(|| self.limits.get(resource)).map(|q| q.0)
    }

    /// Every resource that is asked for, once.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let only_limits = self.limits.keys().filter(|name| !self.requests.contains_key(*name));
        self.requests.keys().chain(only_limits).map(String::as_str)
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    #[serde(deserialize_with = "nullable")]
    pub(crate) phase: String,
    #[serde(rename = "podIP", deserialize_with = "nullable")]
    pub(crate) pod_ip: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) start_time: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) conditions: Vec<Condition>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
}

impl PodStatus {
    /// Whether the pod has ended for good.
    pub(crate) fn is_terminal(&self) -> bool {
        self.phase == "Succeeded" || self.phase == "Failed"
    }

    /// Whether the condition is True; `None` where it is absent or neither True nor False.
    pub(crate) fn condition(&self, kind: &str) -> Option<bool> {
        match self.conditions.iter().find(|c| c.kind == kind)?.status.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) status: String,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    #[serde(deserialize_with = "nullable")]
    pub(crate) name: String,
    #[serde(rename = "containerID", deserialize_with = "nullable")]
    pub(crate) container_id: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) restart_count: u32,
    #[serde(deserialize_with = "nullable")]
    pub(crate) state: ContainerState,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct ContainerState {
    pub(crate) running: Option<RunningState>,
    pub(crate) terminated: Option<TerminatedState>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RunningState {
    #[serde(deserialize_with = "nullable")]
    pub(crate) started_at: String,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TerminatedState {
    #[serde(deserialize_with = "nullable")]
    pub(crate) exit_code: i32,
    #[serde(deserialize_with = "nullable")]
    pub(crate) started_at: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) finished_at: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_and_unknown_fields_are_skipped() {
        let json = r#"{"kind":"Pod","metadata":{"name":"p","creationTimestamp":null,"labels":{"a":"b"},"resourceVersion":"12"},
          "spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i","args":null,"resources":{"requests":null,"limits":{"memory":"4Ki","cpu":2}}}]},
          "status":{"conditions":null,"containerStatuses":[{"name":"c","state":{"running":{"startedAt":"t"}}}]}}"#;
        let pod: Pod = serde_json::from_str(json).unwrap();
        assert_eq!(pod.metadata.version(), 12);
        assert_eq!(pod.spec.restart_policy, RestartPolicy::Never);
        let resources = &pod.spec.containers[0].resources;
        assert_eq!((resources.asked("memory"), resources.asked("cpu")), (Some(4096), Some(2)));
        assert_eq!(resources.names().collect::<Vec<_>>(), ["cpu", "memory"]);
        assert!(pod.status.container_statuses[0].state.running.is_some());
    }
}
