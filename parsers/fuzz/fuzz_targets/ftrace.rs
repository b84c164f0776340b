//! Format `ftrace` on any bytes; the first is the length of the chunks.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kreplay_parsers::fuzzing::check_format("ftrace", data));
