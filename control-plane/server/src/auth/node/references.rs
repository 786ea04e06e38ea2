//! The objects that a pod names: a board may read those of its pods.

use serde_json::Value;

/// What can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Secrets: volumes, environments, pulling images.
    Secret,
    /// ConfigMaps: volumes and environments.
    ConfigMap,
    /// Its service account.
    ServiceAccount,
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a pod names such an object of its namespace.
pub fn names(pod: &Value, what: Named, name: &str) -> bool {
    names_any(pod, what, |one| one == name)
}

/// Whether a pod names such an object of its namespace that `wanted` wants.
pub fn names_any(pod: &Value, what: Named, wanted: impl Fn(&str) -> bool) -> bool {
    let is = |object: &Value, pointer: &str| {
        object.pointer(pointer).and_then(Value::as_str).is_some_and(|name| !name.is_empty() && wanted(name))
    };
    let (volume, projected, environment, everything) = match what {
        Named::Secret => {
            ("/secret/secretName", "/secret/name", "/valueFrom/secretKeyRef/name", "/secretRef/name")
        }
        Named::ConfigMap => {
            ("/configMap/name", "/configMap/name", "/valueFrom/configMapKeyRef/name", "/configMapRef/name")
        }
        Named::ServiceAccount => return is(pod, "/spec/serviceAccountName"),
    };
    let by_volume = list(pod, "/spec/volumes").iter().any(|one| {
        is(one, volume) || list(one, "/projected/sources").iter().any(|source| is(source, projected))
    });
    let kinds = ["/spec/containers", "/spec/initContainers", "/spec/ephemeralContainers"];
    let by_container = kinds.iter().flat_map(|kind| list(pod, kind)).any(|container| {
        list(container, "/env").iter().any(|one| is(one, environment))
            || list(container, "/envFrom").iter().any(|one| is(one, everything))
    });
    let by_pulling =
        what == Named::Secret && list(pod, "/spec/imagePullSecrets").iter().any(|one| is(one, "/name"));
    by_volume || by_container || by_pulling
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_place_where_a_pod_names_something_counts() {
        let pod = |spec: Value| json!({"spec": spec});
        let env = |reference: &str| json!({"env": [{"name": "E", "valueFrom": {reference: {"name": "x", "key": "k"}}}]});
        let from = |reference: &str| json!({"envFrom": [{reference: {"name": "x"}}]});
        let check = |spec: Value, what: Named| {
            assert!(names(&pod(spec.clone()), what, "x"), "{spec}");
            assert!(!names(&pod(spec.clone()), what, "y"), "{spec}");
            let other = if what == Named::Secret { Named::ConfigMap } else { Named::Secret };
            assert!(!names(&pod(spec.clone()), other, "x"), "{spec}");
        };
        check(json!({"volumes": [{"secret": {"secretName": "x"}}]}), Named::Secret);
        check(json!({"volumes": [{"projected": {"sources": [{"secret": {"name": "x"}}]}}]}), Named::Secret);
        check(json!({"containers": [env("secretKeyRef")]}), Named::Secret);
        check(json!({"initContainers": [from("secretRef")]}), Named::Secret);
        check(json!({"imagePullSecrets": [{"name": "x"}]}), Named::Secret);
        check(json!({"volumes": [{"configMap": {"name": "x"}}]}), Named::ConfigMap);
        check(
            json!({"volumes": [{"projected": {"sources": [{"configMap": {"name": "x"}}]}}]}),
            Named::ConfigMap,
        );
        check(json!({"containers": [{}, env("configMapKeyRef")]}), Named::ConfigMap);
        check(json!({"ephemeralContainers": [from("configMapRef")]}), Named::ConfigMap);
        check(json!({"serviceAccountName": "x"}), Named::ServiceAccount);
    }
}
