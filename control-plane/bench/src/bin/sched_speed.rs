//! How fast scheduler and controllers are: `sched_speed BINARY [DIR]` prints a table.
//!
//! The first figure is that of a process and its clients; the others are of the same code inside this process, where time can be
//! made to pass. Each is the median of several runs. Run it on a machine that does nothing else.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use control_plane::store::{Expect, Key, Scope};
use control_plane::{Clock, Config, ControlPlane, MemoryStore, RedbStore, Store};
use control_plane_bench::{Client, LEASES, PODS, Server, median, ms};
use control_plane_core::controllers::daemonset::{self, Roster};
use control_plane_core::scheduler::{self, Assumed, KUBE32, Profile, UPSTREAM, Verdict};
use control_plane_core::{Now, Snapshot, Write};
use serde_json::{Value, json};
use tokio::task::LocalSet;

const RUNS: usize = 3;
const START: &str = "2026-01-01T00:00:00Z";

fn board(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": {"memory": "320Ki", "cpu": "1", "pods": "20", "esp32.io/gpio": "16", "esp32.io/uart": "2"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": START}],
        },
    })
}

fn lease(name: &str, seconds: u64) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": seconds, "renewTime": "2026-01-01T00:00:00.000000Z"},
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{
            "name": "main", "image": "registry.example/bench:1.0",
            "resources": {"requests": {"memory": "16Ki", "esp32.io/gpio": "1"}},
        }]},
    })
}

/// A clock that is set by hand.
#[derive(Default)]
struct Hand(AtomicU64);

impl Hand {
    fn pass(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn mono(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::SeqCst))
    }

    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH + Duration::from_secs(1_767_225_600) + self.mono()
    }
}

/// Five thousand pods that 32 clients create while there are 500 boards; answers the seconds until the last is bound, and how
/// many microseconds of processor time each pod costs the server, events included.
async fn through_the_api(binary: &Path, dir: &Path, store: &str) -> anyhow::Result<[f64; 2]> {
    const CLIENTS: usize = 32;
    const EACH: usize = 5_000 / CLIENTS + 1;
    let server = Server::start(binary, dir, &["--store", store])?;
    let mut client = server.client().await?;
    for n in 0..500 {
        let name = format!("n{n}");
        client.must("POST", "/api/v1/nodes", &board(&name).to_string()).await?;
        client.must("POST", LEASES, &lease(&name, 40).to_string()).await?;
    }
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(server.client().await?);
    }
    let before = server.computed()?.as_secs_f64();
    let (local, started) = (LocalSet::new(), Instant::now());
    let making = clients.into_iter().enumerate().map(|(number, mut client)| {
        local.spawn_local(async move {
            for n in 0..EACH {
                client.must("POST", PODS, &pod(&format!("p{number}-{n}")).to_string()).await?;
            }
            anyhow::Ok(())
        })
    });
    let making: Vec<_> = making.collect();
    let made = local.run_until(async { futures_util::future::try_join_all(making).await }).await?;
    made.into_iter().collect::<anyhow::Result<Vec<()>>>()?;
    let took = started.elapsed();
    // The last events may still be on their way.
    let deadline = Instant::now() + Duration::from_secs(60);
    while count(&mut client, "/api/v1/namespaces/default/events").await? < CLIENTS * EACH {
        anyhow::ensure!(Instant::now() < deadline, "events are missing");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let spent = server.computed()?.as_secs_f64() - before;
    let (_, unbound) =
        client.ask("GET", &format!("{PODS}?fieldSelector=spec.nodeName%3D&limit=1"), "").await?;
    let unbound: Value = serde_json::from_slice(unbound)?;
    anyhow::ensure!(unbound["items"].as_array().is_some_and(Vec::is_empty), "some pod was not bound");
    let pods = (CLIENTS * EACH) as f64;
    Ok([took.as_secs_f64() * 5_000.0 / pods, spent * 1e6 / pods])
}

/// How many objects there are at a path.
async fn count(client: &mut Client, path: &str) -> anyhow::Result<usize> {
    let (_, list) = client.ask("GET", &format!("{path}?limit=1"), "").await?;
    let list: Value = serde_json::from_slice(list)?;
    let shown = list["items"].as_array().map_or(0, Vec::len);
    let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    Ok(shown + usize::try_from(more)?)
}

/// Milliseconds to place one pod where there are 5,000 boards.
fn one_attempt(profile: &'static Profile) -> anyhow::Result<f64> {
    const PODS_PLACED: u32 = 500;
    let mut snapshot = Snapshot::default();
    snapshot.keep_ledger(profile);
    for n in 0..5_000 {
        let node = board(&format!("n{n:04}"));
        snapshot.apply("nodes", control_plane_core::Key::of(&node), Some(node.into()));
    }
    let now = Now { mono: Duration::ZERO, wall: START.parse()? };
    let started = Instant::now();
    for n in 0..PODS_PLACED {
        let pod = pod(&format!("p{n}"));
        let verdict = scheduler::schedule(profile, &pod, &snapshot, &Assumed::default());
        let Verdict::Bind { node, .. } = verdict else {
            anyhow::bail!("there is room, but no node was found")
        };
        let bound = scheduler::bound(&pod, &node, &now);
        snapshot.apply("pods", control_plane_core::Key::of(&bound), Some(bound.into()));
    }
    Ok(ms(started.elapsed()) / f64::from(PODS_PLACED))
}

