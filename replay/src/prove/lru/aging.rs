//! The kernels with ages: `refill_inactive_scan`, `page_launder` and `reclaim_page`, held to a log step by step.
//!
//! The log is silent on pages that a step passes over (zones with plenty, locked pages), so between two logged pages those that
//! lie between them on the list are such steps. How many frames are free is not logged either: it decides which zones have
//! plenty, is taken for `low` of each zone, and is corrected where the log contradicts it.

use std::collections::BTreeMap;

use super::events::{Event, Log, NONE, What};
use super::world::World;
use super::{ORDER, OUTCOME, Rules, Tallies};
use crate::config::Config;
use crate::mm::page::{List, NIL, flag};
use crate::mm::zone::{AllocFlags, NORMAL};
use crate::prove::scores::Score;
use crate::reclaim::aging::{self, Aged};
use crate::reclaim::{Cursor, Looked, Need, Phase};

/// ... where pages are passed over in silence by a number of free frames that is not logged.
const HIDDEN_ORDER: Option<f64> = Some(95.0);
/// DEF_PRIORITY: a call looks at 1/64 of its list.
const SHARE: u32 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Age,
    Launder,
}

/// The log does not show which pages were passed over or freed with their buffers, nor how many frames are free.
fn hidden_free(mut score: Score) -> Score {
    score.note = Some("free frames, and pages passed over or freed with their buffers, are not logged".to_owned());
    score
}

/// What a step did to its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Passed over.
    Passed,
    /// Aged up or down, still active.
    Older,
    Younger,
    Deactivated,
    Activated,
    Clean,
    Laundered,
    Gone,
}

struct Call {
    kind: Kind,
    pid: u32,
    left: u32,
    cur: Cursor,
}

pub(super) struct Player<'a> {
    log: &'a Log,
    config: &'a Config,
    rules: &'a Rules,
    unscored: &'a [bool],
    w: World,
    calls: BTreeMap<u32, Call>,
    /// Page in the hands of a process that writes it.
    held: BTreeMap<u32, u32>,
    explained: Vec<bool>,
    tallies: Tallies,
    age_order: Score,
    age_all: Score,
    age: BTreeMap<&'static str, Score>,
    plenty: Score,
    launder_order: Score,
    launder_all: Score,
    launder: BTreeMap<&'static str, Score>,
    silent: Score,
    clean_order: Score,
    reclaim: Score,
    activation: Score,
    lengths: Score,
}

impl<'a> Player<'a> {
    pub(super) fn new(log: &'a Log, config: &'a Config, rules: &'a Rules, unscored: &'a [bool]) -> Self {
        Self {
            log,
            config,
            rules,
            unscored,
            w: World::new(log, config),
            calls: BTreeMap::new(),
            held: BTreeMap::new(),
            explained: vec![false; log.events.len()],
            tallies: Tallies::default(),
            age_order: Score::new("aging order", ORDER),
            age_all: Score::new("aging outcomes", OUTCOME),
            age: BTreeMap::new(),
            plenty: hidden_free(Score::new("aging: passed over or not", OUTCOME)),
            launder_order: hidden_free(Score::new("launder order", HIDDEN_ORDER)),
            launder_all: Score::new("launder outcomes", OUTCOME),
            launder: BTreeMap::new(),
            silent: hidden_free(Score::new("launder: passed over or not", None)),
            clean_order: Score::new("clean list order", ORDER),
            reclaim: Score::new("reclaim_page outcome", OUTCOME),
            activation: Score::new("activation by access", OUTCOME),
            lengths: hidden_free(Score::new("list lengths at calls", None)),
        }
    }

