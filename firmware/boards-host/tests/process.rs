//! The process over real sockets, against a server of a few lines: that it registers, renews and reports,
//! that bytes and closed connections pass both ways, and how it ends. What it says is the kubelet's own test.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, kill_process};

struct Board {
    child: Child,
    console: Lines<BufReader<ChildStdout>>,
    _folder: tempfile::TempDir,
}

impl Board {
    fn start(port: u16) -> Board {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let json = format!(
            r#"{{"nodeName":"a","server":"http://127.0.0.1:{port}","board":{{"name":"host","arch":"x86_64"}},
              "lease":{{"durationSeconds":60,"renewMillis":100}}}}"#
        );
        std::fs::write(&path, json).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubelet-host"));
        let mut child = command.arg("--config").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
        let console = BufReader::new(child.stdout.take().unwrap()).lines();
        Board { child, console, _folder: folder }
    }

    /// Reads the console up to a line that contains `part`.
    fn says(&mut self, part: &str) -> String {
        self.console.by_ref().map(Result::unwrap).find(|line| line.contains(part)).expect(part)
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Reads one request: its first line.
fn request(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut first = String::new();
    let mut length = 0;
    stream.read_line(&mut first).ok().filter(|read| *read > 0)?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(first.trim_end_matches("HTTP/1.1\r\n").trim().to_string())
}

/// Answers requests on one connection until `enough` has seen one it wants to stop at.
fn serve(stream: TcpStream, enough: impl Fn(&str) -> bool) -> Vec<String> {
    let mut stream = BufReader::new(stream);
    let mut seen = Vec::new();
    while let Some(first) = request(&mut stream) {
        let body = r#"{"metadata":{"name":"a","resourceVersion":"7","uid":"u"},"items":[]}"#;
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        // In two pieces, as networks do.
        stream.get_mut().write_all(&text.as_bytes()[..20]).unwrap();
        stream.get_mut().write_all(&text.as_bytes()[20..]).unwrap();
        seen.push(first);
        if enough(seen.last().unwrap()) {
            break;
        }
    }
    seen
}

/// Serves one connection after another until the board has reported its status; what it asked for. On a busy machine it may give
/// up an answer that comes late, and ask again by another connection.
fn serve_until_reported(listener: &TcpListener) -> Vec<String> {
    let reported = |first: &str| first.contains("/nodes/a/status");
    let mut seen = Vec::new();
    while !seen.iter().any(|first: &String| reported(first)) {
        seen.extend(serve(listener.accept().unwrap().0, reported));
    }
    seen.dedup();
    seen
}

#[test]
fn a_process_is_a_board() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut board = Board::start(listener.local_addr().unwrap().port());
    assert!(board.says("rigor kubelet").ends_with("board=host reset=power-on"));
    let seen = serve_until_reported(&listener);
    let lease = "POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    assert_eq!(seen[..2], ["POST /api/v1/nodes".to_string(), lease.to_string()]);
    assert!(seen.contains(&"GET /api/v1/pods?fieldSelector=spec.nodeName%3Da".to_string()), "{seen:?}");
    board.says("kubelet ready node=a");
    // The first connection was dropped; it comes back on another. One of the two is the watch.
    let mut renewed = false;
    while !renewed {
        let (stream, _) = listener.accept().unwrap();
        let seen = serve(stream, |first| first.contains("watch=1") || first.contains("/leases/a"));
        renewed = seen.iter().any(|first| first.starts_with("PATCH") && first.ends_with("/leases/a"));
    }
    assert!(board.child.try_wait().unwrap().is_none());
    let pid = Pid::from_raw(i32::try_from(board.child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(board.child.wait().unwrap().signal(), Some(15));
}

#[test]
fn a_server_that_is_not_there_is_waited_for() {
    // Nobody listens at this port, and nobody else is given it.
    let server =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .unwrap();
    rustix::net::bind(&server, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let listener = TcpListener::from(server);
    let mut board = Board::start(listener.local_addr().unwrap().port());
    board.says("api server lost: connection closed");
    rustix::net::listen(&listener, 8).unwrap();
    serve_until_reported(&listener);
    board.says("kubelet ready node=a");
}

#[test]
fn a_bad_configuration_is_exit_code_2_with_the_reason() {
    let check = |json: Option<&str>, expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.json");
        if let Some(json) = json {
            std::fs::write(&path, json).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubelet-host"));
        let output = command.arg("--config").arg(&path).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("bad.json") && text.contains(expected), "{text}");
    };
    check(None, "cannot read");
    check(Some("{"), "not valid JSON");
    check(Some(r#"{"nodeName":"a","server":"ftp://x","board":{"name":"b","arch":"c"}}"#), "http://HOST:PORT");
    check(Some(r#"{"nodeNaem":"a"}"#), "nodeNaem");
}
