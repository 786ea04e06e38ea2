//! Who a client's certificate stands for (GHOST-05).
//!
//! At the handshake a client only has to hold the key of the certificate that it shows. Whether an authority issued it, and
//! whether it holds now, is judged for the requests: they get 401 in Kubernetes' words, and the log says why. Certificates of
//! version 1, as `openssl x509 -req` makes them without an extension file, are taken too.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, PeerMisbehaved, RootCertStore, SignatureScheme};
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{X509Certificate, X509Version};

use super::unix_time;
use crate::auth::User;

/// More certificates than any client's chain has.
const LONGEST_CHAIN: usize = 8;

/// What a connection's certificate turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// No certificate was shown, or there is no TLS.
    None,
    /// An authority vouches for this user, from one second to another (of the Unix epoch).
    Known {
        /// Who it stands for.
        user: User,
        /// Not before.
        from: i64,
        /// Not after.
        until: i64,
    },
    /// It cannot be taken, for this reason.
    Refused(String),
}

impl Peer {
    /// The user at this time: nothing without a certificate.
    ///
    /// # Errors
    /// Why a certificate does not hold.
    pub fn user_at(&self, now: Timestamp) -> Result<Option<&User>, String> {
        match self {
            Self::None => Ok(None),
            Self::Known { user, from, until } => match now.as_second() {
                second if second < *from => Err(format!("the certificate of {} is not yet valid", user.name)),
                second if second > *until => Err(format!("the certificate of {} has expired", user.name)),
                _ => Ok(Some(user)),
            },
            Self::Refused(why) => Err(why.clone()),
        }
    }
}

/// The authorities whose clients are let in.
#[derive(Clone)]
pub struct Clients {
    chains: Arc<dyn ClientCertVerifier>,
    authorities: Arc<Vec<CertificateDer<'static>>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Clients {
    /// Takes the clients of these authorities.
    ///
    /// # Errors
    /// When none of the certificates can be an authority's.
    pub fn of(
        authorities: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for authority in &authorities {
            roots
                .add(authority.clone())
                .map_err(|error| format!("holds no authority's certificate ({error})"))?;
        }
        let chains = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let chains = chains.allow_unauthenticated().build().map_err(|error| error.to_string())?;
        let algorithms = provider.signature_verification_algorithms;
        Ok(Self { chains, authorities: Arc::new(authorities), algorithms })
    }

    /// Who the chain that a client showed stands for. That the client holds its key was proven in the handshake.
    pub fn judge(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Peer {
        let Some((own, between)) = chain.split_first() else { return Peer::None };
        if chain.len() > LONGEST_CHAIN {
            return Peer::Refused(format!("a chain of {} certificates is too long", chain.len()));
        }
        let (_, parsed) = match x509_parser::parse_x509_certificate(own) {
            Ok(parsed) => parsed,
            Err(error) => return Peer::Refused(format!("the certificate is damaged ({error})")),
        };
        let (from, until) =
            (parsed.validity().not_before.timestamp(), parsed.validity().not_after.timestamp());
        // Whether it holds at the time of a request is judged then; the chain is judged within its time.
        let within = now.as_second().clamp(from, until.max(from));
        let within = Timestamp::from_second(within).unwrap_or(now);
        let vouched = if parsed.version() == X509Version::V1 {
            self.vouched_plainly(&parsed)
        } else {
            let verified = self.chains.verify_client_cert(own, between, unix_time(within));
            verified.map(drop).map_err(|error| error.to_string())
        };
        let subject = parsed.subject().to_string();
        if let Err(why) = vouched {
            return Peer::Refused(format!("the certificate of {subject:?} is not accepted: {why}"));
        }
        let texts = |values: &mut dyn Iterator<Item = Option<String>>| values.flatten().collect::<Vec<_>>();
        let text = |value: &x509_parser::prelude::AttributeTypeAndValue<'_>| {
            value.as_str().ok().map(ToOwned::to_owned)
        };
        let names = texts(&mut parsed.subject().iter_common_name().map(text));
        let groups = texts(&mut parsed.subject().iter_organization().map(text));
        match names.into_iter().next_back().filter(|name| !name.is_empty()) {
            Some(name) => {
                let mut user = User::known(name, groups);
                let digest = ring::digest::digest(&ring::digest::SHA256, own);
                let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
                user.credential_id(&format!("X509SHA256={digest}"));
                Peer::Known { user, from, until }
            }
            None => Peer::Refused(format!("the certificate of {subject:?} has no common name")),
        }
    }

    /// For certificates without extensions: issued by an authority itself.
    fn vouched_plainly(&self, certificate: &X509Certificate<'_>) -> Result<(), String> {
        let by = self.authorities.iter().any(|authority| signed_with(certificate, authority));
        by.then_some(()).ok_or_else(|| "it was issued by an unknown authority".to_owned())
    }

    fn spki(
        &self,
        certificate: &CertificateDer<'_>,
    ) -> Result<SubjectPublicKeyInfoDer<'static>, rustls::Error> {
        let bad = rustls::Error::InvalidCertificate(rustls::CertificateError::BadEncoding);
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|_| bad)?;
        Ok(SubjectPublicKeyInfoDer::from(parsed.public_key().raw.to_vec()))
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("authorities", &self.authorities.len()).finish_non_exhaustive()
    }
}

