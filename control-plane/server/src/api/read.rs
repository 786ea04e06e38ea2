//! GET: one object, a list, or a watch.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use control_plane_api::ApiError;
use control_plane_api::table::IncludeObject;
use http::Response;

use super::handler::Call;
use super::negotiate::{self, Accepted, Encoding, Form};
use super::path::Target;
use super::query::{self, ListOptions, Start};
use super::view::View;
use super::watch::{Subject, WatchBody};
use super::{At, Filter, respond};
use crate::service::{Page, Service, absent, show, store_failed};
use crate::store::{Store, StoreError};

/// How a request's answer is shown and written.
///
/// # Errors
/// 406, or 400 for an unknown `includeObject`.
pub fn view(
    service: &Service,
    call: &Call,
    target: &Target,
    list: bool,
) -> Result<(View, Accepted), ApiError> {
    let accepted = negotiate::accept(call.accept(), list)?;
    let include = match accepted.form {
        Form::Table(_) => IncludeObject::parse(&call.query)?,
        Form::Object | Form::Partial(_) => IncludeObject::default(),
    };
    let view = View { kind: target.kind, form: accepted.form, include, clock: Arc::clone(&service.clock) };
    Ok((view, accepted))
}

/// One object, or what a subresource shows of it.
pub async fn get(service: &Service, call: &Call, target: &Target) -> Result<Response<Body>, ApiError> {
    let (view, accepted) = view(service, call, target, false)?;
    let not_older_than = query::version(&call.query)?.unwrap_or(0);
    let name = target.name.as_deref().unwrap_or_default();
    let entry = service.get(target.kind, target.namespace.as_deref(), name, not_older_than).await;
    let entry = entry.map_err(|error| match error.code {
        404 => absent(target.kind, target.subresource.as_deref(), name),
        _ => error,
    })?;
    let plain = accepted.encoding == Encoding::Json && !call.pretty();
    let shown = match target.subresource.as_deref() {
        None | Some("status") if plain && view.is_stored_form() => return Ok(respond::stored(&entry.text())),
        None | Some("status") => view.one(&entry.object),
        Some("scale") => show(target.kind, Some("scale"), &entry.object),
        // A pod that is nowhere has said nothing, which Kubernetes answers so.
        Some("log") if entry.object.pointer("/spec/nodeName").is_none_or(|node| node == "") => {
            return Ok(respond::nothing());
        }
        Some("log") => {
            return Err(ApiError::plain(501, "boards keep no container logs: read the board's console"));
        }
        Some(_) => return Err(ApiError::method_not_allowed()),
    };
    Ok(respond::object(200, &shown, accepted.encoding, call.pretty()))
}

/// A list.
pub async fn list(
    service: &Service,
    call: &Call,
    target: &Target,
    filter: &Filter,
) -> Result<Response<Body>, ApiError> {
    let (view, accepted) = view(service, call, target, true)?;
    let options = query::list_options(&call.query)?;
    let page = service.list(filter, &options).await?;
    if accepted.encoding == Encoding::Json
        && !call.pretty()
        && let Some(text) = view.page_text(&page)
    {
        return Ok(respond::json(text));
    }
    Ok(respond::object(200, &view.page(&page), accepted.encoding, call.pretty()))
}

/// A watch. What cannot be watched is said in its first line, as in Kubernetes.
pub async fn watch(
    service: &Arc<Service>,
    call: &Call,
    target: &Target,
    filter: Filter,
) -> Result<Response<Body>, ApiError> {
    let (view, _) = view(service, call, target, false)?;
    let options = query::watch_options(&call.query)?;
    let source = service.source(target.kind.resource).await;
    let (existing, cursor, mark) = match options.start {
        Start::Existing { not_older_than, mark } => {
            if let Err(error) = service.reached(not_older_than).await {
                return Ok(respond::watch_refused(&error));
            }
            let newest = ListOptions { at: At::Newest, limit: None };
            let Page { revision, entries, .. } = service.list(&filter, &newest).await?;
            (entries, revision, mark)
        }
        Start::Now => {
            let newest = service.store.catch_up().await.map_err(|error| store_failed(&error))?;
            (Vec::new(), newest, false)
        }
        Start::After(revision) => {
            if let Err(error) = service.reached(revision).await {
                return Ok(respond::watch_refused(&error));
            }
            match source.changes(revision) {
                Ok(_) => {}
                Err(StoreError::Compacted { asked, oldest }) => {
                    return Ok(respond::watch_refused(&ApiError::too_old(asked, oldest)));
                }
                Err(error) => return Err(ApiError::internal(&error.to_string())),
            }
            (Vec::new(), resume(source.as_ref(), &filter, revision), false)
        }
    };
    let sent = service.metrics.watched(target.kind.group, target.kind.version, target.kind.kind);
    let body = WatchBody::start(
        Subject { filter, view, sent },
        source,
        Arc::clone(&service.watches),
        service.clock.mono(),
        options.timeout_seconds.map(Duration::from_secs),
        options.bookmarks,
        &existing,
        cursor,
        mark,
    );
    Ok(respond::watch(body))
}

/// Behind which revision a watch goes on whose client has seen `revision`. Where one write changed several of the objects that
/// it follows, it may have seen only some of them: then it is told of all of them again.
fn resume(source: &dyn Store, filter: &Filter, revision: u64) -> u64 {
    let before = revision.saturating_sub(1);
    let Ok(changes) = source.changes(before) else { return revision };
    let at = changes.iter().take_while(|change| change.revision == revision);
    if at.filter(|change| filter.shows(change)).count() > 1 { before } else { revision }
}
