//! A connection to somebody else's API server: TLS by the kubeconfig's authorities, requests by its proof or by
//! another identity's, which then comes without the kubeconfig's certificate and headers.

use super::kubeconfig::{Access, Pair, Proof};
use super::plugin::{self, Credential};
use crate::http;
use crate::world::{ApiAnswer, ApiRequest, Identity, Infra};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A server, and the proofs that requests to it carry.
pub(crate) struct Connection {
    access: Access,
    /// With the client's certificate, where there is one.
    proven: Client,
    /// Without.
    bare: Client,
    /// What a credential program said last.
    credential: tokio::sync::Mutex<Option<Credential>>,
    /// Tokens of boards, by letter and by Node.
    tokens: BTreeMap<String, String>,
}

impl Connection {
    /// Prepares clients; nothing is sent yet, but a credential program is run.
    pub(crate) async fn open(access: Access, tokens: BTreeMap<String, String>) -> Result<Self, Infra> {
        let credential = match &access.proof {
            Proof::Exec(exec) => Some(plugin::run(exec, &access).await?),
            Proof::None | Proof::Token(_) | Proof::TokenFile(_) | Proof::Basic(..) => None,
        };
        let certificate = credential
            .as_ref()
            .and_then(|credential| credential.certificate.clone())
            .or(access.certificate.clone());
        let proven = http::client(configuration(&access, certificate.as_ref())?, |builder| builder)?;
        let bare = http::client(configuration(&access, None)?, |builder| builder)?;
        Ok(Self { access, proven, bare, credential: tokio::sync::Mutex::new(credential), tokens })
    }

    /// How the server is reached.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// The kubeconfig's own proof.
    async fn proof(&self) -> Result<HeaderMap, String> {
        let mut fields = match &self.access.proof {
            Proof::None => HeaderMap::new(),
            Proof::Token(token) => http::bearer(token)?,
            Proof::TokenFile(path) => {
                let token = std::fs::read_to_string(path)
                    .map_err(|error| format!("the token file {} cannot be read: {error}", path.display()))?;
                http::bearer(token.trim())?
            }
            Proof::Basic(user, password) => {
                use base64::Engine;
                let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
                let value =
                    HeaderValue::from_str(&format!("Basic {text}")).map_err(|error| error.to_string())?;
                HeaderMap::from_iter([(AUTHORIZATION, value)])
            }
            Proof::Exec(exec) => {
                let mut known = self.credential.lock().await;
                if known.as_ref().is_none_or(Credential::is_over) {
                    let fresh = plugin::run(exec, &self.access).await.map_err(|error| error.what)?;
                    *known = Some(fresh);
                }
                match known.as_ref().and_then(|credential| credential.token.as_deref()) {
                    Some(token) => http::bearer(token)?,
                    None => HeaderMap::new(),
                }
            }
        };
        for (name, value) in &self.access.impersonate {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
            fields.append(name, HeaderValue::from_str(value).map_err(|error| error.to_string())?);
        }
        Ok(fields)
    }

    /// Sends a request under its identity.
    pub(crate) async fn send(&self, request: &ApiRequest) -> ApiAnswer {
        let proof = match &request.identity {
            Identity::Admin => self.proof().await,
            Identity::Board(board) => match self.tokens.get(board) {
                Some(token) => http::bearer(token),
                None => Err(format!("the rig file names no token of board {board} (boardTokens)")),
            },
            Identity::Anonymous => Ok(HeaderMap::new()),
            Identity::Token(token) => http::bearer(token),
        };
        let client = if request.identity == Identity::Admin { &self.proven } else { &self.bare };
        match proof {
            Ok(proof) => http::exchange(client, &self.access.base, proof, request).await,
            Err(error) => ApiAnswer { error: Some(error), ..ApiAnswer::default() },
        }
    }

    /// Asks for a path as the kubeconfig's user; the body is not read yet.
    pub(crate) async fn ask(&self, path: &str) -> Result<Response, String> {
        let request = self.proven.get(format!("{}{path}", self.access.base)).headers(self.proof().await?);
        request.send().await.map_err(|error| http::innermost(&error))
    }

    /// Sends a request of the harness's own (not the scenario's) as the kubeconfig's user.
    pub(crate) async fn own(&self, method: &str, path: &str, body: Option<&Value>) -> ApiAnswer {
        let mut request = ApiRequest::new(method, path, body);
        if method == "PATCH" {
            request = request.header("content-type", "application/merge-patch+json");
        }
        self.send(&request).await
    }
}

fn configuration(access: &Access, certificate: Option<&Pair>) -> Result<ClientConfig, Infra> {
    let builder = http::tls()?;
    let builder = if access.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))))
    } else {
        builder.with_root_certificates(roots(access)?)
    };
    let Some((certificate, key)) = certificate else { return Ok(builder.with_no_client_auth()) };
    let bad = |what: &str, why: String| {
        Infra::lasting(format!("the kubeconfig's {what} cannot be used: {why}"), "correct the kubeconfig")
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| bad("client-certificate", error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| bad("client-key", error.to_string()))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| bad("client-certificate", error.to_string()))
}

fn roots(access: &Access) -> Result<RootCertStore, Infra> {
    let mut roots = RootCertStore::empty();
    match &access.authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let added = certificate.map_err(|error| error.to_string());
                let added = added.and_then(|one| roots.add(one).map_err(|error| error.to_string()));
                added.map_err(|why| {
                    Infra::lasting(
                        format!("the kubeconfig's certificate-authority cannot be used: {why}"),
                        "correct the kubeconfig",
                    )
                })?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(roots)
}

/// Takes any certificate, where the kubeconfig says so (`insecure-skip-tls-verify`).
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
