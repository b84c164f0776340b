//! Device models: section `device`.

use serde::{Deserialize, Serialize};

/// Device model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "model", rename_all = "kebab-case")]
pub enum DeviceConfig {
    /// One arm: positioning by distance, mean rotational wait, constant rate (groundtruth/disk.json, oracle/linux24).
    #[serde(rename_all = "kebab-case")]
    Rotating {
        /// Fixed time per request, us.
        overhead_us: u64,
        /// Seek: constant part, us.
        seek_min_us: u64,
        /// Seek: part that grows with the square root of distance / stroke, us.
        seek_span_us: u64,
        /// Distance at which the growing part is reached in full, bytes.
        stroke_bytes: u64,
        /// Mean rotational wait, us.
        rotation_us: u64,
        /// Transfer rate, bytes per second.
        rate_bytes_s: u64,
        /// Gaps up to this many bytes ahead are passed without a seek.
        skip_gap_bytes: u64,
        /// Passing such a gap takes the time of reading it (else it is free).
        skip_gap_costs: bool,
        /// A skip needs the same direction as the request before.
        skip_same_direction: bool,
        /// Requests the device takes at a time.
        queue_depth: u32,
        /// All devices of the machine share one channel: only one of them works at a time.
        shared_channel: bool,
    },
    /// A disk with zones, seek curve, rotation, head switches and a read-ahead cache, from the built-in parameter sets.
    #[serde(rename_all = "kebab-case")]
    Disk {
        /// Name of the parameter set (`atlas10k`, `ide_7200_33mb`, ...).
        preset: String,
        /// Requests the device takes at a time.
        queue_depth: u32,
        /// All devices of the machine share one channel: only one of them works at a time.
        shared_channel: bool,
        /// Write cache, bytes; 0 = writes are done when they are on the medium.
        #[serde(default)]
        write_cache_bytes: u64,
        /// Which of the requests that it holds it serves next.
        #[serde(default)]
        order: CommandOrder,
    },
    /// Flash: parallel units behind a controller and a link, writes acknowledged from a buffer.
    #[serde(rename_all = "kebab-case")]
    Ssd {
        /// Requests the device takes at a time.
        queue_depth: u32,
        /// Units (channels x dies) that work in parallel; pages are striped over them.
        units: u32,
        /// Page, bytes.
        page_bytes: u64,
        /// Reading a page, ns.
        read_ns: u64,
        /// Programming a page, ns.
        program_ns: u64,
        /// Acknowledging a buffered write, ns.
        ack_ns: u64,
        /// Controller's serial work per command, ns.
        overhead_ns: u64,
        /// Link rate, bytes per second.
        link_bytes_s: u64,
        /// Write buffer, bytes; a write that finds it full is paced by programming.
        buffer_bytes: u64,
        /// Bytes programmed per 100 bytes written.
        write_amplification_pct: u64,
        /// After so many pages written a unit erases a block; 0 = never.
        #[serde(default)]
        erase_pages: u64,
        /// Erasing a block, ns.
        #[serde(default)]
        erase_ns: u64,
    },
    /// Answers at once.
    Null {
        /// Requests the device takes at a time.
        #[serde(rename = "queue-depth")]
        queue_depth: u32,
    },
}

/// Order in which a drive serves the commands that it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum CommandOrder {
    /// As they came.
    #[default]
    Fifo,
    /// The one whose first sector is reached soonest (TCQ, NCQ).
    #[serde(rename_all = "kebab-case")]
    Positioning {
        /// Share of a command's wait that counts against its positioning time, percent.
        age_weight_pct: u32,
        /// A command that has waited for longer goes first, ms.
        age_limit_ms: u64,
    },
}
