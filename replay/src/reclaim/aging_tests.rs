//! Rules of the age-based kernels, one small case each.

use super::{Cursor, Need, aging, step};
use crate::config::{
    AgedUnmap, AgingConfig, AgingDriver, BackgroundAging, CacheHogs, Config, Decay, InactivePlenty, LaunderRule,
    LookupRule, NewPage, PlentyOrder, Reactivation, ReclaimPolicy, RefillRounds, UseRule,
};
use crate::mm::Mm;
use crate::mm::page::{List, flag};
use crate::mm::zone::{AllocFlags, NORMAL};
use crate::testing::{Builder, config};
use crate::writeback;

const FILE: u32 = 12_000;

/// A 64 MiB machine with a file (pages 0 to 11999), an anonymous area (from 12000 on) and these rules.
fn machine(rules: impl FnOnce(&mut AgingConfig)) -> (Config, Mm) {
    let mut b = Builder::new();
    b.file(FILE, FILE);
    b.anon(0, 1000);
    b.task(Vec::new());
    let mut c = config();
    c.reclaim.policy = ReclaimPolicy::Aging;
    c.reclaim.aging = AgingConfig { new_page: NewPage::Active, zone_plenty: false, ..AgingConfig::default() };
    rules(&mut c.reclaim.aging);
    let mm = Mm::new(&b.build(), &c);
    (c, mm)
}

/// A clean, unlocked page of the file in the cache.
fn cached(mm: &mut Mm, id: u32) {
    let zone = mm.zones.take_any().unwrap();
    assert!(mm.adopt_frame(id, zone));
    mm.set(id, flag::UPTODATE);
    mm.unlock(id);
}

/// A written anonymous page, mapped.
fn anonymous(mm: &mut Mm, i: u32) -> u32 {
    let zone = mm.zones.take_any().unwrap();
    mm.add_anon(FILE + i, zone);
    mm.set(FILE + i, flag::MAPPED | flag::PTE_DIRTY);
    mm.spaces.page_mapped(0);
    FILE + i
}

fn reclaim(c: &Config, mm: &mut Mm, flags: AllocFlags) -> Vec<Need> {
    let limits = writeback::limits(&c.writeback, mm);
    let mut cur = Cursor::new(&c.reclaim, NORMAL, flags, false);
    let mut needs = Vec::new();
    loop {
        let need = step(&c.reclaim, mm, &mut cur, &limits);
        needs.push(need);
        if matches!(need, Need::Done(_)) {
            return needs;
        }
        if let Need::WritePage(id) | Need::WaitPage(id) = need {
            mm.unlock(id);
        }
    }
}

#[test]
fn an_unused_page_loses_half_of_its_age_or_one() {
    for (decay, ages) in [(Decay::Halve, [4, 2, 1]), (Decay::One, [7, 6, 5])] {
        let (_, mut mm) = machine(|r| r.decay = decay);
        cached(&mut mm, 0);
        mm.page_mut(0).age = 8;
        for age in ages {
            mm.age_down(0);
            assert_eq!(mm.page(0).age, age);
        }
    }
}

#[test]
fn a_lookup_marks_activates_or_does_nothing() {
    for (lookup, list, marked) in [
        (LookupRule::Marks, List::Inactive, true),
        (LookupRule::Activates, List::Active, false),
        (LookupRule::Nothing, List::Inactive, false),
    ] {
        let (_, mut mm) = machine(|r| r.lookup = lookup);
        cached(&mut mm, 0);
        mm.deactivate_aged(0);
        assert_eq!(mm.page(0).list, List::Inactive);
        mm.looked_up(0);
        assert_eq!((mm.page(0).list, mm.page(0).any(flag::REFERENCED)), (list, marked), "{lookup:?}");
    }
}

#[test]
fn a_touch_brings_clean_pages_back_and_marks_others() {
    let (c, mut mm) = machine(|r| (r.lookup, r.use_rule) = (LookupRule::Nothing, UseRule::Touch));
    for id in 0..2 {
        cached(&mut mm, id);
        mm.deactivate_aged(id);
    }
    mm.move_to(0, List::Clean);
    for id in 0..2 {
        mm.used_aged(id, c.reclaim.aging);
    }
    assert_eq!((mm.page(0).list, mm.page(0).age), (List::Active, 2));
    assert_eq!((mm.page(1).list, mm.page(1).any(flag::REFERENCED)), (List::Inactive, true));
}

