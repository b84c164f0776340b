//! The formats, and detection by content.

use crate::format::{Format, Head, ParseOptions, Score};

/// All formats, in the order in which `kreplay formats` lists them. A new format is a file and a line here.
pub static FORMATS: &[&dyn Format] = &[
    &crate::strace::Strace,
    &crate::strace_summary::StraceSummary,
    &crate::vmstat::Vmstat,
    &crate::vmstat_totals::VmstatTotals,
    &crate::blktrace::Blktrace,
    &crate::btrecord::Btrecord,
    &crate::blkparse::Blkparse,
    &crate::ftrace::Ftrace,
    &crate::biosnoop::Biosnoop,
    &crate::btt::Btt,
    &crate::layout::Layout,
    &crate::fio::FioIolog,
    &crate::msr::MSR,
    &crate::spc::SPC,
    &crate::alibaba::ALIBABA,
    &crate::tencent::TENCENT,
    &crate::cloudphysics::CLOUDPHYSICS_CSV,
    &crate::fiu::FIU,
    &crate::mqsim::MQSIM,
    &crate::disksim::DISKSIM,
    &crate::cloudphysics::VscsiV1,
    &crate::cloudphysics::VscsiV2,
    &crate::oracle_general::OracleGeneral,
];

/// Texts that are known to be something else, and refused by name.
pub static REFUSED: &[&dyn Format] = &[
    &crate::foreign::BSD_VMSTAT,
    &crate::foreign::AIX_VMSTAT,
    &crate::foreign::SOLARIS_VMSTAT,
    &crate::foreign::PROC_VMSTAT,
    &crate::foreign::IOSTAT,
    &crate::foreign::LTRACE,
    &crate::foreign::SYSTEMTAP,
    &crate::foreign::GVISOR,
    &crate::foreign::TRUSS,
    &crate::foreign::PERF_TRACE,
    &crate::foreign::BIO_SUMMARY,
    &crate::foreign::BPFTRACE_BIOSNOOP,
    &crate::foreign::TRACE_DAT,
    &crate::foreign::PERF_DATA,
    &crate::foreign::PARQUET,
    &crate::foreign::PACKED,
];

/// Lowest score with which a format is taken without being asked for: one line in ten understood (logs are quoted in
/// mails and notes, and mixed with other output).
pub const LEAST_SCORE: Score = 10;

/// The format of this name, or `None`.
pub fn by_id(id: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|f| f.id() == id)
}

