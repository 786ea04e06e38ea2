//! Responses: status, headers and encoding, the same for all.

use axum::body::Body;
use control_plane_api::ApiError;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::negotiate::Encoding;
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

/// A refusal. It is JSON whatever was asked for, as in Kubernetes.
pub fn error(error: &ApiError) -> Response<Body> {
    let mut response = object(error.code, &error.to_status(), Encoding::Json, false);
    let retry = error.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

/// A refusal of authorization.
pub fn denied(error: &ApiError) -> Response<Body> {
    no_sniffing(self::error(error))
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

/// Adds what to warn of.
pub fn warn(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
