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

/// Compacts for ever.
pub async fn run(shared: Arc<Shared>) {
    // How often the key was written when last looked at, and the revision of then.
    let (mut turn, mut noted) = (0, 0);
    loop {
        pause(PERIOD).await;
        match round(&shared, turn, noted).await {
            Ok(next) => (turn, noted) = next,
            Err(error) => tracing::warn!(%error, "etcd was not compacted"),
        }
    }
}

/// Takes the turn if nobody did since the last round. Answers what the next round begins with.
async fn round(shared: &Shared, turn: i64, noted: i64) -> Result<(i64, i64), CallError> {
    let now = shared.copy().table.revision();
    let request = TxnRequest {
        compare: vec![Compare::version(KEY, turn)],
        success: vec![proto::put(KEY, now.to_string().into_bytes())],
        failure: vec![proto::read(KEY)],
    };
    let response = shared.client.txn(request).await?;
    let newest = proto::signed(response.revision());
    if !response.succeeded {
        let version = response.found(0).map_or(0, |found| found.version);
        return Ok((version, newest));
    }
    if noted > 0 {
        match shared.client.compact(noted).await {
            Ok(()) => tracing::info!(revision = unsigned(noted), "etcd was compacted"),
            // By somebody else, and further.
            Err(CallError::Compacted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((turn + 1, newest))
}
