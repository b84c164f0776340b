//! Active and inactive lists of file and of anonymous pages, with refault detection: one run over one lruvec.
//!
//! Source: mm/vmscan.c of 6.1 to 6.18 (`do_try_to_free_pages`, `prepare_scan_control`, `get_scan_count`, `shrink_lruvec`,
//! `shrink_active_list`, `shrink_folio_list`). Meant to show: an unmapped page that was read once is dropped at the inactive
//! tail; dirty file pages are never written here but go round by way of the active list; the active lists shrink only when
//! they outgrow the inactive ones or refaults were activated.
//! Left out: batches of isolated pages (a page is judged where it stands), memory.low, several groups, large folios as one
//! unit.

use super::{Cursor, Need, Phase};
use crate::config::ReclaimConfig;
use crate::mm::Mm;
use crate::mm::page::{NIL, flag};
use crate::mm::workingset::{ANON, FILE, inactive_is_low};
use crate::mm::zone::NORMAL;

/// Pages of a list taken at a time (SWAP_CLUSTER_MAX).
const CLUSTER: u64 = 32;
/// Order in which the lists are visited: inactive and active anonymous, inactive and active file, as [`Mm::list_sizes`].
const LISTS: [usize; 4] = [0, 1, 2, 3];

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// Pages of each list still to be looked at in this pass, and at its beginning.
    pub(super) left: [u64; 4],
    targets: [u64; 4],
    /// List in hand, and what is left of its batch.
    list: usize,
    batch: u64,
    /// Pages of the batch, how many of them were dirty and not under write-out, how many were freed.
    taken: u64,
    unqueued: u64,
    freed: u64,
    /// Pages freed, and wanted.
    pub(super) reclaimed: u64,
    pub(super) goal: u64,
    /// The active lists may shrink: anonymous, file.
    deactivate: [bool; 2],
    forced: bool,
    skipped: bool,
    /// One type was cut down after the goal was met.
    adjusted: bool,
    pub(super) begun: bool,
}

impl Run {
    /// A run that is to free so many pages, 32 at least.
    pub(super) fn begin(want: i64) -> Self {
        Self { begun: true, goal: (want.max(0) as u64).max(CLUSTER), ..Self::default() }
    }
}

