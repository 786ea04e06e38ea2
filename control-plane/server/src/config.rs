//! What the flags say, as types that cannot be wrong: durations, controllers, admission plugins.
//!
//! Parsing here takes text and gives a value or a message with a remedy; it reads no environment and no file.

mod etcd;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub use control_plane_api::decode::Dialect;

pub use self::etcd::Etcd;
pub use crate::leadership::Timing;
pub use crate::observe::LogFormat;
pub use crate::observe::audit::AuditLevel;

/// Everything that can be chosen about a control plane.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Holds the store file, kubeconfigs and generated tokens.
    pub data_dir: PathBuf,
    /// Where objects are kept.
    pub store: StoreKind,
    /// Where etcd is, and how to speak to it.
    pub etcd: Etcd,
    /// One of several control planes on an etcd decides, and which one is elected.
    pub leader_elect: bool,
    /// How leaders are elected.
    pub election: Timing,
    /// Serve HTTP without TLS.
    pub plain_http: bool,
    /// A second listener, without TLS, beside the one with it.
    pub plain_http_listen: Option<SocketAddr>,
    /// The server's certificate and what leads to its authority, in PEM; made under the data directory when absent.
    pub tls_cert_file: Option<PathBuf>,
    /// The key of [`Self::tls_cert_file`].
    pub tls_private_key_file: Option<PathBuf>,
    /// Names and addresses for the made certificate, besides the usual ones.
    pub tls_san: Vec<String>,
    /// The authorities whose clients are let in; the data directory's own when absent.
    pub client_ca_file: Option<PathBuf>,
    /// Nodes for which kubeconfigs with client certificates are written.
    pub node_kubeconfigs: Vec<String>,
    /// Allow plain HTTP on an address other than loopback.
    pub allow_insecure_bind: bool,
    /// Take every request as an administrator's.
    pub no_auth: bool,
    /// Kubernetes' static token file.
    pub token_auth_file: Option<PathBuf>,
    /// The issuer of service accounts' tokens.
    pub service_account_issuer: String,
    /// This API's audiences; the issuer when empty.
    pub api_audiences: Vec<String>,
    /// The key that signs the tokens of service accounts; made under the data directory when absent.
    pub service_account_signing_key_file: Option<PathBuf>,
    /// More keys whose tokens are accepted.
    pub service_account_key_files: Vec<PathBuf>,
    /// [`Self::token_auth_file`] as text, for those who want no file.
    pub token_auth_text: Option<String>,
    /// A second place for the administrator's kubeconfig.
    pub admin_kubeconfig: Option<PathBuf>,
    /// Which objects validation accepts.
    pub dialect: Dialect,
    /// Who gets pods whose schedulerName is `default-scheduler`.
    pub default_scheduler_profile: SchedulerProfile,
    /// Who gets pods of other schedulerNames, by that name.
    pub scheduler_profiles: BTreeMap<String, SchedulerProfile>,
    /// The controllers that run.
    pub controllers: Controllers,
    /// Admission plugins that are off.
    pub disable_admission: BTreeSet<Admission>,
    /// R: how often pending pods are tried again (SCHED-03).
    pub reconcile_interval: Duration,
    /// C: how often leases are looked at (NODE-03).
    pub node_monitor_period: Duration,
    /// N: from NoSchedule to NoExecute, and L for a lease without its own (NODE-21).
    pub not_ready_timeout: Duration,
    /// T: the tolerationSeconds that admission writes (NODE-21).
    pub eviction_timeout: Duration,
    /// So many finished pods may stand; 0 for any number.
    pub terminated_pod_gc_threshold: usize,
    /// W: how often workload controllers make a pass (DEPL-01).
    pub controller_period: Duration,
    /// How the log is written.
    pub log_format: LogFormat,
    /// Where audit events go; `-` is standard output.
    pub audit_log_path: Option<PathBuf>,
    /// How much is audited; absent for metadata where there is a path.
    pub audit_level: Option<AuditLevel>,
    /// How long a client may take for a request's head, for its body, and for taking its answer.
    pub client_timeout: Duration,
    /// How many writes are remembered for watches.
    pub watch_history: usize,
}

