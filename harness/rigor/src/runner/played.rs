//! Nodes that the harness plays itself, the same way on every rig: objects written through the API as the
//! administrator, leases renewed and statuses reported on a schedule between the scenario's waits.
//!
//! The schedule is pure: it says what is due at an instant and when the next thing is; the runner sends it.

use jiff::Timestamp;
use rigor_model::Constants;
use rigor_model::act::{NodeState, PlayedNode, Renew, Report};
use rigor_model::kinds::LEASE_NAMESPACE;
use rigor_rigs::ApiRequest;
use rigor_trace::Micros;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A node's figures and its schedule.
#[derive(Debug, Clone)]
struct Played {
    allocatable: Map<String, Value>,
    capacity: Option<Map<String, Value>>,
    labels: BTreeMap<String, String>,
    state: NodeState,
    /// When the state was taken on.
    since: Timestamp,
    lease_duration: Duration,
    renewals: Schedule,
    reports: Schedule,
    /// Both as they were, while its heart does not beat.
    stopped: Option<(Schedule, Schedule)>,
}

/// Something done every so often, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Schedule {
    period: Option<Duration>,
    due: Option<Micros>,
}

impl Schedule {
    fn every(period: Duration, now: Micros) -> Self {
        Self { period: Some(period), due: Some(now + period) }
    }

    /// Whether it is due; if so, the next time is one period after it was due, or from now where that has passed.
    fn take(&mut self, now: Micros) -> bool {
        let Some(due) = self.due.filter(|due| *due <= now) else { return false };
        self.due = self.period.map(|period| {
            let next = due + period;
            if next > now { next } else { now + period }
        });
        true
    }

    /// Whether it is to be done once, later.
    fn is_to_come(&self, now: Micros) -> bool {
        self.period.is_none() && self.due.is_some_and(|due| due > now)
    }
}

/// All nodes a trial plays.
#[derive(Debug, Clone, Default)]
pub(super) struct PlayedNodes {
    nodes: BTreeMap<String, Played>,
}

impl PlayedNodes {
    /// The requests of a `node` act: a new node's objects, or a change of one that is played already.
    pub(super) fn act(
        &mut self,
        act: &PlayedNode,
        moment: Option<Micros>,
        constants: &Constants,
        now: Micros,
        wall: Timestamp,
    ) -> Vec<ApiRequest> {
        let mut requests = Vec::new();
        let is_new = !self.nodes.contains_key(&act.name);
        let node = self.nodes.entry(act.name.clone()).or_insert_with(|| Played::new(constants, wall));
        node.change(act, is_new, moment, constants, now, wall);
        if is_new {
            let mut object = besides(act);
            object["apiVersion"] = json!("v1");
            object["kind"] = json!("Node");
            object["metadata"]["name"] = json!(act.name);
            object["metadata"]["labels"] = json!(node.all_labels(&act.name));
            requests.push(ApiRequest::new("POST", "/api/v1/nodes", Some(&object)));
            if act.renew != Some(Renew::Never) {
                let lease = node.lease(&act.name, wall);
                let path = format!("/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases");
                requests.push(ApiRequest::new("POST", path, Some(&lease)));
            }
        } else {
            let mut patch = besides(act);
            if !act.labels.is_empty() {
                patch["metadata"]["labels"] = json!(act.labels);
            }
            if patch != json!({}) {
                requests.push(merge(format!("/api/v1/nodes/{}", act.name), &patch));
            }
            if act.lease_duration.is_some() || matches!(act.renew, Some(Renew::Every(_))) {
                requests.push(node.renewal(&act.name, wall));
            }
        }
        if matches!(act.report, Some(Report::At(_))) {
            if node.reports.take(now) {
                requests.push(node.report(&act.name, wall));
            }
            return requests;
        }
        let reports = act.report != Some(Report::Never)
            && node.state != NodeState::Bare
            && !node.reports.is_to_come(now);
        let changed = act.allocatable.is_some()
            || act.capacity.is_some()
            || act.state.is_some()
            || act.report.is_some();
        if reports && (is_new || changed) {
            requests.push(node.report(&act.name, wall));
        }
        requests
    }

    /// The requests by which a node's heart beats again; or none, and it does nothing any more until then. `None`: no such node is
    /// played.
    pub(super) fn heartbeats(
        &mut self,
        name: &str,
        beats: bool,
        now: Micros,
        wall: Timestamp,
    ) -> Option<Vec<ApiRequest>> {
        let node = self.nodes.get_mut(name)?;
        if !beats {
            let nothing = (Schedule::default(), Schedule::default());
            let before = (
                std::mem::replace(&mut node.renewals, nothing.0),
                std::mem::replace(&mut node.reports, nothing.1),
            );
            node.stopped.get_or_insert(before);
            return Some(Vec::new());
        }
        let Some((renewals, reports)) = node.stopped.take() else { return Some(Vec::new()) };
        let again = |schedule: Schedule| match schedule.period {
            Some(period) => Schedule::every(period, now),
            None => schedule,
        };
        (node.renewals, node.reports) = (again(renewals), again(reports));
        let mut requests = vec![node.renewal(name, wall)];
        if node.state != NodeState::Bare {
            requests.push(node.report(name, wall));
        }
        Some(requests)
    }

