//! Who asks, and whether they may: tokens, roles, and what a board may touch (KLET-08, GHOST-05).

mod authorize;
mod node;
mod tokens;

pub use self::authorize::{Action, Asked, Path, authorize};
pub use self::node::{check_pod_visible, check_write};
pub use self::tokens::{TokenFileError, Tokens};

/// The group that may do everything.
pub const MASTERS: &str = "system:masters";
/// The group of boards.
pub const NODES: &str = "system:nodes";
/// The group of everyone whose credentials were accepted.
const AUTHENTICATED: &str = "system:authenticated";
const NODE_PREFIX: &str = "system:node:";

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// User name, such as `system:node:a`.
    pub name: String,
    /// Stable id; may be empty.
    pub uid: String,
    /// Groups, in the order in which they were given.
    pub groups: Vec<String>,
}

impl User {
    /// A user who may do everything.
    pub fn master(name: &str) -> Self {
        Self { name: name.into(), uid: String::new(), groups: vec![MASTERS.into(), AUTHENTICATED.into()] }
    }

    /// Whoever sent no credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".into(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".into()],
        }
    }

    /// Whether the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The node's name, when this is a board.
    pub fn node(&self) -> Option<&str> {
        let name = self.name.strip_prefix(NODE_PREFIX)?;
        (self.is_in(NODES) && !name.is_empty()).then_some(name)
    }
}
