//! Flash: a serial controller, parallel units, a link, a write buffer.

use super::search::minimise;
use super::{Sample, loss};
use crate::block::Dir;
use crate::config::DeviceConfig;

const STEPS: usize = 240;
/// Parallelism that is tried.
const UNITS: [u32; 4] = [1, 4, 8, 32];
const PAGES: [u64; 2] = [4096, 16_384];

pub(super) fn fit(samples: &[Sample], queue_depth: u32) -> DeviceConfig {
    let build = |p: &[f64; 6], units: u32, page_bytes: u64| {
        let [overhead_ns, read_ns, ack_ns, link_bytes_s, program_ns, buffer_bytes] =
            p.map(|x| x.clamp(0.0, 1e15).round() as u64);
        DeviceConfig::Ssd {
            queue_depth,
            units,
            page_bytes,
            read_ns,
            program_ns: program_ns.max(1),
            ack_ns,
            overhead_ns,
            link_bytes_s: link_bytes_s.max(1),
            buffer_bytes,
            write_amplification_pct: 100,
            erase_pages: 0,
            erase_ns: 0,
        }
    };
    let quick = |dir: Dir| {
        let mut v: Vec<f64> = samples.iter().filter(|s| s.t.dir == dir).map(Sample::recorded_ns).collect();
        v.sort_unstable_by(f64::total_cmp);
        v.get(v.len() / 10).copied().unwrap_or(50_000.0)
    };
    let (read, write) = (quick(Dir::Read), quick(Dir::Write));
    let rate = samples.iter().map(|s| f64::from(s.t.nr) * 512e9 / s.recorded_ns()).fold(1e6, f64::max);
    let mut best: Option<(DeviceConfig, f64)> = None;
    for units in UNITS {
        for page in PAGES {
            // A buffer that never fills, or none to speak of.
            for buffer in [1e12, 1e5] {
                let start = [read.min(write) / 4.0, read / 2.0, write / 2.0, rate, 10.0 * read, buffer];
                let (p, v) = minimise(start, STEPS, |p| loss(&build(p, units, page), samples));
                if best.as_ref().is_none_or(|b| v < b.1) {
                    best = Some((build(&p, units, page), v));
                }
            }
        }
    }
    best.map_or_else(|| build(&[1e4, read, write, rate, read, 1e9], 1, 4096), |b| b.0)
}
