//! The client's half of HTTP/1.1: a request is written in one piece, an answer is read from pieces of
//! any size. The reader holds at most one head ([`MAX_HEAD`]); bodies pass through it unbuffered, with
//! chunking taken off. How the bytes are cut up makes no difference to what comes out (KLET-06).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::wall::Wall;

/// Longest head of an answer, in bytes.
pub(crate) const MAX_HEAD: usize = 4096;
const MAX_HEADERS: usize = 48;
/// Longest line of a chunk's size or trailer, in bytes.
const MAX_CHUNK_LINE: usize = 1024;

/// The methods the kubelet uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

impl Method {
    fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Json,
    MergePatch,
    StrategicPatch,
}

impl Content {
    fn as_str(self) -> &'static str {
        match self {
            Content::Json => "application/json",
            Content::MergePatch => "application/merge-patch+json",
            Content::StrategicPatch => "application/strategic-merge-patch+json",
        }
    }
}

/// A request before it is bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Path with query, escaped already.
    pub(crate) path: String,
    pub(crate) body: Option<(Content, String)>,
}

impl Request {
    /// A request without a body.
    pub(crate) fn get(path: String) -> Request {
        Request { method: Method::Get, path, body: None }
    }

    /// The bytes on the wire.
    pub(crate) fn encode(&self, host: &str, token: Option<&str>) -> Vec<u8> {
        let Request { method, path, body } = self;
        let method = method.as_str();
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: rigor\r\nAccept: application/json\r\n"
        );
        if let Some(token) = token {
            text.push_str("Authorization: Bearer ");
            text.push_str(token);
            text.push_str("\r\n");
        }
        if let Some((content, body)) = body {
            let (kind, length) = (content.as_str(), body.len());
            text.push_str(&format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"));
        } else {
            text.push_str("\r\n");
        }
        text.into_bytes()
    }
}

/// What the kubelet needs of an answer's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// 200 to 999.
    pub(crate) status: u16,
    /// The Date header.
    pub(crate) date: Option<Wall>,
    /// Whether the connection can carry another request afterwards.
    pub(crate) keep_alive: bool,
}

/// A piece of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Head(Head),
    /// Some bytes of the body, never none.
    Body(&'a [u8]),
    /// The answer is complete; the reader waits for the next head.
    End,
}

/// Bytes that are not an HTTP/1.x answer, or one larger than a board reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the head of an answer is longer than {MAX_HEAD} bytes")]
    HeadTooLong,
    #[error("the head of an answer is malformed")]
    BadHead,
    #[error("a Content-Length or Transfer-Encoding is malformed")]
    BadLength,
    #[error("a chunk of an answer is malformed")]
    BadChunk,
}

#[derive(Debug)]
enum State {
    Head(Vec<u8>),
    /// This many bytes of the body are to come.
    Length(u64),
    /// In the line that gives a chunk's size: what was read of it, and how many characters.
    ChunkSize {
        size: Option<u64>,
        seen: usize,
        extension: bool,
    },
    ChunkData(u64),
    /// In the line end after a chunk's data.
    ChunkEnd {
        seen_cr: bool,
    },
    /// After the last chunk: `seen` characters of the current line without its CR.
    Trailer {
        seen: usize,
        total: usize,
    },
    /// Until the connection closes.
    UntilClose,
    /// The End is due.
    Complete,
}

/// Reads one answer after the other.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    state: State,
}

impl Default for ResponseReader {
    fn default() -> Self {
        ResponseReader { state: State::Head(Vec::new()) }
    }
}

impl ResponseReader {
    /// Takes bytes off the front of `input` until a piece is whole; `None` once all are taken.
    ///
    /// # Errors
    /// [`HttpError`]; the connection is then of no more use.
    pub(crate) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, HttpError> {
        loop {
            if let State::Complete = self.state {
                self.state = State::Head(Vec::new());
                return Ok(Some(Piece::End));
            }
            if input.is_empty() {
                return Ok(None);
            }
            match &mut self.state {
                State::Head(head) => {
                    if let Some((found, state)) = read_head(head, input)? {
                        self.state = state;
                        return Ok(Some(Piece::Head(found)));
                    }
                }
                State::Length(left) => {
                    let piece = take_up_to(input, *left);
                    *left -= piece.len() as u64;
                    if *left == 0 {
                        self.state = State::Complete;
                    }
                    return Ok(Some(Piece::Body(piece)));
                }
                State::ChunkData(left) => {
                    let piece = take_up_to(input, *left);
                    *left -= piece.len() as u64;
                    if *left == 0 {
                        self.state = State::ChunkEnd { seen_cr: false };
                    }
                    return Ok(Some(Piece::Body(piece)));
                }
                State::UntilClose => return Ok(Some(Piece::Body(core::mem::take(input)))),
                State::ChunkSize { .. }
                | State::ChunkEnd { .. }
                | State::Trailer { .. }
                | State::Complete => {
                    let (byte, rest) = (input[0], &input[1..]);
                    *input = rest;
                    self.frame(byte)?;
                }
            }
        }
    }

