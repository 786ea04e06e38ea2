//! EXT-01, EXT-03, EXT-04, EXT-09: which pods it looks at, where they fit, and where they go.

use std::collections::BTreeMap;
use std::process::Command;

use k8s_openapi::serde_json::{Value, json};

use crate::cluster::{Cluster, PODS, becomes, node_of, pod};

const TOY: &str = "toy-scheduler";

/// EXT-01: by default the pods that name toy-scheduler, made before its start or after.
#[tokio::test(flavor = "multi_thread")]
async fn ext_01_exactly_the_pods_that_name_it_and_have_no_node_are_considered() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    cluster.node("n", json!({"cpu": "4", "memory": "4Gi"}), json!({})).await;
    cluster.pod("before", TOY, json!({})).await;
    cluster.pod("before-too-big", TOY, json!({"cpu": "5"})).await;
    let mut placed = pod("placed", TOY, json!({"cpu": "100m"}));
    placed["spec"]["nodeName"] = json!("elsewhere");
    cluster.create(PODS, &placed).await;
    let toy = cluster.toy("toy", &[]).await;
    let other = cluster.toy("other", &["--scheduler-name", "other"]).await;
    assert_eq!(cluster.bound("before").await, "n");
    cluster.event("before-too-big", "FailedScheduling").await;

    // Names that differ a little are other names.
    let strangers = ["toy-scheduler2", "toy", "Toy-Scheduler", "default-scheduler"];
    for (n, scheduler) in strangers.iter().enumerate() {
        cluster.pod(&format!("stranger-{n}"), scheduler, json!({"cpu": "5"})).await;
    }
    let mut nameless = pod("nameless", TOY, json!({}));
    nameless["spec"].as_object_mut().unwrap().remove("schedulerName");
    cluster.create(PODS, &nameless).await;
    cluster.pod("other-too-big", "other", json!({"cpu": "5"})).await;
    cluster.pod("others", "other", json!({})).await;
    // What came after the strangers is dealt with, so they were passed over.
    cluster.pod("after", TOY, json!({})).await;
    assert_eq!(cluster.bound("after").await, "n");
    assert_eq!(cluster.bound("others").await, "n");
    cluster.event("others", "Scheduled").await;
    let event = cluster.event("other-too-big", "FailedScheduling").await;
    assert_eq!(event["source"]["component"], "other", "{event}");
    toy.says(&["default/after"]).await;

    let pods = cluster.list(PODS).await;
    let free: Vec<&str> =
        pods.iter().filter(|(_, pod)| node_of(pod).is_none()).map(|(name, _)| &**name).collect();
    let expected = [
        "before-too-big",
        "nameless",
        "other-too-big",
        "stranger-0",
        "stranger-1",
        "stranger-2",
        "stranger-3",
    ];
    assert_eq!(free, expected);
    assert_eq!(node_of(&pods["placed"]).unwrap(), "elsewhere");
    let named = |told: BTreeMap<String, u64>| told.into_keys().collect::<Vec<_>>();
    assert_eq!(named(cluster.told("FailedScheduling").await), ["before-too-big", "other-too-big"]);
    cluster.event("after", "Scheduled").await;
    cluster.event("before", "Scheduled").await;
    assert_eq!(named(cluster.told("Scheduled").await), ["after", "before", "others"]);
    becomes("the audit log tells of three bindings", || cluster.bindings(201).len() == 3).await;
    let mut bound = cluster.bindings(201);
    bound.sort();
    assert_eq!(bound, ["after", "before", "others"]);
    for word in ["stranger", "nameless", "placed", "default/others"] {
        assert_eq!(toy.lines(&[word]), Vec::<String>::new());
    }
    assert_eq!(other.lines(&["default/after"]), Vec::<String>::new());
}

