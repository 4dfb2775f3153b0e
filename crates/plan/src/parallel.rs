//! Work on many members, shared between the cores. What comes out does not depend on how many
//! there are: pieces come back in their order.
//!
//! Only reading gets faster by it. What one thread allocates and another frees costs more than
//! the other core gives: plans with thousands of actions were slower when two threads made them.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;

/// Fewer members than this for each core, and starting a thread costs more than it saves where
/// they are merely read.
pub(crate) const READ_MIN: usize = 2_500;

/// The same of members about whom much is made, as statuses and patches are.
pub(crate) const MADE_MIN: usize = 256;

/// What `work` makes of consecutive pieces of `items`, in order. There is at least one piece.
///
/// Where `items` are cut depends on the machine, so the caller puts the pieces together in a
/// way to which that makes no difference.
pub(crate) fn pieces<'i, T: Sync, R: Send>(
    items: &'i [T],
    work: impl Fn(&'i [T]) -> R + Sync,
) -> Vec<R> {
    let count = cores().min(items.len() / READ_MIN).max(1);
    let (first, rest) = items.split_at(items.len().div_ceil(count));
    if rest.is_empty() {
        return vec![work(first)];
    }
    let work = &work;
    thread::scope(|scope| {
        let others: Vec<_> =
            rest.chunks(first.len()).map(|piece| scope.spawn(move || work(piece))).collect();
        let mut done = vec![work(first)];
        for other in others {
            done.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    })
}

/// What `make` makes of each item, in order.
pub(crate) fn map<'i, T: Sync, R: Send>(
    items: &'i [T],
    make: impl Fn(&'i T) -> R + Sync,
) -> Vec<R> {
    let mut pieces = pieces(items, |piece| piece.iter().map(&make).collect::<Vec<R>>()).into_iter();
    let mut all = pieces.next().unwrap_or_default();
    for piece in pieces {
        all.extend(piece);
    }
    all
}

/// What two pieces of work make, done at the same time if it is worth it.
pub(crate) fn join<A: Send, B: Send>(
    is_worth_it: bool,
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    if cores() < 2 || !is_worth_it {
        return (one(), other());
    }
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        (one, other.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Asked once: the answer comes from files.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_items() {
        for length in [0, 1, READ_MIN, 2 * READ_MIN, 2 * READ_MIN + 1, 10_007] {
            let items: Vec<usize> = (0..length).collect();
            assert_eq!(
                map(&items, |item| item * 2),
                items.iter().map(|item| item * 2).collect::<Vec<_>>()
            );
            let sums = pieces(&items, |piece| piece.iter().sum::<usize>());
            assert_eq!(sums.iter().sum::<usize>(), items.iter().sum::<usize>(), "{length}");
        }
    }

    #[test]
    fn two_pieces_of_work_come_back_in_their_places() {
        for is_worth_it in [false, true] {
            assert_eq!(join(is_worth_it, || "one", || 2), ("one", 2));
        }
    }

    #[test]
    #[should_panic(expected = "item 9999")]
    fn a_panic_is_passed_on() {
        let items: Vec<usize> = (0..10_000).collect();
        map(&items, |item| assert_ne!(*item, 9_999, "item {item}"));
    }
}
