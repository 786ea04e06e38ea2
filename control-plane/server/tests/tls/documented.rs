//! The certificate that docs/identity.md makes by hand: its commands are run as they stand there, and a client built on rustls,
//! which takes fewer certificates than openssl and Go do, shows what they made.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{command, have, ok};
use crate::support::Process;

/// The commands of the section, each on one line.
fn commands() -> Vec<String> {
    let page = include_str!("../../../../docs/identity.md");
    let section = page.split("### Certificates of your own").nth(1).expect("the section");
    let block =
        section.split("```console\n").nth(1).and_then(|rest| rest.split("```").next()).expect("its block");
    let joined = block.replace("\\\n", " ");
    joined.lines().map(|line| line.strip_prefix("$ ").expect("a command").to_owned()).collect()
}

/// Who shows the certificate `scheduler` of this directory, and trusts the authority of the control plane.
fn client(dir: &Path) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_file_iter(dir.join("plane/pki/ca.crt")).unwrap() {
        roots.add(authority.unwrap()).unwrap();
    }
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(dir.join("scheduler.crt")).unwrap().collect();
    let key = PrivateKeyDer::from_pem_file(dir.join("scheduler.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    config.with_root_certificates(roots).with_client_auth_cert(chain.unwrap(), key).unwrap()
}

fn get(config: &Arc<ClientConfig>, url: &str, path: &str) -> String {
    let address = url.strip_prefix("https://").unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let session = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut stream = StreamOwned::new(session, TcpStream::connect(address).unwrap());
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{error}"),
    }
    String::from_utf8(answer).unwrap()
}

#[test]
fn the_certificate_of_the_page_is_one_that_rustls_shows() {
    if !have("openssl") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let process = Process::start(command(&dir.path().join("plane")));
    let commands = commands();
    let (asking, making): (Vec<&String>, Vec<&String>) =
        commands.iter().partition(|line| line.starts_with("kubectl "));
    assert!(making.iter().any(|line| line.starts_with("openssl x509 ")), "{making:?}");
    for line in making {
        ok("bash", dir.path(), &["-ec", line]);
    }
    let config = Arc::new(client(dir.path()));
    let pods = get(&config, &process.url, "/api/v1/pods");
    assert!(pods.starts_with("HTTP/1.1 200"), "{pods}");
    let secrets = get(&config, &process.url, "/api/v1/secrets");
    assert!(secrets.starts_with("HTTP/1.1 403") && secrets.contains("system:kube-scheduler"), "{secrets}");
    if have("kubectl") {
        for line in asking {
            ok("bash", dir.path(), &["-ec", &line.replace("https://127.0.0.1:6443", &process.url)]);
        }
    }
}