    /// The server closed the connection: whether that was the proper end of an answer.
    pub(crate) fn closed(&self) -> bool {
        matches!(self.state, State::UntilClose)
    }

    /// One byte of the framing around chunks.
    fn frame(&mut self, byte: u8) -> Result<(), HttpError> {
        match &mut self.state {
            State::ChunkSize { size, seen, extension } => {
                *seen += 1;
                if *seen > MAX_CHUNK_LINE {
                    return Err(HttpError::BadChunk);
                }
                match byte {
                    b'\n' => {
                        self.state = match size.ok_or(HttpError::BadChunk)? {
                            0 => State::Trailer { seen: 0, total: 0 },
                            size => State::ChunkData(size),
                        };
                    }
                    b'\r' => *extension = true,
                    b';' | b' ' | b'\t' if size.is_some() => *extension = true,
                    _ if *extension => {}
                    _ => {
                        let digit = (byte as char).to_digit(16).ok_or(HttpError::BadChunk)?;
                        let grown = size.unwrap_or(0).checked_mul(16).ok_or(HttpError::BadChunk)?;
                        *size = Some(grown + u64::from(digit));
                    }
                }
            }
            State::ChunkEnd { seen_cr } => match byte {
                b'\r' if !*seen_cr => *seen_cr = true,
                b'\n' => self.state = State::ChunkSize { size: None, seen: 0, extension: false },
                _ => return Err(HttpError::BadChunk),
            },
            State::Trailer { seen, total } => {
                *total += 1;
                match byte {
                    b'\n' if *seen == 0 => self.state = State::Complete,
                    b'\n' => *seen = 0,
                    b'\r' => {}
                    _ if *total > MAX_CHUNK_LINE => return Err(HttpError::BadChunk),
                    _ => *seen += 1,
                }
            }
            State::Head(_) | State::Length(_) | State::ChunkData(_) | State::UntilClose | State::Complete => {
            }
        }
        Ok(())
    }
}

fn take_up_to<'a>(input: &mut &'a [u8], most: u64) -> &'a [u8] {
    let length = usize::try_from(most).map_or(input.len(), |most| most.min(input.len()));
    let (piece, rest) = input.split_at(length);
    *input = rest;
    piece
}

/// Collects a head byte for byte up to its empty line and reads it; interim answers (1xx) are skipped.
fn read_head(head: &mut Vec<u8>, input: &mut &[u8]) -> Result<Option<(Head, State)>, HttpError> {
    while let Some((byte, rest)) = input.split_first() {
        *input = rest;
        // Line ends before a head are harmless leftovers.
        if head.is_empty() && matches!(byte, b'\r' | b'\n') {
            continue;
        }
        head.push(*byte);
        if *byte == b'\n' && (head.ends_with(b"\r\n\r\n") || head.ends_with(b"\n\n")) {
            let parsed = parse_head(head)?;
            head.clear();
            if parsed.is_some() {
                return Ok(parsed);
            }
        } else if head.len() >= MAX_HEAD {
            return Err(HttpError::HeadTooLong);
        }
    }
    Ok(None)
}

