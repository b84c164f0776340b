//! A disk with zones, a seek curve, a turning platter, head switches and a segmented read-ahead cache.
//!
//! Requests are served in the order of acceptance. Reduced: no write cache, no reordering inside the drive, reading
//! starts at the first sector wanted.

use kreplay_traces::units::{Nanos, SECTOR_BYTES};

use super::super::Dir;
use super::super::error::ConfigError;
use super::geometry::{Geometry, Place};
use super::{Device, Served, Transfer};

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
    free_at: Nanos,
    /// Cache, least recently used first.
    segments: Vec<Segment>,
}

impl Disk {
    pub(crate) fn new(preset: &str) -> Result<Self, ConfigError> {
        let geometry = Geometry::preset(preset)?;
        let at = geometry.locate(0);
        let segments = Vec::with_capacity(geometry.params.buffer_segments);
        Ok(Self { geometry, at, free_at: Nanos::ZERO, segments })
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
            }
            s.end = end;
            s.first = s.first.max(end.saturating_sub(self.geometry.params.segment_blocks));
            self.at = self.geometry.locate(end - 1);
        }
        self.segments.push(s);
        Some(ready)
    }

    /// Arm, platter and heads; when the last sector has passed, from `now`.
    fn mechanics(&mut self, now: f64, t: Transfer) -> f64 {
        let g = &self.geometry;
        let mut place = g.locate(t.sector);
        let moves = if place.cylinder != self.at.cylinder {
            g.seek_ns(place.cylinder.abs_diff(self.at.cylinder))
        } else if place.surface != self.at.surface {
            g.params.head_switch_ms * 1e6
        } else {
            0.0
        };
        let settle = if t.dir == Dir::Write && moves > 0.0 { g.params.write_settle_ms * 1e6 } else { 0.0 };
        let mut time = now + moves + settle;
        let mut left = u64::from(t.nr);
        let mut lbn = t.sector;
        loop {
            let turns = time / g.turn_ns;
            time += (place.angle - turns.fract()).rem_euclid(1.0) * g.turn_ns;
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
        let begin = self.free_at.max(now);
        let p = &self.geometry.params;
        let overhead = 1e6 * if t.dir == Dir::Read { p.read_overhead_ms } else { p.write_overhead_ms };
        let start = begin.get() as f64 + overhead;
        let bus = f64::from(t.nr) * SECTOR_BYTES as f64 / p.bus_mb_s * 1e3;
        let end = t.sector + u64::from(t.nr);
        let cached = if t.dir == Dir::Read { self.read_cached(start, t) } else { None };
        let done = if let Some(ready) = cached {
            ready.max(start + bus)
        } else {
            self.stop_reading_ahead(begin.get() as f64);
            let passed = self.mechanics(start, t);
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
            passed.max(start + bus) + sector
        };
        let done = Nanos(done.round() as u64);
        self.free_at = done;
        Served { done_at: done, service: done.saturating_sub(begin) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests per second of random 8 KiB reads, one at a time.
    fn random_reads(preset: &str) -> f64 {
        let mut d = Disk::new(preset).expect("preset");
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
        let mut d = Disk::new(preset).expect("preset");
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
    fn a_repeated_read_comes_from_the_cache_until_it_is_overwritten() {
        let mut d = Disk::new("atlas10k").expect("preset");
        let read = Transfer { dir: Dir::Read, sector: 100_000, nr: 16 };
        let first = d.serve(Nanos::ZERO, read);
        let again = d.serve(first.done_at, read);
        assert!(again.service < Nanos::from_millis(1), "{:?}", again.service);
        let write = d.serve(again.done_at, Transfer { dir: Dir::Write, ..read });
        let fresh = d.serve(write.done_at, read);
        assert!(fresh.service > Nanos::from_millis(2), "{:?}", fresh.service);
    }
}
