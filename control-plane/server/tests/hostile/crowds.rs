//! Many clients at once.

use std::io::{Read, Write};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::client::{IMPATIENT, MAPS, Server, code, message, rest};

/// So many KiB each watch may take of the server, of which its buffers are the most.
const KIB_A_WATCH: f64 = 64.0;
const WATCHES: usize = 2_000;

#[test]
fn two_thousand_watches_take_little_memory_and_all_see_a_change() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    // Some systems allow fewer files; the measure for one watch stays the same.
    let room = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
    let count = WATCHES.min(usize::try_from(room).unwrap_or(usize::MAX));
    let server = Server::start();
    let before = server.resident();
    let watch = message("GET", &format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Dseen"), "", b"");
    let mut watches: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for stream in &mut watches {
        stream.write_all(&watch).unwrap();
        assert!(stream.read(&mut [0; 512]).unwrap() > 0);
    }
    assert!(server.metric("apiserver_longrunning_requests", "WATCH") > count as f64 - 0.5);
    let each = (server.resident() - before) / 1024.0 / count as f64;
    println!("{count} watches take {each:.1} KiB each");
    assert!(each < KIB_A_WATCH, "{each} KiB a watch");
    let made = server.request("POST", MAPS, "", br#"{"metadata":{"name":"seen"}}"#);
    assert_eq!(code(&made), 201);
    for stream in &mut watches {
        let (mut told, mut part) = (Vec::new(), [0; 2048]);
        while !String::from_utf8_lossy(&told).contains(r#""name":"seen""#) {
            let read = stream.read(&mut part).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&told));
            told.extend_from_slice(&part[..read]);
        }
    }
    drop(watches);
    server.until_at_most("apiserver_longrunning_requests", "WATCH", 0.0);
    server.is_well();
}

#[test]
fn it_raises_its_limit_of_files_and_leaves_idle_clients_when_there_is_no_room() {
    // 20 files at first, 128 at most, of which 64 are kept: 64 connections.
    let server = Server::with("memory", IMPATIENT, |start| {
        let (program, arguments) = (start.get_program().to_owned(), start.get_args().map(ToOwned::to_owned));
        let arguments: Vec<_> = arguments.collect();
        *start = std::process::Command::new("sh");
        start.args(["-c", "ulimit -Sn 20; ulimit -Hn 128; exec \"$0\" \"$@\""]).arg(program).args(arguments);
        start.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    });
    // More than there is room for: whoever says nothing is left, at once or after a while.
    let mut idle: Vec<_> = (0..150).map(|_| server.connect()).collect();
    for stream in &mut idle {
        assert_eq!(rest(stream), "");
    }
    server.is_well();
    // One peer does not get the last places, and loses none that it has.
    let watch = message("GET", &format!("{MAPS}?watch=1"), "", b"");
    let mut watches = Vec::new();
    for _ in 0..80 {
        let mut stream = server.connect();
        let begun = stream.write_all(&watch).is_ok() && stream.read(&mut [0; 64]).is_ok_and(|read| read > 0);
        if begun {
            watches.push(stream);
        }
    }
    assert!((50..64).contains(&watches.len()), "{}", watches.len());
    drop(watches);
    // The server notices each leaving. Until it has, it may refuse whoever asks.
    let asked = || server.request("GET", "/metrics", "", b"");
    while !asked().lines().any(|line| line.strip_prefix("rigor_connections ").is_some_and(|open| open == "1"))
    {
        std::thread::yield_now();
    }
    server.is_well();
}
