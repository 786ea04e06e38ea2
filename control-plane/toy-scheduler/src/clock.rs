//! The only place that reads the time or waits.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// The date, for what is written into events.
#[expect(clippy::disallowed_methods, reason = "this is the clock module")]
pub fn wall() -> Time {
    Time(Timestamp::now())
}

/// Lets some time pass before something is tried again.
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// `work`'s result, or nothing when it takes longer than `limit`.
pub async fn within<F: Future>(limit: Duration, work: F) -> Option<F::Output> {
    tokio::time::timeout(limit, work).await.ok()
}
