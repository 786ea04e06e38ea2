//! Runs trials side by side and tells of each as it ends. One thread tells, whatever the number of workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

/// What the telling thread hears.
enum Event<R> {
    Ended(usize, R),
    Stopped,
}

/// Stops a dispatch.
pub struct Stop<R>(Sender<Event<R>>);

impl<R> Stop<R> {
    /// No further item is begun from now on.
    pub fn now(&self) {
        // Where nobody hears it, it has ended already.
        let _ = self.0.send(Event::Stopped);
    }
}

/// Runs `work` over `items` on `workers` threads; `done` hears each result as it comes, the result is in the
/// order of `items`.
pub fn dispatch<T: Sync, R: Send>(
    items: &[T],
    workers: usize,
    work: impl Fn(&T) -> R + Sync,
    done: impl FnMut(&T, &R),
) -> Vec<R> {
    dispatch_until(items, workers, work, done, |_| {}, |_| {})
}

/// The same, until it is stopped: `began` gets what stops it, and `stopped` then the results so far, each at its item's place.
/// What is being worked on is worked on to its end; of what was not begun there is no result.
pub fn dispatch_until<T: Sync, R: Send>(
    items: &[T],
    workers: usize,
    work: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(&T, &R),
    began: impl FnOnce(Stop<R>),
    mut stopped: impl FnMut(&[Option<R>]),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        let (tell, events) = channel();
        began(Stop(tell.clone()));
        for _ in 0..workers.clamp(1, items.len().max(1)) {
            let (tell, next, work) = (tell.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((index, item)) = take(next, items) {
                    if tell.send(Event::Ended(index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        let (mut begun, mut ended) = (items.len(), 0);
        while ended < begun {
            match events.recv() {
                Ok(Event::Ended(index, result)) => {
                    done(&items[index], &result);
                    results[index] = Some(result);
                    ended += 1;
                }
                Ok(Event::Stopped) => {
                    begun = begun.min(next.fetch_max(items.len(), Ordering::Relaxed));
                    stopped(&results);
                }
                Err(_) => break,
            }
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

    #[test]
    fn nothing_is_begun_after_a_stop_and_what_ended_is_told() {
        // The second item asks for the stop while it is worked on, and waits until that was heard.
        let (stop, heard) = (std::sync::Mutex::new(None), std::sync::Barrier::new(2));
        let mut told = Vec::new();
        let results = dispatch_until(
            &[1, 2, 3, 4],
            1,
            |item| {
                if *item == 2 {
                    let stop: Option<Stop<i32>> = stop.lock().unwrap().take();
                    stop.unwrap().now();
                    heard.wait();
                }
                item * 10
            },
            |_, _| {},
            |given| *stop.lock().unwrap() = Some(given),
            |so_far| {
                told.push(so_far.to_vec());
                heard.wait();
            },
        );
        assert_eq!(told, [[Some(10), None, None, None]]);
        assert_eq!(results, [10, 20]);
    }
}
