//! The figures of `btt` (blktrace 1.2) from a trace's block events: how long bios spend between queue and completion,
//! merges, seeks, plugs, active periods.
//!
//! The definitions are btt's own, its oddities included, so that the printed figures can be laid beside each other:
//! a stage counts once for each bio that an event's sectors contain; a bio takes the place of one that was queued at the
//! same first sector and is not complete; bios that are split never complete; "median" is the distance that at least half
//! of all seeks have, or 0. One thing cannot be the same: where bios in flight overlap, as split ones do with all that
//! comes later, which of them an event is charged to depends on the shape of btt's tree; here it is the one that begins
//! last. Where a figure has a better definition, [`DeviceStats`] carries that as well. Memory grows with
//! the bios in flight and with the number of distinct seek distances and active periods.

mod live;
mod seek;
mod text;

pub use live::Live;
pub use seek::{Mode, Seeks};
pub use text::text;

use std::collections::BTreeMap;

use kreplay_traces::event::BlockRow;
use kreplay_traces::units::SECTOR_BYTES;
use serde::Serialize;

/// Device majors of md and device mapper, which pass bios on.
const REMAPPERS: [i64; 3] = [9, 253, 254];

/// A stage's times, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Samples.
    pub n: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Sum.
    pub total_ns: u64,
}

impl Stage {
    fn add(&mut self, ns: u64) {
        if self.n == 0 {
            (self.min_ns, self.max_ns) = (ns, ns);
        }
        self.n += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.total_ns += ns;
    }

    /// Mean, seconds.
    pub fn avg_s(&self) -> f64 {
        seconds(self.total_ns) / self.n as f64
    }
}

macro_rules! stages {
    ($($(#[$doc:meta])* $field:ident: $name:literal,)*) => {
        /// Stages of a bio's way; what each is called in btt's table.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Stages {
            $($(#[$doc])* pub $field: Stage,)*
        }

        impl Stages {
            /// Name and times, in the order of btt's table.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, &Stage)> {
                [$(($name, &self.$field),)*].into_iter()
            }
        }
    };
}

stages! {
    /// From one bio to the next on a device that passes bios on.
    q2q_dm: "Q2Qdm",
    /// Queue to remap on such a device.
    q2a_dm: "Q2Adm",
    /// Queue to completion on such a device.
    q2c_dm: "Q2Cdm",
    /// From one bio to the next.
    q2q: "Q2Q",
    /// Queue to remap.
    q2a: "Q2A",
    /// Queue to a request.
    q2g: "Q2G",
    /// Asleep to a request.
    s2g: "S2G",
    /// Request to insertion.
    g2i: "G2I",
    /// Queue to merge.
    q2m: "Q2M",
    /// Insertion to dispatch.
    i2d: "I2D",
    /// Merge to dispatch.
    m2d: "M2D",
    /// Dispatch to completion.
    d2c: "D2C",
    /// Queue to completion.
    q2c: "Q2C",
    /// Queue to dispatch (btt writes these to files only).
    q2d: "Q2D",
}

/// One device's figures.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceStats {
    /// Number, `major << 20 | minor`.
    pub dev: i64,
    /// Stages of its bios.
    pub stages: Stages,
    /// Bios queued (and requeues).
    pub q: u64,
    /// Requests dispatched.
    pub d: u64,
    /// Back and front merges of bios.
    pub merges: u64,
    /// Sizes of completed requests, sectors: smallest, largest, sum.
    pub blocks_min: u64,
    /// Largest.
    pub blocks_max: u64,
    /// Sum.
    pub blocks_total: u64,
    /// Distances between bios in order of arrival.
    pub q2q_seeks: Seeks,
    /// Distances between requests in order of dispatch.
    pub d2d_seeks: Seeks,
    /// Unplugs by a task, and by a timer.
    pub unplugs: [u64; 2],
    /// Requests that these let go.
    pub unplugged: [u64; 2],
    /// Share of the time in which the queue was plugged, percent.
    pub plugged_pct: f64,
    /// Requests that the scheduler held when a bio came, summed over bios.
    pub active_at_q: u64,
    /// Periods with a request at the device.
    pub live: Live,
}

/// All figures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Btt {
    /// Stages over all devices.
    pub stages: Stages,
    /// Devices in the order of their first event.
    pub devices: Vec<DeviceStats>,
    /// Periods with a request at any device.
    pub live: Live,
}

