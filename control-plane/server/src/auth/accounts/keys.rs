//! The keys of service accounts' tokens: one that signs, and those that verify.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::SigningKey;
use serde_json::{Value, json};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::base64;
use crate::kubeconfig::write_private;
use crate::tls::TlsError;

const REMEDY: &str = "a key for service accounts' tokens is RSA (2048 bits or more) or EC on P-256, in PEM (PKCS#1, PKCS#8, SEC1, or a PUBLIC KEY where it only verifies)";
const P256: &str = "1.2.840.10045.3.1.7";
/// Bytes of a coordinate on P-256.
const COORDINATE: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Es256,
    Rs256,
}

/// A key that verifies.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    id: String,
    algorithm: Algorithm,
    /// The point, or the RSAPublicKey.
    bytes: Vec<u8>,
    /// `(n, e)` or `(x, y)`.
    numbers: (Vec<u8>, Vec<u8>),
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// For other kinds of keys.
    fn read(der: &[u8]) -> Result<Self, String> {
        let (_, info) =
            SubjectPublicKeyInfo::from_der(der).map_err(|error| format!("is damaged ({error})"))?;
        let bytes = info.subject_public_key.data.to_vec();
        let digest = ring::digest::digest(&ring::digest::SHA256, der);
        let id = base64::encode(digest.as_ref());
        let plain = |number: &[u8]| {
            let zeros = number.iter().take_while(|byte| **byte == 0).count();
            number[zeros..].to_vec()
        };
        match info.parsed() {
            Ok(Parsed::RSA(key)) => {
                let numbers = (plain(key.modulus), plain(key.exponent));
                if numbers.0.len() * 8 < 2048 {
                    return Err("is an RSA key of less than 2048 bits".into());
                }
                Ok(Self { id, algorithm: Algorithm::Rs256, bytes, numbers })
            }
            Ok(Parsed::EC(_)) => {
                let curve = info.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
                if curve.map(|curve| curve.to_id_string()).as_deref() != Some(P256)
                    || bytes.len() != 1 + 2 * COORDINATE
                {
                    return Err("is an EC key on another curve than P-256".into());
                }
                let numbers = (bytes[1..=COORDINATE].to_vec(), bytes[1 + COORDINATE..].to_vec());
                Ok(Self { id, algorithm: Algorithm::Es256, bytes, numbers })
            }
            _ => Err("is neither an RSA nor an EC key".into()),
        }
    }

    /// The key's id in tokens.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of its algorithm in tokens.
    pub fn algorithm(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Es256 => "ES256",
            Algorithm::Rs256 => "RS256",
        }
    }

    /// Whether a signature is this key's.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self.algorithm {
            Algorithm::Es256 => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.bytes).verify(message, signature)
            }
            Algorithm::Rs256 => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.bytes).verify(message, signature)
            }
        };
        verified.is_ok()
    }

    /// As a JSON web key.
    pub fn to_jwk(&self) -> Value {
        let (first, second) = (base64::encode(&self.numbers.0), base64::encode(&self.numbers.1));
        let mut key = json!({"use": "sig", "kid": self.id, "alg": self.algorithm()});
        match self.algorithm {
            Algorithm::Es256 => {
                key["kty"] = json!("EC");
                key["crv"] = json!("P-256");
                key["x"] = json!(first);
                key["y"] = json!(second);
            }
            Algorithm::Rs256 => {
                key["kty"] = json!("RSA");
                key["n"] = json!(first);
                key["e"] = json!(second);
            }
        }
        key
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The keys of an issuer. Its own verifies too, and stands first.
pub struct Keys {
    private: Arc<dyn SigningKey>,
    verifying: Vec<PublicKey>,
    #[cfg(test)]
    pem: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("verifying", &self.verifying).finish_non_exhaustive()
    }
}

impl Keys {
    /// The keys that the flags name; where they name none, one that is kept at `own` and made there at first.
    ///
    /// # Errors
    /// [`TlsError`] naming the file.
    pub fn open(own: &Path, signing: Option<&Path>, verifying: &[PathBuf]) -> Result<Self, TlsError> {
        let path = signing.unwrap_or(own);
        let fail = |path: &Path, problem: String| TlsError::new(path, problem, REMEDY);
        let text = match crate::tls::existing(path, REMEDY)? {
            Some(text) => text,
            None if signing.is_none() => {
                let made = rcgen::KeyPair::generate().map_err(|error| fail(path, error.to_string()))?;
                let text = made.serialize_pem();
                write_private(path, text.as_bytes())
                    .map_err(|error| fail(path, format!("cannot be written ({})", error.error)))?;
                text
            }
            None => return Err(fail(path, "is not there".into())),
        };
        let mut keys = Self::of_private(&text).map_err(|problem| fail(path, problem))?;
        for path in verifying {
            let text = crate::tls::read_text(path, REMEDY)?;
            for key in public_keys(&text).map_err(|problem| fail(path, problem))? {
                if !keys.verifying.contains(&key) {
                    keys.verifying.push(key);
                }
            }
        }
        Ok(keys)
    }

    /// The keys of one private key in PEM.
    ///
    /// # Errors
    /// When it is none that signs.
    pub fn of_private(text: &str) -> Result<Self, String> {
        let private = private_key(text)?;
        let public = public_of(private.as_ref())?;
        Ok(Self {
            private,
            verifying: vec![public],
            #[cfg(test)]
            pem: text.to_owned(),
        })
    }

