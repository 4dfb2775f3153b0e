//! Requests to the API server: bodies in JSON, YAML and protobuf.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| convoy_fuzz::server::body(bytes));
