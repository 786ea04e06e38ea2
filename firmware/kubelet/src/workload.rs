//! The workloads that are built into the firmware, and how a container's image names them: `rigor.dev/pause`
//! and `rigor.dev/crash` alone, or `rigor.dev/builtin` with the workload as the first argument (an image
//! reference cannot carry two colons).

use alloc::format;
use alloc::string::String;

/// What a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Runs until it is stopped.
    Pause,
    /// Ends with `code`, `after` so many milliseconds.
    Exit { code: i32, after: u64 },
    /// Aborts at once.
    Crash,
}

/// Exit code of an abort, as a shell reports it (128 + SIGABRT).
pub(crate) const CRASH_CODE: i32 = 134;
/// Exit code of a container that was told to stop (128 + SIGTERM).
pub(crate) const STOPPED_CODE: i32 = 143;

/// Why a container has no workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WorkloadError {
    #[error("image \"{0}\" is not built into this firmware")]
    UnknownImage(String),
    #[error("{0}")]
    BadArguments(String),
}

impl Workload {
    /// Finds the workload of an image and its arguments.
    ///
    /// # Errors
    /// [`WorkloadError::UnknownImage`] for an image of someone else's, [`WorkloadError::BadArguments`] for a workload
    /// that does not exist.
    pub(crate) fn of(image: &str, args: &[String]) -> Result<Workload, WorkloadError> {
        let unknown = || WorkloadError::UnknownImage(image.into());
        let name = image.strip_prefix("rigor.dev/").ok_or_else(unknown)?;
        match name {
            "builtin" => {
                let text = args.first().ok_or_else(|| {
                    WorkloadError::BadArguments("args[0] must name the builtin workload".into())
                })?;
                Self::parse(text).ok_or_else(|| {
                    WorkloadError::BadArguments(format!(
                        "no builtin workload \"{text}\": known are pause, crash, exit:CODE and exit:CODE:after=DURATION"
                    ))
                })
            }
            name => Self::parse(name).ok_or_else(unknown),
        }
    }

    fn parse(text: &str) -> Option<Workload> {
        let mut parts = text.split(':');
        let workload = match parts.next()? {
            "pause" => Workload::Pause,
            "crash" => Workload::Crash,
            "exit" => {
                let code: u8 = parts.next()?.parse().ok()?;
                let after = match parts.next() {
                    Some(after) => duration_millis(after.strip_prefix("after=")?)?,
                    None => 0,
                };
                Workload::Exit { code: i32::from(code), after }
            }
            _ => return None,
        };
        if parts.next().is_some() { None } else { Some(workload) }
    }

    /// Milliseconds after its start at which the workload ends, and its exit code; `None` for never.
    pub(crate) fn end(self) -> Option<(u64, i32)> {
        match self {
            Workload::Pause => None,
            Workload::Exit { code, after } => Some((after, code)),
            Workload::Crash => Some((0, CRASH_CODE)),
        }
    }
}

/// Reads `2s`, `500ms`, `1m30s`, `1h`.
fn duration_millis(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let value: u64 = rest.get(..digits)?.parse().ok()?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let scale = match &rest[digits..unit_end] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        total = total.checked_add(value.checked_mul(scale)?)?;
        rest = &rest[unit_end..];
    }
    if text.is_empty() { None } else { Some(total) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn workloads_are_found() {
        let check = |image: &str, args: &[&str], expected: Option<Workload>| {
            let args: Vec<String> = args.iter().map(|a| a.to_string()).collect();
            assert_eq!(Workload::of(image, &args).ok(), expected, "{image} {args:?}");
        };
        check("rigor.dev/pause", &[], Some(Workload::Pause));
        check("rigor.dev/crash", &[], Some(Workload::Crash));
        check("rigor.dev/builtin", &["pause"], Some(Workload::Pause));
        check("rigor.dev/builtin", &["exit:3"], Some(Workload::Exit { code: 3, after: 0 }));
        check("rigor.dev/exit:0", &[], Some(Workload::Exit { code: 0, after: 0 }));
        check("rigor.dev/builtin", &["exit:1:after=1m30s"], Some(Workload::Exit { code: 1, after: 90_000 }));
        check("rigor.dev/builtin", &["exit:0:after=1500ms"], Some(Workload::Exit { code: 0, after: 1500 }));
        check("rigor.dev/builtin", &[], None);
        check("rigor.dev/builtin", &["exit"], None);
        check("rigor.dev/builtin", &["exit:256"], None);
        check("rigor.dev/builtin", &["exit:1:after=2"], None);
        check("rigor.dev/builtin", &["exit:1:after="], None);
        check("rigor.dev/builtin", &["exit:1:after=99999999999999999999s"], None);
        check("rigor.dev/builtin", &["exit:1:after=2s:x"], None);
        check("rigor.dev/nginx", &[], None);
        check("nginx", &[], None);
    }
}
