//! kubectl as a scenario's step: run to its end as the administrator, both outputs kept.

use crate::binaries::on_path;
use crate::process::{Input, Listener, Process, Stream};
use crate::world::{Infra, KubectlOutcome};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest run of a kubectl command.
const LIMIT: Duration = Duration::from_secs(120);

/// The command with the trial's kubeconfig and a cache of its own, so that nothing of the user's is read or written.
pub(crate) fn command(kubeconfig: &Path, cache: &Path, argv: &[String]) -> Result<Command, Infra> {
    let kubectl = on_path("kubectl").ok_or_else(|| {
        Infra::lasting("kubectl is not installed", "put kubectl 1.32 on the search path (ci/bootstrap)")
    })?;
    let mut command = Command::new(kubectl);
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--cache-dir")
        .arg(cache)
        .args(argv)
        .env_remove("KUBECONFIG");
    Ok(command)
}

/// Runs it to its end.
pub(crate) fn run(command: Command, stdin: Option<&str>) -> Result<KubectlOutcome, Infra> {
    let output = Arc::new(Captured::default());
    let process = Process::start(command, stdin.map_or(Input::Nothing, Input::Text), output.clone())
        .map_err(|error| Infra::transient(format!("kubectl could not be started: {error}")))?;
    let Some(status) = process.wait(LIMIT) else {
        return Err(Infra::transient(format!("kubectl did not end within {} s", LIMIT.as_secs())));
    };
    let (stdout, stderr) = output.texts();
    Ok(KubectlOutcome { code: status.code().unwrap_or(-1), stdout, stderr })
}

/// Both outputs of a command.
#[derive(Debug, Default)]
struct Captured {
    texts: Mutex<(String, String)>,
}

impl Captured {
    fn texts(&self) -> (String, String) {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Listener for Captured {
    fn line(&self, from: Stream, text: &str) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let place = match from {
            Stream::Out => &mut texts.0,
            Stream::Err => &mut texts.1,
        };
        place.push_str(text);
        place.push('\n');
    }

    fn exited(&self, _: i32, _: bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_outputs_and_the_exit_code_are_kept() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "cat; echo two; echo bad >&2; exit 7"]);
        let outcome = run(command, Some("one\n")).unwrap();
        let expected =
            KubectlOutcome { code: 7, stdout: "one\ntwo\n".to_owned(), stderr: "bad\n".to_owned() };
        assert_eq!(outcome, expected);
    }
}
