//! A plain HTTP client of the API: requests, Status answers, watches. It knows nothing of the server's types.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Nothing in these tests takes this long, on a slow machine neither; a hang becomes a failure.
const TIMEOUT: Duration = Duration::from_secs(240);

/// How a request says who sends it.
#[derive(Clone, Default)]
pub struct Credentials {
    /// PEM of the authorities that may have signed the server's certificate; empty over plain HTTP.
    pub ca: Vec<u8>,
    /// PEM of a key and its certificate chain.
    pub identity: Option<Vec<u8>>,
    /// A bearer token.
    pub token: Option<String>,
}

impl Credentials {
    /// The server's URL and the credentials of a kubeconfig file.
    pub fn read(kubeconfig: &Path) -> (String, Self) {
        let content = std::fs::read_to_string(kubeconfig)
            .unwrap_or_else(|error| panic!("{}: {error}", kubeconfig.display()));
        let config: Value = serde_saphyr::from_str(&content).unwrap();
        let cluster = &config["clusters"][0]["cluster"];
        let user = &config["users"][0]["user"];
        let data = |value: &Value, inline: &str, file: &str| -> Option<Vec<u8>> {
            if let Some(text) = value[inline].as_str() {
                return Some(base64::engine::general_purpose::STANDARD.decode(text).unwrap());
            }
            let path = kubeconfig.parent().unwrap().join(value[file].as_str()?);
            Some(std::fs::read(path).unwrap())
        };
        let identity = data(user, "client-key-data", "client-key").map(|mut key| {
            key.extend(data(user, "client-certificate-data", "client-certificate").unwrap());
            key
        });
        let mut server = cluster["server"].as_str().unwrap().to_owned();
        if let (Some(scheme), Some(at)) = (server.find("://"), server.find('@')) {
            server.replace_range(scheme + 3..=at, "");
        }
        let credentials = Self {
            ca: data(cluster, "certificate-authority-data", "certificate-authority").unwrap_or_default(),
            identity,
            token: user["token"].as_str().map(str::to_owned),
        };
        (server.trim_end_matches('/').to_owned(), credentials)
    }

    /// The same server's authority, nobody's name.
    pub fn anonymous(&self) -> Self {
        Self { ca: self.ca.clone(), ..Self::default() }
    }

    /// The same server's authority, a bearer token.
    pub fn bearer(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.anonymous() }
    }

    /// The same server's authority, a client certificate.
    pub fn certificate(&self, pem: Vec<u8>) -> Self {
        Self { identity: Some(pem), ..self.anonymous() }
    }
}

/// One runtime for the connections of all clients; the tests themselves are plain threads.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap())
}

/// Someone who talks to the server.
#[derive(Clone)]
pub struct Client {
    http: Http<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: String,
    credentials: Credentials,
}

impl Client {
    /// A client of `url` (`http://…` or `https://…`).
    pub fn new(url: &str, credentials: &Credentials) -> Self {
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(&credentials.ca) {
            roots.add(authority.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let tls = match &credentials.identity {
            Some(pem) => {
                let chain = CertificateDer::pem_slice_iter(pem).map(Result::unwrap).collect();
                tls.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(pem).unwrap()).unwrap()
            }
            None => tls.with_no_client_auth(),
        };
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        let http = Http::builder(TokioExecutor::new()).build(connector);
        Self { http, url: url.to_owned(), credentials: credentials.clone() }
    }

    /// The same server, someone else.
    pub fn with(&self, credentials: &Credentials) -> Self {
        Self::new(&self.url, credentials)
    }

    /// How this client says who it is.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Sends a request; its answer's head and the body to come, or why there is none.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Response<Incoming>, String> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(token) = &self.credentials.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = self.http.request(request.body(Full::new(body.into())).unwrap());
        match runtime().block_on(async { tokio::time::timeout(TIMEOUT, sent).await }) {
            Ok(answered) => answered.map_err(|error| format!("{method} {path}: no answer: {error:?}")),
            Err(_) => Err(format!("{method} {path}: no answer in {TIMEOUT:?}")),
        }
    }

