//! Calls to etcd: unary gRPC with a deadline, and the stream of a watch.
//!
//! A call that reads may go to any member; a write goes to one, and is handed to the next only when it is certain that it
//! never left this process. Nothing is ever sent twice.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, ConnectError, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::EtcdError;
use super::proto::{
    CompactionRequest, CompactionResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
    WatchCreateRequest, WatchRequest, WatchResponse,
};
use crate::clock::within;

/// Longer than etcd itself waits for its members to agree (5 s and two elections).
const PATIENCE: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(2);
/// etcd refuses pings that come more often than every 5 s.
const PING: Duration = Duration::from_secs(10);
const PONG: Duration = Duration::from_secs(5);

/// Why a call has no answer.
#[derive(Debug)]
pub enum CallError {
    /// It never left this process.
    NotSent(String),
    /// etcd refused it: nothing was written.
    Refused(String),
    /// The revision is no longer kept.
    Compacted,
    /// It was sent, and what became of it is not known.
    Lost(String),
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotSent(reason) => write!(f, "etcd cannot be reached ({reason})"),
            Self::Refused(reason) => write!(f, "etcd refuses: {reason}"),
            Self::Compacted => f.write_str("etcd has compacted that revision"),
            Self::Lost(reason) => write!(f, "etcd did not answer ({reason})"),
        }
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(&status);
        while let Some(error) = cause {
            if error.is::<ConnectError>() {
                return Self::NotSent(root(error));
            }
            cause = error.source();
        }
        let message = status.message().to_owned();
        match status.code() {
            Code::OutOfRange if message.contains("compacted") => Self::Compacted,
            Code::InvalidArgument
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::NotFound
            | Code::AlreadyExists
            | Code::OutOfRange
            | Code::Unimplemented => Self::Refused(message),
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => Self::Lost(message),
        }
    }
}

/// What is at the bottom of an error.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

/// Certificates for etcd, in PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// Whom to trust.
    pub ca: Option<Vec<u8>>,
    /// Certificate and key to show.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsFiles {
    /// Reads them: whom to trust, and what to show with its key.
    ///
    /// # Errors
    /// [`EtcdError::Configuration`] naming the file.
    pub fn read(ca: Option<&Path>, identity: Option<(&Path, &Path)>) -> Result<Self, EtcdError> {
        let read = |path: &Path| {
            let unreadable = |error| format!("{} cannot be read ({error})", path.display());
            std::fs::read(path).map_err(|error| EtcdError::Configuration(unreadable(error)))
        };
        let identity = match identity {
            Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
            None => None,
        };
        Ok(Self { ca: ca.map(read).transpose()?, identity })
    }
}

/// The members of an etcd cluster.
#[derive(Debug)]
pub struct Client {
    members: Vec<Channel>,
    /// Who answered last.
    current: AtomicUsize,
}

impl Client {
    /// A client of the members at these URLs; connects when first asked.
    ///
    /// # Errors
    /// A message for a URL or a certificate that cannot be used.
    pub fn new(servers: &[String], tls: &TlsFiles) -> Result<Self, String> {
        let mut members = Vec::new();
        for server in servers {
            let bad = |error: tonic::transport::Error| {
                format!(
                    "`{server}` cannot be used ({}): write a URL such as http://127.0.0.1:2379",
                    root(&error)
                )
            };
            let mut endpoint = Endpoint::from_shared(server.clone())
                .map_err(bad)?
                .connect_timeout(CONNECT)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(PING)
                .keep_alive_timeout(PONG)
                .keep_alive_while_idle(true)
                .initial_stream_window_size(8 << 20)
                .initial_connection_window_size(16 << 20);
            if server.starts_with("https://") {
                let mut config = ClientTlsConfig::new();
                if let Some(ca) = &tls.ca {
                    config = config.ca_certificate(Certificate::from_pem(ca));
                }
                if let Some((certificate, key)) = &tls.identity {
                    config = config.identity(Identity::from_pem(certificate, key));
                }
                endpoint = endpoint.tls_config(config).map_err(bad)?;
            }
            members.push(endpoint.connect_lazy());
        }
        Ok(Self { members, current: AtomicUsize::new(0) })
    }

    /// Reads keys.
    pub async fn range(&self, request: RangeRequest) -> Result<RangeResponse, CallError> {
        self.call("/etcdserverpb.KV/Range", request, true).await
    }

    /// Writes, when what is compared holds.
    pub async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, CallError> {
        self.call("/etcdserverpb.KV/Txn", request, false).await
    }

    /// Forgets what was before a revision.
    pub async fn compact(&self, revision: i64) -> Result<(), CallError> {
        let request = CompactionRequest { revision };
        self.call::<_, CompactionResponse>("/etcdserverpb.KV/Compact", request, false).await.map(drop)
    }

    /// Everything that is written from a revision on, whoever writes it.
    pub async fn watch(&self, start_revision: i64) -> Result<Streaming<WatchResponse>, CallError> {
        let create = WatchCreateRequest { key: vec![0], range_end: vec![0], start_revision };
        let create = WatchRequest { create: Some(create) };
        // The request's side stays open: its end would be the end of the watch.
        let requests = futures_util::StreamExt::chain(
            futures_util::stream::iter([create]),
            futures_util::stream::pending(),
        );
        let index = self.current.load(Ordering::Relaxed);
        let mut request = Request::new(requests);
        // A member that lost its leader ends the watch instead of falling silent.
        request.metadata_mut().insert("hasleader", tonic::metadata::MetadataValue::from_static("true"));
        let watching = async {
            let mut grpc = self.member(index);
            grpc.ready().await.map_err(|error| CallError::NotSent(root(&error)))?;
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            Ok(grpc.streaming(request, path, ProstCodec::default()).await?.into_inner())
        };
        let watched = within(PATIENCE, watching).await;
        watched
            .unwrap_or_else(|| Err(CallError::Lost("it took too long".into())))
            .inspect_err(|_| self.leave(index))
    }

    fn member(&self, index: usize) -> Grpc<Channel> {
        Grpc::new(self.members[index % self.members.len()].clone()).max_decoding_message_size(usize::MAX)
    }

    /// Turns to the next member, unless someone else did already.
    fn leave(&self, index: usize) {
        let next = index.wrapping_add(1) % self.members.len();
        let _ = self.current.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    async fn call<Q, A>(&self, path: &'static str, message: Q, reads: bool) -> Result<A, CallError>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut outcome = Err(CallError::NotSent("there are no members".into()));
        for _ in 0..self.members.len() {
            let index = self.current.load(Ordering::Relaxed);
            outcome = self.ask(index, path, message.clone()).await;
            match &outcome {
                Err(CallError::NotSent(_)) => self.leave(index),
                Err(CallError::Lost(_)) => {
                    self.leave(index);
                    if !reads {
                        break;
                    }
                }
                Ok(_) | Err(CallError::Refused(_) | CallError::Compacted) => break,
            }
        }
        outcome
    }

    async fn ask<Q, A>(&self, index: usize, path: &'static str, message: Q) -> Result<A, CallError>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = self.member(index);
        match within(CONNECT, grpc.ready()).await {
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(CallError::NotSent(root(&error))),
            None => return Err(CallError::NotSent("it takes too long to connect".into())),
        }
        let path = PathAndQuery::from_static(path);
        let answer = grpc.unary(Request::new(message), path, ProstCodec::default());
        match within(PATIENCE, answer).await {
            Some(answer) => Ok(answer?.into_inner()),
            None => Err(CallError::Lost("it took too long".into())),
        }
    }
}
