//! When each controller is due, and its turn.
//!
//! Lifecycle checks come every C, workload passes every W, retries of pending pods as core asks for them (SCHED-03). Service
//! accounts, garbage and namespaces follow changes. The order within a turn is fixed, so that a run repeats.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use control_plane_api::kinds;
use control_plane_core::Key;
use control_plane_core::controllers::garbage::{self, GarbageConfig};
use control_plane_core::controllers::node_lifecycle::{self, LifecycleConfig};
use control_plane_core::controllers::{cluster_role, namespace, service_account};
use control_plane_core::scheduler;

use super::apply::{SCHEDULER, settle, settle_each};
use super::recorder;
use super::workloads::Workloads;
use crate::config::Controller;
use crate::service::Service;

/// Events that are deleted together.
const AT_A_SWEEP: usize = 256;
/// Changes that follow from changes are followed so far in one turn.
const ROUNDS: usize = 16;

/// The instants at which controllers are due.
#[derive(Clone, Debug)]
pub struct Controllers {
    lifecycle: LifecycleConfig,
    workloads: Workloads,
    garbage: GarbageConfig,
    next_check: Duration,
    next_pass: Duration,
    next_sweep: Duration,
    /// Nodes that are to be looked at between two checks.
    nodes: BTreeMap<String, Duration>,
    /// The version of the waiting pods when they were last looked at, and when the next of them is tried again.
    waiting: Option<(u64, Option<Duration>)>,
    /// Changes up to this revision were followed.
    followed: u64,
    /// The roles and bindings whose aggregates are written.
    aggregated: Option<u64>,
}

impl Controllers {
    /// Controllers whose first turn is now: what became due while no one served is done as soon as someone does (NODE-12).
    pub fn new(service: &Service) -> Self {
        let (config, now) = (&service.config, service.clock.mono());
        let stored = kinds::all().iter().filter(|kind| kind.is_stored());
        let namespaced = stored.clone().filter(|kind| kind.namespaced).map(|kind| kind.resource).collect();
        let kinds =
            stored.map(|kind| ((kind.group.to_owned(), kind.kind.to_owned()), kind.resource)).collect();
        Self {
            lifecycle: LifecycleConfig { not_ready_timeout: config.not_ready_timeout },
            workloads: Workloads::new(service),
            garbage: GarbageConfig { kinds, namespaced },
            next_check: now,
            next_pass: now,
            next_sweep: now + event_sweep(config.event_ttl),
            nodes: BTreeMap::new(),
            waiting: None,
            followed: 0,
            aggregated: None,
        }
    }

    /// Everything that is due. Answers the next instant at which something will be, and the revision up to which all changes
    /// were seen.
    pub async fn turn(&mut self, service: &Service) -> (Option<Duration>, u64) {
        service.metrics.turns.inc();
        service.vitals.moved(service.clock.mono());
        service.catch_up().await;
        service.record_told().await;
        service.try_store().await;
        self.follow(service).await;
        self.aggregate(service).await;
        if service.runs(Controller::NodeLifecycle) {
            self.check_nodes(service).await;
        }
        let mut retry = None;
        if service.runs(Controller::Scheduler) {
            retry = self.schedule(service).await;
        }
        let now = service.clock.mono();
        if now >= self.next_pass {
            self.next_pass = next(self.next_pass, service.config.controller_period, now);
            self.workloads.pass(service).await;
        }
        if now >= self.next_sweep {
            self.next_sweep = next(self.next_sweep, event_sweep(service.config.event_ttl), now);
            sweep_events(service).await;
        }
        self.follow(service).await;
        let check = service.runs(Controller::NodeLifecycle).then(|| {
            self.nodes.values().copied().min().map_or(self.next_check, |due| due.min(self.next_check))
        });
        let due = [check, retry, Some(self.next_pass), Some(self.next_sweep)].into_iter().flatten().min();
        (due, self.followed)
    }

