//! A client as plain as can be: one connection a request, and watches as lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// So long one waits for anything at all. A hang becomes a failure, a slow machine does not.
const PATIENCE: Duration = Duration::from_secs(240);

fn send(url: &str, method: &str, path: &str, body: &Value) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

/// A request's code and answer; an error when the connection fails before the answer is complete.
pub fn try_call(url: &str, method: &str, path: &str, body: &Value) -> std::io::Result<(u16, Value)> {
    let mut answer = String::new();
    send(url, method, path, body)?.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let code = code.ok_or(std::io::ErrorKind::InvalidData)?;
    Ok((code, serde_json::from_str(body).map_err(|_| std::io::ErrorKind::UnexpectedEof)?))
}

/// As [`try_call`], where there must be an answer of this code.
#[track_caller]
pub fn call(url: &str, method: &str, path: &str, body: &Value, code: u16) -> Value {
    let (found, answer) = try_call(url, method, path, body).unwrap();
    assert_eq!(found, code, "{method} {path}: {answer}");
    answer
}

#[track_caller]
pub fn get(url: &str, path: &str) -> Value {
    call(url, "GET", path, &Value::Null, 200)
}

/// The events of a watch until it ends or breaks.
pub fn watch(url: &str, path: &str) -> impl Iterator<Item = Value> + use<> {
    let stream = send(url, "GET", path, &Value::Null).unwrap();
    // Between the lines stand the sizes of chunks.
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok()).filter(Value::is_object)
}
