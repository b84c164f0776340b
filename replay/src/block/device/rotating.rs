//! A disk with one arm: overhead, square-root seek, mean rotational wait, constant transfer rate.
//!
//! The form that both measured set-ups were driven by; it has no zones and no rotational position, so a request's time
//! depends on the distance to the one before it only. Requests are served in the order they were accepted.

use kreplay_traces::units::{Nanos, SECTOR_BYTES};

use super::super::Dir;
use super::super::error::ConfigError;
use super::{Device, Served, Transfer};
use crate::config::DeviceConfig;

/// State and parameters.
#[derive(Clone, Debug)]
pub(crate) struct Rotating {
    overhead_ns: u64,
    seek_min_ns: u64,
    seek_span_ns: f64,
    stroke_sectors: f64,
    rotation_ns: u64,
    /// Transfer time of a sector, ns.
    sector_ns: f64,
    skip_gap_sectors: u64,
    skip_gap_costs: bool,
    skip_same_direction: bool,
    /// Behind the last sector transferred.
    arm: u64,
    last_dir: Option<Dir>,
    free_at: Nanos,
}

impl Rotating {
    pub(crate) fn new(config: &DeviceConfig) -> Result<Self, ConfigError> {
        let DeviceConfig::Rotating {
            overhead_us,
            seek_min_us,
            seek_span_us,
            stroke_bytes,
            rotation_us,
            rate_bytes_s,
            skip_gap_bytes,
            skip_gap_costs,
            skip_same_direction,
            ..
        } = *config
        else {
            return Err(ConfigError::Conflict { what: "device.model is not \"rotating\"" });
        };
        Ok(Self {
            overhead_ns: overhead_us * 1_000,
            seek_min_ns: seek_min_us * 1_000,
            seek_span_ns: seek_span_us as f64 * 1e3,
            stroke_sectors: stroke_bytes as f64 / SECTOR_BYTES as f64,
            rotation_ns: rotation_us * 1_000,
            sector_ns: SECTOR_BYTES as f64 * 1e9 / rate_bytes_s as f64,
            skip_gap_sectors: skip_gap_bytes / SECTOR_BYTES,
            skip_gap_costs,
            skip_same_direction,
            arm: 0,
            last_dir: None,
            free_at: Nanos::ZERO,
        })
    }

    fn transfer_ns(&self, sectors: u64) -> u64 {
        // Sectors x ns stay far below 2^53, so the product is exact to a fraction of a nanosecond on every machine.
        (sectors as f64 * self.sector_ns).round() as u64
    }

    fn positioning_ns(&self, t: Transfer) -> u64 {
        let same_dir = self.last_dir == Some(t.dir) || !self.skip_same_direction;
        match t.sector.checked_sub(self.arm) {
            Some(gap) if gap <= self.skip_gap_sectors && same_dir => {
                if self.skip_gap_costs {
                    self.transfer_ns(gap)
                } else {
                    0
                }
            }
            _ => {
                let share = t.sector.abs_diff(self.arm) as f64 / self.stroke_sectors;
                self.seek_min_ns + (self.seek_span_ns * share.sqrt()).round() as u64 + self.rotation_ns
            }
        }
    }
}

impl Device for Rotating {
    fn serve(&mut self, now: Nanos, t: Transfer) -> Served {
        let service = Nanos(self.overhead_ns + self.positioning_ns(t) + self.transfer_ns(u64::from(t.nr)));
        self.arm = t.sector + u64::from(t.nr);
        self.last_dir = Some(t.dir);
        self.free_at = self.free_at.max(now) + service;
        Served { done_at: self.free_at, service }
    }
}
