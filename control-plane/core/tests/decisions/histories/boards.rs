//! Boards and played nodes as a history needs them: what they renew, run, end and report.

use std::collections::BTreeMap;

use control_plane_core::{Key, Object};
use serde_json::{Value, json};

use crate::world::{World, delete, node};

/// What a board has when nothing runs on it: KiB of memory, pins.
const BOARD: (u32, u32) = (128, 8);
const RENEWAL: i64 = 1_000;
/// How long a job's pod runs.
const RUN: i64 = 1_000;

/// A pod that runs: since when, and what it holds.
#[derive(Debug, Clone)]
struct Running {
    since: i64,
    memory: u32,
    gpio: u32,
}

#[derive(Debug, Clone)]
pub struct Board {
    pub name: &'static str,
    pub powered: bool,
    pub linked: bool,
    running: BTreeMap<String, Running>,
    renewed: i64,
    reported: (u32, u32),
}

#[derive(Debug, Clone)]
pub struct Played {
    pub name: &'static str,
    pub renews: bool,
    renewed: i64,
}

fn figures((memory, gpio): (u32, u32)) -> Value {
    json!({"memory": format!("{memory}Ki"), "esp32.io/gpio": gpio.to_string()})
}

/// What a pod asks for, in KiB and pins.
pub fn asked(pod: &Value) -> (u32, u32) {
    let requests = &pod["spec"]["containers"][0]["resources"]["requests"];
    let memory = requests["memory"].as_str().map_or("16", |text| text.trim_end_matches("Ki"));
    let gpio = requests["esp32.io/gpio"].as_str().unwrap_or("0");
    (memory.parse().expect("KiB"), gpio.parse().expect("a count"))
}

fn register(world: &mut World, name: &str, allocatable: Value, place: &str) {
    let mut object = node(name, allocatable);
    object["metadata"]["labels"]["place"] = place.into();
    let version = world.put("nodes", object);
    world.snapshot.status_reported(name, version);
}

fn renew(world: &mut World, name: &str) {
    world.renew(name, Some(super::acts::LEASE / 1000));
}

impl Board {
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            powered: true,
            linked: true,
            running: BTreeMap::new(),
            renewed: i64::MIN / 2,
            reported: BOARD,
        }
    }

    pub fn switch(&mut self, on: bool) {
        self.powered = on;
        self.running.clear();
    }

    pub fn is_in_touch(&self) -> bool {
        self.powered && self.linked
    }

    /// Whether this is the board's first report since it was cut off, or its figures are others than before.
    pub fn act(&mut self, world: &mut World, now: i64) -> bool {
        if !self.is_in_touch() {
            return false;
        }
        let mut reports = false;
        if world.snapshot.get("nodes", "", self.name).is_none() {
            self.reported = self.free();
            register(world, self.name, figures(self.reported), "board");
            self.renewed = i64::MIN / 2;
            reports = true;
        }
        if now - self.renewed >= RENEWAL {
            renew(world, self.name);
            self.renewed = now;
        }
        let here: Vec<Object> = world.snapshot.pods_on(self.name).map(|(_, pod)| pod.clone()).collect();
        let bound: Vec<&str> = here.iter().filter_map(|pod| pod["metadata"]["uid"].as_str()).collect();
        self.running.retain(|uid, _| bound.contains(&uid.as_str()));
        for pod in &here {
            self.tend(world, pod, now);
        }
        let free = self.free();
        if free != self.reported {
            self.reported = free;
            world.report(self.name, |status| status["allocatable"] = figures(free));
            reports = true;
        }
        reports
    }

    fn free(&self) -> (u32, u32) {
        self.running.values().fold(BOARD, |(memory, gpio), it| {
            (memory.saturating_sub(it.memory), gpio.saturating_sub(it.gpio))
        })
    }

    fn tend(&mut self, world: &mut World, pod: &Value, now: i64) {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let uid = pod["metadata"]["uid"].as_str().expect("a uid");
        let phase = pod["status"]["phase"].as_str().unwrap_or("Pending");
        if pod["metadata"]["deletionTimestamp"].is_string() {
            self.running.remove(uid);
            world.apply(delete(pod, Some(0)));
        } else if matches!(phase, "Succeeded" | "Failed") {
            self.running.remove(uid);
        } else if let Some(running) = self.running.get(uid) {
            let end = match pod["spec"]["containers"][0]["args"][0].as_str() {
                Some("exit:0:after=1s") => Some("Succeeded"),
                Some("exit:1:after=1s") => Some("Failed"),
                _ => None,
            };
            if let Some(end) = end.filter(|_| now - running.since >= RUN) {
                self.running.remove(uid);
                world.change("pods", "default", name, |pod| {
                    pod["status"]["phase"] = end.into();
                    pod["status"]["conditions"] = json!([]);
                });
            } else if phase != "Running" || !control_plane_core::conditions::is_true(pod, "Ready") {
                world.start(name);
            }
        } else {
            let (memory, gpio) = asked(pod);
            self.running.insert(uid.to_owned(), Running { since: now, memory, gpio });
            world.start(name);
        }
    }
}

impl Played {
    pub fn new(name: &'static str) -> Self {
        Self { name, renews: true, renewed: i64::MIN / 2 }
    }

    /// The node comes, or has these figures from now on.
    pub fn play(&mut self, world: &mut World, figures_now: (u32, u32)) {
        if world.snapshot.get("nodes", "", self.name).is_some() {
            world.report(self.name, |status| status["allocatable"] = figures(figures_now));
        } else {
            register(world, self.name, figures(figures_now), "played");
        }
        (self.renews, self.renewed) = (true, i64::MIN / 2);
    }

    pub fn act(&mut self, world: &mut World, now: i64) {
        let key = Key::new("", self.name);
        if self.renews && now - self.renewed >= RENEWAL && world.snapshot.at("nodes", &key).is_some() {
            renew(world, self.name);
            self.renewed = now;
        }
    }
}
