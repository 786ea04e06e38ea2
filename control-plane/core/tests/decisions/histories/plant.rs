//! A store, its controllers in the server's order, and the boards around it, half a second at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use control_plane_core::controllers::garbage::GarbageConfig;
use control_plane_core::controllers::pod_garbage::{self, PodGarbageConfig};
use control_plane_core::controllers::{daemonset, deployment, job, node_lifecycle};
use control_plane_core::{Key, Object};
use serde_json::{Value, json};

use super::acts::{
    Act, BOARDS, CHECK, KINDS, Kind, MIN_READY, NOT_READY, PERIOD, PLAYED, Place, Stay, TOLERATION,
};
use super::boards::{Board, Played};
use super::rules::{Rules, Violation};
use crate::world::{World, delete};

/// How often pods that nobody needs are looked for.
const COLLECTION: i64 = 5_000;
/// How long a server that crashed is away.
const CRASHED: i64 = 1_000;

fn ms(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

pub struct Plant {
    pub world: World,
    pub rules: Rules,
    pub boards: Vec<Board>,
    played: Vec<Played>,
    /// Since the beginning, whatever the server's own clock says.
    now: i64,
    pub ticks: u64,
    /// What each kind's last pass had seen, where it left nothing to do, and when time alone gives it something.
    resting: BTreeMap<Kind, (usize, Option<Duration>)>,
    /// What the garbage collector has seen.
    collected: usize,
}

impl Plant {
    pub fn new() -> Self {
        let mut world = World::new();
        let of = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
        world.lifecycle.not_ready_timeout = ms(NOT_READY);
        world.admits = Some(TOLERATION / 1000);
        world.garbage = GarbageConfig {
            kinds: [
                (of("", "Node"), "nodes"),
                (of("", "Pod"), "pods"),
                (of("apps", "Deployment"), "deployments"),
                (of("apps", "DaemonSet"), "daemonsets"),
                (of("batch", "Job"), "jobs"),
            ]
            .into(),
            namespaced: ["pods", "deployments", "daemonsets", "jobs"].into(),
        };
        for profile in world.scheduler.distinct_profiles() {
            world.snapshot.keep_ledger(profile);
        }
        let boards = BOARDS.into_iter().map(Board::new).collect();
        let played = PLAYED.into_iter().map(Played::new).collect();
        let rules = Rules::new(world.now.wall);
        let (resting, collected) = (BTreeMap::new(), 0);
        let mut plant = Self { world, rules, boards, played, now: 0, ticks: 0, resting, collected };
        assert_eq!(plant.outside(), Ok(()), "boards come");
        plant
    }

    /// Lets one thing happen, and half seconds pass where it says so.
    pub fn perform(&mut self, act: &Act) -> Result<(), Violation> {
        match act {
            Act::Restart { down } => self.restart(*down)?,
            Act::Crash { writes } => self.world.lives = Some(*writes),
            Act::Wait { millis } => {
                for _ in 0..millis / CHECK {
                    self.tick()?;
                }
            }
            act => {
                // What others write does not bring the server nearer to its end.
                let kept = self.world.lives.take();
                self.act(act)?;
                self.world.lives = kept;
            }
        }
        self.follow()
    }

    fn act(&mut self, act: &Act) -> Result<(), Violation> {
        let world = &mut self.world;
        match act {
            Act::Power { board, on } => self.board(board).switch(*on),
            Act::Link { board, up } => self.board(board).linked = *up,
            Act::Play { node, memory, gpio } => {
                let played = self.played.iter_mut().find(|it| it.name == *node).expect("a played node");
                played.play(world, (*memory, *gpio));
                played.act(world, self.now);
                self.follow()?;
                self.rules.reported(node, &self.world);
            }
            Act::Renewals { node, on } => {
                self.played.iter_mut().find(|it| it.name == *node).expect("a played node").renews = *on;
            }
            Act::Report { node } => {
                world.report(node, |_| {});
                self.follow()?;
                self.rules.reported(node, &self.world);
            }
            Act::Cordon { node, on } => {
                change_node(world, node, |node| node["spec"]["unschedulable"] = (*on).into())
            }
            Act::Label { node, on } => change_node(world, node, |node| {
                node["metadata"]["labels"]["place"] = if *on { "board" } else { "elsewhere" }.into();
            }),
            Act::DeleteNode { node } => world.remove("nodes", &Key::new("", *node)),
            Act::Create { pod, memory, gpio, place, stay } => {
                self.rules.made(*pod);
                world.create_pod(bare(*pod, (*memory, *gpio), *place, *stay));
            }
            Act::Delete { pod } => {
                self.rules.unmade(*pod);
                if let Some(pod) = world.get("pods", "default", &format!("p{pod}")) {
                    world.apply(delete(&pod, None));
                }
            }
            Act::Deploy { replicas } => match world.get("deployments", "default", "web") {
                Some(_) => respec(world, Kind::Deployment, |spec| spec["replicas"] = (*replicas).into()),
                None => drop(world.put("deployments", web(*replicas))),
            },
            Act::Spread => drop(world.put("daemonsets", agent())),
            Act::Work { completions, parallelism, ends_well } => {
                world.put("jobs", work(*completions, *parallelism, *ends_well));
            }
            Act::Note { kind, text } => respec(world, *kind, |spec| {
                spec["template"]["metadata"]["annotations"]["note"] = text.to_string().into();
            }),
            Act::Drop { kind } => world.remove(kind.resource(), &Key::new("default", kind.name())),
            Act::Cull { kind } => {
                let pods: Vec<Object> = world.snapshot.list("pods").map(|(_, pod)| pod.clone()).collect();
                for pod in pods.iter().filter(|pod| pod["metadata"]["labels"]["app"] == kind.name()) {
                    world.apply(delete(pod, None));
                }
            }
            Act::Restart { .. } | Act::Crash { .. } | Act::Wait { .. } => {}
        }
        Ok(())
    }

    fn board(&mut self, name: &str) -> &mut Board {
        self.boards.iter_mut().find(|it| it.name == name).expect("a board")
    }

    fn follow(&mut self) -> Result<(), Violation> {
        self.rules.follow(&self.world)
    }

    /// The server is away for so long; whatever it does afterwards follows from its store.
    fn restart(&mut self, down: i64) -> Result<(), Violation> {
        self.follow()?;
        self.world.lives = None;
        self.resting.clear();
        self.world.restart(ms(down));
        self.now += down;
        self.rules.restarted(&self.world);
        for profile in self.world.scheduler.distinct_profiles() {
            self.world.snapshot.keep_ledger(profile);
        }
        Ok(())
    }

    pub fn tick(&mut self) -> Result<(), Violation> {
        self.ticks += 1;
        self.world.pass(ms(CHECK));
        self.now += CHECK;
        self.outside()?;
        self.control()?;
        if self.world.lives == Some(0) {
            return self.restart(CRASHED);
        }
        self.rules.in_time(&self.world)
    }

    /// Boards and played nodes.
    fn outside(&mut self) -> Result<(), Violation> {
        let kept = self.world.lives.take();
        for board in &mut self.boards {
            let reports = board.act(&mut self.world, self.now);
            self.rules.follow(&self.world)?;
            if reports {
                self.rules.reported(board.name, &self.world);
            }
        }
        for node in &mut self.played {
            node.act(&mut self.world, self.now);
        }
        self.world.lives = kept;
        self.follow()
    }

    fn control(&mut self) -> Result<(), Violation> {
        let world = &mut self.world;
        for node in node_lifecycle::doubtful(&world.snapshot, &world.lifecycle, &world.now) {
            let decision = node_lifecycle::decide(&world.snapshot, &world.lifecycle, &node, &world.now);
            world.apply(decision);
        }
        for pod in node_lifecycle::endangered(&world.snapshot) {
            let decision = node_lifecycle::decide_pod(&world.snapshot, &world.lifecycle, &pod, &world.now);
            world.apply(decision);
        }
        if self.now % PERIOD == 0 {
            world.retry_pending();
            self.follow()?;
            for kind in KINDS {
                self.workload(kind)?;
            }
            for key in job::orphans(&self.world.snapshot) {
                let decision = job::decide_orphan(&self.world.snapshot, &key);
                self.world.apply(decision);
            }
        }
        self.follow()?;
        // What nothing was written for has nothing to follow from it.
        if self.collected != self.rules.written() {
            self.world.collect_garbage();
            self.rules.collected(&self.world)?;
            self.collected = self.rules.written();
        }
        if self.now % COLLECTION == 0 {
            let world = &mut self.world;
            let decision =
                pod_garbage::decide(&world.snapshot, PodGarbageConfig { threshold: 0 }, &world.now);
            world.apply(decision);
        }
        self.follow()
    }

    /// One pass over a workload, and what must hold right after it.
    fn workload(&mut self, kind: Kind) -> Result<(), Violation> {
        if self.world.snapshot.get(kind.resource(), "default", kind.name()).is_none()
            || self.world.lives == Some(0)
        {
            return Ok(());
        }
        let rests = |(seen, until): &(usize, Option<Duration>)| {
            *seen == self.rules.written() && until.is_none_or(|until| until > self.world.now.mono)
        };
        if self.resting.get(&kind).is_some_and(rests) {
            return Ok(());
        }
        let (seen, before) = (self.rules.written(), self.rules.standing(kind, &self.world));
        let config = deployment::DeploymentConfig { period: ms(PERIOD) };
        let decisions = match kind {
            Kind::Deployment => self
                .world
                .workload(|snapshot, key, now| deployment::decide(snapshot, &config, key, now), kind.name()),
            Kind::DaemonSet => self.world.workload(daemonset::decide, kind.name()),
            Kind::Job => self.world.workload(job::decide, kind.name()),
        };
        self.follow()?;
        if self.world.lives == Some(0) {
            return Ok(());
        }
        let again = decisions.last().and_then(|last| last.look_again);
        self.resting.insert(kind, (seen, again));
        self.rules.passed(kind, &before, &self.world)
    }

    /// Inputs stop: everything that is there is well from now on.
    pub fn mend(&mut self) -> Vec<Act> {
        let mut acts = Vec::new();
        for board in &self.boards {
            let name = board.name;
            if !board.powered {
                acts.push(Act::Power { board: name, on: true });
            }
            if !board.linked {
                acts.push(Act::Link { board: name, up: true });
            }
        }
        for (_, node) in self.world.snapshot.list("nodes") {
            let name =
                |list: &[&'static str]| list.iter().find(|name| node["metadata"]["name"] == **name).copied();
            let node_name = name(&BOARDS).or_else(|| name(&PLAYED)).expect("a node of ours");
            if node["spec"]["unschedulable"] == true {
                acts.push(Act::Cordon { node: node_name, on: false });
            }
            if node["metadata"]["labels"]["place"] == "elsewhere" {
                acts.push(Act::Label { node: node_name, on: true });
            }
            if let Some(played) = self.played.iter().find(|it| it.name == node_name && !it.renews) {
                acts.push(Act::Renewals { node: played.name, on: true });
            }
        }
        acts
    }
}

fn change_node(world: &mut World, name: &str, change: impl FnOnce(&mut Value)) {
    if world.get("nodes", "", name).is_some() {
        world.change("nodes", "", name, change);
    }
}

fn respec(world: &mut World, kind: Kind, change: impl FnOnce(&mut Value)) {
    world.change(kind.resource(), "default", kind.name(), |object| {
        change(&mut object["spec"]);
        let generation = object["metadata"]["generation"].as_i64().expect("a generation");
        object["metadata"]["generation"] = (generation + 1).into();
    });
}

/// A pod of nobody.
pub fn bare(number: usize, (memory, gpio): (u32, u32), place: Place, stay: Stay) -> Value {
    let mut requests = json!({"memory": format!("{memory}Ki")});
    if gpio > 0 {
        requests["esp32.io/gpio"] = gpio.to_string().into();
    }
    let container = json!({"name": "main", "image": "rigor.dev/pause", "resources": {"requests": requests}});
    let mut spec = json!({"containers": [container]});
    match place {
        Place::Anywhere => {}
        Place::OnBoards => spec["nodeSelector"] = json!({"place": "board"}),
        Place::OnPlayed => spec["nodeSelector"] = json!({"place": "played"}),
    }
    let mut toleration =
        json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"});
    match stay {
        Stay::Default => {}
        Stay::Seconds(seconds) => {
            toleration["tolerationSeconds"] = seconds.into();
            spec["tolerations"] = json!([toleration]);
        }
        Stay::Forever => spec["tolerations"] = json!([toleration]),
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{number}"), "namespace": "default"}, "spec": spec})
}

/// The template of a workload's pods; they ask for no memory, so that every board has room for them.
fn template(kind: Kind, args: Option<&str>) -> Value {
    let mut container =
        json!({"name": "main", "image": "rigor.dev/pause", "resources": {"requests": {"memory": "0"}}});
    let mut spec = json!({"nodeSelector": {"place": "board"}});
    if let Some(args) = args {
        container["image"] = "rigor.dev/builtin".into();
        container["args"] = json!([args]);
        spec["restartPolicy"] = "Never".into();
    }
    spec["containers"] = json!([container]);
    json!({"metadata": {"labels": {"app": kind.name()}, "annotations": {"note": "0"}}, "spec": spec})
}

fn workload(kind: Kind, group: &str, mut spec: Value, args: Option<&str>) -> Value {
    spec["selector"] = json!({"matchLabels": {"app": kind.name()}});
    spec["template"] = template(kind, args);
    let metadata = json!({"name": kind.name(), "namespace": "default", "generation": 1});
    json!({"apiVersion": format!("{group}/v1"), "kind": kind.word(), "metadata": metadata, "spec": spec})
}

pub fn web(replicas: u32) -> Value {
    let strategy =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}});
    let spec = json!({
        "replicas": replicas, "strategy": strategy, "minReadySeconds": MIN_READY / 1000, "progressDeadlineSeconds": 600,
    });
    workload(Kind::Deployment, "apps", spec, None)
}

pub fn agent() -> Value {
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    workload(Kind::DaemonSet, "apps", json!({"updateStrategy": strategy}), None)
}

pub fn work(completions: u32, parallelism: u32, ends_well: bool) -> Value {
    let spec = json!({
        "parallelism": parallelism, "completions": completions, "backoffLimit": 1, "completionMode": "NonIndexed",
        "suspend": false, "podReplacementPolicy": "TerminatingOrFailed",
    });
    let args = if ends_well { "exit:0:after=1s" } else { "exit:1:after=1s" };
    let mut job = workload(Kind::Job, "batch", spec, Some(args));
    job["metadata"]["annotations"] = json!({"ends": if ends_well { "well" } else { "badly" }});
    job
}
