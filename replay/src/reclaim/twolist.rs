//! Active and inactive list without ages: 2.4.10 to 2.4.17, and vm-tweaks.
//!
//! Source: mm/vmscan.c (`shrink_caches`, `refill_inactive`, `shrink_cache`), fs/buffer.c (`try_to_free_buffers`,
//! `sync_page_buffers`). What the versions differ in is in [`ReclaimConfig`]. Meant to show, of 2.4.14 and later: swapping begins
//! only after a pass met enough mapped pages; anonymous pages compete on the inactive list; the active list is left alone
//! when it is small against the inactive one. Of all: dirty file pages need two trips round the list before reclaim itself
//! writes them.
//! Left out: rescheduling inside the scan, slab reaping (slab here has no empty pages to reap), highmem.

use super::buffers::{Buffers, release_busy, try_to_free_buffers, wait_for, wake_bdflush_if_dirty};
use super::{Cursor, Need, Phase};
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
                cur.phase = Phase::Scan;
            }
            Phase::BufferWritten => {
                wake_bdflush_if_dirty(mm, limits);
                release_busy(mm, cur);
            }
            Phase::BufferWaited => {
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
            Phase::Failed => return Need::Done(cur.unmapped),
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
    let (active, before) = (i64::from(mm.active.len()), i64::from(mm.inactive.len()));
    match cfg.refill {
        RefillRule::Proportional => refill_inactive(cfg, mm, cur, cur.want * active / ((before + 1) * 2)),
        RefillRule::WhenShort if before < 2 * active => refill_inactive(cfg, mm, cur, cur.want),
        RefillRule::WhenShort => {}
    }
    mm.counters.shrink_calls += 1;
    let after = i64::from(mm.inactive.len());
    let priority = i64::from(cur.priority);
    cur.scan_left = match cfg.scan_budget {
        ScanBudget::BeforeRefill => before / priority,
        ScanBudget::AfterRefill => after / priority,
        ScanBudget::Mapped => 2 * after,
    };
    let def = i64::from(cfg.def_priority) + 3;
    cur.mapped_left = match cfg.max_mapped {
        MaxMapped::Ignore | MaxMapped::Activate => i64::MAX,
        MaxMapped::Share => after / priority,
        MaxMapped::Shift9 => cur.want << (def - priority),
        MaxMapped::Shift10Tenth => (cur.want << (def + 1 - priority)).min(cur.scan_left / 10),
    };
    if cfg.max_mapped == MaxMapped::Share && cur.mapped_left == 0 {
        cur.scan_left = 0;
    }
}

/// The pass is over without success: shrink the name caches, unmap pages where the kernel does so here, go on with more
/// pressure.
fn end_pass(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) {
    if cur.flags.fs {
        let divisor = if cfg.dcache_divisor == 0 { cur.priority } else { cfg.dcache_divisor };
        mm.shrink_names(divisor);
    }
    if cfg.swap_out_pages > 0 {
        let out = mm.swap_out(cfg, cfg.swap_out_pages, cur.priority, cur.class);
        cur.scanned += out.looked_at;
        cur.unmapped |= out.satisfied;
    }
    cur.priority -= 1;
    cur.phase = if cur.priority == 0 { Phase::Failed } else { Phase::Pass };
}

/// `refill_inactive`: referenced pages go round once more, others move to the inactive list.
fn refill_inactive(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, mut n: i64) {
    mm.counters.refill_calls += 1;
    let mut id = mm.active.tail();
    while n > 0 && id != NIL {
        n -= 1;
        cur.scanned += 1;
        let towards_head = mm.page(id).prev;
        if mm.page(id).any(flag::REFERENCED) {
            mm.clear(id, flag::REFERENCED);
            mm.active.rotate(&mut mm.pages, id);
        } else {
            mm.deactivate(id);
            if cfg.refill_marks {
                mm.set(id, flag::REFERENCED);
            }
        }
        id = towards_head;
    }
}

/// `shrink_cache` from where it stands to the end of the pass (`None`) or to something that takes time.
fn scan(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, limits: &DirtyLimits) -> Option<Need> {
    loop {
        let id = mm.inactive.tail();
        if cur.scan_left <= 0 || id == NIL {
            return None;
        }
        cur.scanned += 1;
        mm.inactive.rotate(&mut mm.pages, id);
        if cfg.scan_clears_referenced && mm.page(id).any(flag::REFERENCED) {
            mm.clear(id, flag::REFERENCED);
            continue;
        }
        cur.scan_left -= 1;
        let p = *mm.page(id);
        if !Zones::in_class(p.zone, cur.class) {
            continue;
        }
        if !p.any(flag::BUFFER) && (p.in_use() || !p.has_mapping()) {
            if !met_mapped(cfg, mm, cur, id) {
                return None;
            }
            continue;
        }
        if p.any(flag::LOCKED) {
            if cfg.wait_laundered && p.any(flag::LAUNDER) && cur.flags.fs {
                return Some(wait_for(mm, cur, id, Phase::Waited, Need::WaitPage(id)));
            }
            continue;
        }
        if p.any(flag::DIRTY) && !p.in_use() && p.has_mapping() && cur.flags.fs {
            mm.clear(id, flag::DIRTY);
            mm.lock(id);
            mm.set(id, flag::LAUNDER);
            mm.counters.laundered_pages += 1;
            return Some(wait_for(mm, cur, id, Phase::Written, Need::WritePage(id)));
        }
        if p.any(flag::BUFFER) {
            match try_to_free_buffers(cfg.buffer_wait, mm, cur.flags, id) {
                Buffers::Dropped => {}
                Buffers::Busy => {
                    wake_bdflush_if_dirty(mm, limits);
                    continue;
                }
                Buffers::Write => {
                    mm.lock(id);
                    mm.begin_buffer_write(id);
                    mm.set(id, flag::BUF_LAUNDER | flag::BUF_WAIT);
                    mm.counters.laundered_pages += 1;
                    return Some(wait_for(mm, cur, id, Phase::BufferWritten, Need::WriteBuffer(id)));
                }
                Buffers::Wait => {
                    mm.lock(id);
                    return Some(wait_for(mm, cur, id, Phase::BufferWaited, Need::WaitBuffer(id)));
                }
            }
        }
        mm.lock(id);
        if !finish_page(cfg, mm, cur, id) || cur.phase == Phase::Pass {
            return None;
        }
    }
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
    cur.freed(mm, zone)
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
    }
}
