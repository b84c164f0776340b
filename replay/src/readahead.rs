//! On-demand read-ahead: the state machine of an open file, without any I/O.
//!
//! Source: mm/readahead.c (`page_cache_sync_ra`, `page_cache_async_ra`, `page_cache_ra_order`) and mm/filemap.c
//! (`do_sync_mmap_readahead`) of 6.1, 6.12 and 6.18. A read that misses decides a window; the page with the mark, when a
//! read reaches it, decides the next one. All positions and sizes are pages of the file.

use crate::config::OnDemandConfig;
use kreplay_traces::units::PAGE_BYTES;

/// What the application has said of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// Nothing (`POSIX_FADV_NORMAL`).
    #[default]
    Normal,
    /// Twice the window (`POSIX_FADV_SEQUENTIAL`).
    Sequential,
    /// No window (`POSIX_FADV_RANDOM`).
    Random,
}

/// State of an open file (`struct file_ra_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    start: u64,
    size: u64,
    async_size: u64,
    order: u32,
    /// Byte after the last read; `None` before the first.
    pub prev_pos: Option<u64>,
    mmap_miss: u32,
    /// Advice.
    pub hint: Hint,
}

impl Default for State {
    fn default() -> Self {
        Self { start: 0, size: 0, async_size: 0, order: 0, prev_pos: None, mmap_miss: 0, hint: Hint::Normal }
    }
}

/// Pages to bring in: those of `start .. start + size` that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First page.
    pub start: u64,
    /// Pages.
    pub size: u64,
    /// Page that gets the mark (the folio with it does); none if outside.
    pub mark: Option<u64>,
    /// Folios of up to 2^order pages.
    pub order: u32,
}

/// Misses through mappings after which read-around stops (`MMAP_LOTSAMISS`).
const LOTS_OF_MISSES: u32 = 100;

/// What is in the page cache around a position.
pub trait Cache {
    /// Pages in a row that are there right before `index`, looking at no more than `most`.
    fn run_before(&self, index: u64, most: u64) -> u64;
    /// First page from `index` on that is not there, looking at no more than `most`; `None` if all are.
    fn next_miss(&self, index: u64, most: u64) -> Option<u64>;
}

impl OnDemandConfig {
    fn window(&self, hint: Hint) -> u64 {
        let pages = u64::from(self.window_kib) / 4;
        if hint == Hint::Sequential { pages * 2 } else { pages }
    }
    fn io(&self) -> u64 {
        u64::from(self.io_kib) / 4
    }
    /// Largest window for a request of so many pages.
    fn most(&self, hint: Hint, want: u64) -> u64 {
        let window = self.window(hint);
        if want > window && self.io() > window { want.min(self.io()) } else { window }
    }
    /// Largest stretch that advice (`POSIX_FADV_WILLNEED`, `readahead(2)`) brings in, pages.
    pub fn advised(&self) -> u64 {
        self.io().max(self.window(Hint::Normal))
    }
}

/// `get_init_ra_size`.
fn first_size(want: u64, most: u64) -> u64 {
    let n = want.next_power_of_two();
    if n <= most / 32 {
        n * 4
    } else if n <= most / 4 {
        n * 2
    } else {
        most
    }
}

/// `get_next_ra_size`.
fn next_size(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        size * 4
    } else if size <= most / 2 {
        size * 2
    } else {
        most
    }
}

