//! The binary as a process: what it prints and writes, how it refuses bad flags, how it ends.

mod support;
mod tls;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use control_plane::config::{Admission, Controller};
use support::{Process, command};

/// Runs a command that is expected to end by itself; its code and what it said on standard error.
fn failure(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.stderr(Stdio::piped()).output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// An HTTP/1.1 exchange by hand; the connection is closed by the server.
fn raw(url: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn signal(process: &Process, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn token(kubeconfig: &std::path::Path) -> String {
    let content: serde_json::Value = serde_json::from_slice(&fs::read(kubeconfig).unwrap()).unwrap();
    content["users"][0]["user"]["token"].as_str().unwrap().to_owned()
}

fn get(process: &Process, token: &str, path: &str) -> String {
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    raw(&process.url, &head)
}

#[test]
fn it_says_where_it_serves_and_leaves_kubeconfigs() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    fs::write(&tokens, "t-a,system:node:a,,system:nodes\n").unwrap();
    let copy = dir.path().join("admin.yaml");
    let mut start = command(dir.path());
    start.arg("--token-auth-file").arg(&tokens).arg("--admin-kubeconfig").arg(&copy);
    let process = Process::start(start);
    for name in ["admin", "scheduler", "controller-manager", "node-a"] {
        let path = dir.path().join(format!("kubeconfig/{name}.kubeconfig"));
        let content: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let server = content["clusters"][0]["cluster"]["server"].as_str().unwrap();
        assert!(
            server.ends_with(process.url.strip_prefix("http:/").unwrap().trim_start_matches('/')),
            "{server}"
        );
    }
    let answer = get(&process, &token(&copy), "/api/v1/namespaces/default");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert_eq!(answer.to_ascii_lowercase().matches("\r\ndate: ").count(), 1, "{answer}");
    assert!(get(&process, "wrong", "/api/v1/pods").starts_with("HTTP/1.1 401"));
}

#[test]
fn objects_and_tokens_outlive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let process = Process::start(command(dir.path()));
    let admin = token(&dir.path().join("kubeconfig/admin.kubeconfig"));
    let body = r#"{"metadata":{"name":"kept"}}"#;
    let path = "/api/v1/namespaces/default/configmaps";
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {admin}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!(raw(&process.url, &request).starts_with("HTTP/1.1 201"));
    signal(&process, "KILL");
    drop(process);
    let process = Process::start(command(dir.path()));
    assert!(get(&process, &admin, &format!("{path}/kept")).starts_with("HTTP/1.1 200"));
}

#[test]
fn what_was_answered_outlives_a_kill_in_the_middle_of_writing() {
    let dir = tempfile::tempdir().unwrap();
    let path = "/api/v1/namespaces/default/configmaps";
    let start = || {
        let mut start = command(dir.path());
        start.arg("--no-auth");
        Process::start(start)
    };
    let process = start();
    let (told, answered) = std::sync::mpsc::channel();
    let url = process.url.clone();
    let writer = std::thread::spawn(move || {
        for n in 0.. {
            let body = format!(r#"{{"metadata":{{"name":"m{n}"}}}}"#);
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let Ok(mut stream) = TcpStream::connect(url.strip_prefix("http://").unwrap()) else { return };
            let mut answer = String::new();
            let exchanged = stream
                .write_all(format!("{head}{body}").as_bytes())
                .and_then(|()| stream.read_to_string(&mut answer));
            if exchanged.is_err() || !answer.starts_with("HTTP/1.1 201") {
                return;
            }
            let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            // Half an answer is none.
            let Ok(object) = serde_json::from_str::<serde_json::Value>(body) else { return };
            let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            told.send((n, version)).unwrap();
        }
    });
    let mut kept: Vec<(i32, u64)> = answered.iter().take(40).collect();
    signal(&process, "KILL");
    writer.join().unwrap();
    kept.extend(answered.try_iter());
    drop(process);
    let process = start();
    for (n, version) in &kept {
        let answer = get(&process, "", &format!("{path}/m{n}"));
        assert!(
            answer.starts_with("HTTP/1.1 200")
                && answer.contains(&format!(r#""resourceVersion":"{version}""#)),
            "{answer}"
        );
    }
    let list = get(&process, "", path);
    let list: serde_json::Value = serde_json::from_str(list.split_once("\r\n\r\n").unwrap().1).unwrap();
    let current: u64 = list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(current >= kept.iter().map(|(_, version)| *version).max().unwrap());
}

#[test]
fn it_ends_cleanly_on_either_signal_even_with_an_open_watch() {
    for signal in ["TERM", "INT"] {
        let dir = tempfile::tempdir().unwrap();
        let mut start = command(dir.path());
        let log = dir.path().join("log");
        start.args(["--no-auth", "--store", "memory"]).stderr(fs::File::create(&log).unwrap());
        let mut process = Process::start(start);
        let mut watch = TcpStream::connect(process.url.strip_prefix("http://").unwrap()).unwrap();
        watch.write_all(b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut begun = [0; 1024];
        assert!(watch.read(&mut begun).unwrap() > 0);
        // A client's connection in reserve, and one that is kept for the next request, are not waited for.
        let mut reserve = TcpStream::connect(process.url.strip_prefix("http://").unwrap()).unwrap();
        let mut kept = TcpStream::connect(process.url.strip_prefix("http://").unwrap()).unwrap();
        kept.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        assert!(kept.read(&mut begun).unwrap() > 0);
        self::signal(&process, signal);
        // Each end comes while the process still waits for whom it has to: it leaves the others at once.
        for client in [&mut reserve, &mut kept, &mut watch] {
            drop(client.read_to_end(&mut Vec::new()));
        }
        assert_eq!(process.child.wait().unwrap().code(), Some(0), "{signal}");
        let said = fs::read_to_string(&log).unwrap();
        assert!(said.contains("ending") && !said.contains("still reading"), "{signal}: {said}");
    }
}

/// NODE-11: whoever starts next gives each Ready node a full lease, so none may run out while this one ends.
#[test]
fn no_controller_decides_while_it_waits_for_a_slow_client_to_end() {
    assert!(
        (0..5).any(|_| no_lease_runs_out_at_the_end()),
        "each lease ran out before the end was asked for"
    );
}

/// False, and nothing is shown, where the machine is so busy that the lease runs out before the process is asked to end.
fn no_lease_runs_out_at_the_end() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let mut start = command(dir.path());
    let log = dir.path().join("log");
    start.args(["--no-auth", "--node-monitor-period", "100ms"]).stderr(fs::File::create(&log).unwrap());
    let mut process = Process::start(start);
    let post = |path: &str, body: &str| {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let answer = raw(&process.url, &format!("{head}{body}"));
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    };
    post(
        "/api/v1/nodes",
        r#"{"metadata":{"name":"n1"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#,
    );
    post(
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        r#"{"metadata":{"name":"n1"},"spec":{"leaseDurationSeconds":3,"renewTime":"2026-01-01T00:00:00.000000Z"}}"#,
    );
    let mut slow = TcpStream::connect(process.url.strip_prefix("http://").unwrap()).unwrap();
    slow.write_all(b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").unwrap();
    signal(&process, "TERM");
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
    let said = fs::read_to_string(&log).unwrap();
    let (before, _) = said.split_once("SIGTERM: ending").unwrap_or_else(|| panic!("{said}"));
    if before.contains("node-lifecycle") {
        return false;
    }
    let mut start = command(dir.path());
    start.args(["--no-auth", "--controllers=*,-node-lifecycle"]);
    let process = Process::start(start);
    let node = get(&process, "", "/api/v1/nodes/n1");
    assert!(
        node.contains(r#""status":"True","type":"Ready""#) && !node.contains("NodeStatusUnknown"),
        "{node}"
    );
    true
}

#[test]
fn bad_flags_are_refused_with_a_remedy_and_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    fs::write(&tokens, "a,b,c\nx\n").unwrap();
    let quotes = dir.path().join("quotes.csv");
    fs::write(&quotes, "a,b,c\nd,e,f,\"g\n").unwrap();
    let check = |arguments: &[&str], words: &[&str]| {
        let mut bad = command(dir.path());
        bad.args(["--store", "memory"]).args(arguments);
        let (code, said) = failure(&mut bad);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{arguments:?}: {said}");
        }
    };
    check(&["--controllers", "*,-schedular"], &["schedular", "scheduler"]);
    check(&["--controllers", ""], &["--controllers", "`none`"]);
    check(&["--disable-admission", "Nope"], &["Nope", "ServiceAccount"]);
    check(&["--reconcile-interval", "5"], &["`5` is not a duration", "15s"]);
    check(&["--eviction-timeout", "1500ms"], &["whole seconds"]);
    check(&["--dialect", "french"], &["french", "kube32"]);
    check(&["--token-auth-file", tokens.to_str().unwrap()], &["tokens.csv, line 2", "at least 3 fields"]);
    check(
        &["--token-auth-file", quotes.to_str().unwrap()],
        &["quotes.csv, line 2", "quotation mark", "a line is token,user,uid"],
    );
    check(&["--token-auth-file", "/nonexistent"], &["/nonexistent", "--token-auth-file"]);
    check(&["--no-such-flag"], &["--no-such-flag"]);
}

#[test]
fn every_flag_stands_in_a_page_and_every_name_in_the_help() {
    let output = Command::new(env!("CARGO_BIN_EXE_control-plane")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = fs::read_to_string(root.join("README.md")).unwrap();
    for page in fs::read_dir(root.join("docs")).unwrap() {
        pages += &fs::read_to_string(page.unwrap().path()).unwrap();
    }
    let words = |text: &str| -> std::collections::BTreeSet<String> {
        let of_flag = |letter: char| letter == '-' || letter.is_ascii_lowercase();
        text.split(|letter| !of_flag(letter))
            .filter(|word| word.starts_with("--"))
            .map(str::to_owned)
            .collect()
    };
    let documented = words(&pages);
    let flags = words(&help);
    assert!(flags.len() > 40, "{flags:?}");
    // What every program has needs no page.
    let missing: Vec<_> = flags
        .difference(&documented)
        .filter(|flag| !matches!(flag.as_str(), "--help" | "--version"))
        .collect();
    assert!(missing.is_empty(), "in no page: {missing:?}");
    let names = Controller::ALL.iter().map(|it| it.name()).chain(Admission::ALL.iter().map(|it| it.name()));
    for name in names {
        assert!(help.contains(name), "{name} is not in the help");
        assert!(pages.contains(&format!("`{name}`")), "{name} is in no page");
    }
}

#[test]
fn unsafe_addresses_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], word: &str| {
        let mut bad = Command::new(env!("CARGO_BIN_EXE_control-plane"));
        bad.arg("--data-dir").arg(dir.path()).args(arguments);
        let (code, said) = failure(&mut bad);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(word), "{said}");
    };
    refused(&["--listen", "localhost:1", "--plain-http"], "127.0.0.1:6443");
    refused(&["--listen", "127.0.0.1:0", "--tls-cert-file", "x"], "--tls-private-key-file");
    refused(&["--plain-http", "--client-ca-file", "x"], "--plain-http");
    refused(&["--listen", "0.0.0.0:0", "--plain-http"], "--allow-insecure-bind");
    refused(&["--listen", "0.0.0.0:0", "--plain-http", "--allow-insecure-bind", "--no-auth"], "--no-auth");
}

#[test]
fn a_port_in_use_a_locked_or_broken_store_and_a_bad_directory_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let process = Process::start(command(dir.path()));
    let port = process.url.rsplit(':').next().unwrap();
    let other = tempfile::tempdir().unwrap();
    let mut listens = Command::new(env!("CARGO_BIN_EXE_control-plane"));
    listens.args(["--plain-http", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(other.path());
    let (code, said) = failure(&mut listens);
    assert!(code == Some(2) && said.contains("cannot listen on") && said.contains("--listen"), "{said}");

    let (code, said) = failure(&mut command(dir.path()));
    assert!(code == Some(2) && said.contains("in use by another process"), "{said}");

    fs::write(other.path().join("store.redb"), b"no database").unwrap();
    let (code, said) = failure(&mut command(other.path()));
    assert!(
        code == Some(2) && said.contains("not a usable store") && said.contains("move it away"),
        "{said}"
    );

    // An address kept for documentation, which no machine has.
    let mut listens = Command::new(env!("CARGO_BIN_EXE_control-plane"));
    listens.args(["--plain-http", "--allow-insecure-bind", "--listen", "192.0.2.1:0", "--data-dir"]);
    let (code, said) = failure(listens.arg(other.path()));
    assert!(
        code == Some(2) && said.contains("no such address") && !said.contains("uses that port"),
        "{said}"
    );

    let nowhere = std::path::Path::new("/proc/nonexistent");
    let mut kubeconfig = command(other.path());
    kubeconfig.args(["--store", "memory", "--admin-kubeconfig"]).arg(nowhere.join("admin.yaml"));
    for mut bad in [command(nowhere), kubeconfig] {
        let (code, said) = failure(&mut bad);
        assert!(
            code == Some(2) && said.contains("/proc/nonexistent") && said.contains("--data-dir"),
            "{said}"
        );
        assert_eq!(said.matches("os error").count(), 1, "{said}");
    }
}

/// Of those who want the same data directory, the one that has its store goes on undisturbed.
#[test]
fn whoever_finds_the_store_locked_changes_nothing_in_the_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let start = |names: &str| {
        let mut start = Command::new(env!("CARGO_BIN_EXE_control-plane"));
        start.args(["--listen", "127.0.0.1:0", "--tls-san", names, "--data-dir"]).arg(dir.path());
        start
    };
    let _process = Process::start(start("one.example"));
    fs::remove_file(dir.path().join("scheduler.token")).unwrap();
    let made = || {
        let pki = dir.path().join("pki");
        let content = ["server.crt", "server.key"].map(|name| fs::read(pki.join(name)).unwrap());
        (content, dir.path().join("scheduler.token").exists())
    };
    let before = made();
    let (code, said) = failure(&mut start("other.example"));
    assert!(code == Some(2) && said.contains("in use by another process"), "{said}");
    assert!(made() == before, "it made certificates or tokens anew");
}

#[test]
fn a_damaged_store_is_refused_in_one_line_without_a_backtrace() {
    let dir = tempfile::tempdir().unwrap();
    let mut process = Process::start(command(dir.path()));
    signal(&process, "TERM");
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
    let store = dir.path().join("store.redb");
    let good = fs::read(&store).unwrap();
    // Past the header, so that redb takes the file for one of its own: everything, and the start of every page.
    for changed in [usize::MAX, 64] {
        let mut bad = good.clone();
        for page in bad.chunks_mut(4096).skip(1) {
            page.iter_mut().take(changed).for_each(|byte| *byte ^= 0xA5);
        }
        fs::write(&store, bad).unwrap();
        let (code, said) = failure(command(dir.path()).env("RUST_BACKTRACE", "1"));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("not a usable store") && said.contains("move it away"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn what_it_makes_is_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let process = Process::start(command(&data));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("store.redb")), 0o600);
    drop(process);
}

#[test]
fn an_oversized_body_is_refused_and_the_server_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut start = command(dir.path());
    start.args(["--no-auth", "--store", "memory"]);
    let process = Process::start(start);
    let body = " ".repeat(3 * 1024 * 1024 + 1);
    let request = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw(&process.url, &request);
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("RequestEntityTooLarge"), "{answer}");
    assert!(raw(&process.url, "garbage\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(get(&process, "x", "/healthz").contains("\r\n\r\nok"));
}

/// With TLS and a client certificate, as the administrator; and over plain HTTP with a token.
#[test]
fn explain_schedule_says_what_each_node_lacks() {
    for plain in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut start = Command::new(env!("CARGO_BIN_EXE_control-plane"));
        start.args(["--listen", "127.0.0.1:0", "--store", "memory", "--disable-admission", "ServiceAccount"]);
        start.arg("--data-dir").arg(dir.path()).args(plain.then_some("--plain-http"));
        let process = Process::start(start);
        let kubeconfig = dir.path().join("kubeconfig/admin.kubeconfig");
        let explain = |arguments: &[&str]| {
            let mut explain = Command::new(env!("CARGO_BIN_EXE_control-plane"));
            explain.arg("explain-schedule").args(arguments).arg("--kubeconfig").arg(&kubeconfig);
            let Output { status, stdout, stderr } = explain.output().unwrap();
            (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
        };
        let (code, said) = explain(&["absent"]);
        assert_eq!((code, said.as_str()), (Some(2), "control-plane: pods \"absent\" not found\n"));
        for (arguments, refused) in [
            (
                &["../x"][..],
                "`../x` is no name of a pod: `kubectl get pods -n default` lists those that are there",
            ),
            (&[""], "`` is no name of a pod: `kubectl get pods -n default` lists those that are there"),
            (&[".."], "`..` is no name of a pod: `kubectl get pods -n default` lists those that are there"),
            (&["p", "-n", ""], "`` is no namespace: `kubectl get namespaces` lists those that are there"),
        ] {
            let (code, said) = explain(arguments);
            assert_eq!((code, said), (Some(2), format!("control-plane: {refused}\n")), "{arguments:?}");
        }
        if plain {
            let token = token(&kubeconfig);
            let post = |path: &str, body: &str| {
                let head = format!(
                    "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
                     content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let answer = raw(&process.url, &head);
                assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
            };
            post(
                "/api/v1/nodes",
                r#"{"metadata": {"name": "small"}, "status": {"allocatable": {"memory": "1Ki"}}}"#,
            );
            post(
                "/api/v1/namespaces/default/pods",
                r#"{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#,
            );
            let (code, said) = explain(&["p"]);
            let expected = "\
Pod:       default/p
Scheduler: default-scheduler (profile kube32)
Outcome:   0/1 nodes are available: 1 node(s) were not ready.

NODE   SCORE  VERDICT
small      -  NodeReady: node(s) were not ready [Memory: Insufficient memory]
";
            assert_eq!((code, said.as_str()), (Some(0), expected));
            let (_, said) = explain(&["p", "-o", "json"]);
            let read: serde_json::Value = serde_json::from_str(&said).unwrap();
            assert_eq!(read["nodes"][0]["filters"][3]["reasons"][0], "Insufficient memory");
        }
    }
}
