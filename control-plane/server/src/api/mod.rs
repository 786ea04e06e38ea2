//! HTTP: from requests to the verbs of `service`, and back to what Kubernetes' clients read.

mod body;
mod continue_token;
mod discovery;
mod entrance;
mod explain;
mod fields;
mod filter;
mod handler;
mod health;
mod negotiate;
mod path;
mod query;
mod read;
mod respond;
mod review;
mod token;
mod view;
mod watch;
mod write;

pub use self::body::to_json;
pub use self::continue_token::Continue;
pub use self::entrance::router;
pub use self::filter::Filter;
pub use self::handler::NotReceived;
pub use self::path::Target;
pub use self::query::decode as percent_decoded;
pub use self::query::{At, ListOptions};
pub use self::watch::Watches;

/// The largest body that is read, in bytes, as in Kubernetes.
pub const MAX_BODY: usize = 3 * 1024 * 1024;
