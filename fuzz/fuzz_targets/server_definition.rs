//! Requests to the API server: definitions with any schema.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| convoy_fuzz::server::definition_schema(bytes));
