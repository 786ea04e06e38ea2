//! What is served: versions, groups, resources and their schemas, by the functions of the wire dialect.

use axum::body::Body;
use control_plane_api::{ApiError, discovery, openapi};
use http::header::{ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use super::path::Route;
use super::{health, negotiate, respond};

/// The aggregated form, in the versions that clients ask for.
fn aggregated(accept: &str) -> Option<&'static str> {
    accept.split(',').find_map(|clause| {
        let has = |parameter: &str| clause.split(';').any(|part| part.trim() == parameter);
        if !has("as=APIGroupDiscoveryList") || !has("g=apidiscovery.k8s.io") {
            return None;
        }
        ["v2", "v2beta1"].into_iter().find(|version| has(&format!("v={version}")))
    })
}

/// How clients ask for the second version of OpenAPI, where the third does not tell them of a kind.
const OPENAPI_V2_PROTOBUF: &str = "com.github.proto-openapi.spec.v2";
/// That document in protobuf, without any definition: kubectl only looks into it for kinds that the third version does not have,
/// and no version has those. It is `swagger: "2.0"` and `info: {title: "Kubernetes", version: "v1"}`.
const OPENAPI_V2_EMPTY: &[u8] = b"\x0a\x032.0\x12\x10\x0a\x0aKubernetes\x12\x02v1";

/// Answers a GET of anything but objects.
pub fn answer(route: &Route, headers: &HeaderMap, address: &str, pretty: bool) -> Response<Body> {
    let accept = headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let document = match route {
        Route::CoreVersions => match aggregated(accept) {
            Some(version) => return grouped(&discovery::aggregated_core(version), version, headers),
            None => discovery::api_versions(address),
        },
        Route::Groups => match aggregated(accept) {
            Some(version) => return grouped(&discovery::aggregated_groups(version), version, headers),
            None => discovery::api_groups(),
        },
        Route::Group(group) => match discovery::api_group(group) {
            Some(document) => document,
            None => return health::not_found(),
        },
        Route::GroupVersion(group, version) => match discovery::resource_list(group, version) {
            Some(document) => document,
            None => return health::not_found(),
        },
        Route::Version => discovery::version(),
        Route::OpenApiIndex => openapi::v3_index(),
        Route::OpenApiV2 if accept.contains(OPENAPI_V2_PROTOBUF) => {
            return respond::bytes(OPENAPI_V2_EMPTY, "application/octet-stream");
        }
        Route::OpenApiV2 => return respond::json_text(openapi::v2()),
        Route::OpenApi(path) => {
            return match openapi::v3_document(path) {
                Some(document) => respond::json_text(document),
                None => health::not_found(),
            };
        }
        Route::Root => json!({"paths": paths()}),
        Route::NoResource => return respond::error(&ApiError::resource_not_found()),
        Route::Resource(_)
        | Route::Health(..)
        | Route::Metrics
        | Route::ExplainSchedule(..)
        | Route::OpenIdConfiguration
        | Route::OpenIdKeys
        | Route::Nothing => {
            return health::not_found();
        }
    };
    match negotiate::accept(Some(accept), false) {
        Ok(accepted) => respond::object(200, &document, accepted.encoding, pretty),
        // Discovery answers JSON to whoever asks, as protobuf clients expect.
        Err(_) if accept.contains("protobuf") => {
            respond::object(200, &document, negotiate::Encoding::Json, pretty)
        }
        Err(error) => respond::error(&error),
    }
}

fn paths() -> Vec<String> {
    let mut paths = vec!["/api".to_owned(), "/api/v1".into(), "/apis".into()];
    for (group, version) in control_plane_api::kinds::group_versions() {
        if !group.is_empty() {
            paths.push(format!("/apis/{group}"));
            paths.push(format!("/apis/{group}/{version}"));
        }
    }
    paths.extend(health::paths());
    let rest = ["/metrics", "/openapi/v2", "/openapi/v3", "/version"];
    paths.extend(rest.map(Into::into));
    paths.sort();
    paths.dedup();
    paths
}

/// Aggregated discovery, which clients cache by its ETag.
fn grouped(document: &Value, version: &str, headers: &HeaderMap) -> Response<Body> {
    let text = format!("{document}\n");
    // Sixteen hexadecimal digits of a hash that is the same in every process.
    let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let tag = format!("\"{hash:016X}\"");
    let known = headers.get(IF_NONE_MATCH).is_some_and(|held| held.as_bytes() == tag.as_bytes());
    let mut response = Response::new(if known { Body::empty() } else { Body::from(text) });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        let media = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
        if let Ok(media) = HeaderValue::from_str(&media) {
            response.headers_mut().insert(http::header::CONTENT_TYPE, media);
        }
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response.headers_mut().insert(http::header::CACHE_CONTROL, HeaderValue::from_static("public"));
    response
}
