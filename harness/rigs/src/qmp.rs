//! QEMU's machine protocol: halting and resuming a board.
//!
//! `Codec` is pure (bytes in, messages out); `Qmp` is a blocking client over the emulator's unix socket. Nothing
//! else of QMP is used: power is switched by ending and starting the emulator.

use crate::clock::Clock;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest message accepted, in bytes; QEMU's are far shorter.
const LONGEST_MESSAGE: usize = 1 << 20;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// The socket could not be opened or broke.
    #[error("the emulator's QMP socket: {0}")]
    Socket(#[from] io::Error),
    /// What came is not QMP.
    #[error("the emulator sent what is not QMP: {0}")]
    Malformed(String),
    /// QEMU refused the command.
    #[error("the emulator refused `{command}`: {class}: {text}")]
    Refused {
        /// Command name.
        command: String,
        /// QEMU's error class.
        class: String,
        /// QEMU's description.
        text: String,
    },
}

/// A message from QEMU.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// First line of a connection.
    Greeting,
    /// A command succeeded.
    Return {
        /// The command's `id`.
        id: Option<u64>,
        /// Its result.
        value: Value,
    },
    /// A command failed.
    Error {
        /// The command's `id`.
        id: Option<u64>,
        /// Error class.
        class: String,
        /// Description.
        text: String,
    },
    /// Something happened in the emulator.
    Event {
        /// Event name, such as `STOP`.
        name: String,
    },
}

/// Splits a byte stream into messages.
#[derive(Debug, Default)]
pub struct Codec {
    pending: Vec<u8>,
}

impl Codec {
    /// Takes in bytes as they came.
    ///
    /// # Errors
    /// A message without end.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), QmpError> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() > LONGEST_MESSAGE && !self.pending.contains(&b'\n') {
            return Err(QmpError::Malformed(format!("a line of more than {LONGEST_MESSAGE} bytes")));
        }
        Ok(())
    }

    /// The next whole message, if one is in.
    ///
    /// # Errors
    /// The line is not JSON, or not a QMP message.
    pub fn next_message(&mut self) -> Result<Option<Message>, QmpError> {
        loop {
            let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') else {
                return Ok(None);
            };
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                return parse(text.trim()).map(Some);
            }
        }
    }

    /// The bytes of a command.
    #[must_use]
    pub fn command(id: u64, name: &str, arguments: &Value) -> String {
        let mut message = json!({"execute": name, "id": id});
        if !arguments.is_null() {
            message["arguments"] = arguments.clone();
        }
        format!("{message}\n")
    }
}

fn parse(line: &str) -> Result<Message, QmpError> {
    let malformed = || QmpError::Malformed(line.chars().take(200).collect());
    let value: Value = serde_json::from_str(line).map_err(|_| malformed())?;
    let id = value["id"].as_u64();
    let text_of = |value: &Value| value.as_str().map(str::to_owned);
    if value.get("QMP").is_some() {
        Ok(Message::Greeting)
    } else if let Some(result) = value.get("return") {
        Ok(Message::Return { id, value: result.clone() })
    } else if let Some(error) = value.get("error") {
        let class = text_of(&error["class"]).ok_or_else(malformed)?;
        Ok(Message::Error { id, class, text: text_of(&error["desc"]).unwrap_or_default() })
    } else if let Some(name) = text_of(&value["event"]) {
        Ok(Message::Event { name })
    } else {
        Err(malformed())
    }
}

/// A connection to one emulator.
#[derive(Debug)]
pub struct Qmp {
    socket: UnixStream,
    codec: Codec,
    last_id: u64,
}

impl Qmp {
    /// Connects and leaves negotiation mode; tries again every 10 ms while the socket is not there, for at most
    /// `limit`.
    ///
    /// # Errors
    /// No socket within `limit`, or a conversation that is not QMP's.
    pub fn connect(path: &Path, limit: Duration) -> Result<Self, QmpError> {
        let clock = Clock::start();
        let socket = loop {
            match UnixStream::connect(path) {
                Ok(socket) => break socket,
                Err(error) if Duration::from_micros(clock.now().0) >= limit => return Err(error.into()),
                Err(_) => Clock::sleep(Duration::from_millis(10)),
            }
        };
        socket.set_read_timeout(Some(limit))?;
        socket.set_write_timeout(Some(limit))?;
        let mut qmp = Self { socket, codec: Codec::default(), last_id: 0 };
        while qmp.receive()? != Message::Greeting {}
        qmp.execute("qmp_capabilities", &Value::Null)?;
        Ok(qmp)
    }

    /// Stops the processor; guest time stands still.
    ///
    /// # Errors
    /// See [`QmpError`].
    pub fn stop(&mut self) -> Result<(), QmpError> {
        self.execute("stop", &Value::Null).map(drop)
    }

