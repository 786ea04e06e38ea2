//! The judge at both edges of every kind of expectation, and what its failures say.

mod acts;
mod edges;
mod failures;
mod faults;
mod gaps;
mod instants;
mod looks;
mod messages;
mod monitors;
mod observed;
mod printed;
mod spans;
mod story;
