//! `vm_events.csv`, and from `block_events.csv` when each page's I/O ended.
//!
//! A line names a page by its frame. Here each stay of a page in the lists is an *instance* of its own, from its `lru_add` on,
//! so that a model that still holds a page when the kernel has given its frame away knows which is which.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::blocktrace::events::{Act, Event as BlockEvent};
use super::super::traced::Table;
use crate::block::Dir;
use kreplay_traces::units::SECTORS_PER_PAGE;

const HEADER: &str = "t_us,pid,event,ino,index,pfn";
/// No instance: the page of the line is on no list that the trace knows.
pub(super) const NONE: u32 = u32::MAX;

/// Whose page it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// An inode.
    File(u64),
    /// The swap cache.
    Swap,
    /// Nobody: anonymous memory, or a page of buffers.
    None,
}

/// What a line says. Names as in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    ReadAccess,
    WriteAccess,
    NopageFault,
    /// `ready`: found in the swap cache.
    SwapFault {
        ready: bool,
    },
    LruAdd,
    /// `evicted`: of a page that reclaim took.
    LruDel {
        evicted: bool,
    },
    Activate,
    Deactivate,
    RotateActive,
    ScanInactive,
    WritepageLaunder,
    Unmap,
    Evict,
    ToInactiveDirty,
    ToInactiveClean,
    AgeUp,
    AgeDown,
    /// Pages wanted, length of the inactive list, third field.
    ShrinkCache {
        want: i64,
        inactive: u32,
        rest: i64,
    },
    /// Steps, lengths of the active and the inactive list.
    RefillInactive {
        n: i64,
        active: u32,
        inactive: u32,
    },
    /// Lengths of the dirty and the active list.
    PageLaunder {
        dirty: u32,
        active: u32,
    },
    /// Priority, lengths of the active and the dirty list.
    RefillScan {
        active: u32,
        dirty: u32,
    },
    /// Not a line: the I/O of a page is over.
    IoDone,
    /// Not a line: mincore() looked at the first pages of an inode.
    Mincore {
        ino: u64,
        pages: u64,
    },
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Line of the file.
    pub(super) line: usize,
    /// Time, us.
    pub(super) at: u64,
    pub(super) pid: u32,
    pub(super) what: What,
    pub(super) owner: Owner,
    /// Page of the file, or swap entry.
    pub(super) index: u64,
    /// Instance, or [`NONE`].
    pub(super) page: u32,
    /// Frame.
    pub(super) pfn: u64,
    /// The next line of the same process.
    pub(super) next: usize,
}

/// One stay of a page in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    /// As it came.
    pub(super) owner: Owner,
    pub(super) index: u64,
    pub(super) pfn: u64,
    /// It came locked, to be read.
    pub(super) read: bool,
    /// It came from page tables, modified.
    pub(super) unmapped: bool,
    /// Page tables map it from its coming on.
    pub(super) mapped: bool,
}

/// A run's lines in the order of time, with what was worked out of them.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) events: Vec<Event>,
    pub(super) pages: Vec<Instance>,
    /// For each line after which the mapping of its page ends or begins.
    pub(super) mapping: BTreeMap<usize, (u32, bool)>,
    /// Lines that add a swap page for which a fault waits.
    pub(super) faulted: BTreeSet<usize>,
    /// Cached swap pages that the read-ahead of a fault came upon, by the fault's line.
    pub(super) probed: BTreeMap<usize, Vec<u32>>,
}

/// Reads the lines and ties them together. A fault reads windows of `cluster` slots.
pub(super) fn parse(
    file: &'static str,
    text: &str,
    block: &[BlockEvent],
    looks: &[Look],
    cluster: u64,
) -> Result<Log, String> {
    let mut events = lines(file, text)?;
    let (mut pages, done) = instances(&mut events, block);
    merge(&mut events, done);
    add_looks(&mut events, looks);
    let faulted = faulted(&events);
    let probed = probed(&events, cluster);
    let mapping = mappings(&events, &faulted, &mut pages);
    let mut last: BTreeMap<u32, usize> = BTreeMap::new();
    for i in (0..events.len()).rev() {
        let pid = events[i].pid;
        if !matches!(events[i].what, What::IoDone | What::Mincore { .. }) {
            events[i].next = last.insert(pid, i).unwrap_or(usize::MAX);
        }
    }
    Ok(Log { events, pages, mapping, faulted, probed })
}