/// EXT-03: exactly what is free fits, one unit more does not; pods on the node count whoever put them there, and those of
/// other schedulers too.
#[tokio::test(flavor = "multi_thread")]
async fn ext_03_cpu_and_memory_fit_to_the_unit() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    cluster.node("n", json!({"cpu": "2", "memory": "1Gi"}), json!({})).await;
    let _toy = cluster.toy("toy", &[]).await;
    let fits = async |name: &str, requests: Value| {
        cluster.pod(name, TOY, requests).await;
        assert_eq!(cluster.bound(name).await, "n", "{name}");
    };
    let refused = async |name: &str, requests: Value, reasons: &[&str]| {
        cluster.pod(name, TOY, requests).await;
        let event = cluster.event(name, "FailedScheduling").await;
        let message = event["message"].as_str().unwrap();
        for reason in ["cpu", "memory"] {
            assert_eq!(message.contains(reason), reasons.contains(&reason), "{name}: {message}");
        }
    };
    // By hand, and for another scheduler: both are on the node.
    cluster.pod("by-hand", TOY, json!({"cpu": "300m", "memory": "100Mi"})).await;
    drop(cluster.bind("by-hand", "n").await); // or toy-scheduler did so: it is on the node either way
    assert_eq!(cluster.bound("by-hand").await, "n");
    let mut foreign = pod("foreign", "nobody", json!({"cpu": "0.2", "memory": "24Mi"}));
    foreign["spec"]["nodeName"] = json!("n");
    cluster.create(PODS, &foreign).await;
    // Seen by toy-scheduler before what follows: it watches pods in their order.
    refused("cpu-over", json!({"cpu": "1501m"}), &["cpu"]).await;
    refused("memory-over", json!({"memory": "943718401"}), &["memory"]).await;
    refused("both-over", json!({"cpu": "2", "memory": "1Gi"}), &["cpu", "memory"]).await;
    fits("half", json!({"cpu": "500m", "memory": "900Mi"})).await;
    refused("memory-left-0", json!({"memory": "1"}), &["memory"]).await;
    fits("rest", json!({"cpu": "1"})).await;
    refused("cpu-left-0", json!({"cpu": "1m"}), &["cpu"]).await;
    // What asks for nothing fits where nothing is left.
    fits("nothing", json!({})).await;

    // Several containers are summed.
    cluster.node("m", json!({"cpu": "2", "memory": "8Gi"}), json!({})).await;
    cluster.lands("seen", TOY, "m", json!({"cpu": "1"})).await;
    let mut two = pod("two", TOY, json!({"cpu": "600m"}));
    let container = two["spec"]["containers"][0].clone();
    two["spec"]["containers"].as_array_mut().unwrap().push(container);
    two["spec"]["containers"][1]["name"] = json!("d");
    cluster.create(PODS, &two).await;
    cluster.event("two", "FailedScheduling").await;
    two["metadata"]["name"] = json!("two-halves");
    for n in 0..2 {
        two["spec"]["containers"][n]["resources"] = json!({"requests": {"cpu": "500m"}});
    }
    cluster.create(PODS, &two).await;
    assert_eq!(cluster.bound("two-halves").await, "m");
}

/// EXT-03: a figure that a node does not report is 0.
#[tokio::test(flavor = "multi_thread")]
async fn ext_03_what_a_node_does_not_report_it_does_not_have() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    cluster.node("no-cpu", json!({"memory": "4Gi"}), json!({})).await;
    let capacity = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "capacity-alone"},
        "status": {"capacity": {"cpu": "64", "memory": "64Gi"}}});
    cluster.create("/api/v1/nodes", &capacity).await;
    let bare = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}});
    cluster.create("/api/v1/nodes", &bare).await;
    let _toy = cluster.toy("toy", &[]).await;
    cluster.pod("cpu", TOY, json!({"cpu": "1m"})).await;
    let event = cluster.event("cpu", "FailedScheduling").await;
    assert!(event["message"].as_str().unwrap().contains("3 Insufficient cpu"), "{event}");
    cluster.pod("both", TOY, json!({"cpu": "1m", "memory": "1Gi"})).await;
    let event = cluster.event("both", "FailedScheduling").await;
    assert!(event["message"].as_str().unwrap().contains("2 Insufficient memory"), "{event}");
    cluster.pod("memory", TOY, json!({"memory": "4Gi"})).await;
    assert_eq!(cluster.bound("memory").await, "no-cpu");
    cluster.pod("nothing", TOY, json!({})).await;
    // All three have no memory left, so the first by name gets it.
    assert_eq!(cluster.bound("nothing").await, "bare");
}