#[test]
fn the_merge_error_unmaps_used_pages_and_never_anonymous_ones() {
    let look = |unmap: AgedUnmap, age: u8, young: bool| {
        let (c, mut mm) = machine(|r| (r.unmap, r.start, r.decay) = (unmap, 5, Decay::One));
        mm.spaces.map(0, 0, FILE, 1000);
        let id = anonymous(&mut mm, 0);
        mm.page_mut(id).age = age;
        if young {
            mm.set(id, flag::YOUNG);
        }
        mm.swap_out_aging(&c.reclaim.aging, Some(0), 6);
        let p = mm.page(id);
        (p.any(flag::MAPPED), p.any(flag::SWAP_CACHE))
    };
    // Used lately: spared, but not by the error once it has no age.
    assert_eq!(look(AgedUnmap::NotYoung, 0, true), (true, false));
    assert_eq!(look(AgedUnmap::Aged, 0, true), (true, false));
    assert_eq!(look(AgedUnmap::AgedAnyYoung, 0, true), (false, true));
    // Not used, with an age: unmapped at once; when it has aged; never.
    assert_eq!(look(AgedUnmap::NotYoung, 5, false), (false, true));
    assert_eq!(look(AgedUnmap::Aged, 5, false), (true, false));
    assert_eq!(look(AgedUnmap::Aged, 1, false), (false, true));
    for _ in 0..100 {
        assert_eq!(look(AgedUnmap::AgedAnyYoung, 5, false), (true, false));
    }
}

#[test]
fn a_page_that_gets_a_swap_slot_starts_again_or_keeps_its_age() {
    for (restarts, age) in [(true, 2), (false, 30)] {
        let (c, mut mm) = machine(|r| r.swap_restarts_age = restarts);
        mm.spaces.map(0, 0, FILE, 1000);
        let id = anonymous(&mut mm, 0);
        mm.page_mut(id).age = 30;
        mm.swap_out_aging(&c.reclaim.aging, Some(0), 6);
        assert_eq!((mm.page(id).list, mm.page(id).age), (List::Active, age));
    }
}

#[test]
fn laundering_writes_only_after_too_much_stayed_dirty() {
    let (c, mut mm) = machine(|r| {
        (r.launder, r.launder_always) = (LaunderRule::ShouldWrite, true);
        (r.driver, r.refill) = (AgingDriver::Stages, RefillRounds::WhileShort);
    });
    for id in 0..100 {
        cached(&mut mm, id);
        mm.deactivate_aged(id);
    }
    for id in 0..40 {
        mm.set(id, flag::DIRTY);
    }
    let writes = |needs: &[Need]| needs.iter().filter(|n| matches!(n, Need::WritePage(_))).count();
    assert_eq!(writes(&reclaim(&c, &mut mm, AllocFlags::USER)), 0, "nothing is written at first");
    assert!(mm.should_write, "40 of 100 could not be cleaned, the limit is 25");
    assert_eq!(mm.clean[0].len() + mm.clean[1].len(), 60);
    assert!(writes(&reclaim(&c, &mut mm, AllocFlags::USER)) > 0);
    assert!(!mm.should_write, "all could");
    assert_eq!(writes(&reclaim(&c, &mut mm, AllocFlags::NOFS)), 0);
}

#[test]
fn hogs_are_what_each_patch_takes_for_them() {
    let hog = |hogs: CacheHogs, pages: u32, mapped: bool| {
        let (c, mut mm) = machine(|r| r.cache_hogs = hogs);
        (0..pages).for_each(|id| cached(&mut mm, id));
        if mapped {
            mm.set(0, flag::MAPPED);
            mm.spaces.map(0, 0, 0, FILE);
        }
        mm.is_hog(0, &c.reclaim.aging)
    };
    // 16384 frames: 9000 pages are more than half.
    for (hogs, small, large, mapped) in [
        (CacheHogs::None, false, false, false),
        (CacheHogs::Large, false, true, false),
        (CacheHogs::NotSmall, false, true, true),
        (CacheHogs::LargeFiles, true, true, false),
    ] {
        assert_eq!(
            (hog(hogs, 100, false), hog(hogs, 9000, false), hog(hogs, 9000, true)),
            (small, large, mapped),
            "{hogs:?}"
        );
    }
}

