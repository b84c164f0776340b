//! Active and inactive list without ages: 2.4.10 to 2.4.17, vm-tweaks, and A. Arcangeli's VM (-aa, merged in 2.4.23).
//!
//! Source: mm/vmscan.c (`shrink_caches`, `refill_inactive`, `shrink_cache`), fs/buffer.c (`try_to_free_buffers`,
//! `sync_page_buffers`). What the versions differ in is in [`ReclaimConfig`]. Meant to show, of 2.4.14 and later: swapping begins
//! only after a pass met enough mapped pages; anonymous pages compete on the inactive list; the active list is left alone
//! when it is small against the inactive one. Of all: dirty file pages need two trips round the list before reclaim itself
//! writes them.
//! Left out: rescheduling inside the scan, slab reaping (slab here has no empty pages to reap), highmem.

use super::buffers::{Buffers, release_busy, try_to_free_buffers, wait_for, wake_bdflush_if_dirty};
use super::{Cursor, Looked, Need, Phase};
use crate::config::{MaxMapped, OomRule, ReclaimConfig, RefillRule, ScanBudget};
use crate::mm::Mm;
use crate::mm::page::{List, NIL, flag};
use crate::mm::zone::Zones;
use crate::writeback::DirtyLimits;

pub(super) fn step(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, limits: &DirtyLimits) -> Need {
    loop {
        match cur.phase {
            Phase::Pass => {
                begin_pass(cfg, mm, cur);
                cur.phase = Phase::Scan;
            }
            Phase::Scan => {
                if let Some(need) = scan(cfg, mm, cur, limits) {
                    return need;
                }
                if cur.want <= 0 {
                    return Need::Done(true);
                }
                end_pass(cfg, mm, cur);
            }
            Phase::Written | Phase::Waited => {
                mm.page_mut(cur.page).pins -= 1;
                let p = mm.page(cur.page);
                if p.has(flag::ORPHAN | flag::ANON) && p.pins == 0 && !p.any(flag::LOCKED) {
                    mm.forget(cur.page);
                }
                cur.phase = Phase::Scan;
            }
            Phase::BufferWritten => {
                wake_bdflush_if_dirty(mm, limits);
                release_busy(mm, cur);
            }
            Phase::BufferWaited | Phase::BufferWrittenOut => {
                // Once waited for, the buffer is tried again, this time without I/O.
                if mm.page(cur.page).buffer_busy() {
                    wake_bdflush_if_dirty(mm, limits);
                    release_busy(mm, cur);
                } else {
                    mm.page_mut(cur.page).pins -= 1;
                    mm.drop_buffer(cur.page);
                    cur.phase = Phase::Scan;
                    if !finish_page(cfg, mm, cur, cur.page) {
                        return Need::Done(true);
                    }
                    if cur.phase == Phase::Pass {
                        end_pass(cfg, mm, cur);
                    }
                }
            }
            Phase::InodesWritten | Phase::Failed => return Need::Done(cur.unmapped),
        }
        if cur.phase == Phase::Failed && cfg.oom == OomRule::Failures {
            return Need::OutOfMemory;
        }
    }
}

fn begin_pass(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) {
    if !cfg.want_carried {
        cur.want = i64::from(cfg.cluster);
    }
    if cfg.passes.names_first {
        shrink_names(cfg, mm, cur);
    }
    let before = i64::from(mm.inactive.len());
    refill(cfg, mm, cur);
    cur.scans = 0;
    begin_scan(cfg, mm, cur, before);
}

/// Budgets of a scan, which begins; `before` is the inactive list's length before the refill.
pub(crate) fn begin_scan(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, before: i64) {
    mm.counters.shrink_calls += 1;
    cur.scans += 1;
    let after = i64::from(mm.inactive.len());
    let priority = i64::from(cur.priority);
    let ratio = i64::from(cfg.passes.scan_ratio);
    cur.scan_left = match cfg.scan_budget {
        ScanBudget::BeforeRefill => before / priority,
        ScanBudget::AfterRefill => after / priority,
        ScanBudget::Mapped => 2 * after,
        ScanBudget::Share => after / ratio,
        ScanBudget::ShareOfBoth => (after + i64::from(mm.active.len())) / ratio,
    };
    cur.mapped_left = match cfg.max_mapped {
        MaxMapped::Ignore | MaxMapped::Activate => i64::MAX,
        MaxMapped::Share => after / priority,
        MaxMapped::Shift9 => cur.want << (9 - priority),
        MaxMapped::Shift10Tenth => (cur.want << (10 - priority)).min(cur.scan_left / 10),
        MaxMapped::Ratio => cur.want * i64::from(cfg.passes.mapped_ratio),
    };
    if cfg.max_mapped == MaxMapped::Share && cur.mapped_left == 0 {
        cur.scan_left = 0;
    }
}

