//! One entrance for every request: who asks, what for, whether they may, and then on to reading or writing.
//!
//! Nothing on the way waits for a timer, so over the memory store each request is answered at the first poll.

use std::sync::Arc;

use axum::body::Body;
use control_plane_api::ApiError;
use http::request::Parts;
use http::{Method, Request, Response};

use super::filter::Filter;
use super::path::{Route, Target};
use super::query::{self, Query};
use super::respond::Style;
use super::{discovery, explain, health, read, respond, write};
use crate::auth::{Action, Asked, User};
use crate::observe::{Seen, scrape};
use crate::service::Service;
use crate::tls::Peer;

/// A request, as far as everything after the entrance cares.
pub struct Call {
    /// Who asks.
    pub user: User,
    /// Method, URL and headers.
    pub head: Parts,
    /// The decoded query.
    pub query: Query,
}

impl Call {
    /// Whether the answer is to be indented.
    pub fn pretty(&self) -> bool {
        query::pretty(&self.query, &self.head.headers)
    }

    /// How refusals are to be written.
    fn style(&self) -> Style {
        Style::of(&self.head.headers, &self.query)
    }

    /// The Accept header.
    pub fn accept(&self) -> Option<&str> {
        self.head.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok())
    }
}

/// Why a request's body did not arrive, as an extension of the request: it is refused with this, and observed like any other.
#[derive(Clone, Debug)]
pub struct NotReceived(pub ApiError);

/// Answers a request, and notes in `seen` what it turns out to be.
pub async fn dispatch(
    service: &Arc<Service>,
    request: Request<Body>,
    seen: &mut Seen,
) -> Result<Response<Body>, ApiError> {
    let (head, body) = request.into_parts();
    let query = query::parse(head.uri.query());
    let route = Route::parse(head.uri.path());
    // Before anyone is asked who they are: also refused credentials are refused for something.
    if let Route::Resource(target) = &route
        && let Some(action) = action(&head.method, target, &query)
    {
        seen.target = Some(((**target).clone(), action));
    }
    let peer = head.extensions.get::<Arc<Peer>>();
    let user = service.authenticate(peer.map(AsRef::as_ref), &head.headers);
    seen.user = user.as_ref().ok().cloned();
    if let Some(NotReceived(error)) = head.extensions.get() {
        seen.path = route.label();
        return Err(error.clone());
    }
    // Before it counts who asks, as in Kubernetes, and not of what takes its time: watches, logs.
    let lasting = seen.target.as_ref().is_some_and(|(target, action)| {
        *action == Action::Watch || target.subresource.as_deref() == Some("log")
    });
    if !lasting && let Err(error) = query::check_timeout(&query) {
        seen.path = route.label();
        return Err(error);
    }
    let user = user?;
    seen.dry_run = query::get(&query, "dryRun").is_some_and(|value| !value.is_empty());
    let call = Call { user, head, query };
    if let Route::Resource(target) = route {
        return resource(service, &call, &target, body, seen).await;
    }
    let method = call.head.method.as_str().to_ascii_lowercase();
    seen.path = route.label();
    if let Err(error) = seen.decided(service.authorize_path(&call.user, &method, call.head.uri.path())) {
        return Ok(respond::denied(&error, call.style()));
    }
    if route == Route::Nothing {
        return Ok(health::not_found());
    }
    if route == Route::NoResource {
        return Err(ApiError::resource_not_found());
    }
    if call.head.method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    if let Route::Health(endpoint, check) = &route {
        return Ok(health::answer(service, endpoint, check.as_deref(), &call.query).await);
    }
    if route == Route::Metrics {
        let (text, media) = scrape(service).map_err(|error| ApiError::internal(&error.to_string()))?;
        return Ok(respond::metrics(text, &media));
    }
    if let Route::ExplainSchedule(namespace, pod) = &route {
        let explanation = explain::schedule(service, namespace, pod)?;
        return Ok(respond::document(&explanation, "application/json"));
    }
    let address =
        call.head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if let Some(issuer) = &service.issuer {
        match route {
            Route::OpenIdConfiguration => {
                return Ok(respond::document(&issuer.discovery(address), "application/json"));
            }
            Route::OpenIdKeys => {
                return Ok(respond::document(&issuer.key_set(), "application/jwk-set+json"));
            }
            _ => {}
        }
    }
    Ok(discovery::answer(&route, &call.head.headers, address, call.pretty()))
}

/// What a method asks of a place; nothing when the place does not take it.
fn action(method: &Method, target: &Target, query: &Query) -> Option<Action> {
    let collection = target.name.is_none();
    let action = match (method.as_str(), collection) {
        ("GET", _) if target.watch => Action::Watch,
        ("GET", true) if query::flag(query, "watch") => Action::Watch,
        ("GET", true) => Action::List,
        ("GET", false) => Action::Get,
        ("POST", true) => Action::Create,
        ("POST", false) if target.subresource.is_some() => Action::Create,
        ("PUT", false) => Action::Update,
        ("PATCH", false) => Action::Patch,
        ("DELETE", false) if target.subresource.is_none() => Action::Delete,
        ("DELETE", true) => Action::DeleteCollection,
        _ => return None,
    };
    let verbs = match target.subresource.as_deref() {
        Some(name) => target.kind.subresource(name)?.verbs,
        None => target.kind.verbs,
    };
    let scoped = !target.kind.namespaced || target.namespace.is_some();
    let everywhere = matches!(action, Action::List | Action::Watch);
    (verbs.contains(&action.verb()) && (scoped || everywhere)).then_some(action)
}

async fn resource(
    service: &Arc<Service>,
    call: &Call,
    target: &Target,
    body: Body,
    seen: &mut Seen,
) -> Result<Response<Body>, ApiError> {
    let Some(action) = action(&call.head.method, target, &call.query) else {
        return Err(ApiError::method_not_allowed());
    };
    let many = matches!(action, Action::List | Action::Watch | Action::DeleteCollection);
    let filter = many.then(|| filter(call, target)).transpose()?;
    let selected = filter.as_ref().and_then(|filter| filter.required("metadata.name"));
    let asked = Asked {
        action,
        kind: target.kind,
        subresource: target.subresource.as_deref(),
        namespace: target.namespace.as_deref(),
        name: target.name.as_deref().or(selected).unwrap_or_default(),
        node_selected: filter.as_ref().and_then(|filter| filter.required("spec.nodeName")),
    };
    if let Err(error) = seen.decided(service.authorize(&call.user, &asked)) {
        return Ok(respond::denied(&error, call.style()));
    }
    match (action, filter) {
        (Action::Get, _) => read::get(service, call, target).await,
        (Action::List, Some(filter)) => read::list(service, call, target, &filter).await,
        (Action::Watch, Some(filter)) => read::watch(service, call, target, filter).await,
        (Action::DeleteCollection, Some(filter)) => {
            write::delete_many(service, call, target, &filter, body).await
        }
        (Action::Create, _) => write::create(service, call, target, body).await,
        (Action::Update, _) => write::update(service, call, target, body).await,
        (Action::Patch, _) => write::patch(service, call, target, body).await,
        (Action::Delete, _) => write::delete(service, call, target, body).await,
        (Action::List | Action::Watch | Action::DeleteCollection, None) => {
            Err(ApiError::method_not_allowed())
        }
    }
}

fn filter(call: &Call, target: &Target) -> Result<Filter, ApiError> {
    let filter = Filter::new(target.kind, target.namespace.as_deref(), &call.query)?;
    match &target.name {
        Some(name) => filter.named(name),
        None => Ok(filter),
    }
}
