//! One format's parser on any bytes: the first byte chooses the format, the second where the input is cut.
#![no_main]

use kreplay_parsers::fuzzing::check_input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check_input(data));
