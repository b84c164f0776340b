//! Where a sector lies on a zoned disk, and how long arm and heads take to get there.

use serde::Deserialize;

use super::super::error::{ConfigError, suggest};

/// The built-in parameter sets, from published drive characterisations or, where their `source` says so, estimated.
static DISKS: &str = include_str!("disks.json");

/// A parameter set as it stands in the file.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Params {
    name: String,
    pub(super) surfaces: u64,
    rpm: u64,
    /// First and last cylinder, sectors per track.
    zones: Vec<(u64, u64, u64)>,
    seek: Seek,
    pub(super) head_switch_ms: f64,
    pub(super) write_settle_ms: f64,
    pub(super) read_overhead_ms: f64,
    pub(super) write_overhead_ms: f64,
    pub(super) bus_mb_s: f64,
    track_skew: u64,
    cyl_skew: u64,
    pub(super) buffer_segments: usize,
    pub(super) segment_blocks: u64,
}

/// Seek time over d cylinders, ms: `a + b sqrt(d)` below `cutoff`, `c + e d` from there on (the form of Ruemmler and
/// Wilkes, "An introduction to disk drive modeling", 1994).
#[derive(Clone, Copy, Debug, Deserialize)]
struct Seek {
    a: f64,
    b: f64,
    cutoff: f64,
    c: f64,
    e: f64,
}

/// A zone: all its tracks have the same number of sectors.
#[derive(Clone, Copy, Debug)]
struct Zone {
    first_lbn: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
}

/// Place of a sector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) cylinder: u64,
    pub(super) surface: u64,
    /// Sector of its track.
    pub(super) sector: u64,
    pub(super) sectors_per_track: u64,
    /// Angle at which it begins, in turns.
    pub(super) angle: f64,
}

/// A disk's layout.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    pub(super) params: Params,
    zones: Vec<Zone>,
    /// Sectors in all.
    pub(super) capacity: u64,
    /// A revolution, ns.
    pub(super) turn_ns: f64,
}

impl Geometry {
    pub(super) fn preset(name: &str) -> Result<Self, ConfigError> {
        let disks: Vec<Params> = serde_json::from_str(DISKS).expect("the built-in parameter sets are well-formed");
        let Some(params) = disks.iter().find(|d| d.name == name).cloned() else {
            let (hint, known) = suggest(name, disks.iter().map(|d| d.name.as_str()));
            return Err(ConfigError::UnknownDisk { name: name.to_owned(), hint, known });
        };
        let mut capacity = 0;
        let mut zones = Vec::new();
        for &(first, last, sectors_per_track) in &params.zones {
            zones.push(Zone { first_lbn: capacity, first_cylinder: first, sectors_per_track });
            capacity += (last - first + 1) * params.surfaces * sectors_per_track;
        }
        let turn_ns = 60e9 / params.rpm as f64;
        Ok(Self { params, zones, capacity, turn_ns })
    }

    /// Place of a sector; beyond the disk's end the count starts again.
    pub(super) fn locate(&self, lbn: u64) -> Place {
        let lbn = lbn % self.capacity;
        let z = self.zones[self.zones.partition_point(|z| z.first_lbn <= lbn) - 1];
        let within = lbn - z.first_lbn;
        let per_cylinder = self.params.surfaces * z.sectors_per_track;
        let (row, rest) = (within / per_cylinder, within % per_cylinder);
        let (surface, sector) = (rest / z.sectors_per_track, rest % z.sectors_per_track);
        // Each track begins later than the one before it by the skew, so that a switch need not cost a turn.
        let skew = row * (self.params.cyl_skew + (self.params.surfaces - 1) * self.params.track_skew)
            + surface * self.params.track_skew;
        Place {
            cylinder: z.first_cylinder + row,
            surface,
            sector,
            sectors_per_track: z.sectors_per_track,
            angle: ((sector + skew) % z.sectors_per_track) as f64 / z.sectors_per_track as f64,
        }
    }

    /// Moving the arm over `cylinders`, ns.
    pub(super) fn seek_ns(&self, cylinders: u64) -> f64 {
        let (s, d) = (self.params.seek, cylinders as f64);
        let ms = match cylinders {
            0 => 0.0,
            _ if d < s.cutoff => s.a + s.b * d.sqrt(),
            _ => s.c + s.e * d,
        };
        ms * 1e6
    }

    /// Skew from track to track and from cylinder to cylinder, sectors.
    #[cfg(test)]
    pub(super) fn skews(&self) -> (u64, u64) {
        (self.params.track_skew, self.params.cyl_skew)
    }

    /// Time between sectors at media rate where a transfer runs on over tracks, ns.
    pub(super) fn streaming_sector_ns(&self, at: Place) -> f64 {
        let spt = at.sectors_per_track as f64;
        self.turn_ns / spt * (1.0 + self.params.track_skew as f64 / spt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_seek_times_are_those_of_the_parameter_sets() {
        for (name, mean_ms) in [
            ("cheetah9lp", 5.47),
            ("atlas10k", 5.62),
            ("barracuda_st32171w", 9.34),
            ("atlas_iii_7200", 8.32),
            ("ide_7200_33mb", 8.5),
            ("ide_10mb_1998", 9.5),
            ("ide_5400_fireball_lct", 8.8),
            ("sata_7200_modern", 8.5),
        ] {
            let g = Geometry::preset(name).expect("preset");
            let c = g.params.zones.last().expect("zones").1 + 1;
            let sum: f64 = (1..c).map(|d| 2.0 * (c - d) as f64 * g.seek_ns(d)).sum();
            let mean = sum / (c * c) as f64 / 1e6;
            assert!((mean - mean_ms).abs() < 0.15, "{name}: {mean}");
        }
    }

    #[test]
    fn sectors_fill_tracks_then_cylinders_then_zones() {
        let g = Geometry::preset("cheetah9lp").expect("preset");
        let at = |lbn| {
            let p = g.locate(lbn);
            (p.cylinder, p.surface, p.sector)
        };
        assert_eq!(at(0), (0, 0, 0));
        assert_eq!(at(254), (0, 1, 0));
        assert_eq!(at(254 * 12), (1, 0, 0));
        assert_eq!(at(254 * 12 * 847), (848, 0, 0));
        assert_eq!(g.locate(254).angle, 97.0 / 254.0);
        assert!(matches!(Geometry::preset("cheetah9"), Err(ConfigError::UnknownDisk { .. })));
    }
}
