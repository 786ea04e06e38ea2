//! Random clusters: boards with odd figures, pods in every state, and the pod that wants a place.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::kube32::Cluster;

/// Names whose order by bytes is not the one that people would guess.
const NAMES: [&str; 12] = ["a", "a-1", "a.1", "a0", "a10", "a9", "aa", "b", "b-c", "bc", "z", "z.z"];

/// Amounts of memory: close together, and several ways to write the same one.
const MEMORY: [&str; 22] = [
    "16Ki",
    "16384",
    "16384000m",
    "0.015625Mi",
    "16385",
    "32Ki",
    "32.0Ki",
    "33Ki",
    "48Ki",
    "64Ki",
    "0.0625Mi",
    "65537",
    "64k",
    "1Mi",
    "1M",
    "0.001G",
    "1Gi",
    "4G",
    "0",
    "1500m",
    "0.5Ki",
    "9223372036854775807",
];

const COUNTS: [&str; 12] =
    ["0", "1", "1", "2", "3", "4", "1000m", "2.0", "500m", "1500m", "0.004k", "0.001Ki"];

/// SCHED-20.
const OTHER_SUFFIXES: [&str; 12] =
    ["1Ti", "2T", "3P", "4Ei", "64K", "64KI", "5u", "7n", "1e3", "2E0", "", "lots"];

fn written(texts: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop_oneof![
        20 => select(texts).prop_map(Value::from),
        1 => select(&OTHER_SUFFIXES[..]).prop_map(Value::from),
        1 => (0..70_000_u64).prop_map(Value::from),
    ]
}

fn counted() -> impl Strategy<Value = Value> {
    prop_oneof![
        20 => select(&COUNTS[..]).prop_map(Value::from),
        1 => select(&OTHER_SUFFIXES[..]).prop_map(Value::from),
        2 => (0..5_u64).prop_map(Value::from),
    ]
}

/// Each entry with its chance in percent.
type Row = (&'static str, u32, BoxedStrategy<Value>);

fn map_of(rows: Vec<Row>) -> impl Strategy<Value = Value> {
    let entries: Vec<_> = rows
        .into_iter()
        .map(|(name, percent, value)| {
            let value = prop::option::weighted(f64::from(percent) / 100.0, value);
            value.prop_map(move |value| value.map(|value| (name.to_owned(), value)))
        })
        .collect();
    entries.prop_map(|entries| Value::Object(entries.into_iter().flatten().collect::<Map<_, _>>()))
}

fn offer() -> impl Strategy<Value = Value> {
    let large =
        || written(&["64Ki", "64k", "1Mi", "1M", "0.001G", "1Gi", "4G", "0.0625Mi", "65537", "48Ki"]).boxed();
    let many = || {
        prop_oneof![4 => select(vec!["4", "8", "22", "3.5", "1k", "0.008k"]).prop_map(Value::from), 1 => counted()].boxed()
    };
    map_of(vec![
        ("memory", 92, large()),
        ("esp32.io/psram", 50, large()),
        ("esp.io/psram", 25, large()),
        ("esp32.io/gpio", 88, many()),
        ("esp32.io/i2c", 75, many()),
        ("esp32.io/uart", 75, many()),
        ("esp32.io/adc", 70, many()),
        ("esp32.io/rmt-tx", 70, many()),
        ("esp32.io/rmt-rx", 70, many()),
        ("cpu", 20, Just(json!("1")).boxed()),
        ("pods", 20, Just(json!("0")).boxed()),
    ])
}

fn resources() -> impl Strategy<Value = Value> {
    let memory = || written(&MEMORY).boxed();
    let one = || prop_oneof![8 => Just(json!("1")), 1 => Just(json!(1)), 1 => counted()].boxed();
    let list = move || {
        map_of(vec![
            ("memory", 45, memory()),
            ("esp32.io/psram", 8, memory()),
            ("esp.io/psram", 6, memory()),
            ("esp32.io/gpio", 25, counted().boxed()),
            ("esp32.io/i2c", 6, counted().boxed()),
            ("esp32.io/uart", 6, counted().boxed()),
            ("esp32.io/adc", 6, counted().boxed()),
            ("esp32.io/rmt-tx", 6, counted().boxed()),
            ("esp32.io/rmt-rx", 6, counted().boxed()),
            ("esp32.io/i2c-bus-0", 7, one()),
            ("esp32.io/i2c-bus-17", 4, one()),
            ("esp32.io/uart-1", 7, one()),
            ("esp32.io/uart-2", 4, one()),
            // none of these is counted (SCHED-30, SCHED-31)
            ("esp32.io/gpio-5", 5, one()),
            ("hardware.kube32.io/wifi", 5, one()),
            ("esp32.io/uart-x", 2, one()),
            ("cpu", 10, Just(json!("64")).boxed()),
        ])
    };
    (prop::option::weighted(0.8, list()), prop::option::weighted(0.25, list())).prop_map(
        |(requests, limits)| {
            let mut resources = json!({});
            for (kind, of) in [("requests", requests), ("limits", limits)] {
                if let Some(of) = of {
                    resources[kind] = of;
                }
            }
            resources
        },
    )
}

fn containers(most: usize) -> impl Strategy<Value = Value> {
    let container =
        resources().prop_map(|resources| json!({"name": "c", "image": "i", "resources": resources}));
    prop::collection::vec(container, 0..=most).prop_map(Value::from)
}

fn labels() -> impl Strategy<Value = Value> {
    let word = || select(vec!["x", "y", ""]).prop_map(Value::from).boxed();
    map_of(vec![("zone", 70, word()), ("board", 30, word())])
}

/// What may stand in a pod and must not change the choice (SCHED-32, SCHED-33).
fn ignored(mut spec: Value, which: usize) -> Value {
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["nowhere"]}]});
    let everywhere = json!({"matchLabels": {}});
    match which {
        0 => {
            spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}})
        }
        1 => {
            let apart = json!([{"labelSelector": everywhere, "topologyKey": "zone"}]);
            spec["affinity"] =
                json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}});
        }
        2 => {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": everywhere}]);
        }
        3 => spec["tolerations"] = json!([{"operator": "Exists"}]),
        4 => {
            spec["tolerations"] = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}])
        }
        _ => {}
    }
    spec
}

