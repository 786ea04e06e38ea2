//! Roles, bindings and priority classes: what is filled in, every refusal, and what never changes.

use serde_json::{Value, json};

use super::tests::{changed, context, create, kind, refused, update, update_refused};
use super::{Identity, admit_default_class, prepare_create, system_classes};
use crate::decode::Dialect;

/// Expects a create to be refused with that list of causes.
fn invalid(resource: &str, subject: &str, body: Value, causes: &str) {
    refused(Dialect::Kube32, resource, body, 422, &format!("{subject} is invalid: {causes}"));
}

fn rule() -> Value {
    json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})
}

#[test]
fn roles_keep_what_they_are_given() {
    let role = json!({"metadata": {"name": "system:a"}, "rules": [rule()]});
    let made = create("clusterroles", role.clone()).unwrap();
    assert_eq!(made["rules"], role["rules"]);
    assert!(made["metadata"].get("generation").is_none());
    let aggregation = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let body = json!({"metadata": {"name": "sum"}, "aggregationRule": aggregation});
    let made = create("clusterroles", body).unwrap();
    assert_eq!((&made["aggregationRule"], &made["rules"]), (&aggregation, &Value::Null));
    let urls = json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]});
    assert!(create("clusterroles", json!({"metadata": {"name": "a"}, "rules": [urls]})).is_ok());
}

#[test]
fn rules_are_checked() {
    let role = |rule: Value| json!({"metadata": {"name": "r"}, "rules": [rule]});
    let subject = "Role.rbac.authorization.k8s.io \"r\"";
    let cases = [
        (json!({"verbs": []}), "rules[0].verbs: Required value: verbs must contain at least one value"),
        (
            json!({"apiGroups": []}),
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        ),
        (
            json!({"resources": []}),
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ),
        (
            json!({"nonResourceURLs": ["/a", "/b"]}),
            "[rules[0].nonResourceURLs: Invalid value: []string{\"/a\", \"/b\"}: namespaced rules cannot apply to \
             non-resource URLs, rules[0].nonResourceURLs: Invalid value: []string{\"/a\", \"/b\"}: rules cannot apply to \
             both regular resources and non-resource URLs]",
        ),
    ];
    for (change, causes) in cases {
        invalid("roles", subject, role(changed(&rule(), change)), causes);
    }
    let subject = "ClusterRole.rbac.authorization.k8s.io \"r\"";
    let aggregating = |rule: Value| json!({"metadata": {"name": "r"}, "aggregationRule": rule});
    invalid(
        "clusterroles",
        subject,
        aggregating(json!({})),
        "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if \
         aggregationRule is non-nil",
    );
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    invalid(
        "clusterroles",
        subject,
        aggregating(json!({"clusterRoleSelectors": [selector]})),
        "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: \"Near\": not a valid \
         selector operator",
    );
    let named = json!({"metadata": {"name": "a/b"}, "rules": [rule()]});
    invalid(
        "roles",
        "Role.rbac.authorization.k8s.io \"a/b\"",
        named,
        "metadata.name: Invalid value: \"a/b\": may not contain '/'",
    );
}

fn binding() -> Value {
    json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "jane"}, {"kind": "ServiceAccount", "name": "s", "namespace": "ns"}],
    })
}

#[test]
fn bindings_are_filled_in_and_keep_their_role() {
    let ungrouped = changed(&binding(), json!({"roleRef": {"apiGroup": null}}));
    let made = create("rolebindings", ungrouped).unwrap();
    let group = "rbac.authorization.k8s.io";
    assert_eq!(made["roleRef"], json!({"apiGroup": group, "kind": "ClusterRole", "name": "view"}));
    assert_eq!(
        made["subjects"],
        json!([
            {"apiGroup": group, "kind": "User", "name": "jane"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "ns"},
        ])
    );
    assert!(update("rolebindings", &made, json!({"subjects": null})).is_ok());
    update_refused(
        "rolebindings",
        &made,
        json!({"roleRef": {"name": "edit"}}),
        "RoleBinding.rbac.authorization.k8s.io \"b\" is invalid: roleRef: Invalid value: \
         rbac.RoleRef{APIGroup:\"rbac.authorization.k8s.io\", Kind:\"ClusterRole\", Name:\"edit\"}: cannot change roleRef",
    );
}

#[test]
fn bindings_are_checked() {
    let subject = |subject: Value| json!({"subjects": [subject]});
    let cases = [
        (
            json!({"roleRef": {"apiGroup": "x"}}),
            "roleRef.apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
        ),
        (
            json!({"roleRef": {"kind": "Group"}}),
            "roleRef.kind: Unsupported value: \"Group\": supported values: \"Role\", \"ClusterRole\"",
        ),
        (json!({"roleRef": {"name": ""}}), "roleRef.name: Required value"),
        (json!({"roleRef": {"name": "a%b"}}), "roleRef.name: Invalid value: \"a%b\": may not contain '%'"),
        (
            subject(json!({"kind": "User", "name": ""})),
            "[subjects[0].name: Required value, subjects[0].name: Invalid value: \"\": user name cannot be empty]",
        ),
        (
            subject(json!({"kind": "Group", "name": ""})),
            "[subjects[0].name: Required value, subjects[0].name: Invalid value: \"\": group name cannot be empty]",
        ),
        (
            subject(json!({"kind": "User", "name": "a", "apiGroup": "x"})),
            "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
        ),
        (
            subject(json!({"kind": "Robot", "name": "a"})),
            "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
        ),
        (
            subject(json!({"kind": "ServiceAccount", "name": "a", "apiGroup": "x"})),
            "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"\"",
        ),
    ];
    for (change, causes) in cases {
        let subject = "RoleBinding.rbac.authorization.k8s.io \"b\"";
        invalid("rolebindings", subject, changed(&binding(), change), causes);
    }
    let homeless = subject(json!({"kind": "ServiceAccount", "name": "a"}));
    assert!(create("rolebindings", changed(&binding(), homeless.clone())).is_ok());
    let everywhere = "ClusterRoleBinding.rbac.authorization.k8s.io \"b\"";
    invalid(
        "clusterrolebindings",
        everywhere,
        changed(&binding(), homeless),
        "subjects[0].namespace: Required value",
    );
    invalid(
        "clusterrolebindings",
        everywhere,
        changed(&binding(), json!({"roleRef": {"kind": "Role"}})),
        "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
    );
}

