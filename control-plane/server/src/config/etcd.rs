//! The flags about etcd.

use std::path::PathBuf;

use super::BadValue;

/// Where etcd is, and how to speak to it.
#[derive(Clone, Debug)]
pub struct Etcd {
    /// URLs of its members.
    pub servers: Vec<String>,
    /// What keys begin with.
    pub prefix: String,
    /// PEM of whom to trust.
    pub cafile: Option<PathBuf>,
    /// PEM of the certificate to show.
    pub certfile: Option<PathBuf>,
    /// PEM of its key.
    pub keyfile: Option<PathBuf>,
}

impl Default for Etcd {
    fn default() -> Self {
        Self { servers: Vec::new(), prefix: "/registry".into(), cafile: None, certfile: None, keyfile: None }
    }
}

impl Etcd {
    /// Whether anything was said about etcd.
    pub(super) fn is_given(&self) -> bool {
        let files = [&self.cafile, &self.certfile, &self.keyfile];
        !self.servers.is_empty() || files.into_iter().any(Option::is_some)
    }

    /// Refuses what cannot be used.
    ///
    /// # Errors
    /// [`BadValue`] naming the flag and what would be right.
    pub(super) fn check(&self) -> Result<(), BadValue> {
        let refuse = |message: &str| Err(BadValue(message.into()));
        if self.servers.is_empty() {
            return refuse("--store etcd needs --etcd-servers, such as http://127.0.0.1:2379");
        }
        for server in &self.servers {
            let encrypted = match server.split_once("://") {
                Some(("http", host)) if !host.is_empty() => false,
                Some(("https", host)) if !host.is_empty() => true,
                Some(_) | None => {
                    return Err(BadValue(format!(
                        "--etcd-servers: `{server}` is not the URL of a server, such as http://127.0.0.1:2379"
                    )));
                }
            };
            if encrypted && self.cafile.is_none() {
                return refuse(
                    "--etcd-servers with https needs --etcd-cafile, the certificate of whom to trust",
                );
            }
        }
        if self.prefix.trim_matches('/').is_empty() {
            return refuse("--etcd-prefix is empty: give a path such as /registry");
        }
        if self.certfile.is_some() != self.keyfile.is_some() {
            return refuse("--etcd-certfile and --etcd-keyfile go together: give both, or neither");
        }
        Ok(())
    }
}
