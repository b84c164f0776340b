//! Binary traces of blktrace: one file a CPU (`name.blktrace.N`), or the single file of `blkparse -d`.
//!
//! The files of one trace are merged by [`merge::Merged`] before they come here. Times are those of the kernel's trace
//! clock; when the trace begins with blktrace's wall-clock note they are shifted to the wall clock.

pub mod merge;
mod record;

use hashbrown::HashMap;
use kreplay_traces::event::{BlockRow, EventSink, ProcessRow};
use rustc_hash::FxBuildHasher;

use crate::carry::Carry;
use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score};
use crate::lines::Line;
use crate::num::push_text;
use record::{Layout, Record, act, category};

/// The format.
pub struct Blktrace;

impl Format for Blktrace {
    fn id(&self) -> &'static str {
        "blktrace"
    }

    fn about(&self) -> &'static str {
        "binary blktrace (name.blktrace.N merged over CPUs, or blkparse -d), versions 7 and 8, either byte order"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        if Layout::of(head.bytes).is_some() { 100 } else { 0 }
    }

    fn parser(&self, _: &ParseOptions) -> Box<dyn Parser> {
        Box::new(BlktraceParser::default())
    }
}

static BAD_MAGIC: Reason = Reason {
    code: "blktrace-bad-magic",
    expected: "a record that begins with blktrace's magic number",
    hint: "the file is damaged here; reading goes on at the next magic number",
};
static BAD_VERSION: Reason = Reason {
    code: "blktrace-bad-version",
    expected: "trace version 7 or 8",
    hint: "convert it with the blkparse that belongs to the kernel",
};
static MIXED_VERSIONS: Reason = Reason {
    code: "blktrace-mixed-versions",
    expected: "records of one trace version",
    hint: "the records before this place have the other layout; the file was put together from two traces, or is damaged",
};
static SWAPPED: Reason = Reason {
    code: "blktrace-swapped",
    expected: "an action where the trace version has it",
    hint: "process and action have changed places: records of version 8 were written with the number of version 7, by a \
           kernel older than the fix of October 2025",
};
static TRUNCATED: Reason = Reason {
    code: "blktrace-truncated",
    expected: "a whole record",
    hint: "the file was cut; all whole records before this place are kept",
};
static UNKNOWN_ACTION: Reason = Reason {
    code: "blktrace-unknown-action",
    expected: "an act code from 1 to 17, or a note",
    hint: "the record is damaged, or written by a later kernel",
};

/// CPUs whose sequence is watched; Linux has 8192 at most.
const MAX_CPUS: usize = 8192;
/// Processes whose names are kept for their events: as many as Linux has process ids by default on a large machine.
const MAX_NAMES: usize = 1 << 18;
/// Bytes of a name that are kept for events: the kernel has 16.
const MAX_NAME_BYTES: usize = 16;
/// Longest stretch without a magic number that is one reject, bytes.
const RESYNC_BYTES: usize = 1 << 16;

#[derive(Default)]
struct BlktraceParser {
    pending: Carry,
    number: i64,
    offset: i64,
    names: Names,
    /// Wall clock minus trace clock, if a note said so before the first event.
    wall_ns: Option<i64>,
    /// Next sequence number of each CPU that was seen.
    next_sequence: Vec<Option<u32>>,
    any_event: bool,
    version: Option<u8>,
    last_ns: Option<i64>,
    text: String,
}

/// Names of processes, as the notes so far tell them.
#[derive(Default)]
struct Names {
    index: HashMap<u32, usize, FxBuildHasher>,
    names: Vec<String>,
    /// The process asked for last: the events of one request come together.
    last: Option<(u32, Option<usize>)>,
}

impl Names {
    #[inline]
    fn of(&mut self, pid: u32) -> Option<&str> {
        let at = match self.last {
            Some((last, at)) if last == pid => at,
            _ => {
                let at = self.index.get(&pid).copied();
                self.last = Some((pid, at));
                at
            }
        };
        Some(self.names.get(at?)?.as_str())
    }

    /// Keep the name of a process; false if there is no room for another.
    fn learn(&mut self, pid: u32, name: &[u8]) -> bool {
        self.last = None;
        let mut text = String::new();
        push_text(&mut text, &name[..name.len().min(MAX_NAME_BYTES)]);
        match self.index.get(&pid) {
            Some(at) => self.names[*at] = text,
            None if self.names.len() < MAX_NAMES => {
                self.index.insert(pid, self.names.len());
                self.names.push(text);
            }
            None => return false,
        }
        true
    }
}

