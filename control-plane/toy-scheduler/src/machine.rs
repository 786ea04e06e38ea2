//! The scheduler without I/O: objects go in as JSON, requests come out and their answers go in. It looks at pods as `run`
//! does and sends what `client` sends, so that it can be driven in virtual time.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use k8s_openapi::serde_json::{Value, from_value, to_value};
use kube::runtime::watcher::Event;

use crate::cluster::{Cluster, PodRef};
use crate::decide::{Decision, decide};
use crate::messages;

/// What is watched: all objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// `/api/v1/pods`.
    Pods,
    /// `/api/v1/nodes`.
    Nodes,
}

impl Watched {
    /// Both, in the order in which they are listed: a pod of the list meets every node that is older than it.
    pub const ALL: [Self; 2] = [Self::Pods, Self::Nodes];

    /// The path of the collection.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Pods => "/api/v1/pods",
            Self::Nodes => "/api/v1/nodes",
        }
    }
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new, or other than it was.
    Applied,
    /// It is gone.
    Deleted,
}

/// A POST to the API server.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    /// The path.
    pub path: String,
    /// The object.
    pub body: Value,
}

/// What is to be sent about a pod.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// A binding, whose answer goes to [`Machine::answered`].
    Bind(Placement, Post),
    /// An event, whose answer does not matter.
    Event(Post),
}

/// Which pod is to go where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The pod.
    pub pod: PodRef,
    /// The node's name.
    pub node: String,
}

/// A scheduler.
#[derive(Debug)]
pub struct Machine {
    scheduler: String,
    /// It binds nothing and says what it would have bound (EXT-07).
    dry_run: bool,
    cluster: Cluster,
    log: Vec<String>,
}

impl Machine {
    /// The scheduler of this name, which knows nothing yet.
    #[must_use]
    pub fn new(scheduler: &str) -> Self {
        let cluster = Cluster::new(scheduler);
        Self { scheduler: scheduler.to_owned(), dry_run: false, cluster, log: Vec::new() }
    }

    /// One that binds nothing and says what it would have bound (EXT-07).
    #[must_use]
    pub fn dry_run(scheduler: &str) -> Self {
        Self { dry_run: true, ..Self::new(scheduler) }
    }

    /// Takes in a whole list.
    ///
    /// # Errors
    /// An object is none of that kind.
    pub fn listed(&mut self, watched: Watched, objects: Vec<Value>) -> Result<(), String> {
        match watched {
            Watched::Pods => list(objects, |event| self.cluster.apply_pod(event))?,
            Watched::Nodes => list(objects, |event| self.cluster.apply_node(event))?,
        }
        if let (Watched::Nodes, Some((nodes, pods))) = (watched, self.cluster.size()) {
            let (name, dry) = (&self.scheduler, if self.dry_run { ", dry run" } else { "" });
            self.log.push(format!("ready: schedules for {name}, sees {nodes} nodes and {pods} pods{dry}"));
        }
        Ok(())
    }

    /// Takes in what a watch says of an object.
    ///
    /// # Errors
    /// It is none of that kind.
    pub fn seen(&mut self, watched: Watched, change: Change, object: Value) -> Result<(), String> {
        match watched {
            Watched::Pods => self.cluster.apply_pod(event(change, object)?),
            Watched::Nodes => self.cluster.apply_node(event(change, object)?),
        }
        Ok(())
    }

    /// A watch has ended; nothing is placed until both kinds have been listed again.
    pub fn lost(&mut self) {
        self.cluster.forget_lists();
    }

