//! Detection on any bytes, and the parser of what is found.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kreplay_parsers::fuzzing::check_detect(data));
