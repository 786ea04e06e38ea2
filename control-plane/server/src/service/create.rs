//! Making objects, and binding pods inside the request that makes them (SCHED-01, SCHED-56).

use std::collections::BTreeSet;
use std::sync::Arc;

use control_plane_api::strategy::{self, Identity};
use control_plane_api::{ApiError, Kind, views};
use control_plane_core::{Object, reports, scheduler};
use serde_json::{Value, json};

use super::{ATTEMPTS, Service, key_of, store_failed, stored_kind, text};
use crate::admission;
use crate::auth::node::check_write;
use crate::auth::{Action, User};
use crate::config::{Admission, Controller};
use crate::store::{Expect, StoreError, Turn};

/// Addresses of services: 10.96.HIGH.LOW. The first few are left to what has a fixed one.
const FIRST_ADDRESS: u16 = 10;

/// What control planes on one store take turns about: addresses of services.
const ADDRESSES: &str = "service-addresses";

/// An address that none of these services has.
fn free_address(services: &[Object]) -> Option<String> {
    let used: BTreeSet<&str> = services.iter().map(|service| text(service, "/spec/clusterIP")).collect();
    let mut addresses = (FIRST_ADDRESS..u16::MAX).map(|n| format!("10.96.{}.{}", n >> 8, n & 0xFF));
    addresses.find(|address| !used.contains(address.as_str()))
}

/// Gives a service what it needs of what all services share.
pub(super) fn allocate(
    kind: &Kind,
    service: &mut Value,
    old: Option<&Value>,
    services: &[Object],
) -> Result<(), ApiError> {
    strategy::allocate_for_service(kind, service, old, services.iter().map(AsRef::as_ref))
}

/// A binding that counts until its write was refused or is in the snapshot, or whoever asked for it went away.
struct Assumption<'a> {
    service: &'a Service,
    key: control_plane_core::Key,
    uid: String,
}

impl<'a> Assumption<'a> {
    fn new(service: &'a Service, pod: &Value, node: &str) -> Self {
        service.assumed().assume(&service.scheduler, pod, node);
        Self { service, key: control_plane_core::Key::of(pod), uid: text(pod, "/metadata/uid").to_owned() }
    }
}

impl Drop for Assumption<'_> {
    fn drop(&mut self) {
        self.service.assumed().forget(&self.key, &self.uid);
    }
}

/// So many generated names are tried, as Kubernetes does.
const NAMES: usize = 8;

impl Service {
    /// Makes an object, of the form served as `kind`, and answers it in its stored form.
    ///
    /// # Errors
    /// Whatever Kubernetes refuses: the namespace, admission, validation, a name that is taken.
    pub async fn create(
        &self,
        user: &User,
        kind: &'static Kind,
        namespace: Option<&str>,
        object: Value,
        dry_run: bool,
    ) -> Result<Arc<Value>, ApiError> {
        // What another control plane was acknowledged counts here too: a namespace, a service's address, an account.
        self.store.catch_up().await.map_err(|error| store_failed(&error))?;
        let mut object = views::from_view(kind, object);
        let kind = stored_kind(kind);
        let generated = text(&object, "/metadata/name").is_empty();
        if let Some(namespace) = namespace {
            let reflector = self.fresh();
            admission::namespace_open(
                reflector.snapshot(),
                kind,
                namespace,
                text(&object, "/metadata/name"),
            )?;
            if text(&object, "/metadata/namespace").is_empty() && object["metadata"].is_object() {
                object["metadata"]["namespace"] = json!(namespace);
            }
            admission::admit(&self.config, reflector.snapshot(), kind, &mut object)?;
        }
        if kind.resource == "priorityclasses" {
            let reflector = self.fresh();
            let classes = reflector.snapshot().list(kind.resource).map(|(_, class)| class.as_ref());
            strategy::admit_default_class(&object, true, classes)?;
        }
        let allocating = if kind.resource == "services" { Some(self.allocating.lock().await) } else { None };
        let classes = if kind.resource == "pods" { self.priority_classes() } else { Vec::new() };
        let mut taken = None;
        let mut names = 0;
        // Others are tried once.
        let may_retry = generated || allocating.is_some();
        for _ in 0..ATTEMPTS {
            if names == NAMES {
                break;
            }
            // The turn is read before the addresses: whoever takes one after that makes this write fail. They are read once, so
            // that an address which was free when it was chosen is not found taken by another control plane's service.
            let turn = allocating.as_ref().map(|_| self.store.turn(ADDRESSES));
            let services = allocating.as_ref().map(|_| self.services());
            let address = services.as_deref().and_then(free_address);
            let (uid, suffix) = (self.random.uid(), self.random.suffix());
            let identity = Identity {
                uid: &uid,
                name_suffix: &suffix,
                cluster_ip: address.as_deref(),
                classes: &classes,
            };
            let asked = if may_retry { object.clone() } else { std::mem::take(&mut object) };
            let mut prepared = strategy::prepare_create(kind, namespace, asked, &identity, &self.context())?;
            if kind.resource == "nodes" {
                reports::reported(&mut prepared);
            }
            if let Some(services) = &services {
                allocate(kind, &mut prepared, None, services)?;
            }
            if !self.config.disable_admission.contains(&Admission::NodeRestriction) {
                check_write(user, Action::Create, kind, None, None, Some(&prepared))?;
            }
            self.check_grant(user, kind, namespace, None, &prepared)?;
            let name = text(&prepared, "/metadata/name").to_owned();
            match self.insert(kind, namespace, &name, prepared, dry_run, turn).await {
                Ok(object) => return Ok(object),
                Err(StoreError::Exists) if generated => {
                    names += 1;
                    taken = Some(ApiError::generated_name_taken(kind, &name));
                }
                // Another control plane took an address, maybe this one.
                Err(StoreError::Conflict { .. }) if turn.is_some() => self.take_in(),
                Err(StoreError::Exists) => return Err(ApiError::already_exists(kind, &name)),
                Err(error) => return Err(store_failed(&error)),
            }
        }
        drop(allocating);
        Err(taken.unwrap_or_else(|| ApiError::internal("no name could be generated")))
    }

