//! A disk with zones, a seek curve, a turning platter, head switches, a segmented read-ahead cache and, if asked for, a
//! write cache and a command queue.
//!
//! One command at a time uses the arm. With a command queue, what a command costs before the arm is needed (overhead, data
//! of a write) is done while the arm works for another one, so that the next one begins where that one ends: queued
//! writes in a row stream, others lose a turn each. With a write cache the arm writes behind the host's back, nearest first, whenever no
//! command needs it. That is worked out when the next command comes. Reduced: reading starts at the first sector wanted;
//! service time counts what the host sees, not the writing behind it.

use kreplay_traces::units::{Nanos, SECTOR_BYTES};

use super::super::Dir;
use super::super::error::ConfigError;
use super::command_queue::CommandQueue;
use super::geometry::{Geometry, Place};
use super::write_cache::WriteCache;
use super::{Device, HeldCommand, Served, Transfer};
use crate::config::CommandOrder;

/// The write cache goes to the medium in pieces of at most so many sectors, so that a reader need not wait for all of it.
const LONGEST: u32 = 512;

/// Angles closer than this part of a turn are the same.
const SAME_ANGLE: f64 = 1e-6;

/// Part of the cache: what was read, and how far reading ahead goes on.
#[derive(Clone, Copy, Debug)]
struct Segment {
    first: u64,
    /// Behind the last sector that was asked for.
    end: u64,
    /// When that one had been read, ns.
    read_at: f64,
    /// Reading ahead stopped here; `None` = still going on.
    stopped: Option<u64>,
    sector_ns: f64,
}

/// State of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    geometry: Geometry,
    /// Arm and head.
    at: Place,
    /// No command before this time.
    free_at: Nanos,
    /// The arm is busy with the write cache until then, ns.
    arm_free: f64,
    write_cache: WriteCache,
    queue: Option<CommandQueue>,
    /// Cache, least recently used first.
    segments: Vec<Segment>,
}

impl Disk {
    /// A drive of a parameter set; `write_cache_bytes` 0 = none.
    pub(crate) fn new(preset: &str, write_cache_bytes: u64, order: CommandOrder) -> Result<Self, ConfigError> {
        let geometry = Geometry::preset(preset)?;
        let at = geometry.locate(0);
        let segments = Vec::with_capacity(geometry.params.buffer_segments);
        let queue = match order {
            CommandOrder::Fifo => None,
            CommandOrder::Positioning { age_weight_pct, age_limit_ms } => {
                Some(CommandQueue::new(age_weight_pct, age_limit_ms))
            }
        };
        let write_cache = WriteCache::new(write_cache_bytes);
        Ok(Self { geometry, at, free_at: Nanos::ZERO, arm_free: 0.0, write_cache, queue, segments })
    }

    /// Behind the last sector of a segment that is in the cache at `now`.
    fn cached_until(&self, s: &Segment, now: f64) -> u64 {
        let limit = s.end + self.geometry.params.segment_blocks;
        let ahead = s.stopped.unwrap_or_else(|| s.end + ((now - s.read_at).max(0.0) / s.sector_ns) as u64);
        ahead.min(limit).min(self.geometry.capacity)
    }

    /// The arm is needed elsewhere.
    fn stop_reading_ahead(&mut self, now: f64) {
        for k in 0..self.segments.len() {
            if self.segments[k].stopped.is_none() {
                self.segments[k].stopped = Some(self.cached_until(&self.segments[k], now));
            }
        }
    }

    /// Serves a read from the cache, waiting for reading ahead to come by where it is close; when its data are there.
    fn read_cached(&mut self, now: f64, t: Transfer) -> Option<f64> {
        let end = t.sector + u64::from(t.nr);
        let hit = self.segments.iter().position(|s| {
            let have = self.cached_until(s, now);
            s.first <= t.sector && (end <= have || (s.stopped.is_none() && t.sector <= have))
        })?;
        let mut s = self.segments.remove(hit);
        let mut ready = now;
        if end > s.end {
            if s.stopped.is_none() {
                // Reading on from there: the cache follows the reader.
                let passes = s.read_at + (end - s.end) as f64 * s.sector_ns;
                ready = ready.max(passes);
                s.read_at = passes;
                self.arm_free = self.arm_free.max(passes);
            }
            s.end = end;
            s.first = s.first.max(end.saturating_sub(self.geometry.params.segment_blocks));
            self.at = self.geometry.locate(end - 1);
        }
        self.segments.push(s);
        Some(ready)
    }

