//! `block_events.csv`.

use std::collections::BTreeMap;

use super::super::traced::Table;
use crate::block::Dir;

const HEADER: &str = "t_us,pid,event,dev,rw,sector,nsect,aux,pos,qlen";
/// A submission that takes longer than this, us, may have slept, if a request completed meanwhile.
const SLEPT_US: f64 = 300.0;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::prove) enum Act {
    /// `Q`: offered.
    Queue,
    /// `I`: a new request at a place of the list, whose length was `qlen` before.
    Insert { pos: usize, qlen: usize },
    /// `M`: joined the end of the request that begins at `into`.
    Back { into: u64 },
    /// `F`: joined the beginning of the request that began at `into`.
    Front { into: u64 },
    /// `X`: the request at `gone` became part of the one at `sector`.
    Coalesce { gone: u64 },
    /// `P`.
    Plug,
    /// `U`, of all queues.
    Unplug,
    /// `S`: sleeps for a request slot.
    Sleep,
    /// `C`: done.
    Complete,
}

/// One line, without those that say nothing new (`D` repeats itself for every piece that the driver takes, `G`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::prove) struct Event {
    /// Line of the file.
    pub(in crate::prove) line: usize,
    /// Time, us.
    pub(in crate::prove) at: f64,
    pub(in crate::prove) pid: u32,
    pub(in crate::prove) act: Act,
    /// Queue: a drive. 3:0 and 22:64 are two.
    pub(in crate::prove) dev: usize,
    pub(in crate::prove) dir: Dir,
    pub(in crate::prove) sector: u64,
    pub(in crate::prove) nr: u32,
    /// A `Queue` whose sleep is a line of its own.
    pub(in crate::prove) slept: bool,
    /// A `Queue` whose outcome came late, after a completion: it may have slept.
    pub(in crate::prove) late: bool,
}

/// All events, in the order of the file.
pub(in crate::prove) fn parse(file: &'static str, text: &str) -> Result<Vec<Event>, String> {
    let mut devices: BTreeMap<&str, usize> = BTreeMap::new();
    let mut events: Vec<Event> = Vec::new();
    // Submission that each process has under way: its event, its time, completions before it.
    let mut open: BTreeMap<u32, (usize, f64, u64)> = BTreeMap::new();
    let mut completions = 0u64;
    for mut line in Table::new(file, text, HEADER)? {
        let at: f64 = line.need("time")?;
        let pid: u32 = line.need("process")?;
        let kind = line.word()?;
        let dev = line.word()?;
        let rw = line.word()?;
        let sector: u64 = line.number("sector")?.unwrap_or(0);
        let nr: u32 = line.number("length")?.unwrap_or(0);
        let aux: Option<u64> = line.number("aux")?;
        let pos: Option<usize> = line.number("position")?;
        let qlen: Option<usize> = line.number("queue length")?;
        let dir = match rw {
            "W" => Dir::Write,
            "R" | "" => Dir::Read,
            other => return Err(line.wrong(&format!("direction \"{other:.20}\" is neither R nor W"))),
        };
        let aux = || aux.ok_or_else(|| line.wrong("aux is missing"));
        let act = match kind {
            "Q" => Act::Queue,
            "I" => match (pos, qlen) {
                (Some(pos), Some(qlen)) => Act::Insert { pos, qlen },
                _ => return Err(line.wrong("an insertion without position or queue length")),
            },
            "M" => Act::Back { into: aux()? },
            "F" => Act::Front { into: aux()? },
            "X" => Act::Coalesce { gone: aux()? },
            "P" => Act::Plug,
            "U" => Act::Unplug,
            "S" => Act::Sleep,
            "C" => Act::Complete,
            "D" | "G" => continue,
            other => return Err(line.wrong(&format!("event \"{other:.20}\" is not known"))),
        };
        let known = devices.len();
        let dev = if dev.is_empty() { usize::MAX } else { *devices.entry(dev).or_insert(known) };
        if dev == usize::MAX && act != Act::Unplug {
            return Err(line.wrong("the device is missing"));
        }
        match act {
            Act::Queue => {
                open.insert(pid, (events.len(), at, completions));
            }
            Act::Complete => completions += 1,
            Act::Sleep => {
                if let Some(&(q, ..)) = open.get(&pid) {
                    events[q].slept = true;
                }
            }
            Act::Insert { .. } | Act::Back { .. } | Act::Front { .. } => {
                if let Some((q, since, before)) = open.remove(&pid)
                    && at - since > SLEPT_US
                    && completions > before
                {
                    events[q].late = true;
                }
            }
            _ => {}
        }
        let event = Event { line: line.number, at, pid, act, dev, dir, sector, nr, slept: false, late: false };
        events.push(event);
    }
    Ok(events)
}
