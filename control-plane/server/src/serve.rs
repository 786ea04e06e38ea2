//! The process around a [`ControlPlane`]: listener, connections, the reconcile task, signals, and how it ends.
//!
//! Exit codes: 0 after SIGTERM or SIGINT, 2 for anything that a person has to put right first.

use std::convert::Infallible;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::BytesMut;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::auth::accounts::{Issuer, Keys};
use crate::auth::{Credentials, Secrets, Tokens};
use crate::clock::{Clock, SystemClock, within};
use crate::config::{Config, Controller, Etcd, StoreKind};
use crate::control_plane::{ControlPlane, Elected};
use crate::kubeconfig;
use crate::leadership::Candidate;
use crate::random::Random;
use crate::store::{EtcdStore, MemoryStore, RedbStore, Store, TlsFiles};
use crate::tls::{self, Clients, Peer};

/// A client has so long for the head of a request, and again for its body.
const PATIENCE: Duration = Duration::from_secs(30);
/// A client has so long for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Open connections at most.
const CONNECTIONS: u32 = 2048;
/// At the end, answers under way have so long.
const GRACE: Duration = Duration::from_secs(5);

/// Says why there is no control plane.
pub fn fail(problem: &dyn Display) -> ExitCode {
    eprintln!("control-plane: {problem}");
    ExitCode::from(2)
}

/// Runs until a signal asks for the end.
pub fn run(config: Config) -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("CONTROL_PLANE_LOG")
                .unwrap_or_else(|_| "info".into()),
        )
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
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
    kubeconfig::prepare(&config.data_dir)?;
    let tokens = tokens(&config)?;
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
    let identity = (!config.plain_http).then(|| tls::acceptor(&config, address.ip(), &shared)).transpose()?;
    let scheme = if identity.is_some() { "https" } else { "http" };
    let opened = open_store(&config).await?;
    let keys = Keys::open(
        &config.data_dir.join("pki/sa.key"),
        config.service_account_signing_key_file.as_deref(),
        &config.service_account_key_files,
    )?;
    let issuer = Issuer::new(&config.service_account_issuer, keys);
    let credentials = Credentials { tokens: tokens.clone(), issuer: Some(issuer), secrets: Secrets::System };
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
    let (ending, ended) = watch::channel(false);
    let mut reconciling = tokio::spawn(reconcile(plane.clone(), Arc::clone(&clock), ended.clone()));
    let electing = candidate.map(|mut candidate| {
        let mut ended = ended.clone();
        tokio::spawn(async move {
            candidate.run(over(&mut ended)).await;
            candidate
        })
    });
    let room = Arc::new(Semaphore::new(CONNECTIONS as usize));
    let mut said = format!("control-plane: serving on {scheme}://{address}\n");
    if let Some(plain) = plain {
        said += &format!("control-plane: plain HTTP on http://{}\n", plain.local_addr()?);
        let door = Arc::new(Door { tls: None, clock: Arc::clone(&shared) });
        tokio::spawn(accept(plain, door, plane.clone(), Arc::clone(&room), ended.clone()));
    }
    let tls = identity.as_ref().map(|identity| (identity.acceptor.clone(), identity.clients.clone()));
    let door = Arc::new(Door { tls, clock: Arc::clone(&shared) });
    let accepting = tokio::spawn(accept(listener, door, plane.clone(), Arc::clone(&room), ended));
    let server = kubeconfig::Server {
        url: &format!("{scheme}://{}", reachable(address)),
        trust: identity.as_ref().map_or("", |identity| &identity.trust),
        authority: identity.as_ref().and_then(|identity| identity.authority.as_ref()),
    };
    kubeconfig::write_all(&config, &tokens, &server)?;
    let mut out = std::io::stdout();
    // Whoever started us may have closed our output; that is no reason to end.
    drop(out.write_all(said.as_bytes()).and_then(|()| out.flush()));

    tokio::select! {
        biased;
        _ = terminate.recv() => tracing::info!("SIGTERM: ending"),
        _ = interrupt.recv() => tracing::info!("SIGINT: ending"),
        ended = &mut reconciling => anyhow::bail!("the controllers ended: {ended:?}"),
        ended = accepting => anyhow::bail!("the listener ended: {ended:?}"),
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
    if within(GRACE, room.acquire_many(CONNECTIONS)).await.is_none() {
        tracing::warn!("some clients were still reading");
    }
    Ok(())
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
    // Read once more when the control plane opens; here for their kubeconfigs, and to fail before anything is opened.
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

/// What a connection goes through first.
struct Door {
    tls: Option<(TlsAcceptor, Clients)>,
    clock: Arc<dyn Clock>,
}

impl Door {
    /// Lets a connection in: shakes hands where there is TLS, and serves its requests.
    async fn enter(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        router: axum::Router,
        ended: watch::Receiver<bool>,
    ) {
        drop(stream.set_nodelay(true));
        let Some((acceptor, clients)) = &self.tls else {
            return connection(stream, Peer::None, router, ended).await;
        };
        let stream = match within(HANDSHAKE, acceptor.accept(stream)).await {
            Some(Ok(stream)) => stream,
            Some(Err(error)) => {
                tracing::info!(%from, %error, "a TLS handshake failed");
                return;
            }
            None => {
                tracing::info!(%from, "a TLS handshake took too long");
                return;
            }
        };
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let peer = clients.judge(chain, self.clock.wall());
        if let Peer::Refused(why) = &peer {
            tracing::warn!(%from, "a client's certificate was refused: {why}");
        }
        connection(stream, peer, router, ended).await;
    }
}

async fn accept(
    listener: TcpListener,
    door: Arc<Door>,
    plane: ControlPlane,
    room: Arc<Semaphore>,
    mut ended: watch::Receiver<bool>,
) {
    let router = plane.router();
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            biased;
            () = over(&mut ended) => {
                drop(place);
                return std::future::pending().await;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                let (door, router, ended) = (Arc::clone(&door), router.clone(), ended.clone());
                tokio::spawn(async move {
                    door.enter(stream, from, router, ended).await;
                    drop(place);
                });
            }
            // Out of file descriptors, or a client that gave up: the next one may do better.
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Waits until the process is asked to end.
async fn over(ended: &mut watch::Receiver<bool>) {
    drop(ended.wait_for(|ended| *ended).await);
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: Peer,
    router: axum::Router,
    mut ended: watch::Receiver<bool>,
) {
    let peer = Arc::new(peer);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&peer));
        answer(router.clone(), request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        biased;
        served = serving.as_mut() => served,
        () = over(&mut ended) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Takes the whole body first, within limits of size and time, so that no handler waits for a slow client.
async fn answer(router: axum::Router, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    // One byte more than is accepted, so that the handler sees what is too large and refuses it in Kubernetes' words.
    let mut taken = BytesMut::new();
    let complete = within(PATIENCE, async {
        let mut body = std::pin::pin!(body);
        while taken.len() <= crate::api::MAX_BODY
            && let Some(frame) = body.frame().await
        {
            match frame.map(hyper::body::Frame::into_data) {
                Ok(Ok(data)) => taken.extend_from_slice(&data),
                // Trailers mean nothing here.
                Ok(Err(_)) => {}
                Err(_) => return false,
            }
        }
        true
    });
    if complete.await == Some(true) {
        return router.oneshot(Request::from_parts(head, Body::from(taken.freeze()))).await;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = http::StatusCode::REQUEST_TIMEOUT;
    response.headers_mut().insert(http::header::CONNECTION, http::HeaderValue::from_static("close"));
    Ok(response)
}
