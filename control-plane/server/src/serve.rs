//! The process around a [`ControlPlane`]: listener, connections, the reconcile task, signals, and how it ends.
//!
//! Exit codes: 0 after SIGTERM or SIGINT, 2 for anything that a person has to put right first.

mod connection;
mod door;
mod halves;
mod limits;

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};

use self::door::{Door, accept};
use self::limits::{BodyRoom, Peers};
use crate::auth::accounts::{Issuer, Keys};
use crate::auth::{Credentials, Secrets, Tokens};
use crate::clock::{Clock, SystemClock, within};
use crate::config::{Config, Controller, Etcd, StoreKind};
use crate::control_plane::{ControlPlane, Elected};
use crate::kubeconfig;
use crate::leadership::Candidate;
use crate::observe::audit::{AuditFile, AuditLevel, AuditOutput, STDOUT};
use crate::observe::start_log;
use crate::random::Random;
use crate::store::{EtcdStore, MemoryStore, RedbStore, Store, TlsFiles};
use crate::tls;

/// At the end, answers under way have so long.
const GRACE: Duration = Duration::from_secs(5);

/// Says why there is no control plane.
pub fn fail(problem: &dyn Display) -> ExitCode {
    eprintln!("control-plane: {problem}");
    ExitCode::from(2)
}

/// Runs until a signal asks for the end.
pub fn run(config: Config) -> ExitCode {
    if let Err(problem) = start_log(config.log_format) {
        return fail(&problem);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("no threads to run on: {error}")),
    };
    let outcome = runtime.block_on(serve(config));
    runtime.shutdown_timeout(GRACE);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Opens everything, says where it serves, and serves until SIGTERM or SIGINT.
