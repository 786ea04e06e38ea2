//! What can be seen from outside of how the server does: metrics, health and one record of each request.
//!
//! Nothing here decides anything or waits for anything. Times come from the injected clock, so under simulation all of it is a
//! function of the seed. Labels are taken from the table of kinds and from constants, never from what a client sent.

pub mod audit;
mod log;
mod metrics;
mod request;
mod scrape;
mod vitals;

pub use self::log::{LogFormat, start as start_log};
pub use self::metrics::{Metrics, Outcome};
pub use self::request::{Observation, ObservedBody, Origin, Seen};
pub use self::scrape::scrape;
pub use self::vitals::Vitals;
