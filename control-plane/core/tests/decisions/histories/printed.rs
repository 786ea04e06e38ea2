//! A history as a scenario in the language of `docs/scenario-language.md`, to be pasted into a file of `suites/`.
//!
//! The harness reads `printed.yaml` in one of its own tests, so what is printed here is what it understands.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::acts::{Act, BOARDS, Kind, LEASE, NOT_READY, TOLERATION};
use super::plant;
use super::rules::Violation;
use super::views::is_of;

/// The whole file: what happened, and what should not have been seen then.
pub fn scenario(acts: &[Act], violation: &Violation) -> String {
    let mut file = String::new();
    let seconds = |millis: i64| format!("{}s", millis / 1000);
    let _ = writeln!(file, "# yaml-language-server: $schema=../schema/scenario.json");
    let _ =
        writeln!(file, "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata:\n  name: found-by-chance");
    let _ =
        writeln!(file, "  requirements: [{}]\n  profile: kube32\n  tags: [history]", violation.requirement);
    let _ = writeln!(file, "  description: {}", json!(violation.sentence.replace("${", "$${")));
    let _ = writeln!(file, "spec:\n  rig: {{boards: {}}}", BOARDS.len());
    let _ = writeln!(
        file,
        "  constants: {{leaseDuration: {}, renewInterval: 1s, noExecuteDelay: {}, tolerationSeconds: {}}}\n  steps:",
        seconds(LEASE),
        seconds(NOT_READY),
        seconds(TOLERATION)
    );
    for board in BOARDS {
        let _ = writeln!(file, "    - {}", label(board, "board"));
    }
    let mut spread = Vec::new();
    for act in acts {
        for step in steps(act, &mut spread) {
            let _ = writeln!(file, "    - {step}");
        }
    }
    let _ = writeln!(file, "    - {}", violation.expectation);
    file
}

/// Boards are called by what the harness calls their nodes.
fn name(node: &str) -> String {
    if BOARDS.contains(&node) { format!("\"${{{node}}}\"") } else { node.to_owned() }
}

fn label(node: &str, place: &str) -> String {
    format!(
        "patch: {{kind: Node, name: {}, type: merge, patch: {{metadata: {{labels: {{place: {place}}}}}}}}}",
        name(node)
    )
}

/// JSON is YAML's flow style, and every text in it is quoted.
fn create(object: &Value) -> String {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for made_by_the_server in ["namespace", "generation"] {
        metadata.remove(made_by_the_server);
    }
    format!("create: {{manifest: {object}}}")
}

/// The steps of one act. `made` holds the workloads that are there.
fn steps(act: &Act, made: &mut Vec<Kind>) -> Vec<String> {
    let one = match act {
        Act::Power { board, on } => {
            format!("power: {{board: {board}, do: {}}}", if *on { "restore" } else { "cut" })
        }
        Act::Link { board, up } => {
            format!("link: {{board: {board}, do: {}}}", if *up { "heal" } else { "cut" })
        }
        Act::Play { node, memory, gpio } => {
            let figures = format!("{{memory: {memory}Ki, esp32.io/gpio: {gpio}}}");
            format!(
                "node: {{name: {node}, allocatable: {figures}, labels: {{place: played}}, renew: 1s, report: now}}"
            )
        }
        Act::Renewals { node, on } => {
            format!("node: {{name: {node}, renew: {}}}", if *on { "1s" } else { "stop" })
        }
        Act::Report { node } => format!("node: {{name: {node}, report: now}}"),
        Act::Cordon { node, on } => {
            format!("{}: {{node: {}}}", if *on { "cordon" } else { "uncordon" }, name(node))
        }
        Act::Label { node, on } => label(node, if *on { "board" } else { "elsewhere" }),
        Act::DeleteNode { node } => format!("delete: {{kind: Node, name: {}}}", name(node)),
        Act::Create { pod, memory, gpio, place, stay } => {
            create(&plant::bare(*pod, (*memory, *gpio), *place, *stay))
        }
        Act::Delete { pod } => format!("delete: {{kind: Pod, name: p{pod}}}"),
        Act::Deploy { replicas } if made.contains(&Kind::Deployment) => {
            format!("scale: {{name: web, replicas: {replicas}}}")
        }
        Act::Deploy { replicas } => {
            made.push(Kind::Deployment);
            create(&plant::web(*replicas))
        }
        Act::Spread => {
            made.push(Kind::DaemonSet);
            create(&plant::agent())
        }
        Act::Work { completions, parallelism, ends_well } => {
            made.push(Kind::Job);
            create(&without_selector(plant::work(*completions, *parallelism, *ends_well)))
        }
        Act::Note { kind, text } => {
            let patch =
                json!({"spec": {"template": {"metadata": {"annotations": {"note": text.to_string()}}}}});
            format!("patch: {{kind: {}, name: {}, type: merge, patch: {patch}}}", kind.word(), kind.name())
        }
        Act::Drop { kind } => {
            made.retain(|other| other != kind);
            format!("delete: {{kind: {}, name: {}, propagation: background}}", kind.word(), kind.name())
        }
        Act::Cull { kind } => {
            let path = format!("/api/v1/namespaces/${{namespace}}/pods?labelSelector=app%3D{}", kind.name());
            format!("request: {{method: DELETE, path: \"{path}\"}}")
        }
        Act::Restart { down } => {
            return away("stop", *down, "");
        }
        Act::Crash { writes } => {
            return away(
                "kill",
                1000,
                &format!(" # in the model: after {writes} more writes of the controllers"),
            );
        }
        Act::Wait { millis } => format!("wait: {millis}ms"),
    };
    vec![one]
}

