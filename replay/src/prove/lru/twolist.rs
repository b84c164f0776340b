//! The two-list kernels: `refill_inactive` and `shrink_cache`, held to a log step by step, or left to themselves.

use std::collections::BTreeMap;

use super::events::{Event, Log, NONE, What};
use super::free::Sequences;
use super::world::World;
use super::{ORDER, OUTCOME, Rules, Tallies};
use crate::config::{Config, ReadMark};
use crate::mm::page::{List, flag};
use crate::mm::zone::{AllocFlags, NORMAL};
use crate::prove::scores::Score;
use crate::reclaim::twolist;
use crate::reclaim::{Cursor, Looked, Need};

const EXACT: Option<f64> = Some(100.0);
/// Of a page that the model writes and the kernel does not at that time, us.
const WRITE_US: u64 = 20_000;

/// What became of a page of the inactive list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Laundered,
    Evicted,
    Activated,
}

/// A call of `shrink_cache` under way.
struct Call {
    cur: Cursor,
    line: usize,
    /// The model says that it is over.
    over: bool,
    /// The kernel went on after that.
    overrun: bool,
}

pub(super) struct Player<'a> {
    log: &'a Log,
    config: &'a Config,
    rules: &'a Rules,
    unscored: &'a [bool],
    w: World,
    /// Page of the last copy of each process.
    copied: BTreeMap<u32, u32>,
    /// Lines that an access has explained.
    explained: Vec<bool>,
    pub(super) tallies: Tallies,
}

/// Scores of a log held to the record after every step.
pub(super) struct Step {
    calls: BTreeMap<u32, Call>,
    /// Inactive pages before a process's refill.
    before: BTreeMap<u32, i64>,
    /// Pages wanted and priority of a process's next call.
    expected: BTreeMap<u32, (i64, u32)>,
    scan_order: Score,
    scan_all: Score,
    scan: BTreeMap<&'static str, Score>,
    refill_order: Score,
    refill_all: Score,
    refill: BTreeMap<&'static str, Score>,
    activation: Score,
    lengths: Score,
    refill_n: Score,
    max_scan: Score,
    ends: Score,
    next_call: Score,
}

fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "scan: kept",
        Fate::Laundered => "scan: launder",
        Fate::Evicted => "scan: evict",
        Fate::Activated => "scan: activate",
    }
}

impl<'a> Player<'a> {
    pub(super) fn new(log: &'a Log, config: &'a Config, rules: &'a Rules, unscored: &'a [bool]) -> Self {
        Self {
            log,
            config,
            rules,
            unscored,
            w: World::new(log, config),
            copied: BTreeMap::new(),
            explained: vec![false; log.events.len()],
            tallies: Tallies::default(),
        }
    }

