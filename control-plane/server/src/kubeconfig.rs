//! Kubeconfigs and generated tokens in the data directory.
//!
//! Tokens are drawn once and kept, so that a kubeconfig outlives a restart. Files are written beside their place and moved
//! there, readable by their owner only: whoever waits for one never sees half of it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::auth::{MASTERS, NODE_PREFIX, NODES, Tokens, User};
use crate::base64::encode_standard;
use crate::config::Config;
use crate::tls::{Authority, Issued};

/// A file of the data directory that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} cannot be used ({error}): check that --data-dir is writable, and that the directory of --admin-kubeconfig exists and is writable"
)]
pub struct DataDirError {
    /// The file or directory.
    pub path: PathBuf,
    /// What the system said.
    pub error: io::Error,
}

/// Who gets a generated token: the name of the kubeconfig, the user and its groups.
const GENERATED: &[(&str, &str, &[&str])] = &[
    ("admin", "kubernetes-admin", &[MASTERS]),
    ("scheduler", "system:kube-scheduler", &[]),
    ("controller-manager", "system:kube-controller-manager", &[]),
];

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, DataDirError> {
    result.map_err(|error| DataDirError { path: path.into(), error })
}

/// Makes the data directory where there is none, for its owner only; one that is there keeps its permissions.
///
/// # Errors
/// [`DataDirError`] when it cannot be made or written.
pub fn prepare(data_dir: &Path) -> Result<(), DataDirError> {
    let parent = data_dir.parent().unwrap_or(data_dir);
    at(data_dir, fs::create_dir_all(parent))?;
    for directory in ["kubeconfig", "pki"].map(|name| data_dir.join(name)) {
        at(&directory, fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory))?;
    }
    // Writing proves more than permissions do.
    let probe = data_dir.join(".writable");
    at(&probe, fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe)))
}

/// The tokens of the built-in identities, kept in the data directory; drawn where they are not there yet.
///
/// # Errors
/// [`DataDirError`] when they cannot be read or kept.
pub fn generated_tokens(data_dir: &Path) -> Result<Tokens, DataDirError> {
    let mut tokens = Tokens::default();
    for (name, user, groups) in GENERATED {
        let path = data_dir.join(format!("{name}.token"));
        let token = match fs::read_to_string(&path) {
            Ok(token) if !token.trim().is_empty() => token.trim().to_owned(),
            Ok(_) => draw(&path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => draw(&path)?,
            Err(error) => return Err(DataDirError { path, error }),
        };
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        tokens.add(&token, User::known((*user).into(), groups));
    }
    Ok(tokens)
}

fn draw(path: &Path) -> Result<String, DataDirError> {
    let token: String = at(path, secret())?.iter().map(|byte| format!("{byte:02x}")).collect();
    write_private(path, token.as_bytes())?;
    Ok(token)
}

/// Bytes from the operating system, for secrets and for the seed of a real run.
///
/// # Errors
/// When there is no `/dev/urandom`.
pub fn secret() -> io::Result<[u8; 24]> {
    let mut bytes = [0; 24];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file beside its place and moves it there, readable by its owner only. One that is there already, as it is to be,
/// stays: a control plane starts again over a disk that is full.
///
/// # Errors
/// [`DataDirError`] naming the file.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> Result<(), DataDirError> {
    if is_there(path, content) {
        return Ok(());
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let write = || {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(content)?;
        fs::rename(&beside, path)
    };
    at(path, write())
}

/// Whether a file has this content, and is its owner's only.
fn is_there(path: &Path, content: &[u8]) -> bool {
    let is_private = |found: &fs::Metadata| found.is_file() && found.permissions().mode() & 0o077 == 0;
    fs::symlink_metadata(path).is_ok_and(|found| is_private(&found))
        && fs::read(path).is_ok_and(|found| found == content)
}

/// Where a server is, and what to trust there.
pub struct Server<'a> {
    /// `http://…` or `https://…`.
    pub url: &'a str,
    /// The certificates to trust, as PEM; empty without TLS.
    pub trust: &'a str,
    /// Issues clients' certificates.
    pub authority: Option<&'a Authority>,
}

/// What a kubeconfig's user shows.
enum Credentials<'a> {
    Nothing,
    Token(&'a str),
    Certificate(Issued),
}

/// Writes the kubeconfigs of the built-in identities, of every board in `tokens` and of the named nodes. With an authority the
/// built-in identities and the named nodes get client certificates.
///
/// # Errors
/// When a file cannot be written or a certificate not be issued.
pub fn write_all(config: &Config, tokens: &Tokens, server: &Server<'_>) -> anyhow::Result<()> {
    let directory = config.data_dir.join("kubeconfig");
    let write = |name: &str, user: &str, credentials: &Credentials<'_>| {
        let content = kubeconfig(server, user, credentials);
        write_private(&directory.join(format!("{name}.kubeconfig")), &content)
    };
    if config.no_auth {
        write("admin", "kubernetes-admin", &Credentials::Nothing)?;
    }
    let built_in = |user: &User| GENERATED.iter().find(|(_, name, _)| *name == user.name);
    for (token, user) in tokens.iter() {
        match (built_in(user), server.authority, user.node()) {
            (Some((name, ..)), None, _) => write(name, &user.name, &Credentials::Token(token))?,
            (None, _, Some(node)) if plain(node) => {
                write(&format!("node-{node}"), &user.name, &Credentials::Token(token))?;
            }
            _ => {}
        }
    }
    if let Some(authority) = server.authority
        && !config.no_auth
    {
        for (name, user, groups) in GENERATED {
            let issued = authority.client(name, user, groups.first().copied())?;
            write(name, user, &Credentials::Certificate(issued))?;
        }
        for node in &config.node_kubeconfigs {
            let (name, user) = (format!("node-{node}"), format!("{NODE_PREFIX}{node}"));
            let issued = authority.client(&name, &user, Some(NODES))?;
            write(&name, &user, &Credentials::Certificate(issued))?;
        }
    }
    if let Some(path) = &config.admin_kubeconfig {
        let admin = directory.join("admin.kubeconfig");
        write_private(path, &at(&admin, fs::read(&admin))?)?;
    }
    Ok(())
}