///
/// # Errors
/// Whatever keeps it from serving, with a remedy.
pub async fn serve(config: Config) -> anyhow::Result<()> {
    config.check()?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let connections = limits::connections();
    kubeconfig::prepare(&config.data_dir)?;
    let audit = audit_output(&config)?;
    let listener = TcpListener::bind(config.listen).await;
    let listener = listener.map_err(|error| cannot_listen(config.listen, &error))?;
    let address = listener.local_addr()?;
    let plain = match config.plain_http_listen {
        Some(address) => {
            let listener = TcpListener::bind(address).await;
            Some(listener.map_err(|error| cannot_listen(address, &error))?)
        }
        None => None,
    };
    let clock = Arc::new(SystemClock::start());
    let shared = Arc::clone(&clock) as Arc<dyn Clock>;
    // Before anything is made in the data directory: where another process has the store, what lies there is that one's.
    let opened = open_store(&config).await?;
    let tokens = tokens(&config)?;
    let identity = (!config.plain_http).then(|| tls::acceptor(&config, address.ip(), &shared)).transpose()?;
    let scheme = if identity.is_some() { "https" } else { "http" };
    let keys = Keys::open(
        &config.data_dir.join("pki/sa.key"),
        config.service_account_signing_key_file.as_deref(),
        &config.service_account_key_files,
    )?;
    let issuer = Issuer::new(&config.service_account_issuer, keys).for_audiences(&config.api_audiences);
    let credentials = Credentials {
        tokens: tokens.clone(),
        issuer: Some(issuer),
        secrets: Secrets::System,
        certified: kubeconfig::certified(&config)?,
    };
    let seed = u64::from_le_bytes(kubeconfig::secret()?[..8].try_into().unwrap_or_default());
    let mut candidate = opened.etcd.as_ref().and_then(|etcd| candidate(&config, etcd, &clock, seed));
    let elected = candidate.as_ref().zip(opened.etcd).map(|(candidate, etcd)| Elected {
        leadership: Arc::clone(candidate.leadership()),
        decisions: Arc::new(etcd.fenced(Arc::clone(candidate.leadership()))),
    });
    let store = opened.store;
    let plane =
        ControlPlane::open_elected(config.clone(), store, Arc::clone(&shared), seed, credentials, elected)
            .await?;
    if let Some(candidate) = &mut candidate {
        // Where nobody leads, this one does before it serves, as it would on a store of its own.
        candidate.turn().await;
        plane.reconcile().await;
    }

    plane.metrics().watch_process();
    let audit = audit.map(|(level, output)| audit_to(&plane, level, output)).transpose()?;
    let (ending, ended) = watch::channel(false);
    let mut reconciling = tokio::spawn(reconcile(plane.clone(), Arc::clone(&clock), ended.clone()));
    let electing = candidate.map(|mut candidate| {
        let mut ended = ended.clone();
        tokio::spawn(async move {
            candidate.run(over(&mut ended)).await;
            candidate
        })
    });
    let room = Arc::new(Semaphore::new(usize::try_from(connections)?));
    let (peers, bodies) = (Peers::new(connections), BodyRoom::default());
    let patience = config.client_timeout;
    let door = |tls| {
        let (peers, bodies) = (Arc::clone(&peers), bodies.clone());
        Arc::new(Door { tls, clock: Arc::clone(&shared), peers, bodies, patience, plane: plane.clone() })
    };
    let mut said = format!("control-plane: serving on {scheme}://{address}\n");
    if let Some(plain) = plain {
        said += &format!("control-plane: plain HTTP on http://{}\n", plain.local_addr()?);
        tokio::spawn(accept(plain, door(None), Arc::clone(&room), ended.clone()));
    }
    let tls = identity.as_ref().map(|identity| (identity.acceptor.clone(), identity.clients.clone()));
    let mut accepting = tokio::spawn(accept(listener, door(tls), Arc::clone(&room), ended));
    let server = kubeconfig::Server {
        url: &format!("{scheme}://{}", reachable(address)),
        trust: identity.as_ref().map_or("", |identity| &identity.trust),
        authority: identity.as_ref().and_then(|identity| identity.authority.as_ref()),
    };
    kubeconfig::write_all(&config, &tokens, &server)?;
    say(&said, config.audit_log_path.as_deref());

    loop {
        tokio::select! {
            biased;
            _ = terminate.recv() => {
                tracing::info!("SIGTERM: ending");
                break;
            }
            _ = interrupt.recv() => {
                tracing::info!("SIGINT: ending");
                break;
            }
            // Whoever has moved the audit log away wants a new one.
            _ = hangup.recv() => audit.iter().for_each(|audit| audit.reopen()),
            ended = &mut reconciling => anyhow::bail!("the controllers ended: {ended:?}"),
            ended = &mut accepting => anyhow::bail!("the listener ended: {ended:?}"),
        }
    }
    // The controllers decide nothing more (NODE-11: whoever comes next gives each node a full lease), answers under
    // way are finished, and watches end as they do when their time is up.
    plane.begin_end();
    ending.send_replace(true);
    drop(within(GRACE, reconciling).await);
    if let Some(electing) = electing {
        electing.await?.release().await;
    }
    plane.end_watches();
    if within(GRACE, room.acquire_many(connections)).await.is_none() {
        tracing::warn!("some clients were still reading");
    }
    if let Some(audit) = audit {
        let _: Option<()> = within(GRACE, audit.drained()).await;
    }
    Ok(())
}

/// Says where it serves: on standard output, or where that is the audit log, whose readers want nothing else there, beside the log.
fn say(text: &str, audit_log: Option<&Path>) {
    // Whoever started us may have closed our output; that is no reason to end.
    drop(if audit_log == Some(Path::new(STDOUT)) {
        std::io::stderr().write_all(text.as_bytes())
    } else {
        let mut out = std::io::stdout();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    });
}

/// An address at which this machine reaches a listener: one on all addresses is on loopback too.
fn reachable(address: SocketAddr) -> SocketAddr {
    match (address.ip().is_unspecified(), address.is_ipv4()) {
        (false, _) => address,
        (true, true) => SocketAddr::from(([127, 0, 0, 1], address.port())),
        (true, false) => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, address.port())),
    }
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            "end what uses that port, or choose another with --listen (port 0 takes a free one)"
        }
        ErrorKind::AddrNotAvailable => {
            "this machine has no such address; choose one of its own with --listen, such as 127.0.0.1:6443"
        }
        ErrorKind::PermissionDenied => {
            "this user may not use that port; choose one from 1024 up with --listen"
        }
        _ => "choose another address with --listen, such as 127.0.0.1:6443",
    };
    anyhow::anyhow!("cannot listen on {address} ({error}): {remedy}")
}

