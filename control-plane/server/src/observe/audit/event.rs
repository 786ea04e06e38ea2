//! Audit events: what is known of a request as Kubernetes' JSON.

use std::net::IpAddr;

use bytes::Bytes;
use http::request::Parts;
use serde_json::{Map, Value, json};

use super::AuditLevel;
use crate::observe::request::Seen;

/// Bodies that make a line longer than so many bytes are left out, and the event says so.
const LONGEST: usize = 128 * 1024;
/// A user agent is cut to so many bytes, as in Kubernetes.
const LONGEST_AGENT: usize = 1024;
/// Resources whose bodies hold secrets, and subresources that hand them out.
const SECRET: &[&str] = &["secrets", "tokenreviews", "tokenrequests", "certificatesigningrequests", "token"];

/// When in a request's life an event was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The head of a watch's answer is about to be sent.
    ResponseStarted,
    /// The answer is complete.
    ResponseComplete,
}

impl Stage {
    fn word(self) -> &'static str {
        match self {
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
        }
    }
}

/// What is kept of a request for its events.
#[derive(Debug)]
pub struct Record {
    level: AuditLevel,
    verb: String,
    uri: String,
    agent: String,
    peer: Option<IpAddr>,
    received: jiff::Timestamp,
    /// The request's body.
    pub body: Bytes,
    media: String,
    /// The answer's body.
    pub answer: Bytes,
}

/// How a request ended, for its last event.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The Audit-Id.
    pub id: &'a str,
    /// The code of the answer; absent when the client left before it.
    pub code: Option<u16>,
    /// Now.
    pub now: jiff::Timestamp,
}

impl Record {
    /// Of a request that arrived at `received`.
    pub fn new(level: AuditLevel, head: &Parts, peer: Option<IpAddr>, received: jiff::Timestamp) -> Self {
        let text = |name: http::HeaderName| {
            let value = head.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let mut agent = text(http::header::USER_AGENT);
        if agent.len() > LONGEST_AGENT {
            // Header values that are text are ASCII.
            agent.truncate(LONGEST_AGENT);
            agent.push_str("...TRUNCATED");
        }
        Self {
            level,
            verb: head.method.as_str().to_ascii_lowercase(),
            // Not the authority: a URL can hold a password there.
            uri: head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            agent,
            peer,
            received,
            body: Bytes::new(),
            media: text(http::header::CONTENT_TYPE),
            answer: Bytes::new(),
        }
    }

    /// Whether the answer's body is wanted.
    pub fn wants_answer(&self, seen: &Seen) -> bool {
        level_of(self.level, seen) == AuditLevel::RequestResponse
    }

    /// The event as one line.
    pub fn line(&self, seen: &Seen, stage: Stage, end: End<'_>) -> String {
        let level = level_of(self.level, seen);
        let secret = is_secret(seen);
        let mut event = Map::new();
        let mut put = |key: &str, value: Value| event.insert(key.into(), value);
        put("kind", json!("Event"));
        put("apiVersion", json!("audit.k8s.io/v1"));
        put("level", json!(level.word()));
        put("auditID", json!(end.id));
        put("stage", json!(stage.word()));
        put("requestURI", json!(self.uri));
        put("verb", json!(seen.target.as_ref().map_or(self.verb.as_str(), |(_, action)| action.verb())));
        put("user", user(seen));
        put(
            "sourceIPs",
            self.peer.map_or_else(|| json!([]), |peer| json!([peer.to_canonical().to_string()])),
        );
        if !self.agent.is_empty() {
            put("userAgent", json!(self.agent));
        }
        let request = self.request_object();
        if let Some(object) = object_ref(seen, request.as_ref()) {
            put("objectRef", object);
        }
        put("responseStatus", status(seen, secret, end.code));
        put("requestReceivedTimestamp", json!(micros(self.received)));
        put("stageTimestamp", json!(micros(end.now)));
        let mut notes = annotations(seen);
        let mut bodies = Map::new();
        if level >= AuditLevel::Request && stage == Stage::ResponseComplete {
            bodies.extend(request.map(|request| ("requestObject".to_owned(), request)));
            if level == AuditLevel::RequestResponse
                && let Ok(answer) = serde_json::from_slice(&self.answer)
            {
                bodies.insert("responseObject".into(), answer);
            }
            if self.body.len() + self.answer.len() > LONGEST {
                bodies.clear();
                notes.insert("audit.k8s.io/truncated".into(), json!("true"));
            }
        }
        if !notes.is_empty() {
            event.insert("annotations".into(), Value::Object(notes));
        }
        event.extend(bodies);
        Value::Object(event).to_string()
    }

    /// The request's body as JSON, whatever it was written in; nothing when it cannot be read.
    fn request_object(&self) -> Option<Value> {
        if self.body.is_empty() {
            return None;
        }
        let mut headers = http::HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, self.media.parse().ok()?);
        let json = crate::api::to_json(&headers, self.body.clone());
        let json = json.map_or_else(|_| self.body.clone(), |json| json.text);
        serde_json::from_slice(&json).ok()
    }
}

