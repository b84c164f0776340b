//! What every parser promises on any bytes, as one function: fuzz targets call it on new inputs, a test on the kept ones.

use crate::diag::Diagnostics;
use crate::format::{Format, ParseOptions};
use crate::registry::FORMATS;
use crate::rows::Rows;

/// Check one input: byte 0 chooses the format, byte 1 the length of the chunks, the rest is the log.
///
/// # Panics
/// If the parser panics, if its counts do not add up, or if the rows depend on how the input is cut.
pub fn check_input(data: &[u8]) {
    let [format, chunk, text @ ..] = data else { return };
    let format = FORMATS[usize::from(*format) % FORMATS.len()];
    let chunk = usize::from(*chunk).max(1);
    let whole = parse(format, std::iter::once(text));
    let split = parse(format, text.chunks(chunk));
    assert!(whole.1.adds_up(), "{}: {:?}", format.id(), whole.1);
    assert_eq!(whole.0, split.0, "{}: rows depend on chunks of {chunk}", format.id());
    assert_eq!(format!("{:?}", whole.1), format!("{:?}", split.1), "{}", format.id());
}

fn parse<'a>(format: &dyn Format, chunks: impl Iterator<Item = &'a [u8]>) -> (Rows, Diagnostics) {
    let (mut rows, mut diag) = (Rows::default(), Diagnostics::new());
    let mut parser = format.parser(&ParseOptions::default());
    for chunk in chunks {
        parser.feed(chunk, &mut rows, &mut diag);
    }
    parser.finish(&mut rows, &mut diag);
    (rows, diag)
}