    /// Service accounts, garbage and namespaces: whenever anything changed, until nothing follows from it.
    pub async fn follow(&mut self, service: &Service) {
        for _ in 0..ROUNDS {
            let (revision, consequential) = {
                let reflector = service.fresh();
                (reflector.cursor(), reflector.consequential())
            };
            let nothing = consequential <= self.followed;
            self.followed = revision;
            if nothing {
                return;
            }
            let namespaces = keys(service, "namespaces");
            if service.runs(Controller::ServiceAccount) {
                settle_each(service, "serviceaccount", &namespaces, |snapshot, key, _| {
                    service_account::decide(snapshot, key)
                })
                .await;
            }
            if service.runs(Controller::Garbage) {
                let candidates = garbage::candidates(service.fresh().snapshot(), &self.garbage);
                settle_each(service, "garbage", &candidates, |snapshot, (resource, key), _| {
                    garbage::decide(snapshot, &self.garbage, resource, key)
                })
                .await;
            }
            if service.runs(Controller::Namespace) {
                settle_each(service, "namespace", &namespaces, |snapshot, key, now| {
                    namespace::decide(snapshot, key, now)
                })
                .await;
            }
        }
    }

    /// Roles that aggregate, whenever any role changed, until nothing follows from it.
    async fn aggregate(&mut self, service: &Service) {
        if !service.runs(Controller::ClusterRoleAggregation) {
            return;
        }
        for _ in 0..ROUNDS {
            let aggregating: Vec<Key> = {
                let reflector = service.fresh();
                if self.aggregated.replace(reflector.policy_version()) == Some(reflector.policy_version()) {
                    return;
                }
                let roles = reflector.snapshot().list("clusterroles");
                roles.filter(|(_, role)| cluster_role::aggregates(role)).map(|(key, _)| key.clone()).collect()
            };
            for key in aggregating {
                settle(service, "clusterrole-aggregation", |snapshot, _| {
                    cluster_role::decide(snapshot, &key)
                })
                .await;
            }
        }
    }

    /// Leases are looked at every C, and between two checks where core asked for it; pods only at the checks.
    async fn check_nodes(&mut self, service: &Service) {
        let now = service.clock.mono();
        let check = now >= self.next_check;
        let nodes: Vec<String> = if check {
            self.next_check = next(self.next_check, service.config.node_monitor_period, now);
            self.nodes.clear();
            node_lifecycle::doubtful(service.fresh().snapshot(), &self.lifecycle, &service.now())
        } else {
            self.nodes.iter().filter(|(_, due)| **due <= now).map(|(name, _)| name.clone()).collect()
        };
        for name in &nodes {
            self.nodes.remove(name);
        }
        let again = settle_each(service, "node-lifecycle", &nodes, |snapshot, name, now| {
            node_lifecycle::decide(snapshot, &self.lifecycle, name, now)
        });
        let again = again.await;
        for (number, due) in again.into_iter().filter(|(_, due)| *due > now && *due < self.next_check) {
            self.nodes.extend(nodes.get(number).map(|name| (name.clone(), due)));
        }
        if !check {
            return;
        }
        let pods = node_lifecycle::endangered(service.fresh().snapshot());
        settle_each(service, "node-lifecycle", &pods, |snapshot, key, now| {
            node_lifecycle::decide_pod(snapshot, &self.lifecycle, key, now)
        })
        .await;
    }

