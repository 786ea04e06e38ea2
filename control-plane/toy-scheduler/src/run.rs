//! The loop: what the watches say goes into the copy of the cluster; when nothing more is to be read, one waiting pod is
//! decided and acted on. Each decision is one line of the log.

use std::time::Duration;

use anyhow::anyhow;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Config};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::Flags;
use crate::client::{Bound, Sender};
use crate::clock;
use crate::cluster::{Cluster, PodRef};
use crate::decide::{Decision, decide, missing};
use crate::{messages, told};

/// Before broken watches are begun anew: a scheduler that waits longer leaves pods waiting.
const PAUSE: Duration = Duration::from_millis(250);

/// What one of the watches said.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
enum Seen {
    Node(watcher::Result<Event<Node>>),
    Pod(watcher::Result<Event<Pod>>),
}

/// Begins to log, on standard error.
pub fn log(verbose: bool) {
    let level = if verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let ours = tracing_subscriber::filter::Targets::new().with_target("toy_scheduler", level);
    tracing_subscriber::registry().with(lines).with(ours).init();
}

/// Schedules until the process is asked to end.
///
/// # Errors
/// When it cannot begin.
#[tokio::main(flavor = "current_thread")]
pub async fn until_signalled(flags: Flags) -> anyhow::Result<()> {
    let client = connect(&flags).await?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut scheduler = Scheduler::new(client.clone(), flags);
    tokio::select! {
        () = scheduler.run(client) => {}
        _ = terminated.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

/// Reaches the cluster that the flags or the surroundings name.
async fn connect(flags: &Flags) -> anyhow::Result<Client> {
    let config = match &flags.kubeconfig {
        Some(path) => {
            let useless = |error| {
                anyhow!("{} cannot be used as --kubeconfig: {}", path.display(), told::kubeconfig(&error))
            };
            let read = Kubeconfig::read_from(path).map_err(useless)?;
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.map_err(useless)?
        }
        None => {
            let nowhere =
                |error| anyhow!("no cluster is known ({}): give --kubeconfig FILE", told::nowhere(&error));
            Config::infer().await.map_err(nowhere)?
        }
    };
    Client::try_from(config).map_err(|error| anyhow!("the kubeconfig's credentials cannot be used: {error}"))
}

fn pods(client: Client) -> BoxStream<'static, Seen> {
    watcher(Api::<Pod>::all(client), watcher::Config::default()).map(Seen::Pod).boxed()
}

fn nodes(client: Client) -> BoxStream<'static, Seen> {
    watcher(Api::<Node>::all(client), watcher::Config::default()).map(Seen::Node).boxed()
}

struct Scheduler {
    cluster: Cluster,
    sender: Sender,
    flags: Flags,
    ready: bool,
}

impl Scheduler {
    fn new(client: Client, flags: Flags) -> Self {
        let name = &flags.scheduler_name;
        let (cluster, sender) = (Cluster::new(name), Sender::new(client, name));
        Self { cluster, sender, flags, ready: false }
    }

    /// Follows the cluster; where a watch breaks, both begin anew, since one that lags behind the other would make a pod
    /// miss a node that was there before it.
    async fn run(&mut self, client: Client) {
        let mut complaint = String::new();
        loop {
            let broken = self.follow(&client, &mut complaint).await;
            if broken != complaint {
                tracing::warn!("{broken}; trying again");
                complaint = broken;
            }
            self.cluster.forget_lists();
            clock::pause(PAUSE).await;
        }
    }

    /// Watches pods, then also nodes, so that a pod of the list meets every node that is older than it.
    async fn follow(&mut self, client: &Client, complaint: &mut String) -> String {
        let mut watches = SelectAll::new();
        watches.push(pods(client.clone()));
        loop {
            tokio::select! {
                biased;
                Some(seen) = watches.next() => {
                    let pods_listed = matches!(seen, Seen::Pod(Ok(Event::InitDone)));
                    if let Err(error) = self.see(seen) {
                        return told::watch(&error);
                    }
                    if pods_listed {
                        watches.push(nodes(client.clone()));
                    }
                    if self.cluster.size().is_some() {
                        complaint.clear();
                    }
                }
                () = std::future::ready(()), if self.cluster.waits() => {
                    self.schedule_one().await;
                    if self.sender.take_lost() {
                        return "the connection was lost".into();
                    }
                }
            }
        }
    }

    fn see(&mut self, seen: Seen) -> watcher::Result<()> {
        match seen {
            Seen::Node(event) => {
                let event = event?;
                tracing::debug!("node {event}");
                self.cluster.apply_node(event);
            }
            Seen::Pod(event) => {
                let event = event?;
                tracing::debug!("pod {event}");
                self.cluster.apply_pod(event);
            }
        }
        if let (Some((nodes, pods)), false) = (self.cluster.size(), self.ready) {
            let (name, dry) = (&self.flags.scheduler_name, if self.flags.dry_run { ", dry run" } else { "" });
            tracing::info!("ready: schedules for {name}, sees {nodes} nodes and {pods} pods{dry}");
            self.ready = true;
        }
        Ok(())
    }

    /// Looks at one pod, once (EXT-06).
    async fn schedule_one(&mut self) {
        let Some((pod, request)) = self.cluster.take_waiting() else { return };
        let rooms = self.cluster.rooms();
        for room in &rooms {
            let missing: Vec<_> = missing(request, room.free).collect();
            tracing::debug!("{pod} on {}: free {:?}, missing {missing:?}", room.node, room.free);
        }
        match decide(request, &rooms) {
            Decision::Bind(node) => self.place(&pod, &node).await,
            Decision::NoFit(reason) => {
                tracing::info!("{pod} does not fit: {reason}");
                self.sender.failed(&pod, &reason).await;
            }
        }
    }

    async fn place(&mut self, pod: &PodRef, node: &str) {
        self.cluster.assume(pod, Some(node));
        if self.flags.dry_run {
            tracing::info!("{pod} would be bound to {node} (dry run)");
            return;
        }
        match self.sender.bind(pod, node).await {
            Bound::Here => {
                tracing::info!("{pod} bound to {node}");
                self.sender.scheduled(pod, node).await;
            }
            Bound::Late(code, message) => {
                tracing::info!("{pod} not bound to {node}, {code}: {message}");
                self.cluster.assume(pod, None);
            }
            Bound::Refused(message) => {
                tracing::info!("{pod} not bound to {node}: {message}");
                self.cluster.assume(pod, None);
                self.sender.failed(pod, &messages::refused(node, &message)).await;
            }
        }
    }
}