impl State {
    /// A read of `want` pages does not find page `index`.
    pub fn miss(&mut self, cfg: &OnDemandConfig, index: u64, want: u64, cache: &impl Cache) -> Window {
        let want = want.max(1);
        let plain = Window { start: index, size: want, mark: None, order: 0 };
        if self.hint == Hint::Random || cfg.window(Hint::Normal) == 0 {
            return plain;
        }
        let most = cfg.most(self.hint, want);
        // Unsigned as in the kernel: before the first read everything is far away.
        let step = index.wrapping_sub(self.prev_pos.map_or(u64::MAX >> 12, |p| p / PAGE_BYTES));
        if cfg.continues && index != 0 && index == self.start + self.size {
            self.start += self.size;
            self.size = next_size(self.size, most);
            self.async_size = self.size;
        } else if index == 0 || want > most || step <= 1 {
            self.start = index;
            self.size = first_size(want, most);
            self.async_size = match (self.size > want, cfg.continues) {
                (true, _) => self.size - want,
                (false, true) => self.size,
                (false, false) => self.size / 2,
            };
            if cfg.continues && self.async_size == self.size {
                // The next window would be due at once: it is merged into this one.
                let add = next_size(self.size, most);
                if self.size + add <= most {
                    self.async_size = add;
                    self.size += add;
                } else {
                    self.size = most;
                    self.async_size = most / 2;
                }
            }
        } else {
            let run = cache.run_before(index, most);
            if run <= want {
                return plain;
            }
            // Cached from the beginning of the file: a long stream.
            let run = if run == index { 2 * run } else { run };
            self.start = index;
            self.size = (run + want).min(most);
            self.async_size = 1;
        }
        self.order = 0;
        self.window()
    }

    /// A read of `want` pages reaches a marked folio of 2^`order` pages that begins at `index`.
    pub fn marked(
        &mut self,
        cfg: &OnDemandConfig,
        index: u64,
        order: u32,
        want: u64,
        cache: &impl Cache,
    ) -> Option<Window> {
        if cfg.window(Hint::Normal) == 0 {
            return None;
        }
        let most = cfg.most(self.hint, want);
        let expected = (self.start + self.size).wrapping_sub(self.async_size) >> order << order;
        if index == expected {
            self.start += self.size;
            let next = next_size(self.size, most);
            self.size = if cfg.aligned { self.size.max(next) } else { next };
        } else {
            let hole = cache.next_miss(index + 1, most).filter(|h| h - index <= most)?;
            self.start = hole;
            self.size = next_size(hole - index + want, most);
        }
        if cfg.aligned {
            self.order += 2;
            let align = 1u64 << self.order.min(most.trailing_zeros());
            let end = self.start + self.size;
            let aligned = end / align * align;
            if aligned > self.start {
                self.size = aligned - self.start;
            }
        } else {
            self.order = order + 2;
        }
        self.order = self.order.min(self.size.max(1).ilog2()).min(cfg.folio_order);
        self.async_size = self.size;
        Some(self.window())
    }

    /// A fault through a mapping does not find page `index`.
    pub fn fault(&mut self, cfg: &OnDemandConfig, index: u64) -> Window {
        let one = Window { start: index, size: 1, mark: None, order: 0 };
        let pages = cfg.window(Hint::Normal);
        if self.hint == Hint::Random || pages == 0 {
            return one;
        }
        self.mmap_miss = (self.mmap_miss + 1).min(10 * LOTS_OF_MISSES);
        if self.mmap_miss > LOTS_OF_MISSES {
            return one;
        }
        self.start = index.saturating_sub(pages / 2);
        self.size = pages;
        self.async_size = pages / 4;
        self.order = 0;
        self.window()
    }

    /// A fault through a mapping finds its page.
    pub fn fault_hit(&mut self) {
        self.mmap_miss = self.mmap_miss.saturating_sub(1);
    }

    /// Pages that a fault on a marked page asks for.
    pub fn fault_want(cfg: &OnDemandConfig) -> u64 {
        cfg.window(Hint::Normal)
    }

    fn window(&self) -> Window {
        Window {
            start: self.start,
            size: self.size,
            mark: (self.async_size > 0).then(|| self.start + self.size - self.async_size),
            order: self.order,
        }
    }
}

