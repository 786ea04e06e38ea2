//! What the scheduler knows of the cluster: a copy that the watches of nodes and pods keep (EXT-02), and which pods it has
//! looked at (EXT-06). No I/O. Pods are known by uid, so that neither a new list nor a pod of the same name confuses them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::watcher::Event;

use crate::decide::{Resources, Room};
use crate::requests::{allocatable, requested};

/// Which pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl std::fmt::Display for PodRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[derive(Debug)]
struct Known {
    pod: PodRef,
    created: Option<Time>,
    /// It names this scheduler.
    ours: bool,
    finished: bool,
    node: Option<String>,
    request: Resources,
    /// It was looked at, which happens once.
    considered: bool,
    /// Where this scheduler put it, until the watch says where it is.
    assumed: Option<String>,
}

impl Known {
    fn waits(&self) -> bool {
        self.ours && self.node.is_none() && !self.considered
    }

    fn order(&self) -> impl Ord {
        (self.created.as_ref(), &self.pod.namespace, &self.pod.name)
    }

    fn node(&self) -> Option<&String> {
        self.node.as_ref().or(self.assumed.as_ref())
    }
}

/// The objects of one watch by key, and those of a list that is still coming in.
#[derive(Debug)]
struct Mirror<T> {
    current: BTreeMap<String, T>,
    coming: BTreeMap<String, T>,
    listed: bool,
}

impl<T> Default for Mirror<T> {
    fn default() -> Self {
        Self { current: BTreeMap::new(), coming: BTreeMap::new(), listed: false }
    }
}

impl<T> Mirror<T> {
    /// Takes an event in. `read` makes a key and a state of an object, `keep` hands on what the old state knew.
    fn apply<K>(&mut self, event: Event<K>, read: impl Fn(K) -> (String, T), keep: fn(&T, &mut T)) {
        match event {
            Event::Init => self.coming.clear(),
            Event::InitApply(object) => {
                let (key, state) = read(object);
                self.coming.insert(key, state);
            }
            Event::InitDone => {
                let old = std::mem::replace(&mut self.current, std::mem::take(&mut self.coming));
                for (key, state) in &mut self.current {
                    old.get(key).inspect(|old| keep(old, state));
                }
                self.listed = true;
            }
            Event::Apply(object) => {
                let (key, mut state) = read(object);
                self.current.get(&key).inspect(|old| keep(old, &mut state));
                self.current.insert(key, state);
            }
            Event::Delete(object) => drop(self.current.remove(&read(object).0)),
        }
    }
}

/// The copy.
#[derive(Debug)]
pub struct Cluster {
    scheduler: String,
    nodes: Mirror<Resources>,
    pods: Mirror<Known>,
}

impl Cluster {
    /// A copy for the scheduler of this name, of which nothing is known yet.
    pub fn new(scheduler: &str) -> Self {
        Self { scheduler: scheduler.to_owned(), nodes: Mirror::default(), pods: Mirror::default() }
    }

    /// Takes in what the watch of nodes says.
    pub fn apply_node(&mut self, event: Event<Node>) {
        self.nodes.apply(
            event,
            |node| (node.metadata.name.clone().unwrap_or_default(), allocatable(&node)),
            |_, _| (),
        );
    }

    /// Takes in what the watch of pods says.
    pub fn apply_pod(&mut self, event: Event<Pod>) {
        let scheduler = &self.scheduler;
        self.pods.apply(
            event,
            |pod| known(scheduler, pod),
            |old, new| {
                new.considered = old.considered;
                new.assumed = old.assumed.clone();
            },
        );
    }

    /// How many nodes and pods there are, once both were listed.
    pub fn size(&self) -> Option<(usize, usize)> {
        (self.nodes.listed && self.pods.listed).then_some((self.nodes.current.len(), self.pods.current.len()))
    }

    /// Nothing waits until both were listed again; what is known of pods stays known.
    pub fn forget_lists(&mut self) {
        self.nodes.listed = false;
        self.pods.listed = false;
    }

    /// Whether there is a pod for [`Self::take_waiting`].
    pub fn waits(&self) -> bool {
        self.size().is_some() && self.pods.current.values().any(Known::waits)
    }

    /// The oldest pod that names this scheduler, has no node and was not looked at (EXT-01, EXT-06), with its requests. It
    /// counts as looked at from now on.
    pub fn take_waiting(&mut self) -> Option<(PodRef, Resources)> {
        self.size()?;
        let waiting = self.pods.current.values_mut().filter(|known| known.waits());
        let next = waiting.min_by(|a, b| a.order().cmp(&b.order()))?;
        next.considered = true;
        Some((next.pod.clone(), next.request))
    }

    /// What is left on each node (EXT-03), in the order of their names.
    pub fn rooms(&self) -> Vec<Room<'_>> {
        let mut free = self.nodes.current.clone();
        for known in self.pods.current.values().filter(|known| !known.finished) {
            if let Some(free) = known.node().and_then(|node| free.get_mut(node)) {
                free.cpu -= known.request.cpu;
                free.memory -= known.request.memory;
            }
        }
        self.nodes.current.keys().map(|node| Room { node, free: free[node] }).collect()
    }

    /// Counts the pod as on this node, or as on none, until the watch says where it is.
    pub fn assume(&mut self, pod: &PodRef, node: Option<&str>) {
        if let Some(known) = self.pods.current.get_mut(&pod.uid) {
            known.assumed = node.map(str::to_owned);
        }
    }
}

fn known(scheduler: &str, pod: Pod) -> (String, Known) {
    let (spec, status) = (pod.spec.unwrap_or_default(), pod.status.unwrap_or_default());
    let uid = pod.metadata.uid.unwrap_or_default();
    let known = Known {
        pod: PodRef {
            namespace: pod.metadata.namespace.unwrap_or_default(),
            name: pod.metadata.name.unwrap_or_default(),
            uid: uid.clone(),
        },
        created: pod.metadata.creation_timestamp,
        ours: spec.scheduler_name.as_deref() == Some(scheduler),
        finished: matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")),
        request: requested(&spec),
        node: spec.node_name.filter(|node| !node.is_empty()),
        considered: false,
        assumed: None,
    };
    (uid, known)
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
