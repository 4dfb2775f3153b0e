//! Any bytes through the readers and `convoy plan`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let manifests = convoy_fuzz::manifests_from_bytes(bytes);
    let now = jiff::Timestamp::from_second(1_767_225_600).expect("within range");
    std::hint::black_box(convoy_fuzz::plan(manifests, now));
});