fn status(seen: &Seen, secret: bool, code: Option<u16>) -> Value {
    let Some(code) = code else {
        let message = "the client left before the answer";
        return json!({"metadata": {}, "status": "Failure", "message": message, "code": 499});
    };
    match &seen.refusal {
        None => json!({"metadata": {}, "code": code}),
        // What is wrong with a secret may be told in words that contain it.
        Some(refusal) if secret && refusal.code != 403 => json!({
            "metadata": {}, "status": "Failure", "reason": refusal.reason.as_str(), "code": code,
        }),
        Some(refusal) => {
            let mut status = refusal.to_status();
            if let Some(status) = status.as_object_mut() {
                status.remove("kind");
                status.remove("apiVersion");
            }
            status
        }
    }
}

fn is_secret(seen: &Seen) -> bool {
    seen.target.as_ref().is_some_and(|(target, _)| {
        let subresource = target.subresource.as_deref().unwrap_or_default();
        SECRET.contains(&target.kind.plural) || SECRET.contains(&subresource)
    })
}

/// Where it is not known what a body is about, as for methods that nobody serves, it may be anything.
fn level_of(level: AuditLevel, seen: &Seen) -> AuditLevel {
    if is_secret(seen) || seen.target.is_none() { level.min(AuditLevel::Metadata) } else { level }
}

fn user(seen: &Seen) -> Value {
    let Some(user) = &seen.user else { return json!({}) };
    let mut shown = json!({"username": user.name});
    if !user.uid.is_empty() {
        shown["uid"] = json!(user.uid);
    }
    if !user.groups.is_empty() {
        shown["groups"] = json!(user.groups);
    }
    shown
}

fn object_ref(seen: &Seen, request: Option<&Value>) -> Option<Value> {
    let (target, _) = seen.target.as_ref()?;
    let kind = target.kind;
    let of_request = |field: &str| {
        let field = request?.pointer(field)?.as_str()?;
        Some(field.to_owned()).filter(|field| !field.is_empty())
    };
    let fields = [
        ("resource", Some(kind.plural.to_owned())),
        ("namespace", target.namespace.clone()),
        ("name", target.name.clone().or_else(|| of_request("/metadata/name"))),
        ("uid", of_request("/metadata/uid")),
        ("apiGroup", Some(kind.group.to_owned()).filter(|group| !group.is_empty())),
        ("apiVersion", Some(kind.version.to_owned())),
        ("resourceVersion", of_request("/metadata/resourceVersion")),
        ("subresource", target.subresource.clone()),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
    Some(Value::Object(fields.collect()))
}

fn annotations(seen: &Seen) -> Map<String, Value> {
    let Some(allowed) = seen.allowed else { return Map::new() };
    let decision = if allowed { "allow" } else { "forbid" };
    Map::from_iter([
        ("authorization.k8s.io/decision".to_owned(), json!(decision)),
        ("authorization.k8s.io/reason".to_owned(), json!(seen.reason)),
    ])
}

fn micros(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
