//! Clients that take their time, leave half-way, or send everything at once.

use std::io::{Read, Write};
use std::net::Shutdown;

use serde_json::{Value, json};

use crate::client::{IMPATIENT, MAPS, Server, code, message, rest, status};

#[test]
fn a_head_or_a_body_that_does_not_come_ends_the_connection_and_no_other() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = Server::with("memory", IMPATIENT, |start| {
        start.arg("--audit-log-path").arg(log.path());
    });
    let head = |n: usize| &b"GET /livez HTTP/1.1\r\nhost: x\r\nx-slow: yes yes"[..n];
    let mut heads: Vec<_> = [1, 10, 40]
        .map(|n| {
            let mut stream = server.connect();
            stream.write_all(head(n)).unwrap();
            stream
        })
        .into();
    let mut idle = server.connect();
    let mut body = server.connect();
    let whole = message("POST", MAPS, "", br#"{"metadata":{"name":"slow"}}"#);
    body.write_all(&whole[..whole.len() - 5]).unwrap();
    server.is_well();
    // Each ends by itself.
    for stream in &mut heads {
        assert!(!rest(stream).contains(" 200 "));
    }
    assert_eq!(rest(&mut idle), "");
    let answer = rest(&mut body);
    assert_eq!((code(&answer), status(&answer)["status"].clone()), (408, json!("Failure")));
    let chunks =
        format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nno number\r\n");
    let broken = server.raw(chunks.as_bytes());
    assert_eq!(code(&broken), 400);
    // The one who was sent them finds both in the audit log; of a head that did not come nobody knows what was asked.
    // (An answer waits for its line, but not for ever.)
    let read = || std::fs::read_to_string(log.path()).unwrap();
    while read().matches(r#""verb":"create""#).count() < 2 {
        std::thread::yield_now();
    }
    let lines = read();
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let posts: Vec<_> = events.iter().filter(|event| event["verb"] == "create").collect();
    assert_eq!(posts.len(), 2, "{lines}");
    for (event, (answer, code)) in posts.iter().zip([(&answer, 408), (&broken, 400)]) {
        let id = answer.lines().find_map(|line| line.strip_prefix("audit-id: "));
        assert_eq!(event["auditID"].as_str(), id, "{answer}");
        assert_eq!(event["responseStatus"]["code"], code);
        assert_eq!(
            (&event["requestURI"], &event["objectRef"]["resource"]),
            (&json!(MAPS), &json!("configmaps"))
        );
    }
    assert!(events.iter().all(|event| event["requestURI"] != "/livez"), "{lines}");
    assert!(server.metric("apiserver_request_total", "code=\"408\"") > 0.5);
    assert!(server.metric("rigor_connections_cut_total", "head_timeout") > 2.5);
    assert!(server.metric("rigor_connections_cut_total", "body_timeout") > 0.5);
    server.until_at_most("rigor_connections", "", 1.0);
    server.is_well();
}

#[test]
fn a_client_that_does_not_read_its_answer_is_left() {
    let server = Server::with("memory", IMPATIENT, |_| {});
    fill(&server, 12);
    let request = message("GET", MAPS, "", b"");
    let mut stuck: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for stream in &mut stuck {
        stream.write_all(&request).unwrap();
    }
    server.until_at_most("rigor_connections", "", 1.0);
    server.is_well();
    drop(stuck);
}

/// So many ConfigMaps of 900 kB.
fn fill(server: &Server, count: usize) {
    let data = "x".repeat(900_000);
    for n in 0..count {
        let map = json!({"metadata": {"name": format!("m{n}")}, "data": {"k": data}}).to_string();
        assert_eq!(code(&server.request("POST", MAPS, "", map.as_bytes())), 201);
    }
}

