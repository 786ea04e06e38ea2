//! How fast the API answers, durably and not: `api_speed BINARY [DIR]` prints a table.
//!
//! Each figure is the median of several runs against a process of its own. The disk's fsync is measured between the writes that
//! are compared with it, in the same directory. Run it on a machine that does nothing else.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;
use tokio::task::LocalSet;

use control_plane_bench::{Client, LEASES, PODS, Server, median, ms, part, sorted};

const RUNS: usize = 3;

/// One line of the table.
struct Row {
    what: &'static str,
    values: Vec<String>,
    bar: &'static str,
    kubernetes: &'static str,
}

fn pod(name: &str, scheduler: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench", "tier": "load"}},
        "spec": {
            "schedulerName": scheduler, "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main", "image": "registry.example/bench:1.0", "args": ["--period", "5"],
                "env": [{"name": "MODE", "value": "bench"}, {"name": "LEVEL", "value": "info"}],
                "resources": {"requests": {"memory": "16Ki"}, "limits": {"memory": "32Ki"}},
            }],
        },
    })
    .to_string()
}

fn node(name: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": "a"}},
        "status": {
            "allocatable": {"memory": "4Gi", "pods": "1000", "esp32.io/gpio": "20"},
            "capacity": {"memory": "4Gi", "pods": "1000", "esp32.io/gpio": "20"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
    .to_string()
}

fn lease(name: &str, micros: u64, version: Option<&str>) -> String {
    let renewed = jiff::Timestamp::UNIX_EPOCH + Duration::from_micros(1_800_000_000_000_000 + micros);
    let mut metadata = json!({"name": name, "namespace": "kube-node-lease"});
    if let Some(version) = version {
        metadata["resourceVersion"] = json!(version);
    }
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format!("{renewed:.6}")},
    })
    .to_string()
}

/// Figures of one run, in the order of the table.
#[derive(Default)]
struct Figures {
    get: (f64, f64),
    fsync: f64,
    post: (f64, f64),
    delete: (f64, f64),
    list: f64,
    creates: f64,
    placed: f64,
    fan_out: f64,
    resident: f64,
    idle: f64,
    ready: f64,
    renewals: f64,
}

/// What one fsync of two pages takes here.
fn fsync(file: &std::fs::File, at: u64) -> std::io::Result<Duration> {
    let started = Instant::now();
    file.write_all_at(&[at as u8; 8192], at % 100 * 8192)?;
    file.sync_data()?;
    Ok(started.elapsed())
}

async fn nodes(client: &mut Client, count: usize) -> anyhow::Result<()> {
    for n in 0..count {
        client.must("POST", "/api/v1/nodes", &node(&format!("n{n}"))).await?;
        client.must("POST", LEASES, &lease(&format!("n{n}"), 0, None)).await?;
    }
    Ok(())
}

/// One client: reads and writes of single pods, and the list of a thousand.
async fn single(server: &Server, figures: &mut Figures) -> anyhow::Result<()> {
    let mut client = server.client().await?;
    nodes(&mut client, 20).await?;
    client.must("POST", PODS, &pod("one", "default-scheduler")).await?;
    let path = format!("{PODS}/one");
    let mut spans = Vec::new();
    for n in 0..5_500 {
        let started = Instant::now();
        client.must("GET", &path, "").await?;
        // The first ones find everything cold.
        if n >= 500 {
            spans.push(started.elapsed());
        }
    }
    let spans = sorted(spans);
    figures.get = (ms(part(&spans, 500)), ms(part(&spans, 990)));

    let file = std::fs::File::create(server.data_dir().join("fsync"))?;
    file.set_len(100 * 8192)?;
    file.sync_all()?;
    let (mut syncs, mut posts, mut deletions) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..300 {
        syncs.push(fsync(&file, n)?);
        let body = pod(&format!("p{n}"), "default-scheduler");
        let started = Instant::now();
        client.must("POST", PODS, &body).await?;
        posts.push(started.elapsed());
        let path = format!("{PODS}/p{n}");
        let started = Instant::now();
        client.must("DELETE", &path, "").await?;
        deletions.push(started.elapsed());
    }
    let (syncs, posts, deletions) = (sorted(syncs), sorted(posts), sorted(deletions));
    figures.fsync = ms(part(&syncs, 500));
    figures.post = (ms(part(&posts, 500)), ms(part(&posts, 990)));
    figures.delete = (ms(part(&deletions, 500)), ms(part(&deletions, 990)));
    Ok(())
}

