//! Requests to the API server: patches of every type.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| convoy_fuzz::server::patch(bytes));
