//! TLS as clients meet it: kubeconfigs with certificates, certificates minted by hand with openssl, refusals (GHOST-05).
//! Skipped, with the reason printed, where kubectl or openssl is missing.

mod documented;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::Process;

fn have(program: &str) -> bool {
    let found = Command::new(program).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        println!("skipped: {program} is not on PATH");
    }
    found.is_ok()
}

fn command(data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_control-plane"));
    command.args(["--listen", "127.0.0.1:0", "--store", "memory", "--data-dir"]).arg(data_dir);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn run(program: &str, dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir).env("HOME", dir).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[track_caller]
fn ok(program: &str, dir: &Path, arguments: &[&str]) -> String {
    let (code, said) = run(program, dir, arguments);
    assert_eq!(code, Some(0), "{program} {arguments:?}: {said}");
    said
}

#[track_caller]
fn fails(program: &str, dir: &Path, arguments: &[&str], words: &str) {
    let (code, said) = run(program, dir, arguments);
    assert_ne!(code, Some(0), "{program} {arguments:?}: {said}");
    assert!(said.contains(words), "{program} {arguments:?}: {said}");
}

#[test]
fn kubeconfigs_hold_certificates_that_say_who_asks() {
    if !have("kubectl") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut start = command(dir.path());
    start.args(["--node-kubeconfigs", "a,b"]);
    let process = Process::start(start);
    assert!(process.url.starts_with("https://127.0.0.1:"), "{}", process.url);
    let whoami = |name: &str, words: &[&str]| {
        let kubeconfig = format!("kubeconfig/{name}.kubeconfig");
        let said = ok("kubectl", dir.path(), &["--kubeconfig", &kubeconfig, "auth", "whoami"]);
        words.iter().for_each(|word| assert!(said.contains(word), "{name}: {said}"));
        let text = std::fs::read_to_string(dir.path().join(&kubeconfig)).unwrap();
        assert!(!text.contains("\"token\"") && !text.contains("@127"), "{text}");
    };
    whoami("admin", &["kubernetes-admin", "system:masters", "system:authenticated"]);
    whoami("scheduler", &["system:kube-scheduler"]);
    whoami("controller-manager", &["system:kube-controller-manager"]);
    whoami("node-b", &["system:node:b", "system:nodes"]);
    for name in ["ca", "server", "admin", "node-a"] {
        let key = dir.path().join(format!("pki/{name}.key"));
        assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    let scheduler = ["--kubeconfig", "kubeconfig/scheduler.kubeconfig"];
    let as_scheduler = |rest: &[&'static str]| [&scheduler[..], rest].concat();
    ok("kubectl", dir.path(), &as_scheduler(&["get", "pods", "-A"]));
    fails(
        "kubectl",
        dir.path(),
        &as_scheduler(&["get", "secrets"]),
        "User \"system:kube-scheduler\" cannot list resource \"secrets\"",
    );
    // What was made is kept, so that the kubeconfig of the first start works at the second.
    let kept = std::fs::read_to_string(dir.path().join("pki/ca.crt")).unwrap();
    drop(process);
    let _process = Process::start(command(dir.path()));
    assert_eq!(std::fs::read_to_string(dir.path().join("pki/ca.crt")).unwrap(), kept);
    whoami("admin", &["kubernetes-admin"]);
}

/// The ways of making a key by hand.
const KEYS: &[(&str, &[&str])] = &[
    ("rsa-pkcs8", &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out"]),
    ("rsa-pkcs1", &["genrsa", "-traditional", "-out"]),
    ("ec-sec1", &["ecparam", "-name", "prime256v1", "-genkey", "-out"]),
    ("ec-pkcs8", &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out"]),
];

fn mint(dir: &Path, name: &str, key: &[&str], subject: &str, authority: &str, extra: &[&str]) {
    let (key_file, request, certificate) =
        (format!("{name}.key"), format!("{name}.csr"), format!("{name}.crt"));
    ok("openssl", dir, &[key, &[&key_file]].concat());
    ok("openssl", dir, &["req", "-new", "-key", &key_file, "-subj", subject, "-out", &request]);
    let (ca, ca_key) = (format!("{authority}.crt"), format!("{authority}.key"));
    let sign =
        ["x509", "-req", "-in", &request, "-CA", &ca, "-CAkey", &ca_key, "-CAcreateserial", "-days", "30"];
    ok("openssl", dir, &[&sign, extra, &["-out", &certificate]].concat());
}

fn authority(dir: &Path, name: &str) {
    let (key, certificate, subject) = (format!("{name}.key"), format!("{name}.crt"), format!("/CN={name}"));
    ok("openssl", dir, &["genrsa", "-out", &key, "2048"]);
    ok(
        "openssl",
        dir,
        &["req", "-x509", "-new", "-key", &key, "-subj", &subject, "-days", "30", "-out", &certificate],
    );
}

#[test]
fn certificates_minted_by_hand_are_served_and_taken() {
    if !have("kubectl") || !have("openssl") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    authority(dir.path(), "ca");
    authority(dir.path(), "stranger");
    std::fs::write(dir.path().join("san.ext"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    std::fs::write(dir.path().join("server.ext"), "extendedKeyUsage=serverAuth\n").unwrap();
    let subject = "/O=system:masters/CN=hand-made";
    for (name, key) in KEYS {
        let (server, client) = (format!("server-{name}"), format!("client-{name}"));
        mint(dir.path(), &server, key, "/CN=plane", "ca", &["-extfile", "san.ext"]);
        // Without an extension file this is a certificate of version 1.
        mint(dir.path(), &client, key, subject, "ca", &[]);
    }
    let ec = KEYS[2].1;
    mint(dir.path(), "stranger-client", ec, subject, "stranger", &[]);
    mint(dir.path(), "server-only", ec, subject, "ca", &["-extfile", "server.ext"]);
    mint(dir.path(), "scheduler", ec, "/CN=system:kube-scheduler", "ca", &[]);
    for (name, _) in KEYS {
        let data = dir.path().join(format!("data-{name}"));
        let mut start = command(&data);
        start.arg("--tls-cert-file").arg(dir.path().join(format!("server-{name}.crt")));
        start.arg("--tls-private-key-file").arg(dir.path().join(format!("server-{name}.key")));
        start.arg("--client-ca-file").arg(dir.path().join("ca.crt"));
        let process = Process::start(start);
        let server = process.url.clone();
        let by = |client: &str, rest: &[&str]| -> Vec<String> {
            let (certificate, key) = (format!("{client}.crt"), format!("{client}.key"));
            let base = [
                "--server",
                &server,
                "--certificate-authority",
                "ca.crt",
                "--client-certificate",
                &certificate,
                "--client-key",
                &key,
            ];
            base.iter().chain(rest).map(|word| (*word).to_owned()).collect()
        };
        let as_words =
            |words: &[String]| words.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
        let kubectl = |client: &str, rest: &[&str]| {
            let words = as_words(&by(client, rest));
            run("kubectl", dir.path(), &words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        for (client, _) in KEYS {
            let (code, said) = kubectl(&format!("client-{client}"), &["auth", "whoami"]);
            assert_eq!(code, Some(0), "{name} {client}: {said}");
            assert!(said.contains("hand-made") && said.contains("system:masters"), "{name} {client}: {said}");
        }
        let (code, said) = kubectl("scheduler", &["get", "pods", "-A"]);
        assert_eq!(code, Some(0), "{said}");
        let (code, said) = kubectl("scheduler", &["get", "secrets", "-A"]);
        assert!(code != Some(0) && said.contains("Forbidden"), "{said}");
        for stranger in ["stranger-client", "server-only"] {
            let (code, said) = kubectl(stranger, &["get", "--raw", "/version"]);
            assert!(code != Some(0) && said.contains("You must be logged in"), "{stranger}: {said}");
        }
        // The kubeconfigs cannot hold certificates here, since the authority's key is the user's; they hold tokens.
        let admin = data.join("kubeconfig/admin.kubeconfig");
        let said = ok("kubectl", dir.path(), &["--kubeconfig", admin.to_str().unwrap(), "auth", "whoami"]);
        assert!(said.contains("kubernetes-admin"), "{said}");
        assert!(!data.join("pki/ca.key").exists());
    }
}

#[test]
fn files_that_do_not_serve_are_named() {
    if !have("openssl") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    authority(dir.path(), "one");
    authority(dir.path(), "two");
    std::fs::write(dir.path().join("empty.pem"), "").unwrap();
    let refused = |certificate: &str, key: &str, words: &[&str]| {
        let mut start = command(&dir.path().join("data"));
        start.arg("--tls-cert-file").arg(dir.path().join(certificate));
        start.arg("--tls-private-key-file").arg(dir.path().join(key));
        let output = start.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{said}"));
    };
    refused("absent.crt", "one.key", &["absent.crt", "--tls-cert-file"]);
    refused("one.crt", "two.key", &["two.key", "one.crt"]);
    refused("empty.pem", "one.key", &["empty.pem", "holds no CERTIFICATE"]);
    refused("one.crt", "empty.pem", &["empty.pem", "holds no PRIVATE KEY"]);
    ok(
        "openssl",
        dir.path(),
        &["rsa", "-aes128", "-passout", "pass:x", "-in", "one.key", "-out", "locked.key"],
    );
    refused("one.crt", "locked.key", &["locked.key", "behind a password"]);
}

#[test]
fn boards_may_come_by_a_second_listener_and_a_silent_client_blocks_nobody() {
    if !have("kubectl") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tokens.csv"), "secret-a,system:node:a,,system:nodes\n").unwrap();
    let mut start = command(dir.path());
    start
        .args(["--plain-http-listen", "127.0.0.1:0", "--token-auth-file"])
        .arg(dir.path().join("tokens.csv"));
    let mut process = Process::start(start);
    let line = process.line();
    let plain = line
        .trim()
        .strip_prefix("control-plane: plain HTTP on http://")
        .unwrap_or_else(|| panic!("{line:?}"));
    let mut stream = TcpStream::connect(plain).unwrap();
    let request = "GET /api/v1/nodes/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer secret-a\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    // These never say anything; whoever comes after them is served.
    let address = process.url.strip_prefix("https://").unwrap();
    let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    ok("kubectl", dir.path(), &["--kubeconfig", "kubeconfig/admin.kubeconfig", "get", "nodes"]);
    let board = ["--kubeconfig", "kubeconfig/node-a.kubeconfig", "auth", "whoami"];
    assert!(ok("kubectl", dir.path(), &board).contains("system:node:a"));
    drop(silent);
}

#[test]
fn tokens_roles_and_boards_are_given_by_kubectl() {
    if !have("kubectl") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let process = Process::start(command(dir.path()));
    let server = process.url.clone();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let admin = |rest: &[&str]| {
        ok("kubectl", dir.path(), &[&["--kubeconfig", "kubeconfig/admin.kubeconfig"], rest].concat())
    };
    let with = |token: &str, rest: &[&str]| {
        let base = [
            "--kubeconfig",
            "/dev/null",
            "--server",
            &server,
            "--certificate-authority",
            "pki/ca.crt",
            "--token",
            token,
        ];
        run("kubectl", dir.path(), &[&base, rest].concat())
    };
    admin(&["create", "serviceaccount", "robot"]);
    let robot = admin(&["create", "token", "robot"]);
    let robot = robot.trim();
    let (_, said) = with(robot, &["auth", "whoami"]);
    assert!(said.contains("system:serviceaccount:default:robot") && said.contains("JTI="), "{said}");
    assert!(with(robot, &["auth", "can-i", "list", "pods"]).1.contains("no"));
    admin(&[
        "create",
        "clusterrolebinding",
        "robots",
        "--clusterrole=view",
        "--serviceaccount=default:robot",
    ]);
    assert_eq!(with(robot, &["auth", "can-i", "list", "pods"]), (Some(0), "yes\n".into()));
    assert!(with(robot, &["auth", "can-i", "list", "secrets"]).1.contains("no"));
    let (code, said) = with(robot, &["auth", "can-i", "--list"]);
    assert!(
        code == Some(0) && said.contains("deployments.apps") && said.contains("[get list watch]"),
        "{said}"
    );
    let scheduler = ["--as", "system:kube-scheduler"];
    assert_eq!(
        admin(&[&["auth", "can-i", "create", "pods", "--subresource=binding"], &scheduler[..]].concat()),
        "yes\n"
    );
    fails(
        "kubectl",
        dir.path(),
        &[
            "--kubeconfig",
            "kubeconfig/admin.kubeconfig",
            "auth",
            "can-i",
            "delete",
            "nodes",
            "--as",
            "system:kube-scheduler",
        ],
        "no",
    );
    assert!(admin(&["get", "--raw", "/openid/v1/jwks"]).contains("\"kid\""));
    admin(&["create", "role", "r", "--verb=get", "--resource=pods"]);
    admin(&["create", "rolebinding", "r", "--role=r", "--user=bob"]);
    assert!(admin(&["describe", "clusterrole", "view"]).contains("deployments.apps"));

    admin(&[
        "create",
        "secret",
        "generic",
        "bootstrap-token-abcdef",
        "-n",
        "kube-system",
        "--type=bootstrap.kubernetes.io/token",
        "--from-literal=token-id=abcdef",
        "--from-literal=token-secret=0123456789abcdef",
        "--from-literal=usage-bootstrap-authentication=true",
    ]);
    write(
        "join.json",
        r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}"#,
    );
    let join = ["create", "--raw", "/api/v1/nodes/a/token", "-f", "join.json"];
    let (code, said) = with("abcdef.0123456789abcdef", &join);
    assert_eq!(code, Some(0), "{said}");
    let answer: serde_json::Value = serde_json::from_str(&said).unwrap();
    let board = answer["status"]["token"].as_str().unwrap();
    assert!(with(board, &["auth", "whoami"]).1.contains("system:node:a"));
    assert!(with("abcdef.0123456789abcdef", &join).1.contains("Conflict"));
    admin(&["delete", "secret", "board-token-a", "-n", "kube-system"]);
    assert!(with(board, &["get", "node", "a"]).1.contains("You must be logged in"));
}
