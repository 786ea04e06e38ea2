//! The flags. Values are parsed by the library's types, so that a wrong one is refused with what would be right.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::{
    Admission, AuditLevel, BadValue, Config, Controller, Controllers, Dialect, Etcd, LogFormat, NamedProfile,
    SchedulerProfile, StoreKind, Timing, address, dialect, duration,
};
use crate::explain::Output;
use crate::store::DEFAULT_HISTORY;
use clap::{Args, Parser, Subcommand};

/// A small Kubernetes-compatible API server with its scheduler and controllers.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct Flags {
    /// Something else than serving.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to serve.
    #[command(flatten)]
    pub serve: Serve,
}

/// What the binary does besides serving.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what the scheduler of a running control plane makes of each node for a pod: every filter's verdict, and the scores.
    ExplainSchedule {
        /// The pod.
        pod: String,
        /// Its namespace; the kubeconfig's, or `default`, where it is left out.
        #[arg(short, long, value_name = "NAME")]
        namespace: Option<String>,
        /// How to reach the control plane; the DATA_DIR/kubeconfig/admin.kubeconfig that it wrote will do.
        #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
        kubeconfig: PathBuf,
        /// text or json.
        #[arg(short, long, value_name = "FORM", default_value = "text")]
        output: Output,
    },
}

