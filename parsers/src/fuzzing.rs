//! What every parser promises on any bytes, as functions: fuzz targets call them on new inputs, tests on the kept ones.

use crate::diag::Diagnostics;
use crate::format::{Format, Head, ParseOptions};
use crate::registry::{by_id, detect};
use crate::rows::Rows;

/// `blkparse -f` strings of the target `blkparse_format`.
const BLKPARSE_FORMATS: [&str; 4] = [
    "%T.%t;%M;%m;%c;%a;%d;%S;%n;%p;%C\\n",
    "%D %2c %8s %5T.%9t %5p %2a %3d ",
    "%a|%d|%T.%t|%D|%c|%S|%N|%p|%C",
    "%T.%t %a %e %U",
];

/// Check one input of a format: the first byte is the length of the chunks, the rest is the log.
///
/// # Panics
/// If the parser panics, if its counts do not add up, if the rows depend on how the input is cut, or if there is no such
/// format.
pub fn check_format(id: &str, data: &[u8]) {
    let format = by_id(id).unwrap_or_else(|| panic!("no format {id}"));
    check_with(format, &ParseOptions::default(), data);
}

/// The same for blkparse text in a format of the user's, which the second byte chooses.
///
/// # Panics
/// As [`check_format`].
pub fn check_blkparse_format(data: &[u8]) {
    let [chunk, choice, text @ ..] = data else { return };
    let own = BLKPARSE_FORMATS[usize::from(*choice) % BLKPARSE_FORMATS.len()];
    let options = ParseOptions { blkparse_format: Some(own.into()), ..ParseOptions::default() };
    check_with(&crate::blkparse::Blkparse, &options, &[&[*chunk], text].concat());
}

/// Detection on any bytes, and whatever is detected.
///
/// # Panics
/// If a detector panics, or as [`check_format`] for the format that is found.
pub fn check_detect(data: &[u8]) {
    for complete in [false, true] {
        if let Ok(format) = detect(Head { bytes: data, complete }) {
            let (_, diag) = parse(format, &ParseOptions::default(), std::iter::once(data));
            assert!(diag.adds_up(), "{}: {diag:?}", format.id());
        }
    }
}

/// Decompression on any bytes: it ends, in an error or in a text within its limits.
///
/// # Panics
/// If it panics or gives more than its limit.
pub fn check_input(data: &[u8]) {
    use kreplay_traces::input::{Input, InputLimits};
    use std::io::Read;
    const LIMIT: u64 = 1 << 20;
    let limits = InputLimits { max_text_bytes: LIMIT, ..InputLimits::default() };
    let reader = Box::new(std::io::Cursor::new(data.to_vec()));
    let Ok(mut input) = Input::from_reader("fuzz", reader, limits) else { return };
    let mut total = 0;
    let mut buf = [0; 4096];
    while let Ok(n) = input.read(&mut buf) {
        total += n as u64;
        if n == 0 {
            break;
        }
    }
    assert!(total <= LIMIT + buf.len() as u64, "{total} bytes");
    let _ = input.finish();
}

fn check_with(format: &dyn Format, options: &ParseOptions, data: &[u8]) {
    let [chunk, text @ ..] = data else { return };
    let chunk = usize::from(*chunk).max(1);
    let whole = parse(format, options, std::iter::once(text));
    let split = parse(format, options, text.chunks(chunk));
    assert!(whole.1.adds_up(), "{}: {:?}", format.id(), whole.1);
    assert_eq!(whole.0, split.0, "{}: rows depend on chunks of {chunk}", format.id());
    assert_eq!(format!("{:?}", whole.1), format!("{:?}", split.1), "{}", format.id());
}

fn parse<'a>(
    format: &dyn Format,
    options: &ParseOptions,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> (Rows, Diagnostics) {
    let (mut rows, mut diag) = (Rows::default(), Diagnostics::new());
    let mut parser = format.parser(options);
    for chunk in chunks {
        parser.feed(chunk, &mut rows, &mut diag);
    }
    parser.finish(&mut rows, &mut diag);
    (rows, diag)
}
