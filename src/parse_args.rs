//! Arguments that say about logs what their text does not.

use clap::Args;
use kreplay_parsers::ParseOptions;
use kreplay_parsers::blkformat::FormatLines;
use kreplay_parsers::options::{date_ns, instant_ns, memory_unit_bytes, seconds_ns, utc_offset_s};

/// What the user knows about a log beyond its text.
#[derive(Debug, Default, Args)]
pub(crate) struct ParseArgs {
    /// Seconds between vmstat samples, where the log has no time stamps (5, 0.5, 100ms, 2m)
    #[arg(long, value_name = "TIME", value_parser = seconds_ns)]
    pub(crate) interval: Option<i64>,
    /// Time of the first vmstat sample without a stamp (2001-11-14T22:13:20, UTC unless --utc-offset)
    #[arg(long, value_name = "TIME", value_parser = instant_ns)]
    pub(crate) start: Option<i64>,
    /// Day on which a clock without a date begins (2001-11-14): strace -t and -tt
    #[arg(long, visible_alias = "midnight", value_name = "DAY", value_parser = date_ns)]
    pub(crate) date: Option<i64>,
    /// Zone of wall clocks in the log (+02:00, -0330, UTC)
    #[arg(long, value_name = "ZONE", value_parser = utc_offset_s, allow_hyphen_values = true)]
    pub(crate) utc_offset: Option<i64>,
    /// Unit of vmstat's memory columns: k (1000 bytes), K (1024), m, M, or bytes
    #[arg(long, visible_alias = "unit", value_name = "UNIT", value_parser = memory_unit_bytes)]
    pub(crate) memory_unit: Option<i64>,
    /// Format string with which blkparse wrote the text (its -f)
    #[arg(long, value_name = "STRING", value_parser = blkparse_format)]
    pub(crate) blkparse_format: Option<String>,
    /// Thread whose calls a strace log without thread ids holds
    #[arg(long, value_name = "ID")]
    pub(crate) tid: Option<i64>,
    /// Read only the named per-CPU file of a binary trace, not its siblings
    #[arg(long)]
    pub(crate) single: bool,
    /// A log without a single event is no error
    #[arg(long)]
    pub(crate) allow_empty: bool,
}

/// A format string that can be read back.
fn blkparse_format(text: &str) -> Result<String, String> {
    FormatLines::new(text, 0).map(|_| text.to_owned()).map_err(|e| e.to_string())
}

impl ParseArgs {
    /// As the parsers want them.
    pub(crate) fn options(&self) -> ParseOptions {
        // Local times become UTC.
        let east_ns = self.utc_offset.unwrap_or(0) * 1_000_000_000;
        ParseOptions {
            tid: self.tid,
            interval_ns: self.interval,
            start_ns: self.start.map(|t| t - east_ns),
            midnight_ns: self.date.map(|t| t - east_ns),
            utc_offset_s: self.utc_offset,
            memory_unit_bytes: self.memory_unit,
            blkparse_format: self.blkparse_format.clone(),
            ..ParseOptions::default()
        }
    }
}
