//! Responses: status, headers and encoding, the same for all.

use axum::body::Body;
use control_plane_api::ApiError;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::negotiate::{self, Encoding};
use super::query::{self, Query};
use super::watch::WatchBody;

fn response(status: u16, media: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// An object, list, table or Status.
pub fn object(status: u16, object: &Value, encoding: Encoding, pretty: bool) -> Response<Body> {
    match encoding {
        Encoding::Json if pretty => response(status, "application/json", format!("{object:#}\n").into()),
        Encoding::Json => response(status, "application/json", format!("{object}\n").into()),
        Encoding::Yaml => match serde_saphyr::to_string(object) {
            Ok(text) => response(status, "application/yaml", text.into()),
            Err(error) => self::error(&ApiError::internal(&error.to_string())),
        },
    }
}

/// 204: there is nothing to say.
pub fn nothing() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// An object in its stored form, from its text.
pub fn stored(text: &[u8]) -> Response<Body> {
    let mut line = Vec::with_capacity(text.len() + 1);
    line.extend_from_slice(text);
    line.push(b'\n');
    response(200, "application/json", line.into())
}

/// JSON that was put together as text.
pub fn json(text: String) -> Response<Body> {
    response(200, "application/json", text.into())
}

/// How a client wants to read answers, whatever they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// In which encoding.
    pub encoding: Encoding,
    /// Whether it is indented.
    pub pretty: bool,
}

impl Style {
    /// What a request's headers and query ask for. Who asks for nothing that there is reads JSON.
    pub fn of(headers: &HeaderMap, query: &Query) -> Self {
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
        let encoding = negotiate::accept(accept, false).map_or(Encoding::Json, |accepted| accepted.encoding);
        Self { encoding, pretty: query::pretty(query, headers) }
    }
}

/// A refusal as compact JSON.
pub fn error(error: &ApiError) -> Response<Body> {
    refusal(error, Style { encoding: Encoding::Json, pretty: false })
}

/// A refusal.
pub fn refusal(error: &ApiError, style: Style) -> Response<Body> {
    let mut response = object(error.code, &error.to_status(), style.encoding, style.pretty);
    let retry = error.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

/// A refusal of authorization.
pub fn denied(error: &ApiError, style: Style) -> Response<Body> {
    no_sniffing(refusal(error, style))
}

fn no_sniffing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert("X-Content-Type-Options", HeaderValue::from_static("nosniff"));
    response
}

/// A word about one health check.
pub fn word(text: &'static str) -> Response<Body> {
    response(200, "text/plain; charset=utf-8", text.into())
}

/// Plain text.
pub fn text(status: u16, text: String) -> Response<Body> {
    no_sniffing(response(status, "text/plain; charset=utf-8", text.into()))
}

/// Metrics in Prometheus' text format.
pub fn metrics(text: String, media: &str) -> Response<Body> {
    let mut response = self::text(200, text);
    let media = HeaderValue::from_str(&format!("{media}; charset=utf-8"));
    response.headers_mut().insert(CONTENT_TYPE, media.unwrap_or(HeaderValue::from_static("text/plain")));
    response
}

/// A document of some media type.
pub fn document(document: &Value, media: &'static str) -> Response<Body> {
    response(200, media, document.to_string().into())
}

/// Some bytes.
pub fn bytes(bytes: &'static [u8], media: &'static str) -> Response<Body> {
    response(200, media, bytes.into())
}

/// JSON that is already text.
pub fn json_text(text: &'static str) -> Response<Body> {
    response(200, "application/json", text.into())
}

/// A watch that follows the store.
pub fn watch(body: WatchBody) -> Response<Body> {
    response(200, "application/json", Body::new(body))
}

/// A watch that ends at once with a refusal.
pub fn watch_refused(error: &ApiError) -> Response<Body> {
    response(200, "application/json", WatchBody::refusal(error).into())
}

/// Warnings together may have so many characters; where they have more, each is cut, and then they end.
const ALL_WARNINGS: usize = 4096;
/// What a warning is cut to.
const CUT_WARNING: usize = 256;

/// Adds what to warn of, within Kubernetes' limits.
pub fn warn(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    let all: usize = warnings.iter().map(|warning| warning.chars().count()).sum();
    let longest = if all > ALL_WARNINGS { CUT_WARNING } else { usize::MAX };
    let mut written = 0;
    for warning in warnings {
        if written >= ALL_WARNINGS {
            break;
        }
        let warning: String = warning.chars().take(longest).collect();
        written += warning.chars().count();
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_cut_when_they_are_long_together() {
        let warned = |warnings: &[String]| {
            let response = warn(text(200, String::new()), warnings);
            let values = response.headers().get_all(WARNING).iter();
            values.map(|value| value.len() - "299 - \"\"".len()).collect::<Vec<_>>()
        };
        assert_eq!(warned(&["x".repeat(3_000), "y".repeat(1_000)]), [3_000, 1_000]);
        assert_eq!(warned(&["x".repeat(4_000), "y".repeat(1_000), "z".into()]), [256, 256, 1]);
        assert_eq!(warned(&vec!["x".repeat(1_000); 60_000]), [256; 16]);
    }
}
