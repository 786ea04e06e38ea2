//! Histories of random services and pods: whoever applies a watch's events has, at each step, exactly what a list answers.

use std::collections::BTreeMap;

use control_plane::store::{Expect, Key, Store};
use futures_util::FutureExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ENDPOINTS, SERVICES, SLICES, member, service, version};
use crate::rig::{PODS, Rig};
use crate::watches::Watch;

/// Writes a pod past the API, more often than the history is long, so that nobody follows; answers the last version.
pub fn behind(rig: &Rig, name: &str) -> u64 {
    let key = || Key::new("pods", "default", name);
    let mut last = 0;
    for n in 0..10 {
        let entry = rig.store.get(&key()).now_or_never().unwrap().unwrap().unwrap();
        let mut pod = (*entry.object).clone();
        pod["status"] = json!({
            "phase": "Running",
            "podIP": format!("10.0.0.{n}"),
            "conditions": [{"type": "Ready", "status": "True"}],
        });
        let written = rig.store.put(key(), pod, Expect::Revision(entry.revision)).now_or_never().unwrap();
        last = written.unwrap().revision;
    }
    last
}

/// A copy that is kept by a watch, and what it copies.
struct Copy {
    list: String,
    watch: Watch,
    objects: BTreeMap<String, Value>,
    newest: u64,
    /// What one write did to several objects is told again to those who start there.
    from: u64,
}

impl Copy {
    /// Lists, and watches from there.
    fn of(rig: &Rig, path: &str, selector: &str) -> Self {
        let list = format!("{path}?{selector}");
        let listed = rig.get(&list);
        let from = version(&listed);
        let watch = Watch::of(rig, &format!("{path}?watch=1&{selector}&resourceVersion={from}"));
        Self { objects: Self::listed(rig, &list), list, watch, newest: from, from }
    }

    /// Loses the connection when `events` more were read, and goes on from the last version that it knows.
    fn cut(&mut self, rig: &Rig, events: usize) -> Result<(), TestCaseError> {
        for event in self.watch.events().iter().take(events) {
            self.apply(event)?;
        }
        self.from = self.newest;
        let query = format!("watch=1&resourceVersion={}", self.newest);
        self.watch = Watch::of(rig, &format!("{}&{query}", self.list));
        Ok(())
    }

    fn listed(rig: &Rig, list: &str) -> BTreeMap<String, Value> {
        let items = rig.list(list).into_iter();
        items.map(|object| (object["metadata"]["name"].to_string(), untyped(&object))).collect()
    }

    /// Applies an event, which must make sense.
    fn apply(&mut self, event: &Value) -> Result<(), TestCaseError> {
        let object = &event["object"];
        let name = object["metadata"]["name"].to_string();
        prop_assert!(version(object) >= self.newest, "versions go back: {event}");
        self.newest = version(object);
        let again = self.newest == self.from;
        let contents = untyped(object);
        let before = match event["type"].as_str().unwrap() {
            "DELETED" => self.objects.remove(&name),
            _ => self.objects.insert(name, contents.clone()),
        };
        let makes_sense = match (event["type"].as_str().unwrap(), &before) {
            ("ADDED", None) | ("MODIFIED" | "DELETED", Some(_)) => true,
            ("ADDED", Some(before)) => again && *before == contents,
            ("DELETED", None) => again,
            _ => false,
        };
        prop_assert!(makes_sense, "{event} after {before:?}");
        Ok(())
    }

    /// Applies what was told, and compares.
    fn check(&mut self, rig: &Rig) -> Result<(), TestCaseError> {
        for event in self.watch.events() {
            self.apply(&event)?;
        }
        prop_assert_eq!(&self.objects, &Self::listed(rig, &self.list));
        Ok(())
    }
}

/// An object without the type that the items of a list do not repeat.
fn untyped(object: &Value) -> Value {
    let mut object = object.clone();
    let fields = object.as_object_mut().unwrap();
    fields.remove("kind");
    fields.remove("apiVersion");
    object
}

