//! kubectl and etcdctl as a scenario's steps: run to their end, both outputs kept.

use crate::binaries::on_path;
use crate::etcd::{REMEDY, bare};
use crate::process::{Input, Listener, Process, Stream};
use crate::world::{Infra, ToolOutcome};
use rigor_model::act::Tool;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest run of a command.
const LIMIT: Duration = Duration::from_secs(120);

/// How long etcdctl waits for etcd unless its arguments say otherwise. Its own 2 s and 5 s are short on a busy machine.
const PATIENCE: &str = "60s";

/// kubectl with the trial's kubeconfig and a cache of its own, so that nothing of the user's is read or written.
pub(crate) fn kubectl(kubeconfig: &Path, cache: &Path, argv: &[String]) -> Result<Command, Infra> {
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

/// etcdctl on the etcd at `endpoint`. The endpoint is no argument, so that the recorded arguments are the scenario's.
pub(crate) fn etcdctl(endpoint: &str, argv: &[String]) -> Result<Command, Infra> {
    let etcdctl = on_path("etcdctl").ok_or_else(|| Infra::lasting("etcdctl is not installed", REMEDY))?;
    let mut command = bare(etcdctl);
    command.args(argv).env("ETCDCTL_API", "3").env("ETCDCTL_ENDPOINTS", endpoint);
    for (flag, variable) in
        [("--command-timeout", "ETCDCTL_COMMAND_TIMEOUT"), ("--dial-timeout", "ETCDCTL_DIAL_TIMEOUT")]
    {
        // etcdctl takes nothing by both ways.
        if !argv.iter().any(|argument| argument.split('=').next() == Some(flag)) {
            command.env(variable, PATIENCE);
        }
    }
    Ok(command)
}

/// Runs it to its end.
pub(crate) fn run(tool: Tool, command: Command, stdin: Option<&str>) -> Result<ToolOutcome, Infra> {
    let name = tool.name();
    let output = Arc::new(Captured::default());
    let process = Process::start(command, stdin.map_or(Input::Nothing, Input::Text), output.clone())
        .map_err(|error| Infra::transient(format!("{name} could not be started: {error}")))?;
    let Some(status) = process.wait(LIMIT) else {
        return Err(Infra::transient(format!("{name} did not end within {} s", LIMIT.as_secs())));
    };
    let (stdout, stderr) = output.texts();
    Ok(ToolOutcome { code: status.code().unwrap_or(-1), stdout, stderr })
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
        let outcome = run(Tool::Kubectl, command, Some("one\n")).unwrap();
        let expected = ToolOutcome { code: 7, stdout: "one\ntwo\n".to_owned(), stderr: "bad\n".to_owned() };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn etcdctl_is_given_the_trials_etcd_and_nothing_of_the_users() {
        let Ok(command) =
            etcdctl("http://127.0.0.1:1", &["get".to_owned(), "--command-timeout=1s".to_owned()])
        else {
            println!("skipped: etcdctl is not on PATH ({REMEDY})");
            return;
        };
        let set: Vec<String> = command
            .get_envs()
            .filter_map(|(name, value)| Some(format!("{}={}", name.to_str()?, value?.to_str()?)))
            .collect();
        let wanted = ["ETCDCTL_API=3", "ETCDCTL_DIAL_TIMEOUT=60s", "ETCDCTL_ENDPOINTS=http://127.0.0.1:1"];
        assert_eq!(set, wanted);
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["get", "--command-timeout=1s"]);
    }
}
