//! A linearizability check for histories of one counter, for concurrency tests.

/// One read, or one successful compare-and-swap, as its client observed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub is_write: bool,
    /// Just before the request and just after the response, by a clock that all clients share.
    pub begun: u64,
    pub ended: u64,
    /// The version that was read or written.
    pub revision: u64,
    /// The value of the counter: every write adds one.
    pub value: u64,
}

/// Returns an error for a history that is not linearizable: no order of its operations exists in
/// which each takes effect between its start and its end.
///
/// Versions give the order of the writes, so three conditions suffice: (1) each write adds one to
/// the previous value, (2) reads return a written value, and (3) an operation that started after
/// another had ended observes it.
pub fn check_linearizable(history: &[Operation]) -> Result<(), String> {
    let mut writes: Vec<&Operation> = history.iter().filter(|one| one.is_write).collect();
    writes.sort_by_key(|write| write.revision);
    for pair in writes.windows(2) {
        if pair[0].revision == pair[1].revision || pair[0].value + 1 != pair[1].value {
            return Err(format!("a write was lost or made twice: {:?} {:?}", pair[0], pair[1]));
        }
    }
    for read in history.iter().filter(|one| !one.is_write) {
        let at = writes.binary_search_by_key(&read.revision, |write| write.revision);
        let written = at.ok().map(|at| writes[at]);
        if written.is_none_or(|write| write.value != read.value || write.begun > read.ended) {
            return Err(format!("read what was not written yet: {read:?}"));
        }
    }
    in_time(history)
}

fn in_time(history: &[Operation]) -> Result<(), String> {
    let mut by_end: Vec<&Operation> = history.iter().collect();
    by_end.sort_by_key(|operation| operation.ended);
    let mut by_begin = by_end.clone();
    by_begin.sort_by_key(|operation| operation.begun);
    let mut ended = by_end.into_iter().peekable();
    let mut newest: Option<&Operation> = None;
    for operation in by_begin {
        while let Some(before) = ended.next_if(|before| before.ended < operation.begun) {
            if newest.is_none_or(|newest| newest.revision <= before.revision) {
                newest = Some(before);
            }
        }
        let Some(known) = newest else { continue };
        let is_late = if operation.is_write {
            operation.revision <= known.revision
        } else {
            operation.revision < known.revision
        };
        if is_late {
            return Err(format!("{operation:?} does not know of {known:?}, which had ended"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(is_write: bool, times: (u64, u64), revision: u64, value: u64) -> Operation {
        Operation { is_write, begun: times.0, ended: times.1, revision, value }
    }

    #[test]
    fn histories_that_an_order_explains_pass() {
        let history = [
            operation(true, (0, 5), 10, 1),
            operation(false, (1, 2), 10, 1), // while it is being written
            operation(true, (3, 9), 12, 2),
            operation(false, (4, 8), 10, 1), // may come before the second write
            operation(false, (10, 11), 12, 2),
        ];
        assert_eq!(check_linearizable(&history), Ok(()));
    }

    #[test]
    fn every_way_of_going_wrong_is_found() {
        let first = operation(true, (0, 1), 10, 1);
        let second = operation(true, (2, 3), 12, 2);
        let wrong: [(&str, Vec<Operation>); 6] = [
            ("lost", vec![first, operation(true, (2, 3), 12, 1)]),
            ("twice", vec![first, operation(true, (2, 3), 10, 2)]),
            ("not written", vec![first, operation(false, (2, 3), 11, 1)]),
            ("before its time", vec![first, second, operation(false, (0, 1), 12, 2)]),
            ("stale", vec![first, second, operation(false, (4, 5), 10, 1)]),
            ("order of writes", vec![operation(true, (4, 5), 10, 1), second]),
        ];
        for (case, history) in wrong {
            assert!(check_linearizable(&history).is_err(), "{case}");
        }
    }
}
