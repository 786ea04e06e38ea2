use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::UPSTREAM;
use crate::scheduler::{Assumed, SchedulerConfig, Verdict, explain, schedule};
use crate::snapshot::{Key, Snapshot};

fn node(name: &str, change: Value) -> Value {
    let mut node = json!({
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "10Gi"}},
    });
    merge(&mut node, change);
    node
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn asks(requests: Value) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": requests}}]})
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name, "namespace": "n", "uid": name}, "spec": {"containers": [{"name": "c"}]}});
    merge(&mut pod["spec"], spec);
    pod
}

fn world(nodes: Vec<Value>, pods: Vec<Value>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.keep_ledger(&UPSTREAM);
    for (resource, objects) in [("nodes", nodes), ("pods", pods)] {
        for object in objects {
            snapshot.apply(resource, Key::of(&object), Some(object.into()));
        }
    }
    snapshot
}

fn outcome(snapshot: &Snapshot, spec: Value) -> String {
    match schedule(&UPSTREAM, &pod("new", spec), snapshot, &Assumed::default()) {
        Verdict::Bind { node, .. } => node,
        Verdict::Unschedulable { message } => message,
    }
}

fn three(changes: [Value; 3]) -> Vec<Value> {
    let names = ["n0", "n1", "n2"].into_iter().zip(changes);
    names.map(|(name, change)| node(name, change)).collect()
}

fn taint(key: &str, value: &str, effect: &str) -> Value {
    json!({"key": key, "value": value, "effect": effect})
}

fn tainted(taints: &[Value]) -> Value {
    json!({"spec": {"taints": taints}})
}

/// The texts are those that kube-scheduler 1.32 gave in the same situations.
#[test]
fn sched_51_messages_of_kubernetes() {
    let plain = || [json!({}), json!({}), json!({})];
    let cordoned = || json!({"spec": {"unschedulable": true}});
    let gpu = || tainted(&[taint("dedicated", "gpu", "NoSchedule")]);
    let other = || tainted(&[taint("other", "", "NoExecute")]);
    let ssd = || json!({"metadata": {"labels": {"disk": "ssd"}}});
    let full = || json!({"status": {"allocatable": {"pods": "0"}}});
    let lots = || asks(json!({"memory": "100Gi"}));
    let selecting = |mut spec: Value| {
        spec["nodeSelector"] = json!({"disk": "ssd"});
        spec
    };
    let affine = |term: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}});
    let (useless, none) =
        ("Preemption is not helpful for scheduling", "No preemption victims found for incoming pod");
    for (nodes, spec, reasons, preemption) in [
        (plain(), lots(), "3 Insufficient memory", format!("3 {none}")),
        (
            plain(),
            asks(json!({"cpu": "100", "memory": "100Gi"})),
            "3 Insufficient cpu, 3 Insufficient memory",
            format!("3 {none}"),
        ),
        (
            plain(),
            json!({"containers": [{"resources": {"limits": {"example.com/foo": "1"}}}]}),
            "3 Insufficient example.com/foo",
            format!("3 {none}"),
        ),
        (
            plain(),
            selecting(json!({})),
            "3 node(s) didn't match Pod's node affinity/selector",
            format!("3 {useless}"),
        ),
        (
            plain(),
            affine(
                json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["absent"]}]}),
            ),
            "3 node(s) didn't satisfy plugin(s) [NodeAffinity]",
            format!("3 {useless}"),
        ),
        (
            [cordoned(), json!({}), json!({})],
            lots(),
            "1 node(s) were unschedulable, 2 Insufficient memory",
            format!("1 {useless}, 2 {none}"),
        ),
        (
            [gpu(), other(), cordoned()],
            json!({}),
            "1 node(s) had untolerated taint {dedicated: gpu}, 1 node(s) had untolerated taint {other: }, 1 node(s) were unschedulable",
            format!("3 {useless}"),
        ),
        (
            [ssd(), json!({}), json!({})],
            selecting(lots()),
            "1 Insufficient memory, 2 node(s) didn't match Pod's node affinity/selector",
            format!("1 {none}, 2 {useless}"),
        ),
        ([full(), full(), full()], json!({}), "3 Too many pods", format!("3 {none}")),
        ([full(), full(), full()], lots(), "3 Insufficient memory, 3 Too many pods", format!("3 {none}")),
    ] {
        let expected =
            format!("0/3 nodes are available: {reasons}. preemption: 0/3 nodes are available: {preemption}.");
        assert_eq!(outcome(&world(three(nodes), Vec::new()), spec), expected);
    }
    assert_eq!(outcome(&world(Vec::new(), Vec::new()), json!({})), "no nodes available to schedule pods");
    let never = json!({"preemptionPolicy": "Never", "nodeSelector": {"a": "b"}});
    let told = outcome(&world(three(plain()), Vec::new()), never);
    assert!(told.ends_with("selector. preemption: not eligible due to preemptionPolicy=Never."), "{told}");
}