    /// Sends a request with headers of its own.
    #[track_caller]
    pub fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.ask(method, path, headers, body).unwrap_or_else(|error| panic!("{error}"));
        Answer::of(format!("{method} {path}"), response)
    }

    /// Sends a body of a type.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, content_type: &str, body: impl Into<Bytes>) -> Answer {
        self.exchange(method, path, &[("content-type", content_type)], body)
    }

    /// Sends a body to a server that may end meanwhile: no answer, or half of one, is an error.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: String,
    ) -> Result<Answer, String> {
        let response = self.ask(method, path, &[("content-type", content_type)], body)?;
        Answer::try_of(format!("{method} {path}"), response)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.exchange("GET", path, &[], "")
    }

    #[track_caller]
    pub fn delete(&self, path: &str) -> Answer {
        self.exchange("DELETE", path, &[], "")
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "application/json", body.to_string())
    }

    #[track_caller]
    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, "application/json", body.to_string())
    }

    #[track_caller]
    pub fn merge(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, "application/merge-patch+json", body.to_string())
    }

    #[track_caller]
    pub fn strategic(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, "application/strategic-merge-patch+json", body.to_string())
    }

    /// The events of a watch until the server ends it after `seconds`. `path` may carry a query.
    #[track_caller]
    pub fn watch(&self, path: &str, seconds: u32) -> Watch {
        let joint = if path.contains('?') { '&' } else { '?' };
        self.watch_as(&format!("{path}{joint}watch=true&timeoutSeconds={seconds}"), &[])
    }

    /// The events of a watch whose query is complete.
    #[track_caller]
    pub fn watch_as(&self, path: &str, headers: &[(&str, &str)]) -> Watch {
        let response = self.ask("GET", path, headers, "").unwrap();
        if response.status() == 200 {
            return Watch { body: response.into_body(), read: Vec::new() };
        }
        let answer = Answer::of(format!("GET {path}"), response);
        panic!("GET {path}: {} {}", answer.code, answer.text());
    }

    /// Waits until an object of a collection (as a watch shows it) is as wanted.
    #[track_caller]
    pub fn until(&self, path: &str, seconds: u32, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Vec::new();
        for event in self.watch(path, seconds) {
            if event["type"] != "DELETED" && wanted(&event["object"]) {
                return event["object"].clone();
            }
            seen.push(event.to_string());
        }
        panic!("{path}: not seen in {seconds} s: {seen:#?}");
    }
}

/// A watch's events, one JSON document a line.
pub struct Watch {
    body: Incoming,
    read: Vec<u8>,
}

impl Iterator for Watch {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let next = runtime().block_on(async { tokio::time::timeout(TIMEOUT, self.body.frame()).await });
            let data = next.expect("a watch neither went on nor ended")?.ok()?.into_data();
            self.read.extend_from_slice(&data.unwrap_or_default());
        }
    }
}

/// What the server answered, with the request for the messages of failures.
pub struct Answer {
    asked: String,
    /// The HTTP status.
    pub code: u16,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The answer's body.
    pub body: Vec<u8>,
}

impl Answer {
    fn try_of(asked: String, response: Response<Incoming>) -> Result<Self, String> {
        let (head, body) = response.into_parts();
        let read = runtime().block_on(async { tokio::time::timeout(TIMEOUT, body.collect()).await });
        let body = read
            .map_err(|_| format!("{asked}: the answer's body does not end"))?
            .map_err(|error| format!("{asked}: {error:?}"))?;
        let body = body.to_bytes().to_vec();
        Ok(Self { asked, code: head.status.as_u16(), headers: head.headers, body })
    }

    #[track_caller]
    fn of(asked: String, response: Response<Incoming>) -> Self {
        Self::try_of(asked, response).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body, after a success of this code.
    #[track_caller]
    pub fn is(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}: {}", self.asked, self.text());
        if self.body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&self.body).unwrap_or_default()
        }
    }

    /// A Status that refuses: its code, its reason ("" for none) and words of its message.
    #[track_caller]
    pub fn refused(&self, code: u16, reason: &str, words: &[&str]) -> Value {
        let status = self.is(code);
        let told = || format!("{}: {status}", self.asked);
        assert_eq!(status["kind"], "Status", "{}: {}", self.asked, self.text());
        assert_eq!(status["status"], "Failure", "{}", told());
        assert_eq!(status["code"], json!(code), "{}", told());
        assert_eq!(status["reason"].as_str().unwrap_or_default(), reason, "{}", told());
        for word in words {
            let message = status["message"].as_str().unwrap();
            assert!(message.contains(word), "{} lacks {word:?}", told());
        }
        status
    }

    /// 403 by the authoriser: who may not do what.
    #[track_caller]
    pub fn forbidden(&self, words: &[&str]) {
        self.refused(403, "Forbidden", words);
    }
}