fn seconds(ns: u64) -> f64 {
    (ns / 1_000_000_000) as f64 + (ns % 1_000_000_000) as f64 / 1e9
}

/// A bio on its way.
#[derive(Clone, Copy, Debug)]
struct Bio {
    end: u64,
    q: u64,
    s: Option<u64>,
    g: Option<u64>,
    i: Option<u64>,
    m: Option<u64>,
    d: Option<u64>,
}

#[derive(Debug)]
struct Device {
    stats: DeviceStats,
    passes_on: bool,
    /// Nothing but bios and remaps counts before the first of these.
    begun: bool,
    bios: BTreeMap<u64, Bio>,
    /// Longest bio so far, sectors.
    longest: u64,
    last_q: Option<u64>,
    active: u64,
    plugged_since: Option<f64>,
    plugged_s: f64,
    start_s: f64,
    end_s: f64,
}

/// Takes block events in time order; [`Collector::finish`] gives the figures.
#[derive(Debug, Default)]
pub struct Collector {
    devices: Vec<Device>,
    all: Stages,
    live: Live,
    last_q: Option<u64>,
    zero: Option<i64>,
}

/// An event's times and sectors.
#[derive(Clone, Copy)]
struct Span {
    at: u64,
    sector: u64,
    end: u64,
}

/// btt takes events that run backwards for a nanosecond apart.
fn delta(from: u64, to: u64) -> u64 {
    if from < to { to - from } else { 1 }
}

impl Collector {
    /// Takes an event.
    pub fn row(&mut self, row: &BlockRow<'_>) {
        let zero = *self.zero.get_or_insert(row.time_ns);
        let at = u64::try_from(row.time_ns - zero).unwrap_or(0);
        match row.action {
            "P" | "U" | "UT" => return self.plug(row, at),
            "R" => {
                let Some(d) = self.device(row.device(), at, false) else { return };
                d.stats.q += 1;
                d.stats.active_at_q += d.active;
                d.active += 1;
                return;
            }
            "A" => return self.remap(row, at),
            _ => {}
        }
        let sector = row.sector_512.and_then(|s| u64::try_from(s).ok());
        let bytes = row.len_bytes.and_then(|b| u64::try_from(b).ok()).unwrap_or(0);
        let (Some(sector), true) = (sector, bytes > 0) else { return };
        let span = Span { at, sector, end: sector + bytes / SECTOR_BYTES };
        let Some(k) = self.index(row.device(), at, row.action == "Q") else { return };
        match row.action {
            "Q" => self.queue(k, span),
            "S" => {
                if let Some(b) = self.devices[k].holding(sector) {
                    b.s = Some(at);
                }
            }
            "G" => self.get(k, span),
            "I" => self.insert(k, span),
            "M" | "F" => self.merge(k, span),
            "D" => self.dispatch(k, span),
            "C" => self.complete(k, span),
            _ => {}
        }
    }

    /// The device's place, unless its events do not count yet. A new device is remembered either way.
    fn index(&mut self, dev: i64, at: u64, begins: bool) -> Option<usize> {
        let k = self.devices.iter().position(|d| d.stats.dev == dev).unwrap_or_else(|| {
            self.devices.push(Device::new(dev, at));
            self.devices.len() - 1
        });
        let d = &mut self.devices[k];
        d.begun |= begins;
        if !d.begun {
            return None;
        }
        d.end_s = seconds(at);
        Some(k)
    }

    fn device(&mut self, dev: i64, at: u64, begins: bool) -> Option<&mut Device> {
        let k = self.index(dev, at, begins)?;
        Some(&mut self.devices[k])
    }

    fn queue(&mut self, k: usize, s: Span) {
        let d = &mut self.devices[k];
        // One queued at the same sector before, and not complete, is forgotten.
        d.bios.insert(s.sector, Bio { end: s.end, q: s.at, s: None, g: None, i: None, m: None, d: None });
        d.longest = d.longest.max(s.end - s.sector);
        d.stats.q2q_seeks.add(s.sector, s.end);
        let dm = d.passes_on;
        let gap = |last: &mut Option<u64>, stages: &mut Stages| {
            if let Some(l) = last.replace(s.at) {
                let stage = if dm { &mut stages.q2q_dm } else { &mut stages.q2q };
                stage.add(delta(l, s.at));
            }
        };
        gap(&mut d.last_q, &mut d.stats.stages);
        gap(&mut self.last_q, &mut self.all);
        d.stats.q += 1;
        d.stats.active_at_q += d.active;
        d.active += 1;
    }

