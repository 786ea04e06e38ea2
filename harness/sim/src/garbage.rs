//! What becomes of a message of the server's on a link that makes garbage of what its board is sent.
//!
//! A message is a whole answer with a length, or the head of an answer in chunks with its first chunks, or further chunks, each
//! of them whole: so the server of this rig writes, and a message can be looked at by itself.

use http::header::CONTENT_LENGTH;
use rigor_model::act::Garbage;
use serde_json::Value;

use crate::http1;

/// How much each object grows by, in bytes: more than the whole memory of a board without PSRAM.
const SWELLING: usize = 512 << 10;
/// Header fields of one answer, at most.
const MAX_FIELDS: usize = 100;

/// Makes garbage of a message.
pub(crate) fn spoil(garbage: Garbage, message: &mut Vec<u8>) {
    match garbage {
        // No letter, digit or end of a line of HTTP remains one.
        Garbage::Noise => message.iter_mut().for_each(|byte| *byte |= 0x80),
        // Without its brackets JSON is none, and heads of answers and the lengths of chunks have none.
        Garbage::Bodies => {
            message.iter_mut().filter(|byte| matches!(byte, b'{' | b'[')).for_each(|byte| *byte = b'<');
        }
        Garbage::Swollen => *message = swollen(message),
    }
}

/// The message with larger bodies, framed as before.
fn swollen(message: &[u8]) -> Vec<u8> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut answer = httparse::Response::new(&mut fields);
    let Ok(httparse::Status::Complete(length)) = answer.parse(message) else {
        return swollen_chunks(message);
    };
    let (head, body) = message.split_at(length);
    let stated = answer.headers.iter().find(|field| field.name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str()));
    match (answer.code, stated) {
        // There is no body that could grow.
        (Some(204 | 304), _) => message.to_vec(),
        (_, None) => [head, &swollen_chunks(body)].concat(),
        (_, Some(_)) => {
            let body = swollen_body(body);
            let mut out = Vec::with_capacity(head.len() + body.len() + 8);
            for line in head.split_inclusive(|byte| *byte == b'\n') {
                let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
                if name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str().as_bytes()) {
                    out.extend_from_slice(format!("{CONTENT_LENGTH}: {}\r\n", body.len()).as_bytes());
                } else {
                    out.extend_from_slice(line);
                }
            }
            out.extend_from_slice(&body);
            out
        }
    }
}

/// Chunks with larger data; the last one, which has none, and what is no chunk stay as they are.
fn swollen_chunks(mut chunks: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Ok(httparse::Status::Complete((digits, length))) = httparse::parse_chunk_size(chunks)
        && let Some(data) =
            usize::try_from(length).ok().and_then(|length| chunks.get(digits..digits + length))
        && !data.is_empty()
    {
        http1::chunk(&mut out, &swollen_body(data));
        chunks = chunks.get(digits + data.len() + 2..).unwrap_or_default();
    }
    out.extend_from_slice(chunks);
    out
}

/// A body, or a part of one that holds whole objects: each of them larger, and what is no JSON longer.
fn swollen_body(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut objects = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    for object in objects.by_ref() {
        let Ok(mut object) = object else { break };
        enlarge(&mut object);
        out.extend_from_slice(object.to_string().as_bytes());
        out.push(b'\n');
    }
    if out.is_empty() {
        out.extend_from_slice(body);
        out.resize(out.len() + SWELLING, b' ');
    }
    out
}

/// Gives an object, or each item of a list, a field more: no reader can leave it out by looking at what it knows.
fn enlarge(value: &mut Value) {
    let padding = || Value::from(".".repeat(SWELLING));
    match value.get_mut("items") {
        Some(Value::Array(items)) if !items.is_empty() => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| {
                item.insert("swelling".to_owned(), padding());
            });
        }
        Some(_) | None => {
            if let Some(object) = value.as_object_mut() {
                object.insert("swelling".to_owned(), padding());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoilt(garbage: Garbage, message: &str) -> Vec<u8> {
        let mut bytes = message.as_bytes().to_vec();
        spoil(garbage, &mut bytes);
        bytes
    }

    #[test]
    fn garbage_is_neither_http_nor_json() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"a\":[1,2]}";
        assert_eq!(
            String::from_utf8(spoilt(Garbage::Bodies, answer)).unwrap(),
            "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n<\"a\":<1,2]}"
        );
        let noise = spoilt(Garbage::Noise, answer);
        assert_eq!(noise.len(), answer.len());
        assert!(noise.iter().all(|byte| !byte.is_ascii()), "{noise:?}");
    }

    /// The message with each swelling written as `+`, and what is stated of lengths checked and written as `N`.
    fn shown(message: &str) -> String {
        let text = String::from_utf8(spoilt(Garbage::Swollen, message)).unwrap();
        let short = text.replace(&".".repeat(SWELLING), "+").replace(&" ".repeat(SWELLING), "+");
        let Some((head, body)) = text.split_once("\r\n\r\n").filter(|(head, _)| head.starts_with("HTTP/"))
        else {
            return short;
        };
        let Some(stated) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) else {
            return short;
        };
        assert_eq!(stated.parse::<usize>().unwrap(), body.len());
        short.replace(stated, "N")
    }

    #[test]
    fn a_swollen_answer_says_the_same_and_how_long_it_is() {
        let check = |message: &str, expected: &str| assert_eq!(shown(message), expected, "{message:?}");
        let ok = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        check(
            &format!("{ok}content-length: 7\r\ndate: now\r\n\r\n{{\"a\":1}}"),
            &format!("{ok}content-length: N\r\ndate: now\r\n\r\n{{\"a\":1,\"swelling\":\"+\"}}\n"),
        );
        check(
            &format!("{ok}content-length: 22\r\n\r\n{{\"items\":[{{\"a\":1}},{{}}]}}"),
            &format!(
                "{ok}content-length: N\r\n\r\n{{\"items\":[{{\"a\":1,\"swelling\":\"+\"}},{{\"swelling\":\"+\"}}]}}\n"
            ),
        );
        check(
            &format!("{ok}content-length: 12\r\n\r\n{{\"items\":[]}}"),
            &format!("{ok}content-length: N\r\n\r\n{{\"items\":[],\"swelling\":\"+\"}}\n"),
        );
        check(&format!("{ok}content-length: 2\r\n\r\nok"), &format!("{ok}content-length: N\r\n\r\nok+"));
        let empty = "HTTP/1.1 204 No Content\r\ndate: now\r\n\r\n";
        check(empty, empty);
    }

    #[test]
    fn swollen_chunks_have_their_new_sizes() {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let event = "{\"type\":\"ADDED\"}\n";
        let large = format!("{{\"swelling\":\"{}\",\"type\":\"ADDED\"}}\n", ".".repeat(SWELLING));
        let chunk = |data: &str| format!("{:X}\r\n{data}\r\n", data.len());
        let check = |message: String, expected: String| {
            let text = String::from_utf8(spoilt(Garbage::Swollen, &message)).unwrap();
            let place = text.bytes().zip(expected.bytes()).position(|(one, other)| one != other);
            assert!(text == expected, "{message:?}: differs at {place:?}");
        };
        check(head.to_owned(), head.to_owned());
        check(format!("{head}{}", chunk(event)), format!("{head}{}", chunk(&large)));
        check(
            format!("{}{}0\r\n\r\n", chunk(&event.repeat(2)), chunk(event)),
            format!("{}{}0\r\n\r\n", chunk(&large.repeat(2)), chunk(&large)),
        );
        check("no answer".to_owned(), "no answer".to_owned());
    }
}
