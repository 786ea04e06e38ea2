//! One request, from its arrival to the end of its answer: counted, timed and logged once, whatever becomes of it.
//!
//! An [`Observation`] ends exactly once: with the answer, with the end of a watch, or, when it is dropped before, as aborted.

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use control_plane_api::ApiError;
use http::{Method, Uri};
use http_body::Frame;

use super::audit::{AuditLevel, End, Record, Stage, Written};
use crate::api::Target;
use crate::auth::{Action, User};
use crate::service::Service;

/// The address that a request came from, as an extension of the request; absent where there is no socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(pub IpAddr);

/// What turns out about a request while it is answered.
#[derive(Debug, Default)]
pub struct Seen {
    /// Who asks; absent while unknown, and for refused credentials.
    pub user: Option<User>,
    /// What is asked of which object or collection; absent for everything else.
    pub target: Option<(Target, Action)>,
    /// The served path, where that is not a resource.
    pub path: &'static str,
    /// Nothing is to be written.
    pub dry_run: bool,
    /// Whether it was allowed; absent until that is decided.
    pub allowed: Option<bool>,
    /// Why, for the audit log; may be empty.
    pub reason: String,
    /// What a refusal says.
    pub refusal: Option<ApiError>,
}

impl Seen {
    /// Notes whether the request was allowed, and why.
    ///
    /// # Errors
    /// The refusal, as it came.
    pub fn decided(&mut self, decision: Result<String, ApiError>) -> Result<(), ApiError> {
        self.allowed = Some(decision.is_ok());
        match decision {
            Ok(why) => {
                self.reason = why;
                Ok(())
            }
            Err(refusal) => {
                self.refusal = Some(refusal.clone());
                Err(refusal)
            }
        }
    }
}

/// The metrics' labels of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Labels([&'static str; 8]);

impl Seen {
    fn labels(&self, method: &Method) -> Labels {
        let dry_run = if self.dry_run { "All" } else { "" };
        let Some((target, action)) = &self.target else {
            return Labels([method_label(method), dry_run, "", "", "", self.path, "", "apiserver"]);
        };
        let kind = target.kind;
        let subresource = target.subresource.as_deref().and_then(|name| kind.subresource(name));
        let scope = match (&target.name, &target.namespace) {
            (Some(_), _) => "resource",
            (None, Some(_)) => "namespace",
            (None, None) => "cluster",
        };
        let subresource = subresource.map_or("", |subresource| subresource.name);
        let verb = verb_label(*action);
        Labels([verb, dry_run, kind.group, kind.version, kind.plural, subresource, scope, "apiserver"])
    }
}

fn verb_label(action: Action) -> &'static str {
    match action {
        Action::Get => "GET",
        Action::List => "LIST",
        Action::Watch => "WATCH",
        Action::Create => "POST",
        Action::Update => "PUT",
        Action::Patch => "PATCH",
        Action::Delete => "DELETE",
        Action::DeleteCollection => "DELETECOLLECTION",
    }
}