pub(super) fn step(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Need {
    passes(cfg, mm, cur, begin_pass, scan, end_pass)
}

/// Passes of a run over one lruvec, from the gentlest priority on (`do_try_to_free_pages`): `begin` a pass, `scan` until it
/// needs something or is through, `end` it; that says whether the run is over.
pub(super) fn passes(
    cfg: &ReclaimConfig,
    mm: &mut Mm,
    cur: &mut Cursor,
    begin: fn(&ReclaimConfig, &mut Mm, &mut Cursor),
    scan: fn(&ReclaimConfig, &mut Mm, &mut Cursor) -> Option<Need>,
    end: fn(&mut Mm, &mut Cursor) -> Option<bool>,
) -> Need {
    if !cur.run.begun {
        cur.run = Run::begin(cur.want);
        // As `Cursor::new` counts down to 1; the kernel to 0.
        cur.priority = cfg.def_priority + 1;
    }
    loop {
        match cur.phase {
            Phase::Pass => {
                begin(cfg, mm, cur);
                cur.phase = Phase::Scan;
            }
            Phase::Scan => {
                if let Some(need) = scan(cfg, mm, cur) {
                    return need;
                }
                if let Some(done) = end(mm, cur) {
                    return Need::Done(done);
                }
            }
            Phase::Written | Phase::Waited | Phase::BufferWaited | Phase::BufferWrittenOut | Phase::BufferWritten => {
                // A page was written or waited for: it is judged again where it stands.
                mm.page_mut(cur.page).pins -= 1;
                cur.phase = Phase::Scan;
            }
            Phase::InodesWritten | Phase::Failed => return Need::Done(cur.run.reclaimed > 0),
        }
    }
}

fn priority(cur: &Cursor) -> u32 {
    cur.priority - 1
}

/// `prepare_scan_control` and `get_scan_count`.
fn begin_pass(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) {
    mm.counters.shrink_calls += 1;
    let sizes = mm.list_sizes();
    let p = priority(cur);
    let (swap, cost, activations, snapshot) = match &mm.ws {
        Some(ws) => (ws.swap && mm.swap.free() > 0, ws.cost, ws.activations, ws.snapshot),
        None => (false, [0; 2], [0; 2], [0; 2]),
    };
    let low = [inactive_is_low(sizes[0], sizes[1]), inactive_is_low(sizes[2], sizes[3])];
    for kind in [ANON, FILE] {
        cur.run.deactivate[kind] = cur.run.forced || activations[kind] != snapshot[kind] || low[kind];
    }
    let trims_cache = sizes[2] >> p > 0 && !cur.run.deactivate[FILE];
    let share = |kind: usize, scan: u64| -> u64 {
        if !swap || trims_cache || cfg.workingset.swappiness == 0 {
            return if kind == FILE { scan } else { 0 };
        }
        if p == 0 {
            return scan;
        }
        let swappiness = u64::from(cfg.workingset.swappiness.min(200));
        let total = cost[ANON] + cost[FILE];
        let (a, f) = (total + cost[ANON], total + cost[FILE]);
        let sum = a + f;
        let ap = swappiness * (sum + 1) / (a + 1);
        let fp = (200 - swappiness) * (sum + 1) / (f + 1);
        let mine = if kind == ANON { ap } else { fp };
        scan * mine / (ap + fp).max(1)
    };
    for list in LISTS {
        cur.run.left[list] = share(list / 2, sizes[list] >> p);
    }
    cur.run.targets = cur.run.left;
    (cur.run.list, cur.run.batch, cur.run.adjusted) = (0, 0, false);
}

/// `shrink_lruvec` from where it stands: `None` at the end of the pass.
fn scan(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Option<Need> {
    loop {
        if cur.run.batch == 0 {
            if cur.run.taken > 0
                && let Some(need) = end_batch(cfg, mm, cur)
            {
                return Some(need);
            }
            if !next_batch(mm, cur) {
                return None;
            }
            continue;
        }
        let file = cur.run.list == 2;
        let id = if file { mm.inactive.tail() } else { mm.ws.as_ref().map_or(NIL, |w| w.anon_inactive.tail()) };
        if id == NIL {
            cur.run.batch = 0;
            continue;
        }
        if let Some(need) = judge(cfg, mm, cur, id) {
            return Some(need);
        }
    }
}

/// Chooses the next 32 pages of the next list that has something left; active lists are shrunk on the spot.
fn next_batch(mm: &mut Mm, cur: &mut Cursor) -> bool {
    loop {
        if cur.run.list == LISTS.len() {
            cur.run.list = 0;
            let left = cur.run.left;
            if left[0] + left[2] + left[3] == 0 {
                return false;
            }
            if !cur.run.adjusted && cur.run.reclaimed >= cur.run.goal && !cut_down(&mut cur.run) {
                return false;
            }
        }
        let list = cur.run.list;
        let n = cur.run.left[list].min(CLUSTER);
        if n == 0 {
            cur.run.list += 1;
            continue;
        }
        cur.run.left[list] -= n;
        if list % 2 == 1 {
            if cur.run.deactivate[list / 2] {
                shrink_active(mm, cur, list / 2 == FILE, n);
            } else {
                cur.run.skipped = true;
            }
            cur.run.list += 1;
            continue;
        }
        cur.run.batch = n;
        (cur.run.taken, cur.run.unqueued, cur.run.freed) = (0, 0, 0);
        return true;
    }
}

/// The goal is met: the type with less left is done with, the other is cut down in proportion. False if that is all.
fn cut_down(run: &mut Run) -> bool {
    let left = [run.left[0] + run.left[1], run.left[2] + run.left[3]];
    if left[ANON] == 0 || left[FILE] == 0 {
        return false;
    }
    let (small, large) = if left[FILE] > left[ANON] { (ANON, FILE) } else { (FILE, ANON) };
    let of = |kind: usize| run.targets[2 * kind] + run.targets[2 * kind + 1] + 1;
    let percent = left[small] * 100 / of(small);
    (run.left[2 * small], run.left[2 * small + 1]) = (0, 0);
    for list in [2 * large, 2 * large + 1] {
        let scanned = run.targets[list] - run.left[list];
        let target = run.targets[list] * (100 - percent.min(100)) / 100;
        run.left[list] = target.saturating_sub(scanned);
    }
    run.adjusted = true;
    true
}

/// `shrink_active_list`: everything goes to the inactive list; young page-table entries are forgotten.
fn shrink_active(mm: &mut Mm, cur: &mut Cursor, file: bool, n: u64) {
    mm.counters.refill_calls += 1;
    for _ in 0..n {
        let id = if file { mm.active.tail() } else { mm.ws.as_ref().map_or(NIL, |w| w.anon_active.tail()) };
        if id == NIL {
            return;
        }
        cur.scanned += 1;
        mm.clear(id, flag::YOUNG);
        mm.set(id, flag::WORKINGSET);
        mm.move_to_inactive(id, false);
        mm.counters.deactivated_pages += 1;
    }
}

/// The 32 pages are through: costs, and a rest if there were only dirty ones.
fn end_batch(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Option<Need> {
    let run = &mut cur.run;
    let file = run.list == 2;
    mm.note_cost(file, 0, run.taken - run.freed);
    let only_dirty = run.unqueued == run.taken;
    run.taken = 0;
    run.list += 1;
    if only_dirty && cfg.workingset.throttle_ms > 0 {
        return Some(Need::Throttle);
    }
    None
}

/// `shrink_folio_list` for one page at an inactive tail.
fn judge(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, id: u32) -> Option<Need> {
    let p = *mm.page(id);
    let under_io = p.any(flag::BUF_LOCKED) || p.has(flag::SWAP_CACHE | flag::LOCKED);
    if under_io && cfg.workingset.wait_writeback && p.any(flag::RECLAIM) && cur.flags.fs {
        mm.page_mut(id).pins += 1;
        cur.page = id;
        cur.phase = Phase::Waited;
        return Some(if p.any(flag::BUF_LOCKED) { Need::WaitBuffer(id) } else { Need::WaitPage(id) });
    }
    cur.scanned += 1;
    cur.run.batch -= 1;
    cur.run.taken += 1;
    if let Some(ws) = &mut mm.ws {
        ws.scanned[usize::from(!p.any(flag::ANON))] += 1;
    }
    if p.any(flag::LOCKED) && !under_io || p.pins > 0 {
        mm.move_to_inactive(id, false);
        return None;
    }
    if under_io {
        return go_round(mm, id);
    }
    if p.any(flag::YOUNG) {
        mm.clear(id, flag::YOUNG | flag::REFERENCED);
        if p.any(flag::REFERENCED) {
            activate(mm, id);
        } else {
            mm.set(id, flag::REFERENCED);
            mm.move_to_inactive(id, false);
        }
        return None;
    }
    if p.any(flag::ANON) {
        return judge_anon(mm, cur, id);
    }
    mm.clear(id, flag::REFERENCED);
    if p.any(flag::PTE_DIRTY) {
        mm.clear(id, flag::MAPPED | flag::PTE_DIRTY);
        mm.dirty_buffer(id, 0);
    }
    if mm.page(id).any(flag::BUF_DIRTY) {
        cur.run.unqueued += 1;
        return go_round(mm, id);
    }
    mm.clear(id, flag::MAPPED | flag::RECLAIM);
    if p.any(flag::BUFFER) {
        mm.drop_buffer(id);
    }
    let zone = mm.remove_from_page_cache(id);
    mm.leave_shadow(id);
    free(mm, cur, id, zone);
    None
}

pub(super) fn judge_anon(mm: &mut Mm, cur: &mut Cursor, id: u32) -> Option<Need> {
    let p = *mm.page(id);
    if p.slot == 0 && !mm.allocate_slot(id) {
        activate(mm, id);
        return None;
    }
    if !p.any(flag::SWAP_CACHE) {
        mm.add_to_swap_cache(id);
        mm.set(id, flag::DIRTY);
    }
    if p.any(flag::MAPPED) {
        if p.any(flag::PTE_DIRTY) {
            mm.set(id, flag::DIRTY);
        }
        mm.clear(id, flag::MAPPED | flag::PTE_DIRTY);
        mm.set(id, flag::SWAPPED);
    }
    mm.unmap_copied(id);
    if mm.page(id).any(flag::DIRTY) {
        mm.clear(id, flag::DIRTY);
        mm.lock(id);
        mm.set(id, flag::RECLAIM);
        mm.move_to_inactive(id, false);
        mm.page_mut(id).pins += 1;
        mm.counters.laundered_pages += 1;
        cur.page = id;
        cur.phase = Phase::Written;
        return Some(Need::WritePage(id));
    }
    mm.clear(id, flag::RECLAIM | flag::REFERENCED);
    mm.remove_from_swap_cache(id);
    let zone = mm.remove_anon(id);
    mm.leave_shadow(id);
    free(mm, cur, id, zone);
    None
}

pub(super) fn free(mm: &mut Mm, cur: &mut Cursor, id: u32, zone: usize) {
    debug_assert_eq!(zone, NORMAL);
    cur.run.freed += 1;
    cur.run.reclaimed += 1;
    mm.note_evicted(id);
    mm.zones.give(zone);
}

/// Dirty, or under write-out: goes round by way of the active list, and to the inactive tail when the write-out ends.
fn go_round(mm: &mut Mm, id: u32) -> Option<Need> {
    mm.set(id, flag::RECLAIM);
    activate(mm, id);
    None
}

fn activate(mm: &mut Mm, id: u32) {
    mm.move_to_active(id);
    mm.counters.activated_pages += 1;
    if let Some(ws) = &mut mm.ws {
        ws.aged();
    }
}

/// The pass is over: the run is, too, if it freed enough or all priorities were tried.
fn end_pass(mm: &mut Mm, cur: &mut Cursor) -> Option<bool> {
    let sizes = mm.list_sizes();
    if mm.ws.as_ref().is_some_and(|w| w.swap) && inactive_is_low(sizes[0], sizes[1]) {
        shrink_active(mm, cur, false, CLUSTER);
    }
    end_shrinkers(mm, cur);
    if cur.run.reclaimed >= cur.run.goal {
        return Some(finish(mm, cur));
    }
    if priority(cur) > 0 {
        cur.priority -= 1;
        cur.phase = Phase::Pass;
        return None;
    }
    if cur.run.reclaimed == 0 && cur.run.skipped && !cur.run.forced {
        // Once more, with the active lists.
        (cur.run.forced, cur.run.skipped) = (true, false);
        cur.priority = 13;
        cur.phase = Phase::Pass;
        return None;
    }
    Some(finish(mm, cur))
}

/// Dentries and inodes are shrunk at the pass's priority.
pub(super) fn end_shrinkers(mm: &mut Mm, cur: &Cursor) {
    if cur.flags.fs {
        mm.shrink_names(1 << priority(cur).min(12));
    }
}

/// The counters of refaults that were activated are remembered (`snapshot_refaults`).
fn finish(mm: &mut Mm, cur: &mut Cursor) -> bool {
    if let Some(ws) = &mut mm.ws {
        ws.snapshot = ws.activations;
    }
    cur.phase = Phase::Failed;
    cur.run.reclaimed > 0
}
