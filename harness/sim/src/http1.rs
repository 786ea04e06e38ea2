//! HTTP/1.1 as bytes on the server's side: what hyper does between a socket and the router in production.
//!
//! Requests are taken whole from the bytes that have arrived; answers are written with the framing that hyper
//! would choose (a length when it is known, chunks when the body is a stream). Never waits, never guesses at
//! damaged bytes: those end the connection with 400.

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, EXPECT, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};

/// Header fields of one request, at most; hyper's own limit is 100.
const MAX_FIELDS: usize = 100;
/// Bytes of a request's head, at most.
const MAX_HEAD: usize = 64 * 1024;
/// What ends a stream of chunks.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Bytes that are no HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damaged(pub(crate) String);

/// A request and what its client said about the connection.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) request: Request<Body>,
    /// The client wants the connection closed after the answer.
    pub(crate) last: bool,
}

/// Takes the first whole request from `input`, or nothing while bytes are missing.
///
/// # Errors
/// The bytes can never become a request.
pub(crate) fn take_request(input: &mut Vec<u8>) -> Result<Option<Taken>, Damaged> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let head_length = match parsed.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() > MAX_HEAD => {
            return Err(Damaged(format!("a head of more than {MAX_HEAD} bytes")));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(Damaged(error.to_string())),
    };
    let mut request = Request::new(Body::empty());
    *request.method_mut() =
        Method::from_bytes(parsed.method.unwrap_or_default().as_bytes()).map_err(damaged)?;
    *request.uri_mut() = parsed.path.unwrap_or_default().parse().map_err(damaged)?;
    *request.version_mut() = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    for field in parsed.headers.iter() {
        let name = http::HeaderName::from_bytes(field.name.as_bytes()).map_err(damaged)?;
        let value = http::HeaderValue::from_bytes(field.value).map_err(damaged)?;
        request.headers_mut().append(name, value);
    }
    let Some((body, body_length)) = take_body(request.headers(), &input[head_length..])? else {
        return Ok(None);
    };
    *request.body_mut() = Body::from(body);
    input.drain(..head_length + body_length);
    let connection = text(request.headers(), &CONNECTION);
    let last = match request.version() {
        Version::HTTP_11 => connection.eq_ignore_ascii_case("close"),
        _ => !connection.eq_ignore_ascii_case("keep-alive"),
    };
    Ok(Some(Taken { request, last }))
}

/// The body and how many bytes of `input` it took, or nothing while bytes are missing.
fn take_body(headers: &HeaderMap, input: &[u8]) -> Result<Option<(Bytes, usize)>, Damaged> {
    if headers.contains_key(EXPECT) {
        return Err(Damaged("Expect is not supported on simulated connections".to_owned()));
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        let coding = text(headers, &TRANSFER_ENCODING);
        if !coding.eq_ignore_ascii_case("chunked") {
            return Err(Damaged(format!("transfer coding {coding:?}")));
        }
        return take_chunks(input);
    }
    let length = match headers.get(CONTENT_LENGTH) {
        None => 0,
        Some(_) => text(headers, &CONTENT_LENGTH).parse::<usize>().map_err(damaged)?,
    };
    Ok(input.get(..length).map(|body| (Bytes::copy_from_slice(body), length)))
}

/// A chunked body without trailers.
fn take_chunks(input: &[u8]) -> Result<Option<(Bytes, usize)>, Damaged> {
    let mut body = Vec::new();
    let mut taken = 0;
    loop {
        let rest = &input[taken..];
        let (digits, length) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete((digits, length))) => {
                (digits, usize::try_from(length).map_err(damaged)?)
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Damaged("a chunk without a size".to_owned())),
        };
        let Some(end) = digits.checked_add(length).and_then(|end| end.checked_add(2)) else {
            return Err(Damaged("a chunk larger than memory".to_owned()));
        };
        let Some(chunk) = rest.get(digits..end) else { return Ok(None) };
        if !chunk.ends_with(b"\r\n") {
            return Err(Damaged("a chunk longer than its size".to_owned()));
        }
        body.extend_from_slice(&chunk[..length]);
        taken += end;
        if length == 0 {
            return Ok(Some((Bytes::from(body), taken)));
        }
    }
}

/// How an answer's body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// This many bytes follow; none at all for HEAD, 204 and 304.
    Length(u64),
    /// Chunks until [`LAST_CHUNK`].
    Chunks,
}

