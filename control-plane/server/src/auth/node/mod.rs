//! What a board may see and do: its own Node and Lease, the pods bound to it, and what these name (KLET-08).
//!
//! `authorize` decides before an object is looked at, `restriction` looks at the objects of writes, as Kubernetes' node
//! authoriser and its NodeRestriction plugin do. The refusals carry their words, since a board that reads 403 for a pod drops
//! its copy.

mod authorize;
mod references;
mod restriction;

pub use self::authorize::decide;
pub use self::references::{Named, names_any};
pub use self::restriction::check_write;

/// The namespace of the boards' leases.
const LEASES: &str = "kube-node-lease";
