//! What the block traces with one request a line have in common, whether commas or blanks separate the fields.

use std::marker::PhantomData;

use kreplay_traces::event::{BlockRow, EventSink};
use kreplay_traces::units::SECTOR_BYTES;

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::lines::{Line, LineParser, Lines};

/// Most fields of a line that are looked at.
pub(crate) const MAX_FIELDS: usize = 10;

/// A line's fields, without the blanks around them.
pub(crate) type Fields<'a> = [&'a [u8]; MAX_FIELDS];

/// One request of a trace that knows only requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) time_ns: i64,
    pub(crate) dev: Option<i64>,
    pub(crate) rwbs: &'static str,
    pub(crate) offset_bytes: i64,
    pub(crate) len_bytes: i64,
    /// Service time, where the trace has one: gives a completion. A negative one is a fault of the recorder's clock.
    pub(crate) latency_ns: Option<i64>,
    pub(crate) pid: Option<i64>,
    pub(crate) comm: Option<&'a str>,
}

/// A block trace with one request a line.
pub(crate) trait CsvFormat: Default + Send + 'static {
    /// Name on the command line.
    const ID: &'static str;
    /// One line for `kreplay formats`.
    const ABOUT: &'static str;
    /// Fields are separated by blanks instead of commas.
    const BLANKS: bool = false;
    /// Fields that a line must have at least.
    const FIELDS: usize;
    /// Why a line is no request.
    const BAD: &'static Reason;
    /// What the time stamps count from: `epoch`, or `trace` for an own beginning.
    const CLOCK: &'static str;
    /// A header line.
    fn is_header(&self, _line: &[u8]) -> bool {
        false
    }
    /// Read the fields; the index of the field that is wrong otherwise.
    fn request<'a>(&mut self, fields: &Fields<'a>) -> Result<Request<'a>, usize>;
    /// What is to be said at the end.
    fn remark(&self, _diag: &mut Diagnostics) {}
}

/// The [`Format`] of a trace with one request a line.
pub struct CsvTrace<F>(PhantomData<fn() -> F>);

impl<F> CsvTrace<F> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<F: CsvFormat> Format for CsvTrace<F> {
    fn id(&self) -> &'static str {
        F::ID
    }

    fn about(&self) -> &'static str {
        F::ABOUT
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        score_lines(CsvLines::new(F::default()), head)
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(CsvLines::new(F::default())))
    }
}

/// Line parser of a [`CsvFormat`].
pub(crate) struct CsvLines<F> {
    format: F,
    span: Span,
}

impl<F> CsvLines<F> {
    pub(crate) fn new(format: F) -> Self {
        Self { format, span: Span::default() }
    }
}

impl<F: CsvFormat> LineParser for CsvLines<F> {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let bytes = line.bytes.trim_ascii();
        if bytes.is_empty() {
            return Outcome::Note("blank");
        }
        if self.format.is_header(bytes) {
            return Outcome::Note("header");
        }
        let mut fields: Fields<'_> = [b""; MAX_FIELDS];
        let mut count = 0;
        if F::BLANKS {
            for (place, field) in fields.iter_mut().zip(crate::num::Fields::new(bytes)) {
                *place = field;
                count += 1;
            }
        } else {
            for (place, field) in fields.iter_mut().zip(bytes.split(|b| *b == b',')) {
                *place = field.trim_ascii();
                count += 1;
            }
        }
        if count < F::FIELDS {
            return Outcome::Reject(F::BAD, None);
        }
        let start = line.bytes.len() - line.bytes.trim_ascii_start().len();
        match self.format.request(&fields) {
            Ok(request) => {
                self.span.take(&request, line.number, out, diag);
                Outcome::Event
            }
            Err(index) => {
                let before = if F::BLANKS {
                    let mut words = crate::num::Fields::new(bytes);
                    words.by_ref().take(index).for_each(drop);
                    words.position()
                } else {
                    bytes.split(|b| *b == b',').take(index).map(|f| f.len() + 1).sum()
                };
                Outcome::Reject(F::BAD, Some(start + before))
            }
        }
    }

    fn end(&mut self, _: &mut dyn EventSink, diag: &mut Diagnostics) {
        diag.option("clock", F::CLOCK);
        if F::CLOCK == "epoch" {
            self.span.report_epoch(diag);
        }
        self.span.report(diag);
        self.format.remark(diag);
    }
}

