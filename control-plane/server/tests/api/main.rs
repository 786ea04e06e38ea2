//! The API and the controllers together, in process: requests through the router, time by hand, no sockets and no sleeps.
//!
//! Every request is polled once and must be answered then; that is part of what is tested.

mod auditing;
mod binding;
mod daemonsets;
mod deployments;
mod endpoints;
mod expiry;
mod identity;
mod jobs;
mod leading;
mod lifecycle;
mod objects;
mod observing;
mod properties;
mod rbac;
mod rig;
mod scheduling;
mod tokens;
mod verbs;
mod watches;