/// The boards that have a certificate of the authority in the data directory: those that are named, and those that were named
/// at an earlier start, whose certificates still hold.
///
/// # Errors
/// [`DataDirError`] when the directory of the certificates cannot be read.
pub fn certified(config: &Config) -> Result<BTreeSet<String>, DataDirError> {
    let mut boards: BTreeSet<String> = config.node_kubeconfigs.iter().cloned().collect();
    if config.client_ca_file.is_some() {
        // Another authority vouches for clients; what this one issued opens nothing.
        return Ok(boards);
    }
    let directory = config.data_dir.join("pki");
    for entry in at(&directory, fs::read_dir(&directory))? {
        let name = at(&directory, entry)?.file_name();
        let board = name.to_str().and_then(|name| name.strip_prefix("node-")?.strip_suffix(".crt"));
        boards.extend(board.map(ToOwned::to_owned));
    }
    Ok(boards)
}

/// Whether a name may be part of a file's.
fn plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) && !name.starts_with('.')
}

/// A kubeconfig in JSON, which is YAML.
///
/// kubectl keeps the tokens of its `users` from servers without TLS, so over plain HTTP the token stands in the URL as well,
/// as the password of a user whose name does not matter.
fn kubeconfig(server: &Server<'_>, user: &str, credentials: &Credentials<'_>) -> Vec<u8> {
    let shown = match credentials {
        Credentials::Nothing => json!({}),
        Credentials::Token(token) => json!({"token": token}),
        Credentials::Certificate(issued) => json!({
            "client-certificate-data": encode_standard(issued.certificate.as_bytes()),
            "client-key-data": encode_standard(issued.key.as_bytes()),
        }),
    };
    let mut cluster = match (server.url.strip_prefix("http://"), credentials) {
        (Some(address), Credentials::Token(token)) => {
            json!({"server": format!("http://bearer:{}@{address}", escape(token))})
        }
        _ => json!({"server": server.url}),
    };
    if !server.trust.is_empty() {
        cluster["certificate-authority-data"] = json!(encode_standard(server.trust.as_bytes()));
    }
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "rigor", "cluster": cluster}],
        "users": [{"name": user, "user": shown}],
        "contexts": [{"name": "rigor", "context": {"cluster": "rigor", "user": user}}],
        "current-context": "rigor",
    });
    format!("{content:#}\n").into_bytes()
}

