//! `manifest.json`: what a trace directory holds, where it came from and how its clocks are aligned.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// File name of the manifest.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Value of [`Manifest::format`]: the marker by which a directory is known to be ours.
pub const FORMAT: &str = "kreplay-trace";

/// The manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`FORMAT`].
    pub format: String,
    /// Version of tables and manifest.
    pub schema_version: u32,
    /// Hash over all parts and the clock alignment, hex: the identity of the trace.
    pub trace_id: String,
    /// Rows per table, all tables named.
    pub counts: BTreeMap<String, u64>,
    /// What was read, in the order of reading.
    pub sources: Vec<SourceInfo>,
    /// When the trace starts.
    pub clock: ClockInfo,
    /// The machine that was recorded, as far as known.
    #[serde(default)]
    pub machine: MachineInfo,
    /// Network links that generated loads are paced by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkSpec>,
    /// Everything a reader should know, in words.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The Parquet files.
    pub parts: Vec<PartInfo>,
}

/// One file, stream or generator that rows came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceInfo {
    /// Name as the user gave it (`-` for standard input, `synth:LOAD` for a generator).
    pub path: String,
    /// Hash of the bytes as stored (still compressed), hex; `None` for a generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
    /// Length as stored, bytes; `None` for a generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Length after decompression, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<u64>,
    /// Format id (`strace`, `blkparse`, `vmstat`, `synth`).
    pub format: String,
    /// Options given to the parser, or parameters of the generator.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Lines (or records) of the input.
    pub lines: u64,
    /// Rows by table, only tables with rows.
    pub events: BTreeMap<String, u64>,
    /// Rejected lines by reason.
    #[serde(default)]
    pub rejects: BTreeMap<String, u64>,
    /// Recognised lines that are no events (headers, comments, summaries), by kind.
    #[serde(default)]
    pub non_events: BTreeMap<String, u64>,
    /// Its clock.
    pub clock: ClockKind,
    /// Time in its own clock that is time 0 of the trace, nanoseconds.
    pub zero_ns: i64,
    /// `zero_ns` was assumed (first event = 0), not known.
    pub zero_assumed: bool,
    /// First and last event in its own clock, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<(i64, i64)>,
    /// Tasks that its tasks made, with the time in its own clock, nanoseconds: only for a clock that shows the time of day
    /// of one thread's log, whose day follows from the thread that made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub births: Vec<(i64, i64)>,
    /// What its clock is behind that of the other sources with the same clock, nanoseconds: whole days, for a log of the
    /// time of day that begins after the others' midnight. `zero_ns` has it already.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub behind_ns: i64,
    /// Remarks of the parser, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &i64) -> bool {
    *n == 0
}

/// What a source's time stamps count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// Wall clock, since 1970 UTC.
    Realtime,
    /// Since boot or another point shared by all monotonic sources of one machine.
    Monotonic,
    /// Since midnight, local time: shared by all such sources of one day (`strace -tt`).
    TimeOfDay,
    /// From an own beginning that no other source shares (`strace -r`, blktrace's start, counted samples).
    Relative,
    /// Trace time already (generated).
    Trace,
}

/// When the trace starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockInfo {
    /// Wall clock of time 0, nanoseconds since 1970 UTC, if any source knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_realtime_ns: Option<i64>,
    /// Monotonic clock of time 0, nanoseconds, if any source has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_monotonic_ns: Option<i64>,
    /// At least two clocks were laid together by assuming that their first events coincide.
    pub assumed: bool,
    /// Last event minus time 0, nanoseconds.
    pub duration_ns: i64,
}

/// The machine, everything optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineInfo {
    /// Memory, KiB (of the memory cgroup, if the load was confined to one).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ram_kib: Option<u64>,
    /// Swap space, KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_kib: Option<u64>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Kernel release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Block devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceSpec>,
    /// File systems that the load used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountSpec>,
    /// Facts without a field of their own (settings of the queue, dirty limits, file system).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
}

/// A block device of the recorded machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceSpec {
    /// `major << 20 | minor`.
    pub dev: i64,
    /// Name (`hdc`, `loop0`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Capacity, 512-byte sectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sectors: Option<u64>,
    /// Scheduler in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Used for swapping.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub swap: bool,
    /// First sectors of its partitions, 512-byte units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<u64>,
}

/// A mounted file system of the recorded machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MountSpec {
    /// Mount point.
    pub path: String,
    /// Device below it, `major << 20 | minor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<i64>,
    /// Kind (`ext2`, `xfs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<String>,
}

/// A network link shared by tasks of a generated load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSpec {
    /// How it hands out bytes.
    #[serde(flatten)]
    pub kind: LinkKind,
    /// Bytes per second, both directions together.
    pub rate_bytes_s: u64,
    /// Clients on it.
    pub clients: u32,
}

/// Discipline of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LinkKind {
    /// Half duplex, one message at a time, in order of request.
    Fifo,
    /// A process wakes every `tick_ns`, adds elapsed time x rate to a budget of at most `burst_bytes`, and hands out
    /// segments round robin to clients whose untaken bytes plus one segment stay within the window.
    Segments {
        /// Segment, bytes.
        mss_bytes: u32,
        /// Window of a client, bytes.
        window_bytes: u32,
        /// Largest budget, bytes.
        burst_bytes: u32,
        /// Sleep asked for between hand-outs, nanoseconds (the kernel's timer rounds it).
        tick_ns: u64,
    },
    /// Clients of a request server with a thread pool; each has its own connection, all have the link's rate.
    Server {
        /// Server threads.
        threads: u32,
        /// Requests that a client keeps outstanding.
        window: u32,
        /// Time of a service, ms.
        service_ms: u32,
        /// Size of a reply, bytes.
        reply_bytes: u32,
        /// Send buffer of a connection, bytes.
        send_buffer_bytes: u32,
        /// Client whose network stands still for a while.
        congested_client: u32,
        /// From when, ms.
        congested_from_ms: u32,
        /// Until when, ms.
        congested_to_ms: u32,
        /// How long clients go on asking, ms.
        duration_ms: u32,
    },
}

/// One Parquet file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartInfo {
    /// Table.
    pub table: String,
    /// Path inside the trace directory, `/` between components.
    pub file: String,
    /// Index into [`Manifest::sources`].
    pub source: usize,
    /// Rows.
    pub rows: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// Hash, hex.
    pub blake3: String,
    /// First and last time in the source's clock, nanoseconds; `None` where no row has a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<(i64, i64)>,
}

impl Manifest {
    /// Rows of a table.
    pub fn count(&self, table: &str) -> u64 {
        self.counts.get(table).copied().unwrap_or(0)
    }

    /// Hash over the parts and the alignment: equal for equal rows, whatever the paths they came from.
    pub(super) fn compute_id(parts: &[PartInfo], sources: &[SourceInfo], machine: &MachineInfo) -> String {
        let mut hash = blake3::Hasher::new();
        for part in parts {
            let zero = sources.get(part.source).map_or(0, |s| s.zero_ns);
            hash.update(format!("{} {} {} {zero}\n", part.table, part.rows, part.blake3).as_bytes());
        }
        // The machine takes part in what a replay assumes, so it takes part in the identity.
        if let Ok(json) = serde_json::to_vec(machine) {
            hash.update(&json);
        }
        hash.finalize().to_hex().to_string()
    }
}
