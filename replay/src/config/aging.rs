//! Page aging: table `reclaim.aging`. Active, dirty and clean lists of 2.4.5 to 2.4.9 and of the -ac kernels.

use serde::{Deserialize, Serialize};

/// Page aging of 2.4.5 to 2.4.9 and of -ac (2.4.9-ac14 to 2.4.12-ac3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct AgingConfig {
    /// Age of a page that is activated or new on the active list (PAGE_AGE_START).
    pub start: u8,
    /// A use makes a page so much older (PAGE_AGE_ADV).
    pub advance: u8,
    /// Highest age (PAGE_AGE_MAX).
    pub most: u8,
    /// How an unused page loses its age.
    pub decay: Decay,
    /// Where a new cache page goes.
    pub new_page: NewPage,
    /// A page that gets a swap slot starts at the start age again (2.4.7 and -ac), else it keeps what it had (2.4.5, 2.4.6).
    /// Without effect where new pages are inactive: they have age 0 there.
    pub swap_restarts_age: bool,
    /// What finding a page in the cache does to it.
    pub lookup: LookupRule,
    /// What a read of a page does once it has copied from it.
    pub use_rule: UseRule,
    /// Read-ahead and completed writes deactivate what lies behind them (2.4.5 to 2.4.7, -ac).
    pub drop_behind: bool,
    /// ... and stop at the first page that is not active (-ac with linear aging), else at the first that is not there.
    pub drop_behind_stops_inactive: bool,
    /// Zones with plenty of inactive (free) pages are spared by aging and unmapping (by laundering): 2.4.8+.
    pub zone_plenty: bool,
    /// How much is plenty of inactive pages.
    pub plenty: InactivePlenty,
    /// When aging looks whether a page's zone has plenty.
    pub plenty_order: PlentyOrder,
    /// Which pages of zones with plenty of free ones laundering spares.
    pub plenty_spares: PlentySpares,
    /// Inactive pages that have an age go back to the active list (2.4.5 to 2.4.7, -ac).
    pub aged_reactivate: bool,
    /// Which age pages have that go back.
    pub reactivation: Reactivation,
    /// Inactive pages with buffers that somebody else uses go back as well, unless they are locked (-ac); else their
    /// buffers are freed first.
    pub buffers_reactivate: bool,
    /// Pages that are mapped or in use may be deactivated (-ac with linear aging).
    pub deactivate_mapped: bool,
    /// Aging deactivates buffer pages, whatever their age, if there are more than this share of memory, percent; 0 = never.
    pub buffers_pct: u32,
    /// Which page cache pages aging deactivates whatever their age.
    pub cache_hogs: CacheHogs,
    /// Which page-table entries are unmapped.
    pub unmap: AgedUnmap,
    /// An allocating task's own address space is unmapped first.
    pub own_space_first: bool,
    /// Further address spaces per round, in 64ths of all, and one more.
    pub spaces_64ths: u32,
    /// A round ages first and unmaps then (2.4.5), else the other way round.
    pub age_before_unmap: bool,
    /// Inactive pages wanted: 1/n of memory; 0 = what allocations of the last minute ask for, at most a quarter of memory.
    pub target_divisor: u32,
    /// `memory_pressure` grows with every attempt to take a clean page (2.4.5), else with every success.
    pub pressure_per_attempt: bool,
    /// A zone is short of frames below this mark.
    pub short_mark: ShortMark,
    /// Aging once a second, whatever is short.
    pub background: BackgroundAging,
    /// How the dirty list is laundered.
    pub launder: LaunderRule,
    /// [`LaunderRule::ShouldWrite`]: writing stops when fewer pages than this share could not be cleaned, percent.
    pub should_write_low_pct: u32,
    /// ... and starts when more than this share could not.
    pub should_write_high_pct: u32,
    /// Pages dirtied through mappings are written only for callers that may call into the file system (2.4.6+).
    pub launder_needs_fs: bool,
    /// How a reclaim run goes.
    pub driver: AgingDriver,
    /// [`AgingDriver::Stages`] launders and shrinks name caches whether frames are short or not.
    pub launder_always: bool,
    /// [`AgingDriver::Stages`]: how long inactive pages are made.
    pub refill: RefillRounds,
    /// Name caches shrink only for callers that may call into the file system (2.4.7+), else for all that may do I/O.
    pub names_need_fs: bool,
    /// Where fewer unused inodes can be freed than are to go, dirty ones are written: a single one, and waited for, if fewer
    /// than `low` frames are free, else all (2.4.5 to 2.4.9).
    pub writes_unused_inodes: bool,
    /// kswapd runs only if frames are short, and leaves the disks plugged (-ac with launder); else also if inactive pages
    /// are short.
    pub kswapd_free_only: bool,
    /// An allocation that may wait reclaims before it takes the reserve (the "hog" patch), else it only yields.
    pub alloc_reclaims: bool,
    /// A request that may not call into the file system fails when reclaim came to nothing (2.4.6+), else it tries for ever.
    pub nofs_gives_up: bool,
}

