//! The thread with real sockets: boards are smoltcp stacks behind unix sockets, as emulators are, and the control plane is
//! a listener of the test. Every guarantee that the relay gives for processes holds here for emulators.

use super::handle::{Act, Network};
use crate::clock::Clock;
use rigor_switch::Plan;
use rigor_switch::codec::{Reader, write};
use rigor_switch::stack::{PORT, SocketHandle as Handle, Stack, State};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Long enough for a byte over loopback, were it let through.
const SILENCE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(60);

/// A board with its emulator's end of the socket.
struct Emulator {
    stack: Stack,
    socket: UnixStream,
    reader: Reader,
    clock: Clock,
}

impl Emulator {
    fn start(path: &Path, board: usize, life: u16) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        let clock = Clock::start();
        Self { stack: Stack::new(board, life, 0), socket, reader: Reader::default(), clock }
    }

    /// Waits a little for frames and does what is due.
    fn turn(&mut self) {
        self.socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let mut buffer = [0; 65536];
        if let Ok(length) = self.socket.read(&mut buffer) {
            self.reader.feed(&buffer[..length]);
            while let Some(frame) = self.reader.next_frame().unwrap() {
                self.stack.card.inbox.push_back(frame.to_vec());
            }
        }
        self.stack.poll(self.clock.now().0);
        while let Some(frame) = self.stack.card.outbox.pop_front() {
            let mut bytes = Vec::new();
            write(&frame, &mut bytes);
            // Nobody may listen any more.
            let _ = self.socket.write_all(&bytes);
        }
    }

    fn until<T>(&mut self, what: &str, mut found: impl FnMut(&mut Stack) -> Option<T>) -> T {
        let clock = Clock::start();
        loop {
            self.turn();
            if let Some(found) = found(&mut self.stack) {
                return found;
            }
            assert!(Duration::from_micros(clock.now().0) < PATIENCE, "waited in vain: {what}");
        }
    }

    fn for_a_while(&mut self) {
        let clock = Clock::start();
        while Duration::from_micros(clock.now().0) < SILENCE {
            self.turn();
        }
    }
}

struct Rig {
    network: Network,
    sockets: Vec<PathBuf>,
    server: Option<TcpListener>,
    lives: u16,
    _dir: tempfile::TempDir,
}

fn rig(boards: usize) -> Rig {
    let dir = tempfile::tempdir().unwrap();
    let sockets: Vec<_> = (0..boards).map(|board| dir.path().join(format!("{board}.net"))).collect();
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let names = (0..boards).map(|board| format!("board{board}")).collect();
    let plan = Plan { seed: 1, boards: names, port: PORT };
    let network = Network::start(&plan, &sockets, server.local_addr().unwrap(), Clock::start()).unwrap();
    Rig { network, sockets, server: Some(server), lives: 0, _dir: dir }
}

impl Rig {
    /// A board that has booted and has its address.
    fn boot(&mut self, board: usize) -> Emulator {
        self.network.act(board, Act::PowerReturned).unwrap();
        self.lives += 1;
        let mut emulator = Emulator::start(&self.sockets[board], board, self.lives);
        emulator.until("an address", |stack| stack.leased);
        emulator
    }

    /// A connection of the board, and the control plane's end of it.
    fn connect(&self, emulator: &mut Emulator) -> (Handle, TcpStream) {
        let handle = emulator.stack.connect();
        emulator
            .until("a connection", |stack| (stack.tcp(handle).state() == State::Established).then_some(()));
        let (server, _) = self.server.as_ref().unwrap().accept().unwrap();
        (handle, server)
    }
}

/// Hears text at the control plane, while the board goes on.
fn expect(emulator: &mut Emulator, server: &mut TcpStream, text: &str) {
    server.set_nonblocking(true).unwrap();
    let mut heard = Vec::new();
    emulator.until("text at the control plane", |_| {
        let mut buffer = vec![0; text.len() - heard.len()];
        if let Ok(length) = server.read(&mut buffer) {
            heard.extend_from_slice(&buffer[..length]);
        }
        (heard.len() == text.len()).then_some(())
    });
    assert_eq!(String::from_utf8_lossy(&heard), text);
}

fn expect_at_board(emulator: &mut Emulator, handle: Handle, text: &str) {
    let mut heard = String::new();
    emulator.until("text at the board", |stack| {
        heard.push_str(&stack.heard(handle));
        (heard.len() >= text.len()).then_some(())
    });
    assert_eq!(heard, text);
}