/// The flags of a control plane that serves.
#[derive(Debug, Args)]
pub struct Serve {
    /// Address and port to serve on; port 0 takes a free one and prints it.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6443", value_parser = address)]
    listen: SocketAddr,
    /// Directory of the store, the kubeconfigs and the generated tokens.
    #[arg(long, value_name = "DIR", default_value = "control-plane-data")]
    data_dir: PathBuf,
    /// Where objects are kept: memory, redb, or etcd.
    #[arg(long, value_name = "KIND", default_value = "redb")]
    store: StoreKind,
    /// The members of the etcd cluster, for --store etcd.
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    etcd_servers: Vec<String>,
    /// What keys in etcd begin with.
    #[arg(long, value_name = "PATH", default_value = "/registry")]
    etcd_prefix: String,
    /// Certificates to trust when etcd speaks TLS (PEM).
    #[arg(long, value_name = "FILE")]
    etcd_cafile: Option<PathBuf>,
    /// Certificate to show to etcd (PEM).
    #[arg(long, value_name = "FILE")]
    etcd_certfile: Option<PathBuf>,
    /// Key of that certificate (PEM).
    #[arg(long, value_name = "FILE")]
    etcd_keyfile: Option<PathBuf>,
    /// With --store etcd: elect which one of several control planes decides. Without that only one may run.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true",
          require_equals = true, action = clap::ArgAction::Set)]
    leader_elect: bool,
    /// How long the others wait for a leader that does not renew its lease; whole seconds.
    #[arg(long, value_name = "D", default_value = "15s", value_parser = duration)]
    leader_elect_lease_duration: Duration,
    /// How long a leader goes on that cannot renew its lease.
    #[arg(long, value_name = "D", default_value = "10s", value_parser = duration)]
    leader_elect_renew_deadline: Duration,
    /// How often a leader renews its lease.
    #[arg(long, value_name = "D", default_value = "2s", value_parser = duration)]
    leader_elect_retry_period: Duration,
    /// Serve HTTP without TLS on --listen (loopback only, unless --allow-insecure-bind).
    #[arg(long)]
    plain_http: bool,
    /// A second address to serve on, without TLS, for boards that cannot do TLS (loopback only, unless --allow-insecure-bind).
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    plain_http_listen: Option<SocketAddr>,
    /// The server's certificate in PEM, followed by those that lead to its authority. Made in DATA_DIR/pki when left out.
    #[arg(long, value_name = "FILE")]
    tls_cert_file: Option<PathBuf>,
    /// The key of --tls-cert-file in PEM: PKCS#1, PKCS#8 or SEC1.
    #[arg(long, value_name = "FILE")]
    tls_private_key_file: Option<PathBuf>,
    /// More names and addresses for the certificate that is made, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tls_san: Vec<String>,
    /// Authorities whose clients are let in, in PEM; common name and organisations of a client's certificate are its user name and
    /// groups. The authority in DATA_DIR/pki when left out.
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,
    /// Nodes to write DATA_DIR/kubeconfig/node-NAME.kubeconfig with a client certificate for, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    node_kubeconfigs: Vec<String>,
    /// Serve plain HTTP beyond loopback: tokens can be read by anyone on the way.
    #[arg(long)]
    allow_insecure_bind: bool,
    /// Take every request as an administrator's. For benches on loopback only.
    #[arg(long)]
    no_auth: bool,
    /// Bearer tokens, one line each: token,user,uid,"group1,group2".
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// The issuer that stands in the tokens of service accounts.
    #[arg(long, value_name = "URL", default_value = "https://kubernetes.default.svc.cluster.local")]
    service_account_issuer: String,
    /// The audiences of this API: it takes service accounts' tokens that are for one of them. The issuer when left out.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    api_audiences: Vec<String>,
    /// The private key, in PEM, that signs the tokens of service accounts: RSA or EC on P-256. Made in DATA_DIR/pki when left out.
    #[arg(long, value_name = "FILE")]
    service_account_signing_key_file: Option<PathBuf>,
    /// Another key, in PEM, whose tokens are accepted; may be given several times.
    #[arg(long, value_name = "FILE")]
    service_account_key_file: Vec<PathBuf>,
    /// Where to write the administrator's kubeconfig besides DATA_DIR/kubeconfig/admin.kubeconfig.
    #[arg(long, value_name = "FILE")]
    admin_kubeconfig: Option<PathBuf>,
    /// What validation accepts: kube32 or kubernetes.
    #[arg(long, value_name = "NAME", default_value = "kube32", value_parser = dialect)]
    dialect: Dialect,
    /// Scheduler profile of pods with schedulerName default-scheduler: kube32 or upstream.
    #[arg(long, value_name = "NAME", default_value = "kube32")]
    default_scheduler_profile: SchedulerProfile,
    /// Also places the pods of this schedulerName, by this profile; may be given several times.
    #[arg(long, value_name = "NAME=PROFILE")]
    scheduler_profile: Vec<NamedProfile>,
    // Their names are those of the type.
    #[arg(long, value_name = "LIST", default_value = "*", allow_hyphen_values = true, help = controllers())]
    controllers: Controllers,
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = plugins())]
    disable_admission: Vec<Admission>,
    /// How the log on standard error is written: text or json. The variable CONTROL_PLANE_LOG chooses what is said
    /// (info; debug shows every request).
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// Append an audit.k8s.io/v1 event for each request to this file, - for standard output (the line that says where it
    /// serves then goes to standard error). SIGHUP opens it again.
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// How much of each request is audited: none, metadata, request or request-response. Bodies of Secrets and tokens
    /// never are. With a path, metadata unless said otherwise.
    #[arg(long, value_name = "LEVEL")]
    audit_level: Option<AuditLevel>,
    /// How long a client may take for the head of a request, for its body, and for taking what it is sent.
    #[arg(long, value_name = "D", default_value = "30s", value_parser = duration)]
    client_timeout: Duration,
    /// How often pending pods are tried again.
    #[arg(long, value_name = "D", default_value = "3s", value_parser = duration)]
    reconcile_interval: Duration,
    /// How often node leases are looked at.
    #[arg(long, value_name = "D", default_value = "1s", value_parser = duration)]
    node_monitor_period: Duration,
    /// How long after NoSchedule a silent node gets NoExecute; also the lease of nodes that state none.
    #[arg(long, value_name = "D", default_value = "15s", value_parser = duration)]
    not_ready_timeout: Duration,
    /// The tolerationSeconds that admission gives pods for unreachable and not-ready nodes; whole seconds.
    #[arg(long, value_name = "D", default_value = "300s", value_parser = duration)]
    eviction_timeout: Duration,
    /// So many Succeeded and Failed pods may stand before the oldest are deleted; 0 for any number.
    #[arg(long, value_name = "N", default_value_t = 12_500)]
    terminated_pod_gc_threshold: usize,
    /// How long an Event stays after it was last written.
    #[arg(long, value_name = "D", default_value = "1h", value_parser = duration)]
    event_ttl: Duration,
    /// How many writes are remembered for watches and old lists, and at most 64 MiB of them; who asks for older ones gets
    /// 410 and lists again.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_HISTORY)]
    watch_history: usize,
}

