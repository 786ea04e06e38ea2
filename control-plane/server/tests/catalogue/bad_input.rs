//! Bad input from outside: too big, too deep, not text, of the wrong type, too slow, too many. The answers are
//! Kubernetes', the memory stays bounded, and the server goes on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::plane::{Plane, pod};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";

fn start(flags: &[&str]) -> (tempfile::TempDir, Plane) {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::plain(dir.path(), &[&["--store", "memory", "--no-auth"], flags].concat());
    (dir, plane)
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}})
}

/// It serves, and it has not panicked.
#[track_caller]
fn lives(plane: &Plane) {
    assert_eq!(plane.admin.get("/livez").text(), "ok");
    assert!(!plane.log().contains("panicked"), "{}", plane.log());
}

/// The resident memory of the process, in MiB.
fn resident(plane: &Plane) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", plane.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn connect(plane: &Plane) -> TcpStream {
    let stream = TcpStream::connect(plane.url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// What comes until the server closes.
fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

/// Many of them leave no memory behind.
#[test]
fn rejected_bodies_leave_no_memory_behind() {
    let (_dir, plane) = start(&[]);
    let big = map("big", &"x".repeat(4 * 1024 * 1024)).to_string();
    let deep = format!("{}1{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let once = |n: usize| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (admin, big, deep) = (plane.admin.clone(), &big, &deep);
                scope.spawn(move || {
                    for _ in 0..n {
                        assert_eq!(admin.send("POST", MAPS, JSON, big.clone()).code, 413);
                        assert_eq!(admin.send("POST", MAPS, JSON, deep.clone()).code, 400);
                    }
                });
            }
        });
    };
    once(3);
    let before = resident(&plane);
    once(25);
    let after = resident(&plane);
    println!("resident memory after 12 and 112 rejected pairs of bodies: {before} MiB, {after} MiB");
    assert!(after < before + 64, "{before} MiB, then {after} MiB");
    lives(&plane);
}

/// Deep JSON and YAML, in bodies and patches.
#[test]
fn deep_documents_are_refused() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    admin.post(MAPS, &map("m", "v")).is(201);
    let path = format!("{MAPS}/m");
    for depth in [200, 10_000, 500_000] {
        let array = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let object = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        for deep in [array, object] {
            let body = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"deep"}},"data":{deep}}}"#
            );
            for (method, path, kind, body) in [
                ("POST", MAPS, JSON, body.clone()),
                ("PUT", &path, JSON, body.clone()),
                ("POST", MAPS, "application/yaml", body.clone()),
                ("PATCH", &path, "application/merge-patch+json", format!(r#"{{"data":{deep}}}"#)),
                ("PATCH", &path, "application/strategic-merge-patch+json", format!(r#"{{"data":{deep}}}"#)),
                (
                    "PATCH",
                    &path,
                    "application/json-patch+json",
                    format!(r#"[{{"op":"add","path":"/data/x","value":{deep}}}]"#),
                ),
                ("PATCH", &path, "application/json-patch+json", deep.clone()),
            ] {
                let answer = admin.send(method, path, kind, body);
                assert!(
                    [400, 422].contains(&answer.code),
                    "{method} {kind} {depth}: {} {}",
                    answer.code,
                    answer.text()
                );
                assert_eq!(answer.is(answer.code)["kind"], "Status");
            }
        }
    }
    assert_eq!(admin.get(&path).is(200)["data"], json!({"k": "v"}));
    lives(&plane);
}

/// YAML that grows by its aliases.
#[test]
fn yaml_bombs_are_refused() {
    let (_dir, plane) = start(&[]);
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let aliases = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb.push_str(&format!("a{n}: &a{n} [{aliases}]\n"));
    }
    bomb.push_str("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n");
    let before = resident(&plane);
    let answer = plane.admin.send("POST", MAPS, "application/yaml", bomb);
    assert_eq!(answer.is(400)["kind"], "Status");
    assert!(resident(&plane) < before + 128);
    lives(&plane);
}

/// Not UTF-8, in every part of a request that can carry it.
#[test]
fn what_is_not_utf8_is_a_bad_request() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    let body = b"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"bad\"},\"data\":{\"k\":\"\xff\xfe\"}}".to_vec();
    // Kubernetes' JSON reader puts the replacement character where a string is no UTF-8; refusing is as good.
    let json = admin.send("POST", MAPS, JSON, body.clone());
    assert!([201, 400].contains(&json.code), "{}: {}", json.code, json.text());
    if json.code == 201 {
        assert_eq!(admin.get(&format!("{MAPS}/bad")).is(200)["data"]["k"], "\u{fffd}\u{fffd}");
    }
    admin.send("POST", MAPS, "application/yaml", body.clone()).refused(400, "BadRequest", &[]);
    admin.send("POST", MAPS, "application/vnd.kubernetes.protobuf", body).refused(400, "BadRequest", &[]);
    for path in [
        format!("{MAPS}/%ff%fe"),
        format!("{MAPS}/%00"),
        format!("{MAPS}?labelSelector=%ff"),
        format!("{MAPS}?fieldSelector=metadata.name%3D%ff"),
        "/api/v1/namespaces/%c3%28/configmaps".to_owned(),
        format!("{MAPS}?limit=%ff"),
        format!("{MAPS}?continue=%ff"),
    ] {
        let answer = admin.get(&path);
        assert!([200, 400, 404].contains(&answer.code), "{path}: {} {}", answer.code, answer.text());
    }
    lives(&plane);
}