/// The control plane's end is over: an orderly end, or a reset.
fn expect_end(emulator: &mut Emulator, server: &mut TcpStream) -> ErrorKind {
    server.set_nonblocking(true).unwrap();
    emulator.until("an end", |_| match server.read(&mut [0; 8]) {
        Ok(0) => Some(ErrorKind::UnexpectedEof),
        Ok(length) => panic!("expected the end, got {length} bytes"),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => Some(error.kind()),
    })
}

fn expect_silence(server: &mut TcpStream) {
    server.set_nonblocking(false).unwrap();
    server.set_read_timeout(Some(SILENCE)).unwrap();
    let outcome = server.read(&mut [0; 8]);
    assert!(
        matches!(&outcome, Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)),
        "expected silence, got {outcome:?}"
    );
}

fn log(rig: &Rig) -> String {
    let files = rig.network.evidence().unwrap();
    let log = files.into_iter().find(|(name, _)| *name == "network.log").unwrap();
    String::from_utf8(log.1).unwrap()
}

fn log_line(rig: &Rig, begin: &str) -> String {
    log(rig).lines().find(|line| line.starts_with(begin)).unwrap().to_owned()
}

#[test]
fn bytes_and_ends_pass_both_ways() {
    let mut rig = rig(1);
    let mut board = rig.boot(0);
    let (socket, mut server) = rig.connect(&mut board);
    board.stack.say(socket, "ping");
    expect(&mut board, &mut server, "ping");
    server.write_all(b"pong").unwrap();
    expect_at_board(&mut board, socket, "pong");
    board.stack.tcp(socket).close();
    assert_eq!(expect_end(&mut board, &mut server), ErrorKind::UnexpectedEof);
    server.write_all(b"late").unwrap();
    expect_at_board(&mut board, socket, "late");
    drop(server);
    board.until("an end", |stack| (!stack.tcp(socket).may_recv()).then_some(()));
}

#[test]
fn a_reset_is_a_reset_on_the_other_side() {
    let mut rig = rig(1);
    let mut board = rig.boot(0);
    let (socket, mut server) = rig.connect(&mut board);
    board.stack.tcp(socket).abort();
    assert_eq!(expect_end(&mut board, &mut server), ErrorKind::ConnectionReset);
}

#[test]
fn a_cut_link_is_silent_and_loses_nothing() {
    let mut rig = rig(1);
    let mut board = rig.boot(0);
    let (socket, mut server) = rig.connect(&mut board);
    board.stack.say(socket, "one");
    expect(&mut board, &mut server, "one");
    rig.network.act(0, Act::Cut).unwrap();
    board.stack.say(socket, "two");
    server.write_all(b"three").unwrap();
    board.for_a_while();
    expect_silence(&mut server);
    assert_eq!(board.stack.heard(socket), "");
    rig.network.act(0, Act::Heal).unwrap();
    expect(&mut board, &mut server, "two");
    expect_at_board(&mut board, socket, "three");
}

#[test]
fn lost_power_says_nothing_until_the_next_life_answers() {
    let mut rig = rig(1);
    let mut board = rig.boot(0);
    let (socket, mut server) = rig.connect(&mut board);
    board.stack.say(socket, "alive");
    expect(&mut board, &mut server, "alive");
    rig.network.act(0, Act::PowerLost).unwrap();
    board.stack.say(socket, "dying words");
    board.turn();
    // The emulator is not listened to any more, should it live on until power returns.
    board.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    while board.socket.read(&mut [0; 2048]).is_ok_and(|length| length > 0) {}
    assert_eq!(board.socket.read(&mut [0; 8]).unwrap(), 0);
    drop(board);
    expect_silence(&mut server);
    server.write_all(b"anyone?").unwrap();
    expect_silence(&mut server);
    let line = log_line(&rig, "frames to board board0");
    assert!(!line.contains(" 0 by cuts"), "{line}");
    let mut board = rig.boot(0);
    let (socket, mut again) = rig.connect(&mut board);
    board.stack.say(socket, "again");
    expect(&mut board, &mut again, "again");
    // What was written meanwhile is repeated, and the new stack knows nothing of that connection.
    assert_eq!(expect_end(&mut board, &mut server), ErrorKind::ConnectionReset);
}

#[test]
fn an_emulator_that_dies_by_itself_is_silent_too() {
    let mut rig = rig(1);
    let mut board = rig.boot(0);
    let (socket, mut server) = rig.connect(&mut board);
    board.stack.say(socket, "alive");
    expect(&mut board, &mut server, "alive");
    drop(board);
    expect_silence(&mut server);
}

#[test]
fn a_control_plane_that_is_away_refuses() {
    let mut rig = rig(1);
    let mut board = rig.boot(0);
    rig.server = None;
    let handle = board.stack.connect();
    board.until("a refusal", |stack| (stack.tcp(handle).state() == State::Closed).then_some(()));
}

