//! `control-plane explain-schedule POD`: asks a running control plane what its scheduler makes of each node, and prints it.

mod client;
mod table;

use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

use crate::config::{BadValue, choose};
use crate::serve::fail;

/// The form of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// For people.
    Text,
    /// As the control plane gives it.
    Json,
}

impl FromStr for Output {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        choose("form", text, &[("text", Self::Text), ("json", Self::Json)])
    }
}

/// Prints the explanation for a pod.
pub fn run(pod: &str, namespace: Option<&str>, kubeconfig: &Path, output: Output) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("no thread to run on: {error}")),
    };
    match runtime.block_on(client::fetch(pod, namespace, kubeconfig)) {
        Ok(explanation) => {
            match output {
                Output::Text => print!("{}", table::text(&explanation)),
                Output::Json => println!("{explanation:#}"),
            }
            ExitCode::SUCCESS
        }
        Err(error) => fail(&format!("{error:#}")),
    }
}