fn tokens(config: &Config) -> anyhow::Result<Tokens> {
    if config.no_auth {
        return Ok(Tokens::default());
    }
    let mut tokens = kubeconfig::generated_tokens(&config.data_dir)?;
    // Read once more when the control plane opens; here for their kubeconfigs.
    if let Some(path) = &config.token_auth_file {
        for (token, user) in Tokens::read(path)?.iter() {
            tokens.add(token, user.clone());
        }
    }
    Ok(tokens)
}

struct Opened {
    store: Arc<dyn Store>,
    /// The same where it is etcd.
    etcd: Option<Arc<EtcdStore>>,
}

async fn open_store(config: &Config) -> anyhow::Result<Opened> {
    let history = config.watch_history;
    let store: Arc<dyn Store> = match config.store {
        StoreKind::Memory => Arc::new(MemoryStore::with_history(history)),
        StoreKind::Redb => {
            let path = config.data_dir.join("store.redb");
            Arc::new(tokio::task::spawn_blocking(move || RedbStore::open(&path, history)).await??)
        }
        StoreKind::Etcd => {
            let Etcd { servers, prefix, cafile, certfile, keyfile } = &config.etcd;
            let tls = TlsFiles::read(cafile.as_deref(), certfile.as_deref().zip(keyfile.as_deref()))?;
            let etcd = Arc::new(EtcdStore::open(servers, prefix, &tls, history).await?);
            return Ok(Opened { store: Arc::clone(&etcd) as Arc<dyn Store>, etcd: Some(etcd) });
        }
    };
    Ok(Opened { store, etcd: None })
}

/// This process as one that would lead; none where there is nothing to decide, or nobody to share it with.
fn candidate(
    config: &Config,
    etcd: &Arc<EtcdStore>,
    clock: &Arc<SystemClock>,
    seed: u64,
) -> Option<Candidate> {
    let decides = Controller::ALL.iter().any(|controller| config.controllers.has(*controller));
    if !config.leader_elect || !decides {
        return None;
    }
    let random = Random::new(seed, 0);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let me = format!("{}_{}", host.trim(), random.uid());
    Some(Candidate::new(Arc::clone(etcd), Arc::clone(clock), config.election, me, random.uid()))
}

/// Where the flags ask for an audit log, opened: a place that cannot be written is told before anything else is made.
fn audit_output(config: &Config) -> anyhow::Result<Option<(AuditLevel, AuditOutput)>> {
    let level = config.audit_level.unwrap_or(AuditLevel::Metadata);
    let path = config.audit_log_path.as_ref().filter(|_| level != AuditLevel::None);
    path.map(|path| Ok((level, AuditOutput::open(path)?))).transpose()
}

/// The audit log, from here on in use.
fn audit_to(plane: &ControlPlane, level: AuditLevel, output: AuditOutput) -> anyhow::Result<Arc<AuditFile>> {
    let audit = Arc::new(AuditFile::start(output, plane.metrics())?);
    plane.audit_to(level, audit.clone());
    Ok(audit)
}

/// The one task that runs the controllers: whenever something changed, and whenever something is due. It ends
/// between two passes, never inside one, so that a write and its event stay together.
async fn reconcile(plane: ControlPlane, clock: Arc<SystemClock>, mut ended: watch::Receiver<bool>) {
    while !*ended.borrow() {
        let changed = plane.changed();
        let next = plane.reconcile().await;
        let due = async {
            match next {
                Some(due) => clock.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = over(&mut ended) => {}
            () = changed => {}
            () = due => {}
        }
    }
}

/// Waits until the process is asked to end.
async fn over(ended: &mut watch::Receiver<bool>) {
    drop(ended.wait_for(|ended| *ended).await);
}