#[test]
fn a_stream_without_beat_is_left_and_the_other_boards_go_on() {
    let mut rig = rig(2);
    let mut board = rig.boot(1);
    let (socket, mut server) = rig.connect(&mut board);
    rig.network.act(0, Act::PowerReturned).unwrap();
    let mut mad = UnixStream::connect(&rig.sockets[0]).unwrap();
    for length in [0_u32, 1, 5, 2000, 65_000] {
        mad.write_all(&length.to_be_bytes()).unwrap();
        mad.write_all(&vec![0xa5; length as usize]).unwrap();
    }
    mad.write_all(&u32::MAX.to_be_bytes()).unwrap();
    mad.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(mad.read(&mut [0; 8]).unwrap(), 0, "the network hangs up");
    board.stack.say(socket, "still here");
    expect(&mut board, &mut server, "still here");
    assert!(log_line(&rig, "frames from board board0").contains(" 0 sent"));
    assert!(log_line(&rig, "frames from board board0").contains("4 malformed"));
    assert!(log(&rig).contains("board board0: a frame of 4294967295 bytes"));
    let again = rig.boot(0);
    assert!(again.stack.leased.is_some());
}

#[test]
fn an_emulator_that_does_not_read_holds_up_nobody() {
    let mut rig = rig(2);
    let slow = rig.boot(0);
    let mut board = rig.boot(1);
    let (socket, mut server) = rig.connect(&mut board);
    // More than all buffers between hold, for a board that does not read.
    let mut frame = vec![0_u8; 1500];
    frame[..6].copy_from_slice(&rigor_switch::address::board_mac(0).0);
    frame[6..12].copy_from_slice(&rigor_switch::address::board_mac(1).0);
    let mut bytes = Vec::new();
    write(&frame, &mut bytes);
    for _ in 0..1000 {
        board.socket.write_all(&bytes).unwrap();
    }
    board.stack.say(socket, "through");
    expect(&mut board, &mut server, "through");
    let line = log_line(&rig, "frames to board board0");
    assert!(!line.contains(" 0 by full queues"), "{line}");
    drop(slow);
}

#[test]
fn large_answers_pass_whole_through_small_windows() {
    let mut rig = rig(1);
    let mut board = rig.boot(0);
    let (socket, mut server) = rig.connect(&mut board);
    let text: String = (0..30_000).map(|number| format!("{number} ")).collect();
    let sent = text.clone();
    let writing = std::thread::spawn(move || server.write_all(sent.as_bytes()));
    let mut heard = String::new();
    board.until("all of it", |stack| {
        heard.push_str(&stack.heard(socket));
        (heard.len() >= text.len()).then_some(())
    });
    assert!(heard == text);
    writing.join().unwrap().unwrap();
}

#[test]
fn a_board_that_boots_again_and_again_leaves_a_bounded_number_of_sockets() {
    let mut rig = rig(1);
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    for _ in 0..100 {
        let mut board = rig.boot(0);
        let _ = rig.connect(&mut board);
        rig.network.act(0, Act::PowerLost).unwrap();
    }
    let after = descriptors();
    assert!(after < before + 60, "{before} file descriptors before, {after} after");
}

#[test]
fn a_network_at_rest_costs_no_time() {
    let mut rig = rig(3);
    let mut boards: Vec<_> = (0..3).map(|board| rig.boot(board)).collect();
    // One connection that is open and idle, one whose other end is gone, one to a board that is gone.
    let mut connected: Vec<_> = boards.iter_mut().map(|board| rig.connect(board)).collect();
    drop(connected.pop());
    rig.network.act(2, Act::PowerLost).unwrap();
    let (socket, server) = connected.pop().unwrap();
    drop(server);
    boards[1].for_a_while();
    // Answered by a reset, which is no news: the end was heard before.
    boards[1].stack.say(socket, "into the void");
    boards[1].for_a_while();
    let name = format!("network {}", rig.server.as_ref().unwrap().local_addr().unwrap().port());
    let spent = || {
        let stat = std::fs::read_dir("/proc/self/task").unwrap().flatten().find_map(|task| {
            let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
            (comm.trim() == name).then(|| std::fs::read_to_string(task.path().join("stat")).ok())?
        });
        let stat = stat.expect("the network has a thread");
        let (_, rest) = stat.rsplit_once(')').unwrap();
        // User and system time, in ticks of 10 ms.
        rest.split_ascii_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>()
    };
    let before = spent();
    // Nothing is waited for: this is the time at rest, and what is judged is the processor's, whatever else runs.
    Clock::sleep(Duration::from_secs(2));
    assert!(spent() - before <= 10, "{} ticks in two seconds", spent() - before);
    drop(boards);
}