    /// When the arm stands on the track of a transfer's first sector, if it leaves at `now`.
    fn on_track(&self, now: f64, t: Transfer) -> (Place, f64) {
        let place = self.geometry.locate(t.sector);
        (place, now + self.moves_ns(place, t.dir))
    }

    /// Time to the track of a place, ns.
    fn moves_ns(&self, place: Place, dir: Dir) -> f64 {
        let g = &self.geometry;
        let moves = if place.cylinder != self.at.cylinder {
            g.seek_ns(place.cylinder.abs_diff(self.at.cylinder))
        } else if place.surface != self.at.surface {
            g.params.head_switch_ms * 1e6
        } else {
            0.0
        };
        moves + if dir == Dir::Write && moves > 0.0 { g.params.write_settle_ms * 1e6 } else { 0.0 }
    }

    /// From `time` until an angle passes under the heads.
    fn turn(&self, time: f64, place: Place) -> f64 {
        let turns = time / self.geometry.turn_ns;
        // Both angles are parts of a turn.
        let ahead = place.angle - (turns - (turns as u64) as f64);
        let wait = if ahead < 0.0 { ahead + 1.0 } else { ahead };
        // Rounding of a time that is exactly the sector's own must not cost a turn.
        if wait > 1.0 - SAME_ANGLE { 0.0 } else { wait * self.geometry.turn_ns }
    }

    /// Time to a transfer's first sector, ns.
    fn positioning_ns(&self, now: f64, t: Transfer) -> f64 {
        self.positioning_to(now, self.geometry.locate(t.sector), t.dir)
    }

    fn positioning_to(&self, now: f64, place: Place, dir: Dir) -> f64 {
        let time = now + self.moves_ns(place, dir);
        time + self.turn(time, place) - now
    }

    fn overhead_ns(&self, dir: Dir) -> f64 {
        let p = &self.geometry.params;
        1e6 * if dir == Dir::Read { p.read_overhead_ms } else { p.write_overhead_ms }
    }

    /// When the arm can leave for a command that the drive has held since then and that it takes up at `begin`.
    fn arm_leaves(&self, begin: Nanos, since: Nanos, dir: Dir) -> f64 {
        match self.queue {
            Some(_) => self.arm_free.max(since.get() as f64 + self.overhead_ns(dir)),
            None => begin.get() as f64 + self.overhead_ns(dir),
        }
    }

    /// Writes one stretch of the write cache, of those that came by `begin` the one that can begin soonest (or the one
    /// at `wanted`).
    fn write_behind(&mut self, begin: f64, wanted: Option<u64>) {
        let Some(oldest) = self.write_cache.oldest() else { return };
        let begin = begin.max(oldest);
        let write = |sector: u64| Transfer { dir: Dir::Write, sector, nr: 1 };
        let nearest = || {
            let ready = self.write_cache.ready(begin);
            ready.map(|s| (s, self.positioning_ns(begin, write(s)))).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(s, _)| s)
        };
        let Some(first) = wanted.or_else(nearest) else { return };
        let nr = self.write_cache.take(first, u64::from(LONGEST));
        self.stop_reading_ahead(begin);
        self.arm_free = self.mechanics(begin, Transfer { dir: Dir::Write, sector: first, nr: nr as u32 });
    }

    /// Writes behind until `now`: what begins before it is also finished.
    fn write_behind_until(&mut self, now: f64) {
        while let Some(oldest) = self.write_cache.oldest() {
            let begin = self.arm_free.max(oldest);
            if begin >= now {
                break;
            }
            self.write_behind(begin, None);
        }
    }

    /// A write that the cache takes: when it has been acknowledged.
    fn write_cached(&mut self, start: f64, bus: f64, t: Transfer) -> f64 {
        let nr = u64::from(t.nr);
        let mut from = start;
        while !self.write_cache.has_room(nr) {
            self.write_behind(self.arm_free.max(start), None);
            from = from.max(self.arm_free);
        }
        let done = from + bus;
        self.write_cache.add(t.sector, t.sector + nr, done.ceil());
        done
    }

    /// Arm, platter and heads; when the last sector has passed, from `now`.
    fn mechanics(&mut self, now: f64, t: Transfer) -> f64 {
        let (mut place, mut time) = self.on_track(now, t);
        let g = &self.geometry;
        let mut left = u64::from(t.nr);
        let mut lbn = t.sector;
        loop {
            time += self.turn(time, place);
            let here = left.min(place.sectors_per_track - place.sector);
            time += here as f64 * g.turn_ns / place.sectors_per_track as f64;
            left -= here;
            lbn += here;
            if left == 0 {
                break;
            }
            let next = g.locate(lbn);
            time += if next.cylinder == place.cylinder {
                g.params.head_switch_ms * 1e6
            } else {
                (g.params.head_switch_ms * 1e6).max(g.seek_ns(next.cylinder.abs_diff(place.cylinder)))
            };
            place = next;
        }
        self.at = place;
        time
    }
}

