//! Rows as Kubernetes 1.32 prints them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::kinds;

fn now() -> Timestamp {
    "2026-11-29T12:10:29Z".parse().unwrap()
}

/// A table as text: the column names with their priorities, then the cells of each row.
fn render(resource: &str, items: Value) -> String {
    let kind = kinds::by_resource(resource).unwrap();
    let shown = table(kind, &json!({"metadata": {}, "items": items}), now(), IncludeObject::None);
    let columns = shown["columnDefinitions"].as_array().unwrap();
    let heads = columns.iter().map(|column| {
        let wide = if column["priority"] == 0 { "" } else { "*" };
        format!("{}{wide}", column["name"].as_str().unwrap())
    });
    let mut text = heads.collect::<Vec<_>>().join(" | ");
    for row in shown["rows"].as_array().unwrap() {
        let cells = row["cells"].as_array().unwrap();
        assert_eq!(cells.len(), columns.len());
        let cells = cells.iter().map(|cell| match cell {
            Value::String(text) => text.clone(),
            other => format!("#{other}"),
        });
        text.push('\n');
        text.push_str(&cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

fn meta(name: &str, created: &str) -> Value {
    json!({"name": name, "creationTimestamp": created})
}

fn pod(name: &str, change: Value) -> Value {
    let mut pod = json!({
        "metadata": meta(name, "2026-11-29T12:10:18Z"),
        "spec": {"nodeName": "hollow-0", "containers": [{"name": "c"}]},
        "status": {
            "phase": "Running",
            "podIP": "10.244.0.88",
            "podIPs": [{"ip": "10.244.0.88"}],
            "containerStatuses": [{"name": "c", "ready": true, "restartCount": 0, "state": {"running": {}}}],
        },
    });
    json_patch::merge(&mut pod, &change);
    pod
}

fn statuses(status: Value) -> Value {
    json!({"status": {"containerStatuses": [status]}})
}

#[test]
fn pods() {
    let ended =
        json!({"terminated": {"reason": "Error", "exitCode": 1, "finishedAt": "2026-11-29T12:10:00Z"}});
    let items = json!([
        pod("running", json!({})),
        pod(
            "pending",
            json!({"spec": {"nodeName": null}, "status": {"phase": "Pending", "podIP": null, "podIPs": null, "containerStatuses": null}})
        ),
        pod(
            "gated",
            json!({"spec": {"nodeName": null}, "status": {
                "phase": "Pending", "podIP": null, "podIPs": null, "containerStatuses": null,
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            }})
        ),
        pod("waiting", statuses(json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}}))),
        pod(
            "restarted",
            statuses(json!({"ready": true, "restartCount": 3, "state": {"running": {}}, "lastState": ended}))
        ),
        pod(
            "completed",
            json!({"status": {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}]}})
        ),
        pod(
            "exited",
            json!({"status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 7}}}]}})
        ),
        pod("signalled", statuses(json!({"state": {"terminated": {"exitCode": 137, "signal": 9}}}))),
        pod(
            "evicted",
            json!({"status": {"phase": "Pending", "reason": "Evicted", "containerStatuses": null}})
        ),
        pod("going", json!({"metadata": {"deletionTimestamp": "2026-11-29T12:10:20Z"}})),
        pod(
            "lost",
            json!({"metadata": {"deletionTimestamp": "2026-11-29T12:10:20Z"}, "status": {"reason": "NodeLost"}})
        ),
        pod(
            "init",
            json!({"spec": {"initContainers": [{"name": "i"}, {"name": "j"}]}, "status": {
                "phase": "Pending", "initContainerStatuses": [{"restartCount": 1, "state": {"running": {}}}], "containerStatuses": null,
            }})
        ),
        pod(
            "init-failed",
            json!({"spec": {"initContainers": [{"name": "i"}]}, "status": {
                "phase": "Pending", "initContainerStatuses": [{"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}], "containerStatuses": null,
            }})
        ),
    ]);
    insta::assert_snapshot!(render("pods", items), @r"
    Name | Ready | Status | Restarts | Age | IP* | Node* | Nominated Node* | Readiness Gates*
    running | 1/1 | Running | 0 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    pending | 0/1 | Pending | 0 | 11s | <none> | <none> | <none> | <none>
    gated | 0/1 | SchedulingGated | 0 | 11s | <none> | <none> | <none> | <none>
    waiting | 0/1 | ImagePullBackOff | 0 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    restarted | 1/1 | Running | 3 (29s ago) | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    completed | 0/1 | Completed | 0 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    exited | 0/1 | ExitCode:7 | 0 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    signalled | 0/1 | Signal:9 | 0 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    evicted | 0/1 | Evicted | 0 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    going | 1/1 | Terminating | 0 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    lost | 1/1 | Unknown | 0 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    init | 0/1 | Init:0/2 | 1 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    init-failed | 0/1 | Init:CrashLoopBackOff | 2 | 11s | 10.244.0.88 | hollow-0 | <none> | <none>
    ");
}

#[test]
fn nodes() {
    let items = json!([
        {
            "metadata": {"name": "hollow-0", "creationTimestamp": "2026-11-29T12:02:21Z", "labels": {
                "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "board",
            }},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
                "nodeInfo": {
                    "kubeletVersion": "v1.32.4", "osImage": "Debian GNU/Linux 12 (bookworm)", "kernelVersion": "6.1.0",
                    "containerRuntimeVersion": "containerd://1.7.0",
                },
            },
        },
        {
            "metadata": meta("lost", "2026-11-29T12:02:21Z"), "spec": {"unschedulable": true},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        },
        {"metadata": meta("ghost", "2026-11-29T12:10:28Z")},
    ]);
    insta::assert_snapshot!(render("nodes", items), @r"
    Name | Status | Roles | Age | Version | Internal-IP* | External-IP* | OS-Image* | Kernel-Version* | Container-Runtime*
    hollow-0 | Ready | board,worker | 8m8s | v1.32.4 | 10.1.0.1 | <none> | Debian GNU/Linux 12 (bookworm) | 6.1.0 | containerd://1.7.0
    lost | NotReady,SchedulingDisabled | <none> | 8m8s |  | <none> | <none> | <unknown> | <unknown> | <unknown>
    ghost | Unknown | <none> | 1s |  | <none> | <none> | <unknown> | <unknown> | <unknown>
    ");
}

#[test]
fn workloads() {
    let template = json!({"spec": {"nodeSelector": {"role": "agent"}, "containers": [
        {"name": "c", "image": "nginx:2"}, {"name": "d", "image": "agent:1"},
    ]}});
    let selector = json!({"matchLabels": {"app": "web"}});
    let deployment = json!({
        "metadata": meta("web", "2026-11-29T12:02:11Z"),
        "spec": {"replicas": 7, "selector": selector, "template": template},
        "status": {"readyReplicas": 4, "updatedReplicas": 7, "availableReplicas": 4},
    });
    let idle = json!({"metadata": meta("idle", "2026-11-29T12:02:11Z"), "spec": {"replicas": 0}});
    insta::assert_snapshot!(render("deployments", json!([deployment, idle])), @r"
    Name | Ready | Up-to-date | Available | Age | Containers* | Images* | Selector*
    web | 4/7 | #7 | #4 | 8m18s | c,d | nginx:2,agent:1 | app=web
    idle | 0/0 | #0 | #0 | 8m18s |  |  | <none>
    ");
    insta::assert_snapshot!(render("replicasets", json!([deployment])), @r"
    Name | Desired | Current | Ready | Age | Containers* | Images* | Selector*
    web | #7 | #0 | #4 | 8m18s | c,d | nginx:2,agent:1 | app=web
    ");
    let mut daemons = deployment.clone();
    daemons["status"] = json!({"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 2});
    insta::assert_snapshot!(render("daemonsets", json!([daemons])), @r"
    Name | Desired | Current | Ready | Up-to-date | Available | Node Selector | Age | Containers* | Images* | Selector*
    web | #3 | #3 | #2 | #0 | #0 | role=agent | 8m18s | c,d | nginx:2,agent:1 | app=web
    ");
    let job = |name: &str, spec: Value, status: Value| json!({"metadata": meta(name, "2026-11-29T12:08:08Z"), "spec": spec, "status": status});
    let condition = |kind: &str| json!([{"type": kind, "status": "True"}]);
    let started = "2026-11-29T12:08:08Z";
    let jobs = json!([
        job(
            "bad",
            json!({"completions": 1}),
            json!({"conditions": condition("Failed"), "startTime": started})
        ),
        job(
            "done",
            json!({"completions": 4}),
            json!({
                "conditions": condition("Complete"), "succeeded": 4, "startTime": started, "completionTime": "2026-11-29T12:08:09Z",
            })
        ),
        job("queue", json!({"parallelism": 3}), json!({"succeeded": 1, "startTime": started})),
        job("waits", json!({"completions": 1}), json!({"conditions": condition("Suspended")})),
    ]);
    insta::assert_snapshot!(render("jobs", jobs), @r"
    Name | Status | Completions | Duration | Age | Containers* | Images* | Selector*
    bad | Failed | 0/1 | 2m21s | 2m21s |  |  | <none>
    done | Complete | 4/4 | 1s | 2m21s |  |  | <none>
    queue | Running | 1/1 of 3 | 2m21s | 2m21s |  |  | <none>
    waits | Suspended | 0/1 |  | 2m21s |  |  | <none>
    ");
}

#[test]
fn services() {
    let service =
        |name: &str, spec: Value| json!({"metadata": meta(name, "2026-11-29T12:00:29Z"), "spec": spec});
    let items = json!([
        service(
            "kubernetes",
            json!({
                "type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"],
                "ports": [{"port": 443, "protocol": "TCP"}],
            })
        ),
        service(
            "headless",
            json!({"type": "ClusterIP", "clusterIP": "None", "selector": {"app": "web", "tier": "x"}})
        ),
        service(
            "np",
            json!({"type": "NodePort", "clusterIP": "10.96.1.1", "externalIPs": ["1.2.3.4"], "ports": [
                {"port": 80, "nodePort": 30891, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"},
            ]})
        ),
        service("lb", json!({"type": "LoadBalancer", "clusterIP": "10.96.1.2"})),
        service("en", json!({"type": "ExternalName", "externalName": "example.com"})),
    ]);
    insta::assert_snapshot!(render("services", items), @r"
    Name | Type | Cluster-IP | External-IP | Port(s) | Age | Selector*
    kubernetes | ClusterIP | 10.96.0.1 | <none> | 443/TCP | 10m | <none>
    headless | ClusterIP | None | <none> | <none> | 10m | app=web,tier=x
    np | NodePort | 10.96.1.1 | 1.2.3.4 | 80:30891/TCP,53/UDP | 10m | <none>
    lb | LoadBalancer | 10.96.1.2 | <pending> | <none> | 10m | <none>
    en | ExternalName | <none> | example.com | <none> | 10m | <none>
    ");
}

#[test]
fn events_in_both_groups() {
    let items = json!([
        {
            "metadata": {"name": "a.1"}, "type": "Normal", "reason": "Scheduled", "message": " m ",
            "involvedObject": {"kind": "Pod", "name": "a"}, "eventTime": "2026-11-29T12:06:17.000000Z",
            "firstTimestamp": null, "lastTimestamp": null, "reportingComponent": "default-scheduler", "reportingInstance": "vm",
        },
        {
            "metadata": {"name": "b.1"}, "type": "Warning", "reason": "FailedScheduling", "message": "no",
            "involvedObject": {"kind": "Pod", "name": "b", "fieldPath": "spec"}, "count": 5, "source": {"component": "s"},
            "firstTimestamp": "2026-11-29T12:00:29Z", "lastTimestamp": "2026-11-29T12:10:27Z",
        },
        {
            "metadata": {"name": "c.1"}, "type": "Normal", "reason": "R", "message": "m", "involvedObject": {"kind": "Node"},
            "eventTime": "2026-11-29T12:00:29Z", "series": {"count": 9, "lastObservedTime": "2026-11-29T12:10:19Z"},
        },
    ]);
    let core = render("events", items.clone());
    insta::assert_snapshot!(core, @r"
    Last Seen | Type | Reason | Object | Subobject* | Source* | Message | First Seen* | Count* | Name*
    4m12s | Normal | Scheduled | pod/a |  | default-scheduler, vm | m | 4m12s | #1 | a.1
    2s | Warning | FailedScheduling | pod/b | spec | s | no | 10m | #5 | b.1
    10s | Normal | R | node |  |  | m | 10m | #9 | c.1
    ");
    let kind = kinds::find("events.k8s.io", "v1", "events").unwrap();
    let shown: Vec<Value> = items.as_array().unwrap().iter().map(|item| views::to_view(kind, item)).collect();
    let other = table(kind, &json!({"items": shown}), now(), IncludeObject::None);
    let core =
        table(kinds::by_resource("events").unwrap(), &json!({"items": items}), now(), IncludeObject::None);
    assert_eq!(other["rows"], core["rows"]);
}

#[test]
fn small_kinds() {
    let at = "2026-11-29T12:10:19Z";
    let namespace = json!([{"metadata": meta("d", at), "status": {"phase": "Active"}}]);
    insta::assert_snapshot!(render("namespaces", namespace), @r"
    Name | Status | Age
    d | Active | 10s
    ");
    let map = json!([{"metadata": meta("m", at), "data": {"a": "", "b": ""}, "binaryData": {"c": ""}}]);
    insta::assert_snapshot!(render("configmaps", map), @r"
    Name | Data | Age
    m | #3 | 10s
    ");
    insta::assert_snapshot!(render("secrets", json!([{"metadata": meta("s", at), "type": "Opaque"}])), @r"
    Name | Type | Data | Age
    s | Opaque | #0 | 10s
    ");
    insta::assert_snapshot!(render("serviceaccounts", json!([{"metadata": meta("default", at)}])), @r"
    Name | Secrets | Age
    default | #0 | 10s
    ");
    let lease = json!([{"metadata": meta("a", at), "spec": {"holderIdentity": "a"}}]);
    insta::assert_snapshot!(render("leases", lease), @r"
    Name | Holder | Age
    a | a | 10s
    ");
}

#[test]
fn rows_carry_what_is_asked_for() {
    let kind = kinds::by_resource("pods").unwrap();
    let mut one = pod("a", json!({"status": {"phase": "Succeeded"}}));
    one["metadata"]["resourceVersion"] = json!("7");
    let with = |include| table(kind, &one, now(), include);
    assert_eq!(with(IncludeObject::None)["rows"][0]["object"], Value::Null);
    let expected =
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": one["metadata"]});
    assert_eq!(with(IncludeObject::Metadata)["rows"][0]["object"], expected);
    assert_eq!(partial_metadata(&one, false), expected);
    let whole = &with(IncludeObject::Object)["rows"][0]["object"];
    assert_eq!((&whole["kind"], &whole["spec"]), (&json!("Pod"), &one["spec"]));
    assert_eq!(with(IncludeObject::None)["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(with(IncludeObject::None)["rows"][0]["conditions"][0]["reason"], "Succeeded");

    let list = json!({"metadata": {"resourceVersion": "9", "continue": "x"}, "items": [one]});
    assert_eq!(table(kind, &list, now(), IncludeObject::None)["metadata"], list["metadata"]);
    assert_eq!(partial_metadata(&list, true)["items"], json!([expected]));
    assert_eq!(partial_metadata(&list, true)["kind"], "PartialObjectMetadataList");
}

#[test]
fn include_object_parameter() {
    let parse = |value: &str| IncludeObject::parse(&[("includeObject".to_owned(), value.to_owned())]);
    assert_eq!(IncludeObject::parse(&[]), Ok(IncludeObject::Metadata));
    assert_eq!(parse("None"), Ok(IncludeObject::None));
    assert_eq!(parse("Object"), Ok(IncludeObject::Object));
    assert_eq!(
        parse("x").unwrap_err().message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', 'None', or empty"
    );
}

#[test]
fn endpoints_and_slices() {
    let at = "2026-11-29T12:10:19Z";
    let address = |ip: &str| json!({"ip": ip});
    let ready = json!([
        {"metadata": meta("none", at)},
        {"metadata": meta("waiting", at), "subsets": [{"notReadyAddresses": [address("10.1.1.1")], "ports": [{"port": 80}]}]},
        {"metadata": meta("bare", at), "subsets": [{"addresses": [address("10.1.1.1"), address("10.1.1.2")]}]},
        {"metadata": meta("many", at), "subsets": [
            {"addresses": [address("10.1.1.1"), address("fd00::1")], "ports": [{"port": 80}, {"port": 81}]},
        ]},
    ]);
    insta::assert_snapshot!(render("endpoints", ready), @r"
    Name | Endpoints | Age
    none | <none> | 10s
    waiting |  | 10s
    bare | 10.1.1.1,10.1.1.2 | 10s
    many | 10.1.1.1:80,[fd00::1]:80,10.1.1.1:81 + 1 more... | 10s
    ");
    let slices = json!([
        {"metadata": meta("none", at), "addressType": "IPv4", "endpoints": null, "ports": null},
        {"metadata": meta("web", at), "addressType": "IPv4", "ports": [{"port": 80}, {"name": "x"}],
         "endpoints": [{"addresses": ["10.1.1.1", "10.1.1.2"]}, {"addresses": ["10.1.1.3", "10.1.1.4"]}]},
    ]);
    insta::assert_snapshot!(render("endpointslices", slices), @r"
    Name | AddressType | Ports | Endpoints | Age
    none | IPv4 | <unset> | <unset> | 10s
    web | IPv4 | 80,x | 10.1.1.1,10.1.1.2,10.1.1.3 + 1 more... | 10s
    ");
}

#[test]
fn roles_bindings_and_classes() {
    let at = "2026-11-29T12:10:19Z";
    let none = |resource: &str| {
        let kind = kinds::by_resource(resource).unwrap();
        table(kind, &json!({"metadata": {}, "items": []}), now(), IncludeObject::None)["rows"].clone()
    };
    assert_eq!((none("limitranges"), none("ingresses")), (Value::Null, json!([])));
    insta::assert_snapshot!(render("clusterroles", json!([{"metadata": meta("view", at)}])), @r"
    Name | Created At
    view | 2026-11-29T12:10:19Z
    ");
    let binding = json!([{
        "metadata": meta("b", at), "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [
            {"kind": "User", "name": "a"}, {"kind": "User", "name": "b"}, {"kind": "Group", "name": "g"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "ns"},
        ],
    }]);
    insta::assert_snapshot!(render("rolebindings", binding), @r"
    Name | Role | Age | Users* | Groups* | ServiceAccounts*
    b | ClusterRole/view | 10s | a, b | g | ns/s
    ");
    let class = json!([{"metadata": meta("high", at), "value": 1000, "preemptionPolicy": "Never"}]);
    insta::assert_snapshot!(render("priorityclasses", class), @r"
    Name | Value | Global-Default | Age | PreemptionPolicy
    high | #1000 | #false | 10s | Never
    ");
}

#[test]
fn kinds_that_are_only_kept() {
    let at = "2026-11-29T12:10:19Z";
    insta::assert_snapshot!(render("ingresses", json!([{"metadata": meta("i", at)}])), @r"
    Name | Age
    i | 10s
    ");
    let set = json!([{
        "metadata": meta("s", at), "status": {"readyReplicas": 1},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }]);
    insta::assert_snapshot!(render("statefulsets", set), @r"
    Name | Ready | Age | Containers* | Images*
    s | 1/3 | 10s | c | i
    ");
    let cron = json!([{"metadata": meta("cj", at), "spec": {
        "schedule": "* * * * *", "suspend": true,
        "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "b"}]}}}},
    }, "status": {"lastScheduleTime": "2026-11-29T12:10:00Z", "active": [{}]}}]);
    insta::assert_snapshot!(render("cronjobs", cron), @r"
    Name | Schedule | Timezone | Suspend | Active | Last Schedule | Age | Containers* | Images* | Selector*
    cj | * * * * * | <none> | True | #1 | 29s | 10s | c | b | <none>
    ");
}
