use super::source::Lines;
use super::*;
use crate::http;
use crate::ledger::Ledger;
use reqwest::Client;

#[test]
fn lines_come_whole_however_the_bytes_are_split() {
    let stream = b"{\"a\":1}\n\n{\"b\":\"\xc3\xa4\"}\r\n{\"c\"";
    for size in 1..=stream.len() {
        let mut lines = Lines::default();
        let whole: Vec<Vec<u8>> = stream.chunks(size).flat_map(|piece| lines.feed(piece)).collect();
        assert_eq!(
            whole,
            [b"{\"a\":1}\n".to_vec(), b"{\"b\":\"\xc3\xa4\"}\r\n".to_vec()],
            "in pieces of {size}"
        );
        assert_eq!(lines.pending, b"{\"c\"");
    }
}

/// A server that gives each connection the next answer and then closes it; returns what was asked for.
fn server(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
            asked.push(lines.next().unwrap().unwrap());
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            socket.write_all(answer.as_bytes()).unwrap();
        }
        asked
    });
    (base, serving)
}

fn whole(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn chunked(lines: &[&str], last: bool) -> String {
    let chunks: String = lines.iter().map(|line| format!("{:x}\r\n{line}\n\r\n", line.len() + 1)).collect();
    let end = if last { "0\r\n\r\n" } else { "" };
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{end}")
}

fn told(fact: &Fact) -> String {
    match fact {
        Fact::Object { stream, verb, object } => {
            format!("{stream} {verb:?} {} {}", object["kind"], object["metadata"]["name"])
        }
        Fact::Synced { stream } => format!("{stream} synced"),
        Fact::Gap { stream, .. } => format!("{stream} gap"),
        other => format!("{other:?}"),
    }
}

fn client() -> Client {
    http::client(http::plain().unwrap(), |builder| builder).unwrap()
}

fn feed(paths: &[&str]) -> Feed {
    Feed { stream: "pods".to_owned(), paths: paths.iter().map(|path| (*path).to_owned()).collect() }
}

#[test]
fn long_lists_come_in_pages_and_what_is_not_the_trials_is_passed_over() {
    let page = |version: u32, name: &str, more: &str| {
        whole(&format!(
            "{{\"kind\":\"PodList\",\"metadata\":{{\"resourceVersion\":\"{version}\",\"continue\":\"{more}\"}},\"items\":[{{\"metadata\":{{\"name\":\"{name}\"}}}}]}}"
        ))
    };
    let event = |name: &str| {
        format!(
            "{{\"type\":\"ADDED\",\"object\":{{\"kind\":\"Pod\",\"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"9\"}}}}}}"
        )
    };
    let (base, serving) = server(vec![
        page(5, "ours-1", "a/b="),
        page(6, "theirs-1", "c"),
        page(6, "ours-2", ""),
        chunked(&[&event("theirs-2"), &event("ours-3")], false),
    ]);
    let (ledger, facts) = Ledger::new(Clock::start());
    let source = Source {
        page: Some(1),
        keep: Arc::new(|_, object| {
            object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("ours"))
        }),
        ..Source::local(client(), &base, "t", Arc::new(ledger)).unwrap()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = Arc::new(watch::Sender::new(1));
    let feed = feed(&["/api/v1/pods?fieldSelector=x"]);
    let following = runtime.spawn(follow(source, feed, first));
    let seen: Vec<String> =
        (0..5).map(|_| told(&facts.recv_timeout(Duration::from_secs(60)).unwrap().1)).collect();
    let asked = serving.join().unwrap();
    following.abort();
    assert_eq!(
        seen,
        [
            "pods Listed \"Pod\" \"ours-1\"",
            "pods Listed \"Pod\" \"ours-2\"",
            "pods synced",
            "pods Added \"Pod\" \"ours-3\"",
            "pods gap",
        ]
    );
    let paths: Vec<&str> = asked.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(
        paths[..3],
        [
            "/api/v1/pods?fieldSelector=x&limit=1",
            "/api/v1/pods?fieldSelector=x&limit=1&continue=a%2Fb%3D",
            "/api/v1/pods?fieldSelector=x&limit=1&continue=c",
        ]
    );
    assert!(paths[3].contains("&watch=true&") && paths[3].ends_with("resourceVersion=5"), "{}", paths[3]);
}

#[test]
fn a_watch_goes_on_after_an_orderly_end_and_starts_anew_after_a_loss() {
    let pod = |verb: &str, name: &str, version: u32| {
        format!(
            "{{\"type\":\"{verb}\",\"object\":{{\"kind\":\"Pod\",\"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"{version}\"}}}}}}"
        )
    };
    let list = |version: u32, names: &[&str]| {
        let items: Vec<String> =
            names.iter().map(|name| format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}")).collect();
        format!(
            "{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\"}},\"items\":[{}]}}",
            items.join(",")
        )
    };
    let (base, serving) = server(vec![
        whole(&list(5, &["p"])),
        chunked(&[&pod("ADDED", "q", 7), &pod("BOOKMARK", "", 9)], true),
        chunked(&[&pod("DELETED", "q", 11)], false),
        whole(&list(12, &["p"])),
        chunked(
            &["{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old resource version\"}}"],
            true,
        ),
    ]);
    let (ledger, facts) = Ledger::new(Clock::start());
    let source = Source::local(client(), &base, "t", Arc::new(ledger)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = Arc::new(watch::Sender::new(1));
    let following = runtime.spawn(follow(source, feed(&["/api/v1/pods"]), first));
    let asked = serving.join().unwrap();
    let facts: Vec<Fact> = (0..8).map(|_| facts.recv_timeout(Duration::from_secs(60)).unwrap().1).collect();
    following.abort();
    let seen: Vec<String> = facts.iter().map(told).collect();
    assert_eq!(
        seen,
        [
            "pods Listed \"Pod\" \"p\"",
            "pods synced",
            "pods Added \"Pod\" \"q\"",
            "pods Deleted \"Pod\" \"q\"",
            "pods gap",
            "pods Listed \"Pod\" \"p\"",
            "pods synced",
            "pods gap",
        ]
    );
    let versions: Vec<Option<&str>> = asked
        .iter()
        .map(|line| line.split_once("resourceVersion=").map(|(_, rest)| rest.split_once(' ').unwrap().0))
        .collect();
    assert_eq!(versions, [None, Some("5"), Some("9"), None, Some("12")]);
    let Fact::Gap { reason, .. } = &facts[7] else { panic!("{:?}", facts[7]) };
    assert_eq!(reason, "error in the watch: too old resource version");
}