    /// Whether there is a pod to look at.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.cluster.waits()
    }

    /// Looks at the pod whose turn it is, once; what is to be sent of it, if anything. `now` is the date, in microseconds of Unix time.
    pub fn look(&mut self, now: i64) -> Option<Said> {
        let (pod, request) = self.cluster.take_waiting()?;
        match decide(request, &self.cluster.rooms()) {
            Decision::Bind(node) => {
                self.cluster.assume(&pod, Some(&node));
                if self.dry_run {
                    self.log.push(format!("{pod} would be bound to {node} (dry run)"));
                    return None;
                }
                let path = format!("/api/v1/namespaces/{}/pods/{}/binding", pod.namespace, pod.name);
                let post = Post { path, body: json(&messages::binding(&pod, &node)) };
                Some(Said::Bind(Placement { pod, node }, post))
            }
            Decision::NoFit(reason) => {
                self.log.push(format!("{pod} does not fit: {reason}"));
                Some(Said::Event(self.failed(&pod, &reason, now)))
            }
        }
    }

    /// Takes in the answer to a binding (its status code and message); what is to be said of it. `now` is
    /// the date, in microseconds of Unix time.
    pub fn answered(&mut self, placed: &Placement, code: u16, message: &str, now: i64) -> Option<Post> {
        let Placement { pod, node } = placed;
        if (200..300).contains(&code) {
            self.log.push(format!("{pod} bound to {node}"));
            let event = messages::scheduled(&self.scheduler, pod, node, date(now));
            return Some(post(pod, &event));
        }
        self.log.push(format!("{pod} not bound to {node}, {code}: {message}"));
        self.cluster.assume(pod, None);
        // Bound, going or gone: somebody else was faster.
        let late = matches!(code, 404 | 409);
        (!late).then(|| self.failed(pod, &messages::refused(node, message), now))
    }

    /// What it said since this was last asked, a line each.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn failed(&self, pod: &PodRef, reason: &str, now: i64) -> Post {
        post(pod, &messages::failed(&self.scheduler, pod, reason, date(now)))
    }
}

fn date(now: i64) -> Time {
    Time(Timestamp::from_microsecond(now).unwrap_or(Timestamp::MAX))
}

fn post(pod: &PodRef, event: &k8s_openapi::api::core::v1::Event) -> Post {
    Post { path: format!("/api/v1/namespaces/{}/events", pod.namespace), body: json(event) }
}

/// The types of the API are written as JSON whatever they hold.
fn json(object: &impl Serialize) -> Value {
    to_value(object).unwrap_or_default()
}

fn list<T: DeserializeOwned>(objects: Vec<Value>, mut take: impl FnMut(Event<T>)) -> Result<(), String> {
    take(Event::Init);
    for object in objects {
        take(Event::InitApply(read(object)?));
    }
    take(Event::InitDone);
    Ok(())
}

fn event<T: DeserializeOwned>(change: Change, object: Value) -> Result<Event<T>, String> {
    let object = read(object)?;
    Ok(match change {
        Change::Applied => Event::Apply(object),
        Change::Deleted => Event::Delete(object),
    })
}

