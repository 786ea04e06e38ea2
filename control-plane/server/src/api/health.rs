//! `/healthz`, `/livez` and `/readyz`: whoever can answer is alive, and what is served is ready.

use axum::body::Body;
use http::Response;

use super::query::{Query, get};
use super::respond;

/// The checks of each endpoint.
const CHECKS: &[&str] = &["ping", "log", "etcd"];

/// Answers for an endpoint, or for one of its checks.
pub fn answer(endpoint: &str, check: Option<&str>, query: &Query) -> Response<Body> {
    if let Some(check) = check {
        let known = CHECKS.contains(&check);
        return if known { respond::text(200, "ok".into()) } else { not_found() };
    }
    if get(query, "verbose").is_none() {
        return respond::text(200, "ok".into());
    }
    let excluded: Vec<&str> =
        query.iter().filter(|(name, _)| name == "exclude").map(|(_, check)| check.as_str()).collect();
    let mut text = String::new();
    for check in CHECKS {
        let state = if excluded.contains(check) { "excluded: ok" } else { "ok" };
        text += &format!("[+]{check} {state}\n");
    }
    text += &format!("{endpoint} check passed\n");
    respond::text(200, text)
}

/// What a path without meaning gets.
pub fn not_found() -> Response<Body> {
    respond::text(404, "404 page not found\n".into())
}
