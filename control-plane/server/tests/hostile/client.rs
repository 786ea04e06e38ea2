//! HTTP by hand, so that it can be done wrong.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::Value;

use crate::support::{Process, command};

/// A control plane without authentication.
pub struct Server {
    pub process: Process,
    _dir: tempfile::TempDir,
}

/// Longer than any test lasts.
const PATIENT: &str = "280s";
/// For tests of clients that are too slow: they wait it out, and their requests that must be served are never so slow.
pub const IMPATIENT: &str = "5s";

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

impl Server {
    /// Objects in memory. No client of a test is too slow for it, however busy the machine.
    pub fn start() -> Self {
        Self::with("memory", PATIENT, |_| {})
    }

    /// As [`Self::start`], with objects on disk, where a change waits for something.
    pub fn on_disk() -> Self {
        Self::with("redb", PATIENT, |_| {})
    }

    pub fn with(store: &str, patience: &str, change: impl FnOnce(&mut Command)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut start = command(dir.path());
        start.args(["--no-auth", "--store", store, "--client-timeout", patience]);
        change(&mut start);
        Self { process: Process::start(start), _dir: dir }
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(self.process.url.strip_prefix("http://").unwrap()).unwrap()
    }

    /// Sends bytes and reads until the server closes.
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // A server that refuses early may close while it is still being written to.
        drop(stream.write_all(bytes));
        rest(&mut stream)
    }

    pub fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> String {
        self.raw(&message(method, path, &format!("connection: close\r\n{headers}"), body))
    }

    /// The code of an answer and its Status.
    pub fn refused(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, Value) {
        let answer = self.request(method, path, headers, body);
        (code(&answer), status(&answer))
    }

    /// A metric's value, summed over its labels that contain `label`.
    pub fn metric(&self, name: &str, label: &str) -> f64 {
        let text = self.request("GET", "/metrics", "", b"");
        assert_eq!(code(&text), 200, "{text}");
        let lines = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])) && line.contains(label)
        });
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// Asks until the metric is at most so much. It ends with the test's own time limit.
    pub fn until_at_most(&self, name: &str, label: &str, most: f64) {
        while self.metric(name, label) > most {
            std::thread::yield_now();
        }
    }

    pub fn is_well(&self) {
        let answer = self.request("GET", "/readyz", "", b"");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nok"), "{answer}");
        assert!(self.metric("rigor_request_panics_total", "") < 0.5);
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> f64 {
        self.metric("process_resident_memory_bytes", "")
    }
}

pub fn message(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset after the answer takes nothing from it.
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

#[track_caller]
pub fn code(answer: &str) -> u16 {
    let code = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    code.unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

#[track_caller]
pub fn status(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let status: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    assert_eq!((&status["kind"], &status["apiVersion"]), (&"Status".into(), &"v1".into()), "{answer}");
    assert_eq!(status["code"], code(answer), "{answer}");
    status
}
