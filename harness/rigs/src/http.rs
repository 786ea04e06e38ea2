//! HTTP as an honest observer speaks it: raw status, raw body, no redirect followed, no proxy of the environment.
//!
//! Every client names its TLS configuration, so that none depends on what the process installed as its default.

use crate::world::{ApiAnswer, ApiRequest, Infra};
use reqwest::header::HeaderMap;
use reqwest::{Client, ClientBuilder, Method};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use std::sync::Arc;

/// The begin of a TLS configuration on ring.
pub(crate) fn tls() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Infra> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Infra::lasting(format!("no TLS: {error}"), "build rigor with ring"))
}

/// A configuration that trusts nobody, for servers without TLS.
pub(crate) fn plain() -> Result<ClientConfig, Infra> {
    Ok(tls()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// A client, but for what `more` adds.
pub(crate) fn client(
    tls: ClientConfig,
    more: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, Infra> {
    let builder = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls);
    more(builder).build().map_err(|error| Infra::transient(format!("no HTTP client: {}", innermost(&error))))
}

/// Sends a request with these header fields besides its own, and takes in the answer.
pub(crate) async fn exchange(
    client: &Client,
    base: &str,
    proof: HeaderMap,
    request: &ApiRequest,
) -> ApiAnswer {
    let failed = |error: String| ApiAnswer { error: Some(error), ..ApiAnswer::default() };
    let Ok(method) = Method::from_bytes(request.method.as_bytes()) else {
        return failed(format!("`{}` is no HTTP method", request.method));
    };
    let url = format!("{base}{}", request.path);
    let mut builder = client.request(method, url).timeout(request.timeout.as_duration()).headers(proof);
    if request.body.is_some() && !request.headers.contains_key("content-type") {
        builder = builder.header("content-type", "application/json");
    }
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    if let Some(body) = &request.body {
        builder = builder.body(body.clone());
    }
    let response = match builder.send().await {
        Ok(response) => response,
        Err(error) => return failed(innermost(&error)),
    };
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    match response.text().await {
        Ok(text) => ApiAnswer { status, headers, body: serde_json::from_str(&text).ok(), text, error: None },
        Err(error) => failed(innermost(&error)),
    }
}

/// A bearer token as a header field; a token that cannot be one is an error.
pub(crate) fn bearer(token: &str) -> Result<HeaderMap, String> {
    let mut value = reqwest::header::HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| "the token holds characters that no header field may".to_owned())?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(reqwest::header::AUTHORIZATION, value)]))
}

/// The innermost cause, which says more than "error sending request".
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