    pub(super) fn step(mut self) -> (Vec<Score>, Tallies) {
        for i in 0..self.log.events.len() {
            let e = self.log.events[i];
            self.event(i, &e);
            if let Some(&(page, mapped)) = self.log.mapping.get(&i) {
                self.tallies.hidden("mappings by looking ahead");
                self.w.set_mapped(page, mapped);
            }
        }
        let mut all = vec![self.age_order, self.age_all];
        all.extend(self.age.into_values());
        all.extend([self.plenty, self.launder_order, self.launder_all]);
        all.extend(self.launder.into_values());
        all.extend([self.silent, self.clean_order, self.reclaim, self.activation, self.lengths]);
        all.retain(|s| s.of > 0);
        (all, self.tallies)
    }

    fn event(&mut self, i: usize, e: &Event) {
        if !matches!(e.what, What::IoDone | What::Mincore { .. }) {
            self.let_go(e.pid);
        }
        let t = &mut self.tallies;
        match e.what {
            What::IoDone => {
                t.input("ends of page I/O");
                self.w.io_done(e.page);
            }
            What::LruAdd => {
                t.input("pages added");
                let page = self.log.pages[e.page as usize];
                self.w.add(e.page, &page, self.config);
                self.rules.misplace(&mut self.w, e.page);
                if self.log.faulted.contains(&i) {
                    // Once the window is read the fault looks its own page up.
                    let id = self.w.id(e.page);
                    self.w.mm.looked_up(id);
                }
            }
            What::LruDel { evicted } if !evicted && e.page != NONE => {
                t.input("pages deleted");
                self.w.drop(e.page);
            }
            What::Mincore { ino, pages } => {
                t.hidden("looks of mincore() at all cached pages of a file");
                self.mincore(ino, pages);
            }
            What::ReadAccess | What::WriteAccess | What::NopageFault | What::SwapFault { .. } => {
                t.input("accesses");
                self.access(e);
                for &page in self.log.probed.get(&i).into_iter().flatten() {
                    self.tallies.hidden("swap pages that read-ahead finds cached");
                    let id = self.w.id(page);
                    if self.w.list(page) != List::None {
                        self.w.mm.looked_up(id);
                    }
                }
            }
            What::AgeUp => {
                t.input("page-table entries found used");
                if e.page != NONE {
                    let id = self.w.id(e.page);
                    self.w.mm.age_up(id);
                }
            }
            What::Unmap => {
                t.input("unmappings");
                if e.page != NONE {
                    self.w.unmapped(e.page);
                }
            }
            What::RefillScan { active, dirty } => self.call(e, Kind::Age, active, dirty),
            What::PageLaunder { dirty, active } => self.call(e, Kind::Launder, active, dirty),
            What::RotateActive | What::AgeDown => self.aged(e),
            What::ToInactiveDirty => self.made_inactive(i, e),
            What::ToInactiveClean | What::WritepageLaunder => self.laundered(e),
            What::Activate => self.activated(i, e),
            What::Evict => self.evicted(e),
            _ => {}
        }
    }

    /// A process has come back from writing a page.
    fn let_go(&mut self, pid: u32) {
        if let Some(id) = self.held.remove(&pid) {
            let p = self.w.mm.page_mut(id);
            p.pins = p.pins.saturating_sub(1);
        }
    }

    fn scored(&mut self, page: u32) -> bool {
        let yes = page != NONE && !self.unscored[page as usize];
        if !yes {
            self.tallies.hidden("decisions on pages that are not scored (programs, metadata)");
        }
        yes
    }

    fn mincore(&mut self, ino: u64, pages: u64) {
        for n in 0..self.log.pages.len() as u32 {
            let i = self.log.pages[n as usize];
            if i.owner == super::events::Owner::File(ino) && i.index < pages {
                let id = self.w.id(n);
                if self.w.mm.page(id).any(flag::PRESENT) {
                    self.w.mm.looked_up(id);
                }
            }
        }
    }

