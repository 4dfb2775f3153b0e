//! Objects of the known kinds, damaged, through `convoy validate`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((bag, _)) = convoy_fuzz::bag_of_objects(bytes) {
        std::hint::black_box(convoy_fuzz::validate(&bag));
    }
});
