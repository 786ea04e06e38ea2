//! The authority of a data directory: its own certificate, and those that it issues for the server and its clients.
//!
//! Everything is made once and kept, so that kubeconfigs outlive a restart; what soon runs out, or does not name where the
//! server listens, is made anew at a start.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::OffsetDateTime;
use x509_parser::prelude::{GeneralName, X509Certificate};

use super::clients::signed_with;
use super::files::{TlsError, certificates, existing};
use crate::kubeconfig::write_private;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// How long the authority's own certificate holds, in seconds.
const AUTHORITY: i64 = 3650 * DAY;
/// How long what it issues holds, in seconds.
const ISSUED: i64 = 825 * DAY;
/// What holds for less than this is made anew, in seconds.
const SOON: i64 = 365 * DAY;
/// Names by which pods and tools know the server.
const NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];
/// The address of the service `kubernetes`.
const SERVICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 1));
const REMEDY: &str =
    "remove DATA_DIR/pki to have everything made anew (kubeconfigs written before then stop working)";

/// A certificate with its key, as PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Issues certificates.
pub struct Authority {
    directory: PathBuf,
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
    now: Timestamp,
}

/// What a certificate is for.
enum Purpose<'a> {
    Server(&'a [IpAddr], &'a [String]),
    Client(&'a str, Option<&'a str>),
}