fn read<T: DeserializeOwned>(object: Value) -> Result<T, String> {
    from_value(object).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::serde_json::{Value, json};

    use super::{Change, Machine, Said, Watched};

    fn pod(name: &str, memory: &str) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "ns", "uid": format!("u-{name}")},
            "spec": {"schedulerName": "toy", "containers": [{"name": "c", "resources": {"requests": {"memory": memory}}}]},
        })
    }

    fn node(name: &str, memory: &str) -> Value {
        json!({"metadata": {"name": name}, "status": {"allocatable": {"memory": memory}}})
    }

    /// With nodes a and b, of 4 and 9 kilobytes.
    fn machine(pods: Vec<Value>) -> Machine {
        let mut machine = Machine::new("toy");
        machine.listed(Watched::Pods, pods).unwrap();
        machine.listed(Watched::Nodes, vec![node("a", "4k"), node("b", "9k")]).unwrap();
        machine
    }

    fn bind(machine: &mut Machine) -> super::Placement {
        match machine.look(0) {
            Some(Said::Bind(placed, post)) => {
                assert_eq!(post.path, format!("/api/v1/namespaces/ns/pods/{}/binding", placed.pod.name));
                assert_eq!(post.body["metadata"]["uid"], placed.pod.uid);
                assert_eq!(post.body["target"]["name"], placed.node);
                placed
            }
            other => panic!("no binding: {other:?}"),
        }
    }

    #[test]
    fn a_pod_is_bound_and_that_is_said() {
        let mut machine = machine(vec![pod("p", "1k")]);
        assert!(machine.waits());
        let placed = bind(&mut machine);
        assert_eq!(placed.node, "b");
        let event = machine.answered(&placed, 201, "", 0).unwrap();
        assert_eq!(event.path, "/api/v1/namespaces/ns/events");
        assert_eq!(event.body["reason"], "Scheduled");
        assert_eq!(event.body["firstTimestamp"], "1970-01-01T00:00:00Z");
        assert!(!machine.waits() && machine.look(0).is_none());
        assert_eq!(
            machine.take_log(),
            ["ready: schedules for toy, sees 2 nodes and 1 pods", "ns/p bound to b"]
        );
    }

    #[test]
    fn a_dry_run_says_what_it_would_bind_and_tells_of_what_fits_nowhere() {
        let mut machine = Machine::dry_run("toy");
        machine.listed(Watched::Pods, vec![pod("p", "8k"), pod("q", "8k")]).unwrap();
        machine.listed(Watched::Nodes, vec![node("a", "4k"), node("b", "9k")]).unwrap();
        assert_eq!(machine.look(0), None);
        assert!(machine.waits());
        let Some(Said::Event(event)) = machine.look(0) else { panic!("no event") };
        assert_eq!(
            (&event.body["reason"], &event.body["involvedObject"]["name"]),
            (&json!("FailedScheduling"), &json!("q"))
        );
        assert!(!machine.waits());
        let log = machine.take_log();
        assert_eq!(
            log[..2],
            [
                "ready: schedules for toy, sees 2 nodes and 2 pods, dry run",
                "ns/p would be bound to b (dry run)"
            ]
        );
    }

    #[test]
    fn a_pod_that_fits_nowhere_is_told_so() {
        let mut machine = machine(vec![pod("p", "10k")]);
        let Some(Said::Event(event)) = machine.look(0) else { panic!("no event") };
        assert_eq!(event.body["reason"], "FailedScheduling");
        assert_eq!(event.body["message"], "0/2 nodes are available: 2 Insufficient memory.");
    }

    #[test]
    fn a_binding_that_comes_too_late_is_passed_over_and_one_that_is_refused_is_told() {
        let mut machine = machine(vec![pod("p", "5k"), pod("q", "5k")]);
        let first = bind(&mut machine);
        assert_eq!(machine.answered(&first, 409, "already assigned", 0), None);
        // What was not bound takes no room.
        let second = bind(&mut machine);
        assert_eq!((second.pod.name.as_str(), second.node.as_str()), ("q", "b"));
        let event = machine.answered(&second, 403, "may not", 0).unwrap();
        assert_eq!(event.body["message"], "binding to b was refused: may not");
    }

    #[test]
    fn nothing_is_placed_between_a_loss_and_the_next_lists() {
        let mut machine = machine(vec![]);
        machine.lost();
        machine.seen(Watched::Pods, Change::Applied, pod("p", "1k")).unwrap();
        assert!(machine.look(0).is_none());
        machine.listed(Watched::Pods, vec![pod("p", "1k")]).unwrap();
        machine.listed(Watched::Nodes, vec![node("a", "4k")]).unwrap();
        assert_eq!(bind(&mut machine).node, "a");
    }

    #[test]
    fn an_object_of_another_kind_is_refused() {
        let mut machine = machine(vec![]);
        let wrong = json!({"metadata": {"name": "p"}, "spec": 7});
        assert!(machine.seen(Watched::Pods, Change::Applied, wrong).is_err());
        machine.seen(Watched::Nodes, Change::Deleted, node("b", "9k")).unwrap();
        machine.seen(Watched::Pods, Change::Applied, pod("p", "5k")).unwrap();
        assert!(matches!(machine.look(0), Some(Said::Event(_))));
    }
}
