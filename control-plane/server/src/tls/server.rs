//! The server's side of TLS: which certificate it shows, and whose clients it takes.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use rustls::{ServerConfig, crypto};
use tokio_rustls::TlsAcceptor;

use super::files::{TlsError, certificates, private_key, read_text};
use super::{Authority, Clients, unix_time};
use crate::clock::Clock;
use crate::config::Config;

const CERTIFICATE: &str =
    "--tls-cert-file wants the server's certificate in PEM, followed by those that lead to its authority";
const KEY: &str = "--tls-private-key-file wants the key of --tls-cert-file in PEM: PKCS#1, PKCS#8 or SEC1, RSA (2048 bits or more) or EC (P-256, P-384), without a password";
const AUTHORITIES: &str =
    "--client-ca-file wants the certificates, in PEM, of the authorities that issue clients' certificates";

/// The server's identity.
pub struct Identity {
    /// For the listener.
    pub acceptor: TlsAcceptor,
    /// Whose clients are taken.
    pub clients: Clients,
    /// What a client has to trust in order to trust this server, as PEM.
    pub trust: String,
    /// Issues clients' certificates; absent when the user brought the clients' authority.
    pub authority: Option<Authority>,
}

struct Wall(Arc<dyn Clock>);

impl std::fmt::Debug for Wall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wall")
    }
}

impl TimeProvider for Wall {
    fn current_time(&self) -> Option<UnixTime> {
        Some(unix_time(self.0.wall()))
    }
}

/// The identity that the flags ask for, made under the data directory where the user brings none.
///
/// # Errors
/// [`TlsError`] naming the file, what is wrong with it and the remedy.
pub fn acceptor(config: &Config, listen: IpAddr, clock: &Arc<dyn Clock>) -> Result<Identity, TlsError> {
    let provider = Arc::new(crypto::ring::default_provider());
    let open = || Authority::open(&config.data_dir.join("pki"), clock.wall());
    let brought = config.tls_cert_file.is_some() && config.client_ca_file.is_some();
    let own = if brought { None } else { Some(open()?) };
    let (chain, key, trust, key_path) = match (&config.tls_cert_file, &config.tls_private_key_file) {
        (Some(certificate), Some(key)) => {
            (read_text(certificate, CERTIFICATE)?, read_text(key, KEY)?, None, key.clone())
        }
        _ => {
            let Some(authority) = &own else {
                return Err(TlsError::new(&config.data_dir, "holds no authority", KEY));
            };
            let issued = authority.server(listen, &config.tls_san)?;
            let path = config.data_dir.join("pki/server.key");
            (issued.certificate, issued.key, Some(authority.certificate().to_owned()), path)
        }
    };
    let chain_path = config.tls_cert_file.clone().unwrap_or_else(|| config.data_dir.join("pki/server.crt"));
    let kept = config.data_dir.join("pki/ca.crt");
    let (clients_path, clients_text) = match (&config.client_ca_file, &own) {
        (Some(path), _) => (path.clone(), read_text(path, AUTHORITIES)?),
        (None, Some(own)) => (kept, own.certificate().to_owned()),
        (None, None) => return Err(TlsError::new(&kept, "holds no authority", AUTHORITIES)),
    };
    let authorities = certificates(&clients_path, &clients_text, AUTHORITIES)?;
    let clients = Clients::of(authorities, &provider)
        .map_err(|problem| TlsError::new(&clients_path, problem, AUTHORITIES))?;
    let certificates = certificates(&chain_path, &chain, CERTIFICATE)?;
    warn_of_time(&chain_path, &certificates[0], clock.wall());
    let key = private_key(&key_path, &key, KEY)?;
    let mut server = server(&provider, clients.clone(), clock, certificates, key).map_err(|error| {
        TlsError::new(&key_path, format!("does not serve with {} ({error})", chain_path.display()), KEY)
    })?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Clients of a self-made server trust its certificate itself, or the authority that the user named.
    let trust = trust.unwrap_or_else(|| match &config.client_ca_file {
        Some(_) => format!("{chain}\n{clients_text}"),
        None => chain,
    });
    let authority = own.filter(|_| config.client_ca_file.is_none());
    Ok(Identity { acceptor: TlsAcceptor::from(Arc::new(server)), clients, trust, authority })
}

fn server(
    provider: &Arc<CryptoProvider>,
    clients: Clients,
    clock: &Arc<dyn Clock>,
    chain: Vec<rustls::pki_types::CertificateDer<'static>>,
    key: rustls::pki_types::PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    ServerConfig::builder_with_details(Arc::clone(provider), Arc::new(Wall(Arc::clone(clock))))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(clients))
        .with_single_cert(chain, key)
}

/// Clients refuse such a server; better to hear of it here.
fn warn_of_time(path: &Path, certificate: &[u8], now: Timestamp) {
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else { return };
    let (from, until) = (parsed.validity().not_before, parsed.validity().not_after);
    if until.timestamp() < now.as_second() {
        tracing::warn!(path = %path.display(), "the server's certificate expired at {until}: clients will refuse it");
    } else if from.timestamp() > now.as_second() {
        tracing::warn!(path = %path.display(), "the server's certificate is not valid before {from}: clients will refuse it");
    }
}