    fn access(&mut self, e: &Event) {
        let recorded = match self.log.events.get(e.next) {
            Some(n) if n.what == What::Activate && n.page == e.page && e.page != NONE => Some(e.next),
            _ => None,
        };
        if let Some(line) = recorded {
            self.explained[line] = true;
        }
        if e.page == NONE || self.w.list(e.page) == List::None {
            return;
        }
        let id = self.w.id(e.page);
        let was = self.w.list(e.page);
        self.w.mm.looked_up(id);
        if matches!(e.what, What::ReadAccess | What::WriteAccess)
            && let Some(rules) = self.w.mm.aging
        {
            self.w.mm.used_aged(id, rules);
        }
        let model = was != List::Active && self.w.list(e.page) == List::Active;
        if (model || recorded.is_some()) && self.scored(e.page) {
            let line = e.line;
            self.activation.count(model == recorded.is_some(), || format!("line {line}: model {model}"));
        }
        if model != recorded.is_some() {
            self.w.put(e.page, if model { was } else { List::Active });
        }
    }

    fn call(&mut self, e: &Event, kind: Kind, active: u32, dirty: u32) {
        self.tallies.input(if kind == Kind::Age { "calls of refill_inactive_scan" } else { "calls of page_launder" });
        self.close(e.pid);
        self.free_buffers(dirty);
        let have = (self.w.mm.active.len(), self.w.mm.inactive.len());
        let line = e.line;
        self.lengths
            .count(have == (active, dirty), || format!("line {line}: kernel {:?}, model {have:?}", (active, dirty)));
        let left = if kind == Kind::Age { active >> SHARE } else { dirty >> SHARE };
        let flags = AllocFlags { wait: false, io: true, fs: true };
        let cur = Cursor::new(&self.config.reclaim, NORMAL, flags, false);
        self.calls.insert(e.pid, Call { kind, pid: e.pid, left, cur });
        let goes_on = |at: usize| {
            self.log.events.get(at).is_some_and(|n| match kind {
                Kind::Age => matches!(n.what, What::RotateActive | What::AgeDown),
                Kind::Launder => {
                    matches!(n.what, What::Activate | What::ToInactiveClean | What::WritepageLaunder | What::Evict)
                }
            })
        };
        if !goes_on(e.next) {
            self.close(e.pid);
        }
    }

    /// Pages of buffers that a call has freed without a line: the list is shorter than the model's. The last ones passed over
    /// go.
    fn free_buffers(&mut self, dirty: u32) {
        let mut surplus = self.w.mm.inactive.len().saturating_sub(dirty);
        if surplus == 0 {
            return;
        }
        let ids: Vec<u32> = self.w.mm.inactive.iter_from_tail(&self.w.mm.pages).collect();
        for id in ids.into_iter().rev().filter(|id| self.w.mm.page(*id).any(flag::META)).collect::<Vec<_>>() {
            if surplus == 0 {
                return;
            }
            surplus -= 1;
            self.tallies.hidden("pages of buffers freed without a line");
            let page = self.w.instance(id);
            self.w.drop(page);
        }
    }

    /// A call is over: what is left of its steps passed pages over.
    fn close(&mut self, pid: u32) {
        let Some(mut call) = self.calls.remove(&pid) else { return };
        while call.left > 0 {
            let tail = self.tail(call.kind);
            if tail == NIL {
                return;
            }
            self.pass_over(&mut call);
        }
    }

    fn tail(&self, kind: Kind) -> u32 {
        if kind == Kind::Age { self.w.mm.active.tail() } else { self.w.mm.inactive.tail() }
    }

    /// A step that the log does not show.
    fn pass_over(&mut self, call: &mut Call) {
        call.left -= 1;
        let id = self.tail(call.kind);
        let n = self.w.instance(id);
        let was = *self.w.mm.page(id);
        let fate = self.model_step(call, id);
        if fate == Fate::Gone && was.any(flag::META) {
            // A page of buffers was freed: this, too, is silent.
            return;
        }
        let score = if call.kind == Kind::Age { &mut self.plenty } else { &mut self.silent };
        if !self.unscored[n as usize] {
            score.count(fate == Fate::Passed, || format!("page {:?}: model {fate:?}", self.log.pages[n as usize]));
        }
        if fate != Fate::Passed {
            self.let_go(call.pid);
            self.undo(n, &was, if call.kind == Kind::Age { List::Active } else { List::Inactive });
            if !was.any(flag::LOCKED) {
                self.assume_plenty(call.kind, usize::from(was.zone), true);
            }
        }
    }

