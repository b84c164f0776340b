//! Decompression on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kreplay_parsers::fuzzing::check_input(data));