impl Authority {
    /// The authority kept in `directory`, made where there is none.
    ///
    /// # Errors
    /// When its files are damaged, half there, run out, or cannot be written.
    pub fn open(directory: &Path, now: Timestamp) -> Result<Self, TlsError> {
        let (certificate_path, key_path) = (directory.join("ca.crt"), directory.join("ca.key"));
        let fail = |path: &Path, problem: &dyn ToString| TlsError::new(path, problem.to_string(), REMEDY);
        let kept = (existing(&certificate_path, REMEDY)?, existing(&key_path, REMEDY)?);
        let (certificate, key) = match kept {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) => {
                let made = new_authority(now).map_err(|error| fail(&certificate_path, &error))?;
                keep(&key_path, &made.key)?;
                keep(&certificate_path, &made.certificate)?;
                (made.certificate, made.key)
            }
            (Some(_), None) => return Err(fail(&key_path, &"is missing beside ca.crt")),
            (None, Some(_)) => return Err(fail(&certificate_path, &"is missing beside ca.key")),
        };
        let ders = certificates(&certificate_path, &certificate, REMEDY)?;
        let until = until(&ders[0]);
        if until <= now.as_second() {
            return Err(fail(&certificate_path, &"the authority's certificate has run out"));
        }
        if until < now.as_second() + ISSUED {
            tracing::warn!(path = %certificate_path.display(), "the authority's certificate runs out within {} days; {REMEDY}", (until - now.as_second()) / DAY);
        }
        let key = KeyPair::from_pem(&key).map_err(|error| fail(&key_path, &error))?;
        let (_, parsed) =
            x509_parser::parse_x509_certificate(&ders[0]).map_err(|error| fail(&certificate_path, &error))?;
        if parsed.public_key().subject_public_key.data != key.public_key_raw() {
            return Err(fail(&key_path, &"is not the key of ca.crt"));
        }
        let issuer =
            Issuer::from_ca_cert_pem(&certificate, key).map_err(|error| fail(&certificate_path, &error))?;
        Ok(Self { directory: directory.into(), certificate, issuer, now })
    }

    /// Its own certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The server's certificate for these addresses and names besides the usual ones.
    ///
    /// # Errors
    /// When the files cannot be read or written, or a name is no DNS name.
    pub fn server(&self, listen: IpAddr, names: &[String]) -> Result<Issued, TlsError> {
        let mut addresses =
            vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), SERVICE, listen];
        if listen.is_unspecified() {
            addresses.extend(outward());
        }
        let mut all: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
        all.extend(host_name());
        for name in names {
            match name.parse() {
                Ok(address) => addresses.push(address),
                Err(_) => all.push(name.clone()),
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        self.issue("server", &Purpose::Server(&addresses, &all))
    }

    /// A client's certificate for a user, who is in `group` where one is given. `file` names its files.
    ///
    /// # Errors
    /// When the files cannot be read or written.
    pub fn client(&self, file: &str, user: &str, group: Option<&str>) -> Result<Issued, TlsError> {
        self.issue(file, &Purpose::Client(user, group))
    }

    fn issue(&self, file: &str, purpose: &Purpose<'_>) -> Result<Issued, TlsError> {
        let certificate_path = self.directory.join(format!("{file}.crt"));
        let key_path = self.directory.join(format!("{file}.key"));
        if let (Some(certificate), Some(key)) =
            (existing(&certificate_path, REMEDY)?, existing(&key_path, REMEDY)?)
            && self.still_good(&certificate, &key, purpose)
        {
            return Ok(Issued { certificate, key });
        }
        let made = self
            .sign(purpose)
            .map_err(|error| TlsError::new(&certificate_path, error, "check the names in --tls-san"))?;
        keep(&key_path, &made.key)?;
        keep(&certificate_path, &made.certificate)?;
        tracing::info!(certificate = %certificate_path.display(), "a certificate was issued");
        Ok(made)
    }

    /// Whether a kept certificate is this authority's, holds for long enough, belongs to its key and says what it should.
    fn still_good(&self, certificate: &str, key: &str, purpose: &Purpose<'_>) -> bool {
        let Ok(ders) = certificates(Path::new(""), certificate, "") else { return false };
        let Ok((_, parsed)) = x509_parser::parse_x509_certificate(&ders[0]) else { return false };
        let Ok(key) = KeyPair::from_pem(key) else { return false };
        let Ok(own) = certificates(Path::new(""), &self.certificate, "") else { return false };
        until(&ders[0]) > self.now.as_second() + SOON
            && parsed.validity().not_before.timestamp() <= self.now.as_second()
            && parsed.public_key().subject_public_key.data == key.public_key_raw()
            && signed_with(&parsed, &own[0])
            && says(&parsed, purpose)
    }

    fn sign(&self, purpose: &Purpose<'_>) -> Result<Issued, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = match purpose {
            Purpose::Server(addresses, names) => {
                let addresses = addresses.iter().map(ToString::to_string);
                CertificateParams::new(names.iter().cloned().chain(addresses).collect::<Vec<_>>())?
            }
            Purpose::Client(..) => CertificateParams::default(),
        };
        params.distinguished_name = rcgen::DistinguishedName::new();
        let usage = match purpose {
            Purpose::Server(..) => {
                params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
                ExtendedKeyUsagePurpose::ServerAuth
            }
            Purpose::Client(user, group) => {
                if let Some(group) = group {
                    params.distinguished_name.push(DnType::OrganizationName, *group);
                }
                params.distinguished_name.push(DnType::CommonName, *user);
                ExtendedKeyUsagePurpose::ClientAuth
            }
        };
        params.extended_key_usages = vec![usage];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = validity(self.now, ISSUED);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn new_authority(now: Timestamp) -> Result<Issued, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("rigor-ca@{}", now.as_second()));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    (params.not_before, params.not_after) = validity(now, AUTHORITY);
    let certificate = params.self_signed(&key)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// From a little before now, for clients whose clocks are behind, and for so many seconds.
fn validity(now: Timestamp, seconds: i64) -> (OffsetDateTime, OffsetDateTime) {
    let at = |second: i64| OffsetDateTime::from_unix_timestamp(second).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let from = now.checked_sub(1.hour()).unwrap_or(now).as_second();
    (at(from), at(from + seconds))
}

fn until(der: &[u8]) -> i64 {
    let parsed = x509_parser::parse_x509_certificate(der);
    parsed.map_or(0, |(_, certificate)| certificate.validity().not_after.timestamp())
}