impl Default for Config {
    /// The flags' defaults.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 6443)),
            data_dir: PathBuf::from("control-plane-data"),
            store: StoreKind::Redb,
            etcd: Etcd::default(),
            leader_elect: true,
            election: Timing::default(),
            plain_http: false,
            plain_http_listen: None,
            tls_cert_file: None,
            tls_private_key_file: None,
            tls_san: Vec::new(),
            client_ca_file: None,
            node_kubeconfigs: Vec::new(),
            allow_insecure_bind: false,
            no_auth: false,
            token_auth_file: None,
            service_account_issuer: "https://kubernetes.default.svc.cluster.local".into(),
            api_audiences: Vec::new(),
            service_account_signing_key_file: None,
            service_account_key_files: Vec::new(),
            token_auth_text: None,
            admin_kubeconfig: None,
            dialect: Dialect::Kube32,
            default_scheduler_profile: SchedulerProfile::Kube32,
            scheduler_profiles: BTreeMap::new(),
            controllers: Controllers::all(),
            disable_admission: BTreeSet::new(),
            reconcile_interval: Duration::from_secs(3),
            node_monitor_period: Duration::from_secs(1),
            not_ready_timeout: Duration::from_secs(15),
            eviction_timeout: Duration::from_secs(300),
            terminated_pod_gc_threshold: 12_500,
            controller_period: Duration::from_secs(1),
            log_format: LogFormat::Text,
            audit_log_path: None,
            audit_level: None,
            client_timeout: Duration::from_secs(30),
            watch_history: crate::store::DEFAULT_HISTORY,
        }
    }
}

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

/// A flag value that cannot be used; the message says which and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(pub(crate) String);

impl BadValue {
    /// A refusal in these words.
    pub fn new(message: String) -> Self {
        Self(message)
    }
}

/// `--store`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Forgotten at the end of the process.
    Memory,
    /// One file in the data directory.
    Redb,
    /// An etcd cluster, which several control planes may share.
    Etcd,
}

impl FromStr for StoreKind {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "memory" => Ok(Self::Memory),
            "redb" => Ok(Self::Redb),
            "etcd" => Ok(Self::Etcd),
            other => Err(BadValue(format!("unknown store `{other}`: use memory, redb or etcd"))),
        }
    }
}

/// Reads `--dialect`: what validation accepts where the small boards' documents and Kubernetes differ (SCHED-20).
///
/// # Errors
/// [`BadValue`] for an unknown name.
pub fn dialect(text: &str) -> Result<Dialect, BadValue> {
    match text {
        "kube32" => Ok(Dialect::Kube32),
        "kubernetes" => Ok(Dialect::Kubernetes),
        other => Err(BadValue(format!("unknown dialect `{other}`: use kube32 or kubernetes"))),
    }
}

/// The rules by which the built-in scheduler decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerProfile {
    /// The small boards' rules.
    Kube32,
    /// Kubernetes' rules.
    Upstream,
}

impl FromStr for SchedulerProfile {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "kube32" => Ok(Self::Kube32),
            "upstream" => Ok(Self::Upstream),
            other => Err(BadValue(format!("unknown scheduler profile `{other}`: use kube32 or upstream"))),
        }
    }
}

/// A schedulerName and the profile that places its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedProfile {
    /// The `spec.schedulerName` of the pods.
    pub scheduler: String,
    /// The profile.
    pub profile: SchedulerProfile,
}

impl FromStr for NamedProfile {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let Some((scheduler, profile)) = text.split_once('=').filter(|(scheduler, _)| !scheduler.is_empty())
        else {
            return Err(BadValue(format!(
                "`{text}` is no NAME=PROFILE: write for example `second=upstream`"
            )));
        };
        Ok(Self { scheduler: scheduler.to_owned(), profile: profile.parse()? })
    }
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $what:literal, $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl $name {
            /// Every one, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name used in flags.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $name {
            type Err = BadValue;

            fn from_str(text: &str) -> Result<Self, BadValue> {
                Self::ALL.iter().copied().find(|known| known.name() == text).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|known| known.name()).collect();
                    BadValue(format!(concat!("unknown ", $what, " `{}`: known are {}"), text, known.join(", ")))
                })
            }
        }
    };
}

named!(
    /// A controller that can be left out with `--controllers=*,-NAME`.
    Controller, "controller",
    /// Binds pods, at creation and by retry.
    Scheduler = "scheduler",
    /// Judges nodes by their leases, taints, evicts.
    NodeLifecycle = "node-lifecycle",
    /// Makes and replaces the pods of Deployments.
    Deployment = "deployment",
    /// Makes and replaces the pods of DaemonSets.
    DaemonSet = "daemonset",
    /// Runs Jobs.
    Job = "job",
    /// Computes Endpoints and EndpointSlices.
    Endpoints = "endpoints",
    /// Writes the rules of cluster roles that aggregate.
    ClusterRoleAggregation = "clusterrole-aggregation",
    /// Makes the default ServiceAccount of each namespace.
    ServiceAccount = "serviceaccount",
    /// Removes finished pods beyond a threshold, and deleted pods whose node is gone.
    PodGarbage = "pod-garbage",
    /// Deletes what lost its owner.
    Garbage = "garbage",
    /// Empties namespaces that are being deleted.
    Namespace = "namespace",
);