#[test]
fn watches_that_do_not_read_cost_no_more_than_what_is_under_way() {
    let server = Server::start();
    let watch = message("GET", &format!("{MAPS}?watch=1"), "", b"");
    let mut stuck: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for stream in &mut stuck {
        stream.write_all(&watch).unwrap();
        assert!(stream.read(&mut [0; 64]).unwrap() > 0);
    }
    fill(&server, 4);
    let before = server.resident();
    // 6 MB of changes for each of 20 watches: 120 MB, were they kept for each.
    let data = "y".repeat(100_000);
    for n in 0..60 {
        let map = json!({"data": {"k": data, "n": n.to_string()}}).to_string();
        let header = "content-type: application/merge-patch+json\r\n";
        assert_eq!(code(&server.request("PATCH", &format!("{MAPS}/m0"), header, map.as_bytes())), 200);
    }
    let grown = server.resident() - before;
    assert!(grown < 60e6, "{grown}");
    // Whoever reads after all gets every line, in order.
    let mut late = stuck.pop().unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen[seen.len().saturating_sub(200_000)..]).contains(r#""n":"59""#) {
        let mut part = vec![0; 1 << 20];
        let read = late.read(&mut part).unwrap();
        assert!(read > 0, "the watch ended after {} bytes", seen.len());
        seen.extend_from_slice(&part[..read]);
    }
    let text = String::from_utf8_lossy(&seen);
    let at: Vec<_> = (0..60).map(|n| text.find(&format!(r#""n":"{n}""#)).unwrap_or(usize::MAX)).collect();
    assert!(at.is_sorted() && at.last() < Some(&usize::MAX), "{at:?}");
    server.is_well();
}

#[test]
fn a_client_that_has_closed_its_sending_half_is_answered() {
    let server = Server::with("redb", IMPATIENT, |_| {});
    for n in 0..10 {
        let map = format!(r#"{{"metadata":{{"name":"half-{n}"}}}}"#);
        let requests = [("POST", MAPS.to_owned(), map.as_bytes()), ("GET", format!("{MAPS}/half-{n}"), b"")];
        for (method, path, body) in requests {
            let mut stream = server.connect();
            stream.write_all(&message(method, &path, "", body)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let answer = rest(&mut stream);
            assert!([200, 201].contains(&code(&answer)), "{method}: {answer}");
        }
    }
    // A watch ends with its client, and what is missing of a request is waited for no longer than of any other.
    let mut watch = server.connect();
    watch.write_all(&message("GET", &format!("{MAPS}?watch=1"), "", b"")).unwrap();
    assert!(watch.read(&mut [0; 64]).unwrap() > 0);
    watch.shutdown(Shutdown::Write).unwrap();
    rest(&mut watch);
    let mut cut = server.connect();
    cut.write_all(&message("POST", MAPS, "", br#"{"metadata":{"name":"cut"}}"#)[..100]).unwrap();
    cut.shutdown(Shutdown::Write).unwrap();
    rest(&mut cut);
    assert_eq!(code(&server.request("GET", &format!("{MAPS}/cut"), "", b"")), 404);
    server.until_at_most("apiserver_longrunning_requests", "", 0.0);
    server.is_well();
}

#[test]
fn a_change_is_finished_when_its_client_has_left() {
    let server = Server::on_disk();
    for n in 0..10 {
        let map = format!(r#"{{"metadata":{{"name":"left-{n}"}}}}"#);
        let mut stream = server.connect();
        stream.write_all(&message("POST", MAPS, "", map.as_bytes())).unwrap();
        drop(stream);
    }
    server.until_at_most("apiserver_current_inflight_requests", "mutating", 0.0);
    assert!(server.metric("apiserver_request_aborts_total", "") < 0.5);
    server.is_well();
}

#[test]
fn requests_sent_all_at_once_are_answered_in_order() {
    let server = Server::start();
    let mut all = Vec::new();
    for n in 0..50 {
        let map = format!(r#"{{"metadata":{{"name":"p{n}"}}}}"#);
        all.extend(message("POST", MAPS, "", map.as_bytes()));
        all.extend(message("GET", &format!("{MAPS}/p{n}"), "", b""));
    }
    all.extend(message("GET", "/livez", "connection: close\r\n", b""));
    let answers = server.raw(&all);
    assert_eq!(answers.matches("HTTP/1.1 201").count(), 50);
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 51);
    let names: Vec<_> = (0..50).map(|n| answers.find(&format!(r#""name":"p{n}""#)).unwrap()).collect();
    assert!(names.is_sorted());
    server.is_well();
}