#[derive(Debug, Clone)]
enum Step {
    Make(usize, usize, u16),
    Run(usize, &'static str, bool),
    Relabel(usize, usize),
    Delete(usize, bool),
    Serve(usize, &'static str),
    Select(usize, Option<usize>),
    Publish(usize, bool),
    Withdraw(usize),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let (pod, app) = (0..4_usize, 0..2_usize);
    let phases = proptest::sample::select(&["Running", "Running", "Running", "Pending", "Succeeded"][..]);
    let ports = proptest::sample::select(&["8080", "named", "none"][..]);
    prop_oneof![
        4 => (pod.clone(), app.clone(), 1..3_u16).prop_map(|(n, app, port)| Step::Make(n, app, port)),
        8 => (pod.clone(), phases, any::<bool>()).prop_map(|(n, phase, ready)| Step::Run(n, phase, ready)),
        2 => (pod.clone(), app.clone()).prop_map(|(n, app)| Step::Relabel(n, app)),
        2 => (pod, any::<bool>()).prop_map(|(n, held)| Step::Delete(n, held)),
        3 => (app.clone(), ports).prop_map(|(n, port)| Step::Serve(n, port)),
        2 => (app.clone(), proptest::option::of(app.clone())).prop_map(|(n, app)| Step::Select(n, app)),
        1 => (app.clone(), any::<bool>()).prop_map(|(n, all)| Step::Publish(n, all)),
        1 => app.prop_map(Step::Withdraw),
        1 => Just(Step::Restart),
    ]
}

/// Does a step, as far as it can be done.
fn act(rig: &mut Rig, step: &Step) {
    let (path, body, method) = match step {
        Step::Make(n, app, port) => {
            let mut pod = member(&format!("p{n}"), &format!("s{app}"));
            pod["spec"]["containers"][0]["ports"] = json!([{"name": "named", "containerPort": port}]);
            (PODS.to_owned(), pod, "POST")
        }
        Step::Run(n, phase, ready) => {
            let condition = json!({"type": "Ready", "status": if *ready { "True" } else { "False" }});
            let status = json!({"phase": phase, "podIP": format!("10.0.0.{n}"), "conditions": [condition]});
            (format!("{PODS}/p{n}/status"), json!({"status": status}), "PATCH")
        }
        Step::Relabel(n, app) => {
            let labels = json!({"app": format!("s{app}")});
            (format!("{PODS}/p{n}"), json!({"metadata": {"labels": labels}}), "PATCH")
        }
        Step::Delete(n, held) => {
            let path = format!("{PODS}/p{n}");
            let finalizers = if *held { json!(["rigor.dev/hold"]) } else { json!([]) };
            drop(rig.call("PATCH", &path, &json!({"metadata": {"finalizers": finalizers}})));
            (path, Value::Null, "DELETE")
        }
        Step::Serve(n, port) => {
            let mut service = service(&format!("s{n}"));
            service["spec"]["ports"][0]["targetPort"] =
                port.parse::<u16>().map_or(json!(port), |port| json!(port));
            (SERVICES.to_owned(), service, "POST")
        }
        Step::Select(n, app) => {
            let selector = app.map(|app| json!({"app": format!("s{app}")}));
            (format!("{SERVICES}/s{n}"), json!({"spec": {"selector": selector}}), "PATCH")
        }
        Step::Publish(n, all) => {
            (format!("{SERVICES}/s{n}"), json!({"spec": {"publishNotReadyAddresses": all}}), "PATCH")
        }
        Step::Withdraw(n) => (format!("{SERVICES}/s{n}"), Value::Null, "DELETE"),
        Step::Restart => return rig.restart(),
    };
    drop(rig.call(method, &path, &body));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_watch_of_what_is_computed_keeps_a_copy_of_its_list(
        steps in proptest::collection::vec(step(), 1..40),
        kubernetes in any::<bool>(),
        cuts in proptest::collection::vec(0..6_usize, 40),
    ) {
        let mut rig = Rig::with(|config| {
            if kubernetes {
                config.dialect = control_plane_api::Dialect::Kubernetes;
            }
        });
        let chosen = "labelSelector=kubernetes.io%2Fservice-name%3Ds0";
        let copies = |rig: &Rig| {
            [Copy::of(rig, ENDPOINTS, ""), Copy::of(rig, SLICES, ""), Copy::of(rig, SLICES, chosen)]
        };
        let mut following = copies(&rig);
        // These read nothing before the end.
        let mut sleeping = copies(&rig);
        // These lose their connection after every step.
        let mut torn = copies(&rig);
        for (step, events) in steps.into_iter().zip(cuts) {
            let before = (rig.list(ENDPOINTS), rig.list(SLICES));
            act(&mut rig, &step);
            if matches!(step, Step::Restart) {
                prop_assert_eq!(before, (rig.list(ENDPOINTS), rig.list(SLICES)));
            }
            for copy in &mut following {
                copy.check(&rig)?;
            }
            for copy in &mut torn {
                copy.cut(&rig, events)?;
            }
        }
        for copy in sleeping.iter_mut().chain(&mut torn) {
            copy.check(&rig)?;
        }
    }
}
