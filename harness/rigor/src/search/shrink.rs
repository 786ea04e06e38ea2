//! Makes a list smaller that makes something fail: delta debugging, with a bounded number of tries.
//!
//! Pure: whether a list still fails is asked of the caller. What is left cannot lose any one of its items, unless the tries ran out.

/// What is left of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shrunk<T> {
    /// The items that are needed, in their order.
    pub kept: Vec<T>,
    /// How often it was tried.
    pub tries: usize,
    /// Whether the tries ran out before it was known that none of the items can be left out.
    pub ran_out: bool,
}

/// Leaves out of `items`, which fail, as many as it can within `budget` tries; `fails` says whether what is left still does.
pub fn shrink<T: Clone>(items: &[T], budget: usize, mut fails: impl FnMut(&[T]) -> bool) -> Shrunk<T> {
    let mut kept = items.to_vec();
    let mut tries = 0;
    let mut parts = 2;
    while !kept.is_empty() {
        let size = kept.len().div_ceil(parts);
        let mut smaller = None;
        let mut start = 0;
        while start < kept.len() {
            if tries == budget {
                return Shrunk { kept, tries, ran_out: true };
            }
            let end = (start + size).min(kept.len());
            let rest: Vec<T> = kept[..start].iter().chain(&kept[end..]).cloned().collect();
            tries += 1;
            if fails(&rest) {
                smaller = Some(rest);
                break;
            }
            start = end;
        }
        match smaller {
            // What was just left out made no difference: go on with parts of the same size.
            Some(rest) => {
                kept = rest;
                parts = parts.saturating_sub(1).max(2);
            }
            None if size <= 1 => break,
            None => parts = (parts * 2).min(kept.len()),
        }
    }
    Shrunk { kept, tries, ran_out: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(items: u32, needed: &[u32]) -> Shrunk<u32> {
        let all: Vec<u32> = (0..items).collect();
        let shrunk = shrink(&all, 10_000, |rest| needed.iter().all(|one| rest.contains(one)));
        assert_eq!(shrunk.kept, needed, "of {items}");
        assert!(!shrunk.ran_out);
        shrunk
    }

    #[test]
    fn only_what_is_needed_is_left() {
        check(0, &[]);
        check(1, &[]);
        check(1, &[0]);
        check(2, &[1]);
        check(100, &[]);
        check(100, &[17]);
        check(100, &[0, 99]);
        check(1_000, &[3, 500, 501, 999]);
        check(7, &[0, 1, 2, 3, 4, 5, 6]);
        let shrunk = check(1_000, &[700]);
        assert!(shrunk.tries < 60, "{} tries for one of a thousand", shrunk.tries);
    }

    #[test]
    fn what_fails_only_together_is_left_as_one_that_cannot_lose_an_item() {
        // It fails with any three of them: some three are left.
        let all: Vec<u32> = (0..40).collect();
        let shrunk = shrink(&all, 10_000, |rest| rest.len() >= 3);
        assert_eq!(shrunk.kept.len(), 3);
    }

    #[test]
    fn it_stops_where_the_tries_run_out_with_what_still_fails() {
        let all: Vec<u32> = (0..100).collect();
        let mut asked = 0;
        let shrunk = shrink(&all, 5, |rest| {
            asked += 1;
            rest.contains(&17) && rest.contains(&90)
        });
        assert_eq!((asked, shrunk.tries, shrunk.ran_out), (5, 5, true));
        assert!(shrunk.kept.contains(&17) && shrunk.kept.contains(&90) && shrunk.kept.len() < 100);
    }
}
