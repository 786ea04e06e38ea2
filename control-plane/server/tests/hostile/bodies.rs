//! Bodies that are too large, too deep, or not what they say.

use std::io::Write;

use serde_json::json;

use crate::client::{MAPS, Server, code, message, rest, status};

const JSON: &str = "content-type: application/json\r\n";

#[test]
fn a_body_over_three_mebibytes_is_413_whether_announced_or_not() {
    let server = Server::start();
    let too_large = "Request entity too large: limit is 3145728";
    for size in [3 * 1024 * 1024 + 1, 20 * 1024 * 1024] {
        let (code, status) = server.refused("POST", MAPS, JSON, &vec![b' '; size]);
        assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")), "{size}");
        assert_eq!(status["message"], too_large);
    }
    // In chunks, whose number nobody knows beforehand.
    let mut stream = server.connect();
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{JSON}transfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [format!("{:x}\r\n", 1 << 20).as_bytes(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    for _ in 0..8 {
        stream.write_all(&chunk).unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(status(&rest(&mut stream))["code"], 413);
    // Whoever asks first is told not to send it.
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-length: 999999999\r\n\r\n"
    );
    assert_eq!(code(&server.raw(head.as_bytes())), 413);
    server.is_well();
}

#[test]
fn many_large_bodies_at_once_wait_for_room() {
    let server = Server::start();
    let before = server.resident();
    // Three MiB each, of which all but the last byte are sent.
    let body = vec![b' '; 3 * 1024 * 1024];
    let whole = message("POST", MAPS, "connection: close\r\n", &body);
    let (most, last) = whole.split_at(whole.len() - 1);
    let mut streams: Vec<_> = (0..40).map(|_| server.connect()).collect();
    let writers: Vec<_> = streams
        .iter()
        .map(|stream| {
            let (mut stream, most) = (stream.try_clone().unwrap(), most.to_vec());
            std::thread::spawn(move || stream.write_all(&most).unwrap())
        })
        .collect();
    // Those that have room are read to their last byte; the others stand in the kernel's buffers.
    let first = writers.iter().filter(|writer| writer.is_finished()).count();
    let grown = server.resident() - before;
    assert!(grown < 200e6, "{grown} after {first}");
    // Each finished body makes room for the next.
    let mut writers = writers.into_iter();
    for stream in &mut streams {
        let writer = writers.next().unwrap();
        while !writer.is_finished() {
            std::thread::yield_now();
        }
        writer.join().unwrap();
        stream.write_all(last).unwrap();
        assert_eq!(code(&rest(stream)), 400);
    }
    server.is_well();
}

#[test]
fn deep_wide_and_repeated_json_is_refused_or_taken_but_never_a_crash() {
    let server = Server::start();
    let refused = |body: String| {
        let (code, status) = server.refused("POST", MAPS, JSON, body.as_bytes());
        assert_eq!((code, &status["reason"]), (400, &json!("BadRequest")), "{status}");
    };
    refused("[".repeat(1_000_000));
    refused(r#"{"a":"#.repeat(300_000));
    refused(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    refused(format!(r#"{{"metadata":{}1{}}}"#, r#"{"labels":"#.repeat(5_000), "}".repeat(5_000)));
    refused("1e999999999".into());
    refused(format!(r#"{{"metadata":{{"name":"x"}},"data":"{}"}}"#, "x".repeat(1_000_000)));
    // Many fields, of which nothing is known, and one field many times.
    let fields: Vec<String> = (0..60_000).map(|n| format!(r#""f{n}":{n}"#)).collect();
    let wide = format!(r#"{{"metadata":{{"name":"wide"}},{}}}"#, fields.join(","));
    assert_eq!(code(&server.request("POST", MAPS, JSON, wide.as_bytes())), 201);
    let same = vec![r#""k":"v""#; 100_000].join(",");
    let same = format!(r#"{{"metadata":{{"name":"same"}},"data":{{{same}}}}}"#);
    assert_eq!(code(&server.request("POST", MAPS, JSON, same.as_bytes())), 201);
    let path = format!("{MAPS}?fieldValidation=Strict");
    let (code, status) = server.refused("POST", &path, JSON, same.as_bytes());
    assert_eq!(code, 400);
    assert!(status["message"].as_str().unwrap().contains(r#"duplicate field "data.k""#), "{code}");
    server.is_well();
}

#[test]
fn patches_that_nest_or_copy_without_end_are_refused() {
    let server = Server::start();
    let made = br#"{"metadata":{"name":"p"},"data":{"a":"b"}}"#;
    assert_eq!(code(&server.request("POST", MAPS, JSON, made)), 201);
    let path = format!("{MAPS}/p");
    for kind in ["merge-patch", "strategic-merge-patch", "json-patch"] {
        let header = format!("content-type: application/{kind}+json\r\n");
        for body in ["[".repeat(500_000), r#"{"a":"#.repeat(300_000), r#"[{"op":"add","path":"/"#.repeat(9)] {
            assert_eq!(server.refused("PATCH", &path, &header, body.as_bytes()).0, 400, "{kind}");
        }
    }
    // Each step doubles the object: sixty of them would be 2^60 copies.
    let step = r#"{"op":"copy","from":"/data","path":"/data/a"}"#;
    let bomb = format!("[{}]", vec![step; 60].join(","));
    let header = "content-type: application/json-patch+json\r\n";
    let (code, _) = server.refused("PATCH", &path, header, bomb.as_bytes());
    assert!((400..500).contains(&code), "{code}");
    server.is_well();
}

#[test]
fn text_that_is_no_utf8_and_media_types_that_are_not_read_are_refused() {
    let server = Server::start();
    let bad = b"{\"metadata\":{\"name\":\"a\xff\xfe\"}}";
    assert!((400..=422).contains(&server.refused("POST", MAPS, JSON, bad).0));
    assert_eq!(server.refused("POST", MAPS, "content-type: application/yaml\r\n", b"a: \xff").0, 400);
    for media in
        ["text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data", "x"]
    {
        let (code, status) = server.refused("POST", MAPS, &format!("content-type: {media}\r\n"), b"{}");
        assert_eq!((code, &status["reason"]), (415, &json!("UnsupportedMediaType")), "{media}");
    }
    let protobuf = "content-type: application/vnd.kubernetes.protobuf\r\n";
    for body in
        [&b"k8s\0"[..], b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"{}", b"k8s\0\x0a\xff\xff\xff\x7f"]
    {
        let (code, _) = server.refused("POST", MAPS, protobuf, body);
        assert!((400..=422).contains(&code), "{code}");
    }
    // Compressed bodies are not unpacked, as in Kubernetes.
    let (code, _) =
        server.refused("POST", MAPS, &format!("{JSON}content-encoding: gzip\r\n"), b"\x1f\x8b\x08\0");
    assert_eq!(code, 400);
    server.is_well();
}

#[test]
fn yaml_that_grows_when_it_is_read_is_refused() {
    let server = Server::start();
    let before = server.resident();
    let yaml = "content-type: application/yaml\r\n";
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for n in 1..12 {
        let all = vec![format!("*a{}", n - 1); 10].join(",");
        bomb += &format!("a{n}: &a{n} [{all}]\n");
    }
    assert_eq!(server.refused("POST", MAPS, yaml, bomb.as_bytes()).0, 400);
    for body in [
        "[".repeat(200_000),
        "- ".repeat(200_000),
        "? ".repeat(50_000),
        "a: &a [*a]\n".into(),
        "{a: ".repeat(100_000),
    ] {
        assert_eq!(server.refused("POST", MAPS, yaml, body.as_bytes()).0, 400, "{}", &body[..8]);
    }
    let grown = server.resident() - before;
    assert!(grown < 100e6, "{grown}");
    server.is_well();
}