/// A scan is over without success: another one of the same pass, or the pass is over as well: shrink the name caches, unmap
/// pages where the kernel does so here, go on with more pressure.
fn end_pass(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) {
    if cur.scans < cfg.passes.scans {
        let length = i64::from(mm.inactive.len());
        begin_scan(cfg, mm, cur, length);
        cur.phase = Phase::Scan;
        return;
    }
    if !cfg.passes.names_first {
        shrink_names(cfg, mm, cur);
    }
    if cfg.swap_out_pages > 0 {
        unmap(cfg, mm, cur, cfg.swap_out_pages);
    }
    cur.passes += 1;
    let over = match cfg.passes.count {
        0 => {
            cur.priority -= 1;
            cur.priority == 0
        }
        n => cur.passes >= n,
    };
    cur.phase = if over { Phase::Failed } else { Phase::Pass };
}

fn shrink_names(cfg: &ReclaimConfig, mm: &mut Mm, cur: &Cursor) {
    if cur.flags.fs {
        mm.shrink_names(if cfg.dcache_divisor == 0 { cur.priority } else { cfg.dcache_divisor });
    }
}

/// `swap_out`, and what its success or failure means for the run.
fn unmap(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, pages: u32) {
    if cur.unmap_failed {
        return;
    }
    let out = mm.swap_out(cfg, pages, cur.priority, cur.class);
    cur.scanned += out.looked_at;
    if cfg.passes.unmap_fails_once {
        cur.unmap_failed = !out.satisfied;
    } else if cfg.swap_out_pages > 0 {
        cur.unmapped |= out.satisfied;
    }
}

/// Looks at as many active pages as the variant's rule says.
fn refill(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) {
    if let Some(n) = refill_share(cfg, mm, cur.want) {
        refill_inactive(cfg, mm, cur, n);
    }
}

/// How many active pages are looked at or moved, by the variant's rule; `None`: the active list is left alone.
pub(crate) fn refill_share(cfg: &ReclaimConfig, mm: &Mm, want: i64) -> Option<i64> {
    let (active, inactive) = (i64::from(mm.active.len()), i64::from(mm.inactive.len()));
    match cfg.refill {
        RefillRule::WhenShort => (inactive < 2 * active).then_some(want),
        RefillRule::Proportional => Some(want * active / ((inactive + 1) * 2)),
        RefillRule::ProportionalMoved => match want * active / ((inactive + 1) * 2) {
            0 => Some(want),
            n => Some(n),
        },
        RefillRule::Moved => Some(want * active / (inactive * 2 + 1)),
        RefillRule::MovedUnmapped => Some((want * active / (inactive * 2 + 1)).min(want)),
    }
}

/// `refill_inactive`: referenced pages go round once more, others move to the inactive list.
fn refill_inactive(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, mut n: i64) {
    mm.counters.refill_calls += 1;
    let mut id = mm.active.tail();
    let mut left = mm.active.len();
    while n > 0 && id != NIL && left > 0 {
        left -= 1;
        cur.scanned += 1;
        let towards_head = mm.page(id).prev;
        n -= refill_one(cfg, mm, cur.class, id);
        id = towards_head;
    }
}

/// The loop body of `refill_inactive`: one active page. What it costs of the pages to look at, or to move.
pub(crate) fn refill_one(cfg: &ReclaimConfig, mm: &mut Mm, class: usize, id: u32) -> i64 {
    let counts_moves = !matches!(cfg.refill, RefillRule::WhenShort | RefillRule::Proportional);
    let p = *mm.page(id);
    if p.any(flag::REFERENCED) {
        mm.clear(id, flag::REFERENCED);
        mm.active.rotate(&mut mm.pages, id);
        return i64::from(!counts_moves);
    }
    if cfg.refill == RefillRule::MovedUnmapped
        && (!Zones::in_class(p.zone, class) || (!p.any(flag::BUFFER) && (p.in_use() || !p.has_mapping())))
    {
        // Left where it is; the list's beginning moves to where the walk stops, so it comes last next time.
        mm.active.rotate(&mut mm.pages, id);
        return 0;
    }
    mm.deactivate(id);
    if cfg.refill_marks {
        mm.set(id, flag::REFERENCED);
    }
    1
}

/// `shrink_cache` from where it stands to the end of the pass (`None`) or to something that takes time.
fn scan(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, limits: &DirtyLimits) -> Option<Need> {
    loop {
        match scan_one(cfg, mm, cur, limits) {
            Looked::On => {}
            Looked::Over => return None,
            Looked::Needs(need) => return Some(need),
        }
    }
}

