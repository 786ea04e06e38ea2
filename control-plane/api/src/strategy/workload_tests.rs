//! DaemonSets and Jobs: what is filled in, every refusal, and what never changes. And the kinds that are only kept.

use serde_json::{Value, json};

use super::tests::{changed, context, create, kind, refused, update, update_refused};
use super::{prepare_status_update, prepare_update};
use crate::decode::Dialect;
use crate::kinds;

fn invalid(kind: &str, resource: &str, body: Value, causes: &str) {
    refused(Dialect::Kube32, resource, body, 422, &format!("{kind} \"w\" is invalid: {causes}"));
}

fn daemon_set() -> Value {
    json!({"metadata": {"name": "w"}, "spec": {
        "selector": {"matchLabels": {"app": "w"}},
        "template": {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
    }})
}

#[test]
fn daemon_sets_count_their_templates() {
    let made = create("daemonsets", daemon_set()).unwrap();
    let count = |object: &Value| {
        object["metadata"]["annotations"]["deprecated.daemonset.template.generation"].clone()
    };
    assert_eq!(count(&made), "1");
    assert_eq!(
        made["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
    );
    assert_eq!(made["spec"]["revisionHistoryLimit"], 10);
    assert_eq!(
        made["status"],
        json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0})
    );
    let selected = json!({"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}});
    let changed = update("daemonsets", &made, selected).unwrap();
    assert_eq!((count(&changed), &changed["metadata"]["generation"]), (json!("2"), &json!(2)));
    let later = update("daemonsets", &changed, json!({"spec": {"minReadySeconds": 5}})).unwrap();
    assert_eq!((count(&later), &later["metadata"]["generation"]), (json!("2"), &json!(3)));
    let cleared = update("daemonsets", &later, json!({"metadata": {"annotations": null}})).unwrap();
    assert_eq!(count(&cleared), "2");
}

#[test]
fn daemon_sets_are_checked() {
    let rolling = |update: Value| json!({"spec": {"updateStrategy": {"rollingUpdate": update}}});
    let path = "spec.updateStrategy.rollingUpdate";
    let cases = [
        (json!({"spec": {"selector": null}}), "spec.selector: Required value".to_owned()),
        (
            json!({"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}),
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"".to_owned(),
        ),
        (
            rolling(json!({"maxSurge": 1})),
            format!(
                "{path}.maxSurge: Invalid value: intstr.IntOrString{{Type:0, IntVal:1, StrVal:\"\"}}: may not be set when \
                 maxUnavailable is non-zero"
            ),
        ),
        (
            rolling(json!({"maxUnavailable": 0})),
            format!("{path}.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"),
        ),
        (
            rolling(json!({"maxUnavailable": "101%"})),
            format!(
                "{path}.maxUnavailable: Invalid value: intstr.IntOrString{{Type:1, IntVal:0, StrVal:\"101%\"}}: must not be \
                 greater than 100%"
            ),
        ),
        (
            json!({"spec": {"updateStrategy": {"type": "Never"}}}),
            "spec.updateStrategy: Unsupported value: apps.DaemonSetUpdateStrategy{Type:\"Never\", \
             RollingUpdate:(*apps.RollingUpdateDaemonSet)(nil)}: supported values: \"RollingUpdate\", \"OnDelete\""
                .to_owned(),
        ),
        (
            json!({"spec": {"minReadySeconds": -1}}),
            "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0".to_owned(),
        ),
        (
            json!({"spec": {"revisionHistoryLimit": -1}}),
            "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0".to_owned(),
        ),
    ];
    for (change, causes) in cases {
        let body = changed(&daemon_set(), change);
        if causes.starts_with("spec.selector: Required") {
            // Without a selector the template's labels match nothing either.
            let causes = format!(
                "[{causes}, spec.template.metadata.labels: Invalid value: map[string]string{{\"app\":\"w\"}}: `selector` does \
                 not match template `labels`]"
            );
            invalid("DaemonSet.apps", "daemonsets", body, &causes);
        } else {
            invalid("DaemonSet.apps", "daemonsets", body, &causes);
        }
    }
}

fn job() -> Value {
    json!({"metadata": {"name": "w"}, "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}},
    }})
}

fn job_with(spec: Value) -> Value {
    changed(&job(), json!({"spec": spec}))
}

#[test]
fn jobs_are_filled_in() {
    let spec = create("jobs", job()).unwrap()["spec"].clone();
    let expected = json!({
        "parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
        "manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
        "template": spec["template"],
    });
    assert_eq!(spec, expected);
    let parallel = create("jobs", job_with(json!({"parallelism": 3}))).unwrap();
    assert!(parallel["spec"].get("completions").is_none());
    let each = json!({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1});
    assert_eq!(create("jobs", job_with(each)).unwrap()["spec"]["backoffLimit"], 2_147_483_647);
    let own = json!({
        "manualSelector": true, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}},
    });
    assert_eq!(create("jobs", job_with(own)).unwrap()["metadata"]["labels"], json!({"a": "b"}));
}

#[test]
fn jobs_are_checked() {
    let indexed = |spec: Value| changed(&json!({"completionMode": "Indexed", "completions": 3}), spec);
    let negative = |field: &str| {
        (json!({field: -1}), format!("spec.{field}: Invalid value: -1: must be greater than or equal to 0"))
    };
    let mut cases = vec![
        negative("parallelism"),
        negative("completions"),
        negative("activeDeadlineSeconds"),
        negative("backoffLimit"),
        negative("ttlSecondsAfterFinished"),
    ];
    let more = [
        (
            json!({"completionMode": "Some"}),
            "spec.completionMode: Unsupported value: \"Some\": supported values: \"NonIndexed\", \"Indexed\"",
        ),
        (
            json!({"completionMode": "Indexed", "parallelism": 2}),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            indexed(json!({"parallelism": 100_001})),
            "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed",
        ),
        (
            json!({"backoffLimitPerIndex": 1}),
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
        ),
        (
            indexed(json!({"maxFailedIndexes": 1})),
            "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
        ),
        (
            indexed(json!({"backoffLimitPerIndex": 1, "maxFailedIndexes": 4})),
            "spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions",
        ),
        (
            indexed(json!({"completions": 100_001, "backoffLimitPerIndex": 1})),
            "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
        ),
        (
            indexed(json!({"completions": 100_001, "backoffLimitPerIndex": 1, "maxFailedIndexes": 10_001})),
            "spec.maxFailedIndexes: Invalid value: 10001: must be less than or equal to 10000 when completions are above \
             100000 and used with backoff limit per index",
        ),
        (
            json!({"podReplacementPolicy": "x"}),
            "spec.podReplacementPolicy: Unsupported value: \"x\": supported values: \"Failed\", \"TerminatingOrFailed\"",
        ),
        (
            json!({"podFailurePolicy": {"rules": []}, "podReplacementPolicy": "TerminatingOrFailed"}),
            "spec.podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported values: \"Failed\"",
        ),
        (
            json!({"podFailurePolicy": {"rules": []}, "template": {"spec": {"restartPolicy": "OnFailure"}}}),
            "spec.template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is supported when \
             podFailurePolicy is specified",
        ),
        (
            json!({"template": {"spec": {"restartPolicy": null}}}),
            "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ),
        (
            json!({"selector": {"matchLabels": {"a": "b"}}}),
            "[spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{\"a\":\"b\", \
             \"batch.kubernetes.io/controller-uid\":\"u1\"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: `selector` \
             not auto-generated, spec.template.metadata.labels: Invalid value: \
             map[string]string{\"batch.kubernetes.io/controller-uid\":\"u1\", \"batch.kubernetes.io/job-name\":\"w\", \
             \"controller-uid\":\"u1\", \"job-name\":\"w\"}: `selector` does not match template `labels`]",
        ),
        (json!({"manualSelector": true}), "spec.selector: Required value"),
    ];
    cases.extend(more.map(|(spec, causes)| (spec, causes.to_owned())));
    for (spec, causes) in cases {
        invalid("Job.batch", "jobs", job_with(spec), &causes);
    }
    let long = "w".repeat(62);
    let body = changed(&job_with(indexed(json!({}))), json!({"metadata": {"name": long}}));
    refused(
        Dialect::Kube32,
        "jobs",
        body,
        422,
        &format!(
            "Job.batch \"{long}\" is invalid: metadata.name: Invalid value: \"{long}\": will not able to create pod with \
             invalid DNS label: must be no more than 63 characters"
        ),
    );
}

#[test]
fn little_of_a_job_can_change() {
    let made = create("jobs", job()).unwrap();
    let subject = "Job.batch \"w\" is invalid: ";
    for (change, causes) in [
        (json!({"completions": 9}), "spec.completions: Invalid value: 9: field is immutable"),
        (
            json!({"completionMode": "Indexed"}),
            "spec.completionMode: Invalid value: \"Indexed\": field is immutable",
        ),
        (json!({"managedBy": "a/b"}), "spec.managedBy: Invalid value: \"a/b\": field is immutable"),
        (
            json!({"template": {"spec": {"containers": [{"name": "c", "image": "j:1"}]}}}),
            "spec.template: Invalid value: ",
        ),
        (json!({"template": {"spec": {"nodeSelector": {"a": "b"}}}}), "spec.template: Invalid value: "),
    ] {
        update_refused("jobs", &made, json!({"spec": change}), &format!("{subject}{causes}"));
    }
    for change in [
        json!({"parallelism": 5}),
        json!({"suspend": true}),
        json!({"backoffLimit": 0}),
        json!({"activeDeadlineSeconds": 9}),
        json!({"ttlSecondsAfterFinished": 1}),
    ] {
        let next = update("jobs", &made, json!({"spec": change})).unwrap();
        assert_eq!(next["metadata"]["generation"], 2, "{change}");
    }

    let waiting = create("jobs", job_with(json!({"suspend": true}))).unwrap();
    let moved = json!({"spec": {"template": {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
    }}});
    assert!(update("jobs", &waiting, moved.clone()).is_ok());
    let begun = changed(&waiting, json!({"status": {"startTime": "2026-11-29T12:00:50Z"}}));
    update_refused("jobs", &begun, moved, &format!("{subject}spec.template: Invalid value: "));
    let apart = json!({"spec": {"template": {"spec": {"affinity": {"podAntiAffinity": {}}}}}});
    update_refused("jobs", &waiting, apart, &format!("{subject}spec.template: Invalid value: "));

    let indexed = create("jobs", job_with(json!({"completionMode": "Indexed", "completions": 3}))).unwrap();
    assert!(update("jobs", &indexed, json!({"spec": {"completions": 5, "parallelism": 5}})).is_ok());
    update_refused(
        "jobs",
        &indexed,
        json!({"spec": {"completions": 5}}),
        &format!(
            "{subject}spec.completions: Invalid value: 5: can only be modified in tandem with spec.parallelism"
        ),
    );
}

/// An object of a kind that is only kept, with no more than its kind must have.
fn bare(kind: &kinds::Kind) -> Value {
    json!({"metadata": {"name": "w"}, "apiVersion": kind.api_version(), "kind": kind.kind})
}

#[test]
fn every_kind_without_rules_of_its_own_is_kept_as_it_is_sent() {
    let own = [
        "configmaps",
        "daemonsets",
        "deployments",
        "endpointslices",
        "events",
        "jobs",
        "namespaces",
        "pods",
        "replicasets",
        "secrets",
        "services",
        "priorityclasses",
        "clusterrolebindings",
        "rolebindings",
    ];
    let mut kept = 0;
    for kind in kinds::all().iter().filter(|kind| kind.is_stored() && !own.contains(&kind.resource)) {
        let made = create(kind.resource, bare(kind))
            .unwrap_or_else(|why| panic!("{}: {}", kind.plural, why.message));
        assert_eq!(made["metadata"]["uid"], "u1", "{}", kind.plural);
        assert_eq!(made["metadata"].get("generation").is_some(), kind.generation, "{}", kind.plural);
        let same = update(kind.resource, &made, json!({})).unwrap();
        assert_eq!(same, made, "{}", kind.plural);
        let bad = changed(&bare(kind), json!({"metadata": {"labels": {"a b": "c"}}}));
        assert_eq!(create(kind.resource, bad).unwrap_err().code, 422, "{}", kind.plural);
        kept += 1;
    }
    assert!(kept > 30, "{kept}");
}

#[test]
fn what_clients_count_on_is_filled_in() {
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let body = json!({"metadata": {"name": "w"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "v"}}],
    }});
    let made = create("statefulsets", body).unwrap();
    let spec = &made["spec"];
    assert_eq!((&spec["replicas"], &spec["podManagementPolicy"]), (&json!(1), &json!("OrderedReady")));
    assert_eq!(spec["updateStrategy"], json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}));
    assert_eq!(spec["template"]["spec"]["restartPolicy"], "Always");
    assert_eq!(spec["volumeClaimTemplates"][0]["spec"]["volumeMode"], "Filesystem");
    assert_eq!(made["status"], json!({"availableReplicas": 0, "replicas": 0}));
    let scaled =
        update("statefulsets", &made, json!({"spec": {"replicas": 3}, "status": {"replicas": 9}})).unwrap();
    assert_eq!((&scaled["metadata"]["generation"], &scaled["status"]), (&json!(2), &made["status"]));
    let told = changed(&scaled, json!({"status": {"replicas": 3}, "spec": {"replicas": 1}}));
    let told = prepare_status_update(kind("statefulsets"), &scaled, told, &context(Dialect::Kube32)).unwrap();
    assert_eq!((&told["status"]["replicas"], &told["spec"]["replicas"]), (&json!(3), &json!(3)));

    let body = json!({"metadata": {"name": "w"}, "spec": {
        "schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}},
    }});
    let made = create("cronjobs", body).unwrap();
    let spec = &made["spec"];
    assert_eq!((&spec["concurrencyPolicy"], &spec["suspend"]), (&json!("Allow"), &json!(false)));
    assert_eq!(
        (&spec["successfulJobsHistoryLimit"], &spec["failedJobsHistoryLimit"]),
        (&json!(3), &json!(1))
    );

    let claim =
        json!({"metadata": {"name": "w"}, "spec": {"storageClassName": ""}, "status": {"phase": "Bound"}});
    let made = create("persistentvolumeclaims", claim).unwrap();
    assert_eq!(
        (&made["spec"], &made["status"]),
        (
            &json!({"resources": {}, "storageClassName": "", "volumeMode": "Filesystem"}),
            &json!({"phase": "Pending"})
        )
    );
    let same = prepare_update(kind("persistentvolumeclaims"), &made, made.clone(), &context(Dialect::Kube32))
        .unwrap();
    assert_eq!(same, made);
}
