//! Payloads: block events by their shape, the blk tracer's lines.

use kreplay_traces::event::{BlockRow, EventSink};

use super::front::Front;
use super::shape::{Shape, known};
use super::{BAD_PAYLOAD, FtraceLines};
use crate::blkparse::{action, device};
use crate::diag::Outcome;
use crate::lines::Line;
use crate::num::{Fields, dec_i64, push_text, secs_ns, signed};

impl FtraceLines {
    pub(super) fn event(&mut self, line: &Line<'_>, bytes: &[u8], f: &Front<'_>, out: &mut dyn EventSink) -> Outcome {
        let cut = line.bytes.len() - bytes.len();
        let mut fields = Fields::new(&bytes[f.payload..]);
        let mut row = BlockRow {
            time_ns: f.time_ns.unwrap_or(0),
            cpu: f.cpu,
            pid: f.pid,
            line: line.number,
            ..BlockRow::default()
        };
        let done = if let Some(dev) = device(f.name) {
            row.dev = Some(dev);
            self.tracer(&mut row, &mut fields)
        } else if matches!(f.name, b"blktrace" | b"blk") {
            // trace-cmd names the tracer's own events.
            let at = fields.position();
            match fields.next().and_then(device) {
                Some(dev) => {
                    row.dev = Some(dev);
                    self.tracer(&mut row, &mut fields)
                }
                None => Err(at),
            }
        } else {
            match known(f.name) {
                Some((_, Shape::Other)) => return Outcome::Note("accounting-event"),
                Some((letter, shape)) => {
                    row.action = letter;
                    self.payload(&mut row, shape, &mut fields)
                }
                None => return Outcome::Note("other-event"),
            }
        };
        match done {
            Ok(()) => {
                let without_device = row.dev.is_none();
                out.block(&row);
                self.without_device += u64::from(without_device);
                Outcome::Event
            }
            Err(at) => Outcome::Reject(&BAD_PAYLOAD, Some(cut + f.payload + at)),
        }
    }

