//! Compaction: what is older than some minutes is forgotten by etcd, as Kubernetes' API servers have it do.
//!
//! All control planes on an etcd, and Kubernetes' own, take turns by one key: each period exactly one of them wins it, notes
//! the revision of now, and compacts to the revision that was noted a period before. Who loses does nothing.

use std::sync::Arc;
use std::time::Duration;

use super::client::CallError;
use super::feed::Shared;
use super::proto::{self, Compare, TxnRequest, unsigned};
use crate::clock::pause;

/// Kubernetes' period.
const PERIOD: Duration = Duration::from_secs(5 * 60);
/// Kubernetes' key, outside of every prefix.
const KEY: &str = "compact_rev_key";

/// What a round of compaction leaves for the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// How often the key was written when last looked at.
    version: i64,
    /// The revision of then.
    noted: i64,
}

/// Compacts for ever.
pub async fn run(shared: Arc<Shared>) {
    let mut last = Compaction::default();
    loop {
        pause(PERIOD).await;
        match round(&shared, last).await {
            Ok(next) => last = next,
            Err(error) => tracing::warn!(%error, "etcd was not compacted"),
        }
    }
}

/// Takes the turn if nobody did since the last round.
pub async fn round(shared: &Shared, last: Compaction) -> Result<Compaction, CallError> {
    let now = shared.copy().table.revision();
    let request = TxnRequest {
        compare: vec![Compare::version(KEY, last.version)],
        success: vec![proto::put(KEY, now.to_string().into_bytes())],
        failure: vec![proto::read(KEY)],
    };
    let response = shared.client.txn(request).await?;
    let noted = proto::signed(response.revision());
    if !response.succeeded {
        return Ok(Compaction { version: response.found(0).map_or(0, |found| found.version), noted });
    }
    if last.noted > 0 {
        match shared.client.compact(last.noted).await {
            Ok(()) => tracing::info!(revision = unsigned(last.noted), "etcd was compacted"),
            // By somebody else, and further.
            Err(CallError::Compacted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Compaction { version: last.version + 1, noted })
}
