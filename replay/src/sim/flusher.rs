//! Balanced write-out: writers' pauses, the flusher, fsync and sync by file.
//!
//! Source: mm/page-writeback.c (`balance_dirty_pages`), fs/fs-writeback.c (`wb_workfn`, `wb_writeback`,
//! `writeback_sb_inodes`), fs/ext4/inode.c (`ext4_writepages`) of 6.1 to 6.18. The arithmetic is in [`crate::dirty`].
//! Reduced: one flusher for all devices; inodes themselves cost nothing here (see [`super::journal`]).

use super::Sim;
use super::event::Event;
use super::extents::allocation_end;
use super::frame::{Flush, Frame};
use super::sched::Flow;
use super::task::{At, Wait};
use super::write::SMALL_BYTES;
use crate::block::{BioKind, Dir};
use crate::config::WritebackPolicy;
use crate::dirty::{Estimator, Levels, Verdict};
use crate::mm::page::flag;
use crate::program::FileKind;
use kreplay_traces::units::{Nanos, PAGE_BYTES};
use std::collections::VecDeque;

/// Smallest piece of a file that the flusher writes before it goes on to the next (4 MiB), pages.
const MIN_CHUNK: u64 = 1024;
/// A round over the files that are to be written pauses to look again at the levels (HZ / 10).
const ROUND: Nanos = Nanos::from_millis(100);
/// Pause of a flusher that found nothing to begin.
const RETRY: Nanos = Nanos::from_millis(20);

/// State of the flusher and of who waits for it.
#[derive(Clone, Debug)]
pub(super) struct Flushing {
    pub(super) estimator: Estimator,
    /// Files to write now, in order, and those that were not finished.
    io: VecDeque<u32>,
    more: VecDeque<u32>,
    /// Next page to write of each file.
    cursor: Vec<u32>,
    /// Reclaim asked for everything to be written.
    all: bool,
    /// The pass under way is the periodic one, over files that became dirty long ago and those left unfinished.
    periodic: bool,
    /// When the last of these began.
    last_periodic: Nanos,
    /// Files that became dirty before this are due.
    older_than: Nanos,
    /// When the round over them began.
    round: Nanos,
    /// Pages left of the chunk in hand, and where its file's second round ends.
    budget: u64,
    wrapped: bool,
    /// When the flusher wakes by itself.
    timer: Nanos,
    /// The round over the dirty files in hand wrote something; the last one did not.
    wrote: bool,
    fruitless: bool,
    /// Pages of each file on their way to the disk, and whether a count is to be taken after the last of some file's.
    out: Vec<u32>,
    counting: bool,
    /// Reclaimers that rest until something is written: task, pages written when it began.
    pub(super) resting: Vec<(u32, u64)>,
}

impl Flushing {
    pub(super) fn new(config: &crate::config::Config, files: usize) -> Self {
        Self {
            estimator: Estimator::new(&config.writeback.balanced, config.machine.hz),
            io: VecDeque::new(),
            more: VecDeque::new(),
            cursor: vec![0; files],
            all: false,
            periodic: false,
            last_periodic: Nanos::ZERO,
            older_than: Nanos::ZERO,
            round: Nanos::ZERO,
            budget: 0,
            wrapped: false,
            timer: Nanos::ZERO,
            wrote: true,
            fruitless: false,
            out: vec![0; files],
            counting: false,
            resting: Vec::new(),
        }
    }
}