    /// Pending pods whose time has come, or that a change on some node may have helped. Answers when the next one's comes.
    async fn schedule(&mut self, service: &Service) -> Option<Duration> {
        let now = service.clock.mono();
        let (stirred, version) = {
            let mut reflector = service.fresh();
            (reflector.take_stirred(), reflector.snapshot().waiting_version())
        };
        let nothing_new = stirred.is_empty() && self.waiting.is_some_and(|(seen, _)| seen == version);
        if let Some((_, next)) =
            self.waiting.filter(|(_, next)| nothing_new && next.is_none_or(|due| due > now))
        {
            return next;
        }
        let is_due = |key: &Key| service.retries().get(key).is_none_or(|due| *due <= now);
        for key in waiting(service) {
            if !is_due(&key) && !is_helped(service, &key, &stirred) {
                continue;
            }
            let scheduling = service.scheduling.lock().await;
            // Whoever made the pod looked for a node under this lock, and may have noted when to try again only now.
            if !is_due(&key) && !is_helped(service, &key, &stirred) {
                continue;
            }
            let again = settle(service, SCHEDULER, |snapshot, now| {
                scheduler::decide(snapshot, &service.scheduler, &service.assumed(), &key, now)
            });
            let again = again.await;
            drop(scheduling);
            // Never in this very turn again, whatever core says.
            let again = again.filter(|due| *due > now).unwrap_or(now + service.config.reconcile_interval);
            service.retries().insert(key, again);
        }
        let next = self.count_waiting(service, now);
        self.waiting = Some(next);
        next.1
    }

    /// Forgets the retries of pods that wait no more. Answers the version of those that wait, and when the next is tried again.
    fn count_waiting(&self, service: &Service, now: Duration) -> (u64, Option<Duration>) {
        // A creation notes its pod's retry once the pod is in the snapshot, so both are looked at under one lock.
        let mut retries = service.retries();
        let (waiting, version) = {
            let reflector = service.fresh();
            let waiting = scheduler::pending(reflector.snapshot(), &service.scheduler);
            (waiting, reflector.snapshot().waiting_version())
        };
        if retries.len() > waiting.len() {
            let waiting: BTreeSet<&Key> = waiting.iter().collect();
            retries.retain(|key, _| waiting.contains(key));
        }
        let count = i64::try_from(waiting.len()).unwrap_or(i64::MAX);
        service.metrics.pending_pods.with_label_values(&["unschedulable"]).set(count);
        // A pod that turned up meanwhile is due at once.
        (version, waiting.iter().map(|key| retries.get(key).copied().unwrap_or(now)).min())
    }
}

/// The instant after `due` at which something of this period is due again; passes that were missed are not made up for.
fn next(due: Duration, period: Duration, now: Duration) -> Duration {
    let next = due + period;
    if next > now { next } else { now + period }
}

/// The pods that wait for a node, in the order in which they are tried.
fn waiting(service: &Service) -> Vec<Key> {
    scheduler::pending(service.fresh().snapshot(), &service.scheduler)
}

/// Whether one of these nodes would take the pod by now.
fn is_helped(service: &Service, key: &Key, stirred: &BTreeSet<String>) -> bool {
    if stirred.is_empty() {
        return false;
    }
    let reflector = service.fresh();
    let snapshot = reflector.snapshot();
    let Some(pod) = snapshot.at("pods", key) else { return false };
    let Some(profile) = service.scheduler.profile_for(pod) else { return false };
    let assumed = service.assumed();
    stirred.iter().any(|node| scheduler::fits_on(profile, pod, snapshot, &assumed, node))
}

fn keys(service: &Service, resource: &str) -> Vec<Key> {
    service.fresh().snapshot().list(resource).map(|(key, _)| key.clone()).collect()
}

/// How often old events are looked for: each goes within a sixtieth of its lifetime after that, and within a minute.
fn event_sweep(lifetime: Duration) -> Duration {
    (lifetime / 60).clamp(Duration::from_secs(1), Duration::from_secs(60))
}

async fn sweep_events(service: &Service) {
    let expired = recorder::expired(service.fresh().snapshot(), service.config.event_ttl, &service.now());
    for some in expired.chunks(AT_A_SWEEP) {
        // One that was just raised again stays; one that cannot be deleted now is looked for again.
        let gone = some.iter().map(|(key, revision)| service.store.delete(key.clone(), *revision));
        drop(futures_util::future::join_all(gone).await);
        service.take_in();
    }
}
