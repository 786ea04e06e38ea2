//! Runs trials side by side and tells of each as it ends. One thread tells, whatever the number of workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// Runs `work` over `items` on `workers` threads; `done` hears each result as it comes, the result is in the
/// order of `items`.
pub fn dispatch<T: Sync, R: Send>(
    items: &[T],
    workers: usize,
    work: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(&T, &R),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        let (finished, results_come) = channel();
        for _ in 0..workers.clamp(1, items.len().max(1)) {
            let (finished, next, work) = (finished.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((index, item)) = take(next, items) {
                    if finished.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(finished);
        for (index, result) in results_come {
            done(&items[index], &result);
            results[index] = Some(result);
        }
    });
    results.into_iter().flatten().collect()
}

fn take<'a, T>(next: &AtomicUsize, items: &'a [T]) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    items.get(index).map(|item| (index, item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_and_told_once_in_any_number_of_workers() {
        let items: Vec<u32> = (0..50).collect();
        for workers in [0, 1, 2, 7, 100] {
            let mut told = Vec::new();
            let results =
                dispatch(&items, workers, |item| item * 2, |item, result| told.push((*item, *result)));
            assert_eq!(results, items.iter().map(|item| item * 2).collect::<Vec<_>>(), "{workers} workers");
            told.sort_unstable();
            assert_eq!(told, items.iter().map(|item| (*item, item * 2)).collect::<Vec<_>>());
        }
        assert!(dispatch(&[] as &[u32], 3, |item| *item, |_, _| {}).is_empty());
    }

    #[test]
    fn workers_work_side_by_side() {
        // Two items that wait for each other end only if both are being worked on.
        let meeting = std::sync::Barrier::new(2);
        let results = dispatch(&[1, 2], 2, |item| meeting.wait().is_leader() || *item > 0, |_, _| {});
        assert_eq!(results, [true, true]);
    }
}
