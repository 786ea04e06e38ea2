//! POST, PUT, PATCH and DELETE: bodies are decoded here, everything else is `service`'s.

use axum::body::Body;
use control_plane_api::decode::{self, Expected};
use control_plane_api::delete::DeleteOptions;
use control_plane_api::options::{WriteOptions, WriteVerb};
use control_plane_api::patch::PatchType;
use control_plane_api::status;
use control_plane_api::{ApiError, Decoded};
use http::Response;
use serde_json::{Value, json};

use super::handler::Call;
use super::path::Target;
use super::query::{self, Query};
use super::{Filter, body, read, respond, review, token};
use crate::service::{Door, Page, Service, Written, show};
use crate::store::EXEMPT;

impl Target {
    fn door(&self) -> Door<'_> {
        Door {
            kind: self.kind,
            subresource: self.subresource.as_deref(),
            namespace: self.namespace.as_deref(),
            name: self.name.as_deref().unwrap_or_default(),
        }
    }

    /// What a body at this place is expected to be.
    fn expected(&self) -> Expected {
        match self.subresource.as_deref().and_then(|name| self.kind.subresource(name)) {
            Some(subresource) => Expected::from(subresource),
            None => Expected::from(self.kind),
        }
    }
}

/// Refuses to write what is computed (EP-01).
fn check_stored(service: &Service, target: &Target, name: &str) -> Result<(), ApiError> {
    match service.computes(target.kind.resource, target.namespace.as_deref(), name) {
        true => Err(ApiError::method_not_allowed()),
        false => Ok(()),
    }
}

fn decoded(
    service: &Service,
    target: &Target,
    options: &WriteOptions,
    body: body::Json,
) -> Result<Decoded, ApiError> {
    let problems = body.problem.into_iter().collect();
    let (validation, dialect) = (options.field_validation, service.config.dialect);
    decode::decode_after(problems, target.expected(), &body.text, validation, dialect)
}

