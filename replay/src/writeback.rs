//! Dirty limits and the choice of what to write: 2.4.8 to 2.4.17.
//!
//! Source: fs/buffer.c (`balance_dirty_state`, `write_some_buffers`, `wait_for_buffers`). Who writes and who waits is up to
//! the simulator's tasks (writers, bdflush, kupdate).

use crate::config::WritebackConfig;
use crate::mm::Mm;
use crate::mm::buffer::BufList;
use crate::mm::page::{NIL, flag};

/// Largest batch that `write_some_buffers` takes (NRSYNC).
pub const MAX_BATCH: usize = 32;

/// The levels of dirty memory at which something happens.
#[derive(Clone, Copy, Debug)]
pub struct DirtyLimits {
    /// Dirty pages above this are too many (soft limit).
    pub soft: u64,
    /// Writers wait above this (hard limit).
    pub hard: u64,
    /// Locked buffers count.
    pub count_locked: bool,
}

/// How dirty memory is, against the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirtyState {
    /// Below the soft limit.
    Fine,
    /// Above the soft limit.
    Soft,
    /// Above the hard limit.
    Hard,
}

/// Limits of a machine. 2.4.13 to 2.4.17 take percentages of low memory, which do not change while it runs.
pub fn limits(cfg: &WritebackConfig, mm: &Mm) -> DirtyLimits {
    let base = mm.zones.buffer_pages();
    DirtyLimits {
        soft: base * u64::from(cfg.soft_pct) / 100,
        hard: base * u64::from(cfg.hard_pct) / 100,
        count_locked: cfg.count_locked,
    }
}

fn dirty_pages(mm: &Mm, limits: &DirtyLimits) -> u64 {
    let locked = if limits.count_locked { mm.bufs.len(BufList::Locked) } else { 0 };
    u64::from(mm.bufs.len(BufList::Dirty)) + u64::from(locked)
}

/// More dirty pages than the soft limit?
#[inline]
pub fn over_soft(mm: &Mm, limits: &DirtyLimits) -> bool {
    dirty_pages(mm, limits) > limits.soft
}

/// `balance_dirty_state`.
pub fn state(mm: &Mm, limits: &DirtyLimits) -> DirtyState {
    match dirty_pages(mm, limits) {
        d if d > limits.hard => DirtyState::Hard,
        d if d > limits.soft => DirtyState::Soft,
        _ => DirtyState::Fine,
    }
}

/// `write_some_buffers`: take the oldest dirty buffers that are not locked, up to a batch, and begin to write them.
/// Returns how many were put into `batch`; a full batch means that there may be more.
pub fn take_some(cfg: &WritebackConfig, mm: &mut Mm, batch: &mut [u32; MAX_BATCH]) -> usize {
    let want = (cfg.batch as usize).min(MAX_BATCH);
    let mut n = 0;
    let mut id = mm.bufs.first(BufList::Dirty);
    while id != NIL && n < want {
        let next = mm.bufs.after(id);
        if !mm.page(id).any(flag::BUF_LOCKED) {
            mm.begin_buffer_write(id);
            batch[n] = id;
            n += 1;
        }
        id = next;
    }
    n
}

/// `wait_for_buffers` on the LOCKED list: refile what is done, return the first buffer still under I/O.
pub fn first_locked(mm: &mut Mm) -> Option<u32> {
    loop {
        let id = mm.bufs.first(BufList::Locked);
        if id == NIL {
            return None;
        }
        if mm.page(id).any(flag::BUF_LOCKED) {
            return Some(id);
        }
        refile(mm, id);
    }
}

/// Put a buffer on the list that its state says.
pub fn refile(mm: &mut Mm, id: u32) {
    let p = mm.page(id);
    let to = match () {
        () if p.any(flag::BUF_DIRTY) => BufList::Dirty,
        () if p.any(flag::BUF_LOCKED) => BufList::Locked,
        () => BufList::Clean,
    };
    mm.bufs.refile(id, to);
}
