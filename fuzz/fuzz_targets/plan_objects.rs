//! Objects of the known kinds, damaged, through `convoy plan`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((manifests, now)) = convoy_fuzz::manifests_from_objects(bytes) {
        std::hint::black_box(convoy_fuzz::plan(manifests, now));
    }
});