/// The server chooses the selector of a Job.
fn without_selector(mut job: Value) -> Value {
    job["spec"].as_object_mut().expect("a spec").remove("selector");
    job
}

fn away(how: &str, millis: i64, why: &str) -> Vec<String> {
    let mut steps = vec![format!("controlPlane: {{do: {how}}}{why}")];
    if millis > 0 {
        steps.push(format!("wait: {millis}ms"));
    }
    steps.push("controlPlane: {do: start}".into());
    steps
}

/// What selects a pod: its name if a scenario can know it, else its workload's label.
fn of(pod: &Value) -> String {
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    match super::acts::KINDS.into_iter().find(|kind| is_of(pod, *kind)) {
        Some(kind) => format!("kind: Pod, labels: {{app: {}}}", kind.name()),
        None => format!("kind: Pod, name: {pod_name}"),
    }
}

fn expect(of: &str, rest: &str) -> String {
    format!("expect: {{of: {{{of}}}, {rest}, within: 2s}}")
}

fn never(of: &str, matching: &str) -> String {
    format!("never: {{of: {{{of}}}, match: {matching}, from: start, until: begin}}")
}

fn a_node(node: &str) -> String {
    format!("kind: Node, name: {}", name(node))
}

fn tainted(effect: &str) -> String {
    format!("{{spec: {{taints: [{{key: node.kubernetes.io/unreachable, effect: {effect}}}]}}}}")
}

fn ready(status: &str) -> String {
    format!("{{status: {{conditions: [{{type: Ready, status: \"{status}\"}}]}}}}")
}

pub fn never_unknown(node: &str) -> String {
    never(&a_node(node), &ready("Unknown"))
}

pub fn never_no_execute(node: &str) -> String {
    never(&a_node(node), &tainted("NoExecute"))
}

pub fn unknown(node: &str) -> String {
    expect(&a_node(node), &format!("match: {}", ready("Unknown")))
}

pub fn no_execute(node: &str) -> String {
    expect(&a_node(node), &format!("match: {}", tainted("NoExecute")))
}

pub fn well(node: &str) -> String {
    expect(
        &a_node(node),
        "match: {status: {conditions: [{type: Ready, status: \"True\"}]}, spec: {taints: {$count: 0}}}",
    )
}

pub fn exists(pod: &str) -> String {
    expect(&format!("kind: Pod, name: {pod}"), "match: {metadata: {deletionTimestamp: {$is: absent}}}")
}

pub fn runs(pod: &str) -> String {
    expect(&format!("kind: Pod, name: {pod}"), "match: {status: {phase: Running}}")
}

pub fn never_on(pod: &Value, node: &str) -> String {
    never(&of(pod), &format!("{{spec: {{nodeName: {}}}}}", name(node)))
}

pub fn unmoved(pod: &Value) -> String {
    expect(&of(pod), "match: {spec: {nodeName: {$is: present}}}")
}

pub fn bound(pod: &Value) -> String {
    expect(&of(pod), "match: {spec: {nodeName: {$is: present}}}, count: all")
}

pub fn not_ready(pod: &Value) -> String {
    expect(&of(pod), &format!("match: {}", ready("False")))
}

pub fn evicted(pod: &Value) -> String {
    expect(&of(pod), "match: {spec: {nodeName: {$is: absent}}}")
}

pub fn gone(pod: &Value) -> String {
    expect(&of(pod), "match: {metadata: {deletionTimestamp: {$is: present}}}, absent: true")
}

fn pods(kind: Kind) -> String {
    format!("kind: Pod, labels: {{app: {}}}", kind.name())
}

pub fn so_many(kind: Kind, count: usize) -> String {
    expect(
        &pods(kind),
        &format!("match: {{metadata: {{deletionTimestamp: {{$is: absent}}}}}}, count: {count}"),
    )
}

pub fn at_most(kind: Kind, count: usize) -> String {
    let active = "match: {status: {phase: {$oneOf: [Pending, Running]}}, metadata: {deletionTimestamp: {$is: absent}}}";
    expect(&pods(kind), &format!("{active}, count: {{$le: {count}}}"))
}

pub fn all_ready(kind: Kind, count: usize) -> String {
    expect(&pods(kind), &format!("match: {}, count: {{$ge: {count}}}", ready("True")))
}

pub fn says(kind: Kind, figure: &str, count: u64) -> String {
    let count = if count == 0 { "{$oneOf: [0, {$is: absent}]}".to_owned() } else { count.to_string() };
    expect(&workload(kind), &format!("match: {{status: {{{figure}: {count}}}}}"))
}

pub fn succeeded(count: u64) -> String {
    says(Kind::Job, "succeeded", count)
}

pub fn job(condition: &str) -> String {
    let conditions = format!("[{{type: {condition}, status: \"True\"}}]");
    expect(&workload(Kind::Job), &format!("match: {{status: {{conditions: {conditions}}}}}"))
}

fn workload(kind: Kind) -> String {
    format!("kind: {}, name: {}", kind.word(), kind.name())
}

pub fn at_rest(resource: &str, object: &str) -> String {
    let kind = super::acts::KINDS.into_iter().find(|kind| kind.resource() == resource);
    let of = match kind {
        Some(kind) => workload(kind),
        None if resource == "nodes" => a_node(object),
        None => format!("kind: Pod, name: {object}"),
    };
    format!("unchanged: {{of: {{{of}}}, field: metadata.resourceVersion, for: 8s}}")
}
