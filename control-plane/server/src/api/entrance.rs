//! The way in and out, the same for every request: observed, given its id and date, and proof against panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use control_plane_api::ApiError;
use futures_util::FutureExt;
use http::header::DATE;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Collected};

use super::handler::dispatch;
use super::respond::Style;
use super::{query, respond};
use crate::auth::Action;
use crate::observe::Observation;
use crate::observe::audit::Written;
use crate::service::Service;

const AUDIT: &str = "audit-id";
/// A client's own id is taken up to this length, as in Kubernetes.
const LONGEST_ID: usize = 64;

/// The API over a service.
pub fn router(service: Arc<Service>) -> Router {
    Router::new().fallback(move |request: Request<Body>| {
        let service = Arc::clone(&service);
        async move { enter(&service, request).await }
    })
}

async fn enter(service: &Arc<Service>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let id = id_of(&head.headers).unwrap_or_else(|| service.audit.uid());
    let mut observation = Observation::begin(service, &head, &id);
    let style = Style::of(&head.headers, &query::parse(head.uri.query()));
    let body = match &mut observation.record {
        // Servers hand over bodies that are read already, so this waits for nobody.
        Some(record) => {
            record.body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
            Body::from(record.body.clone())
        }
        None => body,
    };
    let request = Request::from_parts(head, body);
    // Locks are taken for whole steps and a step that panics leaves what it touched as it was, so the next request is safe.
    let answer = AssertUnwindSafe(dispatch(service, request, &mut observation.seen)).catch_unwind().await;
    let mut response = match answer {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            let response = respond::refusal(&error, style);
            observation.seen.refusal = Some(error);
            response
        }
        Err(_) => {
            service.metrics.panics.inc();
            respond::error(&ApiError::internal("the request made the server panic; its log says where"))
        }
    };
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(AUDIT, id);
    }
    // The date of the injected clock, not the computer's.
    let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&service.clock.wall());
    if let Some(date) = date.ok().and_then(|date| HeaderValue::from_str(&date).ok()) {
        headers.insert(DATE, date);
    }
    let watch = observation.seen.target.as_ref().is_some_and(|(_, action)| *action == Action::Watch);
    if watch && response.status().is_success() {
        let (head, body) = response.into_parts();
        let (body, written) = observation.stream(body);
        written_down(written).await;
        return Response::from_parts(head, body);
    }
    if let Some(record) = observation.record.as_mut().filter(|record| record.wants_answer(&observation.seen))
    {
        let (head, body) = response.into_parts();
        record.answer = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        response = Response::from_parts(head, Body::from(record.answer.clone()));
    }
    written_down(observation.answered(response.status().as_u16())).await;
    response
}

/// Waits for the audit log, so that whoever has an answer finds its line.
async fn written_down(written: Option<Written>) {
    if let Some(written) = written {
        written.await;
    }
}

/// The id that the client gave its request, when it is one that can be given back.
fn id_of(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(AUDIT)?.to_str().ok()?;
    let usable = !id.is_empty() && id.len() <= LONGEST_ID;
    usable.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_id_is_taken_when_it_is_short_text() {
        let check = |id: HeaderValue, taken: bool| {
            let headers = HeaderMap::from_iter([(http::HeaderName::from_static(AUDIT), id.clone())]);
            assert_eq!(id_of(&headers).is_some(), taken, "{id:?}");
        };
        check(HeaderValue::from_static("3c1b"), true);
        check(HeaderValue::from_static(""), false);
        check(HeaderValue::from_str(&"x".repeat(64)).unwrap(), true);
        check(HeaderValue::from_str(&"x".repeat(65)).unwrap(), false);
        check(HeaderValue::from_bytes(b"\xFF").unwrap(), false);
        assert_eq!(id_of(&HeaderMap::new()), None);
    }
}
