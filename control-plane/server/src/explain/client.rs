//! One request to a control plane that a kubeconfig names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::base64;

/// What a kubeconfig's current context says.
struct Access {
    /// `https://ADDRESS:PORT`.
    server: http::Uri,
    cluster: Value,
    user: Value,
    namespace: String,
    /// What relative paths in it start from.
    directory: PathBuf,
}

impl Access {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let told = || format!("{}: give --kubeconfig a file that the control plane wrote", path.display());
        let text = std::fs::read_to_string(path).with_context(told)?;
        let config: Value = serde_saphyr::from_str(&text).with_context(told)?;
        let named = |list: &str, name: &Value, what: &str| {
            let entries = config[list].as_array().into_iter().flatten();
            let found = entries.into_iter().find(|entry| entry["name"] == *name);
            found
                .map(|entry| entry[what].clone())
                .with_context(|| format!("it has no {what} {name}"))
                .with_context(told)
        };
        let context = named("contexts", &config["current-context"], "context")?;
        let cluster = named("clusters", &context["cluster"], "cluster")?;
        let server = cluster["server"].as_str().context("its cluster has no server").with_context(told)?;
        Ok(Self {
            server: server.parse().with_context(|| format!("{server} is no URL")).with_context(told)?,
            user: named("users", &context["user"], "user")?,
            namespace: context["namespace"].as_str().unwrap_or("default").to_owned(),
            directory: path.parent().unwrap_or(Path::new(".")).to_owned(),
            cluster,
        })
    }

    /// A field that is given in base64, or as a file.
    fn pem(&self, of: &Value, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        if let Some(data) = of[format!("{name}-data")].as_str() {
            return Ok(Some(base64::decode(data).with_context(|| format!("{name}-data is no base64"))?));
        }
        let read = |file: &str| std::fs::read(self.directory.join(file)).with_context(|| file.to_owned());
        of[name].as_str().map(read).transpose()
    }

    fn tls(&self) -> anyhow::Result<ClientConfig> {
        let mut trusted = RootCertStore::empty();
        let authority = self.pem(&self.cluster, "certificate-authority")?;
        let authority = authority.context("its cluster has no certificate-authority")?;
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            trusted.add(certificate?)?;
        }
        let config = ClientConfig::builder().with_root_certificates(trusted);
        let chain = self.pem(&self.user, "client-certificate")?;
        Ok(match chain.zip(self.pem(&self.user, "client-key")?) {
            Some((chain, key)) => {
                let chain = CertificateDer::pem_slice_iter(&chain).collect::<Result<Vec<_>, _>>()?;
                config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(&key)?)?
            }
            None => config.with_no_client_auth(),
        })
    }
}

/// The explanation for a pod.
///
/// # Errors
/// When the kubeconfig cannot be used, the control plane cannot be reached, or it refuses; with what it said.
pub async fn fetch(pod: &str, namespace: Option<&str>, kubeconfig: &Path) -> anyhow::Result<Value> {
    let access = Access::read(kubeconfig)?;
    let namespace = namespace.unwrap_or(&access.namespace);
    anyhow::ensure!(
        is_name(namespace),
        "`{namespace}` is no namespace: `kubectl get namespaces` lists those that are there"
    );
    anyhow::ensure!(
        is_name(pod),
        "`{pod}` is no name of a pod: `kubectl get pods -n {namespace}` lists those that are there"
    );
    let path = format!("/explain-schedule/{namespace}/{pod}");
    let host = access.server.host().context("the server has no address")?;
    let secure = access.server.scheme() == Some(&http::uri::Scheme::HTTPS);
    let port = access.server.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let address = host.trim_matches(['[', ']']);
    let stream = TcpStream::connect((address, port))
        .await
        .with_context(|| format!("{host}:{port} cannot be reached"))?;
    if secure {
        let connector = TlsConnector::from(Arc::new(access.tls()?));
        let stream = connector.connect(ServerName::try_from(address.to_owned())?, stream).await?;
        ask(stream, &access, &path).await
    } else {
        ask(stream, &access, &path).await
    }
}

/// Whether something can be called that, and so may stand in a path.
fn is_name(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte))
}

async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    access: &Access,
    path: &str,
) -> anyhow::Result<Value> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let authority = access.server.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    // Over plain HTTP a kubeconfig carries its token in the URL, as a password.
    let (credentials, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut request = http::Request::get(path).header(http::header::HOST, host);
    let password = credentials.split_once(':').map(|(_, password)| password);
    if let Some(token) = access.user["token"].as_str().or(password) {
        request = request.header(http::header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let response = sender.send_request(request.body(Empty::<bytes::Bytes>::new())?).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    driver.abort();
    let answer: Value =
        serde_json::from_slice(&body).with_context(|| format!("it answered {status}, and no JSON"))?;
    anyhow::ensure!(status.is_success(), "{}", answer["message"].as_str().unwrap_or(status.as_str()));
    Ok(answer)
}