fn class(name: &str, value: i64) -> Value {
    json!({"metadata": {"name": name}, "value": value})
}

#[test]
fn priority_classes_are_checked_and_keep_their_value() {
    let made = create("priorityclasses", class("high", 1000)).unwrap();
    assert_eq!(
        (&made["value"], &made["preemptionPolicy"], &made["metadata"]["generation"]),
        (&json!(1000), &json!("PreemptLowerPriority"), &json!(1))
    );
    let described = update("priorityclasses", &made, json!({"description": "d"})).unwrap();
    assert_eq!(described["metadata"]["generation"], 1);
    let subject = "PriorityClass.scheduling.k8s.io \"high\"";
    for (change, causes) in [
        (json!({"value": 1}), "value: Forbidden: may not be changed in an update."),
        (
            json!({"preemptionPolicy": "Never"}),
            "preemptionPolicy: Invalid value: \"Never\": field is immutable",
        ),
    ] {
        update_refused("priorityclasses", &made, change, &format!("{subject} is invalid: {causes}"));
    }
    let system = "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use \
                  only. error: ";
    for (body, causes) in [
        (class("high", 1_000_000_001), "value: Forbidden: maximum allowed value of a user defined priority is 1000000000".to_owned()),
        (
            changed(&class("high", 1), json!({"preemptionPolicy": "x"})),
            "preemptionPolicy: Unsupported value: \"x\": supported values: \"PreemptLowerPriority\", \"Never\"".to_owned(),
        ),
        (class("system-x", 1), format!("{system}system-x is not a known system priority class")),
        (
            class("system-node-critical", 1),
            format!("{system}value of system-node-critical PriorityClass must be 2000001000"),
        ),
        (
            changed(&class("system-node-critical", 2_000_001_000), json!({"globalDefault": true})),
            format!("{system}globalDefault of system-node-critical PriorityClass must be false"),
        ),
    ] {
        let name = body["metadata"]["name"].as_str().unwrap();
        invalid("priorityclasses", &format!("PriorityClass.scheduling.k8s.io \"{name}\""), body.clone(), &causes);
    }
    for class in system_classes() {
        assert!(create("priorityclasses", class).is_ok());
    }
}

#[test]
fn there_is_one_default_class() {
    let default = |name: &str| changed(&class(name, 1), json!({"globalDefault": true}));
    let present = [class("a", 5), default("b")];
    assert!(admit_default_class(&class("c", 1), true, present.iter()).is_ok());
    assert!(admit_default_class(&default("b"), false, present.iter()).is_ok());
    for new in [true, false] {
        let error = admit_default_class(&default("c"), new, present.iter()).unwrap_err();
        let message = "priorityclasses.scheduling.k8s.io \"c\" is forbidden: PriorityClass b is already marked as default. \
                       Only one default can exist";
        assert_eq!((error.code, error.message.as_str()), (403, message));
    }
    assert!(admit_default_class(&default("c"), true, present[..1].iter()).is_ok());
}

#[test]
fn pods_get_the_priority_of_their_class() {
    let classes = [
        class("high", 1000),
        changed(&class("calm", 7), json!({"globalDefault": true, "preemptionPolicy": "Never"})),
    ];
    let make = |spec: Value| {
        let identity = Identity { uid: "u", name_suffix: "", cluster_ip: None, classes: &classes };
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let pod = changed(&pod, json!({"spec": spec}));
        prepare_create(kind("pods"), Some("ns"), pod, &identity, &context(Dialect::Kube32))
    };
    let given = |spec: Value| {
        let pod = make(spec).unwrap();
        let field = |name: &str| pod["spec"][name].clone();
        (field("priorityClassName"), field("priority"), field("preemptionPolicy"))
    };
    let lower = json!("PreemptLowerPriority");
    assert_eq!(given(json!({"priorityClassName": "high"})), (json!("high"), json!(1000), lower.clone()));
    assert_eq!(given(json!({})), (json!("calm"), json!(7), json!("Never")));
    let system = "system-node-critical";
    assert_eq!(given(json!({"priorityClassName": system})), (json!(system), json!(2_000_001_000), lower));
    assert_eq!(given(json!({"priorityClassName": "high", "priority": 1000})).1, 1000);
    let error = make(json!({"preemptionPolicy": "PreemptLowerPriority"})).unwrap_err();
    let message = "pods \"p\" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be \
                   provided in pod spec; priority admission controller computed Never from the given PriorityClass name";
    assert_eq!((error.code, error.message.as_str()), (403, message));
}
