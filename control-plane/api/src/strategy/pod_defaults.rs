//! What a pod spec gets when it does not say: the defaults of Kubernetes and the tolerations of admission (NODE-13).

use serde_json::{Map, Value, json};

use crate::json::{self, set_default};

/// Fills in the defaults that pods and pod templates share.
pub(super) fn pod_spec(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        for each in list_mut(spec, list) {
            container(each);
        }
    }
    for volume in list_mut(spec, "volumes") {
        default_volume(volume);
    }
    let map = json::object_mut(spec, &[]);
    set_default(map, "restartPolicy", "Always");
    set_default(map, "terminationGracePeriodSeconds", 30);
    set_default(map, "dnsPolicy", "ClusterFirst");
    set_default(map, "securityContext", json!({}));
    set_default(map, "schedulerName", "default-scheduler");
    // Two names for one field: Kubernetes keeps both in step.
    let account = match (map.get("serviceAccountName"), map.get("serviceAccount")) {
        (Some(name), _) => Some(name.clone()),
        (None, Some(name)) => Some(name.clone()),
        (None, None) => None,
    };
    if let Some(account) = account {
        map.insert("serviceAccountName".to_owned(), account.clone());
        map.insert("serviceAccount".to_owned(), account);
    }
}

/// Fills in what only a pod gets, not a template.
pub(super) fn pod(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in list_mut(spec, list) {
            let limits = json::object(container, &["resources", "limits"]).cloned().unwrap_or_default();
            if !limits.is_empty() {
                let requests = json::object_mut(container, &["resources", "requests"]);
                for (name, amount) in limits {
                    requests.entry(name).or_insert(amount);
                }
            }
        }
    }
    let map = json::object_mut(spec, &[]);
    set_default(map, "enableServiceLinks", true);
    set_default(map, "preemptionPolicy", "PreemptLowerPriority");
}

/// Adds the not-ready and unreachable tolerations of `seconds` where the pod does not tolerate those taints yet.
pub(super) fn tolerations(spec: &mut Value, seconds: i64) {
    let present = json::list(spec, &["tolerations"]).to_vec();
    let mut added = Vec::new();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = present.iter().any(|one| {
            [key, ""].contains(&json::text(one, &["key"]))
                && matches!(json::text(one, &["effect"]), "" | "NoExecute")
        });
        if !tolerated {
            added.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds,
            }));
        }
    }
    if !added.is_empty() {
        let list: Vec<Value> = present.into_iter().chain(added).collect();
        json::object_mut(spec, &[]).insert("tolerations".to_owned(), Value::Array(list));
    }
}

fn container(container: &mut Value) {
    let always = pulls_always(json::text(container, &["image"]));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(Value::Object(probe)) = container.get_mut(probe) {
            default_probe(probe);
        }
    }
    for variable in list_mut(container, "env") {
        if let Some(Value::Object(field)) = variable.pointer_mut("/valueFrom/fieldRef") {
            set_default(field, "apiVersion", "v1");
        }
    }
    let map = json::object_mut(container, &[]);
    set_default(map, "resources", json!({}));
    set_default(map, "terminationMessagePath", "/dev/termination-log");
    set_default(map, "terminationMessagePolicy", "File");
    set_default(map, "imagePullPolicy", if always { "Always" } else { "IfNotPresent" });
    for port in list_mut(container, "ports") {
        set_default(json::object_mut(port, &[]), "protocol", "TCP");
    }
}

/// Whether an image is pulled at every start: its tag is `latest`, or it has neither tag nor digest.
fn pulls_always(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn default_probe(probe: &mut Map<String, Value>) {
    for (field, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        set_default(probe, field, value);
    }
    if let Some(Value::Object(get)) = probe.get_mut("httpGet") {
        set_default(get, "path", "/");
        set_default(get, "scheme", "HTTP");
    }
}

fn default_volume(volume: &mut Value) {
    let map = json::object_mut(volume, &[]);
    if map.keys().all(|key| key == "name") {
        map.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(Value::Object(source)) = map.get_mut(source) {
            set_default(source, "defaultMode", 0o644);
        }
    }
    if let Some(Value::Object(source)) = map.get_mut("hostPath") {
        set_default(source, "type", "");
    }
}

fn list_mut<'a>(value: &'a mut Value, name: &str) -> &'a mut [Value] {
    value.get_mut(name).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// The quality of service class of a pod spec, from its cpu and memory.
pub(super) fn qos_class(spec: &Value) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    for list in ["containers", "initContainers"] {
        for container in json::list(spec, &[list]) {
            for name in ["cpu", "memory"] {
                let amount = |field: &str| {
                    let text = json::text(container, &["resources", field, name]);
                    if matches!(text, "" | "0") { None } else { Some(text) }
                };
                any |= amount("requests").is_some() || amount("limits").is_some();
                guaranteed &= amount("limits").is_some() && amount("requests") == amount("limits");
            }
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_a_fixed_tag_are_always_pulled() {
        for (image, always) in [
            ("busybox", true),
            ("busybox:latest", true),
            ("busybox:1", false),
            ("host:5000/busybox", true),
            ("host:5000/busybox:1", false),
            ("busybox@sha256:0", false),
            ("rigor.dev/pause", true),
        ] {
            assert_eq!(pulls_always(image), always, "{image}");
        }
    }

    #[test]
    fn tolerations_are_added_unless_tolerated() {
        let added = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9});
        let (not_ready, unreachable) =
            (added("node.kubernetes.io/not-ready"), added("node.kubernetes.io/unreachable"));
        let own =
            json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 1});
        let other =
            json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "operator": "Exists"});
        let cases = [
            (json!([]), json!([not_ready, unreachable])),
            (json!([own]), json!([own, unreachable])),
            (json!([other]), json!([other, not_ready, unreachable])),
            (json!([{"operator": "Exists"}]), json!([{"operator": "Exists"}])),
            (json!([{"key": "x"}]), json!([{"key": "x"}, not_ready, unreachable])),
        ];
        for (before, after) in cases {
            let mut spec = json!({"tolerations": before});
            tolerations(&mut spec, 9);
            assert_eq!(spec["tolerations"], after);
        }
    }

    #[test]
    fn quality_of_service() {
        let full = json!({"cpu": "1", "memory": "1Mi"});
        for (resources, expected) in [
            (json!({}), "BestEffort"),
            (json!({"requests": {"esp32.io/gpio": "1"}}), "BestEffort"),
            (json!({"requests": {"memory": "1Mi"}}), "Burstable"),
            (json!({"requests": full, "limits": full}), "Guaranteed"),
            (json!({"requests": {"cpu": "1", "memory": "2Mi"}, "limits": full}), "Burstable"),
        ] {
            assert_eq!(
                qos_class(&json!({"containers": [{"resources": resources}]})),
                expected,
                "{resources}"
            );
        }
    }
}