    /// When the next renewal or report is due.
    pub(super) fn next_due(&self) -> Option<Micros> {
        self.nodes.values().flat_map(|node| [node.renewals.due, node.reports.due]).flatten().min()
    }

    /// The renewals and reports that are due.
    pub(super) fn due(&mut self, now: Micros, wall: Timestamp) -> Vec<ApiRequest> {
        let mut requests = Vec::new();
        for (name, node) in &mut self.nodes {
            if node.renewals.take(now) {
                requests.push(node.renewal(name, wall));
            }
            if node.reports.take(now) {
                requests.push(node.report(name, wall));
            }
        }
        requests
    }
}

impl Played {
    fn new(constants: &Constants, wall: Timestamp) -> Self {
        Self {
            allocatable: Map::new(),
            capacity: None,
            labels: BTreeMap::new(),
            state: NodeState::Ready,
            since: wall,
            lease_duration: constants.lease_duration,
            renewals: Schedule::default(),
            reports: Schedule::default(),
            stopped: None,
        }
    }

    fn change(
        &mut self,
        act: &PlayedNode,
        is_new: bool,
        moment: Option<Micros>,
        constants: &Constants,
        now: Micros,
        wall: Timestamp,
    ) {
        if let Some(allocatable) = &act.allocatable {
            self.allocatable.clone_from(allocatable);
        }
        if act.capacity.is_some() {
            self.capacity.clone_from(&act.capacity);
        }
        self.labels.extend(act.labels.clone());
        if let Some(state) = act.state
            && state != self.state
        {
            self.state = state;
            self.since = wall;
        }
        if let Some(length) = act.lease_duration {
            self.lease_duration = length;
        }
        match &act.renew {
            Some(Renew::Every(length)) => self.renewals = Schedule::every(length.resolve(constants), now),
            Some(Renew::Stop | Renew::Never) => self.renewals = Schedule::default(),
            None if is_new => self.renewals = Schedule::every(constants.renew_interval, now),
            None => {}
        }
        match &act.report {
            Some(Report::Every(length)) => self.reports = Schedule::every(length.resolve(constants), now),
            Some(Report::At(_)) => self.reports = Schedule { period: None, due: moment },
            Some(Report::Now | Report::Never) => self.reports = Schedule::default(),
            None => {}
        }
        // What is said of its schedule while its heart does not beat holds afterwards too.
        if let Some((renewals, reports)) = &mut self.stopped {
            if act.renew.is_some() {
                *renewals = self.renewals;
            }
            if act.report.is_some() {
                *reports = self.reports;
            }
        }
    }

    fn all_labels(&self, name: &str) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.entry("kubernetes.io/hostname".to_owned()).or_insert_with(|| name.to_owned());
        labels
    }

    fn lease(&self, name: &str, wall: Timestamp) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
            "spec": self.lease_spec(name, wall),
        })
    }

    fn lease_spec(&self, name: &str, wall: Timestamp) -> Value {
        json!({
            "holderIdentity": name,
            "leaseDurationSeconds": self.lease_duration.as_secs(),
            "renewTime": wall.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        })
    }

    fn renewal(&self, name: &str, wall: Timestamp) -> ApiRequest {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases/{name}");
        merge(path, &json!({"spec": self.lease_spec(name, wall)}))
    }

    fn report(&self, name: &str, wall: Timestamp) -> ApiRequest {
        let (status, reason, message) = match self.state {
            NodeState::Ready | NodeState::Bare => ("True", "KubeletReady", "played node is ready"),
            NodeState::Unready => ("False", "KubeletNotReady", "played node is not ready"),
            NodeState::Unknown => ("Unknown", "PlayedUnknown", "played node says it does not know"),
        };
        let condition = json!({
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": seconds(wall),
            "lastTransitionTime": seconds(self.since),
        });
        let status = json!({
            "allocatable": self.allocatable,
            "capacity": self.capacity.as_ref().unwrap_or(&self.allocatable),
            "conditions": [condition],
        });
        merge(format!("/api/v1/nodes/{name}/status"), &json!({"status": status}))
    }
}