    #[cfg(test)]
    pub(super) fn private_pem(&self) -> Option<String> {
        Some(self.pem.clone())
    }

    /// The key that signs.
    pub fn signing(&self) -> Option<&PublicKey> {
        self.verifying.first()
    }

    /// The keys that verify.
    pub fn verifying(&self) -> &[PublicKey] {
        &self.verifying
    }

    /// A signature in the form of JSON web tokens.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let wanted = [SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::RSA_PKCS1_SHA256];
        let signer = self.private.choose_scheme(&wanted).ok_or("the key cannot sign tokens")?;
        let signature = signer.sign(message).map_err(|error| error.to_string())?;
        match signer.scheme() {
            SignatureScheme::ECDSA_NISTP256_SHA256 => {
                fixed(&signature).ok_or_else(|| "the signature is damaged".to_owned())
            }
            _ => Ok(signature),
        }
    }
}

fn private_key(text: &str) -> Result<Arc<dyn SigningKey>, String> {
    let der = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| "holds no PRIVATE KEY in PEM that can be read without a password".to_owned())?;
    any_supported_type(&der).map_err(|error| format!("holds a key that cannot sign ({error})"))
}

fn public_of(private: &dyn SigningKey) -> Result<PublicKey, String> {
    let public = private.public_key().ok_or("holds a key whose public part is unknown")?;
    PublicKey::read(&public)
}

/// All keys of a PEM text: public ones, those of certificates, and the public parts of private ones.
fn public_keys(text: &str) -> Result<Vec<PublicKey>, String> {
    let mut keys = Vec::new();
    for der in SubjectPublicKeyInfoDer::pem_slice_iter(text.as_bytes()).flatten() {
        keys.push(PublicKey::read(&der)?);
    }
    for der in CertificateDer::pem_slice_iter(text.as_bytes()).flatten() {
        let (_, parsed) = x509_parser::parse_x509_certificate(&der)
            .map_err(|error| format!("holds a damaged certificate ({error})"))?;
        keys.push(PublicKey::read(parsed.public_key().raw)?);
    }
    if text.contains("PRIVATE KEY") {
        keys.push(public_of(private_key(text)?.as_ref())?);
    }
    if keys.is_empty() { Err("holds no key".into()) } else { Ok(keys) }
}

/// An ECDSA signature as two numbers of fixed length, out of its DER form.
fn fixed(der: &[u8]) -> Option<Vec<u8>> {
    let (tag, rest) = der.split_first()?;
    let (length, rest) = rest.split_first()?;
    if *tag != 0x30 || usize::from(*length) != rest.len() {
        return None;
    }
    let mut out = Vec::with_capacity(2 * COORDINATE);
    let mut rest = rest;
    for _ in 0..2 {
        let (tag, after) = rest.split_first()?;
        let (length, after) = after.split_first()?;
        if *tag != 0x02 || usize::from(*length) > after.len() {
            return None;
        }
        let (number, after) = after.split_at(usize::from(*length));
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let number = &number[zeros..];
        out.extend(std::iter::repeat_n(0, COORDINATE.checked_sub(number.len())?));
        out.extend_from_slice(number);
        rest = after;
    }
    rest.is_empty().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_any_length_become_fixed_and_verify() {
        let keys = Keys::of_private(&rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        // Numbers with leading zeros come up once in 256 times.
        for n in 0..600_u32 {
            let message = n.to_le_bytes();
            let signature = keys.sign(&message).unwrap();
            assert_eq!(signature.len(), 64);
            assert!(keys.verifying()[0].verifies(&message, &signature));
            assert!(!keys.verifying()[0].verifies(b"other", &signature));
        }
        for bad in [&[][..], &[0x30, 2, 2, 0], &[0x30, 6, 2, 1, 1, 2, 9, 1], &[0x31, 0]] {
            assert_eq!(fixed(bad), None, "{bad:?}");
        }
        assert_eq!(fixed(&[0x30, 7, 2, 1, 5, 2, 2, 0, 0x81]).map(|out| (out[31], out[63])), Some((5, 0x81)));
    }

    #[test]
    fn the_own_key_is_made_once_and_kept_for_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sa.key");
        let first = Keys::open(&path, None, &[]).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Keys::open(&path, None, &[]).unwrap().verifying(), first.verifying());
        // Tokens of an older key go on being accepted when that key is named.
        let newer = dir.path().join("newer.key");
        std::fs::write(&newer, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        let both = Keys::open(Path::new("/nonexistent"), Some(&newer), std::slice::from_ref(&path)).unwrap();
        assert_eq!(both.verifying().len(), 2);
        assert_eq!(both.verifying()[1], first.verifying()[0]);
        let refused = |text: &str, word: &str| {
            std::fs::write(&newer, text).unwrap();
            let error = Keys::open(&path, Some(&newer), &[]).unwrap_err().to_string();
            assert!(error.contains("newer.key") && error.contains(word), "{error}");
        };
        refused("rubbish", "holds no PRIVATE KEY");
        let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        refused(&p384.serialize_pem(), "P-256");
        let gone = Keys::open(&path, Some(Path::new("/nonexistent/x")), &[]).unwrap_err().to_string();
        assert!(gone.contains("/nonexistent/x"), "{gone}");
    }
}