    /// The zone must have had (no) plenty: so many frames were free.
    fn assume_plenty(&mut self, kind: Kind, zone: usize, plenty: bool) {
        self.tallies.hidden("corrections of the number of free frames");
        let z = self.w.mm.zones.zone[zone];
        let (limit, have) = match kind {
            Kind::Age => (z.size / 3, self.w.mm.inactive_in(zone) - z.free),
            Kind::Launder => (2 * z.high, self.w.mm.available(zone) - z.free),
        };
        let at_limit = limit.saturating_sub(have);
        self.w.free[zone] = if plenty { at_limit + 1 } else { at_limit };
        self.w.settle();
    }

    /// The engine's own step on the page at the tail.
    fn model_step(&mut self, call: &mut Call, id: u32) -> Fate {
        let was = *self.w.mm.page(id);
        let cfg = &self.config.reclaim;
        let fate = match call.kind {
            Kind::Age => {
                self.rules.forget_mark(&mut self.w.mm, id);
                let referenced = self.w.mm.page(id).any(flag::REFERENCED);
                match aging::age_one(&cfg.aging, &mut self.w.mm, &mut call.cur) {
                    Aged::Spared | Aged::NoPage => Fate::Passed,
                    Aged::Deactivated => Fate::Deactivated,
                    Aged::Kept if referenced => Fate::Older,
                    Aged::Kept => Fate::Younger,
                }
            }
            Kind::Launder => {
                call.cur.scan_left = 1;
                let looked = aging::launder_one(cfg, &mut self.w.mm, &mut call.cur);
                if let Looked::Needs(
                    Need::WritePage(_) | Need::WriteBuffer(_) | Need::WaitPage(_) | Need::WaitBuffer(_),
                ) = looked
                {
                    // Whoever writes a page holds it until it goes on.
                    self.let_go(call.pid);
                    self.held.insert(call.pid, id);
                    call.cur.phase = Phase::Scan;
                    self.w.written(id);
                    Fate::Laundered
                } else {
                    let p = *self.w.mm.page(id);
                    match p.list {
                        _ if !p.any(flag::PRESENT) => Fate::Gone,
                        List::Active => Fate::Activated,
                        List::Clean => Fate::Clean,
                        _ => Fate::Passed,
                    }
                }
            }
        };
        debug_assert!(was.list != List::None);
        self.w.mm.unlocked.clear();
        self.w.settle();
        fate
    }

    /// The model did something that the kernel did not: as before, at the head of `list`.
    fn undo(&mut self, n: u32, was: &crate::mm::page::Page, list: List) {
        let id = self.w.id(n);
        if !self.w.mm.page(id).any(flag::PRESENT) {
            let page = self.log.pages[n as usize];
            self.w.restore(n, &page, self.config, list, was.flags, was.age);
            return;
        }
        self.w.set_state(id, was.flags, was.age);
        self.w.put(n, list);
    }

    /// A logged step: the pages between the tail and this one were passed over. True if it is where the model looks next.
    fn reach(&mut self, call: &mut Call, n: u32) -> bool {
        let list = if call.kind == Kind::Age { List::Active } else { List::Inactive };
        let id = self.w.id(n);
        let mut at = self.tail(call.kind);
        let mut steps = 0;
        while at != NIL && at != id && steps < call.left {
            at = self.w.mm.page(at).prev;
            steps += 1;
        }
        let found = at == id && call.left > steps;
        if found {
            for _ in 0..steps {
                if self.tail(call.kind) != id {
                    self.pass_over(call);
                }
            }
        }
        let there = self.w.list(n) == list && self.w.at_tail(n, list);
        if !there {
            self.w.put(n, list);
            self.w.at_tail(n, list);
        }
        call.left = call.left.saturating_sub(1);
        found && there
    }

