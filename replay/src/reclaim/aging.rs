//! Active, dirty and clean lists, pages with ages: 2.4.5 to 2.4.9 and -ac.
//!
//! Source: mm/vmscan.c (`do_try_to_free_pages`, `page_launder`, `refill_inactive_scan`), for -ac R. van Riel's patches of
//! August to October 2001 (named in the variants). What the versions differ in is in [`AgingConfig`]. A run makes pages clean and inactive; frames are taken from the clean lists by the allocation itself.
//! Left out: slab reaping, highmem, ramdisk pages.

use super::buffers::{Buffers, release_busy, try_to_free_buffers, wait_for};
use super::{Cursor, Looked, Need, Phase};
use crate::config::{
    AgingConfig, AgingDriver, BackgroundAging, BufferWait, LaunderRule, PlentyOrder, PlentySpares, ReclaimConfig,
    RefillRounds, ShortMark,
};
use crate::mm::Mm;
use crate::mm::page::{List, NIL, flag};
use crate::mm::zone::{AllocFlags, DMA, NORMAL};

/// DEF_PRIORITY: 1/64 of a list is a round's share.
const SHARE: u32 = 6;
/// Rounds of a run at most.
const ROUNDS: u32 = 64;

/// Which kinds of pages are short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Short {
    /// Free and clean ones.
    pub free: bool,
    /// Inactive ones.
    pub inactive: bool,
}

impl Short {
    fn any(self) -> bool {
        self.free || self.inactive
    }
}