named!(
    /// An admission plugin that can be switched off.
    Admission, "admission plugin",
    /// Refuses pods whose service account is missing (GHOST-04).
    ServiceAccount = "ServiceAccount",
    /// Gives pods the not-ready and unreachable tolerations (NODE-13).
    DefaultTolerationSeconds = "DefaultTolerationSeconds",
    /// Keeps a board's writes to what is its own (KLET-08).
    NodeRestriction = "NodeRestriction",
);

/// The value of `--controllers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers(BTreeSet<Controller>);

impl Controllers {
    /// Every controller.
    pub fn all() -> Self {
        Self(Controller::ALL.iter().copied().collect())
    }

    /// Whether this one runs.
    pub fn has(&self, controller: Controller) -> bool {
        self.0.contains(&controller)
    }
}

impl FromStr for Controllers {
    type Err = BadValue;

    /// Names separated by commas; `*` is all, `-name` leaves one out wherever it stands. Only exclusions mean all but these.
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let mut chosen = BTreeSet::new();
        let mut left_out = BTreeSet::new();
        let mut named = false;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.strip_prefix('-') {
                Some(name) => {
                    left_out.insert(name.parse::<Controller>()?);
                }
                None if word == "*" => {
                    named = true;
                    chosen = Self::all().0;
                }
                None => {
                    named = true;
                    chosen.insert(word.parse::<Controller>()?);
                }
            }
        }
        if !named && !left_out.is_empty() {
            chosen = Self::all().0;
        }
        Ok(Self(chosen.difference(&left_out).copied().collect()))
    }
}

/// Reads `--listen`.
///
/// # Errors
/// [`BadValue`] for a name instead of an address, or a missing port.
pub fn address(text: &str) -> Result<SocketAddr, BadValue> {
    text.parse().map_err(|_| {
        BadValue(format!(
            "`{text}` is not an address with a port: write one such as 127.0.0.1:6443 or [::1]:6443"
        ))
    })
}

/// Reads a duration as Go writes them: `15s`, `500ms`, `1m30s`, `1.5h`. More than zero.
///
/// # Errors
/// [`BadValue`] for a missing or unknown unit, a sign, or nothing at all.
pub fn duration(text: &str) -> Result<Duration, BadValue> {
    let bad = || {
        BadValue(format!(
            "`{text}` is not a duration: write a number with a unit, such as 500ms, 15s or 1m30s"
        ))
    };
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let seconds = match &rest[..letters] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(bad()),
        };
        rest = &rest[letters..];
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| bad())?;
        total = total.checked_add(part).ok_or_else(bad)?;
    }
    if total.is_zero() {
        return Err(BadValue(format!(
            "`{text}` is no time at all: write a duration above zero, such as 500ms or 15s"
        )));
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let check =
            |text: &str, millis: u64| assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        check("15s", 15_000);
        check("500ms", 500);
        check("1m30s", 90_000);
        check("1.5h", 5_400_000);
        check("0.25s", 250);
        check("1h0m5s", 3_605_000);
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in
            ["", "15", "s", "-5s", "1d", "5 s", "1..5s", "0s", "1e400s", "9999999999999999999h", "5s3"]
        {
            let message = duration(text).unwrap_err().to_string();
            assert!(message.contains("15s"), "{text}: {message}");
        }
    }

    #[test]
    fn addresses_have_a_number_and_a_port() {
        assert_eq!(address("127.0.0.1:0"), Ok(SocketAddr::from(([127, 0, 0, 1], 0))));
        assert!(address("[::1]:80").is_ok_and(|address| address.ip().is_loopback()));
        for text in ["localhost:80", "127.0.0.1", ":80", "127.0.0.1:99999"] {
            assert!(address(text).unwrap_err().to_string().contains("127.0.0.1:6443"), "{text}");
        }
    }

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

    #[test]
    fn controllers_are_chosen_by_name_star_and_exclusion() {
        let check = |text: &str, expected: &[Controller]| {
            let expected = Controllers(expected.iter().copied().collect());
            assert_eq!(text.parse::<Controllers>(), Ok(expected), "{text}");
        };
        check("scheduler", &[Controller::Scheduler]);
        check("scheduler, deployment", &[Controller::Scheduler, Controller::Deployment]);
        check("", &[]);
        let without: Vec<Controller> =
            Controller::ALL.iter().copied().filter(|it| *it != Controller::ServiceAccount).collect();
        check("*,-serviceaccount", &without);
        check("-serviceaccount,*", &without);
        check("-serviceaccount", &without);
        assert_eq!("*".parse::<Controllers>(), Ok(Controllers::all()));
    }

    #[test]
    fn unknown_names_are_listed_with_the_known_ones() {
        let message = "*,-schedular".parse::<Controllers>().unwrap_err().to_string();
        assert!(message.contains("`schedular`") && message.contains("node-lifecycle"), "{message}");
        let message = "PodSecurity".parse::<Admission>().unwrap_err().to_string();
        assert!(message.contains("`PodSecurity`") && message.contains("NodeRestriction"), "{message}");
    }
}
