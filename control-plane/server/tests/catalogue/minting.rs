//! Certificates minted by hand with openssl, as an administrator does.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kubectl::have;

/// A directory with a certificate authority in it.
pub struct Authority {
    dir: PathBuf,
}

impl Authority {
    /// A new authority `ca.pem` in `dir`; nothing where there is no openssl.
    pub fn new(dir: &Path, name: &str) -> Option<Self> {
        if !have("openssl", &["version"]) {
            return None;
        }
        std::fs::create_dir_all(dir).unwrap();
        let authority = Self { dir: dir.to_owned() };
        authority.openssl(&format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN={name} -keyout ca.key -out ca.pem"
        ));
        Some(authority)
    }

    #[track_caller]
    fn openssl(&self, arguments: &str) {
        let output =
            Command::new("openssl").args(arguments.split(' ')).current_dir(&self.dir).output().unwrap();
        assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A file of the authority.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The authority's certificate.
    pub fn pem(&self) -> Vec<u8> {
        std::fs::read(self.path("ca.pem")).unwrap()
    }

    /// A key and a certificate of a subject (`/CN=…/O=…`), with further arguments to `openssl x509 -req`; PEM of both.
    #[track_caller]
    pub fn mint(&self, file: &str, key: &str, subject: &str, extensions: &str, days: i32) -> Vec<u8> {
        self.openssl(&key.replace("OUT", &format!("-out {file}.key")));
        self.openssl(&format!("req -new -key {file}.key -subj {subject} -out {file}.csr"));
        let mut sign = format!(
            "x509 -req -in {file}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} -out {file}.pem"
        );
        if !extensions.is_empty() {
            std::fs::write(self.path(&format!("{file}.ext")), extensions).unwrap();
            sign.push_str(&format!(" -extfile {file}.ext"));
        }
        self.openssl(&sign);
        let mut pem = std::fs::read(self.path(&format!("{file}.key"))).unwrap();
        pem.extend(std::fs::read(self.path(&format!("{file}.pem"))).unwrap());
        pem
    }

    /// A client's key and certificate.
    #[track_caller]
    pub fn client(&self, file: &str, subject: &str) -> Vec<u8> {
        self.mint(file, EC_PKCS8, subject, CLIENT, 30)
    }
}

/// `openssl` arguments for keys of the usual kinds; OUT is where the key goes. This one is PKCS#8, `BEGIN PRIVATE KEY`.
pub const RSA: &str = "genrsa OUT 2048";
/// PKCS#1, `BEGIN RSA PRIVATE KEY`.
pub const RSA_TRADITIONAL: &str = "genrsa -traditional OUT 2048";
/// SEC1, `BEGIN EC PRIVATE KEY`.
pub const EC: &str = "ecparam OUT -name prime256v1 -genkey -noout";
/// PKCS#8 of an elliptic curve.
pub const EC_PKCS8: &str = "genpkey OUT -algorithm EC -pkeyopt ec_paramgen_curve:P-256";
/// What a client's certificate is for.
pub const CLIENT: &str = "extendedKeyUsage=clientAuth\n";
/// What the server's certificate is for.
pub const SERVER: &str = "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n";
