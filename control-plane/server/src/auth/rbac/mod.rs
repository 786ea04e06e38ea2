//! RBAC: roles and bindings as objects, compiled into a policy that answers questions (GHOST-05).
//!
//! Pure apart from `bootstrap`, which puts the default roles into the store.

mod bootstrap;
mod defaults;
mod escalation;
mod policy;
mod rule;

pub use self::bootstrap::reconcile;
pub use self::defaults::node_rules;
pub use self::escalation::{Grant, grant_of, not_held};
pub use self::policy::Policy;
pub use self::rule::Rule;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// The resources from which a policy is made.
pub const RESOURCES: &[&str] = &["clusterrolebindings", "clusterroles", "rolebindings", "roles"];