/// Thirty-two clients that create pods; answers creations a second.
async fn creates(server: &Server, prefix: &str, scheduler: &'static str, each: usize) -> anyhow::Result<f64> {
    const CLIENTS: usize = 32;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(server.client().await?);
    }
    let started = Instant::now();
    let local = LocalSet::new();
    let tasks: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(number, mut client)| {
            let prefix = prefix.to_owned();
            local.spawn_local(async move {
                for n in 0..each {
                    client.must("POST", PODS, &pod(&format!("{prefix}-{number}-{n}"), scheduler)).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    local
        .run_until(async {
            for task in tasks {
                task.await??;
            }
            anyhow::Ok(())
        })
        .await?;
    Ok((CLIENTS * each) as f64 / started.elapsed().as_secs_f64())
}

async fn listing(server: &Server) -> anyhow::Result<f64> {
    let mut client = server.client().await?;
    let mut spans = Vec::new();
    for _ in 0..30 {
        let started = Instant::now();
        client.must("GET", &format!("{PODS}?limit=1000"), "").await?;
        spans.push(started.elapsed());
    }
    Ok(ms(part(&sorted(spans), 500)))
}

/// A thousand watches of pods, and the time from a write's request until the last of them has it.
async fn fan_out(server: &Server) -> anyhow::Result<f64> {
    const WATCHES: usize = 1_000;
    const WRITES: usize = 15;
    let local = LocalSet::new();
    let (told, mut arrived) = tokio::sync::mpsc::unbounded_channel();
    // From here on, so that what is there already is not taken for news.
    let mut client = server.client().await?;
    let (_, listed) = client.ask("GET", "/api/v1/pods?limit=1", "").await?;
    let listed: serde_json::Value = serde_json::from_slice(listed)?;
    let version = listed["metadata"]["resourceVersion"].as_str().context("a list without a version")?;
    let path = format!("/api/v1/pods?watch=1&resourceVersion={version}");
    for _ in 0..WATCHES {
        let mut watch = server.client().await?;
        watch.watch(&path).await?;
        let told = told.clone();
        local.spawn_local(async move {
            while watch.chunk().await.is_ok() && told.send(Instant::now()).is_ok() {}
        });
    }
    client.must("POST", PODS, &pod("told", "another")).await?;
    local
        .run_until(async {
            for _ in 0..WATCHES {
                arrived.recv().await;
            }
            let mut spans = Vec::new();
            for n in 0..WRITES {
                let patch = json!({"metadata": {"labels": {"n": n.to_string()}}}).to_string();
                let started = Instant::now();
                client.must("PATCH", &format!("{PODS}/told"), &patch).await?;
                let mut last = started;
                for _ in 0..WATCHES {
                    last = last.max(arrived.recv().await.context("a watch ended")?);
                }
                spans.push(last - started);
            }
            anyhow::Ok(ms(part(&sorted(spans), 500)))
        })
        .await
}

/// Renews the leases of `count` nodes at `rate` a second over `clients` connections for `time`; answers the share of a core.
async fn renew(
    server: &Server,
    clients: &mut [Client],
    count: usize,
    period: Duration,
    time: Duration,
) -> anyhow::Result<f64> {
    let (began, computed) = (Instant::now(), server.computed()?);
    let gap = period / u32::try_from(count)?;
    let renewals = u32::try_from(time.as_nanos() / gap.as_nanos())?;
    // Each connection sends what is due of its nodes, one after the other.
    let share = u32::try_from(clients.len())?;
    let tasks = clients.iter_mut().zip(0..share).map(|(client, number)| async move {
        let mut n = number;
        while n < renewals {
            tokio::time::sleep_until((began + gap * n).into()).await;
            let name = format!("n{}", n as usize % count);
            let body = lease(&name, u64::from(n) + 1, None);
            client.must("PUT", &format!("{LEASES}/{name}"), &body).await?;
            n += share;
        }
        anyhow::Ok(())
    });
    futures_util::future::try_join_all(tasks).await?;
    Ok((server.computed()? - computed).as_secs_f64() / began.elapsed().as_secs_f64())
}

async fn run(binary: &Path, dir: &Path, store: &str) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    let start = |name: &str, flags: &[&str]| {
        let flags: Vec<&str> = ["--store", store].iter().chain(flags).copied().collect();
        Server::start(binary, &dir.join(name), &flags)
    };
    drop(start("a", &[])?);
    let started = Instant::now();
    let server = start("a", &[])?;
    server.client().await?.must("GET", "/readyz", "").await?;
    figures.ready = ms(started.elapsed());
    single(&server, &mut figures).await?;
    drop(server);

    let server = start("b", &[])?;
    let mut client = server.client().await?;
    nodes(&mut client, 20).await?;
    let mut boards = Vec::new();
    for n in 0..20 {
        let mut watch = server.client().await?;
        watch.watch(&format!("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn{n}")).await?;
        boards.push(watch);
    }
    figures.idle = 100.0
        * renew(
            &server,
            std::slice::from_mut(&mut client),
            20,
            Duration::from_secs(10),
            Duration::from_secs(10),
        )
        .await?;
    figures.resident = server.resident()?;
    drop(boards);
    drop(server);

    let server = start("c", &[])?;
    creates(&server, "listed", "another", 32).await?;
    figures.list = listing(&server).await?;
    figures.fan_out = fan_out(&server).await?;
    figures.creates = creates(&server, "made", "another", 200).await?;
    // Not sooner: the server closes connections on which nothing is asked for a while.
    nodes(&mut server.client().await?, 20).await?;
    figures.placed = creates(&server, "placed", "default-scheduler", 50).await?;
    drop(server);

    let server = start("d", &[])?;
    let mut clients = Vec::new();
    for _ in 0..64 {
        clients.push(server.client().await?);
    }
    let making = clients.iter_mut().enumerate().map(|(share, client)| async move {
        for n in (share..5_000).step_by(64) {
            client.must("POST", "/api/v1/nodes", &node(&format!("n{n}"))).await?;
            client.must("POST", LEASES, &lease(&format!("n{n}"), 0, None)).await?;
        }
        anyhow::Ok(())
    });
    futures_util::future::try_join_all(making).await?;
    let (period, time) = (Duration::from_secs(5), Duration::from_secs(10));
    figures.renewals = renew(&server, &mut clients, 5_000, period, time).await?;
    Ok(figures)
}

fn rows(runs: &[Vec<Figures>]) -> Vec<Row> {
    let row = |what, bar, kubernetes, decimals: usize, of: &dyn Fn(&Figures) -> f64| Row {
        what,
        values: runs
            .iter()
            .map(|runs| format!("{:.*}", decimals, median(runs.iter().map(of).collect())))
            .collect(),
        bar,
        kubernetes,
    };
    vec![
        row("GET of a pod, p50, ms", "0.15", "0.81", 3, &|of| of.get.0),
        row("GET of a pod, p99, ms", "", "1.9", 3, &|of| of.get.1),
        row("fsync of the data directory, p50, ms", "", "", 3, &|of| of.fsync),
        row("POST of a pod that is bound, p50, ms", "", "1.87", 3, &|of| of.post.0),
        row("… more than an fsync, ms", "0.3", "", 3, &|of| of.post.0 - of.fsync),
        row("POST of a pod that is bound, p99, ms", "", "5.4", 3, &|of| of.post.1),
        row("DELETE of a pod, p50, ms", "", "3.2", 3, &|of| of.delete.0),
        row("DELETE of a pod, p99, ms", "", "", 3, &|of| of.delete.1),
        row("LIST of 1,000 pods, p50, ms", "5", "20", 2, &|of| of.list),
        row("pods created a second by 32 clients", "3,000", "670-885", 0, &|of| of.creates),
        row("… and bound to 20 nodes inside the request", "", "", 0, &|of| of.placed),
        row("a write seen by 1,000 watches, ms", "20", "", 1, &|of| of.fan_out),
        row("resident with 20 nodes, MiB", "30", "512", 1, &|of| of.resident),
        row("idle with 20 nodes, % of a core", "1", "10", 2, &|of| of.idle),
        row("from start to ready, ms", "100", "", 1, &|of| of.ready),
        row("5,000 nodes renew every 5 s, cores", "1", "", 2, &|of| of.renewals),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let binary = arguments.next().context("usage: api_speed BINARY [DIR]")?;
    let dir = match arguments.next() {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    let stores = ["redb", "memory"];
    let mut all = Vec::new();
    for store in stores {
        let mut runs = Vec::new();
        for number in 0..RUNS {
            eprintln!("api_speed: {store}, run {} of {RUNS}", number + 1);
            runs.push(run(&binary, &dir.path().join(format!("{store}{number}")), store).await?);
        }
        all.push(runs);
    }
    let mut out = std::io::stdout().lock();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    writeln!(out, "load of the machine at the end: {}", load.trim())?;
    writeln!(out, "{:<45} {:>10} {:>10} {:>8} {:>16}", "", stores[0], stores[1], "bar", "Kubernetes 1.32")?;
    for Row { what, values, bar, kubernetes } in rows(&all) {
        writeln!(out, "{what:<45} {:>10} {:>10} {bar:>8} {kubernetes:>16}", values[0], values[1])?;
    }
    Ok(())
}