impl BlktraceParser {
    /// Take whole records from the front of `bytes`; gives how many bytes were taken.
    fn records(&mut self, bytes: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) -> usize {
        let mut at = 0;
        while !diag.stopped() && bytes.len() - at >= 4 {
            let rest = &bytes[at..];
            let Some(layout) = Layout::of(rest) else {
                // Pieces end at fixed places, so that they do not depend on how the input is cut into chunks.
                match resync(&rest[1..rest.len().min(RESYNC_BYTES + 4)]) {
                    Some(skip) => at += self.damaged(&rest[..skip + 1], &BAD_MAGIC, out, diag),
                    None if rest.len() >= RESYNC_BYTES + 4 => {
                        at += self.damaged(&rest[..RESYNC_BYTES], &BAD_MAGIC, out, diag);
                    }
                    None => break,
                }
                continue;
            };
            let Some(header) = layout.header_bytes() else {
                at += self.damaged(&rest[..4], &BAD_VERSION, out, diag);
                continue;
            };
            if rest.len() < header {
                break;
            }
            let length = header + layout.payload_bytes(rest);
            if rest.len() < length {
                break;
            }
            let (whole, record) = (&rest[..length], layout.record(rest));
            self.number += 1;
            let outcome = if *self.version.get_or_insert(layout.version) == layout.version {
                self.record(&record, layout, &whole[header..], out, diag)
            } else {
                Outcome::Reject(&MIXED_VERSIONS, None)
            };
            diag.record(outcome, &Line { bytes: whole, number: self.number, offset: self.offset }, out);
            self.offset += length as i64;
            at += length;
        }
        at
    }

    fn damaged(
        &mut self,
        bytes: &[u8],
        why: &'static Reason,
        out: &mut dyn EventSink,
        diag: &mut Diagnostics,
    ) -> usize {
        self.number += 1;
        let line = Line { bytes, number: self.number, offset: self.offset };
        diag.record(Outcome::Reject(why, None), &line, out);
        diag.warn("blktrace-resync", Some(self.number), || {
            format!("{} bytes at byte {} are no records and were skipped", bytes.len(), line.offset)
        });
        self.offset += bytes.len() as i64;
        bytes.len()
    }

    #[inline]
    fn record(
        &mut self,
        r: &Record,
        layout: Layout,
        payload: &[u8],
        out: &mut dyn EventSink,
        diag: &mut Diagnostics,
    ) -> Outcome {
        if r.is(category::NOTIFY) {
            return self.note(r, layout, payload, out, diag);
        }
        self.count_sequence(r, diag);
        let act = r.act();
        let Some(action) = r.letter() else {
            // Driver data and aborts are no part of a request's life.
            return match act {
                16 => Outcome::Note("abort"),
                17 => Outcome::Note("driver-data"),
                _ if layout.version == 7 && r.is_swapped() => Outcome::Reject(&SWAPPED, None),
                _ => Outcome::Reject(&UNKNOWN_ACTION, None),
            };
        };
        let payload = if r.has_cgroup() { payload.get(8..).unwrap_or_default() } else { payload };
        let time_ns = self.time(r, diag);
        let rwbs = r.rwbs();
        self.text.clear();
        let comm = self.names.of(r.pid);
        let mut row = BlockRow {
            time_ns,
            dev: Some(i64::from(r.device)),
            cpu: Some(i64::from(r.cpu)),
            seq: Some(i64::from(r.sequence)),
            action,
            rwbs,
            pid: Some(i64::from(r.pid)),
            comm: comm.filter(|_| !matches!(act, act::COMPLETE | act::REQUEUE | act::REMAP)),
            line: self.number,
            ..BlockRow::default()
        };
        let be64 = |at: usize| payload.get(at..at + 8).map(|b| u64::from_be_bytes(b.try_into().unwrap_or([0; 8])));
        match act {
            act::PLUG => {}
            act::UNPLUG | act::UNPLUG_TIMER => row.unplugged = be64(0).and_then(|n| i64::try_from(n).ok()),
            _ => {
                let has_place = r.bytes > 0 || matches!(act, act::COMPLETE | act::REQUEUE) || r.sector > 0;
                row.sector_512 = i64::try_from(r.sector).ok().filter(|_| has_place && !r.is(category::PC));
                row.len_bytes = (r.bytes > 0).then_some(i64::from(r.bytes));
            }
        }
        match act {
            // The kernel cuts its negative error numbers to 16 bits.
            act::COMPLETE | act::REQUEUE => row.error = Some(i64::from(r.error as i16)),
            act::REMAP => {
                row.from_dev = payload.get(..4).map(|b| i64::from(u32::from_be_bytes(b.try_into().unwrap_or([0; 4]))));
                row.from_sector_512 = be64(8).and_then(|s| i64::try_from(s).ok());
            }
            act::SPLIT => row.from_sector_512 = be64(0).and_then(|s| i64::try_from(s).ok()),
            _ => {}
        }
        if r.is(category::PC) && !payload.is_empty() {
            for (i, byte) in payload.iter().enumerate() {
                if i > 0 {
                    self.text.push(' ');
                }
                for digit in [byte >> 4, byte & 15] {
                    self.text.extend(char::from_digit(u32::from(digit), 16));
                }
            }
            row.text = Some(&self.text);
        }
        out.block(&row);
        self.any_event = true;
        Outcome::Event
    }