#[test]
fn plenty_is_asked_for_before_aging_or_after() {
    let outcome = |order: PlentyOrder, age: u8| {
        let (c, mut mm) = machine(|r| {
            (r.zone_plenty, r.plenty_order, r.background) = (true, order, BackgroundAging::Sixteenth);
        });
        (0..16).for_each(|id| cached(&mut mm, id));
        let tail = mm.active.tail();
        mm.page_mut(tail).age = age;
        // Nearly all of memory is free: plenty.
        assert_eq!(aging::age_in_background(&c.reclaim, &mut mm), 1);
        (mm.page(tail).age, mm.page(tail).list)
    };
    assert_eq!(outcome(PlentyOrder::First, 1), (1, List::Active));
    assert_eq!(outcome(PlentyOrder::AfterAge, 1), (0, List::Inactive));
    assert_eq!(outcome(PlentyOrder::BeforeDeactivation, 1), (0, List::Active));
    assert_eq!(outcome(PlentyOrder::BeforeDeactivation, 8), (4, List::Active));
}

#[test]
fn two_fifths_are_more_than_a_third() {
    let (_, mut mm) = machine(|_| ());
    let size = mm.zones.zone[NORMAL].size;
    mm.zones.zone[NORMAL].free = size * 37 / 100;
    assert!(mm.inactive_plenty(NORMAL));
    mm.aging = mm.aging.map(|r| AgingConfig { plenty: InactivePlenty::TwoFifths, ..r });
    assert!(!mm.inactive_plenty(NORMAL));
}

#[test]
fn the_inactive_target_is_pressure_or_a_share() {
    let (_, mut mm) = machine(|_| ());
    mm.zones.pressure = 640;
    assert_eq!(mm.inactive_target(), 10);
    mm.aging = mm.aging.map(|r| AgingConfig { target_divisor: 5, ..r });
    assert_eq!(mm.inactive_target(), 16_384 / 5);
}

#[test]
fn background_aging_of_2_4_5_goes_by_the_lists_ratio() {
    let (c, mut mm) = machine(|r| r.background = BackgroundAging::ByRatio);
    (0..8192).for_each(|id| cached(&mut mm, id));
    let free = |mm: &mut Mm, n: u64| (mm.zones.zone[0].free, mm.zones.zone[NORMAL].free) = (0, n);
    for (frames, steps) in [(4000, 0), (2000, 8192 >> 8), (700, 8192 >> 4)] {
        free(&mut mm, frames);
        assert_eq!(aging::age_in_background(&c.reclaim, &mut mm), steps, "{frames} free");
    }
}

#[test]
fn pages_in_use_go_back_with_the_age_of_their_kernel() {
    for (reactivation, age) in [(Reactivation::Keep, 0), (Reactivation::Start, 2), (Reactivation::AtLeastStart, 2)] {
        let (_, mut mm) = machine(|r| r.reactivation = reactivation);
        cached(&mut mm, 0);
        mm.deactivate_aged(0);
        mm.move_to(0, List::Clean);
        mm.set(0, flag::REFERENCED);
        let zone = usize::from(mm.page(0).zone);
        assert!(!mm.reclaim_page(zone));
        assert_eq!((mm.page(0).list, mm.page(0).age), (List::Active, age), "{reactivation:?}");
    }
}

#[test]
fn aged_inactive_pages_go_back_where_the_kernel_asks_for_ages() {
    for (asks, list) in [(true, List::Active), (false, List::None)] {
        let (_, mut mm) = machine(|r| r.aged_reactivate = asks);
        cached(&mut mm, 0);
        mm.deactivate_aged(0);
        mm.move_to(0, List::Clean);
        mm.page_mut(0).age = 3;
        let zone = usize::from(mm.page(0).zone);
        assert_eq!(mm.reclaim_page(zone), !asks);
        assert_eq!(mm.page(0).list, list);
    }
}

#[test]
fn mapped_pages_are_deactivated_only_where_references_do_not_count() {
    for (mapped, list) in [(false, List::Active), (true, List::Inactive)] {
        let (_, mut mm) = machine(|r| r.deactivate_mapped = mapped);
        cached(&mut mm, 0);
        mm.set(0, flag::MAPPED);
        mm.deactivate_aged(0);
        assert_eq!(mm.page(0).list, list);
    }
}