fn lines(file: &'static str, text: &str) -> Result<Vec<Event>, String> {
    let mut events: Vec<Event> = Vec::new();
    let mut evicted: BTreeMap<u64, u32> = BTreeMap::new();
    for mut line in Table::new(file, text, HEADER)? {
        let at: u64 = line.need("time")?;
        let pid: u32 = line.need("process")?;
        let kind = line.word()?;
        let ino = line.word()?;
        let index: u64 = line.need("index")?;
        let pfn: u64 = line.need("frame")?;
        let number = |word: &str| word.parse::<u64>().map_err(|_| line.wrong(&format!("\"{word:.40}\" is no number")));
        let owner = match (kind, ino) {
            ("shrink_cache" | "refill_inactive" | "page_launder" | "refill_scan", _) | (_, "anon") => Owner::None,
            (_, "swap") => Owner::Swap,
            (_, ino) => Owner::File(number(ino)?),
        };
        let first = |word: &str| number(word).and_then(|n| i64::try_from(n).map_err(|e| line.wrong(&e.to_string())));
        let short = |n: u64| u32::try_from(n).map_err(|e| line.wrong(&e.to_string()));
        let what = match kind {
            "read_access" => What::ReadAccess,
            "write_access" => What::WriteAccess,
            "nopage_fault" => What::NopageFault,
            "swap_fault" => What::SwapFault { ready: pfn == 1 },
            "lru_add" => What::LruAdd,
            "lru_del" => What::LruDel { evicted: evicted.remove(&pfn).is_some() },
            "activate" => What::Activate,
            "deactivate" => What::Deactivate,
            "rotate_active" => What::RotateActive,
            "scan_inactive" => What::ScanInactive,
            "writepage_launder" => What::WritepageLaunder,
            "unmap" => What::Unmap,
            "evict" => What::Evict,
            "to_inactive_dirty" => What::ToInactiveDirty,
            "to_inactive_clean" => What::ToInactiveClean,
            "age_up" => What::AgeUp,
            "age_down" => What::AgeDown,
            "shrink_cache" => {
                What::ShrinkCache { want: first(ino)?, inactive: short(index)?, rest: i64::try_from(pfn).unwrap_or(0) }
            }
            "refill_inactive" => What::RefillInactive { n: first(ino)?, active: short(index)?, inactive: short(pfn)? },
            "page_launder" => What::PageLaunder { dirty: short(number(ino)?)?, active: short(index)? },
            "refill_scan" => What::RefillScan { active: short(index)?, dirty: short(pfn)? },
            other => return Err(line.wrong(&format!("event \"{other:.40}\" is not known"))),
        };
        match what {
            What::Evict => {
                evicted.insert(pfn, pid);
            }
            What::LruAdd => {
                evicted.remove(&pfn);
            }
            _ => {}
        }
        events.push(Event { line: line.number, at, pid, what, owner, index, page: NONE, pfn, next: usize::MAX });
    }
    Ok(events)
}

/// Gives every line its page's instance; the times at which reads and writes of pages end.
fn instances(events: &mut [Event], block: &[BlockEvent]) -> (Vec<Instance>, Vec<(f64, u32)>) {
    let mut pages: Vec<Instance> = Vec::new();
    // Frame to instance, swap entry to instance.
    let (mut frames, mut entries) = (BTreeMap::new(), BTreeMap::<u64, u32>::new());
    // What the last line of a process was, if it begins I/O; frames unmapped and not listed.
    let mut begun = Begun::new();
    let mut unmapped: BTreeMap<u64, usize> = BTreeMap::new();
    // First sector of a page's I/O by queue to instance.
    let mut under_io: BTreeMap<(usize, u64), u32> = BTreeMap::new();
    let mut done = Vec::new();
    let mut next_block = 0;
    for (i, event) in events.iter_mut().enumerate() {
        // Times of lines are rounded to whole microseconds, those of block events are not.
        while let Some(b) = block.get(next_block).filter(|b| b.at < event.at as f64 - 0.5) {
            block_event(b, &mut pages, &mut begun, &mut under_io, &mut done);
            next_block += 1;
        }
        let e = *event;
        let at = match e.what {
            What::LruAdd => {
                let id = pages.len() as u32;
                frames.insert(e.pfn, id);
                let came = unmapped.remove(&e.pfn).is_some() && e.owner == Owner::Swap;
                pages.push(Instance {
                    owner: e.owner,
                    index: e.index,
                    pfn: e.pfn,
                    read: false,
                    unmapped: came,
                    mapped: false,
                });
                if !came {
                    begin(&mut begun, &e, id, Dir::Read);
                }
                id
            }
            What::SwapFault { ready: true } => entries.get(&e.index).copied().unwrap_or(NONE),
            What::SwapFault { ready: false } => NONE,
            What::ShrinkCache { .. }
            | What::RefillInactive { .. }
            | What::PageLaunder { .. }
            | What::RefillScan { .. } => NONE,
            _ => frames.get(&e.pfn).copied().unwrap_or(NONE),
        };
        event.page = at;
        if e.owner == Owner::Swap && at != NONE {
            entries.insert(e.index, at);
        }
        match e.what {
            What::Unmap if at == NONE => {
                unmapped.insert(e.pfn, i);
            }
            What::WritepageLaunder if at != NONE => {
                begin(&mut begun, &e, at, Dir::Write);
            }
            What::LruDel { .. } => {
                frames.remove(&e.pfn);
            }
            What::Evict => {
                entries.retain(|_, page| *page != at);
                frames.remove(&e.pfn);
            }
            _ => {}
        }
    }
    for b in &block[next_block..] {
        block_event(b, &mut pages, &mut begun, &mut under_io, &mut done);
    }
    (pages, done)
}

