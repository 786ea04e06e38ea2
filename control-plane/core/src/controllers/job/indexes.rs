//! Sets of completion indexes, as `status.completedIndexes` has them: `0-2,5`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::json;

/// Label and annotation of an Indexed Job's pods.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The index of a pod, if it has one below `completions`.
pub(super) fn of(pod: &Value, completions: usize) -> Option<usize> {
    let index = json::text(pod, &["metadata", "annotations", INDEX])?.parse().ok()?;
    (index < completions).then_some(index)
}

/// Reads a set; what is not below `completions` is left out, and so is what cannot be read.
pub(super) fn parse(text: &str, completions: usize) -> BTreeSet<usize> {
    let ranges = text.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(first..completions.min(last.checked_add(1)?))
    });
    ranges.flatten().collect()
}

/// Writes a set: runs of three and more as `first-last`, of two as Kubernetes does, with a comma.
pub(super) fn format(indexes: &BTreeSet<usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for index in indexes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            Some(_) | None => runs.push((*index, *index)),
        }
    }
    let runs = runs.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_kubernetes_writes_them() {
        for (indexes, text) in [
            (vec![], ""),
            (vec![0], "0"),
            (vec![0, 1], "0,1"),
            (vec![0, 1, 2], "0-2"),
            (vec![1, 3, 4, 6, 7, 8, 10], "1,3,4,6-8,10"),
        ] {
            let indexes: BTreeSet<usize> = indexes.into_iter().collect();
            assert_eq!(format(&indexes), text);
            assert_eq!(parse(text, 20), indexes);
        }
        assert_eq!(parse("0-2,x,5-4,7-9", 8), BTreeSet::from([0, 1, 2, 7]));
        assert_eq!(parse(&format!("0-{}", usize::MAX), 2), BTreeSet::new());
    }
}