    /// Lets the processor run again.
    ///
    /// # Errors
    /// See [`QmpError`].
    pub fn resume(&mut self) -> Result<(), QmpError> {
        self.execute("cont", &Value::Null).map(drop)
    }

    fn execute(&mut self, name: &str, arguments: &Value) -> Result<Value, QmpError> {
        self.last_id += 1;
        let ours = Some(self.last_id);
        self.socket.write_all(Codec::command(self.last_id, name, arguments).as_bytes())?;
        loop {
            match self.receive()? {
                Message::Return { id, value } if id == ours => return Ok(value),
                Message::Error { id, class, text } if id == ours || id.is_none() => {
                    return Err(QmpError::Refused { command: name.to_owned(), class, text });
                }
                // Events, and answers to a command that was given up on.
                Message::Greeting
                | Message::Event { .. }
                | Message::Return { .. }
                | Message::Error { .. } => {}
            }
        }
    }

    fn receive(&mut self) -> Result<Message, QmpError> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(message) = self.codec.next_message()? {
                return Ok(message);
            }
            match self.socket.read(&mut buffer)? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                length => self.codec.feed(&buffer[..length])?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_whole_however_the_bytes_are_split() {
        let stream = concat!(
            "{\"QMP\": {\"version\": {\"qemu\": {\"major\": 7}}, \"capabilities\": [\"oob\"]}}\r\n",
            "{\"return\": {}, \"id\": 1}\r\n\r\n",
            "{\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}, \"event\": \"STOP\"}\r\n",
            "{\"id\": 2, \"error\": {\"class\": \"GenericError\", \"desc\": \"Device 'x' not found\"}}\r\n",
        );
        let whole = read(&[stream.as_bytes()]);
        assert_eq!(
            whole,
            vec![
                Message::Greeting,
                Message::Return { id: Some(1), value: json!({}) },
                Message::Event { name: "STOP".to_owned() },
                Message::Error {
                    id: Some(2),
                    class: "GenericError".to_owned(),
                    text: "Device 'x' not found".to_owned()
                },
            ]
        );
        for size in 1..40 {
            let pieces: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
            assert_eq!(read(&pieces), whole, "in pieces of {size} bytes");
        }
    }

    fn read(pieces: &[&[u8]]) -> Vec<Message> {
        let mut codec = Codec::default();
        let mut messages = Vec::new();
        for piece in pieces {
            codec.feed(piece).unwrap();
            while let Some(message) = codec.next_message().unwrap() {
                messages.push(message);
            }
        }
        messages
    }

    #[test]
    fn what_is_not_qmp_is_refused() {
        for line in ["nonsense\n", "{\"neither\": 1}\n", "[]\n", "{\"error\": {}}\n", "\u{fffd}\n"] {
            let mut codec = Codec::default();
            codec.feed(line.as_bytes()).unwrap();
            let outcome = codec.next_message();
            assert!(matches!(outcome, Err(QmpError::Malformed(_))), "{line:?} gave {outcome:?}");
        }
        let endless = vec![b'x'; LONGEST_MESSAGE + 1];
        assert!(Codec::default().feed(&endless).is_err());
    }

    #[test]
    fn a_command_is_one_line() {
        assert_eq!(Codec::command(3, "stop", &Value::Null), "{\"execute\":\"stop\",\"id\":3}\n");
        assert_eq!(
            Codec::command(4, "set_link", &json!({"name": "n0", "up": false})),
            "{\"arguments\":{\"name\":\"n0\",\"up\":false},\"execute\":\"set_link\",\"id\":4}\n"
        );
    }

    /// A scripted emulator: answers each command with the next line, then hangs up.
    fn emulator(dir: &Path, answers: &'static [&'static str]) -> std::path::PathBuf {
        let path = dir.join("qmp");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut lines = io::BufReader::new(socket.try_clone().unwrap());
            socket.write_all(b"{\"QMP\": {}}\r\n").unwrap();
            for answer in answers {
                let mut command = String::new();
                io::BufRead::read_line(&mut lines, &mut command).unwrap();
                socket.write_all(answer.as_bytes()).unwrap();
            }
        });
        path
    }

    #[test]
    fn the_client_waits_for_its_own_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = emulator(
            dir.path(),
            &[
                "{\"return\": {}, \"id\": 1}\n",
                "{\"event\": \"STOP\"}\n{\"return\": {}, \"id\": 1}\n{\"return\": {}, \"id\": 2}\n",
                "{\"id\": 3, \"error\": {\"class\": \"GenericError\", \"desc\": \"not now\"}}\n",
            ],
        );
        let mut qmp = Qmp::connect(&path, Duration::from_secs(60)).unwrap();
        qmp.stop().unwrap();
        let refused = qmp.resume().unwrap_err().to_string();
        assert_eq!(refused, "the emulator refused `cont`: GenericError: not now");
        assert!(matches!(qmp.stop(), Err(QmpError::Socket(_))), "the emulator has hung up");
    }
}
