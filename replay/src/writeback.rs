//! Dirty limits and the choice of what to write: 2.4.5 to 2.4.17.
//!
//! Source: fs/buffer.c (`balance_dirty_state`, `write_some_buffers`, `wait_for_buffers`). Who writes and who waits is up to
//! the simulator's tasks (writers, bdflush, kupdate).

use crate::config::{DirtyBase, WritebackConfig};
use crate::mm::Mm;
use crate::mm::buffer::BufList;
use crate::mm::page::{NIL, flag};
use crate::mm::zone::{DMA, NORMAL};

/// Largest batch: NRSYNC is 32; `flush_dirty_buffers` of 2.4.5 to 2.4.7 takes 64 (ndirty).
pub const MAX_BATCH: usize = 64;

/// The levels of dirty memory at which something happens.
#[derive(Clone, Copy, Debug)]
pub struct DirtyLimits {
    /// Shares above which there is too much, and above which writers wait, percent.
    soft_pct: u64,
    hard_pct: u64,
    /// Down to which bdflush goes on, percent.
    stop_pct: u64,
    /// What the shares are of, pages; `None` if that changes while the machine runs.
    fixed_base: Option<u64>,
    base: DirtyBase,
    /// Locked buffers count.
    count_locked: bool,
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

/// Limits of a machine.
pub fn limits(cfg: &WritebackConfig, mm: &Mm) -> DirtyLimits {
    DirtyLimits {
        soft_pct: u64::from(cfg.soft_pct),
        hard_pct: u64::from(cfg.hard_pct),
        stop_pct: u64::from(cfg.stop_pct),
        fixed_base: match cfg.base {
            DirtyBase::LowMemory => Some(mm.zones.buffer_pages()),
            DirtyBase::FreeAndLists
            | DirtyBase::InactiveFloor
            | DirtyBase::InactiveByZone
            | DirtyBase::BuffersAndFree
            | DirtyBase::CacheAndFree => None,
        },
        base: cfg.base,
        count_locked: cfg.count_locked,
    }
}

impl DirtyLimits {
    /// `nr_free_buffer_pages`.
    #[inline]
    fn base(&self, mm: &Mm) -> u64 {
        if let Some(base) = self.fixed_base {
            return base;
        }
        let active = u64::from(mm.active.len());
        match self.base {
            DirtyBase::InactiveFloor => {
                let (_, _, high) = mm.free_marks();
                let have = mm.inactive_in(DMA) + mm.inactive_in(NORMAL);
                have.max(high + mm.inactive_target()) + active / 16
            }
            DirtyBase::InactiveByZone => {
                [DMA, NORMAL].into_iter().map(|z| mm.inactive_in(z).max(mm.zones.zone[z].high)).sum()
            }
            DirtyBase::BuffersAndFree => mm.meta_pages + mm.zones.free(),
            DirtyBase::CacheAndFree => mm.cache_pages + mm.zones.free_above_high(),
            DirtyBase::FreeAndLists | DirtyBase::LowMemory => mm.zones.free() + active + u64::from(mm.inactive.len()),
        }
    }
}

fn dirty_pages(mm: &Mm, limits: &DirtyLimits) -> u64 {
    let locked = if limits.count_locked { mm.bufs.len(BufList::Locked) } else { 0 };
    u64::from(mm.bufs.len(BufList::Dirty)) + u64::from(locked)
}

/// More dirty pages than the soft limit?
#[inline]
pub fn over_soft(mm: &Mm, limits: &DirtyLimits) -> bool {
    dirty_pages(mm, limits) * 100 > limits.base(mm) * limits.soft_pct
}

/// `balance_dirty_state`.
pub fn state(mm: &Mm, limits: &DirtyLimits) -> DirtyState {
    let (dirty, base) = (dirty_pages(mm, limits) * 100, limits.base(mm));
    match () {
        () if dirty > base * limits.hard_pct => DirtyState::Hard,
        () if dirty > base * limits.soft_pct => DirtyState::Soft,
        () => DirtyState::Fine,
    }
}

/// `bdflush_stop`: few enough buffers are dirty.
pub fn may_stop(mm: &Mm, limits: &DirtyLimits) -> bool {
    dirty_pages(mm, limits) * 100 <= limits.base(mm) * limits.stop_pct
}

/// `write_some_buffers`: take the oldest dirty buffers that are not locked, up to a batch, and begin to write them.
/// Returns how many were put into `batch`; a full batch means that there may be more.
///
/// With `due`, only buffers that are due at that tick are taken: as far as the list is ordered by age.
pub fn take_some(cfg: &WritebackConfig, mm: &mut Mm, batch: &mut [u32; MAX_BATCH], due: Option<u32>) -> usize {
    let want = (cfg.batch as usize).min(MAX_BATCH);
    let mut n = 0;
    let mut id = mm.bufs.first(BufList::Dirty);
    while id != NIL && n < want {
        if due.is_some_and(|now| mm.bufs.flush_at(id) > now) {
            break;
        }
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
