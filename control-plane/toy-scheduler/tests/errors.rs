//! What it says where it cannot begin or reach the API server: one line, with the cause and no debug dump.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};

fn toy() -> Command {
    Command::new(env!("CARGO_BIN_EXE_toy-scheduler"))
}

fn refusal(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    said
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named_once() {
    let said = refusal(toy().args(["--kubeconfig", "/nonexistent"]));
    assert_eq!(said.matches("/nonexistent").count(), 1, "{said}");
}

#[test]
fn without_any_kubeconfig_it_says_where_it_looked() {
    let dir = tempfile::tempdir().unwrap();
    let mut toy = toy();
    toy.env("HOME", dir.path()).env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST");
    let said = refusal(&mut toy);
    let looked = dir.path().join(".kube/config");
    assert!(said.contains(&format!("({}: No such file", looked.display())), "{said}");
    assert!(said.trim_end().ends_with("give --kubeconfig FILE"), "{said}");
}

/// The first warning of one whose API server is said to be there.
fn warning(address: SocketAddr) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    let config = format!(
        "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
         clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    std::fs::write(&path, config).unwrap();
    let mut toy = toy().arg("--kubeconfig").arg(&path).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(toy.stderr.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.find(|line| line.contains("trying again"));
    toy.kill().unwrap();
    toy.wait().unwrap();
    told.expect("a warning")
}

#[test]
fn a_server_that_is_not_there_is_told_with_the_reason() {
    // Not one that was free a moment ago, which others may take.
    let told = warning(SocketAddr::from(([127, 0, 0, 1], 1)));
    assert!(told.contains("no list: the API server cannot be reached: Connection refused"), "{told}");
}

#[test]
fn what_the_server_refuses_is_told_in_its_words() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let _head = lines.find(String::is_empty);
            let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods is forbidden: not you","reason":"Forbidden","code":403}"#;
            let answer = format!(
                "HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{status}",
                status.len()
            );
            let _gone = stream.write_all(answer.as_bytes());
        }
    });
    let told = warning(address);
    assert!(told.contains("no list: pods is forbidden: not you; trying again"), "{told}");
}
