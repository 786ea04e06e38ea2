//! The simulated rig with the real server and the real kubelet, under the true constants.

use std::time::Duration;

use rigor_model::act::Tool;
use rigor_model::{Constants, Faults};
use rigor_rigs::{ApiRequest, BoardSpec, ControlPlaneAct, LinkChange, PowerAct, World};
use rigor_trace::history::{Fact, Micros, Record, Verb};
use serde_json::{Value, json};

/// A trial and what one may ask of its history.
struct Trial {
    world: Box<dyn World>,
}

fn constants() -> Constants {
    Constants { slack: Duration::from_millis(50), ..Constants::default() }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

impl Trial {
    fn open(boards: &[&str], seed: u64) -> Self {
        let specs: Vec<BoardSpec> = boards.iter().map(|name| BoardSpec::named(*name)).collect();
        Self { world: rigor_sim::open(&constants(), &specs, seed, &Faults::None).unwrap() }
    }

    fn now(&self) -> Micros {
        self.world.now()
    }

    fn pass(&mut self, length: Duration) {
        let until = self.now() + length;
        while self.now() < until {
            self.world.wait(until);
        }
    }

    /// The first record from `from` on that `wanted` accepts; time passes until it comes, for 10 minutes at most.
    fn first(&mut self, what: &str, from: Micros, wanted: impl Fn(&Fact) -> bool) -> Record {
        let limit = self.now() + seconds(600.0);
        let mut next = 0;
        loop {
            let records = self.world.history().records();
            if let Some(record) = records[next..].iter().find(|it| it.at >= from && wanted(&it.fact)) {
                return record.clone();
            }
            next = records.len();
            assert!(self.now() < limit, "{what} did not come; console and objects:\n{}", self.tail());
            self.world.wait(limit);
        }
    }

    /// When an object of `stream` named `name` first is as wanted, from `from` on.
    fn object(
        &mut self,
        stream: &str,
        name: &str,
        from: Micros,
        wanted: impl Fn(&Value) -> bool,
    ) -> (Micros, Value) {
        let what = format!("{stream}/{name}");
        let record = self.first(&what, from, |fact| match fact {
            Fact::Object { stream: it, object, verb } => {
                *verb != Verb::Deleted && it == stream && object["metadata"]["name"] == name && wanted(object)
            }
            _ => false,
        });
        let Fact::Object { object, .. } = record.fact else { unreachable!("an object was asked for") };
        (record.at, object)
    }

    fn ready(&mut self, node: &str, status: &str, from: Micros) -> Micros {
        self.object("nodes", node, from, |it| condition(it, "Ready")["status"] == status).0
    }

    fn running(&mut self, pod: &str, from: Micros) -> (Micros, Value) {
        self.object("pods", pod, from, |it| {
            it["status"]["phase"] == "Running" && condition(it, "Ready")["status"] == "True"
        })
    }

    /// When the server last accepted a renewal of the node's lease.
    fn last_renewal(&self, node: &str) -> Micros {
        let renewals = self.world.history().records().iter().rev();
        let mut renewals = renewals.filter(|it| {
            matches!(&it.fact, Fact::Object { stream, object, .. } if stream == "leases" && object["metadata"]["name"] == node)
        });
        renewals.next().expect("a lease").at
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        let answer = self.world.request(ApiRequest::new("POST", path, Some(body)));
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.body.unwrap()
    }

    fn pod(&mut self, name: &str, node: Option<&str>) -> Value {
        let mut spec = json!({"containers": [{"name": "main", "image": "rigor.dev/pause"}]});
        if let Some(node) = node {
            spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
        }
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        self.post("/api/v1/namespaces/default/pods", &pod)
    }

    /// The end of the history, for messages.
    fn tail(&self) -> String {
        let records = self.world.history().records();
        let interesting = records
            .iter()
            .filter(|it| !matches!(&it.fact, Fact::Object { stream, .. } if stream == "leases"));
        let lines: Vec<_> = interesting.map(|it| serde_json::to_string(it).unwrap()).collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn jsonl(&self) -> String {
        self.world.history().records().iter().map(|it| serde_json::to_string(it).unwrap() + "\n").collect()
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().find(|it| it["type"] == kind).unwrap_or(&Value::Null)
}

fn has_taint(node: &Value, key: &str, effect: &str) -> bool {
    let taints = node["spec"]["taints"].as_array().map_or(&[][..], Vec::as_slice);
    taints.iter().any(|it| it["key"] == key && it["effect"] == effect)
}

#[track_caller]
fn within(what: &str, at: Micros, from: Micros, earliest: Duration, latest: Duration) {
    let after = at.since(from);
    assert!(
        at >= from && after >= earliest && after <= latest,
        "{what} came {after:?} after its cause, not {earliest:?} to {latest:?}"
    );
}

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

#[test]
fn boards_become_ready_and_run_pods() {
    let mut trial = Trial::open(&["a", "b", "c"], 1);
    for node in ["a", "b", "c"] {
        let at = trial.ready(node, "True", Micros::ZERO);
        within(node, at, Micros::ZERO, seconds(0.04), seconds(0.5));
    }
    let created = trial.now();
    let pod = trial.pod("web", Some("b"));
    assert_eq!(pod["spec"]["nodeName"], "b");
    let (at, pod) = trial.running("web", created);
    within("running", at, created, seconds(0.0), seconds(0.5));
    assert_eq!(pod["status"]["podIP"], "10.0.1.2");
}

#[test]
fn a_power_cut_leads_to_unknown_taints_and_eviction_each_in_its_window() {
    for seed in 1..=3 {
        let mut trial = Trial::open(&["a", "b"], seed);
        trial.ready("a", "True", Micros::ZERO);
        trial.ready("b", "True", Micros::ZERO);
        trial.pod("web", None);
        let (_, pod) = trial.running("web", Micros::ZERO);
        let node = pod["spec"]["nodeName"].as_str().unwrap().to_owned();
        let other = if node == "a" { "b" } else { "a" };
        trial.pass(seconds(12.3));
        trial.world.power(&node, PowerAct::Cut).unwrap();
        let cut = trial.now();
        let renewed = trial.last_renewal(&node);
        let (check, slack) = (seconds(0.5), seconds(0.05));
        let unknown = trial.ready(&node, "Unknown", cut);
        within("Unknown", unknown, renewed, seconds(15.0), seconds(15.0) + check + slack);
        let (tainted, _) = trial.object("nodes", &node, cut, |it| has_taint(it, UNREACHABLE, "NoSchedule"));
        within("NoSchedule", tainted, renewed, seconds(15.0), seconds(15.0) + check + slack);
        let (tainted, _) = trial.object("nodes", &node, cut, |it| has_taint(it, UNREACHABLE, "NoExecute"));
        within("NoExecute", tainted, renewed, seconds(30.0), seconds(30.0) + check + slack);
        let evicted = trial.first("eviction", cut, |fact| {
            matches!(fact, Fact::Object { stream, object, .. } if stream == "pods"
                && object["metadata"]["name"] == "web" && object["spec"]["nodeName"] != json!(node))
        });
        // timeAdded is a stamp in whole seconds.
        within("eviction", evicted.at, tainted, seconds(299.0), seconds(300.0) + check + slack);
        let (_, moved) = trial.object("pods", "web", evicted.at, |it| {
            it["status"]["phase"] == "Running" && it["spec"]["nodeName"] == json!(other)
        });
        assert_eq!(moved["spec"]["nodeName"], other);
    }
}

#[test]
fn a_board_that_returns_is_ready_again_and_free_of_taints() {
    let mut trial = Trial::open(&["a", "b"], 5);
    trial.ready("a", "True", Micros::ZERO);
    trial.world.power("a", PowerAct::Cut).unwrap();
    let cut = trial.now();
    trial.object("nodes", "a", cut, |it| has_taint(it, UNREACHABLE, "NoExecute"));
    trial.world.power("a", PowerAct::Restore).unwrap();
    let restored = trial.now();
    let back = trial.ready("a", "True", restored);
    within("Ready", back, restored, seconds(0.04), seconds(2.0));
    let clean = trial.object("nodes", "a", back, |it| {
        !has_taint(it, UNREACHABLE, "NoExecute") && !has_taint(it, UNREACHABLE, "NoSchedule")
    });
    within("no taints", clean.0, restored, seconds(0.0), seconds(2.5));
    let boots = trial.world.history().records().iter().filter(|it| {
        matches!(&it.fact, Fact::Console { board, line } if board == "a" && line.contains("reset=power-on"))
    });
    assert_eq!(boots.count(), 2);
}

#[test]
fn a_short_link_cut_moves_nothing_and_a_hang_looks_like_a_power_cut() {
    let mut trial = Trial::open(&["a", "b"], 9);
    trial.ready("a", "True", Micros::ZERO);
    trial.pod("web", Some("a"));
    let (_, before) = trial.running("web", Micros::ZERO);
    trial.world.link("a", LinkChange::Cut).unwrap();
    let cut = trial.now();
    trial.object("nodes", "a", cut, |it| has_taint(it, UNREACHABLE, "NoExecute"));
    trial.pass(seconds(60.0));
    trial.world.link("a", LinkChange::Heal).unwrap();
    let healed = trial.now();
    let back = trial.ready("a", "True", healed);
    within("Ready", back, healed, seconds(0.0), seconds(12.0));
    trial.pass(seconds(400.0));
    let pods = trial.world.history().records().iter().rev();
    let mut pods = pods.filter_map(|it| match &it.fact {
        Fact::Object { stream, object, .. } if stream == "pods" => Some(object),
        _ => None,
    });
    let after = pods.next().unwrap();
    assert_eq!(after["spec"]["nodeName"], "a");
    assert_eq!(after["status"]["containerStatuses"][0]["restartCount"], 0);
    assert_eq!(
        after["status"]["containerStatuses"][0]["state"],
        before["status"]["containerStatuses"][0]["state"]
    );
    trial.world.power("a", PowerAct::Hang).unwrap();
    let hung = trial.now();
    let renewed = trial.last_renewal("a");
    let unknown = trial.ready("a", "Unknown", hung);
    within("Unknown", unknown, renewed, seconds(15.0), seconds(15.55));
    trial.world.power("a", PowerAct::Resume).unwrap();
    let resumed = trial.now();
    let back = trial.ready("a", "True", resumed);
    within("Ready", back, resumed, seconds(0.0), seconds(12.0));
}

#[test]
fn a_restart_of_the_server_keeps_objects_and_gives_nodes_a_full_lease() {
    for act in [ControlPlaneAct::Stop, ControlPlaneAct::Kill] {
        let mut trial = Trial::open(&["a", "b"], 3);
        trial.ready("a", "True", Micros::ZERO);
        trial.ready("b", "True", Micros::ZERO);
        trial.pod("web", Some("a"));
        trial.running("web", Micros::ZERO);
        trial.world.control_plane(act).unwrap();
        trial.pass(seconds(60.0));
        trial.world.control_plane(ControlPlaneAct::Start).unwrap();
        let served = trial.now();
        trial.pass(seconds(120.0));
        let gaps = trial.world.history().records().iter();
        let gaps = gaps.filter(|it| matches!(&it.fact, Fact::Gap { stream, .. } if stream == "pods"));
        assert_eq!(gaps.count(), 1);
        for record in trial.world.history().records().iter().filter(|it| it.at >= served) {
            if let Fact::Object { stream, object, .. } = &record.fact {
                if stream == "nodes" {
                    assert_eq!(condition(object, "Ready")["status"], "True", "at {}", record.at);
                }
                if stream == "pods" {
                    assert_eq!(object["spec"]["nodeName"], "a", "at {}", record.at);
                }
            }
        }
    }
}

/// A run with a bit of everything.
fn busy(seed: u64) -> String {
    let mut trial = Trial::open(&["a", "b", "c"], seed);
    trial.ready("a", "True", Micros::ZERO);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "rigor.dev/pause"}]}}},
    });
    trial.post("/apis/apps/v1/namespaces/default/deployments", &deployment);
    trial.pass(seconds(5.0));
    trial.world.link("b", LinkChange::Cut).unwrap();
    trial.world.power("a", PowerAct::Cut).unwrap();
    trial.pass(seconds(40.0));
    trial.world.link("b", LinkChange::Heal).unwrap();
    trial.world.control_plane(ControlPlaneAct::Restart).unwrap();
    trial.world.power("c", PowerAct::Hang).unwrap();
    trial.pass(seconds(330.0));
    trial.world.power("c", PowerAct::Resume).unwrap();
    trial.world.power("a", PowerAct::Restore).unwrap();
    trial.pass(seconds(30.0));
    trial.jsonl()
}

#[test]
fn one_seed_gives_the_same_bytes_and_another_one_others() {
    let first = busy(1);
    assert_eq!(first, busy(1));
    assert_ne!(first, busy(2));
}

#[test]
fn evidence_and_bad_names() {
    let mut trial = Trial::open(&["a"], 1);
    trial.ready("a", "True", Micros::ZERO);
    let dir = tempfile::tempdir().unwrap();
    trial.world.save_evidence(dir.path()).unwrap();
    let log = std::fs::read_to_string(dir.path().join("control-plane.log")).unwrap();
    assert!(
        log.contains("observer GET /api/v1/nodes 200") && log.contains("a POST /api/v1/nodes 201"),
        "{log}"
    );
    assert!(trial.world.run(Tool::Kubectl, &["get".to_owned()], None).unwrap_err().remedy.is_some());
    let spec = BoardSpec::named("A Board");
    let Err(infra) = rigor_sim::open(&constants(), &[spec], 1, &Faults::None) else {
        panic!("the name was accepted")
    };
    assert!(infra.to_string().contains("nodeName"), "{infra}");
}