/// Whether a certificate names all that it should.
fn says(certificate: &X509Certificate<'_>, purpose: &Purpose<'_>) -> bool {
    match purpose {
        Purpose::Server(addresses, names) => {
            let Ok(Some(held)) = certificate.subject_alternative_name() else { return false };
            let held = &held.value.general_names;
            let address = |address: &IpAddr| {
                let octets = match address {
                    IpAddr::V4(address) => address.octets().to_vec(),
                    IpAddr::V6(address) => address.octets().to_vec(),
                };
                held.iter().any(|name| matches!(name, GeneralName::IPAddress(bytes) if **bytes == *octets))
            };
            let name = |name: &String| {
                held.iter().any(|one| matches!(one, GeneralName::DNSName(dns) if dns == name))
            };
            addresses.iter().all(address) && names.iter().all(name)
        }
        Purpose::Client(user, group) => {
            let subject = certificate.subject();
            let first = |mut values: Box<dyn Iterator<Item = Option<String>> + '_>| values.next().flatten();
            let text = |value: &x509_parser::prelude::AttributeTypeAndValue<'_>| {
                value.as_str().ok().map(ToOwned::to_owned)
            };
            first(Box::new(subject.iter_common_name().map(text))).as_deref() == Some(user)
                && first(Box::new(subject.iter_organization().map(text))).as_deref() == *group
        }
    }
}

/// The address from which this machine reaches others, found without sending anything.
fn outward() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_unspecified())
}

/// The machine's name, where it is one that a certificate can hold.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_ascii_lowercase();
    let fits = !name.is_empty()
        && name.len() < 254
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    fits.then_some(name)
}

fn keep(path: &Path, content: &str) -> Result<(), TlsError> {
    write_private(path, content.as_bytes())
        .map_err(|error| TlsError::new(path, error.error, "check that --data-dir is writable"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn open(directory: &Path, now: &str) -> Authority {
        Authority::open(directory, at(now)).unwrap()
    }

    #[test]
    fn everything_is_made_once_for_its_owner_only_and_renewed_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let first = open(dir.path(), "2026-01-01T00:00:00Z");
        let server = first.server(loopback, &[]).unwrap();
        let admin = first.client("admin", "kubernetes-admin", Some("system:masters")).unwrap();
        for name in ["ca.key", "server.key", "admin.key"] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let again = open(dir.path(), "2026-06-01T00:00:00Z");
        assert_eq!(again.certificate(), first.certificate());
        assert_eq!(again.server(loopback, &[]).unwrap().certificate, server.certificate);
        assert_eq!(
            again.client("admin", "kubernetes-admin", Some("system:masters")).unwrap().certificate,
            admin.certificate
        );
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        let moved = again.server(other, &[]).unwrap();
        assert_ne!(moved.certificate, server.certificate, "the address was not covered");
        assert_eq!(again.server(loopback, &[]).unwrap().certificate, moved.certificate, "covered already");
        let named = again.server(loopback, &["plane.example.com".into(), "192.0.2.8".into()]).unwrap();
        assert_ne!(named.certificate, moved.certificate);
        let late = open(dir.path(), "2027-12-01T00:00:00Z");
        assert_ne!(late.server(loopback, &[]).unwrap().certificate, named.certificate, "it runs out soon");
        assert_ne!(
            late.client("admin", "kubernetes-admin", Some("system:masters")).unwrap().certificate,
            admin.certificate
        );
    }

    #[test]
    fn what_is_damaged_or_run_out_is_named_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path(), "2026-01-01T00:00:00Z");
        let refused = |now: &str, word: &str| {
            let error = Authority::open(dir.path(), at(now)).err().unwrap().to_string();
            assert!(error.contains(word) && error.contains("DATA_DIR/pki"), "{error}");
        };
        refused("2037-01-01T00:00:00Z", "run out");
        let key = std::fs::read_to_string(dir.path().join("ca.key")).unwrap();
        std::fs::write(dir.path().join("ca.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
        refused("2026-01-01T00:00:00Z", "is not the key of ca.crt");
        std::fs::remove_file(dir.path().join("ca.key")).unwrap();
        refused("2026-01-01T00:00:00Z", "is missing beside ca.crt");
        std::fs::write(dir.path().join("ca.key"), key).unwrap();
        std::fs::write(dir.path().join("ca.crt"), "rubbish").unwrap();
        refused("2026-01-01T00:00:00Z", "holds no CERTIFICATE");
    }
}
