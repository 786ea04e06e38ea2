//! One connection: its requests are received within limits of size, time and memory, and answered.
//!
//! What a client does can end its own connection and nothing else. A client that takes too long is left: for a head or a body by
//! a timer here, for data that it does not take, and for a peer that is gone, by the kernel's timers of the socket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use control_plane_api::ApiError;
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tower::ServiceExt;

use super::halves::{Busy, Halves};
use super::limits::{BodyRoom, SMALL_BODY};
use crate::api::{MAX_BODY, NotReceived};
use crate::clock::within;
use crate::observe::{Metrics, Origin};
use crate::tls::Peer;

/// The head of a request, in bytes; more is 431. The library's own limit is on what it has read before a head is complete: it lets
/// none of this length fail, and by the luck of how the bytes arrive lets longer ones pass.
const MAX_HEAD: usize = 64 * 1024;
/// So much of a body that is too large is taken and thrown away, so that its sender gets to read the answer.
const MAX_WASTE: usize = 64 * 1024 * 1024;
/// An idle peer is asked after so long whether it is still there, and so often before it counts as gone.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);

/// Who is at the other end, and what serves them.
#[derive(Clone)]
pub struct Visit {
    /// Where they come from.
    pub from: SocketAddr,
    /// What answers.
    pub router: Router,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Room for large bodies, shared by all connections.
    pub bodies: BodyRoom,
    /// A client has so long for the head of a request, for its body, and for taking what it is sent.
    pub patience: Duration,
}

impl Visit {
    fn cut(&self, reason: &str) {
        self.metrics.connections_refused.with_label_values(&[reason]).inc();
    }
}

/// Sets the kernel's timers: a peer that takes nothing for `patience`, or is gone without a word, is left.
pub fn prepare(stream: &TcpStream, patience: Duration) {
    let (idle, interval, count) = KEEPALIVE;
    let socket = stream.as_fd();
    let millis = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    // Sockets that take no such options, as in some sandboxes, serve all the same.
    drop(stream.set_nodelay(true));
    let _: Result<(), rustix::io::Errno> = sockopt::set_tcp_user_timeout(socket, millis);
    let _: Result<(), rustix::io::Errno> = sockopt::set_socket_keepalive(socket, true);
    let _: Result<(), rustix::io::Errno> = sockopt::set_tcp_keepidle(socket, idle);
    let _: Result<(), rustix::io::Errno> = sockopt::set_tcp_keepintvl(socket, interval);
    let _: Result<(), rustix::io::Errno> = sockopt::set_tcp_keepcnt(socket, count);
}

/// Serves a connection until its client or the process ends it.
pub async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: Peer,
    visit: Visit,
    mut ended: watch::Receiver<bool>,
) {
    let peer = Arc::new(peer);
    let (own, busy) = (visit.clone(), Busy::default());
    let stream = Halves::new(stream, busy.clone());
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&peer));
        request.extensions_mut().insert(Origin(own.from.ip()));
        let (visit, busy) = (own.clone(), busy.clone());
        // Before anything is waited for: the library looks for the end of the input right after this.
        busy.begin();
        async move {
            let answer = if head_length(&request) > MAX_HEAD {
                too_large(&visit)
            } else {
                answer(&visit, request).await
            };
            busy.end();
            Ok::<_, Infallible>(answer)
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(visit.patience)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        biased;
        served = serving.as_mut() => served,
        () = super::over(&mut ended) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        let reason = match &error {
            error if error.is_timeout() => "head_timeout",
            error if error.is_parse_too_large() => "head_too_large",
            error if error.is_parse() => "no_http",
            error if error.is_incomplete_message() => "incomplete",
            _ => "broken",
        };
        visit.cut(reason);
        tracing::debug!(from = %visit.from, %error, "a connection ended early");
    }
}