/// The help of `--controllers`.
fn controllers() -> String {
    let known = Controller::names();
    format!(
        "Controllers to run, by name; * is all of them, -NAME leaves one out and none is none. Known: {known}"
    )
}

/// The help of `--disable-admission`.
fn plugins() -> String {
    format!("Admission plugins to switch off: {}", Admission::names())
}

impl Flags {
    /// The configuration that these flags of a serving control plane describe.
    ///
    /// # Errors
    /// A flag is unknown, has a value that cannot be, or contradicts another; in one line.
    pub fn of_server(flags: &[String]) -> Result<Config, BadValue> {
        let words = std::iter::once("control-plane").chain(flags.iter().map(String::as_str));
        let read = Self::try_parse_from(words).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            BadValue::new(line.trim_start_matches("error: ").to_owned())
        })?;
        read.serve.config()
    }
}

impl Serve {
    /// The configuration that the flags describe.
    ///
    /// # Errors
    /// When flags contradict each other.
    pub fn config(self) -> Result<Config, BadValue> {
        let config = Config {
            listen: self.listen,
            data_dir: self.data_dir,
            store: self.store,
            etcd: Etcd {
                servers: self.etcd_servers,
                prefix: self.etcd_prefix,
                cafile: self.etcd_cafile,
                certfile: self.etcd_certfile,
                keyfile: self.etcd_keyfile,
            },
            leader_elect: self.leader_elect,
            election: Timing {
                lease_duration: self.leader_elect_lease_duration,
                renew_deadline: self.leader_elect_renew_deadline,
                retry_period: self.leader_elect_retry_period,
            },
            plain_http: self.plain_http,
            plain_http_listen: self.plain_http_listen,
            tls_cert_file: self.tls_cert_file,
            tls_private_key_file: self.tls_private_key_file,
            tls_san: self.tls_san,
            client_ca_file: self.client_ca_file,
            node_kubeconfigs: self.node_kubeconfigs,
            allow_insecure_bind: self.allow_insecure_bind,
            no_auth: self.no_auth,
            token_auth_file: self.token_auth_file,
            service_account_issuer: self.service_account_issuer,
            api_audiences: self.api_audiences,
            service_account_signing_key_file: self.service_account_signing_key_file,
            service_account_key_files: self.service_account_key_file,
            admin_kubeconfig: self.admin_kubeconfig,
            dialect: self.dialect,
            default_scheduler_profile: self.default_scheduler_profile,
            scheduler_profiles: self
                .scheduler_profile
                .into_iter()
                .map(|it| (it.scheduler, it.profile))
                .collect(),
            controllers: self.controllers,
            disable_admission: self.disable_admission.into_iter().collect(),
            log_format: self.log_format,
            audit_log_path: self.audit_log_path,
            audit_level: self.audit_level,
            client_timeout: self.client_timeout,
            reconcile_interval: self.reconcile_interval,
            node_monitor_period: self.node_monitor_period,
            not_ready_timeout: self.not_ready_timeout,
            eviction_timeout: self.eviction_timeout,
            terminated_pod_gc_threshold: self.terminated_pod_gc_threshold,
            event_ttl: self.event_ttl,
            watch_history: self.watch_history,
            ..Config::default()
        };
        config.check()?;
        Ok(config)
    }
}
