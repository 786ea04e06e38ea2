//! The flags, and the help that states the rule in one sentence (EXT-04).

use std::path::PathBuf;

use clap::Parser;

const RULE: &str = "\
Rule: of the nodes whose free CPU and memory hold what a pod requests, the one with the most free memory gets it (of \
equals, the first by name).

Free is what a node's status.allocatable says, less the requests of the pods on it that have not finished; a figure that \
a node does not report is 0. Nothing else is looked at: not taints, not selectors, not whether the node is ready.

Every pod is looked at once. One that does not fit gets one FailedScheduling event and stays as it is, even when room \
appears. After a restart of toy-scheduler each pod that still has no node is looked at once more.";

/// Places the pods that name it in spec.schedulerName and have no node yet; a plain client of the Kubernetes API.
#[derive(Debug, Parser)]
#[command(version, after_help = RULE)]
pub struct Flags {
    /// Where the API server is and who asks; what kubectl would use when left out.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The spec.schedulerName of the pods to place.
    #[arg(long, value_name = "NAME", default_value = "toy-scheduler")]
    pub scheduler_name: String,
    /// Do everything but the binding, and say what would have been bound.
    #[arg(long)]
    pub dry_run: bool,
    /// Also say what is seen, and why each node was or was not chosen.
    #[arg(short, long)]
    pub verbose: bool,
}