/// The loop body of `shrink_cache`: the page at the inactive list's tail.
pub(crate) fn scan_one(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, limits: &DirtyLimits) -> Looked {
    let id = mm.inactive.tail();
    if cur.scan_left <= 0 || id == NIL {
        return Looked::Over;
    }
    cur.scanned += 1;
    mm.inactive.rotate(&mut mm.pages, id);
    if cfg.scan_clears_referenced && mm.page(id).any(flag::REFERENCED) {
        mm.clear(id, flag::REFERENCED);
        return Looked::On;
    }
    if cfg.passes.scan_unmarks {
        mm.clear(id, flag::REFERENCED);
    }
    cur.scan_left -= 1;
    let p = *mm.page(id);
    if !Zones::in_class(p.zone, cur.class) {
        return Looked::On;
    }
    if !p.any(flag::BUFFER) && (p.in_use() || !p.has_mapping()) {
        return if met_mapped(cfg, mm, cur, id) { Looked::On } else { Looked::Over };
    }
    if p.any(flag::LOCKED) {
        if cfg.wait_laundered && p.any(flag::LAUNDER) && cur.flags.fs {
            return Looked::Needs(wait_for(mm, cur, id, Phase::Waited, Need::WaitPage(id)));
        }
        return Looked::On;
    }
    if p.any(flag::DIRTY) && !p.in_use() && p.has_mapping() && cur.flags.fs {
        mm.clear(id, flag::DIRTY);
        mm.lock(id);
        mm.set(id, flag::LAUNDER);
        mm.counters.laundered_pages += 1;
        return Looked::Needs(wait_for(mm, cur, id, Phase::Written, Need::WritePage(id)));
    }
    if p.any(flag::BUFFER) {
        match try_to_free_buffers(cfg.buffer_wait, mm, cur.flags, id) {
            Buffers::Dropped => {}
            Buffers::Busy => {
                wake_bdflush_if_dirty(mm, limits);
                return Looked::On;
            }
            Buffers::Write => {
                mm.lock(id);
                mm.begin_buffer_write(id);
                mm.set(id, flag::BUF_LAUNDER | flag::BUF_WAIT);
                mm.counters.laundered_pages += 1;
                return Looked::Needs(wait_for(mm, cur, id, Phase::BufferWritten, Need::WriteBuffer(id)));
            }
            Buffers::Wait => {
                mm.lock(id);
                return Looked::Needs(wait_for(mm, cur, id, Phase::BufferWaited, Need::WaitBuffer(id)));
            }
        }
    }
    mm.lock(id);
    if !finish_page(cfg, mm, cur, id) || cur.phase == Phase::Pass { Looked::Over } else { Looked::On }
}

/// Last tests on a locked page without buffers, then free it. False when the run has all it wants; the phase becomes
/// [`Phase::Pass`] when the pass ends because it met too many mapped pages.
fn finish_page(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, id: u32) -> bool {
    mm.unlock(id);
    let p = *mm.page(id);
    if p.in_use() || !p.has_mapping() {
        if !met_mapped(cfg, mm, cur, id) {
            cur.phase = Phase::Pass;
        }
        return true;
    }
    if p.any(flag::DIRTY) {
        return true;
    }
    let zone = if p.any(flag::SWAP_CACHE) {
        mm.remove_from_swap_cache(id);
        mm.remove_anon(id)
    } else {
        mm.remove_from_page_cache(id)
    };
    cur.freed(mm, id, zone)
}

/// Another mapped page: false if it was one too many, which ends the pass.
fn met_mapped(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, id: u32) -> bool {
    match cfg.max_mapped {
        MaxMapped::Ignore => true,
        MaxMapped::Activate => {
            if mm.page(id).list == List::Inactive {
                mm.activate(id);
            }
            true
        }
        MaxMapped::Share => {
            cur.mapped_left -= 1;
            cur.mapped_left > 0
        }
        MaxMapped::Shift9 | MaxMapped::Shift10Tenth => {
            cur.mapped_left -= 1;
            if cur.mapped_left >= 0 {
                return true;
            }
            let out = mm.swap_out(cfg, cfg.cluster, cur.priority, cur.class);
            cur.scanned += out.looked_at;
            false
        }
        MaxMapped::Ratio => {
            cur.mapped_left -= 1;
            if cur.mapped_left < 0 {
                if cfg.passes.mapped_shrinks_names {
                    shrink_names(cfg, mm, cur);
                }
                unmap(cfg, mm, cur, cfg.cluster);
                cur.mapped_left = cur.want * i64::from(cfg.passes.mapped_ratio);
                if cfg.passes.mapped_refills {
                    refill(cfg, mm, cur);
                }
            }
            true
        }
    }
}