/// The bytes of a request's head as it was sent, but for the white space around values, of which nothing is kept.
fn head_length<B>(request: &Request<B>) -> usize {
    let uri = request.uri();
    let scheme = uri.scheme_str().map_or(0, |scheme| scheme.len() + "://".len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let line = request.method().as_str().len() + scheme + authority + path + "  HTTP/1.1\r\n".len();
    let headers =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + headers.sum::<usize>() + "\r\n".len()
}

/// The answer to a head that is too large, the same as the library's own.
fn too_large(visit: &Visit) -> Response<Body> {
    visit.cut("head_too_large");
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Takes the whole body first, within limits, so that no handler waits for a slow client.
async fn answer(visit: &Visit, request: Request<Incoming>) -> Response<Body> {
    let (mut head, body) = request.into_parts();
    let (body, room) = match within(visit.patience, receive(visit, &head.headers, body)).await {
        Some(Ok(received)) => received,
        missing => {
            head.extensions.insert(NotReceived(missing_body(visit, missing.and_then(Result::err))));
            let request = Request::from_parts(head, Body::empty());
            let mut response = infallible(visit.router.clone().oneshot(request).await);
            // Nothing more of the connection can be understood.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
    };
    let changes = !matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS);
    let request = Request::from_parts(head, Body::from(body));
    let answering = visit.router.clone().oneshot(request);
    if !changes {
        return infallible(answering.await);
    }
    let change = Change::new(async move {
        let answer = infallible(answering.await);
        drop(room);
        answer
    });
    change.await
}

/// A change under way. It is finished also when its client hangs up, then in a task of its own: what belongs together is
/// written together. A task from the first would cost each change a hop to another thread.
struct Change(Option<Pin<Box<dyn Future<Output = Response<Body>> + Send>>>);

impl Change {
    fn new(change: impl Future<Output = Response<Body>> + Send + 'static) -> Self {
        Self(Some(Box::pin(change)))
    }
}

impl Future for Change {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(change) = &mut self.0 else { return Poll::Pending };
        let answer = std::task::ready!(change.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(answer)
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if let (Some(rest), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            drop(runtime.spawn(rest));
        }
    }
}

fn infallible(answer: Result<Response<Body>, Infallible>) -> Response<Body> {
    answer.unwrap_or_else(|never| match never {})
}

/// What to say of a body that is not there; none came in time where there is no other reason.
fn missing_body(visit: &Visit, why: Option<NoBody>) -> ApiError {
    match why {
        Some(NoBody::BrokeOff) => {
            visit.cut("body_broke_off");
            ApiError::bad_request("the body broke off")
        }
        Some(NoBody::NoRoom) => ApiError::internal("no room is left for bodies"),
        None => {
            visit.cut("body_timeout");
            ApiError::plain(408, "the request did not arrive in time")
        }
    }
}

enum NoBody {
    BrokeOff,
    NoRoom,
}

/// The body, and the room that it takes. One that is too large becomes some other body that is too large, so that the handler
/// refuses it in its turn, after whoever may not ask at all.
async fn receive(
    visit: &Visit,
    headers: &http::HeaderMap,
    body: Incoming,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), NoBody> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let mut room = None;
    let mut taken = BytesMut::new();
    let mut body = std::pin::pin!(body);
    let waits = headers.contains_key(http::header::EXPECT);
    if waits && announced.is_some_and(|length| length > MAX_BODY as u64) {
        // It was asked whether to send it: no.
        return Ok((oversized(), None));
    }
    while let Some(frame) = body.frame().await {
        // Trailers mean nothing here.
        let Ok(data) = frame.map_err(|_| NoBody::BrokeOff)?.into_data() else { continue };
        let length = taken.len() + data.len();
        if length > MAX_BODY {
            drop(taken);
            waste(body, length).await?;
            return Ok((oversized(), None));
        }
        if length > SMALL_BODY && room.is_none() {
            let announced = announced.and_then(|length| usize::try_from(length).ok()).unwrap_or(MAX_BODY);
            room = Some(visit.bodies.take(announced.min(MAX_BODY)).await.ok_or(NoBody::NoRoom)?);
        }
        taken.extend_from_slice(&data);
    }
    Ok((taken.freeze(), room))
}

fn oversized() -> Bytes {
    Bytes::from(vec![b' '; MAX_BODY + 1])
}

/// Reads on without keeping anything, up to a limit.
async fn waste(mut body: Pin<&mut Incoming>, mut length: usize) -> Result<(), NoBody> {
    while length <= MAX_WASTE
        && let Some(frame) = body.frame().await
    {
        length += frame.map_err(|_| NoBody::BrokeOff)?.into_data().map_or(0, |data| data.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    fn change() -> (Change, oneshot::Sender<()>, oneshot::Receiver<()>) {
        let (go, going) = oneshot::channel();
        let (done, finished) = oneshot::channel();
        let change = Change::new(async move {
            going.await.unwrap();
            done.send(()).unwrap();
            Response::new(Body::empty())
        });
        (change, go, finished)
    }

    #[tokio::test]
    async fn a_change_is_finished_where_it_is_waited_for_and_elsewhere_when_nobody_waits() {
        let (waited, go, mut finished) = change();
        go.send(()).unwrap();
        assert!(waited.now_or_never().is_some() && finished.try_recv().is_ok());

        let (mut left, go, finished) = change();
        assert!((&mut left).now_or_never().is_none());
        drop(left);
        go.send(()).unwrap();
        finished.await.unwrap();

        let (never_looked_at, go, finished) = change();
        drop(never_looked_at);
        go.send(()).unwrap();
        finished.await.unwrap();
    }
}
