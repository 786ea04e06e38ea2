//! An etcd that speaks TLS and asks for a certificate.

use std::path::Path;

use control_plane::store::{EtcdStore, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use crate::etcd::Etcd;

/// An authority, and a certificate that is good for both sides, as files below `dir`.
fn certificates(dir: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &authority).unwrap();
    std::fs::write(dir.join("ca.crt"), authority.pem()).unwrap();
    std::fs::write(dir.join("etcd.crt"), certificate.pem()).unwrap();
    std::fs::write(dir.join("etcd.key"), key.serialize_pem()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_with_certificates_is_used_with_them_and_not_without() {
    let dir = tempfile::tempdir().unwrap();
    certificates(dir.path());
    let file = |name: &str| dir.path().join(name);
    let text = |name: &str| file(name).display().to_string();
    let flags = [
        ["--cert-file".to_owned(), text("etcd.crt")],
        ["--key-file".to_owned(), text("etcd.key")],
        ["--trusted-ca-file".to_owned(), text("ca.crt")],
    ];
    let flags = flags.into_iter().flatten().chain(["--client-cert-auth".to_owned()]).collect();
    let Some(etcd) = Etcd::open(flags) else { return };
    let (ca, crt, key) = (file("ca.crt"), file("etcd.crt"), file("etcd.key"));
    let full = TlsFiles::read(Some(&ca), Some((&crt, &key))).unwrap();
    EtcdStore::open(&[etcd.url()], "/registry", &full, 100).await.unwrap();
    let anonymous = TlsFiles::read(Some(&ca), None).unwrap();
    let refused = EtcdStore::open(&[etcd.url()], "/registry", &anonymous, 100).await.unwrap_err();
    assert!(refused.to_string().contains("--etcd-servers"), "{refused}");
    let missing = TlsFiles::read(Some(&file("absent.crt")), None).unwrap_err();
    assert!(missing.to_string().contains("absent.crt"), "{missing}");
}