    /// The blk tracer: `dev [cgroup] action rwbs ...` as blkparse has it. The option `blk_cgroup` adds the cgroup, as a
    /// path (`blk_cgname`) or as two numbers.
    fn tracer<'s>(&'s mut self, row: &mut BlockRow<'s>, f: &mut Fields<'s>) -> Result<(), usize> {
        let at = f.position();
        let word = f.next().ok_or(at)?;
        row.action = match action(word) {
            Some(letter) => letter,
            None if word.starts_with(b"/") || word.contains(&b',') => {
                self.cgroups = true;
                f.next().and_then(action).ok_or(at)?
            }
            None => return Err(at),
        };
        row.rwbs = rwbs(f)?;
        self.tail.read(row, f)
    }

    fn payload<'s>(&'s mut self, row: &mut BlockRow<'s>, shape: Shape, f: &mut Fields<'s>) -> Result<(), usize> {
        if matches!(shape, Shape::Plug | Shape::Unplug) {
            row.rwbs = "N";
            return self.tail.read(row, f);
        }
        let at = f.position();
        row.dev = Some(f.next().and_then(device).ok_or(at)?);
        row.rwbs = rwbs(f)?;
        match shape {
            Shape::Bio | Shape::BioDone | Shape::Split => self.tail.read(row, f),
            Shape::Remap => {
                let at = f.position();
                // block_rq_remap adds a count at the end.
                let rest = f.rest();
                let words = rest.split(|b| *b == b' ').filter(|w| !w.is_empty()).count();
                let end = if words > 6 {
                    memchr::memrchr(b' ', rest.trim_ascii_end()).unwrap_or(rest.len())
                } else {
                    rest.len()
                };
                self.tail.read(row, &mut Fields::new(&rest[..end])).map_err(|i| at + i)
            }
            Shape::Request | Shape::RequestDone => self.request(row, shape, f),
            Shape::Plug | Shape::Unplug | Shape::Other => Ok(()),
        }
    }

    fn request<'s>(&'s mut self, row: &mut BlockRow<'s>, shape: Shape, f: &mut Fields<'s>) -> Result<(), usize> {
        let at = f.position();
        let rest = f.rest();
        let open = memchr::memchr(b'(', rest).ok_or(at)?;
        let bytes = dec_i64(rest[..open].trim_ascii());
        let close = open + memchr::memchr(b')', &rest[open..]).ok_or(at + open)?;
        let mut g = Fields::new(&rest[close + 1..]);
        let base = at + close + 1;
        let here = base + g.position();
        let sector = g.next().and_then(crate::num::dec_u64).ok_or(here)?;
        let here = base + g.position();
        (g.next() == Some(b"+")).then_some(()).ok_or(here)?;
        let here = base + g.position();
        let sectors = g.next().and_then(dec_i64).ok_or(here)?;
        // A flush has no place: its sector is printed as -1.
        row.sector_512 = i64::try_from(sector).ok();
        let len = sectors.checked_mul(512).ok_or(here)?;
        row.len_bytes = Some(if len == 0 { bytes.unwrap_or(0) } else { len });
        let here = base + g.position();
        let tail = g.rest().trim_ascii_end();
        // A priority (`none,0,0`, `rt,4`) may stand before the bracket.
        let bracket = memchr::memchr(b'[', tail).ok_or(here)?;
        let before = tail[..bracket].trim_ascii();
        if !before.is_empty() && !before.contains(&b',') && !before.starts_with(b"|") {
            return Err(here);
        }
        let inner = tail.strip_suffix(b"]").ok_or(here + tail.len())?;
        let inner = &inner[bracket + 1..];
        if shape == Shape::RequestDone {
            row.error = Some(signed(inner).ok_or(here + bracket + 1)?);
        } else {
            self.comm.clear();
            push_text(&mut self.comm, inner);
            row.comm = Some(&self.comm);
            row.text = row.sector_512.and(priority(before));
        }
        Ok(())
    }

    /// The blk tracer with its option `blk_classic`: `dev cpu seconds.nanoseconds pid action rwbs ...`, blkparse's line
    /// without the sequence number.
    pub(super) fn classic(&mut self, line: &Line<'_>, bytes: &[u8], out: &mut dyn EventSink) -> Option<Outcome> {
        let mut f = Fields::new(bytes);
        let dev = device(f.next()?)?;
        let cpu = dec_i64(f.next()?)?;
        let stamp = f.next()?;
        memchr::memchr(b'.', stamp)?;
        let time_ns = secs_ns(stamp)?;
        let pid = dec_i64(f.next()?)?;
        let mut row = BlockRow {
            time_ns,
            dev: Some(dev),
            cpu: Some(cpu),
            pid: Some(pid),
            line: line.number,
            ..BlockRow::default()
        };
        self.seen_stamp = true;
        let cut = line.bytes.len() - bytes.len();
        Some(match self.tracer(&mut row, &mut f) {
            Ok(()) => {
                out.block(&row);
                Outcome::Event
            }
            Err(at) => Outcome::Reject(&BAD_PAYLOAD, Some(cut + at)),
        })
    }
}

/// A request's I/O priority, `class,hint,level` (6.8+) or `class,level`, as `queue.priorities` writes it; `None` where its
/// process has none of its own.
fn priority(field: &[u8]) -> Option<&'static str> {
    const BY_LEVEL: [[&str; 8]; 3] = [
        ["rt:0", "rt:1", "rt:2", "rt:3", "rt:4", "rt:5", "rt:6", "rt:7"],
        ["be:0", "be:1", "be:2", "be:3", "be:4", "be:5", "be:6", "be:7"],
        ["idle:0", "idle:1", "idle:2", "idle:3", "idle:4", "idle:5", "idle:6", "idle:7"],
    ];
    let comma = memchr::memchr(b',', field)?;
    let class = match &field[..comma] {
        b"rt" => 0,
        b"be" => 1,
        b"idle" => 2,
        _ => return None,
    };
    let level = field.rsplit(|b| *b == b',').next().and_then(dec_i64)?;
    usize::try_from(level).ok().and_then(|l| BY_LEVEL[class].get(l)).copied()
}

fn rwbs<'a>(f: &mut Fields<'a>) -> Result<&'a str, usize> {
    let at = f.position();
    let word = f.next().filter(|w| w.iter().all(u8::is_ascii_uppercase)).ok_or(at)?;
    std::str::from_utf8(word).map_err(|_| at)
}
