//! Reclaim by generations (multi-generational LRU): one run over one lruvec.
//!
//! Source: mm/vmscan.c of 6.1 to 6.18 (`lru_gen_shrink_lruvec`, `get_nr_to_scan`, `should_run_aging`, `evict_folios`,
//! `scan_folios`, `sort_folio`, `isolate_folio`). Meant to show: pages used once through descriptors leave in the order in
//! which they came; pages of a tier that refaults more than those used once are protected; pages that page tables use stay
//! young. What is evicted first, files or anonymous memory, is decided by refaults.
//! Left out: batches of isolated pages (a page is judged where it stands), the Bloom filters and the neighbours of the
//! page-table walk (every accessed bit is found when a generation begins, others at the tail), memory groups' own
//! generations, `min_ttl_ms`.

use super::workingset::{end_shrinkers, free, judge_anon, passes};
use super::{Cursor, Need, Phase};
use crate::config::ReclaimConfig;
use crate::mm::Mm;
use crate::mm::generations::{BATCH, LARGE_BATCH, Place, tier_of, uses};
use crate::mm::page::{NIL, flag};
use crate::mm::workingset::{ANON, FILE};

/// Batch in hand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch {
    /// Kind of pages, highest tier that is evicted, and whether the other kind was tried.
    kind: usize,
    tier: usize,
    second: bool,
    /// Anonymous pages may be evicted.
    anon: bool,
    /// Pages looked at and isolated; of those looked at, dirty ones that nobody writes.
    looked: u64,
    isolated: u64,
    dirty: u64,
    open: bool,
}

pub(super) fn step(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Need {
    passes(cfg, mm, cur, begin_pass, scan, end_pass)
}

/// Anonymous pages may be evicted.
fn swaps(cfg: &ReclaimConfig, mm: &Mm) -> bool {
    mm.ws.as_ref().is_some_and(|w| w.swap) && mm.swap.free() > 0 && cfg.workingset.swappiness > 0
}

/// `get_nr_to_scan`.
fn begin_pass(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) {
    mm.counters.shrink_calls += 1;
    let (anon, p) = (swaps(cfg, mm), cur.priority - 1);
    let first = p == cfg.def_priority;
    if let Some(g) = mm.generations() {
        g.advance_oldest(anon);
    }
    let total = mm.generations().and_then(|g| g.to_scan(anon, first));
    if total.is_none() && !first {
        mm.counters.refill_calls += 1;
        mm.begin_generation();
    }
    cur.run.left = [total.unwrap_or(0) >> p, 0, 0, 0];
    cur.generation_batch = Batch { anon, ..Batch::default() };
}

/// `evict_folios` until enough was looked at or freed; `None` at the end of the pass.
fn scan(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Option<Need> {
    loop {
        if !cur.generation_batch.open {
            if cur.run.left[0] == 0 || cur.run.reclaimed >= cur.run.goal {
                return None;
            }
            let g = mm.generations()?;
            let anon = cur.generation_batch.anon;
            let kind = g.first_kind(if anon { u64::from(cfg.workingset.swappiness) } else { 0 });
            cur.generation_batch = Batch { kind, tier: g.evictable_tier(kind), open: true, anon, ..Batch::default() };
        }
        let b = cur.generation_batch;
        let id = match mm.generations() {
            Some(g) if g.has_cold(b.kind) => g.oldest(b.kind),
            _ => NIL,
        };
        if id == NIL || b.looked >= LARGE_BATCH || b.isolated >= BATCH {
            if let Some(need) = end_batch(cfg, mm, cur) {
                return Some(need);
            }
            continue;
        }
        if let Some(need) = judge(mm, cur, id) {
            return Some(need);
        }
    }
}

/// The batch is through: where nothing was found the other kind is tried, once.
fn end_batch(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Option<Need> {
    let b = &mut cur.generation_batch;
    let anon = b.anon;
    if b.looked == 0 {
        let other = if b.kind == FILE { ANON } else { FILE };
        if b.second || other == ANON && !anon {
            // Out of cold pages.
            b.open = false;
            cur.run.left[0] = 0;
            return None;
        }
        let tier = mm.generations().map_or(0, |g| g.evictable_tier(other));
        *b = Batch { kind: other, tier, second: true, open: true, anon, ..Batch::default() };
        return None;
    }
    let only_dirty = b.dirty == b.looked;
    cur.run.left[0] = cur.run.left[0].saturating_sub(b.looked);
    b.open = false;
    if let Some(g) = mm.generations() {
        g.advance_oldest(anon);
    }
    (only_dirty && cfg.workingset.throttle_ms > 0).then_some(Need::Throttle)
}

/// One page at the tail of an oldest generation.
fn judge(mm: &mut Mm, cur: &mut Cursor, id: u32) -> Option<Need> {
    let p = *mm.page(id);
    cur.scanned += 1;
    cur.generation_batch.looked += 1;
    if let Some(ws) = &mut mm.ws {
        ws.scanned[usize::from(!p.any(flag::ANON))] += 1;
    }
    if tier_of(uses(&p)) > cur.generation_batch.tier {
        mm.protect(id);
        return None;
    }
    let under_io = p.any(flag::BUF_LOCKED) || p.has(flag::SWAP_CACHE | flag::LOCKED);
    if !p.any(flag::ANON) && p.any(flag::PTE_DIRTY) {
        mm.clear(id, flag::PTE_DIRTY);
        mm.dirty_buffer(id, 0);
    }
    let dirty = !p.any(flag::ANON) && mm.page(id).any(flag::BUF_DIRTY);
    if under_io || dirty {
        cur.generation_batch.dirty += u64::from(dirty && !under_io);
        mm.set(id, flag::RECLAIM);
        mm.regenerate(id, Place::Second { tail: false });
        return None;
    }
    if p.any(flag::LOCKED) || p.pins > 0 {
        mm.regenerate(id, Place::Second { tail: false });
        return None;
    }
    cur.generation_batch.isolated += 1;
    if p.any(flag::YOUNG) {
        mm.clear(id, flag::YOUNG);
        mm.move_to_active(id);
        mm.counters.activated_pages += 1;
        return None;
    }
    if p.any(flag::ANON) {
        return judge_anon(mm, cur, id);
    }
    mm.clear(id, flag::REFERENCED | flag::MAPPED | flag::RECLAIM);
    if p.any(flag::BUFFER) {
        mm.drop_buffer(id);
    }
    mm.leave_shadow(id);
    let zone = mm.remove_from_page_cache(id);
    free(mm, cur, id, zone);
    None
}

/// The pass is over: the run is, too, if it freed enough or all priorities were tried.
fn end_pass(mm: &mut Mm, cur: &mut Cursor) -> Option<bool> {
    end_shrinkers(mm, cur);
    if cur.run.reclaimed < cur.run.goal && cur.priority > 1 {
        cur.priority -= 1;
        cur.phase = Phase::Pass;
        return None;
    }
    cur.phase = Phase::Failed;
    Some(cur.run.reclaimed > 0)
}
