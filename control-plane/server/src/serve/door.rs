//! How connections come in: counted, with a share for each peer, through TLS where there is TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::connection::{Visit, connection, prepare};
use super::limits::{BodyRoom, Peers};
use crate::clock::{Clock, within};
use crate::control_plane::ControlPlane;
use crate::tls::{Clients, Peer};

/// A client has so long for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// After a connection that could not be accepted, the next one is waited for so long at least.
const PAUSE: Duration = Duration::from_millis(50);

/// What a connection goes through first.
pub struct Door {
    /// How to shake hands where there is TLS, and whose certificates count.
    pub tls: Option<(TlsAcceptor, Clients)>,
    /// What time it is, for certificates.
    pub clock: Arc<dyn Clock>,
    /// The connections of each peer.
    pub peers: Arc<Peers>,
    /// Room for large bodies.
    pub bodies: BodyRoom,
    /// A client has so long for each part of a request, and for taking its answer.
    pub patience: Duration,
    /// What answers.
    pub plane: ControlPlane,
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
        let metrics = Arc::clone(self.plane.metrics());
        let Some(_place) = self.peers.enter(from.ip()) else {
            metrics.connections_refused.with_label_values(&["peer_has_half"]).inc();
            return;
        };
        prepare(&stream, self.patience);
        let visit = Visit { from, router, metrics, bodies: self.bodies.clone(), patience: self.patience };
        let Some((acceptor, clients)) = &self.tls else {
            return connection(stream, Peer::None, visit, ended).await;
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
        connection(stream, peer, visit, ended).await;
    }
}

/// Lets connections in while there is room for them, until the process is asked to end.
pub async fn accept(
    listener: TcpListener,
    door: Arc<Door>,
    room: Arc<Semaphore>,
    mut ended: watch::Receiver<bool>,
) {
    let router = door.plane.router();
    let open = door.plane.metrics().connections.clone();
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            biased;
            () = super::over(&mut ended) => {
                drop(place);
                return std::future::pending().await;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                let (door, router, ended) = (Arc::clone(&door), router.clone(), ended.clone());
                let open = open.clone();
                tokio::spawn(async move {
                    let open = Counted::one_more(open);
                    door.enter(stream, from, router, ended).await;
                    drop((place, open));
                });
            }
            // Out of file descriptors, or a client that gave up: the next one may do better.
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                let _: Option<()> = within(PAUSE, std::future::pending()).await;
            }
        }
    }
}

/// One more on a gauge, until it is dropped.
struct Counted(prometheus::IntGauge);

impl Counted {
    fn one_more(gauge: prometheus::IntGauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