/// Wrong types of content, and bodies that are not what their type says.
#[test]
fn wrong_content_types_are_unsupported() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    let body = map("m", "v").to_string();
    for kind in [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/merge-patch+json",
        "nonsense",
        "application/json5",
    ] {
        admin.send("POST", MAPS, kind, body.clone()).refused(415, "UnsupportedMediaType", &[]);
    }
    admin.post(MAPS, &map("m", "v")).is(201);
    let path = format!("{MAPS}/m");
    for kind in [JSON, "application/yaml", "text/plain", "application/merge-patch+yaml"] {
        admin.send("PATCH", &path, kind, "{}").refused(415, "UnsupportedMediaType", &[]);
    }
    for body in ["", "{", "null", "[]", "1", "\"x\"", "{} {}", "\u{0}", "<xml/>"] {
        let answer = admin.send("POST", MAPS, JSON, body);
        assert!([400, 422].contains(&answer.code), "{body:?}: {} {}", answer.code, answer.text());
        assert_eq!(answer.is(answer.code)["kind"], "Status", "{body:?}");
    }
    for patch in ["", "{", "[]", "1"] {
        for kind in ["application/merge-patch+json", "application/strategic-merge-patch+json"] {
            let answer = admin.send("PATCH", &path, kind, patch);
            assert!([400, 422].contains(&answer.code), "{kind} {patch:?}: {} {}", answer.code, answer.text());
        }
    }
    lives(&plane);
}

/// Odd queries and paths.
#[test]
fn odd_queries_and_paths_are_answered() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    for query in [
        "limit=x",
        "labelSelector=a%3D%3D%3Db",
        "labelSelector=%28",
        "fieldSelector=nonsense%3D1",
        "continue=x",
        "watch=true&timeoutSeconds=x",
        "resourceVersionMatch=Exact",
        "sendInitialEvents=true",
        "labelSelector=a+in+%28",
        "fieldSelector=a%3D%5C",
    ] {
        let answer = admin.get(&format!("{MAPS}?{query}"));
        assert!([400, 422].contains(&answer.code), "{query}: {} {}", answer.code, answer.text());
        assert_eq!(answer.is(answer.code)["kind"], "Status");
    }
    let long = "x".repeat(5000);
    for path in [
        "//api//v1",
        "/api/v1/../../etc/passwd",
        "/api/v1/%2e%2e/nodes",
        "/%",
        &format!("{MAPS}/{long}"),
        "/api/v1/namespaces//pods",
        "/apis/",
        "/api/v1/nodes/x/y/z/w",
        "*",
    ] {
        let answer = admin.get(path.strip_prefix('*').unwrap_or(path));
        assert!((200..500).contains(&answer.code), "{path}: {} {}", answer.code, answer.text());
    }
    for method in ["TRACE", "CONNECTX", "PROPFIND", "OPTIONS", "HEAD"] {
        let answer = admin.exchange(method, MAPS, &[], "");
        assert!((200..500).contains(&answer.code), "{method}: {}", answer.code);
    }
    lives(&plane);
}

