//! A control plane over the memory store with a clock that only this test moves; requests go through its router.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use control_plane::config::Config;
use control_plane::{Clock, ControlPlane, MemoryStore};
use control_plane_api::Dialect;
use futures_util::FutureExt;
use http::Request;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::exchange::{Exchange, Recorded};
use crate::set_up::{Setting, Step};
use crate::translate::Translation;

/// How many writes the history remembers; `compact` steps make more than that.
pub const HISTORY: usize = 512;

pub struct ManualClock {
    start: jiff::Timestamp,
    passed: Mutex<Duration>,
}

impl Clock for ManualClock {
    fn mono(&self) -> Duration {
        *self.passed.lock().unwrap()
    }

    fn wall(&self) -> jiff::Timestamp {
        self.start + self.mono()
    }
}

/// A request in this control plane's own words.
pub struct Asked {
    pub who: String,
    pub method: String,
    pub url: String,
    pub headers: crate::exchange::Headers,
    pub body: String,
    pub watch: bool,
}

/// What this control plane answers.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Vec<String> {
        self.headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The lines of a watch; nothing where a line is no JSON.
    pub fn lines(&self) -> Option<Vec<Value>> {
        self.text.lines().map(|line| serde_json::from_str(line).ok()).collect()
    }
}

pub struct Rig {
    clock: Arc<ManualClock>,
    pub store: Arc<MemoryStore>,
    plane: ControlPlane,
    pub translation: Translation,
}

impl Rig {
    pub fn new(setting: &Setting) -> Self {
        let tokens = "admin-token,admin,admin,system:masters\nnobody-token,nobody,nobody,\n";
        let config = Config {
            plain_http: true,
            listen: "192.0.2.10:16443".parse().unwrap(),
            dialect: Dialect::Kubernetes,
            token_auth_text: Some(tokens.to_owned()),
            controllers: setting.controllers.parse().unwrap(),
            disable_admission: [control_plane::config::Admission::ServiceAccount].into(),
            watch_history: HISTORY,
            ..Config::default()
        };
        let clock = Arc::new(ManualClock { start: setting.time.parse().unwrap(), passed: Mutex::default() });
        let store = Arc::new(MemoryStore::with_history(HISTORY));
        let plane = ControlPlane::open(config, store.clone(), clock.clone(), 1);
        let plane = plane.now_or_never().expect("open must not wait").unwrap();
        Self { clock, store, plane, translation: Translation::default() }
    }

    fn reconcile(&self) -> Option<Duration> {
        self.plane.reconcile().now_or_never().expect("reconcile must not wait")
    }

    /// Lets time pass, with everything that is due at its instant.
    pub fn pass(&self, time: Duration) {
        let until = self.clock.mono() + time;
        while let Some(due) = self.reconcile() {
            let due = due.max(self.clock.mono());
            if due > until {
                break;
            }
            *self.clock.passed.lock().unwrap() = due;
        }
        *self.clock.passed.lock().unwrap() = until;
        self.reconcile();
    }

    pub fn run(&mut self, steps: &[Step]) {
        for step in steps {
            step.run(self);
        }
    }

    pub fn translated(&self, exchange: &Exchange) -> Asked {
        Asked {
            who: exchange.who.clone(),
            method: exchange.method.clone(),
            url: self.translation.url(&exchange.url),
            headers: self.translation.headers(&exchange.headers),
            body: self.translation.body(&exchange.body),
            watch: exchange.is_watch(),
        }
    }

    pub fn learn(&mut self, recorded: &Recorded, answer: &Answer) {
        self.translation.learn(recorded, answer);
    }

    /// Sends a request, lets `during` happen while a watch is open, and takes the answer in to its end.
    pub fn ask(&mut self, asked: &Asked, during: &[Step]) -> Answer {
        let mut request = Request::builder().method(asked.method.as_str()).uri(&asked.url);
        for (name, value) in &asked.headers {
            request = request.header(name, value);
        }
        if asked.who != "anonymous" {
            request = request.header("authorization", format!("Bearer {}-token", asked.who));
        }
        let request =
            request.header("host", "192.0.2.10:16443").body(Body::from(asked.body.clone())).unwrap();
        let response = self.plane.router().oneshot(request).now_or_never().expect("a handler must not wait");
        let (head, body) = response.unwrap().into_parts();
        self.reconcile();
        self.run(during);
        if asked.watch && head.status == 200 {
            self.pass(timeout(&asked.url));
        }
        let bytes = body.collect().now_or_never();
        let bytes = bytes.unwrap_or_else(|| panic!("{} did not end", asked.url)).unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: head.status.as_u16(), headers: head.headers, text }
    }
}

/// The time after which a watch is over.
fn timeout(url: &str) -> Duration {
    let given = url.split(['?', '&']).find_map(|pair| pair.strip_prefix("timeoutSeconds="));
    Duration::from_secs(given.and_then(|seconds| seconds.parse().ok()).unwrap_or(3600))
}
