//! The `kube32` profile from the rows SCHED-06 to SCHED-56 of the catalogue, one plain function for each.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::digits::Digits;
use crate::quantity::billionths;

const PSRAM: &str = "esp32.io/psram";
const PSRAM_ALIAS: &str = "esp.io/psram";
/// SCHED-17.
const PINS: [&str; 6] =
    ["esp32.io/gpio", "esp32.io/i2c", "esp32.io/uart", "esp32.io/adc", "esp32.io/rmt-tx", "esp32.io/rmt-rx"];
/// SCHED-18: how a named bus begins, and what it is taken from.
const BUSES: [(&str, &str); 2] = [("esp32.io/i2c-bus-", "esp32.io/i2c"), ("esp32.io/uart-", "esp32.io/uart")];

/// All that there is to be known.
#[derive(Clone)]
pub struct Cluster {
    pub nodes: Vec<Value>,
    pub pods: Vec<Value>,
    /// The store's version at each node's last status write (SCHED-25, SCHED-26); a node that never wrote any is absent.
    pub reported: BTreeMap<String, u64>,
    /// Pods whose binding was decided and is not stored yet, with their node in the spec.
    pub coming: Vec<Value>,
    /// The pod that is to be placed.
    pub wanted: Value,
}

impl fmt::Debug for Cluster {
    /// One line an object: what a person who looks for the difference can read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for object in self.nodes.iter().chain(&self.pods).chain(&self.coming).chain([&self.wanted]) {
            write!(f, "\n{object}")?;
        }
        write!(f, "\nstatus writes: {:?}", self.reported)
    }
}

