//! Heads that are too long, too many, or no HTTP; methods and paths that nobody serves.

use std::io::Write;

use serde_json::json;

use crate::client::{MAPS, Server, code, rest, status};

#[test]
fn heads_that_are_too_large_are_431_and_nonsense_is_400() {
    let server = Server::start();
    let many: String = (0..500).map(|n| format!("x-{n}: y\r\n")).collect();
    assert_eq!(code(&server.request("GET", "/livez", &many, b"")), 431);
    let long = format!("x: {}\r\n", "y".repeat(200_000));
    assert_eq!(code(&server.request("GET", "/livez", &long, b"")), 431);
    let path = format!("/livez?{}", "a=b&".repeat(50_000));
    assert!([414, 431].contains(&code(&server.request("GET", &path, "", b""))));
    for nonsense in [
        &b"garbage\r\n\r\n"[..],
        b"GET /livez HTTP/9.9\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nhost x\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /livez HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /livez HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST /livez HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let answer = server.raw(nonsense);
        assert!(answer.is_empty() || code(&answer) == 400, "{nonsense:?}: {answer}");
    }
    // A head may be long within reason.
    let token = format!("authorization: Bearer {}\r\n", "t".repeat(16_000));
    assert_eq!(code(&server.request("GET", "/livez", &token, b"")), 200);
    server.is_well();
}

#[test]
fn a_head_may_have_64_kib_and_not_a_byte_more() {
    let server = Server::start();
    let (begin, end) = ("GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: ", "\r\n\r\n");
    let whole = |length: usize| format!("{begin}{}{end}", "y".repeat(length - begin.len() - end.len()));
    let pieces = |length: usize, size: usize| {
        let mut stream = server.connect();
        stream.set_nodelay(true).unwrap();
        // What is refused early may be closed while it is still being written to.
        drop(whole(length).as_bytes().chunks(size).try_for_each(|piece| stream.write_all(piece)));
        rest(&mut stream)
    };
    let mut refused = 0.0;
    for (length, expected) in [
        (1_000, 200),
        (64_000, 200),
        (65_535, 200),
        (65_536, 200),
        (65_537, 431),
        (66_000, 431),
        (70_000, 431),
        (75_000, 431),
        (80_000, 431),
        (100_000, 431),
        (131_072, 431),
        (200_000, 431),
    ] {
        for size in [length, 30_000, 1_460] {
            assert_eq!(code(&pieces(length, size)), expected, "{length} bytes, {size} at a time");
            refused += f64::from(u8::from(expected == 431));
        }
    }
    // A client may see the end of its connection before that is counted. Where it never is, the test runner ends this.
    let cut = || server.metric("rigor_connections_cut_total", "head_too_large");
    while cut() < refused - 0.5 {
        std::thread::yield_now();
    }
    assert!((cut() - refused).abs() < 0.5, "{}, not {refused}", cut());
    server.is_well();
}

#[test]
fn methods_that_nobody_serves_are_405() {
    let server = Server::start();
    for method in ["TRACE", "BREW", "PROPFIND", "x"] {
        for path in [MAPS, "/api/v1/namespaces/default", "/apis"] {
            let (code, status) = server.refused(method, path, "", b"");
            assert_eq!((code, &status["reason"]), (405, &json!("MethodNotAllowed")), "{method} {path}");
        }
    }
    let answer = server.raw(b"CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!((400..500).contains(&code(&answer)), "{answer}");
    server.is_well();
}

#[test]
fn paths_and_queries_without_meaning_are_refused() {
    let server = Server::start();
    let long = "x".repeat(8_000);
    for path in [
        "/api/v1/%ff".to_owned(),
        "/api/v1/%".into(),
        "/api//v1/pods".into(),
        "/api/v1/namespaces/../../etc/passwd".into(),
        "/api/v1/namespaces/%2e%2e/pods/%2e%2e".into(),
        "/api/v1/namespaces/default/pods/%00".into(),
        format!("/api/v1/namespaces/{long}/pods/{long}"),
        format!("/{}", "a/".repeat(10_000)),
    ] {
        let answer = server.request("GET", &path, "", b"");
        assert_eq!(code(&answer), 404, "{path:.60}: {answer:.300}");
    }
    let many = "labelSelector=a%3Db&".repeat(1_000);
    let deep = format!("labelSelector=a%20in%20({})", "b,".repeat(10_000));
    for query in [
        many.as_str(),
        &deep,
        "labelSelector=%28%28%28",
        "fieldSelector=%00",
        "limit=99999999999999999999",
        "continue=%00",
        "resourceVersion=18446744073709551616",
        "timeoutSeconds=-9223372036854775808&resourceVersion=1&resourceVersion=2",
    ] {
        let answer = server.request("GET", &format!("{MAPS}?{query}"), "", b"");
        let refused = code(&answer) >= 400;
        assert!(!refused || status(&answer)["status"] == "Failure", "{query:.60}: {answer}");
    }
    // An address in front of the path, as for a proxy.
    assert_eq!(code(&server.request("GET", "http://user:word@example.org/livez", "", b"")), 200);
    server.is_well();
}
