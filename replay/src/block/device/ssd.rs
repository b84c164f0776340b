//! A flash device: a controller that takes commands one by one, units that work in parallel, a shared link, a write
//! buffer that drains in the background.
//!
//! Reduced: programming does not delay reads, erasing does: every so many pages one unit, in turn, is gone for a while. Service time is what a request occupies the
//! device for from acceptance to completion, so that busy time of overlapping requests adds up to more than the clock.

use kreplay_traces::units::{Nanos, SECTOR_BYTES};

use super::super::Dir;
use super::super::error::ConfigError;
use super::{Device, Served, Transfer};
use crate::config::DeviceConfig;

/// State and parameters.
#[derive(Clone, Debug)]
pub(crate) struct Ssd {
    sectors_per_page: u64,
    read_ns: u64,
    ack_ns: u64,
    overhead_ns: u64,
    sector_link_ns: f64,
    buffer_bytes: f64,
    /// Programming rate of all units together, net of write amplification, bytes per ns.
    drain: f64,
    controller_free: u64,
    link_free: u64,
    /// When each unit is free, ns.
    units_free: Vec<u64>,
    /// Pages written between two erasures; 0 = no erasures.
    erase_pages: u64,
    erase_ns: u64,
    /// Pages written since the last one, and the unit whose turn it is.
    since_erase: u64,
    erasing_unit: usize,
    /// Bytes in the buffer at `filled_at`.
    filled: f64,
    filled_at: u64,
}

impl Ssd {
    pub(crate) fn new(config: &DeviceConfig) -> Result<Self, ConfigError> {
        let DeviceConfig::Ssd {
            units,
            page_bytes,
            read_ns,
            program_ns,
            ack_ns,
            overhead_ns,
            link_bytes_s,
            buffer_bytes,
            write_amplification_pct,
            erase_pages,
            erase_ns,
            ..
        } = *config
        else {
            return Err(ConfigError::Conflict { what: "device.model is not \"ssd\"" });
        };
        // An erased block's time is part of what each of its pages takes.
        let erase = if erase_pages > 0 { erase_ns as f64 / erase_pages as f64 } else { 0.0 };
        let pages_per_ns = 1.0
            / (program_ns as f64 * write_amplification_pct as f64 / 100.0 / f64::from(units)
                + erase / f64::from(units));
        Ok(Self {
            sectors_per_page: page_bytes / SECTOR_BYTES,
            read_ns,
            ack_ns,
            overhead_ns,
            sector_link_ns: SECTOR_BYTES as f64 * 1e9 / link_bytes_s as f64,
            buffer_bytes: buffer_bytes as f64,
            drain: pages_per_ns * page_bytes as f64,
            erase_pages,
            erase_ns,
            since_erase: 0,
            erasing_unit: 0,
            controller_free: 0,
            link_free: 0,
            units_free: vec![0; units as usize],
            filled: 0.0,
            filled_at: 0,
        })
    }

    /// The pages of a read, each on its unit; when the last one is read.
    fn read_pages(&mut self, from: u64, t: Transfer) -> u64 {
        let n = self.units_free.len() as u64;
        let first = t.sector / self.sectors_per_page;
        let last = (t.sector + u64::from(t.nr).max(1) - 1) / self.sectors_per_page;
        let mut done = from;
        for page in first..=last {
            let unit = &mut self.units_free[(page % n) as usize];
            *unit = from.max(*unit) + self.read_ns;
            done = done.max(*unit);
        }
        done
    }

    /// Blocks that these pages fill up are erased, each by the unit whose turn it is.
    fn erase(&mut self, from: u64, pages: u64) {
        if self.erase_pages == 0 {
            return;
        }
        self.since_erase += pages;
        while self.since_erase >= self.erase_pages {
            self.since_erase -= self.erase_pages;
            let unit = &mut self.units_free[self.erasing_unit];
            *unit = from.max(*unit) + self.erase_ns;
            self.erasing_unit = (self.erasing_unit + 1) % self.units_free.len();
        }
    }

