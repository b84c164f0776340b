//! Detection on any bytes.
#![no_main]

use kreplay_parsers::format::Head;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for complete in [false, true] {
        let _ = kreplay_parsers::detect(Head { bytes: data, complete });
    }
});