/// The bytes of an answer's head.
pub(crate) fn head(response: &Response<Body>, framing: Framing, last: bool, date: &str) -> Vec<u8> {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or("");
    let mut out = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    let mut field = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    };
    for (name, value) in response.headers() {
        if *name != CONTENT_LENGTH && *name != TRANSFER_ENCODING && *name != CONNECTION {
            field(name.as_str(), value.as_bytes());
        }
    }
    match framing {
        Framing::Length(_) if status == StatusCode::NO_CONTENT => {}
        Framing::Length(length) => field(CONTENT_LENGTH.as_str(), length.to_string().as_bytes()),
        Framing::Chunks => field(TRANSFER_ENCODING.as_str(), b"chunked"),
    }
    if last {
        field(CONNECTION.as_str(), b"close");
    }
    if !response.headers().contains_key(DATE) {
        field(DATE.as_str(), date.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Appends one chunk; an empty one would end the body and is left out.
pub(crate) fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    out.extend_from_slice(format!("{:X}\r\n", data.len()).as_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// The answer to bytes that are no request.
pub(crate) fn bad_request(date: &str) -> Vec<u8> {
    format!("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\ndate: {date}\r\n\r\n")
        .into_bytes()
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("").trim()
}

fn damaged(error: impl std::fmt::Display) -> Damaged {
    Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Damaged, Framing, chunk, head, take_request};
    use axum::body::Body;
    use futures_util::FutureExt;
    use http::Response;
    use http_body_util::BodyExt;

    /// Feeds `bytes` one by one and describes each request that comes out, and what is left.
    fn check(bytes: &str, expected: &[&str], left: &str) {
        let mut input = Vec::new();
        let mut taken = Vec::new();
        for byte in bytes.bytes() {
            input.push(byte);
            if let Some(one) = take_request(&mut input).unwrap() {
                let (parts, body) = one.request.into_parts();
                let body = body.collect().now_or_never().unwrap().unwrap().to_bytes();
                let body = String::from_utf8(body.to_vec()).unwrap();
                taken.push(format!("{} {} {body:?} last={}", parts.method, parts.uri, one.last));
            }
        }
        assert_eq!(taken, expected, "{bytes:?}");
        assert_eq!(String::from_utf8(input).unwrap(), left, "{bytes:?}");
    }

    #[test]
    fn requests_are_taken_whole_however_the_bytes_are_cut() {
        check("GET /a HTTP/1.1\r\n\r\n", &["GET /a \"\" last=false"], "");
        check("GET /a HTTP/1.1\r\nConnection: Close\r\n\r\n", &["GET /a \"\" last=true"], "");
        check("GET /a HTTP/1.0\r\n\r\n", &["GET /a \"\" last=true"], "");
        check(
            "PUT /b?c=1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyzGET /d HTTP/1.1\r\n\r\nrest",
            &["PUT /b?c=1 \"xyz\" last=false", "GET /d \"\" last=false"],
            "rest",
        );
        check(
            "POST /e HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            &["POST /e \"abcde\" last=false"],
            "",
        );
        check(
            "POST /f HTTP/1.1\r\nContent-Length: 4\r\n\r\nab",
            &[],
            "POST /f HTTP/1.1\r\nContent-Length: 4\r\n\r\nab",
        );
    }

    #[test]
    fn bytes_that_are_no_request_are_refused() {
        for bytes in [
            "\u{1}\u{2}",
            "GET /a HTTP/9\r\n\r\n",
            "POST /a HTTP/1.1\r\nContent-Length: many\r\n\r\n",
            "POST /a HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
            "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
            "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc\r\n",
        ] {
            let outcome = take_request(&mut bytes.as_bytes().to_vec());
            assert!(matches!(outcome, Err(Damaged(_))), "{bytes:?} gave {outcome:?}");
        }
    }

    #[test]
    fn answers_are_framed_as_hyper_frames_them() {
        let answer = |status: u16| {
            Response::builder()
                .status(status)
                .header("content-type", "text/plain")
                .body(Body::empty())
                .unwrap()
        };
        let date = "Thu, 01 Jan 2026 00:00:00 GMT";
        let written =
            |status, framing, last| String::from_utf8(head(&answer(status), framing, last, date)).unwrap();
        insta::assert_snapshot!(written(200, Framing::Length(2), false).replace('\r', ""), @r"
        HTTP/1.1 200 OK
        content-type: text/plain
        content-length: 2
        date: Thu, 01 Jan 2026 00:00:00 GMT
        ");
        insta::assert_snapshot!(written(200, Framing::Chunks, true).replace('\r', ""), @r"
        HTTP/1.1 200 OK
        content-type: text/plain
        transfer-encoding: chunked
        connection: close
        date: Thu, 01 Jan 2026 00:00:00 GMT
        ");
        insta::assert_snapshot!(written(204, Framing::Length(0), false).replace('\r', ""), @r"
        HTTP/1.1 204 No Content
        content-type: text/plain
        date: Thu, 01 Jan 2026 00:00:00 GMT
        ");
        let mut chunks = Vec::new();
        for data in ["", "0123456789abcdefg", "x"] {
            chunk(&mut chunks, data.as_bytes());
        }
        assert_eq!(String::from_utf8(chunks).unwrap(), "11\r\n0123456789abcdefg\r\n1\r\nx\r\n");
    }
}