    fn get(&mut self, k: usize, s: Span) {
        let d = &mut self.devices[k];
        let Some(b) = d.holding(s.sector) else { return };
        b.g = Some(s.at);
        let (q2g, slept) = (delta(b.q, s.at), b.s.map(|t| delta(t, s.at)));
        for stages in [&mut d.stats.stages, &mut self.all] {
            stages.q2g.add(q2g);
            if let Some(ns) = slept {
                stages.s2g.add(ns);
            }
        }
    }

    fn insert(&mut self, k: usize, s: Span) {
        let d = &mut self.devices[k];
        let Some(b) = d.holding(s.sector) else { return };
        b.i = Some(s.at);
        if let Some(g) = b.g {
            d.stats.stages.g2i.add(delta(g, s.at));
            self.all.g2i.add(delta(g, s.at));
        }
    }

    fn merge(&mut self, k: usize, s: Span) {
        let d = &mut self.devices[k];
        d.stats.merges += 1;
        d.active = d.active.saturating_sub(1);
        let Some(b) = d.holding(s.sector) else { return };
        b.m = Some(s.at);
        let ns = delta(b.q, s.at);
        d.stats.stages.q2m.add(ns);
        self.all.q2m.add(ns);
    }

    fn dispatch(&mut self, k: usize, s: Span) {
        let d = &mut self.devices[k];
        d.active = d.active.saturating_sub(1);
        d.stats.d2d_seeks.add(s.sector, s.end);
        d.stats.d += 1;
        for (_, b) in d.bios.range_mut(s.sector..s.end).filter(|(_, b)| b.end <= s.end) {
            for stages in [&mut d.stats.stages, &mut self.all] {
                match (b.i, b.m) {
                    (Some(i), _) => stages.i2d.add(delta(i, s.at)),
                    (None, Some(m)) => stages.m2d.add(delta(m, s.at)),
                    (None, None) => {}
                }
                stages.q2d.add(s.at.saturating_sub(b.q));
            }
            b.d = Some(s.at);
        }
    }

    fn complete(&mut self, k: usize, s: Span) {
        let d = &mut self.devices[k];
        let blocks = s.end - s.sector;
        let st = &mut d.stats;
        st.blocks_min = if st.blocks_total == 0 { blocks } else { st.blocks_min.min(blocks) };
        st.blocks_max = st.blocks_max.max(blocks);
        st.blocks_total += blocks;
        let done: Vec<u64> = d.bios.range(s.sector..s.end).filter(|(_, b)| b.end <= s.end).map(|(at, _)| *at).collect();
        for first in done {
            let Some(b) = d.bios.remove(&first) else { continue };
            let q2c = delta(b.q, s.at);
            for stages in [&mut d.stats.stages, &mut self.all] {
                if d.passes_on { &mut stages.q2c_dm } else { &mut stages.q2c }.add(q2c);
                if let Some(at) = b.d {
                    stages.d2c.add(delta(at, s.at));
                }
            }
            if let Some(at) = b.d {
                d.stats.live.add(at, s.at);
                self.live.add(at, s.at);
            }
        }
    }

    fn remap(&mut self, row: &BlockRow<'_>, at: u64) {
        if self.index(row.device(), at, true).is_none() {
            return;
        }
        let from = row.from_sector_512.and_then(|s| u64::try_from(s).ok());
        let (Some(dev), Some(sector)) = (row.from_dev, from) else { return };
        let Some(d) = self.devices.iter_mut().find(|d| d.stats.dev == dev) else { return };
        let Some(b) = d.holding(sector) else { return };
        let ns = delta(b.q, at);
        for stages in [&mut d.stats.stages, &mut self.all] {
            if d.passes_on { &mut stages.q2a_dm } else { &mut stages.q2a }.add(ns);
        }
    }

    fn plug(&mut self, row: &BlockRow<'_>, at: u64) {
        let Some(d) = self.devices.iter_mut().find(|d| Some(d.stats.dev) == row.dev) else { return };
        let at = seconds(at);
        if row.action == "P" {
            d.plugged_since.get_or_insert(at);
        } else {
            let n = row.unplugged.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
            d.unplug(at, usize::from(row.action == "UT"), n);
        }
    }

