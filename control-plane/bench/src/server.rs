//! The control plane under measurement, as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use crate::Client;

/// The token of an administrator, in the token file that every run gets.
const TOKEN: &str = "bench-admin";

/// A running control plane, which ends with this.
pub struct Server {
    child: Child,
    address: String,
    data_dir: PathBuf,
}

impl Server {
    /// Starts `binary` over `data_dir` and waits until it says where it serves.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(binary: &Path, data_dir: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        std::fs::create_dir_all(data_dir)?;
        let tokens = data_dir.join("bench-tokens.csv");
        std::fs::write(&tokens, format!("{TOKEN},bench,bench,system:masters\n"))?;
        let mut command = Command::new(binary);
        command.args(["--listen", "127.0.0.1:0", "--plain-http", "--data-dir"]).arg(data_dir);
        command.arg("--token-auth-file").arg(tokens).args(flags);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("it has no output")?);
        let mut line = String::new();
        while !line.contains("serving on") {
            line.clear();
            anyhow::ensure!(out.read_line(&mut line)? > 0, "it did not start");
        }
        let address = line.rsplit("://").next().unwrap_or_default().trim().to_owned();
        Ok(Self { child, address, data_dir: data_dir.into() })
    }

    /// A new connection of an administrator.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub async fn client(&self) -> anyhow::Result<Client> {
        Client::connect(&self.address, TOKEN).await
    }

    /// Where its files are.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    fn proc(&self, file: &str) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))?)
    }

    /// Resident memory, in MiB.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn resident(&self) -> anyhow::Result<f64> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
    }

    /// Time that it spent computing so far.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn computed(&self) -> anyhow::Result<Duration> {
        let stat = self.proc("stat")?;
        let fields: Vec<&str> =
            stat.rsplit(") ").next().unwrap_or_default().split_ascii_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        // User and system time, in hundredths of a second on Linux.
        Ok(Duration::from_millis((ticks(11) + ticks(12)) * 10))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