fn pod_spec() -> impl Strategy<Value = Value> {
    let selector = prop::option::weighted(0.25, labels());
    (containers(3), prop::option::weighted(0.25, containers(2)), selector, 0..12_usize).prop_map(
        |(containers, first, selector, which)| {
            let mut spec = json!({"schedulerName": "default-scheduler", "containers": containers});
            for (name, value) in [("initContainers", first), ("nodeSelector", selector)] {
                if let Some(value) = value {
                    spec[name] = value;
                }
            }
            ignored(spec, which)
        },
    )
}

fn status() -> impl Strategy<Value = Value> {
    let ready = prop_oneof![
        14 => Just(json!([{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}])),
        1 => Just(json!([{"type": "Ready", "status": "False"}])),
        1 => Just(json!([{"type": "Ready", "status": "Unknown"}])),
        1 => Just(json!([{"type": "MemoryPressure", "status": "True"}])),
    ];
    let figures = prop_oneof![
        10 => offer().prop_map(|offer| json!({"allocatable": offer})),
        2 => offer().prop_map(|offer| json!({"capacity": offer})),
        1 => offer().prop_map(|offer| json!({"allocatable": {}, "capacity": offer})),
        6 => (offer(), offer()).prop_map(|(a, b)| json!({"allocatable": a, "capacity": b})),
        1 => Just(json!({})),
    ];
    (ready, figures, 0..20).prop_map(|(ready, mut status, absent)| {
        status["conditions"] = ready;
        if absent == 0 { Value::Null } else { status }
    })
}