    /// Inputs that both ways of playing share; true if the line was one.
    fn input(&mut self, i: usize, e: &Event) -> bool {
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
                if self.config.reclaim.swapin_accessed && self.log.faulted.contains(&i) {
                    // The fault that waits for it marks it when it has come.
                    let id = self.w.id(e.page);
                    self.w.mm.mark_accessed(id);
                }
            }
            What::LruDel { evicted } => {
                // A page that is taken off the lists without reclaim: freed, or a swap page brought in.
                if !evicted && e.page != NONE {
                    t.input("pages deleted");
                    self.w.drop(e.page);
                }
            }
            What::ReadAccess | What::WriteAccess | What::NopageFault | What::SwapFault { .. } => {
                t.input("accesses");
                return false;
            }
            What::Unmap => {
                t.input("unmappings");
                if e.page != NONE {
                    self.w.unmapped(e.page);
                }
            }
            _ => return false,
        }
        if let Some(&(page, mapped)) = self.log.mapping.get(&i) {
            self.w.set_mapped(page, mapped);
        }
        true
    }

    /// What an access does; true if it activated the page.
    fn access(&mut self, i: usize, e: &Event) -> bool {
        if let Some(&(page, mapped)) = self.log.mapping.get(&i) {
            self.tallies.hidden("mappings by looking ahead");
            self.w.set_mapped(page, mapped);
        }
        if e.page == NONE || self.w.list(e.page) == List::None {
            return false;
        }
        let cfg = &self.config.reclaim;
        let id = self.w.id(e.page);
        let was = self.w.list(e.page);
        match e.what {
            What::ReadAccess => {
                // Successive copies out of one page: one mark, where only the first counts.
                let again = self.copied.insert(e.pid, e.page) == Some(e.page);
                if cfg.read_mark == ReadMark::EveryCopy || !again {
                    self.w.mm.mark_accessed(id);
                }
            }
            What::WriteAccess => self.w.mm.set(id, flag::REFERENCED),
            What::NopageFault if cfg.fault_activates && was == List::Inactive => self.w.mm.activate(id),
            What::NopageFault => self.w.mm.mark_accessed(id),
            What::SwapFault { .. } if cfg.swapin_accessed => self.w.mm.mark_accessed(id),
            _ => {}
        }
        was != List::Active && self.w.list(e.page) == List::Active
    }

    /// The line that says that this access activated its page.
    fn activation_of(&self, e: &Event) -> Option<usize> {
        let n = self.log.events.get(e.next)?;
        (n.what == What::Activate && n.page == e.page && e.page != NONE).then_some(e.next)
    }

    /// An activation that no access explains: metadata, or a page-table entry found used.
    fn hidden_activation(&mut self, i: usize, e: &Event) {
        if self.explained[i] || e.page == NONE {
            return;
        }
        self.tallies.hidden("activations without a logged access");
        self.w.put(e.page, List::Active);
        let id = self.w.id(e.page);
        self.w.mm.clear(id, flag::REFERENCED);
    }

    fn cursor(&self, want: i64, priority: u32) -> Cursor {
        let mut cur = Cursor::new(&self.config.reclaim, NORMAL, AllocFlags::USER, false);
        (cur.want, cur.priority, cur.phase) = (want, priority.max(1), crate::reclaim::Phase::Scan);
        cur
    }

    /// One page of a scan.
    fn scan_one(&mut self, cur: &mut Cursor) -> (Looked, u32) {
        let tail = self.w.mm.inactive.tail();
        let looked = twolist::scan_one(&self.config.reclaim, &mut self.w.mm, cur, &self.w.limits);
        if let Looked::Needs(need) = looked {
            // What takes time goes on by itself: the end of the I/O is in the log.
            let (Need::WritePage(id) | Need::WriteBuffer(id) | Need::WaitPage(id) | Need::WaitBuffer(id)) = need else {
                return (looked, tail);
            };
            self.w.mm.page_mut(id).pins -= 1;
            cur.phase = crate::reclaim::Phase::Scan;
            if matches!(need, Need::WritePage(_)) {
                self.w.written(id);
            }
        }
        self.w.mm.unlocked.clear();
        self.w.settle();
        (looked, tail)
    }

    // --- held to the log ---

    pub(super) fn step(mut self) -> (Vec<Score>, Tallies) {
        let mut s = Step::new();
        for i in 0..self.log.events.len() {
            let e = self.log.events[i];
            if self.input(i, &e) {
                continue;
            }
            match e.what {
                What::ReadAccess | What::WriteAccess | What::NopageFault | What::SwapFault { .. } => {
                    self.step_access(&mut s, i, &e);
                }
                What::Activate => self.hidden_activation(i, &e),
                What::RefillInactive { n, active, inactive } => self.step_refill(&mut s, &e, n, active, inactive),
                What::RotateActive | What::Deactivate => self.step_refill_one(&mut s, &e),
                What::ShrinkCache { want, inactive, rest } => self.step_call(&mut s, &e, want, inactive, rest),
                What::ScanInactive => self.step_scan(&mut s, &e),
                What::Evict if e.page != NONE => self.w.drop(e.page),
                _ => {}
            }
        }
        (s.scores(), self.tallies)
    }

    fn scored(&mut self, page: u32) -> bool {
        let yes = page != NONE && !self.unscored[page as usize];
        if !yes {
            self.tallies.hidden("decisions on pages that are not scored (programs, metadata)");
        }
        yes
    }

    fn step_access(&mut self, s: &mut Step, i: usize, e: &Event) {
        let model = self.access(i, e);
        let recorded = self.activation_of(e);
        if let Some(line) = recorded {
            self.explained[line] = true;
        }
        if e.page == NONE || (!model && recorded.is_none()) {
            return;
        }
        if self.scored(e.page) {
            s.activation.count(model == recorded.is_some(), || {
                format!("line {}: kernel {}, model {}", e.line, moved(recorded.is_some()), moved(model))
            });
        }
        if model != recorded.is_some() {
            self.w.put(e.page, if recorded.is_some() { List::Active } else { List::Inactive });
            let id = self.w.id(e.page);
            self.w.mm.clear(id, flag::REFERENCED);
        }
    }

    fn step_refill(&mut self, s: &mut Step, e: &Event, n: i64, active: u32, inactive: u32) {
        self.tallies.input("calls of refill_inactive");
        s.before.insert(e.pid, i64::from(self.w.mm.inactive.len()));
        let have = (self.w.mm.active.len(), self.w.mm.inactive.len());
        s.lengths.count(have == (active, inactive), || {
            format!("line {}: kernel {:?}, model {have:?}", e.line, (active, inactive))
        });
        // What the pass wants stands in the call of shrink_cache that follows.
        let mut at = e.next;
        let want = loop {
            match self.log.events.get(at) {
                Some(x) if matches!(x.what, What::RotateActive | What::Deactivate) => at = x.next,
                Some(Event { what: What::ShrinkCache { want, .. }, .. }) => break *want,
                _ => return,
            }
        };
        let model = twolist::refill_share(&self.config.reclaim, &self.w.mm, want);
        s.refill_n.count(model == Some(n), || format!("line {}: kernel {n}, model {model:?}", e.line));
    }

    fn step_refill_one(&mut self, s: &mut Step, e: &Event) {
        if e.page == NONE {
            return;
        }
        let scored = self.scored(e.page);
        let order = self.w.list(e.page) == List::Active && self.w.at_tail(e.page, List::Active);
        if scored {
            s.refill_order.count(order, || format!("line {}: page {:?}", e.line, (e.owner, e.index)));
        }
        if self.w.list(e.page) != List::Active {
            self.w.put(e.page, List::Active);
        }
        let id = self.w.id(e.page);
        self.rules.forget_mark(&mut self.w.mm, id);
        twolist::refill_one(&self.config.reclaim, &mut self.w.mm, NORMAL, id);
        let model = self.w.list(e.page) == List::Inactive;
        let recorded = e.what == What::Deactivate;
        if scored {
            let name = if recorded { "refill: deactivate" } else { "refill: rotate" };
            s.refill_all.count(model == recorded, || format!("line {}", e.line));
            let score = s.refill.entry(name).or_insert_with(|| Score::new(name, None));
            score.count(model == recorded, || {
                format!("line {}: model {}", e.line, if model { "deactivates" } else { "rotates" })
            });
        }
        if model != recorded {
            self.w.put(e.page, if recorded { List::Inactive } else { List::Active });
            self.w.mm.clear(id, flag::REFERENCED);
            if recorded && self.config.reclaim.refill_marks {
                self.w.mm.set(id, flag::REFERENCED);
            }
        }
    }

    fn step_call(&mut self, s: &mut Step, e: &Event, want: i64, inactive: u32, rest: i64) {
        self.tallies.input("calls of shrink_cache");
        self.end_call(s, e.pid);
        let refilled = s.before.remove(&e.pid);
        if refilled.is_none() {
            let model = twolist::refill_share(&self.config.reclaim, &self.w.mm, want);
            s.refill_n.count(model.is_none(), || format!("line {}: kernel none, model {model:?}", e.line));
        }
        let length = self.w.mm.inactive.len();
        s.lengths.count(length == inactive, || format!("line {}: kernel {inactive}, model {length}", e.line));
        let (budget, mut priority) = (rest >> 8, (rest & 255) as u32);
        let fresh = (i64::from(self.config.reclaim.cluster), self.config.reclaim.def_priority);
        let expected = s.expected.remove(&e.pid).unwrap_or(fresh);
        if priority == 0 {
            // This kernel logs no priority: the one that is due.
            priority = expected.1;
        } else {
            s.next_call.count((want, priority) == expected, || {
                format!("line {}: kernel {:?}, model {expected:?}", e.line, (want, priority))
            });
        }
        let mut cur = self.cursor(want, priority);
        let before = refilled.unwrap_or(i64::from(length));
        twolist::begin_scan(&self.config.reclaim, &mut self.w.mm, &mut cur, before);
        s.max_scan.count(cur.scan_left == budget, || {
            format!("line {}: kernel {budget}, model {} (priority {priority}, {before} pages)", e.line, cur.scan_left)
        });
        if cur.scan_left != budget && rest & 255 == 0 {
            // Its priority was another one, which its budget tells.
            let fits = (1..=self.config.reclaim.def_priority).rev().find(|p| before / i64::from(*p) == budget);
            cur.priority = fits.unwrap_or(cur.priority);
        }
        cur.scan_left = budget;
        let over = budget == 0;
        s.calls.insert(e.pid, Call { cur, line: e.line, over, overrun: false });
    }

    /// The next call of a process begins, or the log ends: was its last one over?
    fn end_call(&mut self, s: &mut Step, pid: u32) {
        let Some(mut call) = s.calls.remove(&pid) else { return };
        let empty = self.w.mm.inactive.is_empty();
        s.ends.count((call.over || empty) && !call.overrun, || {
            format!(
                "call of line {}: the kernel {}; {} steps and {} pages left",
                call.line,
                if call.overrun { "went on" } else { "ended it" },
                call.cur.scan_left,
                call.cur.want
            )
        });
        let fresh = (i64::from(self.config.reclaim.cluster), self.config.reclaim.def_priority);
        let next = if call.cur.want <= 0 || call.cur.priority <= 1 {
            fresh
        } else {
            call.cur.priority -= 1;
            (if self.config.reclaim.want_carried { call.cur.want } else { fresh.0 }, call.cur.priority)
        };
        s.expected.insert(pid, next);
    }

    fn recorded_fate(&self, e: &Event) -> Fate {
        match self.log.events.get(e.next) {
            Some(n) if n.page == e.page && n.what == What::Evict => Fate::Evicted,
            Some(n) if n.page == e.page && n.what == What::WritepageLaunder => Fate::Laundered,
            Some(n) if n.page == e.page && n.what == What::Activate => Fate::Activated,
            _ => Fate::Kept,
        }
    }

    fn step_scan(&mut self, s: &mut Step, e: &Event) {
        let Some(mut call) = s.calls.remove(&e.pid) else { return };
        call.overrun |= call.over;
        if e.page == NONE {
            s.calls.insert(e.pid, call);
            return;
        }
        let scored = self.scored(e.page);
        let order = self.w.list(e.page) == List::Inactive && self.w.at_tail(e.page, List::Inactive);
        if scored {
            s.scan_order.count(order, || format!("line {}: page {:?} {}", e.line, e.owner, e.index));
        }
        if self.w.list(e.page) != List::Inactive {
            self.w.put(e.page, List::Inactive);
            self.w.at_tail(e.page, List::Inactive);
        }
        let id = self.w.id(e.page);
        let was = *self.w.mm.page(id);
        call.cur.scan_left = call.cur.scan_left.max(1);
        let (looked, _) = self.scan_one(&mut call.cur);
        let p = *self.w.mm.page(id);
        let model = match looked {
            Looked::Needs(Need::WritePage(_) | Need::WriteBuffer(_)) => Fate::Laundered,
            _ if !p.any(flag::PRESENT) => Fate::Evicted,
            _ if p.list == List::Active => Fate::Activated,
            _ => Fate::Kept,
        };
        let recorded = self.recorded_fate(e);
        if scored {
            let name = fate_name(recorded);
            s.scan_all.count(model == recorded, || format!("line {}", e.line));
            let score = s.scan.entry(name).or_insert_with(|| Score::new(name, None));
            score.count(model == recorded, || {
                format!("line {}: page {:?} {}: model {model:?} (flags {:#x})", e.line, e.owner, e.index, was.flags)
            });
        }
        if model != recorded {
            self.correct(&mut call.cur, e, model, recorded, &was);
        }
        call.over = looked == Looked::Over && model == recorded
            || call.cur.scan_left <= 0
            || call.cur.want <= 0
            || call.cur.mapped_left < 0;
        s.calls.insert(e.pid, call);
    }

    /// The kernel did something else: so be it.
    fn correct(&mut self, cur: &mut Cursor, e: &Event, model: Fate, recorded: Fate, was: &crate::mm::page::Page) {
        let id = self.w.id(e.page);
        if model == Fate::Evicted {
            cur.want += 1;
            let page = self.log.pages[e.page as usize];
            self.w.restore(e.page, &page, self.config, List::Inactive, was.flags, was.age);
        }
        match recorded {
            Fate::Evicted => cur.want -= 1, // the line that says so takes the page
            Fate::Laundered => {
                self.w.mm.clear(id, flag::DIRTY);
                if !self.w.mm.page(id).any(flag::LOCKED) {
                    self.w.mm.lock(id);
                }
                self.w.mm.set(id, flag::LAUNDER);
                self.w.written(id);
            }
            Fate::Activated => self.w.put(e.page, List::Active),
            Fate::Kept => {
                self.w.put(e.page, List::Inactive);
                if model == Fate::Laundered {
                    self.w.mm.unlock(id);
                    self.w.mm.set(id, flag::DIRTY);
                }
            }
        }
    }

    // --- left to itself ---

    pub(super) fn free(mut self) -> Sequences {
        let mut seq = Sequences::default();
        // Writes that the model made on its own end after a while.
        let mut writes: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for i in 0..self.log.events.len() {
            let e = self.log.events[i];
            while let Some(first) = writes.first_entry().filter(|w| *w.key() <= e.at) {
                for page in first.remove() {
                    self.w.io_done(page);
                }
            }
            if self.input(i, &e) {
                continue;
            }
            match e.what {
                What::ReadAccess | What::WriteAccess | What::NopageFault | What::SwapFault { .. } => {
                    if let Some(line) = self.activation_of(&e) {
                        self.explained[line] = true;
                        seq.activate.recorded.push(e.page);
                    }
                    if self.access(i, &e) {
                        seq.activate.modelled.push(e.page);
                    }
                }
                What::Activate if e.page != NONE && self.w.list(e.page) == List::Inactive => {
                    self.hidden_activation(i, &e);
                }
                What::Deactivate => seq.deactivate.recorded.push(e.page),
                What::WritepageLaunder => seq.launder.recorded.push(e.page),
                What::Evict if e.page != NONE => seq.evict.recorded.push(e.page),
                What::ShrinkCache { want, rest, .. } => {
                    let priority = if rest & 255 == 0 { self.config.reclaim.def_priority } else { (rest & 255) as u32 };
                    self.free_call(&mut seq, &mut writes, e.at, want, priority);
                }
                _ => {}
            }
        }
        seq
    }

    fn free_call(
        &mut self,
        seq: &mut Sequences,
        writes: &mut BTreeMap<u64, Vec<u32>>,
        at: u64,
        want: i64,
        priority: u32,
    ) {
        let mut cur = self.cursor(want, priority);
        let before = i64::from(self.w.mm.inactive.len());
        if let Some(mut n) = twolist::refill_share(&self.config.reclaim, &self.w.mm, want) {
            for _ in 0..self.w.mm.active.len() {
                if n <= 0 {
                    break;
                }
                let id = self.w.mm.active.tail();
                self.rules.forget_mark(&mut self.w.mm, id);
                n -= twolist::refill_one(&self.config.reclaim, &mut self.w.mm, NORMAL, id);
                if self.w.mm.page(id).list == List::Inactive {
                    seq.deactivate.modelled.push(self.w.instance(id));
                }
            }
        }
        twolist::begin_scan(&self.config.reclaim, &mut self.w.mm, &mut cur, before);
        loop {
            let (looked, id) = self.scan_one(&mut cur);
            if id != crate::mm::page::NIL {
                let page = self.w.instance(id);
                if let Looked::Needs(Need::WritePage(_)) = looked {
                    seq.launder.modelled.push(page);
                    writes.entry(at + WRITE_US).or_default().push(page);
                } else if !self.w.mm.page(id).any(flag::PRESENT) {
                    seq.evict.modelled.push(page);
                }
            }
            if looked == Looked::Over || cur.want <= 0 {
                return;
            }
        }
    }
}

