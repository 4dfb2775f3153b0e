//! Any bytes through the readers and `convoy validate`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let bag = convoy_fuzz::bag_of_bytes(bytes);
    std::hint::black_box(convoy_fuzz::validate(&bag));
});
