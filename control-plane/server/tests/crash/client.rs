//! As much of an HTTP client as the crash loop needs: one kept connection, whole answers, and the lines of a watch.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;

use serde_json::Value;

/// One connection.
pub struct Client(BufReader<TcpStream>);

impl Client {
    /// Connects to `http://ADDRESS`.
    pub fn connect(url: &str) -> Result<Self> {
        let stream = TcpStream::connect(url.strip_prefix("http://").unwrap())?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(head.as_bytes())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// The status, and the length of the body where it is told.
    fn head(&mut self) -> Result<(u16, Option<usize>)> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                return Ok((status.ok_or_else(|| Error::from(ErrorKind::InvalidData))?, length));
            }
            if let Some(told) = line.strip_prefix("content-length:") {
                length = told.trim().parse().ok();
            }
        }
    }

    /// A request and its whole answer.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Value)> {
        self.send(method, path, body)?;
        let (status, length) = self.head()?;
        let mut body = vec![0; length.ok_or_else(|| Error::from(ErrorKind::InvalidData))?];
        self.0.read_exact(&mut body)?;
        Ok((status, serde_json::from_slice(&body)?))
    }

    /// Begins a watch.
    pub fn watch(&mut self, path: &str) -> Result<u16> {
        self.send("GET", path, "")?;
        Ok(self.head()?.0)
    }

    /// The next chunk of a watch, which holds whole lines.
    pub fn events(&mut self) -> Result<Vec<Value>> {
        let size = usize::from_str_radix(&self.line()?, 16);
        let mut chunk = vec![0; size.map_err(|_| Error::from(ErrorKind::InvalidData))? + 2];
        self.0.read_exact(&mut chunk)?;
        let lines = chunk.split(|byte| *byte == b'\n').filter(|line| line.len() > 1);
        lines.map(|line| Ok(serde_json::from_slice(line)?)).collect()
    }
}
