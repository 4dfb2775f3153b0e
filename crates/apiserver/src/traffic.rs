//! Limits on concurrent requests, and request timeouts.

use std::sync::Arc;
use std::time::Duration;

use convoy_api::text::GoDuration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::caller::{Caller, MASTERS};
use crate::limits::Limits;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::status::{ApiResult, Status};

/// The places that requests take. Watches take none, and administrators are never kept out.
#[derive(Debug)]
pub struct Traffic {
    reads: Semaphore,
    writes: Semaphore,
    long_lists: Arc<Semaphore>,
}

/// What is long: a few thousand pods.
const LONG_LIST_BYTES: usize = 8 << 20;

const READ_TIMEOUT: Duration = Duration::from_mins(1);
const WRITE_TIMEOUT: Duration = Duration::from_secs(34);

impl Traffic {
    pub fn new(limits: &Limits) -> Self {
        Self {
            reads: Semaphore::new(limits.reads_in_flight_max),
            writes: Semaphore::new(limits.writes_in_flight_max),
            long_lists: Arc::new(Semaphore::new(limits.long_lists_max)),
        }
    }

    /// Waits for a place among the long lists, if a list of so many bytes is one of them. It is
    /// given back when the list is sent.
    pub(crate) async fn list(&self, bytes: usize, caller: &Caller) -> Option<OwnedSemaphorePermit> {
        if bytes < LONG_LIST_BYTES || caller.is_in(MASTERS) {
            return None;
        }
        Arc::clone(&self.long_lists).acquire_owned().await.ok()
    }

    /// Takes a permit, or rejects the request with a retry after one second.
    pub(crate) fn enter(
        &self,
        info: &RequestInfo,
        caller: &Caller,
    ) -> ApiResult<Option<SemaphorePermit<'_>>> {
        if info.is_long_running() || caller.is_in(MASTERS) {
            return Ok(None);
        }
        let places = if mutates(info) { &self.writes } else { &self.reads };
        places
            .try_acquire()
            .map(Some)
            .map_err(|_| Status::too_many_requests("too many requests, please try again later", 1))
    }
}

pub(crate) fn mutates(info: &RequestInfo) -> bool {
    !info.verb.reads()
}

/// The timeout of a request; `None` for long-running requests.
pub(crate) fn timeout(info: &RequestInfo, query: &Query) -> ApiResult<Option<Duration>> {
    if info.is_long_running() {
        return Ok(None);
    }
    let longest = if mutates(info) { WRITE_TIMEOUT } else { READ_TIMEOUT };
    let Some(text) = query.get("timeout").filter(|text| !text.is_empty()) else {
        return Ok(Some(longest));
    };
    let asked: GoDuration = text.parse().map_err(|_| {
        let why = duration_error(text);
        Status::bad_request(format!("invalid timeout specified in the request URL - {why}"))
    })?;
    // Zero and less leave the time to the server.
    let asked = Duration::try_from(asked.signed()).ok().filter(|asked| !asked.is_zero());
    Ok(Some(asked.map_or(longest, |asked| asked.min(longest))))
}

/// Why Go does not read a text as a duration, in its words.
fn duration_error(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    while rest.starts_with(is_number) {
        let after = rest.trim_start_matches(is_number);
        let unit = &after[..after.find(is_number).unwrap_or(after.len())];
        if unit.is_empty() {
            return format!("time: missing unit in duration {text:?}");
        }
        if !["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&unit) {
            return format!("time: unknown unit {unit:?} in duration {text:?}");
        }
        rest = &after[unit.len()..];
    }
    format!("time: invalid duration {text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: &str, query: &str) -> RequestInfo {
        RequestInfo::read(method, "/api/v1/nodes", &Query::parse(query))
    }

    #[test]
    fn places_are_counted_apart_and_given_back() {
        let limits =
            Limits { reads_in_flight_max: 1, writes_in_flight_max: 1, ..Limits::default() };
        let traffic = Traffic::new(&limits);
        let somebody = Caller { name: "bob".into(), ..Caller::default() };
        let place = traffic.enter(&info("GET", ""), &somebody).unwrap();
        let refused = traffic.enter(&info("GET", ""), &somebody).unwrap_err();
        assert_eq!((refused.code, refused.details.retry_after_seconds), (429, 1));
        traffic.enter(&info("POST", ""), &somebody).unwrap();
        traffic.enter(&info("GET", "watch=1"), &somebody).unwrap();
        traffic.enter(&info("GET", ""), &Caller::server()).unwrap();
        drop(place);
        traffic.enter(&info("GET", ""), &somebody).unwrap();
    }

    #[tokio::test]
    async fn long_lists_wait_for_one_another() {
        let traffic = Traffic::new(&Limits { long_lists_max: 1, ..Limits::default() });
        let somebody = Caller { name: "bob".into(), ..Caller::default() };
        let place = traffic.list(LONG_LIST_BYTES, &somebody).await;
        assert!(place.is_some());
        assert!(traffic.list(LONG_LIST_BYTES - 1, &somebody).await.is_none(), "it is short");
        assert!(traffic.list(LONG_LIST_BYTES, &Caller::server()).await.is_none(), "never kept out");
        let mut next = std::pin::pin!(traffic.list(LONG_LIST_BYTES, &somebody));
        assert!(futures_util::poll!(&mut next).is_pending());
        drop(place);
        assert!(next.await.is_some());
    }

    #[test]
    fn clients_may_shorten_their_wait() {
        let of = |method, text| timeout(&info(method, text), &Query::parse(text)).unwrap();
        assert_eq!(of("GET", ""), Some(READ_TIMEOUT));
        assert_eq!(of("GET", "timeout=32s"), Some(Duration::from_secs(32)));
        assert_eq!(of("GET", "timeout=2h"), Some(READ_TIMEOUT));
        assert_eq!(of("GET", "timeout="), Some(READ_TIMEOUT));
        assert_eq!(of("GET", "timeout=0s"), Some(READ_TIMEOUT));
        assert_eq!(of("POST", ""), Some(WRITE_TIMEOUT));
        assert_eq!(of("GET", "watch=1&timeout=soon"), None);
    }

    #[test]
    fn a_timeout_that_is_no_duration_is_refused() {
        for (text, why) in [
            ("invalid", "time: invalid duration \"invalid\""),
            ("5", "time: missing unit in duration \"5\""),
            ("1h2d", "time: unknown unit \"d\" in duration \"1h2d\""),
            ("9999999999h", "time: invalid duration \"9999999999h\""),
        ] {
            let query = format!("timeout={text}");
            let refused = timeout(&info("GET", &query), &Query::parse(&query)).unwrap_err();
            let message = format!("invalid timeout specified in the request URL - {why}");
            assert_eq!((refused.code, refused.message), (400, message));
        }
    }
}