#[test]
fn sched_10_and_34_what_a_pod_tolerates_does_not_keep_it_away() {
    let everything = json!({"tolerations": [{"operator": "Exists"}]});
    for (change, spec, fits) in [
        (json!({"spec": {"unschedulable": true}}), json!({}), false),
        (json!({"spec": {"unschedulable": true}}), everything.clone(), true),
        (tainted(&[taint("k", "v", "NoSchedule")]), json!({}), false),
        (tainted(&[taint("k", "v", "NoExecute")]), json!({}), false),
        (tainted(&[taint("k", "v", "PreferNoSchedule")]), json!({}), true),
        (tainted(&[taint("k", "v", "NoSchedule")]), everything, true),
        (
            tainted(&[taint("k", "v", "NoSchedule"), taint("l", "", "NoSchedule")]),
            json!({"tolerations": [{"key": "k", "value": "v"}]}),
            false,
        ),
    ] {
        let snapshot = world(vec![node("n0", change.clone())], Vec::new());
        assert_eq!(outcome(&snapshot, spec) == "n0", fits, "{change}");
    }
}

#[test]
fn node_affinity_takes_one_of_its_terms_and_all_of_its_requirements() {
    let labels = json!({"metadata": {"labels": {"zone": "a", "cores": "8"}}});
    let snapshot = world(vec![node("n0", labels)], Vec::new());
    let term = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    for (terms, fits) in [
        (vec![term("zone", "In", &["a", "b"])], true),
        (vec![term("zone", "In", &["b"])], false),
        (vec![term("zone", "NotIn", &["b"])], true),
        (vec![term("zone", "NotIn", &["a"])], false),
        (vec![term("absent", "NotIn", &["a"])], true),
        (vec![term("zone", "Exists", &[])], true),
        (vec![term("absent", "Exists", &[])], false),
        (vec![term("absent", "DoesNotExist", &[])], true),
        (vec![term("cores", "Gt", &["7"])], true),
        (vec![term("cores", "Gt", &["8"])], false),
        (vec![term("cores", "Lt", &["9"])], true),
        (vec![term("zone", "Lt", &["9"])], false),
        (vec![term("zone", "Near", &["a"])], false),
        (vec![term("zone", "In", &["b"]), term("cores", "Exists", &[])], true),
        (vec![json!({})], false),
        (vec![], false),
        (vec![json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]})], true),
        (
            vec![json!({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n0"]}]})],
            false,
        ),
    ] {
        let spec = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
        assert_eq!(outcome(&snapshot, spec) == "n0", fits, "{terms:?}");
    }
}

#[test]
fn a_host_port_is_had_once() {
    let port = |spec: Value| json!({"containers": [{"ports": [spec]}]});
    let bound = |spec: Value| {
        let mut bound = pod("there", port(spec));
        bound["spec"]["nodeName"] = "n0".into();
        bound
    };
    for (there, wanted, fits) in [
        (json!({"hostPort": 80}), json!({"hostPort": 80}), false),
        (json!({"hostPort": 80}), json!({"hostPort": 81}), true),
        (json!({"hostPort": 80}), json!({"containerPort": 80}), true),
        (json!({"hostPort": 80}), json!({"hostPort": 80, "protocol": "UDP"}), true),
        (json!({"hostPort": 80, "hostIP": "10.0.0.1"}), json!({"hostPort": 80, "hostIP": "10.0.0.2"}), true),
        (json!({"hostPort": 80, "hostIP": "10.0.0.1"}), json!({"hostPort": 80}), false),
    ] {
        let snapshot = world(vec![node("n0", json!({}))], vec![bound(there.clone())]);
        assert_eq!(outcome(&snapshot, port(wanted.clone())) == "n0", fits, "{there} {wanted}");
        let (mut assumed, mut snapshot) = (Assumed::default(), snapshot);
        snapshot.apply("pods", Key::new("n", "there"), None);
        let profiles = BTreeMap::from([("default-scheduler".to_owned(), &UPSTREAM)]);
        let config = SchedulerConfig { profiles, retry_period: std::time::Duration::ZERO };
        assumed.assume(&config, &bound(there), "n0");
        let verdict = schedule(&UPSTREAM, &pod("new", port(wanted)), &snapshot, &assumed);
        assert_eq!(matches!(verdict, Verdict::Bind { .. }), fits, "on its way");
    }
}

#[test]
fn requests_count_as_kubernetes_counts_them() {
    let bound = |name: &str, requests: Value, phase: &str| {
        let mut bound = pod(name, asks(requests));
        bound["spec"]["nodeName"] = "n0".into();
        bound["status"] = json!({"phase": phase});
        bound
    };
    let cases: [(Vec<Value>, Value, bool); 7] = [
        (vec![], asks(json!({"cpu": "4"})), true),
        (vec![], asks(json!({"cpu": "4001m"})), false),
        (vec![bound("a", json!({"cpu": "3"}), "Running")], asks(json!({"cpu": "1001m"})), false),
        (vec![bound("a", json!({"cpu": "3"}), "Succeeded")], asks(json!({"cpu": "4"})), true),
        (vec![], json!({"initContainers": [{"resources": {"requests": {"cpu": "5"}}}]}), false),
        (
            vec![],
            json!({"initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
                {"resources": {"requests": {"cpu": "2001m"}}},
            ]}),
            false,
        ),
        (vec![], json!({"overhead": {"cpu": "5"}}), false),
    ];
    for (there, spec, fits) in cases {
        assert_eq!(outcome(&world(vec![node("n0", json!({}))], there), spec.clone()) == "n0", fits, "{spec}");
    }
}