/// EXT-03 "by nothing else": neither the number of pods, other resources, cordons, selectors, affinity nor a Node that
/// is not ready.
#[tokio::test(flavor = "multi_thread")]
async fn ext_03_nothing_else_is_looked_at() {
    let cluster = Cluster::start(&["--controllers=*,-scheduler,-node-lifecycle"]).await;
    let allocatable = json!({"cpu": "4", "memory": "1Gi", "pods": "0", "ephemeral-storage": "0"});
    let taints = json!([{"key": "broken", "effect": "NoExecute"}, {"key": "broken", "effect": "NoSchedule"}]);
    cluster.node("n", allocatable, json!({"unschedulable": true, "taints": taints})).await;
    let unready = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]});
    cluster.merge_status("/api/v1/nodes", "n", &unready).await;
    let _toy = cluster.toy("toy", &[]).await;
    let check = async |name: &str, change: &dyn Fn(&mut Value)| {
        let mut pod = pod(name, TOY, json!({"cpu": "10m", "memory": "1Mi"}));
        change(&mut pod["spec"]);
        cluster.create(PODS, &pod).await;
        assert_eq!(cluster.bound(name).await, "n", "{name}");
    };
    check("plain", &|_| {}).await;
    check("selector", &|spec| spec["nodeSelector"] = json!({"disk": "ssd"})).await;
    check("affinity", &|spec| {
        let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]});
        let required = json!({"nodeSelectorTerms": [term]});
        spec["affinity"] =
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    })
    .await;
    check("extended", &|spec| {
        let much = json!({"cpu": "10m", "example.com/foo": "7", "esp32.io/gpio": "99"});
        spec["containers"][0]["resources"] =
            json!({"requests": much, "limits": {"example.com/foo": "7", "esp32.io/gpio": "99"}});
    })
    .await;
    check("storage", &|spec| {
        spec["containers"][0]["resources"] = json!({"requests": {"ephemeral-storage": "1Ti"}});
    })
    .await;
    for name in ["port-a", "port-b"] {
        check(name, &|spec| spec["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 80}]))
            .await;
    }
}

/// EXT-04: one sentence, and it is the truth: what it chooses is what a reader of the sentence would.
#[tokio::test(flavor = "multi_thread")]
async fn ext_04_the_rule_of_its_help_is_one_sentence_and_holds() {
    let output = Command::new(env!("CARGO_BIN_EXE_toy-scheduler")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let rules: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("Rule: ")).collect();
    let [rule] = rules.as_slice() else { panic!("{help}") };
    assert_eq!(rule.matches('.').count(), 1, "{rule}");
    assert!(
        rule.ends_with('.') && rule.contains("most free memory") && rule.contains("first by name"),
        "{rule}"
    );

    let cluster = Cluster::start(&["--controllers=*,-scheduler"]).await;
    let mut free = BTreeMap::new();
    for (name, cpu, memory) in [("a", 1000, 512), ("b", 700, 1024), ("c", 3000, 1024), ("d", 100, 4096)] {
        cluster
            .node(name, json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}), json!({}))
            .await;
        free.insert(name.to_owned(), (cpu, memory));
    }
    let _toy = cluster.toy("toy", &[]).await;
    for n in 0..30 {
        let (cpu, memory) = ([50, 200, 300][n % 3], [64, 0, 128, 200][n % 4]);
        let name = format!("p-{n}");
        cluster.pod(&name, TOY, json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")})).await;
        // The sentence, read by someone else.
        let mut best: Option<(&String, i64)> = None;
        for (node, &(cpu_free, memory_free)) in &free {
            let fits = cpu <= cpu_free && memory <= memory_free;
            if fits && best.is_none_or(|(_, most)| memory_free > most) {
                best = Some((node, memory_free));
            }
        }
        match best.map(|(node, _)| node.clone()) {
            Some(node) => {
                assert_eq!(cluster.bound(&name).await, node, "{name}: {free:?}");
                let left = free.get_mut(&node).unwrap();
                *left = (left.0 - cpu, left.1 - memory);
            }
            None => drop(cluster.event(&name, "FailedScheduling").await),
        }
    }
    let untouched = free.values().filter(|(_, memory)| [512, 1024, 4096].contains(memory)).count();
    assert!(untouched < 2, "the pods did not go to several nodes: {free:?}");
}

/// EXT-09: the same pod on the same node; the built-in scheduler's upstream profile says no.
#[tokio::test(flavor = "multi_thread")]
async fn ext_09_it_places_a_pod_on_a_tainted_node_that_the_upstream_profile_refuses() {
    let cluster =
        Cluster::start(&["--scheduler-profile", "strict=upstream", "--controllers=*,-node-lifecycle"]).await;
    let taints = json!([{"key": "broken", "value": "fan", "effect": "NoSchedule"}]);
    cluster.node("n", json!({"cpu": "2", "memory": "4Gi", "pods": "10"}), json!({"taints": taints})).await;
    let ready = json!({"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]});
    cluster.merge_status("/api/v1/nodes", "n", &ready).await;
    let _toy = cluster.toy("toy", &[]).await;
    cluster.pod("careful", "strict", json!({"cpu": "1"})).await;
    let event = cluster.event("careful", "FailedScheduling").await;
    let message = event["message"].as_str().unwrap();
    assert!(
        message.starts_with("0/1 nodes are available: 1 node(s) had untolerated taint {broken: fan}."),
        "{message}"
    );
    cluster.pod("careless", TOY, json!({"cpu": "1"})).await;
    assert_eq!(cluster.bound("careless").await, "n");
    assert_eq!(node_of(&cluster.get(PODS, "careful").await), None);
}
