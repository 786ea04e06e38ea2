//! Passes of the controllers that make pods: every W over those of their objects from which anything can follow.

use std::collections::BTreeMap;
use std::time::Duration;

use control_plane_core::controllers::daemonset::Roster;
use control_plane_core::controllers::deployment::DeploymentConfig;
use control_plane_core::controllers::pod_garbage::{self, PodGarbageConfig};
use control_plane_core::controllers::{daemonset, deployment, job};
use control_plane_core::{Decision, Key, Now, Ownership, Snapshot};
use serde_json::Value;

use super::apply::{settle, try_settle};
use crate::config::Controller;
use crate::service::Service;

/// How often finished and abandoned pods are looked for, as Kubernetes does.
const COLLECTION: Duration = Duration::from_secs(20);
/// So often one object is looked at within one pass where its decisions ask for that.
const AT_ONCE: usize = 6;

/// A kind of workload: its controller, and its resource.
#[derive(Debug, Clone, Copy)]
struct Workload {
    controller: Controller,
    resource: &'static str,
    /// Nodes matter as well as its pods.
    follows_nodes: bool,
    decide: fn(&mut Means, &Snapshot, &Key, &Now) -> Decision,
}

const WORKLOADS: [Workload; 3] = [
    Workload {
        controller: Controller::Deployment,
        resource: "deployments",
        follows_nodes: false,
        decide: |means, snapshot, key, now| deployment::decide(snapshot, &means.deployments, key, now),
    },
    Workload {
        controller: Controller::DaemonSet,
        resource: "daemonsets",
        follows_nodes: true,
        decide: |means, snapshot, key, now| {
            let roster = means.rosters.entry(key.clone()).or_default();
            daemonset::decide_with(roster, snapshot, key, now)
        },
    },
    Workload {
        controller: Controller::Job,
        resource: "jobs",
        follows_nodes: false,
        decide: |_, snapshot, key, now| job::decide(snapshot, key, now),
    },
];

/// What decisions need besides the snapshot.
#[derive(Clone, Debug)]
struct Means {
    deployments: DeploymentConfig,
    /// What each DaemonSet's last pass kept.
    rosters: BTreeMap<Key, Roster>,
}

/// An object whose last decision was carried out and left nothing to do.
#[derive(Clone, Debug)]
struct Rest {
    /// The number of changes that the decision had seen.
    seen: u64,
    /// The instant at which time alone gives it something to do.
    until: Option<Duration>,
}

/// The workload controllers, with what each object last came to.
#[derive(Clone, Debug)]
pub struct Workloads {
    means: Means,
    garbage: PodGarbageConfig,
    next_collection: Duration,
    resting: BTreeMap<&'static str, BTreeMap<Key, Rest>>,
}

impl Workloads {
    pub fn new(service: &Service) -> Self {
        let config = &service.config;
        Self {
            means: Means {
                deployments: DeploymentConfig { period: config.controller_period },
                rosters: BTreeMap::new(),
            },
            garbage: PodGarbageConfig { threshold: config.terminated_pod_gc_threshold },
            next_collection: service.clock.mono(),
            resting: BTreeMap::new(),
        }
    }

    /// One pass.
    pub async fn pass(&mut self, service: &Service) {
        for workload in WORKLOADS.into_iter().filter(|it| service.runs(it.controller)) {
            for key in self.due(service, workload) {
                self.look_at(service, workload, &key).await;
            }
        }
        let now = service.clock.mono();
        if service.runs(Controller::PodGarbage) && now >= self.next_collection {
            self.next_collection = now + COLLECTION;
            settle(service, Controller::PodGarbage.name(), |snapshot, now| {
                pod_garbage::decide(snapshot, self.garbage, now)
            })
            .await;
        }
        if service.runs(Controller::Job) {
            let orphans = job::orphans(service.fresh().snapshot());
            for key in orphans {
                settle(service, Controller::Job.name(), |snapshot, _| job::decide_orphan(snapshot, &key))
                    .await;
            }
        }
    }

    /// The objects that do not rest; what rested and is gone is forgotten.
    fn due(&mut self, service: &Service, workload: Workload) -> Vec<Key> {
        let now = service.clock.mono();
        let reflector = service.fresh();
        let snapshot = reflector.snapshot();
        let resting = self.resting.entry(workload.resource).or_default();
        resting.retain(|key, _| snapshot.at(workload.resource, key).is_some());
        if workload.controller == Controller::DaemonSet {
            self.means.rosters.retain(|key, _| snapshot.at(workload.resource, key).is_some());
        }
        snapshot
            .list(workload.resource)
            .filter(|(key, object)| {
                let rests = |rest: &Rest| {
                    rest.seen >= stirred(snapshot.ownership(), workload, object)
                        && rest.until.is_none_or(|until| until > now)
                };
                !resting.get(*key).is_some_and(rests)
            })
            .map(|(key, _)| key.clone())
            .collect()
    }

    async fn look_at(&mut self, service: &Service, workload: Workload, key: &Key) {
        for _ in 0..AT_ONCE {
            let seen = service.fresh().snapshot().ownership().changes();
            let settled = try_settle(service, workload.controller.name(), |snapshot, now| {
                (workload.decide)(&mut self.means, snapshot, key, now)
            });
            let settled = settled.await;
            let resting = self.resting.entry(workload.resource).or_default();
            if settled.holds {
                resting.insert(key.clone(), Rest { seen, until: settled.again });
            } else {
                resting.remove(key);
            }
            if settled.again.is_none_or(|again| again > service.clock.mono()) {
                return;
            }
        }
    }
}

/// The number of the last change that can matter to a workload.
fn stirred(ownership: &Ownership, workload: Workload, object: &Value) -> u64 {
    let own = ownership.stirred(object["metadata"]["uid"].as_str().unwrap_or_default());
    if workload.follows_nodes { own.max(ownership.nodes_stirred()) } else { own }
}
