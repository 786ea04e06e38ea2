//! A TCP relay between one board of a `host` rig and the control plane, so that a cut is silence.
//!
//! When a process dies the kernel closes its sockets and the server sees an instant FIN, which neither a pulled
//! cable nor a lost supply sends. Boards therefore talk through this relay: a cut link stops both directions and
//! loses nothing (TCP would retransmit); lost power leaves the server's side open and mute until power returns. A
//! byte is passed on only while the gate is held open, so nothing leaves the relay after `cut` or `power_lost`
//! returned.

use crate::board::Cable;
use crate::world::{Infra, LinkChange};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the board's side of the relay is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    /// Bytes pass.
    up: bool,
    /// Counts power losses: a connection of an earlier life is mute for good.
    life: u64,
    /// Connections of lives before this one are dropped.
    released: u64,
}

#[derive(Debug)]
struct Gate {
    line: Mutex<Line>,
    changes: watch::Sender<Line>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut Line)) {
        let mut line = self.lock();
        how(&mut line);
        self.changes.send_replace(*line);
    }
}

/// One board's way to the control plane.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    gate: Arc<Gate>,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// Listens on a free port of the loopback interface and passes connections on to `upstream`.
    ///
    /// # Errors
    /// No port could be had.
    pub fn open(runtime: &Handle, upstream: SocketAddr) -> io::Result<Self> {
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let port = listener.local_addr()?.port();
        let line = Line { up: true, life: 0, released: 0 };
        let gate = Arc::new(Gate { line: Mutex::new(line), changes: watch::Sender::new(line) });
        let accepting = runtime.spawn(accept(listener, upstream, gate.clone()));
        Ok(Self { port, gate, accepting })
    }

    /// Where the board connects to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Silence in both directions; what is on its way waits.
    pub fn cut(&self) {
        self.gate.change(|line| line.up = false);
    }

    /// Bytes pass again, those that waited first.
    pub fn heal(&self) {
        self.gate.change(|line| line.up = true);
    }

    /// The board is gone without a word: its connections stay open on the server's side and mute.
    pub fn power_lost(&self) {
        self.gate.change(|line| line.life += 1);
    }

    /// The board starts anew: connections of its former lives are dropped, as its network stack would refuse them.
    pub fn power_returned(&self) {
        self.gate.change(|line| line.released = line.life);
    }
}

impl Cable for Relay {
    fn change(&mut self, change: LinkChange) -> Result<(), Infra> {
        match change {
            LinkChange::Cut => self.cut(),
            LinkChange::Heal => self.heal(),
            LinkChange::Delay(_) | LinkChange::Loss(_) | LinkChange::Garbage(_) => {
                return Err(Infra::lasting(
                    "the link of a board of this rig can be cut and healed only",
                    "run the scenario on a rig that offers link-quality or link-garbage",
                ));
            }
        }
        Ok(())
    }

    fn power_lost(&mut self) -> Result<(), Infra> {
        Relay::power_lost(self);
        Ok(())
    }

    fn power_returned(&mut self) -> Result<(), Infra> {
        Relay::power_returned(self);
        Ok(())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.gate.change(|line| {
            line.life += 1;
            line.released = line.life;
        });
    }
}

