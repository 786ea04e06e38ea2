//! What the process writes down: its log in both forms, and the audit log in a file. Secrets stand in neither.

mod support;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Process, command};

const HIDDEN: &str = "aHVzaC1odXNo";
const TOKEN: &str = "t0ken-0f-the-administrator";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn start(dir: &Path, arguments: &[&str]) -> Process {
    let tokens = dir.join("tokens.csv");
    fs::write(&tokens, format!("{TOKEN},tester,,system:masters\n")).unwrap();
    let mut start = command(dir);
    start.args(["--store", "memory", "--token-auth-file"]).arg(&tokens).args(arguments);
    start.env("CONTROL_PLANE_LOG", "trace").stderr(File::create(dir.join("log")).unwrap());
    Process::start(start)
}

fn exchange(process: &Process, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(process.url.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn ask(process: &Process, method: &str, path: &str, credentials: &str, body: &str) -> String {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: {credentials}\r\nconnection: close\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    exchange(process, format!("{head}{body}").as_bytes())
}

fn signal(process: &Process, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // What is being written has no end yet.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The line of an answer's audit-id. The answer waited for it, but no longer than a tenth of a second; where it never comes, the
/// test runner ends this.
fn event_of(path: &Path, answer: &str) -> Value {
    let id = answer.lines().find_map(|line| line.strip_prefix("audit-id: ")).unwrap();
    loop {
        if let Some(event) = events(path).into_iter().find(|event| event["auditID"] == id) {
            return event;
        }
        std::thread::yield_now();
    }
}

#[test]
fn neither_log_holds_a_token_or_what_is_in_a_secret_at_any_level() {
    for format in ["text", "json"] {
        let dir = tempfile::tempdir().unwrap();
        let audit = dir.path().join("audit.log");
        let mut process = start(
            dir.path(),
            &[
                "--log-format",
                format,
                "--audit-level",
                "request-response",
                "--audit-log-path",
                audit.to_str().unwrap(),
            ],
        );
        let bearer = format!("Bearer {TOKEN}");
        // base64 of `x:TOKEN`, as kubectl sends the password of a URL.
        let basic = "Basic eDp0MGtlbi0wZi10aGUtYWRtaW5pc3RyYXRvcg==";
        let secret = |name: &str| json!({"metadata": {"name": name}, "data": {"k": HIDDEN}}).to_string();
        assert!(ask(&process, "POST", SECRETS, &bearer, &secret("s")).starts_with("HTTP/1.1 201"));
        assert!(ask(&process, "GET", &format!("{SECRETS}/s"), basic, "").contains(HIDDEN));
        assert!(ask(&process, "GET", SECRETS, &bearer, "").contains(HIDDEN));
        ask(&process, "PUT", &format!("{SECRETS}/s"), &bearer, &secret("s"));
        ask(&process, "PATCH", &format!("{SECRETS}/s"), &bearer, &json!({"data": {"l": HIDDEN}}).to_string());
        ask(&process, "POST", SECRETS, &bearer, &format!("{{\"data\":{{\"k\":\"!{HIDDEN}\"}}}}"));
        ask(&process, "POST", SECRETS, &bearer, &format!("{HIDDEN}{{"));
        ask(&process, "POST", SECRETS, &format!("Bearer wrong-{TOKEN}"), &secret("t"));
        let proxied =
            format!("GET http://x:{TOKEN}@y/livez HTTP/1.1\r\nhost: y\r\nconnection: close\r\n\r\n");
        exchange(&process, proxied.as_bytes());
        ask(&process, "DELETE", &format!("{SECRETS}/s"), &bearer, "");
        signal(&process, "TERM");
        assert_eq!(process.child.wait().unwrap().code(), Some(0));
        let log = fs::read_to_string(dir.path().join("log")).unwrap();
        let audited = fs::read_to_string(&audit).unwrap();
        let encoded = basic.trim_start_matches("Basic ");
        for hidden in [HIDDEN, "hush-hush", TOKEN, encoded] {
            assert!(!log.contains(hidden), "{format}: {hidden} in {log}");
            assert!(!audited.contains(hidden), "{format}: {hidden} in {audited}");
        }
        assert!(events(&audit).len() >= 10, "{audited}");
        // Every request has its line.
        assert!(log.matches(SECRETS).count() >= 8, "{log}");
        let lines = log.lines().map(serde_json::from_str::<Value>);
        let json = lines.filter(|line| line.as_ref().is_ok_and(Value::is_object)).count();
        assert_eq!(json == log.lines().count(), format == "json", "{log}");
    }
}

#[test]
fn the_audit_log_has_the_line_of_every_answer_and_moves_on_hangup() {
    let dir = tempfile::tempdir().unwrap();
    let (audit, moved) = (dir.path().join("audit.log"), dir.path().join("audit.1"));
    let process = start(dir.path(), &["--audit-log-path", audit.to_str().unwrap()]);
    let bearer = format!("Bearer {TOKEN}");
    for n in 0..20 {
        let answer = ask(&process, "GET", &format!("/api/v1/namespaces/n{n}"), &bearer, "");
        let last = event_of(&audit, &answer);
        assert_eq!(events(&audit).len(), n + 1);
        assert_eq!((&last["level"], &last["sourceIPs"]), (&json!("Metadata"), &json!(["127.0.0.1"])));
        assert_eq!(last["user"]["username"], "tester");
        assert_eq!(last["requestURI"], format!("/api/v1/namespaces/n{n}"));
    }
    fs::rename(&audit, &moved).unwrap();
    signal(&process, "HUP");
    // It is in use as soon as something stands in it.
    while events(&audit).is_empty() {
        ask(&process, "GET", "/version", &bearer, "");
    }
    let before = events(&moved).len();
    let answer = ask(&process, "GET", "/version", &bearer, "");
    event_of(&audit, &answer);
    assert_eq!(events(&moved).len(), before);
}

#[test]
fn the_audit_log_can_be_standard_output_and_a_full_disk_stops_no_request() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = start(dir.path(), &["--audit-log-path", "-", "--audit-level", "request"]);
    // From the first line on there is nothing else: where it serves is said on standard error.
    for path in ["/version", "/livez"] {
        ask(&process, "GET", path, "", "");
        let event: Value = serde_json::from_str(&process.line()).unwrap();
        assert_eq!((&event["kind"], &event["requestURI"]), (&json!("Event"), &json!(path)));
    }
    drop(process);
    let process = start(dir.path(), &["--audit-log-path", "/dev/full"]);
    let bearer = format!("Bearer {TOKEN}");
    for _ in 0..3 {
        assert!(ask(&process, "GET", "/version", &bearer, "").starts_with("HTTP/1.1 200"));
    }
    // Whoever asks is audited as well. Where the three are never counted, the test runner ends this.
    let lost = || {
        let metrics = ask(&process, "GET", "/metrics", &bearer, "");
        let name = "apiserver_audit_error_total{plugin=\"log\"} ";
        let lost = metrics.lines().find_map(|line| line.strip_prefix(name)?.parse::<usize>().ok());
        lost.unwrap_or_else(|| panic!("{metrics}"))
    };
    while lost() < 3 {
        std::thread::yield_now();
    }
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(log.matches("the audit log cannot be written").count(), 1, "{log}");
}

#[test]
fn logs_that_cannot_be_are_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, word) in [
        (&["--audit-log-path", "/proc/nonexistent/x"][..], "--audit-log-path"),
        (&["--audit-level", "request"], "--audit-log-path"),
        (&["--audit-level", "loud", "--audit-log-path", "-"], "request-response"),
        (&["--log-format", "xml"], "text or json"),
    ] {
        let mut bad = command(dir.path());
        let output = bad.args(["--store", "memory"]).args(arguments).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
    let mut bad = command(dir.path());
    let output = bad.env("CONTROL_PLANE_LOG", "typo").stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("control-plane: CONTROL_PLANE_LOG is `typo`: give a level"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn an_audit_log_that_cannot_be_is_told_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut bad = command(dir.path());
    bad.arg("--audit-log-path").arg(dir.path().join("missing/audit.log"));
    let output = bad.stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("missing/audit.log cannot be opened") && said.contains("--audit-log-path"),
        "{said}"
    );
    for made in ["store.redb", "admin.token"] {
        assert!(!dir.path().join(made).exists(), "{made}");
    }
}
