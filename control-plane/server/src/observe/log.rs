//! The log on standard error: one line for each notable thing, as text or as JSON.
//!
//! `CONTROL_PLANE_LOG` chooses what is said (`debug` shows every request). The crates underneath are held to what they say at
//! info, whatever is asked for: at trace, transports print what they carry, tokens included.

use std::str::FromStr;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::config::{BadValue, choose};

/// `--log-format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        choose("log format", text, &[("text", Self::Text), ("json", Self::Json)])
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("control_plane") || *metadata.level() <= Level::INFO
}

/// Begins to log, once in a process; panics are logged by their place.
pub fn start(format: LogFormat) {
    let chosen = EnvFilter::try_from_env("CONTROL_PLANE_LOG").unwrap_or_else(|_| "info".into());
    let chosen = chosen.and(filter_fn(is_ours));
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    match format {
        LogFormat::Text => registry().with(lines.with_filter(chosen)).init(),
        LogFormat::Json => registry().with(lines.json().with_filter(chosen)).init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, ToString::to_string);
        // A message that was put together may contain what a client sent, such as a secret.
        let message = panic.payload().downcast_ref::<&str>().copied().unwrap_or("(withheld)");
        tracing::error!(place, message, "panic");
    }));
}
