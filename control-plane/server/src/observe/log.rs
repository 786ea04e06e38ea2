//! The log on standard error: one line for each notable thing, as text or as JSON.
//!
//! `CONTROL_PLANE_LOG` chooses what is said (`debug` shows every request). The crates underneath are held to what they say at
//! info, whatever is asked for: at trace, transports print what they carry, tokens included.

use std::env::VarError;
use std::str::FromStr;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, filter_fn};
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

/// What the variable may hold.
const TAKES: &str = "give a level (off, error, warn, info, debug, trace), or parts with levels and commas between them, such as \
     control_plane::requests=debug,info";

/// The filter that a value of `CONTROL_PLANE_LOG` is; `info` without one.
fn filter(given: Result<String, VarError>) -> Result<EnvFilter, BadValue> {
    let refuse = |given: &str| Err(BadValue::new(format!("CONTROL_PLANE_LOG is `{given}`: {TAKES}")));
    let given = match given {
        Ok(given) => given,
        Err(VarError::NotPresent) => String::new(),
        Err(VarError::NotUnicode(given)) => return refuse(&given.to_string_lossy()),
    };
    let parts: Vec<&str> = given.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Ok(EnvFilter::new("info"));
    }
    // To the filter a word that is no level is a part of the program: with a level misspelt, nothing would be said at all.
    let is_level = |part: &&str| part.contains('=') || part.parse::<LevelFilter>().is_ok();
    match EnvFilter::try_new(parts.join(",")) {
        Ok(filter) if parts.iter().all(is_level) => Ok(filter),
        Ok(_) | Err(_) => refuse(&given),
    }
}

/// Begins to log, once in a process; panics are logged by their place.
///
/// # Errors
/// `CONTROL_PLANE_LOG` holds what it does not take.
pub fn start(format: LogFormat) -> Result<(), BadValue> {
    let chosen = filter(std::env::var("CONTROL_PLANE_LOG"))?.and(filter_fn(is_ours));
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_chooses_nothing_is_refused_with_what_it_takes() {
        for good in
            ["", " ", "debug", "OFF", "info,control_plane::requests=debug", "control_plane=trace, warn,"]
        {
            assert!(filter(Ok(good.to_owned())).is_ok(), "{good}");
        }
        assert_eq!(filter(Err(VarError::NotPresent)).unwrap().to_string(), "info");
        for bad in ["typo", "debg,info", "info,control_plane::requests=loud", "info,=,x"] {
            let error = filter(Ok(bad.to_owned())).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("CONTROL_PLANE_LOG is `{bad}`: give a level (off, error")),
                "{error}"
            );
        }
    }
}
