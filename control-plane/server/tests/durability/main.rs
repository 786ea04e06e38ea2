//! What the redb store keeps when the machine stops in the middle of a write, and what it does when the disk refuses.
//!
//! `RIGOR_CUT_POINTS` sets how many cuts are tried (10,000 take minutes), `RIGOR_CUT_SEED` with which histories.

mod cuts;
mod damage;
mod disk;
mod faults;

use std::path::Path;
use std::sync::Arc;

use control_plane::store::{Key, OpenError, RedbStore, Sizes};
use serde_json::{Value, json};

use disk::Disk;

/// Small enough that a history of some dozen writes is folded several times.
const SMALL: Sizes = Sizes { chunk: 16 * 1024, fold: 64 * 1024, most: 256 * 1024 };

fn open_sized(disk: &Disk, sizes: Sizes) -> Result<RedbStore, OpenError> {
    RedbStore::open_over(Path::new("store.redb"), usize::MAX, Arc::new(disk.clone()), sizes)
}

fn open(disk: &Disk) -> Result<RedbStore, OpenError> {
    open_sized(disk, SMALL)
}

fn pod(name: &str) -> Key {
    Key::new("pods", "default", name)
}

fn object(name: &str, filling: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "filling": filling})
}