    /// Puts bytes into the buffer; when there was room for the last of them.
    fn buffer(&mut self, from: u64, bytes: f64) -> u64 {
        let at = from.max(self.filled_at);
        self.filled = (self.filled - (at - self.filled_at) as f64 * self.drain).max(0.0);
        let excess = (self.filled + bytes - self.buffer_bytes).max(0.0);
        let room_at = at + (excess / self.drain).ceil() as u64;
        self.filled = (self.filled + bytes - (room_at - at) as f64 * self.drain).max(0.0);
        self.filled_at = room_at;
        room_at
    }
}

impl Device for Ssd {
    fn serve(&mut self, now: Nanos, t: Transfer) -> Served {
        self.controller_free = self.controller_free.max(now.get()) + self.overhead_ns;
        let accepted = self.controller_free;
        let link_ns = (f64::from(t.nr) * self.sector_link_ns).round() as u64;
        let done = match t.dir {
            Dir::Read => {
                let read = self.read_pages(accepted, t);
                self.link_free = self.link_free.max(read) + link_ns;
                self.link_free
            }
            Dir::Write => {
                self.link_free = self.link_free.max(accepted) + link_ns;
                let arrived = self.link_free;
                self.erase(arrived, u64::from(t.nr).div_ceil(self.sectors_per_page));
                self.buffer(arrived, f64::from(t.nr) * SECTOR_BYTES as f64) + self.ack_ns
            }
        };
        Served { done_at: Nanos(done), service: Nanos(done).saturating_sub(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sata() -> Ssd {
        Ssd::new(&DeviceConfig::Ssd {
            queue_depth: 32,
            units: 8,
            page_bytes: 16_384,
            read_ns: 75_000,
            program_ns: 600_000,
            ack_ns: 25_000,
            overhead_ns: 20_000,
            link_bytes_s: 550_000_000,
            buffer_bytes: 1 << 20,
            write_amplification_pct: 100,
            erase_pages: 0,
            erase_ns: 0,
        })
        .expect("valid")
    }

    fn read(sector: u64) -> Transfer {
        Transfer { dir: Dir::Read, sector, nr: 8 }
    }

    #[test]
    fn one_read_at_a_time_pays_every_step() {
        let mut d = sata();
        let link = (4096.0f64 / 0.55).round() as u64;
        assert_eq!(d.serve(Nanos(0), read(0)).done_at, Nanos(20_000 + 75_000 + link));
    }

    #[test]
    fn reads_on_different_units_overlap_and_on_the_same_unit_queue() {
        let (mut apart, mut same) = (sata(), sata());
        let last = |d: &mut Ssd, stride: u64| (0..4).map(|k| d.serve(Nanos(0), read(k * stride)).done_at).max();
        let (apart, same) = (last(&mut apart, 32), last(&mut same, 32 * 8));
        assert!(apart < Some(Nanos(200_000)), "{apart:?}");
        assert!(same > Some(Nanos(4 * 75_000)), "{same:?}");
    }

    #[test]
    fn writes_beyond_the_buffer_are_paced_by_programming() {
        let mut d = sata();
        let mut now = Nanos(0);
        let write = |k: u64| Transfer { dir: Dir::Write, sector: k * 256, nr: 256 };
        for k in 0..4 {
            now = d.serve(now, write(k)).done_at;
        }
        assert!(now < Nanos(4 * 300_000), "buffered: {now}");
        for k in 4..404 {
            now = d.serve(now, write(k)).done_at;
        }
        // 8 units program 16 KiB each in 600 us: 218.5 MB/s.
        let rate = 404.0 * 131_072.0 / now.as_secs_f64();
        assert!((rate - 218.5e6).abs() < 8e6, "{rate}");
    }

    #[test]
    fn nonsense_is_refused() {
        let config = DeviceConfig::Ssd {
            queue_depth: 1,
            units: 0,
            page_bytes: 4096,
            read_ns: 1,
            program_ns: 1,
            ack_ns: 0,
            overhead_ns: 0,
            link_bytes_s: 1,
            buffer_bytes: 0,
            write_amplification_pct: 100,
            erase_pages: 0,
            erase_ns: 0,
        };
        let refused = super::super::build(&config);
        assert!(matches!(refused, Err(ConfigError::OutOfRange { key: "device.units", .. })));
    }
}
