//! All settings, and what they are where no flag says otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{
    Admission, AuditLevel, Controllers, Dialect, Etcd, LogFormat, SchedulerProfile, StoreKind, Timing,
};

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
    /// How long an Event stays after it was last written.
    pub event_ttl: Duration,
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
            event_ttl: Duration::from_secs(3600),
            controller_period: Duration::from_secs(1),
            log_format: LogFormat::Text,
            audit_log_path: None,
            audit_level: None,
            client_timeout: Duration::from_secs(30),
            watch_history: crate::store::DEFAULT_HISTORY,
        }
    }
}
