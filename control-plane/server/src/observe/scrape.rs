//! `/metrics`: what is only known by looking is set, and everything is written in Prometheus' text format 0.0.4.

use prometheus::{Encoder, TextEncoder};

use super::Metrics;
use crate::service::Service;

/// The text, and its media type.
///
/// # Errors
/// When the encoder fails, which it does for metrics without a name only.
pub fn scrape(service: &Service) -> Result<(String, String), prometheus::Error> {
    look(service, &service.metrics);
    let encoder = TextEncoder::new();
    let text = encoder.encode_to_string(&service.metrics.registry.gather())?;
    Ok((text, encoder.format_type().to_owned()))
}

fn look(service: &Service, metrics: &Metrics) {
    let reflector = service.fresh();
    for kind in control_plane_api::kinds::all().iter().filter(|kind| kind.is_stored()) {
        // One storage is counted once, under the name that Kubernetes gives it.
        if control_plane_api::kinds::by_resource(kind.resource) == Some(kind) {
            let count = reflector.snapshot().list(kind.resource).count();
            metrics.objects.with_label_values(&[&kind.qualified_resource()]).set(whole(count as u64));
        }
    }
    drop(reflector);
    metrics.revision.set(whole(service.store.revision()));
    let figures = service.store.figures();
    metrics.history.set(whole(figures.history));
    metrics.commits.set(whole(figures.commits));
    metrics.committed_writes.set(whole(figures.committed_writes));
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
