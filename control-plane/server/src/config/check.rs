//! Which settings go together.

use super::{AuditLevel, BadValue, Config, StoreKind};

impl Config {
    /// Refuses combinations that are unsafe or that this version cannot do.
    ///
    /// # Errors
    /// [`BadValue`] naming the flags and what would be right.
    pub fn check(&self) -> Result<(), BadValue> {
        let refuse = |message: String| Err(BadValue(message));
        self.check_listeners()?;
        if self.store == StoreKind::Etcd {
            self.etcd.check()?;
            self.election.check().map_err(|problem| BadValue(problem.into()))?;
        } else if self.etcd.is_given() {
            return refuse("the --etcd flags are for --store etcd: give that too, or leave them out".into());
        }
        if self.service_account_issuer.is_empty() {
            return refuse("--service-account-issuer must not be empty: give a URL, or leave it out".into());
        }
        if self.api_audiences.iter().any(String::is_empty) {
            return refuse(
                "--api-audiences holds an empty name: give names separated by commas, or leave it out".into(),
            );
        }
        if self.eviction_timeout.subsec_nanos() != 0 {
            return refuse(
                "--eviction-timeout becomes tolerationSeconds: give whole seconds, such as 300s".into(),
            );
        }
        if self.audit_log_path.is_none() && self.audit_level.is_some_and(|level| level != AuditLevel::None) {
            return refuse(
                "--audit-level needs a place to write to: give --audit-log-path FILE, or - for standard output"
                    .into(),
            );
        }
        if self.no_auth && self.token_auth_file.is_some() {
            return refuse("--no-auth and --token-auth-file exclude each other: leave one out".into());
        }
        Ok(())
    }

    fn check_listeners(&self) -> Result<(), BadValue> {
        let refuse = |message: String| Err(BadValue(message));
        let plain = if self.plain_http { Some(self.listen) } else { self.plain_http_listen };
        for address in [Some(self.listen), plain].into_iter().flatten().filter(|it| !it.ip().is_loopback()) {
            if self.no_auth {
                return refuse(format!(
                    "--no-auth on {address} would make everyone an administrator: listen on 127.0.0.1, or leave --no-auth out"
                ));
            }
            if plain == Some(address) && !self.allow_insecure_bind {
                return refuse(format!(
                    "plain HTTP on {address} shows tokens to anyone on the way: listen on 127.0.0.1, or give --allow-insecure-bind"
                ));
            }
        }
        let tls_flags = self.tls_cert_file.is_some()
            || self.tls_private_key_file.is_some()
            || self.client_ca_file.is_some()
            || !self.tls_san.is_empty()
            || !self.node_kubeconfigs.is_empty();
        if self.plain_http && tls_flags {
            return refuse(
                "--plain-http has no TLS and no client certificates: leave it out, or leave out --tls-cert-file, --tls-private-key-file, --client-ca-file, --tls-san and --node-kubeconfigs (--plain-http-listen gives a second listener without TLS)"
                    .into(),
            );
        }
        if self.plain_http && self.plain_http_listen.is_some() {
            return refuse("--plain-http serves without TLS on --listen already: leave --plain-http-listen out, or --plain-http".into());
        }
        if self.tls_cert_file.is_some() != self.tls_private_key_file.is_some() {
            return refuse("--tls-cert-file and --tls-private-key-file belong together: give both, or neither to have a certificate made".into());
        }
        if self.tls_cert_file.is_some() && !self.tls_san.is_empty() {
            return refuse(
                "--tls-san is for the certificate that is made here: leave it out beside --tls-cert-file"
                    .into(),
            );
        }
        if self.client_ca_file.is_some() && !self.node_kubeconfigs.is_empty() {
            return refuse("--node-kubeconfigs needs the authority that is made here: leave it out beside --client-ca-file, whose authority issues the boards' certificates".into());
        }
        for node in &self.node_kubeconfigs {
            if !is_node_name(node) {
                return refuse(format!(
                    "--node-kubeconfigs: `{node}` cannot be a node's name: use lower-case letters, digits, `-` and `.`"
                ));
            }
        }
        Ok(())
    }
}

/// Whether a text is a DNS subdomain, as nodes' names are.
pub(crate) fn is_node_name(text: &str) -> bool {
    let end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        label.bytes().all(|byte| end(byte) || byte == b'-')
            && label.bytes().next().is_some_and(end)
            && label.bytes().next_back().is_some_and(end)
    };
    text.len() <= 253 && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::super::{Etcd, Timing};
    use super::*;

    #[test]
    fn unsafe_combinations_are_refused_by_name() {
        let safe = Config { plain_http: true, ..Config::default() };
        assert_eq!(safe.check(), Ok(()));
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 6443));
        let check = |config: Config, flag: &str| {
            let message = config.check().unwrap_err().to_string();
            assert!(message.contains(flag), "{message}");
        };
        assert_eq!(Config::default().check(), Ok(()));
        check(
            Config { plain_http: true, client_ca_file: Some("c".into()), ..Config::default() },
            "--plain-http",
        );
        check(Config { tls_cert_file: Some("c".into()), ..Config::default() }, "--tls-private-key-file");
        check(Config { plain_http_listen: Some(everywhere), ..Config::default() }, "--allow-insecure-bind");
        check(Config { plain_http_listen: Some(everywhere), ..safe.clone() }, "--plain-http");
        check(Config { node_kubeconfigs: vec!["../x".into()], ..Config::default() }, "--node-kubeconfigs");
        check(Config { listen: everywhere, no_auth: true, ..Config::default() }, "--no-auth");
        assert_eq!(Config { listen: everywhere, ..Config::default() }.check(), Ok(()));
        check(Config { listen: everywhere, ..safe.clone() }, "--allow-insecure-bind");
        check(
            Config { listen: everywhere, allow_insecure_bind: true, no_auth: true, ..safe.clone() },
            "--no-auth",
        );
        check(Config { eviction_timeout: Duration::from_millis(1500), ..safe.clone() }, "whole seconds");
        check(
            Config { no_auth: true, token_auth_file: Some("t".into()), ..safe.clone() },
            "--token-auth-file",
        );
        let on_etcd = |server: &str| {
            let etcd = Etcd { servers: vec![server.into()], ..Etcd::default() };
            Config { store: StoreKind::Etcd, etcd, ..safe.clone() }
        };
        assert_eq!(on_etcd("http://127.0.0.1:2379").check(), Ok(()));
        check(on_etcd("127.0.0.1:2379"), "http://127.0.0.1:2379");
        check(on_etcd("https://127.0.0.1:2379"), "--etcd-cafile");
        check(Config { store: StoreKind::Etcd, ..safe.clone() }, "--etcd-servers");
        check(Config { store: StoreKind::Redb, ..on_etcd("http://127.0.0.1:2379") }, "--store etcd");
        let certfile = Etcd { certfile: Some("c".into()), ..on_etcd("http://127.0.0.1:2379").etcd };
        check(Config { etcd: certfile, ..on_etcd("http://127.0.0.1:2379") }, "--etcd-keyfile");
        let slow = Timing { retry_period: Duration::from_secs(10), ..Timing::default() };
        check(Config { election: slow, ..on_etcd("http://127.0.0.1:2379") }, "--leader-elect-retry-period");
        check(Config { audit_level: Some(AuditLevel::Request), ..safe.clone() }, "--audit-log-path");
        check(Config { api_audiences: vec!["a".into(), String::new()], ..safe.clone() }, "--api-audiences");
        let open = Config { listen: everywhere, allow_insecure_bind: true, ..safe };
        assert_eq!(open.check(), Ok(()));
    }
}
