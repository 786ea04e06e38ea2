//! Small histories, told in milliseconds, and scenarios to judge them by.

use rigor_model::catalogue::Catalogue;
use rigor_model::{Constants, Outcome, Scenario};
use rigor_trace::history::{Fact, Fault, FaultKind, FaultLevel, History, Micros, Phase, Verb};
use rigor_trace::{ScenarioVerdict, Verdict, judge};
use serde_json::{Value, json};

pub const CATALOGUE: &str = "version: 2\nareas: {node: [{id: NODE-03, profile: kube32, must: one}]}\n";

/// A scenario of two boards with these steps.
pub fn scenario(steps: &str) -> Scenario {
    let indented: String = steps.lines().map(|line| format!("    {line}\n")).collect();
    let source = format!(
        "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: tale, requirements: [NODE-03], profile: kube32}}\nspec:\n  rig: {{boards: 2}}\n  steps:\n{indented}"
    );
    let catalogue =
        Catalogue::parse("catalogue.yaml", CATALOGUE).unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
    Scenario::parse("tale.yaml", &source, &catalogue, &|_| Err("there are no files".to_owned()))
        .unwrap_or_else(|mistakes| panic!("{mistakes:#}"))
        .remove(0)
}

/// A history in the making.
#[derive(Clone)]
pub struct Story {
    pub history: History,
    next_version: u64,
}

impl Story {
    /// In virtual time: every instant is exact. The slack is 50 ms.
    pub fn exact() -> Story {
        Story::with(Constants::default())
    }

    /// In virtual time, with constants of its own but for the slack.
    pub fn with(constants: Constants) -> Story {
        Story::start(None, 50, constants, FaultLevel::None)
    }

    /// In real time: instants are as good as pulses make them. The slack is 500 ms.
    pub fn real() -> Story {
        Story::start(Some("2026-01-01T00:00:00Z".to_owned()), 500, Constants::default(), FaultLevel::None)
    }

    /// In virtual time, with injected faults of that level.
    pub fn faulty(level: FaultLevel) -> Story {
        Story::start(None, 50, Constants::default(), level)
    }

    /// A fault, from `millis` until another time; without one there is no end of it.
    pub fn fault(&mut self, millis: u64, site: &str, kind: FaultKind, phase: Phase) -> &mut Story {
        let fault = Fault { site: site.into(), nth: 0, kind };
        self.fact(millis, Fact::Fault { fault, phase })
    }

    fn start(wall: Option<String>, slack: u64, constants: Constants, level: FaultLevel) -> Story {
        let constants = Constants { slack: std::time::Duration::from_millis(slack), ..constants };
        let mut story = Story { history: History::new(), next_version: 100 };
        story.fact(
            0,
            Fact::TrialStarted {
                scenario: "tale".into(),
                rig: "test".into(),
                case: None,
                seed: 1,
                wall,
                constants,
                faults: level,
            },
        );
        for stream in ["nodes", "pods", "events", "leases", "deployments"] {
            story.fact(0, Fact::Synced { stream: stream.into() });
        }
        story
    }

    pub fn fact(&mut self, millis: u64, fact: Fact) -> &mut Story {
        self.history.push(Micros(millis * 1000), fact);
        self
    }

    pub fn begin(&mut self, millis: u64, index: usize) -> &mut Story {
        self.fact(millis, Fact::Step { index, phase: Phase::Begin })
    }

    pub fn end(&mut self, millis: u64, index: usize) -> &mut Story {
        self.fact(millis, Fact::Step { index, phase: Phase::End })
    }

    /// An object version; its resourceVersion is the next one.
    pub fn see(&mut self, millis: u64, verb: Verb, stream: &str, object: Value) -> &mut Story {
        let version = self.next_version;
        self.next_version += 1;
        self.see_version(millis, verb, stream, object, version)
    }