impl Default for AgingConfig {
    fn default() -> Self {
        Self {
            start: 2,
            advance: 3,
            most: 64,
            decay: Decay::Halve,
            new_page: NewPage::Inactive,
            swap_restarts_age: true,
            lookup: LookupRule::Marks,
            use_rule: UseRule::SecondActivates,
            drop_behind: false,
            drop_behind_stops_inactive: false,
            zone_plenty: true,
            plenty: InactivePlenty::Third,
            plenty_order: PlentyOrder::First,
            plenty_spares: PlentySpares::All,
            aged_reactivate: false,
            reactivation: Reactivation::Start,
            buffers_reactivate: false,
            deactivate_mapped: false,
            buffers_pct: 0,
            cache_hogs: CacheHogs::None,
            unmap: AgedUnmap::NotYoung,
            own_space_first: true,
            spaces_64ths: 16,
            age_before_unmap: false,
            target_divisor: 0,
            pressure_per_attempt: false,
            short_mark: ShortMark::Low,
            background: BackgroundAging::None,
            launder: LaunderRule::Share,
            should_write_low_pct: 10,
            should_write_high_pct: 25,
            launder_needs_fs: true,
            driver: AgingDriver::Rounds,
            launder_always: false,
            refill: RefillRounds::Target,
            names_need_fs: true,
            writes_unused_inodes: true,
            kswapd_free_only: false,
            alloc_reclaims: false,
            nofs_gives_up: true,
        }
    }
}

/// How an unused page loses its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// By half: 2.4.5 to 2.4.9, -ac's default tactic up to 2.4.9-ac14.
    Halve,
    /// By one: -ac from 2.4.9-ac15 on.
    One,
}

/// Where a new cache page goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewPage {
    /// On the active list, at the start age: 2.4.5 to 2.4.7.
    Active,
    /// On the dirty list, at age 0 ("use once"): 2.4.8, 2.4.9.
    Inactive,
}

/// What finding a page in the cache does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LookupRule {
    /// Marks it referenced: 2.4.5 to 2.4.9.
    Marks,
    /// Marks an active page referenced, activates an inactive one at once: -ac up to 2.4.9-ac14.
    Activates,
    /// Nothing; callers say that they use the page ([`UseRule::Touch`]): -ac from 2.4.9-ac15 on.
    Nothing,
}

/// What using a page does, besides what its lookup did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UseRule {
    /// Nothing: 2.4.5 to 2.4.7, -ac up to 2.4.9-ac14.
    LookupOnly,
    /// A page of age 0 gets the start age and loses its mark: 2.4.8.
    FirstAges,
    /// A page that is not active is activated if it has an age, else it gets one and loses its mark: 2.4.9.
    SecondActivates,
    /// A clean page is activated, any other is marked referenced: -ac from 2.4.9-ac15 on.
    Touch,
}

/// More than this share of a zone inactive or free is plenty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InactivePlenty {
    /// A third: 2.4.8 to 2.4.9, -ac.
    Third,
    /// Two fifths: -ac with the "hog" patch.
    TwoFifths,
}