/// Whether a certificate was signed with the key of another.
pub fn signed_with(certificate: &X509Certificate<'_>, authority: &CertificateDer<'_>) -> bool {
    let Ok((_, authority)) = x509_parser::parse_x509_certificate(authority) else { return false };
    if certificate.issuer() != authority.subject() {
        return false;
    }
    let key = SubjectPublicKeyInfoDer::from(authority.public_key().raw);
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else { return false };
    let (signed, signature) = (certificate.tbs_certificate.as_ref(), &certificate.signature_value.data);
    let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
    algorithms.all.iter().any(|algorithm| key.verify_signature(*algorithm, signed, signature).is_ok())
}

impl ClientCertVerifier for Clients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chains.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        // Judged for its requests.
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let spki = self.spki(certificate)?;
        let bad = rustls::Error::InvalidCertificate(rustls::CertificateError::BadSignature);
        let key = RawPublicKeyEntity::try_from(&spki).map_err(|_| bad.clone())?;
        let known = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        let Some((_, algorithms)) = known else {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        };
        let proven = |algorithm: &&dyn rustls::pki_types::SignatureVerificationAlgorithm| {
            key.verify_signature(*algorithm, message, signed.signature()).is_ok()
        };
        if algorithms.iter().any(proven) { Ok(HandshakeSignatureValid::assertion()) } else { Err(bad) }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature_with_raw_key(message, &self.spki(certificate)?, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };
    use time::OffsetDateTime;

    const NOW: i64 = 1_800_000_000;

    fn authority(name: &str) -> (Issuer<'static, KeyPair>, CertificateDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        (Issuer::new(params, key), certificate.der().clone())
    }

    fn issued(
        by: &Issuer<'static, KeyPair>,
        change: impl FnOnce(&mut CertificateParams),
    ) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "alice");
        params.distinguished_name.push(DnType::OrganizationName, "team");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = at(NOW - 100);
        params.not_after = at(NOW + 100);
        change(&mut params);
        params.signed_by(&key, by).unwrap().der().clone()
    }

    fn at(second: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(second).unwrap()
    }

    fn clients(authority: &CertificateDer<'static>) -> Clients {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Clients::of(vec![authority.clone()], &provider).unwrap()
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_certificate_stands_for_its_name_and_organisations_while_it_holds() {
        let (by, root) = authority("root");
        let peer = clients(&root).judge(&[issued(&by, |_| {})], second(NOW));
        let user = peer.user_at(second(NOW)).unwrap().unwrap();
        assert_eq!(user.name, "alice");
        assert_eq!(user.groups, ["team", "system:authenticated"]);
        assert!(user.extra.values().next().unwrap()[0].starts_with("X509SHA256="));
        assert!(peer.user_at(second(NOW + 100)).is_ok());
        // A connection may outlive its certificate.
        let check = |now: i64, word: &str| {
            let why = peer.user_at(second(now)).unwrap_err();
            assert!(why.contains(word) && why.contains("alice"), "{why}");
        };
        check(NOW + 101, "expired");
        check(NOW - 101, "not yet valid");
        assert_eq!(clients(&root).judge(&[], second(NOW)), Peer::None);
    }

    #[test]
    fn an_expired_or_future_certificate_is_nobodys() {
        let (by, root) = authority("root");
        let check = |from: i64, until: i64, word: &str| {
            let shown = issued(&by, |params| {
                (params.not_before, params.not_after) = (at(from), at(until));
            });
            let why = clients(&root).judge(&[shown], second(NOW)).user_at(second(NOW)).unwrap_err();
            assert!(why.contains(word), "{why}");
        };
        check(NOW - 100, NOW - 1, "expired");
        check(NOW + 1, NOW + 100, "not yet valid");
    }

    #[test]
    fn strangers_servers_and_the_nameless_are_refused() {
        let (by, root) = authority("root");
        let (other, _) = authority("other");
        let (namesake, _) = authority("root");
        let check =
            |shown: CertificateDer<'static>, word: &str| match clients(&root).judge(&[shown], second(NOW)) {
                Peer::Refused(why) => assert!(why.contains(word), "{why}"),
                other => panic!("{other:?}, expected {word}"),
            };
        check(issued(&other, |_| {}), "UnknownIssuer");
        check(issued(&namesake, |_| {}), "not accepted");
        check(
            issued(&by, |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]),
            "not accepted",
        );
        check(
            issued(&by, |params| params.distinguished_name = rcgen::DistinguishedName::new()),
            "no common name",
        );
        check(CertificateDer::from(vec![0x30, 0x03, 1, 2, 3]), "damaged");
        let one = issued(&by, |_| {});
        let long = vec![one; LONGEST_CHAIN + 1];
        assert!(
            matches!(clients(&root).judge(&long, second(NOW)), Peer::Refused(why) if why.contains("too long"))
        );
    }

    #[test]
    fn a_certificate_without_usages_will_do() {
        let (by, root) = authority("root");
        let shown = issued(&by, |params| params.extended_key_usages.clear());
        assert!(clients(&root).judge(&[shown], second(NOW)).user_at(second(NOW)).is_ok());
    }
}