/// Order of the folio that `page_cache_ra_order` makes at `index` of a window: aligned to its index, within the window.
pub fn folio_order(window_order: u32, size: u64, largest: u32, index: u64, limit: u64) -> u32 {
    let mut order = window_order.min(size.max(1).ilog2()).min(largest);
    if index & ((1 << order) - 1) != 0 {
        order = index.trailing_zeros();
    }
    while order > 0 && index + (1 << order) - 1 > limit {
        order -= 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of which everything that was asked for is there at once.
    #[derive(Default)]
    struct Pages {
        there: std::collections::BTreeSet<u64>,
        marks: std::collections::BTreeMap<u64, u32>,
    }

    impl Cache for Pages {
        fn run_before(&self, index: u64, most: u64) -> u64 {
            (1..=most.min(index)).take_while(|k| self.there.contains(&(index - k))).count() as u64
        }
        fn next_miss(&self, index: u64, most: u64) -> Option<u64> {
            (index..index + most).find(|i| !self.there.contains(i))
        }
    }

    impl Pages {
        fn fill(&mut self, cfg: &OnDemandConfig, w: Window) {
            let mut i = w.start;
            while i < w.start + w.size {
                let order = folio_order(w.order, w.size, cfg.folio_order, i, w.start + w.size - 1);
                let pages = i..i + (1 << order);
                if w.mark.is_some_and(|m| pages.contains(&m)) {
                    self.marks.insert(i, order);
                }
                self.there.extend(pages.clone());
                i = pages.end;
            }
        }
    }

    /// Reads of `req` pages from `first` on: (page read, last page in memory) after each that changed something.
    fn stream(cfg: &OnDemandConfig, first: u64, req: u64, reads: u64) -> Vec<(u64, u64)> {
        let (mut s, mut c, mut out) = (State::default(), Pages::default(), Vec::new());
        for k in 0..reads {
            let from = first + k * req;
            for page in from..from + req {
                let want = from + req - page;
                if !c.there.contains(&page) {
                    let w = s.miss(cfg, page, want, &c);
                    c.fill(cfg, w);
                }
                let folio = c.marks.range(..=page).next_back().map(|(i, o)| (*i, *o));
                if let Some((head, order)) = folio.filter(|(i, o)| page < i + (1 << o)) {
                    c.marks.remove(&head);
                    if let Some(w) = s.marked(cfg, head, order, want + page - head, &c) {
                        c.fill(cfg, w);
                    }
                }
            }
            s.prev_pos = Some((from + req) * PAGE_BYTES);
            let last = c.there.last().copied().unwrap_or(0);
            if out.last().is_none_or(|(_, l)| *l != last) {
                out.push((from, last));
            }
        }
        out
    }

    /// As a real 6.18 did it on ext4 and xfs with 128 KiB.
    #[test]
    fn windows_of_6_18() {
        let cfg = OnDemandConfig::default();
        let from_the_start = [
            (0, 3),
            (1, 11),
            (4, 15),
            (12, 23),
            (16, 31),
            (24, 47),
            (32, 63),
            (48, 95),
            (64, 127),
            (96, 159),
            (128, 191),
        ];
        assert_eq!(stream(&cfg, 0, 1, 129), from_the_start);
        assert_eq!(stream(&cfg, 0, 16, 7), [(0, 31), (16, 63), (32, 95), (64, 127), (96, 159)]);
        assert_eq!(stream(&cfg, 0, 32, 3), [(0, 63), (32, 95), (64, 127)]);
        assert_eq!(stream(&cfg, 0, 64, 2), [(0, 127), (64, 191)]);
        let from_page_100 =
            [(100, 100), (101, 104), (102, 111), (105, 125), (112, 127), (126, 131), (128, 139), (132, 155)];
        assert_eq!(stream(&cfg, 100, 1, 33), from_page_100);
    }

    #[test]
    fn a_random_reader_gets_what_it_asks_for() {
        let cfg = OnDemandConfig::default();
        let (mut s, c) = (State::default(), Pages::default());
        assert_eq!(s.miss(&cfg, 1050, 4, &c), Window { start: 1050, size: 4, mark: None, order: 0 });
        s.hint = Hint::Random;
        assert_eq!(s.miss(&cfg, 0, 1, &c).size, 1);
    }

    #[test]
    fn a_fault_reads_around_and_its_mark_half_a_window_on() {
        let cfg = OnDemandConfig::default();
        let (mut s, mut c) = (State::default(), Pages::default());
        let w = s.fault(&cfg, 1000);
        assert_eq!((w.start, w.size, w.mark), (984, 32, Some(1008)));
        c.fill(&cfg, w);
        for _ in 0..LOTS_OF_MISSES {
            s.fault(&cfg, 5);
        }
        assert_eq!(s.fault(&cfg, 5).size, 1);
    }
}