/// Heads that are too long, too many, or not HTTP.
#[test]
fn floods_of_headers_are_cut_off() {
    let (_dir, plane) = start(&[]);
    let before = resident(&plane);
    let mut one = connect(&plane);
    drop(one.write_all(
        format!("GET /livez HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(4 << 20)).as_bytes(),
    ));
    let answer = rest(&mut one);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431") || answer.starts_with("HTTP/1.1 400"),
        "{answer}"
    );
    let mut many = connect(&plane);
    drop(many.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n"));
    let block = "x-y: z\r\n".repeat(10_000);
    (0..500).find(|_| many.write_all(block.as_bytes()).is_err());
    let answer = rest(&mut many);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431") || answer.starts_with("HTTP/1.1 400"),
        "{answer}"
    );
    let mut line = connect(&plane);
    drop(line.write_all(format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(4 << 20)).as_bytes()));
    let answer = rest(&mut line);
    assert!(
        ["HTTP/1.1 414", "HTTP/1.1 431", "HTTP/1.1 400"].iter().any(|head| answer.starts_with(head))
            || answer.is_empty(),
        "{answer}"
    );
    for noise in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = connect(&plane);
        stream.write_all(noise).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        rest(&mut stream);
    }
    assert!(resident(&plane) < before + 64);
    lives(&plane);
}