fn moved(yes: bool) -> &'static str {
    if yes { "activates" } else { "does not activate" }
}

impl Step {
    fn new() -> Self {
        Self {
            calls: BTreeMap::new(),
            before: BTreeMap::new(),
            expected: BTreeMap::new(),
            scan_order: Score::new("scan order", ORDER),
            scan_all: Score::new("scan outcomes", OUTCOME),
            scan: BTreeMap::new(),
            refill_order: Score::new("refill order", ORDER),
            refill_all: Score::new("refill outcomes", OUTCOME),
            refill: BTreeMap::new(),
            activation: Score::new("activation by access", OUTCOME),
            lengths: Score::new("list lengths at calls", EXACT),
            refill_n: Score::new("refill steps (n)", OUTCOME),
            max_scan: Score::new("scan budget", OUTCOME),
            ends: Score::new("call ends", OUTCOME),
            next_call: Score::new("next call (wanted, priority)", OUTCOME),
        }
    }

    fn scores(self) -> Vec<Score> {
        let mut all = vec![self.scan_order, self.scan_all];
        all.extend(self.scan.into_values());
        all.extend([self.refill_order, self.refill_all]);
        all.extend(self.refill.into_values());
        all.extend([self.activation, self.lengths, self.refill_n, self.max_scan, self.ends, self.next_call]);
        all.retain(|s| s.of > 0);
        all
    }
}