/// A client can send any word as the method; only those of HTTP become a label.
fn method_label(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

/// A request under way.
pub struct Observation {
    service: Arc<Service>,
    /// What is known of it by now.
    pub seen: Seen,
    method: Method,
    uri: Uri,
    id: String,
    began: Duration,
    kind: &'static str,
    /// The labels of a watch that is open.
    open: Option<Labels>,
    ended: bool,
    /// What the audit log wants to know, where there is one.
    pub record: Option<Record>,
}

impl Observation {
    /// A request that has just arrived; `id` is its Audit-Id.
    pub fn begin(service: &Arc<Service>, head: &http::request::Parts, id: &str) -> Self {
        let kind = match head.method {
            Method::GET | Method::HEAD | Method::OPTIONS => "readOnly",
            _ => "mutating",
        };
        service.metrics.inflight.with_label_values(&[kind]).inc();
        let peer = head.extensions.get::<Origin>().map(|origin| origin.0);
        let level = service.audit_log.get().map_or(AuditLevel::None, |audit| audit.level);
        let record = (level > AuditLevel::None).then(|| Record::new(level, head, peer, service.clock.wall()));
        Self {
            service: Arc::clone(service),
            seen: Seen::default(),
            method: head.method.clone(),
            uri: head.uri.clone(),
            id: id.to_owned(),
            began: service.clock.mono(),
            kind,
            open: None,
            ended: false,
            record,
        }
    }

    /// The answer begins and goes on until its body ends: a watch. With the body comes the writing of the audit line.
    pub fn stream(mut self, body: Body) -> (Body, Option<Written>) {
        let written = self.audit(Stage::ResponseStarted, Some(200));
        self.service.metrics.inflight.with_label_values(&[self.kind]).dec();
        let labels = self.seen.labels(&self.method);
        self.service.metrics.long_running.with_label_values(&labels.0).inc();
        self.open = Some(labels);
        (Body::new(ObservedBody { body, observation: self }), written)
    }

    /// The answer is complete, with this code. What comes back is the writing of the audit line.
    pub fn answered(mut self, code: u16) -> Option<Written> {
        self.end(Some(code))
    }

    fn audit(&self, stage: Stage, code: Option<u16>) -> Option<Written> {
        let (record, audit) = (self.record.as_ref()?, self.service.audit_log.get()?);
        self.service.metrics.audit_events.inc();
        let end = End { id: &self.id, code, now: self.service.clock.wall() };
        Some(audit.sink.write(record.line(&self.seen, stage, end)))
    }

    fn end(&mut self, code: Option<u16>) -> Option<Written> {
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        let written = self.audit(Stage::ResponseComplete, code);
        self.count(code);
        written
    }

    fn count(&self, code: Option<u16>) {
        let metrics = &self.service.metrics;
        let labels = match self.open {
            Some(labels) => {
                metrics.long_running.with_label_values(&labels.0).dec();
                labels
            }
            None => {
                metrics.inflight.with_label_values(&[self.kind]).dec();
                self.seen.labels(&self.method)
            }
        };
        let took = self.service.clock.mono().saturating_sub(self.began);
        let user = self.seen.user.as_ref().map_or("", |user| &user.name);
        // Not the authority: a URL can hold a password there.
        let uri = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let (method, id) = (&self.method, &self.id);
        let Some(code) = code else {
            metrics.aborted.inc();
            tracing::debug!(target: "control_plane::requests", %method, uri, user, id, ?took, "the client left before the answer");
            return;
        };
        let text = code.to_string();
        let [a, b, c, d, e, f, g, h] = labels.0;
        metrics.requests.with_label_values(&[a, b, c, d, e, f, g, h, text.as_str()]).inc();
        metrics.durations.with_label_values(&labels.0).observe(took.as_secs_f64());
        if code >= 500 {
            tracing::warn!(target: "control_plane::requests", %method, uri, user, code, id, ?took, "a request failed");
        } else {
            tracing::debug!(target: "control_plane::requests", %method, uri, user, code, id, ?took);
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        // A watch ends when its body is dropped, which is no failure.
        let code = self.open.map(|_| 200);
        // Nothing can be waited for here: the line is in the queue.
        drop(self.end(code));
    }
}

/// The body of a watch, whose end is the end of its request. A panic inside ends the watch and nothing else.
pub struct ObservedBody {
    body: Body,
    observation: Observation,
}

impl http_body::Body for ObservedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = Pin::new(&mut self.body);
        match catch_unwind(AssertUnwindSafe(|| body.poll_frame(context))) {
            Ok(polled) => polled.map(|frame| frame.and_then(|frame| frame.ok()).map(Ok)),
            Err(_) => {
                self.observation.service.metrics.panics.inc();
                self.body = Body::empty();
                Poll::Ready(None)
            }
        }
    }
}
