//! What each verb is in a sentence, and a step that uses it: for editors, documents and skeletons.
//!
//! Every example is read by a test, and what it implies of the rig is told in the reference.

use crate::shape::FieldType;
use crate::verbs::Verb;

impl Verb {
    /// What it does or says, in one sentence.
    pub fn about(self) -> &'static str {
        match (self, self.value()) {
            (_, FieldType::Shape(shape)) => shape.about,
            (Verb::Wait, _) => {
                "Waits until an instant, or for a duration from the step's begin, and does nothing."
            }
            (Verb::Advance, _) => {
                "Waits for a duration where time is virtual, so that it costs nothing; skipped elsewhere."
            }
            (Verb::Parallel, _) => "Begins several acts together; no expectation, `wait` or `repeat` inside.",
            (Verb::Order, _) => "Each named instant is not before the one in front of it.",
            (_, _) => "",
        }
    }

    /// A step that uses it, on one line, without the dash.
    pub fn example(self) -> &'static str {
        match self {
            Verb::Apply => "apply: {file: web.yaml}",
            Verb::Create => {
                "create: {manifest: {apiVersion: v1, kind: Pod, metadata: {name: lamp}, spec: {containers: [{name: main, image: rigor.dev/pause}]}}}"
            }
            Verb::Replace => {
                "replace: {manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: red}}}"
            }
            Verb::Patch => {
                "patch: {kind: Node, name: a, type: merge, patch: {metadata: {labels: {zone: north}}}}"
            }
            Verb::Delete => "delete: {kind: Pod, name: lamp, grace: 0s}",
            Verb::Scale => "scale: {name: web, replicas: 3}",
            Verb::Cordon => "cordon: {node: \"${b}\"}",
            Verb::Uncordon => "uncordon: {node: \"${b}\"}",
            Verb::Bind => "bind: {pod: lamp, node: \"${b}\", answer: {status: 409}}",
            Verb::Request => {
                "request: {method: GET, path: /api/v1/nodes, user: anonymous, answer: {status: [401, 403]}}"
            }
            Verb::Power => "power: {board: a, do: cut}",
            Verb::Link => "link: {board: a, do: cut}",
            Verb::ControlPlane => "controlPlane: {do: restart}",
            Verb::Scheduler => "scheduler: {name: second-scheduler, do: start}",
            Verb::Flash => "flash: {board: a, image: previous}",
            Verb::Send => "send: {board: a, line: reboot}",
            Verb::Node => "node: {name: n1, allocatable: {memory: 64Ki}, labels: {zone: north}}",
            Verb::Mark => "mark: {name: heartbeats-stopped, node: n1}",
            Verb::Kubectl => "kubectl: {args: [get, pods], stdout: lamp}",
            Verb::Etcdctl => {
                "etcdctl: {args: [get, \"/registry/pods/${namespace}/lamp\"], stdout: '\"nodeName\":\"${b}\"'}"
            }
            Verb::Wait => "wait: 3s",
            Verb::Advance => "advance: 24h",
            Verb::Parallel => "parallel: [power: {board: a, do: cut}, power: {board: b, do: cut}]",
            Verb::Expect => {
                "expect: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, within: 10s}"
            }
            Verb::Never => "never: {of: {kind: Event}, match: {reason: Evicted}, for: 5s}",
            Verb::Always => {
                "always: {of: {kind: Pod, name: lamp}, match: {status: {phase: Running}}, for: leaseDuration}"
            }
            Verb::Unchanged => "unchanged: {of: {kind: Pod, name: lamp}, field: spec.nodeName, for: 5s}",
            Verb::Order => "order: [outage, tainted, evicted]",
            Verb::Capture => "capture: {of: {kind: Pod, name: lamp}, fields: {uid: metadata.uid}}",
            Verb::Repeat => "repeat: {times: 3, steps: [{wait: 1s}]}",
            Verb::Include => "include: {file: outage.yaml, with: {board: a}}",
            Verb::ForEach => "forEach: {name: gap, in: [1s, 2s], steps: [{wait: \"${gap}\"}]}",
        }
    }
}
