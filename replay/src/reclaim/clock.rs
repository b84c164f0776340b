//! The clock of 2.2: a hand over all frames, then unmapping from the largest process.
//!
//! Source: mm/vmscan.c (`try_to_free_pages`, `swap_out`), mm/filemap.c (`shrink_mmap`), fs/buffer.c
//! (`try_to_free_buffers`, `sync_page_buffers`) of 2.2.20. Left out: System V shared memory, slab reaping, giving up the
//! processor in the middle of a scan.

use super::buffers::wait_for;
use super::{Cursor, Need, Phase, buffers};
use crate::config::ReclaimConfig;
use crate::mm::Mm;
use crate::mm::page::{NIL, flag};
use crate::writeback::DirtyLimits;

/// `Cursor::round` while the hand goes round, and while processes are unmapped.
const HAND: u32 = 0;
const UNMAP: u32 = 1;
/// Tasks that every machine has: idle, init, kflushd, kupdate, kswapd.
const SYSTEM_TASKS: u32 = 5;

/// What the hand came to.
enum Hand {
    /// This page's frame, of this zone.
    Freed(u32, usize),
    Write(u32),
    WritePage(u32),
    Nothing,
}

pub(super) fn step(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, limits: &DirtyLimits) -> Need {
    loop {
        match cur.phase {
            Phase::Pass => {
                cur.round = HAND;
                cur.scan_left = budget(mm, cur);
                mm.counters.shrink_calls += 1;
                cur.phase = Phase::Scan;
            }
            Phase::Scan if cur.round == HAND => match go_round(mm, cur, limits) {
                Hand::Freed(id, zone) => {
                    if !cur.freed(mm, id, zone) {
                        return Need::Done(true);
                    }
                    cur.scan_left = budget(mm, cur);
                }
                Hand::Write(id) => {
                    mm.begin_buffer_write(id);
                    mm.counters.laundered_pages += 1;
                    return wait_for(mm, cur, id, Phase::BufferWritten, Need::WriteBuffer(id));
                }
                Hand::WritePage(id) => {
                    mm.clear(id, flag::DIRTY);
                    mm.lock(id);
                    mm.counters.laundered_pages += 1;
                    return wait_for(mm, cur, id, Phase::Written, Need::WritePage(id));
                }
                Hand::Nothing => cur.round = UNMAP,
            },
            Phase::Scan => {
                if let Some(id) = swap_out(mm, cur) {
                    mm.counters.laundered_pages += 1;
                    return wait_for(mm, cur, id, Phase::Written, Need::WritePage(id));
                }
                if cur.flags.io {
                    // At the last priority all of them.
                    mm.shrink_names(if cur.priority > 1 { cfg.dcache_divisor.max(cur.priority) } else { 1 });
                }
                if cur.priority == 1 {
                    return Need::Done(false);
                }
                cur.priority -= 1;
                cur.phase = Phase::Pass;
            }
            Phase::BufferWritten => {
                mm.page_mut(cur.page).pins -= 1;
                buffers::wake_bdflush_if_dirty(mm, limits);
                cur.phase = Phase::Scan;
            }
            Phase::Written => {
                mm.page_mut(cur.page).pins -= 1;
                cur.phase = Phase::Scan;
                cur.want -= i64::from(cur.round == UNMAP);
                if cur.want <= 0 {
                    return Need::Done(true);
                }
            }
            Phase::Waited | Phase::BufferWaited | Phase::BufferWrittenOut | Phase::InodesWritten | Phase::Failed => {
                return Need::Done(false);
            }
        }
    }
}

/// Frames that a search for one page looks at.
fn budget(mm: &Mm, cur: &Cursor) -> i64 {
    i64::from(mm.clock.as_ref().map_or(0, crate::mm::clock::Clock::frames) / cur.priority.max(1))
}

/// `shrink_mmap`: until one page is free, or a buffer has to be written, or the budget is used up.
fn go_round(mm: &mut Mm, cur: &mut Cursor, limits: &DirtyLimits) -> Hand {
    while cur.scan_left > 0 {
        let Some(clock) = &mut mm.clock else { return Hand::Nothing };
        let id = clock.advance();
        cur.scan_left -= 1;
        cur.scanned += 1;
        if id == NIL {
            continue;
        }
        let p = *mm.page(id);
        let buffer = p.any(flag::META) || mm.is_twin(id);
        // Only pages with one user: the cache, or else the process.
        let mapped = p.any(flag::MAPPED | flag::SHARED_MAP) && p.has_mapping();
        if !buffer && (mapped || p.pins > 0 || p.any(flag::LOCKED)) {
            continue;
        }
        let referenced = p.any(flag::REFERENCED);
        mm.clear(id, flag::REFERENCED);
        if p.any(flag::SWAP_CACHE) {
            // A process still refers to the slot: then a use spares the page once.
            if referenced && p.any(flag::SWAPPED | flag::SHARED) {
                continue;
            }
            mm.remove_from_swap_cache(id);
            return Hand::Freed(id, mm.remove_anon(id));
        }
        if referenced || p.any(flag::ANON) {
            continue;
        }
        if buffer {
            if mm.buffers_under_min() {
                continue;
            }
            if !p.buffer_busy() && p.pins == 0 && !p.any(flag::LOCKED) {
                if p.any(flag::BUFFER) {
                    mm.drop_buffer(id);
                }
                return Hand::Freed(id, mm.remove_from_page_cache(id));
            }
            if cur.flags.io && p.any(flag::BUF_DIRTY) {
                // The second time round it is written.
                if p.any(flag::BUF_WAIT) && !p.any(flag::BUF_LOCKED) {
                    return Hand::Write(id);
                }
                mm.set(id, flag::BUF_WAIT);
            }
            buffers::wake_bdflush_if_dirty(mm, limits);
            continue;
        }
        if p.any(flag::DIRTY) {
            // Dirtied through a mapping that is gone. (The kernel writes such pages into the buffer cache as it unmaps them.)
            if cur.flags.io {
                return Hand::WritePage(id);
            }
            continue;
        }
        if !mm.page_cache_under_min() && !p.any(flag::ORPHAN) {
            return Hand::Freed(id, mm.remove_from_page_cache(id));
        }
    }
    Hand::Nothing
}

/// `swap_out`: the process with most pages left to look at, until one of its pages has to be written, which is returned,
/// locked.
fn swap_out(mm: &mut Mm, cur: &mut Cursor) -> Option<u32> {
    mm.counters.swap_out_calls += 1;
    let mut rounds = ((mm.spaces.living() + SYSTEM_TASKS) / cur.priority.max(1)).max(1) + 1;
    let mut refreshed = false;
    while rounds > 0 {
        let Some(space) = mm.spaces.largest() else {
            if std::mem::replace(&mut refreshed, true) {
                return None;
            }
            mm.spaces.refresh_counts();
            continue;
        };
        rounds -= 1;
        let (found, looked_at) = mm.swap_out_process(space, cur.flags);
        cur.scanned += looked_at;
        if found.is_some() {
            return found;
        }
    }
    None
}