/// I/O that a process has begun with a line, and that is to be submitted.
#[derive(Clone, Copy, Debug)]
struct Begin {
    at: u64,
    page: u32,
    dir: Dir,
    /// Where a swap page's slot lies: the entry counts slots of a page from bit 8 on (`SWP_OFFSET` of i386). Where a file's
    /// page lies is not logged.
    sector: Option<u64>,
}

/// ... by process, in the order of the lines.
type Begun = BTreeMap<u32, VecDeque<Begin>>;

/// A line begins I/O. Times of these lines are whole microseconds, so several may precede the first submission, which then is
/// that of the oldest.
fn begin(begun: &mut Begun, e: &Event, page: u32, dir: Dir) {
    let list = begun.entry(e.pid).or_default();
    list.retain(|b| b.sector.is_some() || b.at + 1 >= e.at);
    let sector = (e.owner == Owner::Swap).then_some((e.index >> 8) * SECTORS_PER_PAGE);
    list.push_back(Begin { at: e.at, page, dir, sector });
}

fn block_event(
    b: &BlockEvent,
    pages: &mut [Instance],
    begun: &mut Begun,
    under_io: &mut BTreeMap<(usize, u64), u32>,
    done: &mut Vec<(f64, u32)>,
) {
    match b.act {
        Act::Queue => {
            let list = begun.entry(b.pid).or_default();
            let is = |x: &Begin| x.dir == b.dir && x.sector.is_none_or(|s| s == b.sector);
            if let Some(Begin { page, .. }) = list.iter().position(is).and_then(|i| list.remove(i)) {
                pages[page as usize].read |= b.dir == Dir::Read;
                under_io.insert((b.dev, b.sector), page);
            }
        }
        Act::Complete => {
            let range = (b.dev, b.sector)..(b.dev, b.sector + u64::from(b.nr));
            let over: Vec<_> = under_io.range(range).map(|(k, p)| (*k, *p)).collect();
            for (key, page) in over {
                under_io.remove(&key);
                done.push((b.at, page));
            }
        }
        _ => {}
    }
}

/// Puts the ends of I/O between the lines.
fn merge(events: &mut Vec<Event>, done: Vec<(f64, u32)>) {
    let mut merged = Vec::with_capacity(events.len() + done.len());
    let mut done = done.into_iter().peekable();
    for e in events.drain(..) {
        while let Some((at, page)) = done.next_if(|(at, _)| *at < e.at as f64) {
            merged.push(Event {
                line: e.line,
                at: at as u64,
                pid: 0,
                what: What::IoDone,
                owner: Owner::None,
                index: 0,
                page,
                pfn: 0,
                next: usize::MAX,
            });
        }
        merged.push(e);
    }
    *events = merged;
}

/// A look of the recording's sampler at files, which marked their pages on the kernels whose lookup marks.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// About when, us.
    pub(super) at: u64,
    /// Inodes and how many of their pages.
    pub(super) files: Vec<(u64, u64)>,
}

/// The process that samples.
const SAMPLER: u32 = 8;
/// Its clock and the trace's differ by so much at most, us.
const DRIFT_US: u64 = 45_000;