async fn accept(listener: TcpListener, upstream: SocketAddr, gate: Arc<Gate>) {
    loop {
        match listener.accept().await {
            Ok((board, _)) => {
                let life = gate.lock().life;
                tokio::spawn(carry(board, upstream, gate.clone(), life));
            }
            // Out of file descriptors, or a connection reset before it was taken: the next one may do.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

async fn carry(board: TcpStream, upstream: SocketAddr, gate: Arc<Gate>, life: u64) {
    let mut changes = gate.changes.subscribe();
    if !is_open(&mut changes, life).await {
        return;
    }
    // A refused connection is refused on the board's side too, by the drop.
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    let _ = board.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (from_board, to_board) = board.into_split();
    let (from_server, to_server) = server.into_split();
    let up = tokio::spawn(pump(from_board, to_server, gate.clone(), life));
    let down = tokio::spawn(pump(from_server, to_board, gate.clone(), life));
    let _ = tokio::join!(up, down);
}

/// Waits until bytes may pass; `false` when this connection's board has lost power and its time to be dropped has
/// come.
async fn is_open(changes: &mut watch::Receiver<Line>, life: u64) -> bool {
    let settled = changes.wait_for(|line| line.released > life || (line.life == life && line.up)).await;
    settled.is_ok_and(|line| line.life == life)
}

async fn pump(from: OwnedReadHalf, to: OwnedWriteHalf, gate: Arc<Gate>, life: u64) {
    let mut changes = gate.changes.subscribe();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        if !is_open(&mut changes, life).await {
            return;
        }
        tokio::select! {
            biased;
            _ = changes.changed() => continue,
            ready = from.readable() => if ready.is_err() { return },
        }
        let length = match from.try_read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => 0,
        };
        if !pass(&buffer[..length], &to, &gate, &mut changes, life).await || length == 0 {
            return;
        }
    }
}

/// Passes `bytes` on while the line is up; no bytes means the end of the stream, which also waits for the line.
async fn pass(
    mut bytes: &[u8],
    to: &OwnedWriteHalf,
    gate: &Gate,
    changes: &mut watch::Receiver<Line>,
    life: u64,
) -> bool {
    loop {
        if !is_open(changes, life).await {
            return false;
        }
        if bytes.is_empty() {
            return true;
        }
        tokio::select! {
            biased;
            _ = changes.changed() => continue,
            ready = to.writable() => if ready.is_err() { return false },
        }
        let line = gate.lock();
        if !line.up || line.life != life {
            continue;
        }
        match to.try_write(bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        drop(line);
        if bytes.is_empty() {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener as Server, TcpStream as Socket};
    use std::time::Duration;
    use tokio::runtime::Runtime;

    /// Long enough for a byte over loopback, were it let through.
    const SILENCE: Duration = Duration::from_millis(100);
    const PATIENCE: Duration = Duration::from_secs(60);

    struct Rig {
        server: Server,
        relay: Relay,
        _runtime: Runtime,
    }

    fn rig() -> Rig {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::open(runtime.handle(), server.local_addr().unwrap()).unwrap();
        Rig { server, relay, _runtime: runtime }
    }

    impl Rig {
        fn connect(&self) -> (Socket, Socket) {
            let board = Socket::connect((Ipv4Addr::LOCALHOST, self.relay.port())).unwrap();
            let (server, _) = self.server.accept().unwrap();
            (board, server)
        }
    }

    fn expect(socket: &mut Socket, text: &str) {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = vec![0; text.len()];
        socket.read_exact(&mut buffer).unwrap();
        assert_eq!(String::from_utf8_lossy(&buffer), text);
    }

    fn expect_end(socket: &mut Socket) {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        match socket.read(&mut [0; 8]) {
            Ok(0) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            other => panic!("expected the end, got {other:?}"),
        }
    }

    fn expect_silence(socket: &mut Socket) {
        socket.set_read_timeout(Some(SILENCE)).unwrap();
        let outcome = socket.read(&mut [0; 8]);
        assert!(
            matches!(&outcome, Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)),
            "expected silence, got {outcome:?}"
        );
    }

    #[test]
    fn bytes_and_ends_pass_both_ways() {
        let rig = rig();
        let (mut board, mut server) = rig.connect();
        board.write_all(b"ping").unwrap();
        expect(&mut server, "ping");
        server.write_all(b"pong").unwrap();
        expect(&mut board, "pong");
        board.shutdown(std::net::Shutdown::Write).unwrap();
        expect_end(&mut server);
        server.write_all(b"late").unwrap();
        expect(&mut board, "late");
        drop(server);
        expect_end(&mut board);
    }

    #[test]
    fn a_cut_link_is_silent_and_loses_nothing() {
        let rig = rig();
        let (mut board, mut server) = rig.connect();
        board.write_all(b"one").unwrap();
        expect(&mut server, "one");
        rig.relay.cut();
        board.write_all(b"two").unwrap();
        server.write_all(b"three").unwrap();
        let mut during = Socket::connect((Ipv4Addr::LOCALHOST, rig.relay.port())).unwrap();
        during.write_all(b"four").unwrap();
        expect_silence(&mut server);
        expect_silence(&mut board);
        drop(board.shutdown(std::net::Shutdown::Write));
        expect_silence(&mut server);
        rig.relay.heal();
        expect(&mut server, "two");
        expect_end(&mut server);
        expect(&mut board, "three");
        let (mut second, _) = rig.server.accept().unwrap();
        expect(&mut second, "four");
    }

    #[test]
    fn lost_power_says_nothing_until_it_returns() {
        let rig = rig();
        let (mut board, mut server) = rig.connect();
        board.write_all(b"alive").unwrap();
        expect(&mut server, "alive");
        rig.relay.power_lost();
        let _ = board.write_all(b"dying words");
        drop(board);
        expect_silence(&mut server);
        server.write_all(b"anyone?").unwrap();
        expect_silence(&mut server);
        rig.relay.power_returned();
        expect_end(&mut server);
        let (mut board, mut server) = rig.connect();
        board.write_all(b"again").unwrap();
        expect(&mut server, "again");
    }

    #[test]
    fn a_control_plane_that_is_away_refuses() {
        let Rig { server, relay, _runtime } = rig();
        drop(server);
        let mut board = Socket::connect((Ipv4Addr::LOCALHOST, relay.port())).unwrap();
        expect_end(&mut board);
    }
}