impl Sim<'_> {
    /// Writers pause by rate, flushers write by file.
    pub(super) fn balanced(&self) -> bool {
        self.config.writeback.policy == WritebackPolicy::Balanced
    }

    fn totals(&self) -> (u64, u64) {
        self.mm.ws.as_ref().map_or((0, 0), |w| (w.dirtied, w.written))
    }

    fn levels(&self) -> Levels {
        let b = &self.config.writeback.balanced;
        let writeback = self.mm.ws.as_ref().map_or(0, |w| w.writeback);
        let dirty = self.mm.dirty_pages() + writeback;
        let z = &self.mm.zones.zone[crate::mm::zone::NORMAL];
        let lists = self.mm.list_sizes();
        let dirtyable = z.free.saturating_sub(z.high) + lists[2] + lists[3];
        let limit = |kib: u64, pct: u32| if kib > 0 { kib / 4 } else { dirtyable * u64::from(pct) / 100 };
        let everybodys = limit(b.dirty_kib, b.dirty_pct);
        let raised = |pages: u64, of: u64| if b.real_time { pages + pages / 4 + of / 32 } else { pages };
        let background = raised(limit(b.background_kib, b.background_pct).min(everybodys / 2), everybodys);
        let thresh = raised(everybodys, everybodys);
        let strict = b.device_limit_kib > 0;
        let device = b.device_limit_kib / 4;
        let dev_thresh = if strict { raised(device, device).min(thresh) } else { thresh };
        let dev_background = dev_thresh * background / thresh.max(1);
        Levels { dirty, thresh, background, dev_dirty: dirty, dev_thresh, dev_background, strict }
    }

    /// A page that this task wrote to was clean: does it look at the level now?
    pub(super) fn dirtied_one(&mut self, t: u32) -> bool {
        let w = &mut self.tasks[t as usize].dirty;
        w.dirtied += 1;
        let due = self.flushing.estimator.due(w);
        self.arm_flusher();
        due
    }

    /// The first file that becomes dirty while none was has the flusher look a period later (`wb_wakeup_delayed`).
    fn arm_flusher(&mut self) {
        let now = self.local_now();
        if self.flushing.timer <= now && self.config.writeback.interval_ms > 0 {
            self.flushing.timer = now + Nanos::from_millis(self.config.writeback.interval_ms);
            self.events.push(self.flushing.timer, Event::Daemon(self.bdflush));
        }
    }

    /// `balance_dirty_pages`.
    pub(super) fn step_throttle(&mut self, t: u32, look: bool) -> Flow {
        if !look {
            self.tasks[t as usize].pop(0);
            return Flow::Continue;
        }
        let levels = self.levels();
        if !levels.is_free() || self.mm.dirty_pages() > levels.background {
            self.wake_daemon(self.bdflush);
        }
        let (dirtied, written) = self.totals();
        let now = self.local_now().0 / self.tick_ns();
        let mut w = self.tasks[t as usize].dirty;
        let verdict = self.flushing.estimator.look(&mut w, &levels, dirtied, written, now);
        self.tasks[t as usize].dirty = w;
        let (ticks, again) = match verdict {
            Verdict::Go => {
                self.tasks[t as usize].pop(0);
                return Flow::Continue;
            }
            Verdict::Pause(n) => (n, false),
            Verdict::PauseAndLook(n) => (n, true),
        };
        self.block.writer_slept(self.now);
        self.tasks[t as usize].set_top(Frame::Throttle { look: again });
        if self.tasks[t as usize].dying {
            self.tasks[t as usize].pop(0);
            return Flow::Continue;
        }
        self.sleep_until(t, Nanos((now + ticks) * self.tick_ns()))
    }

    /// Reclaim met only dirty pages: everything is to be written.
    pub(super) fn write_everything(&mut self) {
        if !self.balanced() {
            self.mm.wake_bdflush = true;
            return;
        }
        self.flushing.all = true;
        self.wake_daemon(self.bdflush);
    }

    /// A reclaimer rests until enough was written, or for the longest time.
    pub(super) fn step_rest(&mut self, t: u32, begun: bool) -> Flow {
        if begun {
            self.flushing.resting.retain(|(r, _)| *r != t);
            self.tasks[t as usize].pop(0);
            return Flow::Continue;
        }
        self.write_everything();
        let (_, written) = self.totals();
        self.flushing.resting.push((t, written));
        self.tasks[t as usize].set_top(Frame::Rest { begun: true });
        let now = self.local_now().0 / self.tick_ns();
        let ticks = Nanos::from_millis(self.config.reclaim.workingset.throttle_ms).0.div_ceil(self.tick_ns());
        let until = Nanos((now + ticks) * self.tick_ns());
        self.tasks[t as usize].rest_until = until;
        self.events.push(until, Event::Rested(t));
        self.block_on(t, Wait::Rest)
    }

    /// A rest's longest time is over.
    pub(super) fn rested(&mut self, t: u32) {
        let task = &self.tasks[t as usize];
        if task.wait == Wait::Rest && self.now >= task.rest_until {
            self.wake(t);
        }
    }

    /// Pages were written: whoever rests for that goes on (`__acct_reclaim_writeback`).
    pub(super) fn wake_resting(&mut self) {
        let (_, written) = self.totals();
        let n = self.flushing.resting.len() as u64;
        if n == 0 || !self.flushing.resting.iter().any(|(_, since)| written - since > 32 * n) {
            return;
        }
        for (t, _) in std::mem::take(&mut self.flushing.resting) {
            if self.tasks[t as usize].wait == Wait::Rest {
                self.wake(t);
            }
        }
    }

    /// A file is about to be written (`do_writepages`).
    fn estimate_begin(&mut self) {
        if self.mm.ws.as_ref().is_some_and(|w| w.writeback == 0) {
            let ((dirtied, written), tick) = (self.totals(), self.local_now().0 / self.tick_ns());
            self.flushing.estimator.restart(dirtied, written, tick);
        }
    }

    /// All of it is queued.
    fn estimate_end(&mut self) {
        let ((dirtied, written), tick) = (self.totals(), self.local_now().0 / self.tick_ns());
        self.flushing.estimator.update_if_due(dirtied, written, tick);
    }

    /// Pages of a file go to the disk.
    pub(super) fn count_out(&mut self, file: u32, pages: u32) {
        self.flushing.out[file as usize] += pages;
    }

    /// ... and are there. An interval after the last of a file's the bandwidth is estimated (`wb_inode_writeback_end`).
    pub(super) fn count_back(&mut self, file: u32, pages: u32) {
        let left = &mut self.flushing.out[file as usize];
        *left = left.saturating_sub(pages);
        if *left == 0 && !std::mem::replace(&mut self.flushing.counting, true) {
            let tick = self.now.0 / self.tick_ns() + self.flushing.estimator.interval();
            self.events.push(Nanos(tick * self.tick_ns()), Event::Estimate);
        }
    }

    /// That interval is over.
    pub(super) fn estimate_late(&mut self) {
        self.flushing.counting = false;
        let ((dirtied, written), tick) = (self.totals(), self.now.0 / self.tick_ns());
        self.flushing.estimator.update(None, dirtied, written, tick);
    }

    fn over_background(&self) -> bool {
        let l = self.levels();
        let dirty = self.mm.dirty_pages();
        if l.strict { dirty > l.dev_background } else { dirty > l.background }
    }

    /// Anything dirty, and when the oldest of it became so.
    fn oldest_dirty(&self) -> Option<Nanos> {
        self.mm.ws.as_ref()?.dirty.iter().filter(|d| d.0 > 0).map(|d| d.1).min()
    }

    /// The flusher.
    pub(super) fn step_flusher(&mut self, t: u32, at: Flush) -> Flow {
        let set = |sim: &mut Self, at| sim.tasks[t as usize].set_top(Frame::Flusher { at });
        match at {
            Flush::Idle => {
                let now = self.local_now();
                let interval = Nanos::from_millis(self.config.writeback.interval_ms);
                let oldest = self.oldest_dirty();
                let background = self.over_background();
                // Whoever wakes the flusher, once a period it looks for old data first (`wb_check_old_data_flush`).
                let due = interval > Nanos::ZERO && now >= self.flushing.last_periodic + interval;
                if due && oldest.is_some() {
                    self.flushing.last_periodic = now;
                    self.flushing.periodic = true;
                    self.flushing.wrote = true;
                    set(self, Flush::Next);
                    return Flow::Continue;
                }
                let stuck = std::mem::take(&mut self.flushing.fruitless);
                if stuck || oldest.is_none() || !(background || self.flushing.all) {
                    self.flushing.all &= stuck;
                    // Everything dirty is under write-out already: soon again; else at the next period.
                    let wait = if stuck { RETRY } else { interval };
                    if oldest.is_some() && (self.flushing.timer <= now || self.flushing.timer > now + wait) {
                        self.flushing.timer = now + wait;
                        self.events.push(now + wait, Event::Daemon(t));
                    }
                    return self.block_on(t, Wait::Daemon);
                }
                self.flushing.older_than = now;
                self.flushing.wrote = true;
                set(self, Flush::Next);
            }
            Flush::Next => {
                let Some(file) = self.next_file() else {
                    // One plug is around the whole round.
                    self.finish_plug(t);
                    if !std::mem::take(&mut self.flushing.periodic) {
                        self.flushing.all = false;
                    }
                    set(self, Flush::Idle);
                    return Flow::Continue;
                };
                self.estimate_begin();
                let bw = self.flushing.estimator.bandwidth();
                let share = (bw / 2).min(self.levels().thresh / 8);
                self.flushing.budget = (share + MIN_CHUNK) / MIN_CHUNK * MIN_CHUNK;
                self.flushing.wrapped = false;
                let f = &self.program.files[file as usize];
                let op = &mut self.tasks[t as usize].op;
                op.file = file;
                op.pos = u64::from(self.flushing.cursor[file as usize]);
                op.end = u64::from(f.pages);
                set(self, Flush::Write { file });
            }
            Flush::Write { file } => {
                if self.allocation_waits(t, file) {
                    return self.block_on(t, Wait::Journal);
                }
                if self.flushing.budget > 0 && self.write_next_run(t, file) {
                    return Flow::Continue;
                }
                let f = &self.program.files[file as usize];
                if self.flushing.budget > 0 && !self.flushing.wrapped {
                    // From the file's beginning to where this round began.
                    self.flushing.wrapped = true;
                    let op = &mut self.tasks[t as usize].op;
                    op.end = u64::from(self.flushing.cursor[file as usize].min(f.pages));
                    op.pos = 0;
                    return Flow::Continue;
                }
                self.flushing.cursor[file as usize] = self.tasks[t as usize].op.pos as u32;
                self.mm.names.set_inode_dirty(file, false);
                let left = self.mm.ws.as_ref().map_or(0, |w| w.dirty[file as usize].0);
                if left > 0 && self.flushing.budget == 0 {
                    self.flushing.more.push_back(file);
                }
                self.estimate_end();
                set(self, Flush::Next);
            }
        }
        Flow::Continue
    }

    /// The next file to write, while there is a reason to: files that were not finished, then those that became dirty
    /// before the time in question, oldest first.
    fn next_file(&mut self) -> Option<u32> {
        let now = self.local_now();
        let before = self.flushing.older_than;
        let dirty = &self.mm.ws.as_ref()?.dirty;
        // Whether there is still a reason is looked at between rounds, not between files. What is left keeps its place.
        let goes_on = !self.flushing.io.is_empty() && now < self.flushing.round + ROUND;
        if !goes_on {
            self.flushing.round = now;
        }
        let reason = self.flushing.periodic || self.flushing.all || self.over_background();
        if !goes_on && !reason {
            return None;
        }
        let f = &mut self.flushing;
        if f.io.is_empty() {
            if !std::mem::take(&mut f.wrote) {
                f.fruitless = !f.periodic;
                f.more.clear();
                return None;
            }
            // Unfinished files come first, however short a time they are dirty (`queue_io`).
            f.io.append(&mut f.more);
            let (limit, expire) = (self.now.max(before), Nanos::from_millis(self.config.writeback.expire_ms));
            let is_due = |since: Nanos| if f.periodic { since + expire <= now } else { since <= limit };
            let mut due: Vec<(Nanos, u32)> = (0u32..)
                .zip(dirty)
                .filter(|(i, d)| d.0 > 0 && is_due(d.1) && !f.io.contains(i))
                .map(|(i, d)| (d.1, i))
                .collect();
            due.sort_unstable();
            f.io.extend(due.into_iter().map(|(_, i)| i));
        }
        let mut skipped = false;
        while let Some(file) = f.io.pop_front() {
            // What the journal holds is written when it is committed, and after.
            let journalled =
                self.program.files[file as usize].kind != FileKind::Regular && self.journal.holds_blocks_of(file);
            if dirty[file as usize].0 > 0 && !journalled {
                return Some(file);
            }
            skipped |= dirty[file as usize].0 > 0;
        }
        f.fruitless |= skipped && !f.wrote && !f.periodic;
        None
    }

    /// The next page that the flusher would write has no place on the disk yet.
    fn lacks_blocks(&self, t: u32, file: u32) -> bool {
        let (first, op) = (self.program.files[file as usize].first_page, &self.tasks[t as usize].op);
        if !self.journal_is_writing() && !self.map_is_locked(file) {
            return false;
        }
        let mut ahead = (op.pos..op.end).map(|i| self.mm.page(first + i as u32));
        let next = ahead.find(|p| p.any(flag::BUF_DIRTY) && !p.any(flag::BUF_LOCKED));
        next.is_some_and(|p| !p.any(flag::ON_DISK))
    }

    /// Blocks have to be allocated for the file next, and cannot be now; the task is noted as waiting.
    fn allocation_waits(&mut self, t: u32, file: u32) -> bool {
        self.lacks_blocks(t, file) && (self.journal_holds(t, file, true) || self.map_holds(t, file))
    }

    /// Begin to write the next run of dirty pages of a file from the task's cursor (pages `pos .. end`) on; false if there
    /// is none.
    pub(super) fn write_next_run(&mut self, t: u32, file: u32) -> bool {
        let f = &self.program.files[file as usize];
        let (mut pos, end) = (self.tasks[t as usize].op.pos, self.tasks[t as usize].op.end);
        if self.mm.ws.as_ref().is_some_and(|w| w.dirty[file as usize].0 == 0) {
            return false;
        }
        let ready = |sim: &Self, at: u64| {
            let p = sim.mm.page(f.first_page + at as u32);
            p.any(flag::BUF_DIRTY) && !p.any(flag::BUF_LOCKED)
        };
        while pos < end && !ready(self, pos) {
            pos += 1;
        }
        let start = pos;
        let flusher = matches!(self.tasks[t as usize].chain()[0], Frame::Flusher { .. });
        let mut most = u64::from(self.config.writeback.balanced.extent_pages).clamp(1, 65_535);
        if flusher {
            most = most.min(self.flushing.budget);
        }
        let fresh = |sim: &Self, at: u64| !sim.mm.page(f.first_page + at as u32).any(flag::ON_DISK);
        let allocates = start < end && fresh(self, start);
        if allocates && f.kind == FileKind::Regular {
            let pages = self.files[file as usize].size.div_ceil(PAGE_BYTES);
            most = most.min(allocation_end(start, pages) - start);
        }
        while pos < end && pos - start < most && ready(self, pos) && fresh(self, pos) == allocates {
            let id = f.first_page + pos as u32;
            self.mm.begin_buffer_write(id);
            if allocates {
                self.mm.set(id, flag::ON_DISK);
                self.place(id);
            }
            pos += 1;
        }
        let end_of_run = pos;
        // The walk over dirty pages is ahead of what it submits: what becomes dirty behind the run meanwhile is not seen.
        while pos < end && !ready(self, pos) {
            pos += 1;
        }
        self.tasks[t as usize].op.pos = pos;
        let pos = end_of_run;
        if self.files[file as usize].size <= SMALL_BYTES || f.kind != FileKind::Regular {
            // Nothing is reserved beyond what is written.
            self.placement.discard(file, f.device);
        }
        if pos == start {
            return false;
        }
        let (first, pages) = (f.first_page + start as u32, (pos - start) as u32);
        if allocates {
            self.note_metadata(file, true, false);
            self.note_groups(first, pages);
        }
        self.begin_run(file, first, pages, allocates);
        if flusher {
            self.flushing.wrote = true;
            self.flushing.budget -= pos - start;
        }
        let kind = if f.kind == FileKind::Regular { BioKind::Data } else { BioKind::Meta };
        self.tasks[t as usize].push(Frame::SubmitRun {
            page: first,
            n: pages as u16,
            dir: Dir::Write,
            kind,
            waited: false,
        });
        true
    }

    /// fsync: write the file's dirty pages, wait for them, then for the journal's commit if its inode is part of it.
    pub(super) fn step_file_sync(&mut self, t: u32, file: u32, data_only: bool) -> Option<Flow> {
        let f = &self.program.files[file as usize];
        loop {
            let op = self.tasks[t as usize].op;
            match op.at {
                At::Begin if f.kind != FileKind::Regular && self.journals() => {
                    // Blocks of directories are the journal's: nothing but the commit puts them on the medium.
                    self.tasks[t as usize].op.at = At::Done;
                    if self.begin_commit(t, Some(file), data_only) {
                        return Some(Flow::Continue);
                    }
                    return self.wait_flush(t, f.device);
                }
                At::Begin => {
                    self.estimate_begin();
                    let op = &mut self.tasks[t as usize].op;
                    (op.pos, op.end, op.at) = (0, u64::from(f.pages), At::Second);
                }
                At::Second => {
                    if self.allocation_waits(t, file) {
                        return Some(self.block_on(t, Wait::Journal));
                    }
                    if self.write_next_run(t, file) {
                        return Some(Flow::Continue);
                    }
                    self.finish_plug(t);
                    // Dirtied again while under write-out: that write comes first.
                    let both = |id: &u32| self.mm.page(*id).has(flag::BUF_DIRTY | flag::BUF_LOCKED);
                    if let Some(page) = (f.first_page..f.first_page + f.pages).find(both) {
                        self.tasks[t as usize].op.pos = u64::from(page - f.first_page);
                        self.tasks[t as usize].push(Frame::WaitBuffer { page });
                        return Some(Flow::Continue);
                    }
                    self.estimate_end();
                    self.tasks[t as usize].op.at = At::Third;
                    self.tasks[t as usize].op.pos = 0;
                }
                At::Third => {
                    let mut pos = op.pos;
                    while pos < op.end && !self.mm.page(f.first_page + pos as u32).any(flag::BUF_LOCKED) {
                        pos += 1;
                    }
                    self.tasks[t as usize].op.pos = pos;
                    if pos == op.end {
                        self.tasks[t as usize].op.at = At::Done;
                        if self.begin_commit(t, Some(file), data_only) {
                            return Some(Flow::Continue);
                        }
                        return self.wait_flush(t, f.device);
                    }
                    self.tasks[t as usize].push(Frame::WaitBuffer { page: f.first_page + pos as u32 });
                    return Some(Flow::Continue);
                }
                At::Done => return None,
                at => unreachable!("an fsync is never at {at:?}"),
            }
        }
    }

    /// sync: every file like fsync, one commit at the end.
    pub(super) fn step_sync_all(&mut self, t: u32) -> Option<Flow> {
        let files = self.program.files.len() as u32;
        loop {
            let op = self.tasks[t as usize].op;
            match op.at {
                At::Begin => {
                    // First every file is written, then every file is waited for.
                    if op.file >= files {
                        self.finish_plug(t);
                        let op = &mut self.tasks[t as usize].op;
                        (op.at, op.file, op.pos) = (At::Third, 0, 0);
                        continue;
                    }
                    self.tasks[t as usize].op.end = u64::from(self.program.files[op.file as usize].pages);
                    if self.allocation_waits(t, op.file) {
                        return Some(self.block_on(t, Wait::Journal));
                    }
                    if self.write_next_run(t, op.file) {
                        return Some(Flow::Continue);
                    }
                    let op = &mut self.tasks[t as usize].op;
                    (op.file, op.pos) = (op.file + 1, 0);
                }
                At::Third => {
                    if self.mm.ws.as_ref().is_none_or(|w| w.writeback == 0) || op.file >= files {
                        self.tasks[t as usize].op.at = At::Done;
                        if self.begin_commit(t, None, false) {
                            return Some(Flow::Continue);
                        }
                        return None;
                    }
                    let f = &self.program.files[op.file as usize];
                    let ids = f.first_page + op.pos as u32..f.first_page + f.pages;
                    match ids.clone().find(|id| self.mm.page(*id).any(flag::BUF_LOCKED)) {
                        Some(page) => {
                            self.tasks[t as usize].op.pos = u64::from(page - f.first_page);
                            self.tasks[t as usize].push(Frame::WaitBuffer { page });
                            return Some(Flow::Continue);
                        }
                        None => {
                            let op = &mut self.tasks[t as usize].op;
                            (op.file, op.pos) = (op.file + 1, 0);
                        }
                    }
                }
                At::Done => return None,
                at => unreachable!("a sync is never at {at:?}"),
            }
        }
    }
}