/// A node, and the version at its last status write.
fn node() -> impl Strategy<Value = (Value, Option<u64>)> {
    let cordoned =
        select(vec![json!(true), json!(false), Value::Null, Value::Null, Value::Null, Value::Null]);
    let tainted = prop::bool::weighted(0.3);
    let reported = prop::option::weighted(0.9, 0..30_u64);
    (status(), labels(), cordoned, tainted, reported, 0..40_u64).prop_map(
        |(status, labels, cordoned, tainted, reported, version)| {
            let mut node =
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"labels": labels}, "spec": {}});
            // what was written last may be a label, a taint or a cordon (SCHED-26)
            node["metadata"]["resourceVersion"] = version.max(reported.unwrap_or(0)).to_string().into();
            for (path, value) in [("unschedulable", cordoned)] {
                if !value.is_null() {
                    node["spec"][path] = value;
                }
            }
            if tainted {
                node["spec"]["taints"] = json!([
                    {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
                    {"key": "mine", "value": "x", "effect": "NoExecute"},
                ]);
            }
            if !status.is_null() {
                node["status"] = status;
            }
            (node, reported)
        },
    )
}

fn nodes() -> impl Strategy<Value = Vec<(Value, Option<u64>)>> {
    let names = prop_oneof![3 => 0..=4_usize, 1 => 5..=NAMES.len()]
        .prop_flat_map(|count| prop::sample::subsequence(NAMES.to_vec(), count));
    (names, prop::bool::weighted(0.2)).prop_flat_map(|(names, alike)| {
        let count = names.len();
        let each = prop::collection::vec(node(), count);
        let same = node().prop_map(move |node| vec![node; count]);
        let nodes = if alike { same.boxed() } else { each.boxed() };
        nodes.prop_map(move |mut nodes| {
            for ((node, _), name) in nodes.iter_mut().zip(&names) {
                node["metadata"]["name"] = (*name).into();
            }
            nodes
        })
    })
}

/// A pod that is there already: waiting, bound to a node that may not exist, running, starting anew, going or finished.
fn present() -> impl Strategy<Value = Value> {
    let phase = select(vec!["Pending", "", "Running", "Running", "Running", "Succeeded", "Failed"]);
    let state = select(vec![
        json!({"running": {}}),
        json!({"running": {}}),
        json!({"waiting": {"reason": "CrashLoopBackOff"}}),
    ]);
    let node = prop::option::weighted(0.85, select(&NAMES[..]));
    (pod_spec(), phase, state, node, prop::bool::weighted(0.15), 1..40_u64).prop_map(
        |(spec, phase, state, node, going, version)| {
            let mut pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"namespace": "default", "resourceVersion": version.to_string()},
                "spec": spec, "status": {},
            });
            if let Some(node) = node {
                pod["spec"]["nodeName"] = node.into();
            }
            if !phase.is_empty() {
                pod["status"] = json!({"phase": phase, "containerStatuses": [{"name": "c", "state": {"running": {}}}, {"name": "d", "state": state}]});
            }
            if going {
                pod["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z".into();
                pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
            }
            pod
        },
    )
}

/// A cluster, and a pod that wants a place in it.
pub fn cluster() -> impl Strategy<Value = Cluster> {
    let pods = prop::collection::vec(present(), 0..10);
    let named = prop::option::weighted(0.05, select(&NAMES[..]));
    let coming = prop::collection::vec((pod_spec(), select(&NAMES[..])), 0..3);
    (nodes(), pods, coming, pod_spec(), named).prop_map(|(nodes, mut pods, coming, spec, named)| {
        for (number, pod) in pods.iter_mut().enumerate() {
            pod["metadata"]["name"] = format!("p{number}").into();
            pod["metadata"]["uid"] = format!("uid-{number}").into();
        }
        let reported = nodes.iter().filter_map(|(node, at)| Some((node["metadata"]["name"].as_str()?.to_owned(), (*at)?)));
        let reported: BTreeMap<_, _> = reported.collect();
        let mut wanted = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "wanted", "namespace": "default", "uid": "uid-wanted", "resourceVersion": "99"},
            "spec": spec, "status": {"phase": "Pending"},
        });
        if let Some(name) = named {
            wanted["spec"]["nodeName"] = name.into();
        }
        let nodes = nodes.into_iter().map(|(node, _)| node).collect();
        let coming = coming.into_iter().zip(0..).map(|((mut spec, node), number)| {
            spec["nodeName"] = node.into();
            let name = format!("coming-{number}");
            let metadata = json!({"name": name, "namespace": "default", "uid": name});
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        });
        Cluster { nodes, pods, reported, coming: coming.collect(), wanted }
    })
}