#[test]
fn the_emptier_the_more_balanced_and_the_less_avoided_node_wins() {
    let bound = |name: &str, node: &str, requests: Value| {
        let mut bound = pod(name, asks(requests));
        bound["spec"]["nodeName"] = node.into();
        bound
    };
    let soft = tainted(&[taint("k", "", "PreferNoSchedule")]);
    let nodes = || three([json!({}), json!({}), json!({})]);
    for (nodes, pods, expected) in [
        (nodes(), vec![], "n0"),
        (nodes(), vec![bound("a", "n0", json!({"cpu": "1", "memory": "2Gi"}))], "n1"),
        (
            nodes(),
            vec![
                bound("a", "n0", json!({"cpu": "2"})),
                bound("b", "n1", json!({"cpu": "1", "memory": "2Gi"})),
                bound("c", "n2", json!({"cpu": "3", "memory": "6Gi"})),
            ],
            "n1",
        ),
        (
            three([soft.clone(), json!({}), soft]),
            vec![bound("a", "n1", json!({"cpu": "3", "memory": "1Gi"}))],
            "n1",
        ),
    ] {
        assert_eq!(outcome(&world(nodes, pods), asks(json!({"cpu": "100m", "memory": "200Mi"}))), expected);
    }
}

#[test]
fn an_explanation_rates_what_passes_and_says_why_not() {
    let snapshot = world(three([json!({"spec": {"unschedulable": true}}), json!({}), json!({})]), Vec::new());
    let explained = explain(
        &UPSTREAM,
        &pod("new", asks(json!({"cpu": "1", "memory": "2Gi"}))),
        &snapshot,
        &Assumed::default(),
    );
    let failed: Vec<_> = explained[0].filters.iter().filter(|(_, reasons)| !reasons.is_empty()).collect();
    assert_eq!(failed, [&("NodeUnschedulable", vec!["node(s) were unschedulable".into()])]);
    assert_eq!(explained[0].ratings, None);
    let ratings = explained[1].ratings.as_ref().unwrap();
    let ratings: Vec<_> =
        ratings.iter().map(|(name, weight, share)| (*name, *weight, share.per_mille())).collect();
    assert_eq!(
        ratings,
        [("LeastAllocated", 1, 750), ("BalancedAllocation", 1, 1000), ("TaintToleration", 3, 1000)]
    );
}
