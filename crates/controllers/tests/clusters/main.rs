//! One loop over a home cluster and its members, which are logical clusters of one server in this
//! process. The tests play the users of each.

#![expect(clippy::unwrap_used, reason = "a test stops where its own setup is wrong")]
#![expect(clippy::disallowed_methods, reason = "tests play users, who need no fence")]

mod copies;
mod spanning;
mod stage;
mod switch;
