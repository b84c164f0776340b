//! blkparse text in formats of the user's own.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kreplay_parsers::fuzzing::check_blkparse_format(data));
