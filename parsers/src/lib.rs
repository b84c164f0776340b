//! kreplay-parsers: log files in, event rows and diagnostics out.
//!
//! One file (or folder) a format, each an entry of [`registry::FORMATS`]. A parser is fed chunks of bytes and calls an
//! [`kreplay_traces::event::EventSink`]; it does no input or output itself and cannot fail. [`ingest`] is the driver
//! that finds inputs, detects their formats and pumps them into a trace directory.

pub mod alibaba;
pub mod biosnoop;
pub mod blkformat;
pub mod blkparse;
pub mod blktrace;
pub mod btrecord;
pub mod btt;
mod carry;
pub mod cloudphysics;
pub mod corpus;
pub mod csv;
pub mod diag;
pub mod disksim;
pub mod export;
pub mod fio;
pub mod fiu;
mod fixed;
pub mod foreign;
pub mod format;
pub mod ftrace;
pub mod fuzzing;
pub mod ingest;
mod kept;
pub mod known;
pub mod layout;
pub mod lines;
pub mod mqsim;
pub mod msr;
pub mod num;
pub mod options;
pub mod oracle_general;
mod quoted_printable;
pub mod registry;
pub mod rows;
pub mod spc;
pub mod strace;
pub mod strace_summary;
pub mod survey;
pub mod tencent;
mod utf16;
pub mod vmstat;
pub mod vmstat_totals;
pub mod watched;

pub use diag::{Diagnostics, Outcome, Reason};
pub use format::{Format, Head, ParseOptions, Parser};
pub use registry::{DetectError, FORMATS, by_id, detect};

/// Parse a whole text in memory: for small inputs and tests.
pub fn parse_all(format: &dyn Format, options: &ParseOptions, text: &[u8]) -> (rows::Rows, Diagnostics) {
    let (mut rows, mut diag) = (rows::Rows::default(), Diagnostics::new());
    let mut parser = format.parser(options);
    parser.feed(text, &mut rows, &mut diag);
    parser.finish(&mut rows, &mut diag);
    (rows, diag)
}
