//! Clients that send too much, too slowly, or nonsense, over real sockets: they are answered where an answer is possible, and
//! the server goes on for the others within bounded memory.

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod client;
mod crowds;
mod heads;
mod slow;
