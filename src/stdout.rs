//! Standard output: data only, and a reader that goes away is no error.

use crate::error::{CliError, Result};
use crate::exit::Exit;
use kreplay_reports::escape;
use std::io::{self, Write as _};
use std::path::Path;

/// Prints a text for people; what a name in it could do to a terminal becomes visible instead.
pub(crate) fn print(text: &str) -> Result<()> {
    print_raw(&escape::lines(text))
}

/// Prints what a renderer made for this terminal: names in it are safe already, and it may have colour.
pub(crate) fn print_rendered(text: &str) -> Result<()> {
    print_raw(text)
}

/// Prints a text as it is: scripts.
pub(crate) fn print_raw(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// Prints a rendered report of any kind: pictures are no text.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.map_err(|e| CliError::new(Exit::Output, format!("cannot write to standard output: {e}"))),
    }
}

/// A path in a JSON document: bytes that are no UTF-8 become U+FFFD.
pub(crate) fn json_path(path: &Path) -> serde_json::Value {
    path.to_string_lossy().into()
}

/// Prints a document as indented JSON.
pub(crate) fn print_json(document: &serde_json::Value) -> Result<()> {
    print_raw(&escape::json(&format!("{document:#}\n")))
}