/// A client that has said all it wants to say and still listens gets its answer, every time.
#[test]
fn half_closed_clients_are_answered() {
    let (_dir, plane) = start(&[]);
    for _ in 0..50 {
        let mut stream = connect(&plane);
        stream.write_all(b"GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answer = rest(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    }
    lives(&plane);
}

/// One that leaves in the middle gets no success.
#[test]
fn half_requests_are_closed() {
    let (_dir, plane) = start(&[]);
    // Half a head, half a body, and gone.
    for half in [
        "GET /version HT",
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"api",
    ] {
        let mut stream = connect(&plane);
        stream.write_all(half.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answer = rest(&mut stream);
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    lives(&plane);
}

/// Clients that never finish their head or body do not keep others from being served, and are cut off in the end.
#[test]
fn slow_clients_hold_nobody_up_and_are_cut_off() {
    let (_dir, plane) = start(&[]);
    let before = resident(&plane);
    let mut slow: Vec<TcpStream> = (0..200)
        .map(|n| {
            let mut stream = connect(&plane);
            let half = if n % 2 == 0 { "GET /version HTTP/1.1\r\nhost: x\r\n".to_owned() } else {
                format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\ncontent-length: 1000\r\n\r\n{{")
            };
            stream.write_all(half.as_bytes()).unwrap();
            stream
        })
        .collect();
    for n in 0..20 {
        plane.admin.post(MAPS, &map(&format!("m{n}"), "v")).is(201);
    }
    assert!(resident(&plane) < before + 64);
    // The kernel's read timeout (a minute) is the judge: by then the server has closed the unfinished head.
    let mut byte = [0; 4096];
    let head = slow[0].read(&mut byte);
    assert!(head.is_ok(), "a head that is never finished is kept for more than a minute: {head:?}");
    lives(&plane);
}

/// Thousands of idle watches: bounded memory, and each still gets its event.
#[test]
fn idle_watches_are_cheap_and_served() {
    let (_dir, plane) = start(&[]);
    let count = 1000;
    let before = resident(&plane);
    let mut watches: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = connect(&plane);
            stream
                .write_all(
                    format!("GET {MAPS}?watch=true&resourceVersion=0 HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes(),
                )
                .unwrap();
            stream
        })
        .collect();
    // Each has its head: the watch is on.
    for stream in &mut watches {
        let mut byte = [0; 12];
        stream.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"HTTP/1.1 200");
    }
    let idle = resident(&plane);
    println!("{count} idle watches: {before} MiB, then {idle} MiB resident");
    assert!(idle < before + 100, "{before} MiB, then {idle} MiB");
    plane.admin.post(MAPS, &map("seen-by-all", "v")).is(201);
    for stream in &mut watches {
        let mut text = String::new();
        let mut buffer = [0; 4096];
        while !text.contains("seen-by-all") {
            let read = stream.read(&mut buffer).unwrap();
            assert_ne!(read, 0, "closed: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    }
    drop(watches);
    lives(&plane);
}

/// A watcher that does not read does not make the server hold all that it missed.
#[test]
fn a_watcher_that_does_not_read_costs_bounded_memory() {
    let (_dir, plane) = start(&[]);
    let deaf: Vec<TcpStream> = (0..10)
        .map(|_| {
            let mut stream = connect(&plane);
            stream
                .write_all(format!("GET {MAPS}?watch=true HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes())
                .unwrap();
            let mut byte = [0; 12];
            stream.read_exact(&mut byte).unwrap();
            stream
        })
        .collect();
    let value = "x".repeat(100_000);
    plane.admin.post(MAPS, &map("m", &value)).is(201);
    let change = |n: usize| {
        let patch = json!({"data": {"n": n.to_string()}});
        plane.admin.merge(&format!("{MAPS}/m"), &patch).is(200);
    };
    (0..100).for_each(change);
    let before = resident(&plane);
    (0..1000).for_each(change);
    let after = resident(&plane);
    println!("10 watchers that do not read, 1000 changes of 100 kB: {before} MiB, then {after} MiB resident");
    // The history itself may hold the last changes; ten private copies of a hundred megabytes it may not.
    assert!(after < before + 250, "{before} MiB, then {after} MiB");
    drop(deaf);
    lives(&plane);
}

/// Names, labels and sizes that Kubernetes refuses are refused with their field.
#[test]
fn bad_names_are_invalid_with_their_field() {
    let (_dir, plane) = start(&[]);
    let admin = &plane.admin;
    let long = "x".repeat(254);
    for name in ["UPPER", "a_b", "-a", "a-", "a..b", long.as_str(), "a b", "ä"] {
        let refused = admin.post(MAPS, &map(name, "v")).refused(422, "Invalid", &[]);
        assert_eq!(refused["details"]["causes"][0]["field"], "metadata.name", "{refused}");
    }
    let mut bad = pod("p");
    bad["metadata"]["labels"] = json!({"a b": "c", "ok": "not ok!"});
    let refused = admin.post("/api/v1/namespaces/default/pods", &bad).refused(422, "Invalid", &[]);
    assert_eq!(refused["details"]["causes"][0]["field"], "metadata.labels", "{refused}");
    lives(&plane);
}

/// What many clients at once leave standing.
#[test]
fn a_crowd_of_bad_clients_leaves_the_server_serving() {
    let (_dir, plane) = start(&[]);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let admin: Client = plane.admin.clone();
            scope.spawn(move || {
                for round in 0..50 {
                    let garbage: Vec<u8> = (0..2000u32)
                        .map(|byte| (byte.wrapping_mul(2_654_435_761 + n + round) >> 24) as u8)
                        .collect();
                    for kind in [JSON, "application/yaml", "application/vnd.kubernetes.protobuf"] {
                        let answer = admin.send("POST", MAPS, kind, garbage.clone());
                        assert!(
                            (400..500).contains(&answer.code),
                            "{kind}: {} {}",
                            answer.code,
                            answer.text()
                        );
                    }
                }
            });
        }
    });
    plane.admin.post(MAPS, &map("after", "v")).is(201);
    lives(&plane);
}