async fn put(store: &dyn Store, resource: &str, object: Value) -> anyhow::Result<()> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let key = Key::new(resource, text("namespace"), text("name"));
    store.put(key, object, Expect::Absent).await.map(drop).map_err(|error| anyhow::anyhow!("{error}"))
}

/// Milliseconds of one turn of every controller over 5,000 boards and 20,000 pods of 500 deployments, in which nothing is to do.
async fn idle_pass() -> anyhow::Result<f64> {
    const TURNS: usize = 15;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = Arc::new(Hand::default());
    for n in 0..5_000 {
        put(store.as_ref(), "nodes", board(&format!("n{n}"))).await?;
        put(store.as_ref(), "leases", lease(&format!("n{n}"), 4_000_000)).await?;
    }
    for d in 0..500 {
        let name = format!("d{d}");
        put(store.as_ref(), "deployments", deployment(&name)).await?;
    }
    let config = Config { no_auth: true, plain_http: true, ..Config::default() };
    let plane =
        ControlPlane::open(config, Arc::clone(&store), Arc::clone(&clock) as Arc<dyn Clock>, 1).await?;
    // Every board is heard of, as it is while all is well.
    let leases = store.list(Scope { resource: "leases", namespace: None }, None).await;
    for (key, entry) in leases.map_err(|error| anyhow::anyhow!("{error}"))?.entries {
        let mut lease = entry.object.as_ref().clone();
        lease["spec"]["renewTime"] = "2026-01-01T00:00:01.000000Z".into();
        let written = store.put(key, lease, Expect::Revision(entry.revision)).await;
        written.map_err(|error| anyhow::anyhow!("{error}"))?;
    }
    // The deployments make their pods, and those are said to run.
    settle(&plane, &clock).await;
    let pods = store.list(Scope { resource: "pods", namespace: None }, None).await;
    for (key, entry) in pods.map_err(|error| anyhow::anyhow!("{error}"))?.entries {
        let mut pod = entry.object.as_ref().clone();
        pod["status"]["phase"] = "Running".into();
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": START});
        pod["status"]["conditions"].as_array_mut().context("no conditions")?.push(ready);
        let written = store.put(key, pod, Expect::Revision(entry.revision)).await;
        written.map_err(|error| anyhow::anyhow!("{error}"))?;
    }
    settle(&plane, &clock).await;
    let before = store.revision();
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        clock.pass(Duration::from_millis(1_000));
        let started = Instant::now();
        plane.reconcile().await;
        turns.push(ms(started.elapsed()));
    }
    anyhow::ensure!(store.revision() == before, "something was done in what is to be an idle turn");
    let pods = store.list(Scope { resource: "pods", namespace: None }, None).await;
    let count = pods.map_err(|error| anyhow::anyhow!("{error}"))?.entries.len();
    anyhow::ensure!(count == 20_000, "{count} pods are not 20,000");
    Ok(median(turns))
}

/// Milliseconds of one pass over a DaemonSet of 5,000 boards after one of them changed.
fn one_node_changed() -> anyhow::Result<f64> {
    const CHANGES: usize = 25;
    let now = Now { mono: Duration::ZERO, wall: START.parse()? };
    let mut snapshot = Snapshot::default();
    let put = |snapshot: &mut Snapshot, resource: &'static str, object: Value| {
        snapshot.observe(resource, control_plane_core::Key::of(&object), Some(object.into()), &now);
    };
    for n in 0..5_000 {
        put(&mut snapshot, "nodes", board(&format!("n{n:04}")));
    }
    put(&mut snapshot, "daemonsets", daemon_set());
    let key = control_plane_core::Key::new("default", "agent");
    let mut roster = Roster::default();
    let made = daemonset::decide_with(&mut roster, &snapshot, &key, &now);
    for (number, write) in made.writes.into_iter().enumerate() {
        match write {
            Write::Create { object: mut pod, .. } => {
                pod["metadata"]["uid"] = number.to_string().into();
                pod["spec"]["nodeName"] = pod["spec"]["nodeSelector"]["kubernetes.io/hostname"].clone();
                pod["status"] = json!({"phase": "Running", "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": START},
                ]});
                put(&mut snapshot, "pods", pod);
            }
            Write::Update { resource, object, .. } => put(&mut snapshot, resource, object),
            Write::Replace { .. } | Write::Delete { .. } | Write::Bind { .. } | Write::Evict { .. } => {
                anyhow::bail!("nothing else was to be written")
            }
        }
    }
    // The status tells of the pods from here on.
    for write in daemonset::decide_with(&mut roster, &snapshot, &key, &now).writes {
        if let Write::Update { resource, object, .. } = write {
            put(&mut snapshot, resource, object);
        }
    }
    let mut passes = Vec::new();
    for n in 0..CHANGES {
        let mut changed = board(&format!("n{:04}", n * 97));
        changed["metadata"]["labels"]["changed"] = n.to_string().into();
        put(&mut snapshot, "nodes", changed);
        let started = Instant::now();
        let decision = daemonset::decide_with(&mut roster, &snapshot, &key, &now);
        passes.push(ms(started.elapsed()));
        anyhow::ensure!(decision.is_idle(), "something was done for a label that nobody asks for");
    }
    Ok(median(passes))
}