pub(super) fn step(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Need {
    let rules = &cfg.aging;
    loop {
        match cur.phase {
            Phase::Pass => begin_round(cfg, mm, cur),
            Phase::Scan => {
                if let Some(need) = launder(cfg, mm, cur) {
                    return need;
                }
                if begin_second_pass(rules, mm, cur) {
                    continue;
                }
                decide_writing(rules, mm, cur);
                if shrink_names(cfg, mm, cur) {
                    cur.phase = Phase::InodesWritten;
                    return Need::WriteUnusedInodes;
                }
                if let Some(ok) = end_round(cfg, mm, cur) {
                    return Need::Done(ok);
                }
            }
            Phase::Written | Phase::Waited => {
                mm.page_mut(cur.page).pins -= 1;
                cur.phase = Phase::Scan;
            }
            Phase::BufferWritten => {
                // With leave to wait the buffer is tried again at once, and found locked.
                let waits = buffer_flags(cur).wait;
                if waits && cfg.buffer_wait == BufferWait::WriteThenWait {
                    cur.phase = Phase::BufferWrittenOut;
                    return Need::WaitBuffer(cur.page);
                }
                if !waits {
                    mm.wake_bdflush = true;
                }
                back_to_dirty(mm, cur);
            }
            Phase::BufferWrittenOut => {
                mm.wake_bdflush = true;
                back_to_dirty(mm, cur);
            }
            Phase::BufferWaited => {
                if mm.page(cur.page).buffer_busy() {
                    back_to_dirty(mm, cur);
                } else {
                    let id = cur.page;
                    mm.page_mut(id).pins -= 1;
                    mm.drop_buffer(id);
                    cur.phase = Phase::Scan;
                    without_buffers(mm, cur, id);
                }
            }
            Phase::InodesWritten => {
                mm.prune_inodes(cur.inodes_wanted);
                cur.phase = Phase::Scan;
                if let Some(ok) = end_round(cfg, mm, cur) {
                    return Need::Done(ok);
                }
            }
            Phase::Failed => return Need::Done(false),
        }
    }
}

/// Aging and unmapping of a round, then what there is to launder.
fn begin_round(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) {
    let rules = &cfg.aging;
    if cur.round == 0 {
        cur.short = match rules.driver {
            // Rounds begin with aging, whatever is short.
            AgingDriver::Rounds => Short { free: false, inactive: true },
            AgingDriver::ZoneStages => Short { free: true, inactive: false },
            AgingDriver::Stages => Short { free: rules.launder_always || shortage(rules, mm).free, inactive: false },
        };
    }
    if cur.short.inactive && rules.driver == AgingDriver::Rounds {
        unmap_and_age(cfg, mm, cur, i64::MAX);
    }
    mm.counters.shrink_calls += 1;
    cur.second_pass = None;
    cur.scan_left = match (cur.short.free, rules.launder) {
        (false, _) => 0,
        (true, LaunderRule::Share) => i64::from(mm.inactive.len() >> SHARE),
        (true, LaunderRule::TwoPasses | LaunderRule::ShouldWrite) => i64::from(mm.inactive.len()),
    };
    cur.phase = Phase::Scan;
}

/// The dirty list was gone through: once more with I/O, if frames are still short?
fn begin_second_pass(rules: &AgingConfig, mm: &mut Mm, cur: &mut Cursor) -> bool {
    let again = rules.launder == LaunderRule::TwoPasses
        && cur.short.free
        && cur.second_pass.is_none()
        && cur.flags.io
        && shortage(rules, mm).free;
    if again {
        // MAX_LAUNDER: four clusters, with a cluster of 16 pages.
        cur.second_pass = Some(64);
        cur.waits = cur.task.is_some() && cur.cleaned == 0;
        cur.scan_left = i64::from(mm.inactive.len());
        mm.wake_bdflush = true;
    }
    again
}

/// Whether the next passes write (`should_write`): when this one left too many pages dirty, until one leaves few.
fn decide_writing(rules: &AgingConfig, mm: &mut Mm, cur: &Cursor) {
    if rules.launder != LaunderRule::ShouldWrite || !cur.short.free {
        return;
    }
    let (failed, all) = (u64::from(cur.failed) * 100, u64::from(cur.failed + cur.cleaned));
    if mm.should_write && failed < all * u64::from(rules.should_write_low_pct) {
        mm.should_write = false;
    } else if !mm.should_write && failed > all * u64::from(rules.should_write_high_pct) {
        mm.should_write = true;
    }
}

/// Name caches after a round. Whether inodes are to be written because too few could be freed (`prune_icache`).
fn shrink_names(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> bool {
    let rules = &cfg.aging;
    let shrinks = match rules.driver {
        AgingDriver::Stages => cur.short.free,
        AgingDriver::ZoneStages => true,
        AgingDriver::Rounds => cur.round > 0 || cur.short.free,
    };
    if !shrinks || !(cur.flags.fs || (cur.flags.io && !rules.names_need_fs)) {
        return false;
    }
    cur.inodes_wanted = mm.shrink_names(cfg.dcache_divisor.max(1));
    cur.inodes_wanted > 0 && rules.writes_unused_inodes && mm.names.first_dirty_unused().is_some()
}

/// Shortages after a round; the run's outcome if it is over.
fn end_round(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Option<bool> {
    let rules = &cfg.aging;
    cur.round += 1;
    match rules.driver {
        AgingDriver::Rounds => {
            cur.short = shortage(rules, mm);
            if cur.round >= ROUNDS || !cur.short.any() {
                return Some(!cur.short.any());
            }
            cur.phase = Phase::Pass;
            None
        }
        AgingDriver::Stages => {
            let mut progress = cur.cleaned > 0;
            if shortage(rules, mm).inactive {
                progress |= refill(cfg, mm, cur, missing_inactive(mm), |mm| shortage(&cfg.aging, mm).inactive);
            }
            Some(progress)
        }
        AgingDriver::ZoneStages => Some((cur.cleaned > 0) | refill_zones(cfg, mm, cur)),
    }
}

/// `refill_inactive` of 2.4.8: for all zones together, then for each one.
fn refill_zones(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> bool {
    let missing = missing_globally(mm);
    let mut progress = missing > 0 && refill(cfg, mm, cur, missing, |mm| missing_globally(mm) > 0);
    for zone in [DMA, NORMAL] {
        if mm.zones.zone[zone].size > 0 {
            progress |= refill_zone(cfg, mm, cur, zone);
        }
    }
    progress
}

/// `refill_inactive_zone` of 2.4.8. The kernel computes a zone's shortage without a sign: a zone that has more than enough counts
/// as short as well, and the number of pages wanted of it is negative, which comes to one round that the first page to be
/// deactivated ends.
fn refill_zone(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, zone: usize) -> bool {
    let missing = |mm: &Mm| mm.zones.zone[zone].high as i64 - mm.inactive_in(zone) as i64;
    let wanted = missing(mm);
    if wanted == 0 {
        return false;
    }
    let mut left = wanted;
    for _ in 0..ROUNDS {
        cur.scanned += mm.swap_out_aging(&cfg.aging, cur.task, SHARE);
        let steps = i64::from(mm.active.len() >> SHARE);
        left -= i64::from(age_active(&cfg.aging, mm, cur, steps, Some(zone), left));
        if left <= 0 || missing(mm) == 0 {
            return left < wanted;
        }
    }
    false
}

/// `refill_inactive` of 2.4.5 to 2.4.8: rounds of unmapping and aging until the caller's share is done; of -ac: until no
/// inactive pages are short. kswapd wants `missing` pages, for as long as `short` says that there are too few.
fn refill(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, missing: i64, short: impl Fn(&Mm) -> bool) -> bool {
    if cfg.aging.refill == RefillRounds::WhileShort {
        let mut done = 0;
        for _ in 0..ROUNDS {
            done += unmap_and_age(cfg, mm, cur, i64::MAX);
            if !short(mm) {
                break;
            }
        }
        return done > 0;
    }
    let (mut left, mut tries) = match cur.task {
        Some(_) => (16, 6),
        None => (missing, ROUNDS),
    };
    let wanted = left;
    loop {
        let done = unmap_and_age(cfg, mm, cur, left.max(1));
        left -= i64::from(done);
        tries -= 1;
        if left <= 0 {
            return left < wanted;
        }
        if tries == 0 {
            return false;
        }
        if !short(mm) {
            return left < wanted;
        }
    }
}

fn unmap_and_age(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor, target: i64) -> u32 {
    let rules = &cfg.aging;
    if !rules.age_before_unmap {
        cur.scanned += mm.swap_out_aging(rules, cur.task, SHARE);
    }
    let done = age_active(rules, mm, cur, i64::from(mm.active.len() >> SHARE), None, target);
    if rules.age_before_unmap && i64::from(done) < target {
        cur.scanned += mm.swap_out_aging(rules, cur.task, SHARE);
    }
    cur.cleaned += done;
    done
}

/// Background aging, once a second, whatever is short. Returns the pages looked at.
pub fn age_in_background(cfg: &ReclaimConfig, mm: &mut Mm) -> u32 {
    let active = u64::from(mm.active.len());
    let steps = match cfg.aging.background {
        BackgroundAging::None => 0,
        BackgroundAging::Sixteenth => active >> 4,
        BackgroundAging::SixtyFourth => active >> 6,
        BackgroundAging::ByRatio => {
            let frames: u64 = mm.zones.zone.iter().map(|z| z.size).sum();
            let inactive = mm.inactive_in(DMA) + mm.inactive_in(NORMAL);
            match active.max(frames / 2) {
                counts if counts > 10 * inactive => active >> 4,
                counts if counts > 3 * inactive => active >> 8,
                _ => 0,
            }
        }
    };
    if steps == 0 {
        return 0;
    }
    let mut cur = Cursor::new(cfg, NORMAL, AllocFlags::USER, false);
    age_active(&cfg.aging, mm, &mut cur, steps as i64, None, i64::MAX);
    cur.scanned
}

/// What aging did to an active page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aged {
    /// Nothing: its zone has plenty of inactive pages.
    Spared,
    /// It is older or younger now, and still active.
    Kept,
    /// It went to the dirty list.
    Deactivated,
    /// There is no active page.
    NoPage,
}

/// `refill_inactive_scan`: `steps` pages from the active list's tail, until `target` of them went to the dirty list; only those
/// of `zone` count, where one is given.
fn age_active(
    rules: &AgingConfig,
    mm: &mut Mm,
    cur: &mut Cursor,
    mut steps: i64,
    zone: Option<usize>,
    target: i64,
) -> u32 {
    mm.counters.refill_calls += 1;
    let mut deactivated = 0;
    while steps > 0 {
        steps -= 1;
        let tail = mm.active.tail();
        match age_one(rules, mm, cur) {
            Aged::Spared | Aged::Kept => {}
            Aged::Deactivated => {
                deactivated += u32::from(zone.is_none_or(|z| usize::from(mm.page(tail).zone) == z));
                if i64::from(deactivated) >= target {
                    break;
                }
            }
            Aged::NoPage => break,
        }
    }
    deactivated
}

/// The loop body of `refill_inactive_scan`: the page at the active list's tail.
pub(crate) fn age_one(rules: &AgingConfig, mm: &mut Mm, cur: &mut Cursor) -> Aged {
    let id = mm.active.tail();
    if id == NIL {
        return Aged::NoPage;
    }
    cur.scanned += 1;
    let p = *mm.page(id);
    let plenty = rules.zone_plenty && mm.inactive_plenty(usize::from(p.zone));
    if plenty && rules.plenty_order == PlentyOrder::First {
        mm.active.rotate(&mut mm.pages, id);
        return Aged::Spared;
    }
    if p.any(flag::REFERENCED) {
        mm.clear(id, flag::REFERENCED);
        mm.age_up(id);
    } else {
        mm.age_down(id);
    }
    let unused = !p.any(flag::REFERENCED) && mm.page(id).age == 0;
    let goes = match rules.plenty_order {
        PlentyOrder::First => unused || mm.is_hog(id, rules),
        PlentyOrder::AfterAge => unused || (!plenty && mm.is_hog(id, rules)),
        PlentyOrder::BeforeDeactivation => !plenty && (unused || mm.is_hog(id, rules)),
    };
    if goes && (rules.deactivate_mapped || !p.in_use()) {
        mm.deactivate_aged(id);
        return Aged::Deactivated;
    }
    mm.active.rotate(&mut mm.pages, id);
    Aged::Kept
}

/// What an attempt to free buffers may do: in two passes the first starts no I/O, the second waits for nothing while its
/// budget lasts.
fn buffer_flags(cur: &Cursor) -> AllocFlags {
    match cur.second_pass {
        Some(u32::MAX) | None => cur.flags,
        Some(_) => AllocFlags { wait: false, ..cur.flags },
    }
}

/// `page_launder` from where it stands to the end of the pass (`None`) or to something that takes time.
fn launder(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Option<Need> {
    loop {
        match launder_one(cfg, mm, cur) {
            Looked::On => {}
            Looked::Over => return None,
            Looked::Needs(need) => return Some(need),
        }
    }
}

/// The loop body of `page_launder`: the page at the dirty list's tail.
pub(crate) fn launder_one(cfg: &ReclaimConfig, mm: &mut Mm, cur: &mut Cursor) -> Looked {
    let rules = &cfg.aging;
    let first_of_two = rules.launder == LaunderRule::TwoPasses && cur.second_pass.is_none();
    let id = mm.inactive.tail();
    if cur.scan_left <= 0 || id == NIL {
        return Looked::Over;
    }
    cur.scan_left -= 1;
    cur.scanned += 1;
    let p = *mm.page(id);
    if mm.must_reactivate(id, rules) {
        mm.reactivate_aged(id, rules);
        return Looked::On;
    }
    let spared = match rules.plenty_spares {
        PlentySpares::All => true,
        PlentySpares::Dirty => p.any(flag::META | flag::DIRTY) || p.buffer_busy(),
    };
    if (rules.zone_plenty && spared && mm.free_plenty(usize::from(p.zone))) || p.any(flag::LOCKED) {
        mm.inactive.rotate(&mut mm.pages, id);
        return Looked::On;
    }
    if p.any(flag::DIRTY) {
        let writes = match rules.launder {
            LaunderRule::Share => true,
            LaunderRule::TwoPasses => !first_of_two,
            LaunderRule::ShouldWrite => mm.should_write,
        };
        if !writes || (rules.launder_needs_fs && !cur.flags.fs) {
            cur.failed += 1;
            mm.inactive.rotate(&mut mm.pages, id);
            return Looked::On;
        }
        mm.clear(id, flag::DIRTY);
        mm.lock(id);
        mm.counters.laundered_pages += 1;
        return Looked::Needs(wait_for(mm, cur, id, Phase::Written, Need::WritePage(id)));
    }
    if !p.any(flag::BUFFER) {
        if p.has_mapping() {
            mm.move_to(id, List::Clean);
            cur.cleaned += 1;
        } else {
            mm.move_to(id, List::Active);
        }
        return Looked::On;
    }
    mm.lru_del(id);
    let flags = launder_flags(cur, first_of_two || (rules.launder == LaunderRule::ShouldWrite && !mm.should_write));
    match try_to_free_buffers(cfg.buffer_wait, mm, flags, id) {
        Buffers::Dropped => {
            if without_buffers(mm, cur, id) && rules.launder == LaunderRule::TwoPasses && !shortage(rules, mm).free {
                return Looked::Over;
            }
        }
        Buffers::Busy => {
            mm.wake_bdflush |= flags.io;
            cur.failed += 1;
            mm.move_to(id, List::Inactive);
        }
        Buffers::Write => {
            mm.lock(id);
            mm.begin_buffer_write(id);
            mm.counters.laundered_pages += 1;
            return Looked::Needs(wait_for(mm, cur, id, Phase::BufferWritten, Need::WriteBuffer(id)));
        }
        Buffers::Wait => {
            mm.lock(id);
            return Looked::Needs(wait_for(mm, cur, id, Phase::BufferWaited, Need::WaitBuffer(id)));
        }
    }
    Looked::On
}

/// Leave for the next attempt on a buffer; counts down what the second pass may write without waiting.
fn launder_flags(cur: &mut Cursor, without_io: bool) -> AllocFlags {
    if without_io {
        return AllocFlags { wait: false, io: false, fs: cur.flags.fs };
    }
    match cur.second_pass {
        None | Some(u32::MAX) => cur.flags,
        // The budget is used up: wait as well, unless the first pass cleaned pages.
        Some(0) if cur.waits => {
            cur.second_pass = Some(u32::MAX);
            cur.flags
        }
        Some(0) => AllocFlags { wait: false, io: false, fs: cur.flags.fs },
        Some(n) => {
            cur.second_pass = Some(n - 1);
            AllocFlags { wait: false, ..cur.flags }
        }
    }
}

/// A page lost its buffers: pure buffer pages are freed (true), others become clean, or active if somebody uses them.
fn without_buffers(mm: &mut Mm, cur: &mut Cursor, id: u32) -> bool {
    if mm.page(id).any(flag::LOCKED) {
        mm.unlock(id);
    }
    if mm.page(id).any(flag::META) && !mm.page(id).in_use() {
        let zone = mm.remove_from_page_cache(id);
        mm.zones.give(zone);
        cur.cleaned += 1;
        mm.note_evicted(id);
        return true;
    }
    if mm.page(id).in_use() {
        mm.move_to(id, List::Active);
    } else {
        mm.move_to(id, List::Clean);
        cur.cleaned += 1;
    }
    false
}

/// The buffer in hand stays busy: the page goes back to the dirty list.
fn back_to_dirty(mm: &mut Mm, cur: &mut Cursor) {
    let id = cur.page;
    cur.failed += 1;
    release_busy(mm, cur);
    mm.move_to(id, List::Inactive);
}

/// How many inactive pages the machine lacks, all zones together; negative: it has more than enough.
fn missing_globally(mm: &Mm) -> i64 {
    let (_, _, high) = mm.free_marks();
    let have = mm.inactive_in(DMA) + mm.inactive_in(NORMAL);
    (high + mm.inactive_target()) as i64 - have as i64
}

/// How many inactive pages the machine lacks, or each of its zones.
fn missing_inactive(mm: &Mm) -> i64 {
    let missing = missing_globally(mm);
    if missing > 0 {
        return missing;
    }
    let zone = |z: usize| (mm.zones.zone[z].high as i64 - mm.inactive_in(z) as i64).max(0);
    zone(DMA) + zone(NORMAL)
}

/// `free_shortage` and `inactive_shortage`.
pub fn shortage(rules: &AgingConfig, mm: &Mm) -> Short {
    let (_, _, high) = mm.free_marks();
    let zones = || [DMA, NORMAL].into_iter().filter(|&z| mm.zones.zone[z].size > 0);
    let below_high = zones().any(|z| mm.inactive_in(z) < mm.zones.zone[z].high);
    let inactive = mm.inactive_in(DMA) + mm.inactive_in(NORMAL) < high + mm.inactive_target() || below_high;
    let local = zones().any(|z| {
        let zone = &mm.zones.zone[z];
        let mark = match rules.short_mark {
            ShortMark::Min => zone.min,
            ShortMark::Low => zone.low,
        };
        mm.available(z) < mark
    });
    Short { free: local || mm.available_all() < high, inactive }
}
