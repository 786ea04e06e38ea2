//! Who asks, and whether they may: certificates, tokens, roles, and what a board may touch (KLET-08, GHOST-05).

use std::collections::BTreeMap;

pub mod accounts;
mod attributes;
mod credentials;
pub mod joining;
pub mod node;
pub mod rbac;
mod tokens;

pub use self::attributes::{Action, Asked, Attributes, Decision};
pub use self::credentials::{Credentials, Secrets};
pub use self::tokens::{Shown, TokenFileError, Tokens, shown};

/// The group that may do everything.
pub const MASTERS: &str = "system:masters";
/// The name of whoever sent no credentials.
const ANONYMOUS: &str = "system:anonymous";
/// The group of boards.
pub const NODES: &str = "system:nodes";
/// The group of everyone whose credentials were accepted.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of everyone else.
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Before the node's name in a board's user name.
pub const NODE_PREFIX: &str = "system:node:";

/// The key of a user's extra information under which the id of its credential stands.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// User name, such as `system:node:a`.
    pub name: String,
    /// Stable id; may be empty.
    pub uid: String,
    /// Groups, in the order in which they were given.
    pub groups: Vec<String>,
    /// What else the credential says, by key.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user who may do everything.
    pub fn master(name: &str) -> Self {
        Self::known(name.into(), vec![MASTERS.into()])
    }

    /// Someone whose credentials were accepted.
    pub fn known(name: String, groups: Vec<String>) -> Self {
        Self { name, groups, ..Self::default() }.with_usual_groups()
    }

    /// The same, in the group that everyone is in; one that was put among the unauthenticated stays there.
    #[must_use]
    pub fn with_usual_groups(mut self) -> Self {
        let usual = if self.is_anonymous() { UNAUTHENTICATED } else { AUTHENTICATED };
        if !self.is_in(usual) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(usual.into());
        }
        self
    }

    /// Notes the id of the credential, which is no secret.
    pub fn credential_id(&mut self, id: &str) {
        self.extra.insert(CREDENTIAL_ID.into(), vec![id.into()]);
    }

    /// Whoever sent no credentials.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Whether nobody in particular asks.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
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