/// POST to a collection, or to `binding` and `eviction`.
pub async fn create(
    service: &Service,
    call: &Call,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, ApiError> {
    // Who has not read the body cannot know more than that some name would do.
    check_stored(service, target, EXEMPT.1)?;
    let (view, accepted) = read::view(service, call, target, false)?;
    let options = WriteOptions::parse(WriteVerb::Create, &call.query)?;
    let body = body::to_json(&call.head.headers, body::read(body).await?)?;
    let decoded = decoded(service, target, &options, body)?;
    let (namespace, name) = (target.namespace.as_deref(), target.name.as_deref());
    let shown = match (target.kind.resource, target.subresource.as_deref()) {
        ("pods", Some("binding")) => {
            let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
            service.bind(namespace, name, &decoded.object, options.dry_run).await?;
            status::success(201)
        }
        ("bindings", None) => {
            let name = decoded.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            service.bind(namespace.unwrap_or_default(), name, &decoded.object, options.dry_run).await?;
            status::success(201)
        }
        ("pods", Some("eviction")) => {
            evict(service, call, target, &decoded.object, options.dry_run).await?;
            status::success(201)
        }
        ("serviceaccounts", Some("token")) => {
            token::for_account(service, &call.user, target, decoded.object)?
        }
        ("nodes", Some("token")) => {
            token::for_board(service, &call.user, target, decoded.object, options.dry_run).await?
        }
        ("localsubjectaccessreviews", None)
        | ("selfsubjectaccessreviews", None)
        | ("selfsubjectreviews", None)
        | ("selfsubjectrulesreviews", None)
        | ("subjectaccessreviews", None)
        | ("tokenreviews", None) => review::answer(service, &call.user, target, decoded.object)?,
        (_, None) if target.kind.is_stored() => {
            let own = decoded.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            check_stored(service, target, own)?;
            let made =
                service.create(&call.user, target.kind, namespace, decoded.object, options.dry_run).await?;
            view.one(&made)
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    Ok(respond::warn(respond::object(201, &shown, accepted.encoding, call.pretty()), &decoded.warnings))
}

/// An Eviction is a deletion with the options that it carries.
async fn evict(
    service: &Service,
    call: &Call,
    target: &Target,
    eviction: &Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    let name = target.name.as_deref().unwrap_or_default();
    let named = eviction.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if !named.is_empty() && named != name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let wanted = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let mut options = DeleteOptions::parse(wanted.to_string().as_bytes(), &Query::new())?;
    options.dry_run |= dry_run;
    if !options.dry_run {
        service
            .mark_evicted(&call.user, target.kind, target.namespace.as_deref(), name, &mut options)
            .await?;
    }
    service.remove(&call.user, target.kind, target.namespace.as_deref(), name, &options).await?;
    Ok(())
}

/// PUT.
pub async fn update(
    service: &Service,
    call: &Call,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, ApiError> {
    check_stored(service, target, target.name.as_deref().unwrap_or_default())?;
    read::view(service, call, target, false)?;
    let options = WriteOptions::parse(WriteVerb::Update, &call.query)?;
    let body = body::to_json(&call.head.headers, body::read(body).await?)?;
    let decoded = decoded(service, target, &options, body)?;
    let written = service.update(&call.user, target.door(), decoded.object, options.dry_run).await?;
    answer(service, call, target, &Written { warnings: decoded.warnings, ..written })
}

/// PATCH.
pub async fn patch(
    service: &Service,
    call: &Call,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, ApiError> {
    check_stored(service, target, target.name.as_deref().unwrap_or_default())?;
    read::view(service, call, target, false)?;
    // First: whoever sends another kind of patch, with options of its own, should learn that it is not there.
    let patch_type = PatchType::from_content_type(&body::media_type(&call.head.headers))?;
    let options = WriteOptions::parse(WriteVerb::Patch, &call.query)?;
    let body = body::read(body).await?;
    let written = service.patch(&call.user, target.door(), patch_type, &body, options).await?;
    answer(service, call, target, &written)
}

fn answer(
    service: &Service,
    call: &Call,
    target: &Target,
    written: &Written,
) -> Result<Response<Body>, ApiError> {
    let (view, accepted) = read::view(service, call, target, false)?;
    let shown = match target.subresource.as_deref() {
        Some("scale") => show(target.kind, Some("scale"), &written.object),
        Some(_) | None => view.one(&written.object),
    };
    let status = if written.created { 201 } else { 200 };
    Ok(respond::warn(respond::object(status, &shown, accepted.encoding, call.pretty()), &written.warnings))
}

async fn delete_options(call: &Call, body: Body) -> Result<DeleteOptions, ApiError> {
    let body = body::to_json(&call.head.headers, body::read(body).await?)?;
    DeleteOptions::parse(&body.text, &call.query)
}

/// DELETE of one object.
pub async fn delete(
    service: &Service,
    call: &Call,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, ApiError> {
    let (view, accepted) = read::view(service, call, target, false)?;
    let name = target.name.as_deref().unwrap_or_default();
    check_stored(service, target, name)?;
    let options = delete_options(call, body).await?;
    let answer = service.remove(&call.user, target.kind, target.namespace.as_deref(), name, &options).await?;
    let shown = if answer["kind"] == "Status" { (*answer).clone() } else { view.one(&answer) };
    Ok(respond::object(200, &shown, accepted.encoding, call.pretty()))
}

/// DELETE of a collection: answers what was there, as in Kubernetes.
pub async fn delete_many(
    service: &Service,
    call: &Call,
    target: &Target,
    filter: &Filter,
    body: Body,
) -> Result<Response<Body>, ApiError> {
    check_stored(service, target, "")?;
    let (view, accepted) = read::view(service, call, target, true)?;
    let options = delete_options(call, body).await?;
    // With a limit only the first so many go, as in Kubernetes.
    let page: Page = service.list(filter, &query::list_options(&call.query)?).await?;
    for entry in &page.entries {
        let field = |name: &str| entry.object["metadata"][name].as_str();
        let removed = service
            .remove(&call.user, target.kind, field("namespace"), field("name").unwrap_or_default(), &options)
            .await;
        match removed {
            Ok(_) => {}
            // Someone else was first.
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(respond::object(200, &view.page(&page), accepted.encoding, call.pretty()))
}