/// What becomes of one node.
#[derive(Debug, PartialEq, Eq)]
pub struct Judged {
    pub node: String,
    /// Every filter in order, with its reasons in the order of their bytes.
    pub filters: Vec<(&'static str, Vec<String>)>,
    /// Free memory and GPIO after binding, each with what the node has of it; where the node passes.
    pub shares: Option<[(Digits, Digits); 2]>,
}

impl Judged {
    /// SCHED-06: a node that fails several filters counts under the first.
    fn first_failed(&self) -> Option<&[String]> {
        self.filters.iter().map(|(_, reasons)| reasons.as_slice()).find(|reasons| !reasons.is_empty())
    }
}

fn text<'a>(of: &'a Value, pointer: &str) -> &'a str {
    of.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(of: &'a Value, pointer: &str) -> &'a [Value] {
    of.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// SCHED-14, and the same for every other resource: what one container asks for, where it says so.
fn declared(container: &Value, resource: &str) -> Option<Digits> {
    let of = |kind: &str| container["resources"][kind].get(resource);
    of("requests").or_else(|| of("limits")).map(billionths)
}

/// The named buses of a resource that a container asks for (SCHED-18).
fn buses(container: &Value, resource: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Some((begin, _)) = BUSES.iter().find(|(_, of)| *of == resource) else { return names };
    for kind in ["requests", "limits"] {
        for name in container["resources"][kind].as_object().into_iter().flat_map(|of| of.keys()) {
            let number = name.strip_prefix(begin).unwrap_or_default();
            let is_number = !number.is_empty() && number.bytes().all(|sign| sign.is_ascii_digit());
            if is_number && declared(container, name).is_some_and(|count| !count.is_zero()) {
                names.insert(name.clone());
            }
        }
    }
    names
}

/// What containers that run together ask for.
fn together(containers: &[Value], resource: &str) -> Digits {
    let mut sum = Digits::default();
    let mut named = BTreeSet::new();
    for container in containers {
        sum = sum.plus(&declared(container, resource).unwrap_or_default());
        if resource == PSRAM {
            sum = sum.plus(&declared(container, PSRAM_ALIAS).unwrap_or_default());
        }
        named.extend(buses(container, resource));
    }
    for _ in named {
        sum = sum.plus(&billionths(&"1".into()));
    }
    sum
}

/// What the pod takes of one of the resources that count: all its containers, or the greediest of its init containers (SCHED-14).
fn asked(pod: &Value, resource: &str) -> Digits {
    let (containers, first) = (list(pod, "/spec/containers"), list(pod, "/spec/initContainers"));
    if resource == "memory" && containers.iter().chain(first).all(|it| declared(it, resource).is_none()) {
        return billionths(&"16Ki".into());
    }
    let mut most = together(containers, resource);
    for container in first {
        most = most.max(together(std::slice::from_ref(container), resource));
    }
    most
}

/// SCHED-21, where an empty list is none. A board has its PSRAM once, under whichever name it says it; SCHED-16 sums what a pod asks for under both.
fn offered(node: &Value, resource: &str) -> Digits {
    let status = &node["status"];
    let says = status["allocatable"].as_object().is_some_and(|of| !of.is_empty());
    let of = if says { &status["allocatable"] } else { &status["capacity"] };
    let alias = if resource == PSRAM { of.get(PSRAM_ALIAS) } else { None };
    of.get(resource).or(alias).map(billionths).unwrap_or_default()
}

/// SCHED-22 to SCHED-27: whether a bound pod is subtracted from what its node reported.
fn is_subtracted(pod: &Value, reported: Option<&u64>) -> bool {
    let phase = text(pod, "/status/phase");
    if phase == "Succeeded" || phase == "Failed" {
        return false;
    }
    let waits =
        list(pod, "/status/containerStatuses").iter().any(|status| status["state"]["waiting"].is_object());
    let version: u64 = text(pod, "/metadata/resourceVersion").parse().expect("a version");
    let modified_since = reported.is_none_or(|reported| version > *reported);
    phase == "Pending" || phase.is_empty() || waits || modified_since
}

/// What the pods on a node take of a resource that its report does not say yet.
fn taken(cluster: &Cluster, node: &str, resource: &str) -> Digits {
    let mut sum = Digits::default();
    for pod in &cluster.pods {
        if text(pod, "/spec/nodeName") == node && is_subtracted(pod, cluster.reported.get(node)) {
            sum = sum.plus(&asked(pod, resource));
        }
    }
    // SCHED-56: whatever else is decided in between.
    for pod in cluster.coming.iter().filter(|pod| text(pod, "/spec/nodeName") == node) {
        sum = sum.plus(&asked(pod, resource));
    }
    sum
}

/// SCHED-10 to SCHED-12.
fn ready(node: &Value) -> Vec<String> {
    if node["spec"]["unschedulable"] == true {
        return vec!["node(s) were unschedulable".into()];
    }
    let ready = list(node, "/status/conditions").iter().find(|condition| condition["type"] == "Ready");
    match ready {
        Some(condition) if condition["status"] == "True" => Vec::new(),
        _ => vec!["node(s) were not ready".into()],
    }
}

fn name_matches(node: &Value, pod: &Value) -> Vec<String> {
    let wanted = text(pod, "/spec/nodeName");
    if wanted.is_empty() || wanted == text(node, "/metadata/name") {
        return Vec::new();
    }
    vec!["node(s) didn't match spec.nodeName".into()]
}

/// SCHED-13.
fn labels_match(node: &Value, pod: &Value) -> Vec<String> {
    for (label, value) in pod["spec"]["nodeSelector"].as_object().into_iter().flatten() {
        if node["metadata"]["labels"].get(label) != Some(value) {
            return vec!["node(s) didn't match Pod's node affinity/selector".into()];
        }
    }
    Vec::new()
}

/// SCHED-15: exactly the free amount fits.
fn room(cluster: &Cluster, node: &Value, pod: &Value, resources: &[&str]) -> Vec<String> {
    let mut short = Vec::new();
    for resource in resources {
        let (ask, name) = (asked(pod, resource), text(node, "/metadata/name"));
        if !ask.is_zero() && ask.plus(&taken(cluster, name, resource)) > offered(node, resource) {
            short.push(format!("Insufficient {resource}"));
        }
    }
    short.sort();
    short
}

/// SCHED-40: what is left of a resource after binding, and of how much.
fn share(cluster: &Cluster, node: &Value, pod: &Value, resource: &str) -> (Digits, Digits) {
    let all = offered(node, resource);
    let gone = taken(cluster, text(node, "/metadata/name"), resource).plus(&asked(pod, resource));
    (all.minus(&gone).unwrap_or_default(), all)
}

/// Every filter on every node (SCHED-06), in the order of the names.
pub fn judge(cluster: &Cluster) -> Vec<Judged> {
    let pod = &cluster.wanted;
    let mut judged = Vec::new();
    for node in &cluster.nodes {
        let filters = vec![
            ("NodeReady", ready(node)),
            ("NodeName", name_matches(node, pod)),
            ("NodeSelector", labels_match(node, pod)),
            ("Memory", room(cluster, node, pod, &["memory"])),
            ("Psram", room(cluster, node, pod, &[PSRAM])),
            ("PinsAndBuses", room(cluster, node, pod, &PINS)),
        ];
        let passes = filters.iter().all(|(_, reasons)| reasons.is_empty());
        let share = |resource| share(cluster, node, pod, resource);
        let shares = passes.then(|| [share("memory"), share("esp32.io/gpio")]);
        judged.push(Judged { node: text(node, "/metadata/name").into(), filters, shares });
    }
    judged.sort_by(|a, b| a.node.as_bytes().cmp(b.node.as_bytes()));
    judged
}

/// SCHED-40, SCHED-42: the sum of both shares as one fraction; the mean is half of it.
pub fn sum(shares: &[(Digits, Digits); 2]) -> (Digits, Digits) {
    let one = || Digits::of(1);
    let [memory, gpio] =
        shares.clone().map(|(part, of)| if of.is_zero() { (Digits::default(), one()) } else { (part, of) });
    (memory.0.times(&gpio.1).plus(&gpio.0.times(&memory.1)), memory.1.times(&gpio.1))
}

fn by_score(a: &(Digits, Digits), b: &(Digits, Digits)) -> Ordering {
    a.0.times(&b.1).cmp(&b.0.times(&a.1))
}

/// The mean of the shares in thousandths, rounded down.
pub fn thousandths(shares: &[(Digits, Digits); 2]) -> u64 {
    let (part, of) = sum(shares);
    let mut rest = part.times(&Digits::of(500));
    let mut count = 0;
    while let Some(less) = rest.minus(&of) {
        (rest, count) = (less, count + 1);
    }
    count
}

/// SCHED-40, SCHED-41: the highest score, and of equal ones the name that sorts first.
pub fn choose(judged: &[Judged]) -> Option<&Judged> {
    let mut best: Option<(&Judged, (Digits, Digits))> = None;
    for node in judged {
        let Some(shares) = &node.shares else { continue };
        let score = sum(shares);
        if best.as_ref().is_none_or(|(_, most)| by_score(&score, most).is_gt()) {
            best = Some((node, score));
        }
    }
    best.map(|(node, _)| node)
}

/// SCHED-51 and SCHED-52: what is said where nothing fits.
pub fn message(judged: &[Judged]) -> String {
    if judged.is_empty() {
        return "no nodes available to schedule pods".into();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in judged.iter().filter_map(Judged::first_failed).flatten() {
        *counts.entry(reason).or_default() += 1;
    }
    let mut said: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    said.sort();
    format!("0/{} nodes are available: {}.", judged.len(), said.join(", "))
}
