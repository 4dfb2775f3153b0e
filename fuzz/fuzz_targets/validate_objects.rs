//! Objects of the known kinds, damaged, through `convoy validate`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((manifests, _)) = convoy_fuzz::manifests_from_objects(bytes) {
        std::hint::black_box(convoy_fuzz::validate(&manifests));
    }
});
