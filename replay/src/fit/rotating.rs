//! One arm: overhead, square-root seek, constant rate. What a seek costs at least and the mean rotational wait cannot be
//! told apart from outside; the fit gives their sum as the former.

use super::search::minimise;
use super::{Sample, loss};
use crate::config::DeviceConfig;
use kreplay_traces::units::SECTOR_BYTES;

/// Evaluations of the model per start.
const STEPS: usize = 240;
/// Gaps that a disk may pass instead of seeking, bytes.
const SKIPS: [u64; 6] = [0, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];

pub(super) fn fit(samples: &[Sample], queue_depth: u32) -> DeviceConfig {
    let stroke = samples.iter().map(|s| s.t.sector.saturating_add(u64::from(s.t.nr))).max().unwrap_or(1);
    let stroke = stroke.saturating_mul(SECTOR_BYTES);
    let build = |p: &[f64; 4], skip: u64, costs: bool| {
        let [overhead, seek_min, seek_span, rate] = p.map(|x| x.clamp(0.0, 1e15).round() as u64);
        DeviceConfig::Rotating {
            overhead_us: overhead,
            seek_min_us: seek_min,
            seek_span_us: seek_span,
            stroke_bytes: stroke.max(1),
            rotation_us: 0,
            rate_bytes_s: rate.max(1),
            skip_gap_bytes: skip,
            skip_gap_costs: costs,
            skip_same_direction: false,
            queue_depth,
            shared_channel: false,
        }
    };
    let start = guess(samples);
    // All of a seek's time constant, or most of it growing with the distance: two valleys.
    let steep = [start[0], start[1] / 4.0, start[2] * 4.0, start[3]];
    let mut best: Option<([f64; 4], u64, bool, f64)> = None;
    for skip in SKIPS {
        for costs in [true, false] {
            for start in [start, steep] {
                let (p, v) = minimise(start, STEPS, |p| loss(&build(p, skip, costs), samples));
                if best.is_none_or(|b| v < b.3) {
                    best = Some((p, skip, costs, v));
                }
            }
        }
    }
    let (p, skip, costs, _) = best.unwrap_or((start, 0, true, 0.0));
    // Once more from where the first search ended, with a fresh simplex.
    let (p, _) = minimise(p, 2 * STEPS, |p| loss(&build(p, skip, costs), samples));
    build(&p, skip, costs)
}

/// Overhead (us), least and growing part of a seek (us), rate (bytes/s) from the requests that found the device idle or
/// followed right behind another.
fn guess(samples: &[Sample]) -> [f64; 4] {
    let mut busy_until = 0.0f64;
    let mut end = 0;
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for s in samples {
        let begun = busy_until.max(s.d.get() as f64);
        let took = s.c.get() as f64 - begun;
        busy_until = busy_until.max(s.c.get() as f64);
        if took > 0.0 {
            if s.t.sector == end { &mut near } else { &mut far }.push((f64::from(s.t.nr), took));
        }
        end = s.t.sector + u64::from(s.t.nr);
    }
    let all: Vec<_> = near.iter().chain(&far).copied().collect();
    // The quickest tenth per sector shows the medium's rate.
    let mut per_sector: Vec<f64> = all.iter().map(|(nr, took)| took / nr).collect();
    per_sector.sort_unstable_by(f64::total_cmp);
    let sector_ns = per_sector.get(per_sector.len() / 10).copied().unwrap_or(25_600.0).max(1e-3);
    let rest = |list: &[(f64, f64)]| {
        let mut v: Vec<f64> = list.iter().map(|(nr, took)| (took - nr * sector_ns).max(0.0)).collect();
        v.sort_unstable_by(f64::total_cmp);
        v.get(v.len() / 2).copied().unwrap_or(0.0)
    };
    let seek = rest(&far);
    [100.0, (seek / 2e3).max(1.0), (seek / 1e3).max(1.0), SECTOR_BYTES as f64 * 1e9 / sector_ns]
}
