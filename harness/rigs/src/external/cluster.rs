//! A cluster for the length of a run: its connection, its lock, and the one trial that is on it.

use super::cleanup::{self, Outcome};
use super::connection::Connection;
use super::lock::{self, Held};
use super::scope::{Scope, TRIAL_LABEL};
use super::{kubeconfig, probe, quiet, trial};
use crate::clock::Clock;
use crate::control_plane::token;
use crate::signals;
use crate::world::{Infra, World};
use rigor_model::report::RigReport;
use rigor_model::{Capability, Constants, Rig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long a run waits for the cluster while others use it.
const TURN: Duration = Duration::from_secs(1800);

/// How long a new namespace may take to have its service account, without which it takes no pods.
const ACCOUNT: Duration = Duration::from_secs(20);

/// A control plane that is there already.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("rig", &self.inner.rig.name).finish_non_exhaustive()
    }
}

/// What is shared by the run, its trial and the listener for signals.
pub(crate) struct Inner {
    rig: Rig,
    version: String,
    pub(super) connection: Arc<Connection>,
    held: Mutex<Option<Held>>,
    /// Whether a trial of this process is on the cluster.
    busy: Mutex<bool>,
    freed: Condvar,
    present: Mutex<Option<Arc<Present>>>,
    stopping: AtomicBool,
    /// Held by whoever sends; taken whole by whoever stops.
    gate: RwLock<()>,
    pub(super) runtime: Runtime,
}

