//! The fuzz target `quantities`; what it does with its bytes stands in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| control_plane_fuzz::quantities(data));