    fn note(
        &mut self,
        r: &Record,
        layout: Layout,
        payload: &[u8],
        out: &mut dyn EventSink,
        diag: &mut Diagnostics,
    ) -> Outcome {
        let kind = r.act();
        let payload = if r.has_cgroup() && kind == 2 { payload.get(8..).unwrap_or_default() } else { payload };
        match kind {
            0 => {
                let end = memchr::memchr(0, payload).unwrap_or(payload.len());
                let mut name = String::new();
                push_text(&mut name, &payload[..end]);
                out.process(&ProcessRow { tid: i64::from(r.pid), comm: Some(&name), ..ProcessRow::default() });
                if !self.names.learn(r.pid, &payload[..end]) {
                    diag.warn("blktrace-many-processes", Some(self.number), || {
                        format!("more than {MAX_NAMES} processes have names: events of the others have none")
                    });
                }
                Outcome::Note("process-name")
            }
            1 if payload.len() >= 8 => {
                let wall = i64::from(layout.u32(payload, 0)) * 1_000_000_000 + i64::from(layout.u32(payload, 4));
                diag.option("wall-clock-at-start", format!("{wall} ns"));
                if !self.any_event && self.wall_ns.is_none() {
                    self.wall_ns = i64::try_from(r.time_ns).ok().map(|t| wall - t);
                }
                Outcome::Note("wall-clock")
            }
            2 => {
                let time_ns = self.time(r, diag);
                self.text.clear();
                push_text(&mut self.text, payload);
                out.block(&BlockRow {
                    time_ns,
                    dev: Some(i64::from(r.device)),
                    cpu: Some(i64::from(r.cpu)),
                    seq: Some(i64::from(r.sequence)),
                    action: "m",
                    rwbs: "N",
                    pid: Some(i64::from(r.pid)),
                    text: Some(self.text.trim_end()),
                    line: self.number,
                    ..BlockRow::default()
                });
                Outcome::Event
            }
            _ => Outcome::Note("other-note"),
        }
    }

    fn time(&mut self, r: &Record, diag: &mut Diagnostics) -> i64 {
        // A time before the genesis of a `blkparse -d` dump has wrapped: as a signed number it is right again.
        let time_ns = (r.time_ns as i64).saturating_add(self.wall_ns.unwrap_or(0));
        if let Some(last) = self.last_ns.filter(|last| *last > time_ns) {
            let step = last.abs_diff(time_ns);
            diag.warn("time-backwards", Some(self.number), || {
                format!("an event is {step} ns earlier than the one before it")
            });
        }
        self.last_ns = Some(time_ns);
        time_ns
    }

    /// Within a CPU the sequence is dense: a hole is lost events.
    fn count_sequence(&mut self, r: &Record, diag: &mut Diagnostics) {
        let cpu = r.cpu as usize;
        if cpu >= MAX_CPUS {
            return;
        }
        if cpu >= self.next_sequence.len() {
            self.next_sequence.resize(cpu + 1, None);
        }
        if let Some(next) = self.next_sequence[cpu].replace(r.sequence.wrapping_add(1))
            && r.sequence > next
        {
            let lost = r.sequence - next;
            diag.warn("events-lost", Some(self.number), || {
                format!("{lost} events are missing on CPU {} before this record", r.cpu)
            });
        }
    }
}

/// Distance to the next magic number of a known version.
fn resync(bytes: &[u8]) -> Option<usize> {
    let is_magic = |at: &usize| Layout::of(&bytes[*at..]).is_some_and(|l| l.header_bytes().is_some());
    memchr::memchr2_iter(0x74, 0x61, bytes)
        .map(|i| i.saturating_sub(1))
        .find(|at| bytes.len() - at >= 4 && is_magic(at))
}

impl Parser for BlktraceParser {
    fn feed(&mut self, chunk: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.feed(chunk, |bytes| self.records(bytes, out, diag));
        self.pending = pending;
    }

    fn finish(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let pending = self.pending.rest();
        if !pending.is_empty() && !diag.stopped() {
            let why = if Layout::of(&pending).is_some() { &TRUNCATED } else { &BAD_MAGIC };
            self.number += 1;
            let line = Line { bytes: &pending, number: self.number, offset: self.offset };
            diag.record(Outcome::Reject(why, None), &line, out);
        }
        if let Some(version) = self.version {
            diag.option("version", version.to_string());
        }
        diag.option("clock", if self.wall_ns.is_some() { "epoch" } else { "trace" });
    }
}

#[cfg(test)]
mod tests;