/// When aging looks whether a page's zone has plenty of inactive pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlentyOrder {
    /// First: pages of such a zone do not age: 2.4.8, 2.4.9, -ac up to 2.4.9-ac15.
    First,
    /// After pages without age were deactivated: the first "hog" patch.
    AfterAge,
    /// After the page aged, before it is deactivated: the second "hog" patch.
    BeforeDeactivation,
}

/// Which pages of zones with plenty of free ones laundering spares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlentySpares {
    /// All: 2.4.8, 2.4.9, -ac with launder.
    All,
    /// Those that are dirty or belong to no file, so that clean ones still become free: -ac up to 2.4.9-ac15.
    Dirty,
}

/// Age of inactive pages that go back to the active list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reactivation {
    /// What they had: 2.4.5 to 2.4.7, -ac up to 2.4.9-ac15.
    Keep,
    /// The start age: 2.4.8, 2.4.9.
    Start,
    /// At least the start age: -ac with launder.
    AtLeastStart,
}

/// Which page cache pages aging deactivates whatever their age. The page cache is without the swap cache here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheHogs {
    /// None: 2.4.5 to 2.4.9, -ac up to ac14; also what the first "hog" patch came to: a stray semicolon makes its test
    /// answer "in use" for every page.
    None,
    /// Unmapped ones, while the page cache is larger than half of memory: linear aging.
    Large,
    /// All, unless page cache and buffers are smaller than half of memory, and unmapped swap cache: the second "hog" patch,
    /// with the logic turned round and the same semicolon.
    NotSmall,
    /// Those of files that have more than 1/20 of the page cache and are not mapped: what the "hog" patch was meant to do.
    LargeFiles,
}

/// Which page-table entries are unmapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgedUnmap {
    /// Those not used lately: 2.4.5 to 2.4.9, -ac up to 2.4.9-ac14.
    NotYoung,
    /// Those not used lately whose page has no age left; pages on no active list age here: linear aging.
    Aged,
    /// Those whose page has no age left, used lately or not, and nothing ages here: the merge error of 2.4.9-ac15.
    AgedAnyYoung,
}

/// Below which of its marks a zone is short of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShortMark {
    /// `min`: 2.4.5 to 2.4.7.
    Min,
    /// `low`: 2.4.8, 2.4.9, -ac.
    Low,
}

/// Aging once a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundAging {
    /// None of its own: 2.4.9, whose kswapd does a round each second.
    None,
    /// 1/16 of the active list: 2.4.6 to 2.4.8.
    Sixteenth,
    /// 1/16 of the active list if that is more than ten times the free and inactive pages, 1/256 if it is more than three
    /// times, else nothing; the list counts as at least half of memory: 2.4.5.
    ByRatio,
    /// 1/64 of the active list: -ac.
    SixtyFourth,
}

/// How the dirty list is laundered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunderRule {
    /// The whole list without I/O, then, if frames are still short, again with some I/O: 2.4.5 to 2.4.8, -ac to ac15.
    TwoPasses,
    /// One pass over 1/64 of the list: 2.4.9.
    Share,
    /// One pass over the whole list, with I/O or without as the share of pages decides that the last passes could not
    /// clean: -ac with launder.
    ShouldWrite,
}

/// How a reclaim run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgingDriver {
    /// Launder if frames are short, then age if inactive pages are: 2.4.5 to 2.4.7, -ac.
    Stages,
    /// Always launder, then age, for all zones together and for each that is short: 2.4.8.
    ZoneStages,
    /// Rounds of aging and laundering until nothing is short, at most 64: 2.4.9.
    Rounds,
}

/// How long the staged drivers age and unmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefillRounds {
    /// Until a cluster of pages (kswapd: as many as are short) is inactive, at most 6 rounds (kswapd: 64): 2.4.5 to 2.4.8.
    Target,
    /// While inactive pages are short, at most 64 rounds: -ac.
    WhileShort,
}