    /// All services, as of now. Who takes something that no other may have holds the lock `allocating`.
    pub(super) fn services(&self) -> Vec<Object> {
        self.fresh().snapshot().list("services").map(|(_, service)| Arc::clone(service)).collect()
    }

    /// The priority classes that a new pod may name, besides those of the system.
    fn priority_classes(&self) -> Vec<Value> {
        let reflector = self.fresh();
        let classes = reflector.snapshot().list("priorityclasses");
        let own = classes.filter(|(key, _)| !key.name.starts_with("system-"));
        own.map(|(_, class)| class.as_ref().clone()).collect()
    }

    async fn insert(
        &self,
        kind: &'static Kind,
        namespace: Option<&str>,
        name: &str,
        object: Value,
        dry_run: bool,
        turn: Option<Turn>,
    ) -> Result<Arc<Value>, StoreError> {
        let key = key_of(kind, namespace, name);
        if dry_run {
            return match self.store.get(&key).await? {
                Some(_) => Err(StoreError::Exists),
                None => Ok(Arc::new(object)),
            };
        }
        if kind.resource == "pods" && self.runs(Controller::Scheduler) && self.term().is_some() {
            // Where another control plane leads, it binds the pod as soon as it sees it (SCHED-56).
            let scheduling = self.scheduling.lock().await;
            let began = self.clock.mono();
            let free = text(&object, "/spec/nodeName").is_empty();
            let unplaced = self.leadership.is_some().then(|| object.clone());
            let placed = {
                let reflector = self.fresh();
                let (snapshot, now) = (reflector.snapshot(), self.now());
                scheduler::place(&self.scheduler, object, snapshot, &self.assumed(), &now)
            };
            let node = text(&placed.pod, "/spec/nodeName");
            let bound = !node.is_empty();
            let assumption = (free && bound).then(|| Assumption::new(self, &placed.pod, node));
            // A pod that is bound needs no lock while it is written; one that is not has its retry noted under it.
            let scheduling = placed.look_again.is_some().then_some(scheduling);
            let written = self.decisions.put(key.clone(), placed.pod, Expect::Absent).await;
            self.take_in();
            drop(assumption);
            let entry = match (written, unplaced) {
                // It leads no more, so it may not choose the node; whoever leads now does.
                (Err(StoreError::Deposed), Some(object)) => {
                    drop(scheduling);
                    return self.store.put(key, object, Expect::Absent).await.map(|entry| entry.object);
                }
                (written, _) => written?,
            };
            // A pod of another scheduler, or of none, was not attempted.
            if free && (bound || placed.look_again.is_some()) {
                let result = if bound { "scheduled" } else { "unschedulable" };
                self.metrics.scheduled(result, self.clock.mono().saturating_sub(began));
            }
            if let Some(due) = placed.look_again {
                let pod = control_plane_core::Key::of(&entry.object);
                self.retries().insert(pod, due);
            }
            drop(scheduling);
            self.record_soon(placed.events).await;
            return Ok(entry.object);
        }
        let entry = match turn {
            Some(turn) => self.store.put_in_turn(key, object, Expect::Absent, turn).await?,
            None => self.store.put(key, object, Expect::Absent).await?,
        };
        let mut reflector = self.fresh();
        if kind.resource == "nodes" && entry.object.pointer("/status").is_some_and(|status| !status.is_null())
        {
            reflector.status_reported(name, entry.revision);
        }
        drop(reflector);
        Ok(entry.object)
    }
}
