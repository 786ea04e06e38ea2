//! A second scheduler: places the pods that name it (EXT-01 … EXT-10).
//!
//! `run` is the binary `toy-scheduler`, over sockets. `machine` makes the same decisions and requests without any I/O, for
//! callers that bring objects and carry requests themselves.

pub mod cli;
mod client;
mod clock;
pub mod cluster;
pub mod decide;
pub mod machine;
mod messages;
mod quantity;
mod requests;
pub mod run;
mod told;