fn daemon_set() -> Value {
    let mut template = json!({"metadata": {"labels": {"app": "agent"}}});
    template["spec"] = pod("template")["spec"].clone();
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default", "uid": "agent", "generation": 1},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}}, "template": template,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        },
    })
}

/// Turns until nothing happens any more.
async fn settle(plane: &ControlPlane, clock: &Hand) {
    for _ in 0..10 {
        clock.pass(Duration::from_millis(1_000));
        plane.reconcile().await;
    }
}

fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    let mut template = json!({"metadata": {"labels": labels.clone()}});
    template["spec"] = pod("template")["spec"].clone();
    template["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "16Ki"}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "uid": name, "generation": 1},
        "spec": {
            "replicas": 40, "selector": {"matchLabels": labels}, "template": template, "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        },
    })
}

/// Milliseconds from the check that finds `dead` boards of 500 dead until the last of them is tainted, durably.
async fn taints(dir: &Path, dead: usize) -> anyhow::Result<f64> {
    std::fs::create_dir_all(dir)?;
    let store: Arc<dyn Store> = Arc::new(RedbStore::open(&dir.join("store.redb"), 65_536)?);
    let clock = Arc::new(Hand::default());
    let making = (0..500).map(|n| {
        let (name, store) = (format!("n{n}"), Arc::clone(&store));
        async move {
            put(store.as_ref(), "nodes", board(&name)).await?;
            put(store.as_ref(), "leases", lease(&name, if n < dead { 15 } else { 4_000_000 })).await
        }
    });
    futures_util::future::try_join_all(making).await?;
    let config = Config { no_auth: true, plain_http: true, ..Config::default() };
    let plane =
        ControlPlane::open(config, Arc::clone(&store), Arc::clone(&clock) as Arc<dyn Clock>, 1).await?;
    settle(&plane, &clock).await;
    clock.pass(Duration::from_secs(20));
    let started = Instant::now();
    plane.reconcile().await;
    let took = started.elapsed();
    let nodes = store.list(Scope { resource: "nodes", namespace: None }, None).await;
    let nodes = nodes.map_err(|error| anyhow::anyhow!("{error}"))?.entries;
    let tainted = nodes.iter().filter(|(_, it)| it.object["spec"]["taints"].is_array()).count();
    anyhow::ensure!(tainted == dead, "{tainted} of {dead} dead boards are tainted");
    Ok(ms(took))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let binary = arguments.next().context("usage: sched_speed BINARY [DIR]")?;
    let dir = match arguments.next() {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    let mut figures: [Vec<f64>; 11] = Default::default();
    for run in 0..RUNS {
        eprintln!("sched_speed: run {} of {RUNS}", run + 1);
        let place = |what: &str| dir.path().join(format!("{what}{run}"));
        let [durable, durable_cost] = through_the_api(&binary, &place("redb"), "redb").await?;
        let [forgetful, forgetful_cost] = through_the_api(&binary, &place("memory"), "memory").await?;
        let of_run = [
            durable,
            durable_cost,
            forgetful,
            forgetful_cost,
            one_attempt(&KUBE32)?,
            one_attempt(&UPSTREAM)?,
            idle_pass().await?,
            one_node_changed()?,
            taints(&place("one"), 1).await?,
            taints(&place("hundred"), 100).await?,
            taints(&place("all"), 500).await?,
        ];
        for (all, one) in figures.iter_mut().zip(of_run) {
            all.push(one);
        }
    }
    let rows = [
        ("5,000 pods bound to 500 boards by 32 clients, s", 2, "2"),
        ("… processor time of the server a pod, µs", 0, ""),
        ("… with the store in memory, s", 2, ""),
        ("… processor time of the server a pod, µs", 0, ""),
        ("one pod among 5,000 boards (kube32), ms", 3, "1"),
        ("one pod among 5,000 boards (upstream), ms", 3, "1"),
        ("idle turn, 5,000 boards and 20,000 pods, ms", 2, "20"),
        ("DaemonSet of 5,000 boards after one changed, ms", 3, "10"),
        ("from check to taint, 1 of 500 boards dead, ms", 1, "50"),
        ("… 100 of 500, the last, ms", 1, ""),
        ("… all 500, the last, ms", 1, ""),
    ];
    let mut out = std::io::stdout().lock();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    writeln!(out, "load of the machine at the end: {}", load.trim())?;
    writeln!(out, "{:<50} {:>10} {:>8}", "", "median", "bar")?;
    for ((what, decimals, bar), figures) in rows.into_iter().zip(figures) {
        writeln!(out, "{what:<50} {:>10.decimals$} {bar:>8}", median(figures))?;
    }
    Ok(())
}