    /// The figures.
    pub fn finish(self) -> Btt {
        let mut devices = Vec::with_capacity(self.devices.len());
        for mut d in self.devices {
            d.unplug(d.end_s, 0, 0);
            d.stats.plugged_pct = 100.0 * (d.plugged_s / (d.end_s - d.start_s));
            devices.push(d.stats);
        }
        Btt { stages: self.all, devices, live: self.live }
    }
}

impl Device {
    fn new(dev: i64, at: u64) -> Self {
        let stats = DeviceStats {
            dev,
            stages: Stages::default(),
            q: 0,
            d: 0,
            merges: 0,
            blocks_min: 0,
            blocks_max: 0,
            blocks_total: 0,
            q2q_seeks: Seeks::default(),
            d2d_seeks: Seeks::default(),
            unplugs: [0; 2],
            unplugged: [0; 2],
            plugged_pct: 0.0,
            active_at_q: 0,
            live: Live::default(),
        };
        Self {
            stats,
            passes_on: REMAPPERS.contains(&(dev >> 20)),
            begun: false,
            bios: BTreeMap::new(),
            longest: 0,
            last_q: None,
            active: 0,
            plugged_since: None,
            plugged_s: 0.0,
            start_s: seconds(at),
            end_s: 0.0,
        }
    }

    /// The bio that has a sector; of several the one that begins last.
    fn holding(&mut self, sector: u64) -> Option<&mut Bio> {
        let from = sector.saturating_sub(self.longest);
        self.bios.range_mut(from..=sector).rev().map(|(_, b)| b).find(|b| sector < b.end)
    }

    fn unplug(&mut self, at: f64, timed: usize, n: u64) {
        if let Some(since) = self.plugged_since.take() {
            self.stats.unplugs[timed] += 1;
            self.stats.unplugged[timed] += n;
            self.plugged_s += at - since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ns: i64, action: &'static str, sector: i64, nr: i64) -> BlockRow<'static> {
        BlockRow {
            time_ns: ns,
            dev: Some(8 << 20),
            action,
            rwbs: "R",
            sector_512: Some(sector),
            len_bytes: Some(nr * 512),
            ..BlockRow::default()
        }
    }

    fn stats(rows: &[BlockRow<'_>]) -> Btt {
        let mut c = Collector::default();
        rows.iter().for_each(|r| c.row(r));
        c.finish()
    }

    #[test]
    fn a_merged_bio_has_its_stages_from_the_merge() {
        let b = stats(&[
            row(100, "Q", 0, 8),
            row(110, "G", 0, 8),
            row(120, "I", 0, 8),
            row(130, "Q", 8, 8),
            row(135, "M", 8, 8),
            row(200, "D", 0, 16),
            row(500, "C", 0, 16),
        ]);
        let s = &b.stages;
        let sum = |x: &Stage| (x.n, x.total_ns);
        assert_eq!((sum(&s.q2q), sum(&s.q2g), sum(&s.g2i)), ((1, 30), (1, 10), (1, 10)));
        assert_eq!((sum(&s.q2m), sum(&s.i2d), sum(&s.m2d)), ((1, 5), (1, 80), (1, 65)));
        assert_eq!((sum(&s.d2c), sum(&s.q2c)), ((2, 600), (2, 770)));
        let d = &b.devices[0];
        assert_eq!((d.q, d.d, d.merges, d.blocks_total, d.active_at_q), (2, 1, 1, 16, 1));
    }

    #[test]
    fn events_before_the_first_bio_do_not_count() {
        let b = stats(&[row(0, "D", 0, 8), row(5, "C", 0, 8), row(10, "Q", 64, 8)]);
        assert_eq!((b.devices[0].d, b.devices[0].blocks_total, b.devices[0].q), (0, 0, 1));
    }

    #[test]
    fn a_bio_queued_again_takes_the_place_of_the_one_before() {
        let b = stats(&[row(0, "Q", 0, 8), row(5, "Q", 0, 8), row(9, "G", 0, 8), row(20, "C", 0, 8)]);
        let d = &b.devices[0];
        assert_eq!((d.q, b.stages.q2q.n, b.stages.q2g.total_ns, b.stages.q2c.n), (2, 1, 4, 1));
    }
}