    pub fn see_version(
        &mut self,
        millis: u64,
        verb: Verb,
        stream: &str,
        mut object: Value,
        version: u64,
    ) -> &mut Story {
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!("uid-1");
        }
        self.next_version = self.next_version.max(version + 1);
        self.fact(millis, Fact::Object { stream: stream.into(), verb, object })
    }

    /// A poll of the server: what is written later has a larger resourceVersion than anything so far.
    pub fn pulse(&mut self, sent: u64, answered: u64) -> &mut Story {
        let resource_version = self.next_version - 1;
        self.fact(answered, Fact::Pulse { sent: Micros(sent * 1000), resource_version })
    }

    /// A node's Ready condition.
    pub fn ready(&mut self, millis: u64, node: &str, status: &str) -> &mut Story {
        self.see(millis, Verb::Modified, "nodes", node_object(node, status))
    }

    /// A renewal of a node's lease.
    pub fn renew(&mut self, millis: u64, node: &str) -> &mut Story {
        let renewed = format!(
            "2026-01-01T00:{:02}:{:02}.{:03}000Z",
            millis / 60_000,
            millis / 1000 % 60,
            millis % 1000
        );
        let lease = json!({"kind": "Lease", "metadata": {"name": node, "namespace": "kube-node-lease"}, "spec": {"renewTime": renewed, "leaseDurationSeconds": 15}});
        self.see(millis, Verb::Modified, "leases", lease)
    }

    /// An Event, with a count.
    pub fn event(&mut self, millis: u64, name: &str, reason: &str, count: u64) -> &mut Story {
        let verb = if count == 1 { Verb::Added } else { Verb::Modified };
        let event = json!({"kind": "Event", "metadata": {"name": name, "namespace": "default"}, "reason": reason, "count": count,
            "message": format!("{reason} happened"), "involvedObject": {"kind": "Pod", "name": "lamp"}});
        self.see(millis, verb, "events", event)
    }

    pub fn pod(&mut self, millis: u64, verb: Verb, name: &str, node: &str, phase: &str) -> &mut Story {
        let pod = json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
            "spec": {"nodeName": node}, "status": {"phase": phase}});
        self.see(millis, verb, "pods", pod)
    }

    pub fn console(&mut self, millis: u64, board: &str, line: &str) -> &mut Story {
        self.fact(millis, Fact::Console { board: board.into(), line: line.into() })
    }

    /// A line that a second scheduler prints.
    pub fn printed(&mut self, millis: u64, scheduler: &str, line: &str) -> &mut Story {
        self.fact(millis, Fact::SchedulerLine { name: scheduler.into(), line: line.into() })
    }

    /// The verdict on the first step, as one word and the second line of its message and further ones.
    pub fn told(&self, scenario: &Scenario) -> String {
        self.told_of(scenario, 0)
    }

    /// The verdict on a step, likewise.
    pub fn told_of(&self, scenario: &Scenario, index: usize) -> String {
        let verdict = self.judged(scenario).steps.remove(index).1;
        let told = verdict.message.as_deref().unwrap_or_default();
        let why = told.lines().filter(|line| !line.trim_start().starts_with("not ")).skip(1).map(str::trim);
        let why: Vec<&str> = why
            .filter(|line| {
                !line.starts_with("evidence") && !line.starts_with("from  ") && !line.starts_with("until ")
            })
            .collect();
        format!("{}{}{}", verdict.outcome.name(), if why.is_empty() { "" } else { ": " }, why.join(" | "))
    }

    pub fn first(&self, scenario: &Scenario) -> Verdict {
        self.judged(scenario).steps.remove(0).1
    }

    pub fn judged(&self, scenario: &Scenario) -> ScenarioVerdict {
        judge(scenario, &self.history)
    }

    pub fn outcome(&self, scenario: &Scenario) -> Outcome {
        self.judged(scenario).outcome
    }
}

pub fn node_object(node: &str, status: &str) -> Value {
    json!({"kind": "Node", "metadata": {"name": node}, "spec": {}, "status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": format!("since {status}")}]}})
}

impl Story {
    /// The verdict on the first step with its whole message.
    pub fn told_whole(&self, scenario: &Scenario) -> String {
        let verdict = self.first(scenario);
        format!("{}: {}", verdict.outcome.name(), verdict.message.unwrap_or_default())
    }
}
