//! DaemonSets (DS-01 to DS-09, NODE-17): one pod on each node that the template's node selector matches.
//!
//! [`decide`] is one pass over one DaemonSet. Each node has at most one pod, which is placed by the node's hostname
//! label and the scheduler; cordoned and not-ready nodes have theirs, Pending, until the scheduler may use them. Nodes
//! are told apart by that label: two nodes with the same one are one place. A pass never touches a pod on an
//! unreachable node, and never lets more than `maxUnavailable` nodes be without a working pod to replace old pods: a
//! pin can be claimed once, so there is no surge, and a replacement is made only when the old pod has left its node.

mod basis;
mod pass;
mod place;
mod rollout;
mod roster;
mod status;
mod template;

pub use pass::{decide, decide_with};
pub use roster::Roster;

pub(crate) use basis::{host, owner};

/// Label of a DaemonSet's pods: the hash of the template that they were made from.
pub const REVISION_HASH: &str = "controller-revision-hash";
