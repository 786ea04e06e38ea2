//! What is served besides objects. The documents of discovery come with the wire dialect.

use axum::body::Body;
use http::{HeaderMap, Response};

use super::health;
use super::path::Route;

/// Answers a GET of anything but objects.
pub fn answer(_route: &Route, _headers: &HeaderMap, _address: &str, _pretty: bool) -> Response<Body> {
    health::not_found()
}