/// Escapes whatever has a meaning in URLs.
fn escape(token: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    token
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn tokens_are_drawn_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path()).unwrap();
        let list = |tokens: &Tokens| {
            tokens.iter().map(|(token, user)| (token.to_owned(), user.name.clone())).collect::<Vec<_>>()
        };
        let first = list(&generated_tokens(dir.path()).unwrap());
        assert_eq!(first.len(), GENERATED.len());
        assert_eq!(list(&generated_tokens(dir.path()).unwrap()), first);
        let mode = fs::metadata(dir.path().join("admin.token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_directory_made_here_is_its_owners_and_one_that_was_there_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let made = dir.path().join("parent/made");
        prepare(&made).unwrap();
        assert_eq!(mode(&made), 0o700);
        assert_eq!(mode(&made.join("kubeconfig")), 0o700);
        let there = dir.path().join("there");
        fs::create_dir(&there).unwrap();
        fs::set_permissions(&there, fs::Permissions::from_mode(0o750)).unwrap();
        prepare(&there).unwrap();
        assert_eq!(mode(&there), 0o750);
    }

    #[test]
    fn kubeconfigs_are_written_for_the_built_in_identities_and_each_board() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path()).unwrap();
        let mut tokens = generated_tokens(dir.path()).unwrap();
        let board = |name: &str| User::known(name.into(), vec![NODES.into()]);
        tokens.add("t1", board("system:node:a"));
        tokens.add("t2", board("system:node:../x"));
        let copy = dir.path().join("copy.yaml");
        let config =
            Config { data_dir: dir.path().into(), admin_kubeconfig: Some(copy.clone()), ..Config::default() };
        let server = Server { url: "http://127.0.0.1:1", trust: "", authority: None };
        write_all(&config, &tokens, &server).unwrap();
        let mut names: Vec<String> = fs::read_dir(dir.path().join("kubeconfig"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let expected = [
            "admin.kubeconfig",
            "controller-manager.kubeconfig",
            "node-a.kubeconfig",
            "scheduler.kubeconfig",
        ];
        assert_eq!(names, expected);
        let admin = fs::read(&copy).unwrap();
        assert_eq!(admin, fs::read(dir.path().join("kubeconfig/admin.kubeconfig")).unwrap());
        let admin: serde_json::Value = serde_json::from_slice(&admin).unwrap();
        let token = admin["users"][0]["user"]["token"].as_str().unwrap();
        assert_eq!(admin["clusters"][0]["cluster"]["server"], format!("http://bearer:{token}@127.0.0.1:1"));
        assert_eq!(escape("a/b:c@d"), "a%2Fb%3Ac%40d");
    }

    #[test]
    fn a_kubeconfig_is_written_again_only_where_it_would_differ() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path()).unwrap();
        let tokens = generated_tokens(dir.path()).unwrap();
        let copy = dir.path().join("copy.yaml");
        let config =
            Config { data_dir: dir.path().into(), admin_kubeconfig: Some(copy.clone()), ..Config::default() };
        let admin = dir.path().join("kubeconfig/admin.kubeconfig");
        // A file that is written is another one, moved there; so it is kept open, lest its number be given again.
        let write = |url: &str| {
            let kept = [&admin, &copy].map(|path| fs::File::open(path).ok());
            write_all(&config, &tokens, &Server { url, trust: "", authority: None }).unwrap();
            let now = [&admin, &copy].map(|path| fs::metadata(path).unwrap());
            let is_kept = |at: usize| {
                kept[at].as_ref().is_some_and(|file| file.metadata().unwrap().ino() == now[at].ino())
            };
            (is_kept(0), is_kept(1))
        };
        assert_eq!(write("http://127.0.0.1:1"), (false, false));
        assert_eq!(write("http://127.0.0.1:1"), (true, true));
        assert_eq!(write("http://127.0.0.1:2"), (false, false));
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(write("http://127.0.0.1:2"), (true, false));
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_unwritable_directory_is_named() {
        let error = prepare(Path::new("/proc/nonexistent")).unwrap_err().to_string();
        assert!(error.contains("/proc/nonexistent") && error.contains("--data-dir"), "{error}");
    }

    #[test]
    fn boards_with_certificates_are_known_at_later_starts() {
        let dir = tempfile::tempdir().unwrap();
        let config =
            Config { data_dir: dir.path().into(), node_kubeconfigs: vec!["a".into()], ..Config::default() };
        prepare(dir.path()).unwrap();
        for name in ["node-b.c.crt", "node-b.c.key", "node-d.key", "admin.crt", "node-e.crt.new"] {
            fs::write(dir.path().join("pki").join(name), "").unwrap();
        }
        assert_eq!(certified(&config).unwrap(), BTreeSet::from(["a".into(), "b.c".into()]));
        let foreign = Config { client_ca_file: Some("ca.crt".into()), node_kubeconfigs: vec![], ..config };
        assert_eq!(certified(&foreign).unwrap(), BTreeSet::new());
        let absent = Config { data_dir: dir.path().join("absent"), ..Config::default() };
        assert!(certified(&absent).unwrap_err().to_string().contains("absent/pki"));
    }
}