/// A mean year, nanoseconds.
const YEAR_NS: i64 = 31_556_952 * 1_000_000_000;
/// When a block trace can have been recorded.
const BELIEVED_YEARS: std::ops::RangeInclusive<i64> = 1990..=2100;

/// Emits requests and watches whether their units can be right.
#[derive(Debug, Default)]
pub(crate) struct Span {
    first_ns: Option<i64>,
    last_ns: i64,
    requests: u64,
}

impl Span {
    /// Emit a request as its arrival (Q) and, where the trace knows it, its completion (C).
    pub(crate) fn take(&mut self, r: &Request<'_>, line: i64, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        self.seen(r.time_ns, line, diag);
        let sector_bytes = SECTOR_BYTES as i64;
        if r.offset_bytes % sector_bytes != 0 || r.len_bytes % sector_bytes != 0 {
            diag.warn("not-sector-aligned", Some(line), || {
                "offsets or lengths are no multiples of 512 bytes; requests begin at the sector that holds their first byte"
                    .into()
            });
        }
        let row = BlockRow {
            time_ns: r.time_ns,
            dev: r.dev,
            action: "Q",
            rwbs: r.rwbs,
            sector_512: Some(r.offset_bytes / sector_bytes),
            len_bytes: Some(r.len_bytes),
            pid: r.pid,
            comm: r.comm,
            line,
            ..BlockRow::default()
        };
        out.block(&row);
        if let Some(latency) = r.latency_ns.filter(|l| *l < 0) {
            diag.warn("negative-latency", Some(line), || {
                format!("a request ends {} ns before it begins: its latency is not known", latency.unsigned_abs())
            });
        } else if let Some(latency) = r.latency_ns {
            out.block(&BlockRow {
                time_ns: r.time_ns.saturating_add(latency),
                action: "C",
                comm: None,
                error: Some(0),
                ..row
            });
        }
    }

    /// A request of this time passes.
    pub(crate) fn seen(&mut self, time_ns: i64, line: i64, diag: &mut Diagnostics) {
        if self.first_ns.is_some() && time_ns < self.last_ns {
            let step = self.last_ns.abs_diff(time_ns);
            diag.warn("time-backwards", Some(line), || {
                format!("a request is {step} ns earlier than the one before it")
            });
        }
        self.first_ns = Some(self.first_ns.map_or(time_ns, |f| f.min(time_ns)));
        self.last_ns = time_ns;
        self.requests += 1;
    }

    /// Say when the trace was recorded, for one whose clock counts from 1970, if that is hard to believe: stamps in
    /// another unit than the format's land in the year 1970, or far ahead.
    pub(crate) fn report_epoch(&self, diag: &mut Diagnostics) {
        let Some(first) = self.first_ns else { return };
        let year = 1970 + first.div_euclid(YEAR_NS);
        if !BELIEVED_YEARS.contains(&year) {
            diag.warn("unit-suspect", None, || {
                format!("the first request is of the year {year}: is the unit of its time right?")
            });
        }
    }

    /// Say how long the trace is if that is hard to believe.
    pub(crate) fn report(&self, diag: &mut Diagnostics) {
        let Some(first) = self.first_ns else { return };
        let span_ns = self.last_ns.saturating_sub(first);
        let per_request_ns = span_ns / (self.requests.max(2) as i64 - 1);
        if self.requests >= 100 && per_request_ns > 5_000_000_000 {
            let (hours, requests) = (span_ns as f64 / 3.6e12, self.requests);
            diag.warn("unit-suspect", None, || {
                format!("the trace spans {hours:.1} h for {requests} requests: is the unit of its time right?")
            });
        }
    }
}

/// `R`, `W`, `Read`, `write`, ... as RWBS letters.
pub(crate) fn read_or_write(word: &[u8]) -> Option<&'static str> {
    if word.eq_ignore_ascii_case(b"r") || word.eq_ignore_ascii_case(b"read") {
        Some("R")
    } else if word.eq_ignore_ascii_case(b"w") || word.eq_ignore_ascii_case(b"write") {
        Some("W")
    } else {
        None
    }
}

/// Bytes of a number of 512-byte sectors.
pub(crate) fn sectors(text: &[u8]) -> Option<i64> {
    crate::num::dec_i64(text)?.checked_mul(SECTOR_BYTES as i64)
}
