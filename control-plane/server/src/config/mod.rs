//! What the flags say, as types that cannot be wrong: durations, controllers, admission plugins.
//!
//! Parsing here takes text and gives a value or a message with a remedy; it reads no environment and no file.

mod check;
mod choices;
mod etcd;
mod names;
mod settings;
mod values;

pub use control_plane_api::decode::Dialect;

pub(crate) use self::check::is_node_name;
pub(crate) use self::choices::choose;
pub use self::choices::{NamedProfile, SchedulerProfile, StoreKind, dialect};
pub use self::etcd::Etcd;
pub use self::names::{Admission, Controller, Controllers};
pub use self::settings::Config;
pub use self::values::{BadValue, address, duration};
pub use crate::leadership::Timing;
pub use crate::observe::LogFormat;
pub use crate::observe::audit::AuditLevel;
