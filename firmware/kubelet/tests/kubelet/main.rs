//! The kubelet against a fake API server on a virtual clock: deterministic, no sockets, no sleeping.

mod any_bytes;
mod api;
mod faults;
mod hang;
mod late;
mod node;
mod pods;
mod world;