fn parse_head(bytes: &[u8]) -> Result<Option<(Head, State)>, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) | Err(_) => return Err(HttpError::BadHead),
    }
    let status = response.code.ok_or(HttpError::BadHead)?;
    if (100..200).contains(&status) {
        return Ok(None);
    }
    let (mut length, mut chunked, mut keep_alive) = (None, false, response.version == Some(1));
    let mut date = None;
    for header in response.headers.iter() {
        let value = core::str::from_utf8(header.value).unwrap_or("").trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            let stated: u64 = value.parse().map_err(|_| HttpError::BadLength)?;
            if length.is_some_and(|earlier| earlier != stated) {
                return Err(HttpError::BadLength);
            }
            length = Some(stated);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(HttpError::BadLength);
            }
            chunked = true;
        } else if header.name.eq_ignore_ascii_case("connection") {
            if value.eq_ignore_ascii_case("close") {
                keep_alive = false;
            }
        } else if header.name.eq_ignore_ascii_case("date") {
            date = Wall::from_http_date(value);
        }
    }
    let state = match (status, chunked, length) {
        (204 | 304, _, _) | (_, false, Some(0)) => State::Complete,
        (_, true, _) => State::ChunkSize { size: None, seen: 0, extension: false },
        (_, false, Some(length)) => State::Length(length),
        (_, false, None) => State::UntilClose,
    };
    let keep_alive = keep_alive && !matches!(state, State::UntilClose);
    Ok(Some((Head { status, date, keep_alive }, state)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    /// Everything an answer amounts to, however its bytes were cut.
    fn read(pieces: &[&[u8]]) -> Result<(Vec<(Head, String)>, bool), HttpError> {
        let mut reader = ResponseReader::default();
        let mut answers: Vec<(Head, Vec<u8>)> = Vec::new();
        let mut ended = true;
        for piece in pieces {
            let mut input = *piece;
            while let Some(piece) = reader.next(&mut input)? {
                match piece {
                    Piece::Head(head) => {
                        assert!(ended, "an answer began before the last one ended");
                        ended = false;
                        answers.push((head, Vec::new()));
                    }
                    Piece::Body(bytes) => answers.last_mut().unwrap().1.extend_from_slice(bytes),
                    Piece::End => ended = true,
                }
            }
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).to_string();
        Ok((answers.into_iter().map(|(head, body)| (head, text(body))).collect(), ended))
    }

    #[test]
    fn answers_are_read() {
        let check = |bytes: &str, status: u16, body: &str, keep_alive: bool, ended: bool| {
            let (answers, end) = read(&[bytes.as_bytes()]).unwrap();
            let (head, text) = &answers[0];
            assert_eq!((head.status, text.as_str(), head.keep_alive, end), (status, body, keep_alive, ended));
        };
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", true, true);
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", 200, "hi", true, false);
        check("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true, true);
        check(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
            201,
            "",
            true,
            true,
        );
        check("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 200, "x", false, true);
        check("HTTP/1.0 200 OK\r\n\r\nto the end", 200, "to the end", false, false);
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA ;x=1\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
            200,
            "abc0123456789",
            true,
            true,
        );
    }

    #[test]
    fn the_date_is_kept() {
        let text = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:02 GMT\r\nContent-Length: 0\r\n\r\n";
        let (answers, _) = read(&[text.as_bytes()]).unwrap();
        assert_eq!(answers[0].0.date, Some(Wall(2000)));
    }

    #[test]
    fn malformed_answers_are_refused() {
        let check = |bytes: &[u8], expected: HttpError| assert_eq!(read(&[bytes]).unwrap_err(), expected);
        check(b"SSH-2.0-x\r\n\r\n", HttpError::BadHead);
        check(&[b'x'; 5000], HttpError::HeadTooLong);
        check(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", HttpError::BadLength);
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", HttpError::BadLength);
        check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", HttpError::BadLength);
        check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", HttpError::BadChunk);
        check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", HttpError::BadChunk);
        check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", HttpError::BadChunk);
        check(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
            HttpError::BadChunk,
        );
    }

    #[test]
    fn a_request_is_written_in_one_piece() {
        let request = Request {
            method: Method::Patch,
            path: "/api/v1/nodes/a".to_string(),
            body: Some((Content::MergePatch, "{}".to_string())),
        };
        let text = String::from_utf8(request.encode("10.0.2.2:80", Some("t"))).unwrap();
        insta::assert_snapshot!(text.replace('\r', ""), @r"
        PATCH /api/v1/nodes/a HTTP/1.1
        Host: 10.0.2.2:80
        User-Agent: rigor
        Accept: application/json
        Authorization: Bearer t
        Content-Type: application/merge-patch+json
        Content-Length: 2

        {}
        ");
    }

    /// Answers that are mostly right, so that cuts fall into every state.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let answer = prop_oneof![
            "[a-z]{0,20}".prop_map(|b| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{b}", b.len())),
            proptest::collection::vec("[a-z\r\n]{1,9}", 0..4).prop_map(|chunks| {
                let mut text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_string();
                for chunk in chunks {
                    text.push_str(&format!("{:x}\r\n{chunk}\r\n", chunk.len()));
                }
                text + "0\r\n\r\n"
            }),
            "[ -~\r\n]{0,40}".prop_map(|noise| noise),
        ];
        proptest::collection::vec(answer, 1..4).prop_map(|answers| answers.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn cuts_make_no_difference(bytes in stream(), cuts in proptest::collection::vec(0usize..200, 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(read(&pieces), read(&[&bytes]));
        }
    }
}
