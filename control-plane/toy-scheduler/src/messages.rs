//! The objects that are sent to the API server: bindings and events (EXT-05). The pod's uid stands in the binding and in the
//! event's name, so that what is sent twice is neither bound nor said twice.

use k8s_openapi::api::core::v1::{Binding, Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::cluster::PodRef;

/// Puts the pod on the node.
pub fn binding(pod: &PodRef, node: &str) -> Binding {
    let metadata = ObjectMeta {
        namespace: Some(pod.namespace.clone()),
        name: Some(pod.name.clone()),
        uid: Some(pod.uid.clone()),
        ..ObjectMeta::default()
    };
    let target =
        ObjectReference { kind: Some("Node".into()), name: Some(node.into()), ..ObjectReference::default() };
    Binding { metadata, target }
}

/// Says that the pod was placed.
pub fn scheduled(scheduler: &str, pod: &PodRef, node: &str, now: Time) -> Event {
    let message = format!("Successfully assigned {pod} to {node}");
    event(scheduler, pod, ("Normal", "Scheduled"), message, now)
}

/// Says that the pod was not placed, and why.
pub fn failed(scheduler: &str, pod: &PodRef, reason: &str, now: Time) -> Event {
    event(scheduler, pod, ("Warning", "FailedScheduling"), reason.to_owned(), now)
}

/// Why a binding was refused, as the event says it.
pub fn refused(node: &str, message: &str) -> String {
    format!("binding to {node} was refused: {message}")
}

fn event(scheduler: &str, pod: &PodRef, (type_, reason): (&str, &str), message: String, now: Time) -> Event {
    Event {
        metadata: ObjectMeta {
            namespace: Some(pod.namespace.clone()),
            name: Some(event_name(pod, reason)),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            namespace: Some(pod.namespace.clone()),
            name: Some(pod.name.clone()),
            uid: Some(pod.uid.clone()),
            ..ObjectReference::default()
        },
        type_: Some(type_.into()),
        reason: Some(reason.into()),
        message: Some(message),
        source: Some(EventSource { component: Some(scheduler.to_owned()), host: None }),
        reporting_component: Some(scheduler.to_owned()),
        count: Some(1),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        ..Event::default()
    }
}

/// The same for the same pod and reason, and no longer than a name may be.
fn event_name(pod: &PodRef, reason: &str) -> String {
    let start: String = pod.name.chars().take(180).collect();
    format!("{}.{}.{}", start.trim_end_matches(['.', '-']), reason.to_lowercase(), pod.uid)
}

#[cfg(test)]
mod tests {
    use super::{PodRef, event_name};

    #[test]
    fn an_events_name_is_the_pods_with_reason_and_uid_and_not_too_long() {
        let check = |name: &str, expected: &str| {
            let pod = PodRef { namespace: "default".into(), name: name.into(), uid: "u-1".into() };
            assert_eq!(event_name(&pod, "Scheduled"), expected);
        };
        check("web-1", "web-1.scheduled.u-1");
        check(&"a".repeat(253), &format!("{}.scheduled.u-1", "a".repeat(180)));
        check(&format!("{}-b", "a".repeat(179)), &format!("{}.scheduled.u-1", "a".repeat(179)));
    }
}
