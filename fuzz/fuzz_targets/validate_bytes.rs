//! Any bytes through the readers and `convoy validate`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let manifests = convoy_fuzz::manifests_from_bytes(bytes);
    std::hint::black_box(convoy_fuzz::validate(&manifests));
});