/// What an act says of a node besides its labels and its status.
fn besides(act: &PlayedNode) -> Value {
    let mut patch = json!({});
    if !act.annotations.is_empty() {
        patch["metadata"] = json!({"annotations": act.annotations});
    }
    if let Some(taints) = &act.taints {
        patch["spec"]["taints"] = json!(taints);
    }
    if let Some(unschedulable) = act.unschedulable {
        patch["spec"]["unschedulable"] = json!(unschedulable);
    }
    patch
}

fn merge(path: String, patch: &Value) -> ApiRequest {
    ApiRequest::new("PATCH", path, Some(patch)).header("content-type", "application/merge-patch+json")
}

fn seconds(wall: Timestamp) -> String {
    wall.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_model::expr::{Instant, Length};

    fn act(name: &str) -> PlayedNode {
        PlayedNode {
            name: name.to_owned(),
            allocatable: None,
            capacity: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: None,
            unschedulable: None,
            state: None,
            lease_duration: None,
            renew: None,
            report: None,
        }
    }

    fn figures(memory: &str) -> Option<Map<String, Value>> {
        json!({"memory": memory}).as_object().cloned()
    }

    struct Stage {
        nodes: PlayedNodes,
        constants: Constants,
    }

    impl Stage {
        fn new() -> Self {
            Self { nodes: PlayedNodes::default(), constants: Constants::default() }
        }

        fn wall(now: Micros) -> Timestamp {
            "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + now.as_duration()
        }

        fn act(&mut self, act: &PlayedNode, now: Micros) -> Vec<String> {
            self.act_at(act, None, now)
        }

        fn act_at(&mut self, act: &PlayedNode, moment: Option<Micros>, now: Micros) -> Vec<String> {
            lines(&self.nodes.act(act, moment, &self.constants, now, Self::wall(now)))
        }

        fn due(&mut self, now: Micros) -> Vec<String> {
            lines(&self.nodes.due(now, Self::wall(now)))
        }
    }

    fn lines(requests: &[ApiRequest]) -> Vec<String> {
        requests
            .iter()
            .map(|request| {
                format!("{} {} {}", request.method, request.path, request.body.as_deref().unwrap_or_default())
            })
            .collect()
    }

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_new_node_has_a_lease_and_a_status() {
        let mut stage = Stage::new();
        let first = PlayedNode { allocatable: figures("64Ki"), ..act("n1") };
        insta::assert_snapshot!(stage.act(&first, Micros(1_500_000)).join("\n"));
    }

    #[test]
    fn leases_are_renewed_on_time_and_no_more_once_stopped() {
        let mut stage = Stage::new();
        stage.act(&act("n1"), Micros(SECOND));
        assert_eq!(stage.nodes.next_due(), Some(Micros(6 * SECOND)));
        assert!(stage.due(Micros(6 * SECOND - 1)).is_empty());
        let renewals = stage.due(Micros(6 * SECOND));
        assert_eq!(renewals.len(), 1);
        assert!(renewals[0].contains("\"renewTime\":\"2026-01-01T00:00:06.000000Z\""), "{renewals:?}");
        assert_eq!(stage.nodes.next_due(), Some(Micros(11 * SECOND)));
        // A look that comes late catches up with one renewal, not with several.
        assert_eq!(stage.due(Micros(40 * SECOND)).len(), 1);
        assert_eq!(stage.nodes.next_due(), Some(Micros(45 * SECOND)));
        let stopped = stage.act(&PlayedNode { renew: Some(Renew::Stop), ..act("n1") }, Micros(41 * SECOND));
        assert!(stopped.is_empty(), "{stopped:?}");
        assert_eq!(stage.nodes.next_due(), None);
    }

    #[test]
    fn what_is_said_of_a_schedule_while_the_heart_stands_still_holds_afterwards() {
        let check = |said: PlayedNode, expected: Option<u64>| {
            let mut stage = Stage::new();
            stage.act(&act("n1"), Micros(SECOND));
            let beat = |stage: &mut Stage, beats, seconds| {
                let now = Micros(seconds * SECOND);
                lines(&stage.nodes.heartbeats("n1", beats, now, Stage::wall(now)).unwrap()).len()
            };
            assert_eq!(beat(&mut stage, false, 2), 0);
            assert_eq!(stage.nodes.next_due(), None);
            stage.act(&said, Micros(3 * SECOND));
            assert_eq!(beat(&mut stage, true, 10), 2);
            assert_eq!(stage.nodes.next_due(), expected.map(|seconds| Micros(seconds * SECOND)));
        };
        check(act("n1"), Some(15));
        let every = Renew::Every(Length::Fixed(Duration::from_secs(2)));
        check(PlayedNode { renew: Some(every), ..act("n1") }, Some(12));
        check(PlayedNode { renew: Some(Renew::Stop), ..act("n1") }, None);
    }

    #[test]
    fn what_is_not_to_be_is_not_written() {
        let mut stage = Stage::new();
        let check = |stage: &mut Stage, act: PlayedNode, expected: &[&str]| {
            let got = stage.act(&act, Micros(0));
            let heads: Vec<String> =
                got.iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
            assert_eq!(heads, expected, "{act:?}");
        };
        let never = PlayedNode { renew: Some(Renew::Never), report: Some(Report::Never), ..act("n1") };
        check(&mut stage, never, &["POST /api/v1/nodes"]);
        assert_eq!(stage.nodes.next_due(), None);
        let lease = "POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let bare = PlayedNode { state: Some(NodeState::Bare), ..act("n2") };
        check(&mut stage, bare, &["POST /api/v1/nodes", lease]);
        let known = |change: PlayedNode| PlayedNode { name: "n2".to_owned(), ..change };
        let status = "PATCH /api/v1/nodes/n2/status";
        check(&mut stage, known(PlayedNode { state: Some(NodeState::Unready), ..act("") }), &[status]);
        check(&mut stage, known(PlayedNode { allocatable: figures("1Ki"), ..act("") }), &[status]);
        let labelled = PlayedNode { labels: [("zone".to_owned(), "x".to_owned())].into(), ..act("") };
        check(&mut stage, known(labelled), &["PATCH /api/v1/nodes/n2"]);
        let short = PlayedNode { lease_duration: Some(Duration::from_secs(2)), ..act("") };
        check(
            &mut stage,
            known(short),
            &["PATCH /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2"],
        );
        check(&mut stage, known(PlayedNode { report: Some(Report::Now), ..act("") }), &[status]);
    }

    #[test]
    fn a_report_can_be_given_at_an_instant_and_not_before() {
        let mut stage = Stage::new();
        let at = |renew| PlayedNode { renew, report: Some(Report::At(Instant::Start)), ..act("n1") };
        let first = stage.act_at(&at(Some(Renew::Never)), Some(Micros(2 * SECOND)), Micros(0));
        assert_eq!(first.len(), 1, "{first:?}");
        let figures = PlayedNode { allocatable: figures("1Ki"), ..act("n1") };
        assert!(stage.act(&figures, Micros(SECOND)).is_empty(), "it waits for its moment");
        assert_eq!(stage.nodes.next_due(), Some(Micros(2 * SECOND)));
        assert!(stage.due(Micros(2 * SECOND - 1)).is_empty());
        let due = stage.due(Micros(2 * SECOND));
        assert!(due.len() == 1 && due[0].contains("\"memory\":\"1Ki\""), "{due:?}");
        assert_eq!(stage.nodes.next_due(), None);
        let past = stage.act_at(&at(None), Some(Micros(SECOND)), Micros(3 * SECOND));
        assert!(past.len() == 1 && past[0].starts_with("PATCH /api/v1/nodes/n1/status"), "{past:?}");
        assert_eq!(stage.nodes.next_due(), None);
    }

    #[test]
    fn annotations_taints_and_cordons_are_written() {
        let mut stage = Stage::new();
        let node = PlayedNode {
            annotations: [("a".to_owned(), "b".to_owned())].into(),
            taints: Some(vec![json!({"key": "k", "effect": "NoSchedule"})]),
            unschedulable: Some(true),
            renew: Some(Renew::Never),
            report: Some(Report::Never),
            ..act("n1")
        };
        let created = stage.act(&node, Micros(0));
        assert_eq!(
            created,
            [
                r#"POST /api/v1/nodes {"apiVersion":"v1","kind":"Node","metadata":{"annotations":{"a":"b"},"labels":{"kubernetes.io/hostname":"n1"},"name":"n1"},"spec":{"taints":[{"effect":"NoSchedule","key":"k"}],"unschedulable":true}}"#
            ]
        );
        let bare = PlayedNode { taints: Some(Vec::new()), unschedulable: Some(false), ..act("n1") };
        assert_eq!(
            stage.act(&bare, Micros(0)),
            [r#"PATCH /api/v1/nodes/n1 {"spec":{"taints":[],"unschedulable":false}}"#]
        );
    }

    #[test]
    fn a_report_can_be_given_every_so_often() {
        let mut stage = Stage::new();
        let every = Report::Every(Length::Fixed(Duration::from_secs(2)));
        let node = PlayedNode { renew: Some(Renew::Stop), report: Some(every), ..act("n1") };
        stage.act(&node, Micros(0));
        assert_eq!(stage.nodes.next_due(), Some(Micros(2 * SECOND)));
        let due = stage.due(Micros(2 * SECOND));
        assert!(due.len() == 1 && due[0].starts_with("PATCH /api/v1/nodes/n1/status"), "{due:?}");
    }
}
