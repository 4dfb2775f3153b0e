//! The built binary from outside: what it reads, decides, prints and exits with.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod binary;
mod compare;
mod completion;
mod crds;
mod daily;
mod dialects;
mod examples;
mod generated;
mod help;
mod hostile;
mod input;
mod migrate;
mod simulate;
mod validate;
mod vectors;
mod why;
mod words;
