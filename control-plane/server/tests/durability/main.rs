//! What the redb store keeps when the machine stops in the middle of a write, and what it does when the disk refuses.
//!
//! `RIGOR_CUT_POINTS` sets how many cuts are tried (10,000 take minutes), `RIGOR_CUT_SEED` with which histories.

mod cuts;
mod disk;
mod faults;

use std::path::Path;

use control_plane::store::{Key, OpenError, RedbStore};
use serde_json::{Value, json};

use disk::Disk;

fn open(disk: &Disk) -> Result<RedbStore, OpenError> {
    let disk = disk.clone();
    RedbStore::open_over(Path::new("(a disk)"), usize::MAX, Box::new(move || Ok(Box::new(disk.clone()))))
}

fn pod(name: &str) -> Key {
    Key::new("pods", "default", name)
}

fn object(name: &str, filling: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "filling": filling})
}
