//! The catalogue, row by row, against the binary as a process: what a client sees over the wire, and nothing else.
//!
//! Each test names the requirement ids that it shows. Foreign tools (kubectl, openssl, etcd) are used where a row names
//! them; where one is missing the test says so and is skipped.

mod bad_input;
mod binding;
mod bookkeeping;
mod client;
mod clients;
mod durability;
mod etcd;
mod evasion;
mod ghost;
mod identity;
mod join;
#[path = "../support/kubectl.rs"]
mod kubectl;
mod manager_requests;
mod manager_workloads;
mod minting;
mod node_authorisation;
mod observable;
mod plane;
mod protobuf;
mod reviews;
mod scheduler_requests;
mod upstream_profile;
mod verbs;
