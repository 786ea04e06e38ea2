//! Acts on the API as types; they are read in [`super::api`].

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::cel::Cel;
use crate::kinds::ObjectKind;
use crate::pattern::Pattern;

/// Under which identity a request is made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum User {
    /// May do everything.
    #[default]
    Admin,
    /// A board's own token.
    Board(String),
    /// No token at all.
    Anonymous,
    /// A token as it is.
    Token(String),
}

impl fmt::Display for User {
    /// As it stands in scenarios and in the history: `admin`, `board:a`, `anonymous`, `token:TEXT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            User::Admin => f.write_str("admin"),
            User::Board(board) => write!(f, "board:{board}"),
            User::Anonymous => f.write_str("anonymous"),
            User::Token(token) => write!(f, "token:{token}"),
        }
    }
}

/// What all acts on the API have in common.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Api {
    /// Under which identity.
    pub user: User,
    /// Where namespaced objects are that do not say so themselves; the trial's own if absent.
    pub namespace: Option<String>,
    /// What the answer has to be.
    pub answer: Answer,
}

/// What an answer has to be.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// One of these status codes; empty: any 2xx.
    pub status: Vec<u16>,
    /// What the body has to look like.
    pub body: Option<Pattern>,
    /// What has to hold of body and status.
    pub cel: Option<Cel>,
    /// What header fields have to look like, by their names in lower case.
    pub headers: BTreeMap<String, Pattern>,
}

impl Answer {
    /// Whether a status code is right.
    pub fn accepts(&self, status: u16) -> bool {
        if self.status.is_empty() { (200..300).contains(&status) } else { self.status.contains(&status) }
    }
}

/// Creates what is missing and merge-patches what is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Apply {
    /// The objects, in order.
    pub objects: Vec<Value>,
    /// Identity, namespace, answer (to each of the writes).
    pub api: Api,
}

/// POSTs an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Create {
    /// The object.
    pub object: Value,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// PUTs an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Replace {
    /// The object, whole.
    pub object: Value,
    /// `status`, `scale`.
    pub subresource: Option<String>,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// The type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// JSON merge patch.
    Merge,
    /// JSON patch: a list of operations.
    Json,
    /// Kubernetes' strategic merge patch.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// Every type.
    pub const ALL: [PatchType; 4] =
        [PatchType::Merge, PatchType::Json, PatchType::Strategic, PatchType::Apply];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            PatchType::Merge => "merge",
            PatchType::Json => "json",
            PatchType::Strategic => "strategic",
            PatchType::Apply => "apply",
        }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Json => "application/json-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
            // JSON is YAML.
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }
}

/// An object by kind and name.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Its kind.
    pub kind: &'static ObjectKind,
    /// Its name.
    pub name: String,
}

/// PATCHes an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// Which object.
    pub target: Target,
    /// How the patch is to be read.
    pub patch_type: PatchType,
    /// The patch.
    pub patch: Value,
    /// Who is said to change the fields; always there with [`PatchType::Apply`].
    pub field_manager: Option<String>,
    /// Takes fields from other managers; with [`PatchType::Apply`] only.
    pub force: bool,
    /// `status`, `scale`.
    pub subresource: Option<String>,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// What becomes of an object's dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    /// Every one.
    pub const ALL: [Propagation; 3] = [Propagation::Background, Propagation::Foreground, Propagation::Orphan];

    /// The word for it in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Propagation::Background => "background",
            Propagation::Foreground => "foreground",
            Propagation::Orphan => "orphan",
        }
    }

    /// The word for it in the API.
    pub fn api_name(self) -> &'static str {
        match self {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        }
    }
}

/// DELETEs an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    /// Which object.
    pub target: Target,
    /// `propagationPolicy`.
    pub propagation: Option<Propagation>,
    /// `gracePeriodSeconds`; whole seconds.
    pub grace: Option<Duration>,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// Changes the scale subresource.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// Which object.
    pub target: Target,
    /// How many.
    pub replicas: u32,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// Sets or clears a node's `spec.unschedulable`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cordon {
    /// The node.
    pub node: String,
    /// Set, not cleared.
    pub on: bool,
    /// Identity, answer.
    pub api: Api,
}

/// POSTs a Binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Bind {
    /// The pod.
    pub pod: String,
    /// The node.
    pub node: String,
    /// The pod's uid as a precondition.
    pub uid: Option<String>,
    /// Identity, namespace, answer.
    pub api: Api,
}

/// Any request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestAct {
    /// Method in capitals.
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// JSON body.
    pub body: Option<Value>,
    /// Its media type; `application/json` if absent.
    pub content_type: Option<String>,
    /// Header fields to send, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Identity, answer.
    pub api: Api,
}
