//! The memory of request bodies: what all of them may take at a time, and one user's share of it.
//!
//! A body is read before its request takes a place among those that work, so the number of these
//! places does not bound the bodies.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::caller::{Caller, MASTERS};
use crate::status::{ApiResult, Status};

/// The bodies that the server holds.
#[derive(Debug)]
pub(crate) struct Bodies {
    bytes_max: usize,
    held: Mutex<BodyBytes>,
}

#[derive(Debug, Default)]
struct BodyBytes {
    bytes: usize,
    by_user: HashMap<String, usize>,
}

/// What the body of one request takes, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBody<'b> {
    bodies: &'b Bodies,
    user: String,
    /// Administrators are never kept out.
    is_bounded: bool,
    bytes: usize,
}

/// What a request with a body takes besides its bytes: buffers of its connection, and itself.
const REQUEST_BYTES: usize = 16 << 10;

/// The part of all bodies that one user may have is one in so many.
const SHARES: usize = 4;

impl Bodies {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, held: Mutex::default() }
    }

    /// The place of a body of which nothing has been read yet.
    pub(crate) fn hold(&self, caller: &Caller) -> HeldBody<'_> {
        let is_bounded = !caller.is_in(MASTERS);
        HeldBody { bodies: self, user: caller.name.clone(), is_bounded, bytes: 0 }
    }
}

impl HeldBody<'_> {
    /// Counts the request before its body is read.
    pub(crate) fn begin(&mut self) -> ApiResult<()> {
        self.grow(REQUEST_BYTES)
    }

    /// Counts bytes that have arrived; refuses if all bodies, or those of the user, have too many.
    pub(crate) fn grow(&mut self, bytes: usize) -> ApiResult<()> {
        let most = self.bodies.bytes_max;
        let mut held = self.bodies.held.lock();
        let of_user = held.by_user.get(&self.user).copied().unwrap_or_default();
        let of_all = held.bytes;
        if self.is_bounded && (of_all + bytes > most || of_user + bytes > most / SHARES) {
            let message = format!(
                "too many requests, please try again later: request bodies take {of_all} of {most} \
                 bytes, those of this user {of_user} of {}",
                most / SHARES
            );
            return Err(Status::too_many_requests(message, 1));
        }
        held.bytes += bytes;
        match held.by_user.get_mut(&self.user) {
            Some(of_user) => *of_user += bytes,
            None => drop(held.by_user.insert(self.user.clone(), bytes)),
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for HeldBody<'_> {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut held = self.bodies.held.lock();
        held.bytes -= self.bytes;
        if let Some(of_user) = held.by_user.get_mut(&self.user) {
            *of_user -= self.bytes;
            if *of_user == 0 {
                held.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_share_and_gives_it_back() {
        let bodies = Bodies::new(4_000);
        let user = |name: &str| Caller { name: name.to_owned(), ..Caller::default() };
        let mut first = bodies.hold(&user("ann"));
        first.grow(900).unwrap();
        let mut second = bodies.hold(&user("ann"));
        let refused = second.grow(101).unwrap_err();
        assert_eq!(refused.code, 429);
        assert!(refused.message.contains("take 900 of 4000 bytes"), "{}", refused.message);
        bodies.hold(&user("bob")).grow(1_000).unwrap();
        drop(first);
        second.grow(1_000).unwrap();
        let others: Vec<_> = ["bob", "cat", "dan"]
            .map(|name| {
                let mut body = bodies.hold(&user(name));
                body.grow(1_000).map(|()| body)
            })
            .into_iter()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(bodies.hold(&user("eve")).grow(1).unwrap_err().code, 429, "all is taken");
        bodies.hold(&Caller::server()).grow(1_000).unwrap();
        drop((second, others));
        let held = bodies.held.lock();
        assert_eq!((held.bytes, held.by_user.len()), (0, 0));
    }
}