    /// A logged step of `kind` on a page; what the model did, and whether it was its turn.
    fn logged(&mut self, e: &Event, kind: Kind, recorded: Fate, head: List) {
        if e.page == NONE {
            return;
        }
        let Some(mut call) = self.calls.remove(&e.pid).filter(|c| c.kind == kind) else {
            self.tallies.hidden("list moves outside of logged calls");
            self.w.put(e.page, head);
            return;
        };
        let order = self.reach(&mut call, e.page);
        let id = self.w.id(e.page);
        let mut was = *self.w.mm.page(id);
        let mut model = self.model_step(&mut call, id);
        let passed = model == Fate::Passed && !was.any(flag::LOCKED);
        if passed && recorded != Fate::Passed {
            // It was this page's turn: its zone had no plenty.
            let plenty = if kind == Kind::Age { &mut self.plenty } else { &mut self.silent };
            if !self.unscored[e.page as usize] {
                plenty.count(false, || format!("line {}: kernel {recorded:?}, model passes over", e.line));
            }
            self.assume_plenty(kind, usize::from(was.zone), false);
            let list = if kind == Kind::Age { List::Active } else { List::Inactive };
            self.w.at_tail(e.page, list);
            was = *self.w.mm.page(id);
            model = self.model_step(&mut call, id);
        }
        if self.scored(e.page) {
            let line = e.line;
            let (order_score, outcomes, map, passes) = match kind {
                Kind::Age => (&mut self.age_order, &mut self.age_all, &mut self.age, &mut self.plenty),
                Kind::Launder => (&mut self.launder_order, &mut self.launder_all, &mut self.launder, &mut self.silent),
            };
            outcomes.count(model == recorded, || format!("line {line}"));
            if !passed {
                passes.count(true, String::new);
            }
            order_score.count(order, || format!("line {line}: page {:?} {}", e.owner, e.index));
            let name = match recorded {
                Fate::Older => "aging: older",
                Fate::Younger => "aging: younger",
                Fate::Deactivated => "aging: deactivate",
                Fate::Activated => "launder: activate",
                Fate::Clean => "launder: clean",
                _ => "launder: write",
            };
            let score = map.entry(name).or_insert_with(|| Score::new(name, None));
            score.count(model == recorded, || {
                format!(
                    "line {line}: page {:?} {}: model {model:?} (flags {:#x}, age {})",
                    e.owner, e.index, was.flags, was.age
                )
            });
        }
        if model != recorded {
            self.let_go(e.pid);
            self.undo(e.page, &was, head);
            self.settle_fate(id, recorded);
            if recorded == Fate::Laundered {
                self.w.mm.page_mut(id).pins += 1;
                self.held.insert(e.pid, id);
            }
        }
        if kind == Kind::Launder && recorded == Fate::Laundered {
            // The page stays where it is, and the next step meets it again.
            self.w.at_tail(e.page, List::Inactive);
        }
        let over = match self.log.events.get(e.next).map(|n| n.what) {
            Some(What::RotateActive | What::AgeDown) => kind != Kind::Age,
            Some(What::ToInactiveDirty) => kind != Kind::Age,
            Some(What::Activate | What::ToInactiveClean | What::WritepageLaunder | What::Evict) => {
                kind != Kind::Launder
            }
            _ => true,
        };
        self.calls.insert(e.pid, call);
        if over && recorded != Fate::Laundered {
            self.close(e.pid);
        }
    }

    fn settle_fate(&mut self, id: u32, recorded: Fate) {
        let rules = self.config.reclaim.aging;
        let mm = &mut self.w.mm;
        match recorded {
            Fate::Older => {
                mm.clear(id, flag::REFERENCED);
                mm.age_up(id);
            }
            Fate::Younger => {
                mm.clear(id, flag::REFERENCED);
                mm.age_down(id);
            }
            Fate::Deactivated => {
                mm.clear(id, flag::REFERENCED);
                mm.page_mut(id).age = 0;
            }
            Fate::Activated => mm.page_mut(id).age = rules.start,
            Fate::Laundered => {
                mm.clear(id, flag::DIRTY);
                mm.set(id, flag::LOCKED);
                self.w.written(id);
            }
            _ => {}
        }
    }