/// Puts the sampler's looks in: just before its first activation near that time, else after its first lines.
fn add_looks(events: &mut Vec<Event>, looks: &[Look]) {
    for look in looks {
        let near = |e: &Event| e.at + DRIFT_US >= look.at && e.at <= look.at + DRIFT_US;
        let own = |e: &Event| e.pid == SAMPLER && near(e);
        let first = events.iter().position(|e| own(e) && e.what == What::Activate);
        let burst = || {
            let start = events.iter().position(own)?;
            let at = events[start].at;
            events.iter().rposition(|e| own(e) && e.at <= at + 2000).map(|i| i + 1)
        };
        let after = || events.iter().position(|e| e.at >= look.at).unwrap_or(events.len());
        let at = first.or_else(burst).unwrap_or_else(after);
        let line = events.get(at).or(events.last()).map_or(0, |e| e.line);
        for &(ino, pages) in look.files.iter().rev() {
            let what = What::Mincore { ino, pages };
            let (owner, index, page, pfn, next) = (Owner::File(ino), 0, NONE, 0, usize::MAX);
            events.insert(at, Event { line, at: look.at, pid: 0, what, owner, index, page, pfn, next });
        }
    }
}

/// Lines that add a swap page for which a fault waits: the page is mapped when it has come.
fn faulted(events: &[Event]) -> BTreeSet<usize> {
    let mut waits: BTreeMap<u64, usize> = BTreeMap::new();
    let mut faulted = BTreeSet::new();
    for (i, e) in events.iter().enumerate() {
        match e.what {
            What::SwapFault { ready: false } => {
                waits.insert(e.index, i);
            }
            What::LruAdd if e.owner == Owner::Swap && waits.remove(&e.index).is_some() => {
                faulted.insert(i);
            }
            _ => {}
        }
    }
    faulted
}

/// Swap pages that a fault's read-ahead finds in the cache: their slots lie in the window that is read.
fn probed(events: &[Event], cluster: u64) -> BTreeMap<usize, Vec<u32>> {
    let mut cached: BTreeMap<u64, u32> = BTreeMap::new();
    let mut probed = BTreeMap::new();
    for (i, e) in events.iter().enumerate() {
        match e.what {
            What::SwapFault { ready: false } => {
                let first = (e.index >> 8) / cluster * cluster;
                let found: Vec<u32> = cached.range(first..first + cluster).map(|(_, page)| *page).collect();
                if !found.is_empty() {
                    probed.insert(i, found);
                }
            }
            What::LruDel { .. } | What::Evict => cached.retain(|_, page| *page != e.page),
            _ if e.owner == Owner::Swap && e.page != NONE => {
                cached.insert(e.index >> 8, e.page);
            }
            _ => {}
        }
    }
    probed
}

/// When page tables map each instance, which no line says: until the last unmapping before the next fault. A page that is
/// faulted in and never unmapped is mapped until it goes, unless reclaim takes it.
fn mappings(events: &[Event], faulted: &BTreeSet<usize>, pages: &mut [Instance]) -> BTreeMap<usize, (u32, bool)> {
    let mut lives: Vec<Vec<usize>> = vec![Vec::new(); pages.len()];
    for (i, e) in events.iter().enumerate() {
        let counts = matches!(
            e.what,
            What::Unmap | What::NopageFault | What::SwapFault { .. } | What::LruDel { .. } | What::Evict | What::LruAdd
        );
        if counts && e.page != NONE {
            lives[e.page as usize].push(i);
        }
    }
    let mut mapping = BTreeMap::new();
    for (page, life) in lives.iter().enumerate() {
        let is_fault = |i: usize| {
            matches!(events[i].what, What::NopageFault | What::SwapFault { ready: true }) || faulted.contains(&i)
        };
        for (k, &i) in life.iter().enumerate() {
            let begins = k == 0 || is_fault(i);
            if !begins {
                continue;
            }
            // Up to the next fault.
            let until = life[k + 1..].iter().position(|&j| is_fault(j)).map_or(life.len(), |n| k + 1 + n);
            let last = life[k + 1..until].iter().rev().find(|&&j| events[j].what == What::Unmap);
            let ends = life.last().map(|&j| events[j].what);
            let evicted = life.iter().any(|&j| events[j].what == What::Evict);
            let for_good = is_fault(i) && until == life.len() && !evicted && ends != Some(What::Unmap);
            if last.is_none() && !for_good {
                continue;
            }
            if k == 0 {
                pages[page].mapped = true;
            }
            mapping.insert(i, (page as u32, true));
            if let Some(&j) = last {
                mapping.insert(j, (page as u32, false));
            }
        }
    }
    mapping
}