impl Device for Disk {
    fn serve(&mut self, now: Nanos, t: Transfer) -> Served {
        self.serve_held(now, now, t)
    }

    fn serve_held(&mut self, now: Nanos, since: Nanos, t: Transfer) -> Served {
        let begin = self.free_at.max(now);
        let bus = f64::from(t.nr) * SECTOR_BYTES as f64 / self.geometry.params.bus_mb_s * 1e3;
        let end = t.sector + u64::from(t.nr);
        // Since then the arm belonged to the commands.
        let idle_until = if self.queue.is_some() { since.min(begin) } else { begin };
        self.write_behind_until(idle_until.get() as f64);
        let mut leaves = self.arm_leaves(begin, since, t.dir);
        let ready = leaves.max(begin.get() as f64);
        let to_cache = t.dir == Dir::Write && self.write_cache.takes(u64::from(t.nr));
        let cached = match t.dir {
            Dir::Read if self.write_cache.holds(t.sector, end) => Some(ready),
            Dir::Read if self.write_cache.overlapping(t.sector, end).is_none() => self.read_cached(ready, t),
            Dir::Read | Dir::Write => None,
        };
        let done = if let Some(there) = cached {
            there.max(ready + bus)
        } else if to_cache {
            self.segments.retain(|s| end <= s.first || t.sector >= s.stopped.unwrap_or(s.end));
            self.write_cached(ready, bus, t)
        } else {
            // What the write cache holds of these sectors goes first.
            while let Some(first) = self.write_cache.overlapping(t.sector, end) {
                self.write_behind(self.arm_free.max(leaves), Some(first));
            }
            leaves = leaves.max(self.arm_free);
            self.stop_reading_ahead(leaves.min(begin.get() as f64));
            let passed = self.mechanics(leaves, t);
            self.arm_free = passed;
            if t.dir == Dir::Read {
                if self.segments.len() >= self.geometry.params.buffer_segments.max(1) {
                    self.segments.remove(0);
                }
                let sector_ns = self.geometry.streaming_sector_ns(self.at);
                self.segments.push(Segment { first: t.sector, end, read_at: passed, stopped: None, sector_ns });
            } else {
                self.segments.retain(|s| end <= s.first || t.sector >= s.stopped.unwrap_or(s.end));
            }
            // Media and bus overlap; the bus is a sector behind.
            let sector = self.geometry.turn_ns / self.at.sectors_per_track as f64;
            passed.max(leaves + bus) + sector
        };
        let done = Nanos(done.round() as u64).max(begin);
        self.free_at = done;
        Served { done_at: done, service: done.saturating_sub(begin) }
    }

    fn flush(&mut self, now: Nanos) -> Nanos {
        let begin = self.free_at.max(now);
        self.write_behind_until(begin.get() as f64);
        if self.write_cache.is_empty() && self.arm_free <= begin.get() as f64 {
            return begin;
        }
        while !self.write_cache.is_empty() {
            self.write_behind(self.arm_free.max(begin.get() as f64), None);
        }
        self.free_at = begin.max(Nanos(self.arm_free.ceil() as u64));
        self.free_at
    }

