//! Certificates and keys as files: read with an error that names the file and the remedy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// More than any chain of certificates or key needs, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}; {remedy}")]
pub struct TlsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it. Never part of a key.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

impl TlsError {
    /// An error about a file.
    pub fn new(path: &Path, problem: impl ToString, remedy: impl ToString) -> Self {
        Self { path: path.into(), problem: problem.to_string(), remedy: remedy.to_string() }
    }
}

/// Reads a file of PEM text.
///
/// # Errors
/// When it is absent, unreadable or larger than a megabyte.
pub fn read_text(path: &Path, remedy: &str) -> Result<String, TlsError> {
    let fail = |problem: String| TlsError::new(path, problem, remedy);
    let size = fs::metadata(path).map_err(|error| fail(format!("cannot be read ({error})")))?.len();
    if size > LARGEST {
        return Err(fail(format!("has {size} bytes, which is more than certificates and keys have")));
    }
    fs::read_to_string(path).map_err(|error| fail(format!("cannot be read ({error})")))
}

/// The certificates of a PEM text, in their order.
///
/// # Errors
/// When there are none, or one is damaged.
pub fn certificates(path: &Path, text: &str, remedy: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.map_err(|error| TlsError::new(path, format!("is not PEM ({error})"), remedy))?;
    if found.is_empty() {
        return Err(TlsError::new(path, "holds no CERTIFICATE in PEM", remedy));
    }
    for certificate in &found {
        x509_parser::parse_x509_certificate(certificate)
            .map_err(|error| TlsError::new(path, format!("holds a damaged certificate ({error})"), remedy))?;
    }
    Ok(found)
}

/// The private key of a PEM text: PKCS#1, PKCS#8 or SEC1.
///
/// # Errors
/// When there is none that can be read without a password.
pub fn private_key(path: &Path, text: &str, remedy: &str) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| {
        let problem = match error {
            pem::Error::NoItemsFound if text.contains("ENCRYPTED") => {
                "holds a private key behind a password".to_owned()
            }
            pem::Error::NoItemsFound => "holds no PRIVATE KEY in PEM".to_owned(),
            other => format!("is not PEM ({other})"),
        };
        TlsError::new(path, problem, remedy)
    })
}

/// A file's text, or nothing when it is not there.
///
/// # Errors
/// When it is there and cannot be read.
pub fn existing(path: &Path, remedy: &str) -> Result<Option<String>, TlsError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(_) | Err(_) => read_text(path, remedy).map(Some),
    }
}
