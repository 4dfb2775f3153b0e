//! Requests to the API server: paths and selectors.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| convoy_fuzz::server::query(bytes));