/// The trial that is on the cluster.
pub(super) struct Present {
    pub(super) scope: Mutex<Scope>,
    /// The boards' Nodes before it.
    pub(super) before: BTreeMap<String, Value>,
    gone: Mutex<bool>,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cluster {
    /// Reads the kubeconfig, asks the cluster what it is and allows, and fills in what the rig file leaves open.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, the cluster does not answer, this user may not do what every trial does, or the
    /// cluster is not what the rig file says.
    pub fn connect(rig: &Rig) -> Result<Self, Infra> {
        let external = rig.external.clone().unwrap_or_default();
        let access = kubeconfig::read(&external)?;
        if access.insecure {
            eprintln!(
                "rigor: WARNING: the kubeconfig says insecure-skip-tls-verify: whoever sits on the way to {} can read and change everything, the credentials too",
                access.base
            );
        }
        let mut tokens = BTreeMap::new();
        for (board, path) in &external.tokens {
            let token = std::fs::read_to_string(path).map_err(|error| {
                Infra::lasting(
                    format!("the token of board {board}, {path}, cannot be read: {error}"),
                    "correct spec.boardTokens",
                )
            })?;
            let token = token.trim().to_owned();
            tokens.extend(external.nodes.get(board).map(|node| (node.clone(), token.clone())));
            tokens.insert(board.clone(), token);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("rigor-cluster")
            .enable_all()
            .build()
            .map_err(|error| Infra::transient(format!("no runtime: {error}")))?;
        let connection = runtime.block_on(Connection::open(access, tokens))?;
        let (resolved, version) = runtime.block_on(probe::resolve(&connection, rig, &external))?;
        let inner = Arc::new(Inner {
            rig: resolved,
            version,
            connection: Arc::new(connection),
            held: Mutex::new(None),
            busy: Mutex::new(false),
            freed: Condvar::new(),
            present: Mutex::new(None),
            stopping: AtomicBool::new(false),
            gate: RwLock::new(()),
            runtime,
        });
        Ok(Self { inner })
    }

    /// The rig with everything that was asked for.
    #[must_use]
    pub fn rig(&self) -> &Rig {
        &self.inner.rig
    }

    /// What reports say of it.
    #[must_use]
    pub fn describe(&self) -> RigReport {
        let rig = &self.inner.rig;
        RigReport {
            name: rig.name.clone(),
            kind: rig.kind,
            machine: rig.machine.clone(),
            emulator: None,
            firmware_sha256: None,
            control_plane: Some(self.inner.version.clone()),
        }
    }

    /// Begins a trial with the boards of these letters: a namespace of its own on a quiet cluster, the recorder watching.
    ///
    /// # Errors
    /// The cluster is used by others for too long, is not quiet, or still holds what an earlier trial made.
    pub fn open(&self, constants: &Constants, boards: &[String]) -> Result<Box<dyn World>, Infra> {
        let inner = self.inner.clone();
        let turn = Turn::take(inner.clone());
        signals::protect(Arc::downgrade(&inner));
        inner.runtime.block_on(inner.enter())?;
        let external = inner.rig.external.clone().unwrap_or_default();
        let boards: BTreeMap<String, String> = boards
            .iter()
            .map(|board| (board.clone(), external.nodes.get(board).unwrap_or(board).clone()))
            .collect();
        let before = inner.runtime.block_on(quiet::wait(&inner.connection, &boards))?;
        let id = token()?[..12].to_owned();
        let scope = Scope {
            namespace: format!("rigor-{id}"),
            id,
            exclusive: inner.rig.capabilities.contains(&Capability::ExclusiveCluster),
            boards,
            ..Scope::default()
        };
        let present = Arc::new(Present {
            before: before.iter().map(|(name, node)| (name.clone(), cleanup::kept(node))).collect(),
            scope: Mutex::new(scope.clone()),
            gone: Mutex::new(false),
        });
        *locked(&inner.present) = Some(present.clone());
        let entered = trial::Entered { inner, present, _turn: turn };
        entered.inner.guarded(|| entered.inner.runtime.block_on(entered.inner.namespace(&scope)))??;
        trial::begin(entered, constants)
    }

    /// Takes away what killed runs left; what that was. Waits for the cluster while others use it.
    ///
    /// # Errors
    /// The cluster does not become free, or something cannot be removed.
    pub fn clean(&self) -> Result<Vec<String>, Infra> {
        let _turn = Turn::take(self.inner.clone());
        signals::protect(Arc::downgrade(&self.inner));
        let outcome = self.inner.runtime.block_on(async {
            self.inner.hold().await?;
            Ok::<_, Infra>(cleanup::sweep(&self.inner.connection).await)
        })?;
        told(&outcome)?;
        Ok(outcome.removed)
    }
}

fn told(outcome: &Outcome) -> Result<(), Infra> {
    if outcome.left.is_empty() {
        return Ok(());
    }
    Err(Infra::transient(format!(
        "the cluster still holds what an earlier trial made: {}",
        outcome.left.join(", ")
    )))
}

impl Inner {
    /// Takes the cluster's lock unless this run holds it already.
    async fn hold(&self) -> Result<(), Infra> {
        if locked(&self.held).as_ref().is_some_and(|held| !held.is_lost()) {
            return Ok(());
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let holder = format!("rigor@{}/{}/{}", host.trim(), std::process::id(), &token()?[..8]);
        let held = lock::acquire(&self.connection, self.runtime.handle(), &holder, TURN).await?;
        *locked(&self.held) = Some(held);
        Ok(())
    }

    /// The lock, and a cluster without what earlier runs left.
    async fn enter(&self) -> Result<(), Infra> {
        self.hold().await?;
        told(&cleanup::sweep(&self.connection).await)
    }

    async fn namespace(&self, scope: &Scope) -> Result<(), Infra> {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": scope.namespace, "labels": {TRIAL_LABEL: scope.id}},
        });
        let answer = self.connection.own("POST", "/api/v1/namespaces", Some(&namespace)).await;
        if answer.status != 201 {
            let why = answer.error.unwrap_or_else(|| format!("{}: {}", answer.status, answer.text));
            return Err(Infra::transient(format!("the trial's namespace could not be made: {why}")));
        }
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/default", scope.namespace);
        let clock = Clock::start();
        while clock.now().as_duration() < ACCOUNT {
            if self.connection.own("GET", &path, None).await.status == 200 {
                return Ok(());
            }
            Clock::pause(Duration::from_millis(100)).await;
        }
        Err(Infra::transient("the trial's namespace did not get its default service account"))
    }

    /// Why nothing may be sent any more, if so.
    pub(super) fn barred(&self) -> Option<String> {
        let lost = locked(&self.held).as_ref().is_none_or(Held::is_lost);
        lost.then(|| {
            "not sent, because the cluster's lock was lost: this machine or its link stood still".to_owned()
        })
    }

    /// Does something that writes, unless the run is being stopped; then the thread waits for the process's end.
    pub(super) fn guarded<T>(&self, work: impl FnOnce() -> T) -> Result<T, Infra> {
        let _passing = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        if self.stopping.load(Ordering::SeqCst) {
            loop {
                std::thread::park();
            }
        }
        Ok(work())
    }

    /// Takes away what a trial made; once, whoever comes first.
    pub(super) fn finish(&self, present: &Present) {
        let mut gone = locked(&present.gone);
        if *gone {
            return;
        }
        *gone = true;
        let scope = locked(&present.scope).clone();
        let outcome = self.runtime.block_on(cleanup::after_trial(&self.connection, &scope, &present.before));
        if !outcome.left.is_empty() {
            eprintln!(
                "rigor: could not take away {}; the next run tries again, and so does rigor clean",
                outcome.left.join(", ")
            );
        }
    }

    /// Ends the run in the midst of it: nothing more is sent, the trial's things go, the lock is given back.
    pub(crate) fn stop(&self) {
        {
            let _whole = self.gate.write().unwrap_or_else(PoisonError::into_inner);
            self.stopping.store(true, Ordering::SeqCst);
        }
        let present = locked(&self.present).clone();
        if let Some(present) = present {
            self.finish(&present);
        }
        self.release();
    }

    fn release(&self) {
        let held = locked(&self.held).take();
        if let Some(held) = held {
            self.runtime.block_on(held.release(&self.connection));
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.release();
    }
}

/// The right to be the one trial of this process on the cluster.
pub(super) struct Turn(Arc<Inner>);

impl Turn {
    fn take(inner: Arc<Inner>) -> Self {
        let mut busy = locked(&inner.busy);
        while *busy {
            busy = inner.freed.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
        *busy = true;
        drop(busy);
        Self(inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *locked(&self.0.busy) = false;
        self.0.freed.notify_one();
    }
}

/// Writes what evidence says of the cluster.
pub(super) fn evidence(inner: &Inner, dir: &Path) -> std::io::Result<()> {
    let access = inner.connection.access();
    let text = format!(
        "The control plane is not the harness's: {} at {}, context {}. Its log is where it runs.\n",
        inner.version, access.base, access.context
    );
    std::fs::write(dir.join("control-plane.log"), text)
}