/// Why no format was chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DetectError {
    /// Nothing in it.
    #[error("the file is empty")]
    Empty,
    /// No format understands enough of it.
    #[error("no known log format ({}); name one with --format", scores(.0))]
    Unknown(Vec<(&'static str, Score)>),
    /// Two formats understand it equally well.
    #[error("the format is ambiguous ({}); name one with --format", scores(.0))]
    Ambiguous(Vec<(&'static str, Score)>),
    /// The `blkparse -f` string that was given fits no line.
    #[error(
        "the given --blkparse-format fits none of the first lines; the first is {line:?}{}",
        column.map_or_else(String::new, |c| format!(" and differs at column {c}"))
    )]
    FormatFitsNothing {
        /// The first line that is not blank, shortened.
        line: String,
        /// 1-based column where it differs.
        column: Option<i64>,
    },
    /// A look-alike that is known, but not read.
    #[error("this is {format}: {why}")]
    Refused {
        /// What it is.
        format: &'static str,
        /// Why it is not read, and what to do instead.
        why: &'static str,
    },
}

fn scores(list: &[(&'static str, Score)]) -> String {
    if list.is_empty() {
        return "no line fits any".into();
    }
    let parts: Vec<String> = list.iter().map(|(id, s)| format!("{id} fits {s} %")).collect();
    parts.join(", ")
}

/// As [`detect`], with what the user says: text that a given `blkparse -f` string understands is blkparse's.
///
/// # Errors
/// As [`detect`].
pub fn detect_with(head: Head<'_>, options: &ParseOptions) -> Result<&'static dyn Format, DetectError> {
    if options.blkparse_format.is_some() && !head.bytes.is_empty() {
        let blkparse: &'static dyn Format = &crate::blkparse::Blkparse;
        if blkparse.sniff_with(head, options) >= LEAST_SCORE {
            return Ok(blkparse);
        }
        // Of several inputs only one may be the text that the string is for.
        return detect(head).map_err(|why| match why {
            DetectError::Unknown(_) | DetectError::Ambiguous(_) => no_line_fits(head, options),
            other => other,
        });
    }
    detect(head)
}

/// Where the first line differs from the format string that was given.
fn no_line_fits(head: Head<'_>, options: &ParseOptions) -> DetectError {
    let first = head.bytes.split(|b| *b == b'\n').find(|l| !l.trim_ascii().is_empty()).unwrap_or_default();
    let (rows, _) = crate::parse_all(&crate::blkparse::Blkparse, options, first);
    let mut line = String::new();
    crate::num::push_text(&mut line, &first[..first.len().min(80)]);
    DetectError::FormatFitsNothing { line, column: rows.rejects.first().and_then(|r| r.column) }
}

/// Choose the format that understands most of the head.
///
/// # Errors
/// [`DetectError`] when the head is empty, when no format reaches [`LEAST_SCORE`], when the runner-up has more than half
/// of the best one's score, or when the text is known and refused.
pub fn detect(head: Head<'_>) -> Result<&'static dyn Format, DetectError> {
    if head.bytes.is_empty() {
        return Err(DetectError::Empty);
    }
    if let Some(refused) = REFUSED.iter().find(|f| f.sniff(head) > 0) {
        let why = refused.refusal().unwrap_or_default();
        return Err(DetectError::Refused { format: refused.about(), why });
    }
    let mut list: Vec<(&'static dyn Format, Score)> = FORMATS.iter().map(|f| (*f, f.sniff(head))).collect();
    list.retain(|(_, score)| *score > 0);
    list.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    let named: Vec<(&'static str, Score)> = list.iter().map(|(f, s)| (f.id(), *s)).collect();
    match &list[..] {
        [(best, score), ..] if *score >= LEAST_SCORE => match list.get(1) {
            Some((_, second)) if *second > *score / 2 => Err(DetectError::Ambiguous(named)),
            _ => Ok(*best),
        },
        _ => Err(DetectError::Unknown(named)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(text: &str) -> Result<&'static str, DetectError> {
        detect(Head { bytes: text.as_bytes(), complete: true }).map(|f| f.id())
    }

    #[test]
    fn each_format_is_known_by_its_lines() {
        assert_eq!(detected("7 1.5 read(3, \"\", 5) = 5\n"), Ok("strace"));
        assert_eq!(detected("  8,0 1 1 0.000000001 9 Q R 64 + 8 [x]\n"), Ok("blkparse"));
        assert_eq!(
            detected(" r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa\n"),
            Ok("vmstat")
        );
    }

    #[test]
    fn the_error_lists_what_was_tried() {
        assert_eq!(detected(""), Err(DetectError::Empty));
        let error = detected("Dear all,\nhello\n").unwrap_err();
        assert_eq!(error.to_string(), "no known log format (no line fits any); name one with --format");
        let mixed = "7 1.5 read(3, \"\", 5) = 5\n  8,0 1 1 0.000000001 9 Q R 64 + 8 [x]\n";
        assert_eq!(detected(mixed), Err(DetectError::Ambiguous(vec![("strace", 50), ("blkparse", 50)])));
    }

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<_> = FORMATS.iter().chain(REFUSED).map(|f| f.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), FORMATS.len() + REFUSED.len());
        assert!(by_id("strace").is_some() && by_id("no-such").is_none());
    }
}
