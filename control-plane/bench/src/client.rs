//! A client that costs little: one kept connection, requests by hand, bodies read to their end and not looked at.

use std::io::{Error, ErrorKind};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// One connection to the API.
pub struct Client {
    stream: BufReader<TcpStream>,
    token: String,
    line: Vec<u8>,
    body: Vec<u8>,
}

impl Client {
    /// Connects to ADDRESS:PORT.
    ///
    /// # Errors
    /// When nothing listens there.
    pub async fn connect(address: &str, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let stream = BufReader::with_capacity(64 * 1024, stream);
        Ok(Self { stream, token: token.into(), line: Vec::new(), body: Vec::new() })
    }

    /// A request; answers its status and body.
    ///
    /// # Errors
    /// When the connection ends.
    pub async fn ask(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<(u16, &[u8])> {
        self.send(method, path, body).await?;
        let (status, length) = self.head().await?;
        self.body.resize(length.unwrap_or(0), 0);
        self.stream.read_exact(&mut self.body).await?;
        Ok((status, &self.body))
    }

    /// A request that is expected to succeed; answers the length of its body.
    ///
    /// # Errors
    /// When it fails, with what the server said.
    pub async fn must(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<usize> {
        let (status, answer) = self.ask(method, path, body).await?;
        anyhow::ensure!(status < 300, "{method} {path}: {status} {}", String::from_utf8_lossy(answer));
        Ok(answer.len())
    }

    /// Begins a watch.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn watch(&mut self, path: &str) -> anyhow::Result<()> {
        self.send("GET", path, "").await?;
        anyhow::ensure!(self.head().await?.0 == 200, "{path} is not watched");
        Ok(())
    }

    /// The next chunk of a watch.
    ///
    /// # Errors
    /// When the watch ends.
    pub async fn chunk(&mut self) -> anyhow::Result<&[u8]> {
        self.line().await?;
        let size = usize::from_str_radix(std::str::from_utf8(&self.line)?.trim_end(), 16)?;
        self.body.resize(size + 2, 0);
        self.stream.read_exact(&mut self.body).await?;
        Ok(&self.body)
    }

    async fn send(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<()> {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    async fn line(&mut self) -> anyhow::Result<()> {
        self.line.clear();
        if self.stream.read_until(b'\n', &mut self.line).await? == 0 {
            return Err(Error::from(ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    async fn head(&mut self) -> anyhow::Result<(u16, Option<usize>)> {
        self.line().await?;
        let status = std::str::from_utf8(self.line.get(9..12).unwrap_or_default())?.parse()?;
        let mut length = None;
        loop {
            self.line().await?;
            let line = std::str::from_utf8(&self.line)?.trim_end();
            if line.is_empty() {
                return Ok((status, length));
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
        }
    }
}