    fn reorders(&self) -> bool {
        self.queue.is_some()
    }

    fn hold(&self, transfer: Transfer, since: Nanos) -> HeldCommand {
        HeldCommand { transfer, since, place: Some(self.geometry.locate(transfer.sector)) }
    }

    fn pick(&self, now: Nanos, held: &[HeldCommand]) -> usize {
        let Some(queue) = self.queue else { return 0 };
        let begin = self.free_at.max(now);
        let first_sector = |c: &HeldCommand| {
            let place = c.place.unwrap_or_else(|| self.geometry.locate(c.transfer.sector));
            let leaves = self.arm_leaves(begin, c.since, c.transfer.dir);
            leaves + self.positioning_to(leaves, place, c.transfer.dir) - self.arm_free
        };
        queue.pick(now, held.iter().map(|c| (c.since, first_sector(c))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(preset: &str) -> Disk {
        Disk::new(preset, 0, CommandOrder::Fifo).expect("preset")
    }

    /// Requests per second of random 8 KiB reads, one at a time.
    fn random_reads(preset: &str) -> f64 {
        let mut d = plain(preset);
        let span = d.geometry.capacity / 16;
        let (mut now, mut x) = (Nanos::ZERO, 1u64);
        for _ in 0..4000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let t = Transfer { dir: Dir::Read, sector: (x >> 20) % span * 16, nr: 16 };
            now = d.serve(now, t).done_at;
        }
        4000.0 / now.as_secs_f64()
    }

    /// MB/s of back-to-back 64 KiB transfers from the outermost sector on.
    fn stream(preset: &str, dir: Dir) -> f64 {
        let mut d = plain(preset);
        let mut now = Nanos::ZERO;
        for k in 0..1000 {
            now = d.serve(now, Transfer { dir, sector: k * 128, nr: 128 }).done_at;
        }
        1000.0 * 65_536.0 / now.as_secs_f64() / 1e6
    }

    #[test]
    fn random_and_sequential_rates_are_those_known_of_the_drives() {
        for (preset, per_second) in [("cheetah9lp", 109.0), ("atlas10k", 110.0), ("ide_5400_fireball_lct", 66.0)] {
            let got = random_reads(preset);
            assert!((got / per_second - 1.0).abs() < 0.06, "{preset}: {got} against {per_second} requests/s");
        }
        for (preset, mb_s) in [("cheetah9lp", 15.6), ("atlas10k", 23.5), ("barracuda_st32171w", 9.4)] {
            let got = stream(preset, Dir::Read);
            assert!((got / mb_s - 1.0).abs() < 0.06, "{preset}: {got} against {mb_s} MB/s");
        }
    }

    #[test]
    fn back_to_back_writes_lose_a_turn_each_without_a_write_cache() {
        let (reads, writes) = (stream("atlas10k", Dir::Read), stream("atlas10k", Dir::Write));
        assert!(writes < reads * 0.7, "{writes} against {reads} MB/s");
    }

    #[test]
    fn queued_writes_in_a_row_stream() {
        let order = CommandOrder::Positioning { age_weight_pct: 5, age_limit_ms: 500 };
        for preset in ["atlas10k", "barracuda_st32171w"] {
            let mut d = Disk::new(preset, 0, order).expect("preset");
            let write = |k: u64| Transfer { dir: Dir::Write, sector: k * 128, nr: 128 };
            // The drive holds eight at any time.
            let (mut held, mut now, mut next) = (Vec::new(), Nanos::ZERO, 0);
            for _ in 0..1000 {
                while held.len() < 8 {
                    held.push(d.hold(write(next), now));
                    next += 1;
                }
                let next = held.remove(d.pick(now, &held));
                now = d.serve_held(now, next.since, next.transfer).done_at;
            }
            let (got, reads) = (1000.0 * 65_536.0 / now.as_secs_f64() / 1e6, stream(preset, Dir::Read));
            assert!((got / reads - 1.0).abs() < 0.15, "{preset}: {got} against {reads} MB/s");
        }
    }

    #[test]
    fn a_repeated_read_comes_from_the_cache_until_it_is_overwritten() {
        let mut d = plain("atlas10k");
        let read = Transfer { dir: Dir::Read, sector: 100_000, nr: 16 };
        let first = d.serve(Nanos::ZERO, read);
        let again = d.serve(first.done_at, read);
        assert!(again.service < Nanos::from_millis(1), "{:?}", again.service);
        let write = d.serve(again.done_at, Transfer { dir: Dir::Write, ..read });
        let fresh = d.serve(write.done_at, read);
        assert!(fresh.service > Nanos::from_millis(2), "{:?}", fresh.service);
    }

    fn cached(bytes: u64) -> Disk {
        Disk::new("ide_7200_33mb", bytes, CommandOrder::Fifo).expect("preset")
    }

    #[test]
    fn a_write_cache_acknowledges_at_bus_speed_until_it_is_full_and_a_flush_empties_it() {
        let mut d = cached(2 << 20);
        let write = |k: u64| Transfer { dir: Dir::Write, sector: k * 100_000, nr: 256 };
        let first = d.serve(Nanos::ZERO, write(0));
        assert!(first.service < Nanos::from_millis(3), "{:?}", first.service);
        let mut now = first.done_at;
        let mut longest = Nanos::ZERO;
        for k in 1..64 {
            let s = d.serve(now, write(k));
            longest = longest.max(s.service);
            now = s.done_at;
        }
        assert!(longest > Nanos::from_millis(5), "paced by the medium: {longest:?}");
        let flushed = d.flush(now);
        assert!(flushed > now + Nanos::from_millis(50), "{flushed:?} after {now:?}");
        assert!(d.write_cache.is_empty());
        assert_eq!(d.flush(flushed), flushed);
    }

    #[test]
    fn what_is_in_the_write_cache_is_read_from_there() {
        let mut d = cached(2 << 20);
        let at = Transfer { dir: Dir::Write, sector: 5_000_000, nr: 64 };
        let now = d.serve(Nanos::ZERO, at).done_at;
        assert!(d.serve(now, Transfer { dir: Dir::Read, ..at }).service < Nanos::from_millis(2));
        // Half of it is not there: the cached half is written, then all is read.
        let more = Transfer { dir: Dir::Read, sector: 5_000_000, nr: 128 };
        let s = d.serve(now, more);
        assert!(s.service > Nanos::from_millis(4), "{:?}", s.service);
        assert!(!d.write_cache.holds(5_000_000, 5_000_064));
    }

    #[test]
    fn writing_behind_uses_the_time_between_commands() {
        let mut d = cached(2 << 20);
        let now = d.serve(Nanos::ZERO, Transfer { dir: Dir::Write, sector: 9_000_000, nr: 64 }).done_at;
        assert_eq!(d.flush(now + Nanos::from_secs(1)), now + Nanos::from_secs(1));
    }

    #[test]
    fn the_streaming_rate_of_every_parameter_set_is_what_its_tracks_give() {
        let all = [
            "cheetah9lp",
            "atlas10k",
            "barracuda_st32171w",
            "atlas_iii_7200",
            "ide_7200_33mb",
            "ide_10mb_1998",
            "ide_5400_fireball_lct",
            "sata_7200_modern",
        ];
        for preset in all {
            let d = plain(preset);
            let (g, first) = (&d.geometry, d.geometry.locate(0));
            // All tracks of a cylinder, a skew between them and one to the next cylinder.
            let spt = first.sectors_per_track as f64;
            let heads = g.params.surfaces as f64;
            let skew = |sectors: u64| sectors as f64 * g.turn_ns / spt;
            let (track, cylinder) = g.skews();
            let time = heads * g.turn_ns + (heads - 1.0) * skew(track) + skew(cylinder);
            let expected = heads * spt * 512.0 / time * 1e3;
            let got = stream(preset, Dir::Read);
            let limit = g.params.bus_mb_s.min(expected);
            assert!((got / limit - 1.0).abs() < 0.12, "{preset}: {got} against {limit} MB/s");
        }
    }
}
