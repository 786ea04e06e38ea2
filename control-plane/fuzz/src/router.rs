//! The target `router`: whole requests to a whole control plane.
//!
//! A control plane, with all default roles, is opened once a process and never asked anything. Each input has
//! a fork of it to itself, with a copy of its store, the same seed and a clock at the same instant: what an input does depends
//! on nothing but its bytes, however many came before it, so a kept one does the same alone.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use axum::body::Body;
use control_plane::{Clock, Config, ControlPlane, MemoryStore};
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::line;

const SEED: u64 = 1;
/// Writes that are remembered for watches: few, so that inputs reach what was forgotten.
const HISTORY: usize = 32;
const TOKENS: &str = "admin,admin,,system:masters\nboard,system:node:a,,system:nodes\nnobody,nobody,,\n";
/// Requests that one input can make, and lines that are read of each answer.
const MOST: usize = 16;

/// The method of a request and the code of its answer.
pub type Told = (String, u16);

/// A clock that only the input moves.
#[derive(Default)]
struct HandClock(Mutex<Duration>);

impl HandClock {
    fn advance(&self, time: Duration) {
        *self.0.lock().expect("nothing panics while it is held") += time;
    }
}

impl Clock for HandClock {
    fn mono(&self) -> Duration {
        *self.0.lock().expect("nothing panics while it is held")
    }

    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH + Duration::from_secs(1_767_225_600) + self.mono()
    }
}

/// A control plane at its first start, and its store.
static OPENED: LazyLock<(ControlPlane, Arc<MemoryStore>)> = LazyLock::new(|| {
    let config = Config { plain_http: true, token_auth_text: Some(TOKENS.into()), ..Config::default() };
    let store = Arc::new(MemoryStore::with_history(HISTORY));
    let opened = ControlPlane::open(config, store.clone(), Arc::new(HandClock::default()), SEED);
    let opened = opened.now_or_never().expect("opening must not wait").expect("an empty store opens");
    opened.reconcile().now_or_never().expect("reconcile must not wait");
    (opened, store)
});

/// Requests to one control plane, one after the other, with a line `%%` between two: `METHOD URL`, header lines, an empty
/// line, the body. `WAIT SECONDS` lets time pass. Whoever sends no `authorization` is the administrator. Says how each
/// request was answered.
pub fn router(data: &[u8]) -> Vec<Told> {
    let clock = Arc::new(HandClock::default());
    let (opened, store) = &*OPENED;
    let plane = opened.fork(Arc::new(store.fork()), clock.clone(), SEED);
    let plane = plane.now_or_never().expect("forking must not wait").expect("a copy can be read");
    let (mut told, mut open) = (Vec::new(), Vec::new());
    for request in split(data).into_iter().take(MOST) {
        let (first, _) = line(request);
        if let Some(seconds) = first.strip_prefix(b"WAIT ") {
            let seconds = std::str::from_utf8(seconds).ok().and_then(|text| text.trim().parse::<u16>().ok());
            clock.advance(Duration::from_secs(seconds.unwrap_or(1).into()));
        } else if let Some(request) = read_request(request) {
            let method = request.method().to_string();
            let (code, watch) = ask(&plane, request);
            told.push((method, code));
            open.extend(watch);
        }
        plane.reconcile().now_or_never().expect("reconcile must not wait");
        for body in &mut open {
            drain(body);
        }
    }
    assert_eq!(plane.metrics().panics.get(), 0, "a handler panicked");
    told
}

/// The parts between lines that hold `%%` alone.
fn split(data: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let mut at = 0;
    while let Some(found) = data[at..].windows(4).position(|window| window == b"\n%%\n") {
        parts.push(&data[start..at + found]);
        at += found + 4;
        start = at;
    }
    parts.push(&data[start..]);
    parts
}

fn read_request(text: &[u8]) -> Option<Request<Body>> {
    let (first, mut rest) = line(text);
    let mut words = first.split(|byte| *byte == b' ');
    let method = Method::from_bytes(words.next()?).ok()?;
    let uri = Uri::try_from(words.next()?).ok()?;
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    loop {
        let (header, after) = line(rest);
        rest = after;
        if header.is_empty() {
            break;
        }
        let colon = header.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&header[..colon]).ok()?;
        let value = HeaderValue::from_bytes(header[colon + 1..].trim_ascii()).ok()?;
        request.headers_mut().append(name, value);
    }
    let admin = HeaderValue::from_static("Bearer admin");
    request.headers_mut().entry("authorization").or_insert(admin);
    Some(request.map(|()| Body::from(rest.to_vec())))
}

/// Sends a request and reads the answer, or hands back the body of a watch.
fn ask(plane: &ControlPlane, request: Request<Body>) -> (u16, Option<Body>) {
    let answer = plane.router().oneshot(request).now_or_never().expect("a handler must not wait");
    let answer = answer.unwrap_or_else(|never| match never {});
    let (head, mut body) = answer.into_parts();
    assert!(head.headers.contains_key("audit-id") && head.headers.contains_key("date"));
    let media = head.headers.get("content-type").and_then(|media| media.to_str().ok()).unwrap_or_default();
    let Some(whole) = (&mut body).collect().now_or_never() else {
        return (head.status.as_u16(), Some(body));
    };
    let bytes = whole.expect("bodies do not fail").to_bytes();
    let lines = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
    if media.starts_with("application/json") {
        for value in lines {
            let value = value.unwrap_or_else(|error| panic!("an answer is no JSON: {error}"));
            let code = value["code"].as_u64();
            assert!(
                value["kind"] != "Status"
                    || head.status.is_success()
                    || code == Some(head.status.as_u16().into())
            );
        }
    }
    (head.status.as_u16(), None)
}

/// Reads what a watch has to say by now.
fn drain(body: &mut Body) {
    for _ in 0..MOST {
        match body.frame().now_or_never() {
            Some(Some(Ok(frame))) => {
                let data = frame.into_data().unwrap_or_default();
                for value in serde_json::Deserializer::from_slice(&data).into_iter::<Value>() {
                    let value = value.unwrap_or_else(|error| panic!("a watch's line is no JSON: {error}"));
                    assert!(value["type"].is_string() && value["object"].is_object(), "{value}");
                }
            }
            Some(None) | Some(Some(Err(_))) | None => return,
        }
    }
}
