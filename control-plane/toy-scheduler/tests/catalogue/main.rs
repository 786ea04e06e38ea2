//! EXT, row by row: the second scheduler as a process, beside a control plane as a process, judged by what the API shows,
//! what the audit log holds and what the programs say. Nodes are objects alone.

#[path = "../binaries/mod.rs"]
mod binaries;
mod choosing;
mod cluster;
mod crowds;
mod kubectl;
mod races;
mod telling;
