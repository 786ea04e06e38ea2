//! The decisions, table by table and on a virtual clock; each test is named after the requirement that it shows.

mod daemonset;
mod deployment;
mod endpoints;
mod histories;
mod job;
mod job_histories;
mod ledger;
mod lifecycle;
mod outage;
mod ownership;
mod pod_garbage;
mod reports;
mod roster;
mod scheduling;
mod world;
