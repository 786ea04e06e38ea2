//! Medians and other parts of many figures.

use std::time::Duration;

/// `spans`, shortest first.
#[must_use]
pub fn sorted(mut spans: Vec<Duration>) -> Vec<Duration> {
    spans.sort_unstable();
    spans
}

/// The span below which this many thousandths of the sorted ones lie.
#[must_use]
pub fn part(spans: &[Duration], thousandths: usize) -> Duration {
    spans
        .get((spans.len() * thousandths / 1000).min(spans.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

/// The median of some figures; 0 of none.
#[must_use]
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// A span in milliseconds.
#[must_use]
pub fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