    fn aged(&mut self, e: &Event) {
        let deactivated =
            self.log.events.get(e.next).is_some_and(|n| n.what == What::ToInactiveDirty && n.page == e.page);
        let (fate, head) = match e.what {
            What::RotateActive => (Fate::Older, List::Active),
            _ if deactivated => (Fate::Deactivated, List::Inactive),
            _ => (Fate::Younger, List::Active),
        };
        if deactivated {
            self.explained[e.next] = true;
        }
        self.logged(e, Kind::Age, fate, head);
    }

    fn laundered(&mut self, e: &Event) {
        let (fate, head) = if e.what == What::ToInactiveClean {
            (Fate::Clean, List::Clean)
        } else {
            (Fate::Laundered, List::Inactive)
        };
        self.logged(e, Kind::Launder, fate, head);
    }

    /// A page comes on the dirty list: by its coming at all, by aging, by being unmapped at age 0, or from a clean list.
    fn made_inactive(&mut self, i: usize, e: &Event) {
        if self.explained[i] {
            let next = self.log.events.get(e.next).map(|n| n.what);
            if !matches!(next, Some(What::RotateActive | What::AgeDown)) {
                self.close(e.pid);
            }
            return;
        }
        if e.page == NONE || self.w.list(e.page) == List::Inactive {
            return;
        }
        if self.w.list(e.page) == List::Active {
            let id = self.w.id(e.page);
            self.w.mm.clear(id, flag::REFERENCED);
            self.w.mm.page_mut(id).age = 0;
        }
        self.tallies.hidden("list moves outside of logged calls");
        self.w.put(e.page, List::Inactive);
    }

    fn activated(&mut self, i: usize, e: &Event) {
        if self.explained[i] || e.page == NONE {
            return;
        }
        let id = self.w.id(e.page);
        let rules = self.config.reclaim.aging;
        match self.w.list(e.page) {
            List::Clean => {
                let order = self.w.at_tail(e.page, List::Clean);
                let model = self.w.mm.must_reactivate(id, &rules);
                if self.scored(e.page) {
                    let line = e.line;
                    self.clean_order.count(order, || format!("line {line}: page {:?} {}", e.owner, e.index));
                    self.reclaim.count(model, || format!("line {line}: kernel reactivates, model does not"));
                }
                self.w.mm.reactivate_aged(id, &rules);
            }
            List::Inactive if self.calls.get(&e.pid).is_some_and(|c| c.kind == Kind::Launder) => {
                self.logged(e, Kind::Launder, Fate::Activated, List::Active);
            }
            List::Active => {}
            _ => {
                self.tallies.hidden("activations without a logged access");
                self.w.put(e.page, List::Active);
                let p = self.w.mm.page_mut(id);
                p.age = p.age.max(rules.start);
            }
        }
    }

    fn evicted(&mut self, e: &Event) {
        if e.page == NONE {
            return;
        }
        let id = self.w.id(e.page);
        let order = self.w.list(e.page) == List::Clean && self.w.at_tail(e.page, List::Clean);
        let rules = self.config.reclaim.aging;
        let p = *self.w.mm.page(id);
        let model = !self.w.mm.must_reactivate(id, &rules) && !p.any(flag::BUFFER | flag::DIRTY | flag::LOCKED);
        if self.scored(e.page) {
            let line = e.line;
            self.clean_order.count(order, || format!("line {line}: page {:?} {}", e.owner, e.index));
            self.reclaim
                .count(model, || format!("line {line}: kernel takes it, model does not (flags {:#x})", p.flags));
        }
        self.w.drop(e.page);
    }
}
