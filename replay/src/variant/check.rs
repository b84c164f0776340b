//! Ranges that the types of [`crate::config`] cannot say.

use super::error::nearest;
use crate::block;
use crate::config::{Config, DeviceConfig};

type Wrong = (&'static str, String);

/// The first key whose value makes no machine, with what is wrong about it.
pub(super) fn ranges(c: &Config) -> Result<(), Wrong> {
    let m = &c.machine;
    at_least("machine.hz", u64::from(m.hz), 1)?;
    at_least("machine.cpus", u64::from(m.cpus), 1)?;
    if m.ram < 4 * 1024 {
        return Err(("machine.ram", "less than 4 MiB is not modelled".to_owned()));
    }
    if m.reserved >= m.ram {
        return Err(("machine.reserved", format!("{} KiB leave nothing of {} KiB", m.reserved, m.ram)));
    }
    if !matches!(m.block_bytes, 1024 | 4096) {
        return Err(("machine.block-bytes", format!("{} is neither 1024 nor 4096", m.block_bytes)));
    }
    at_least("alloc.dma-ratio", u64::from(c.alloc.dma_ratio), 1)?;
    at_least("alloc.normal-ratio", u64::from(c.alloc.normal_ratio), 1)?;
    at_most("alloc.mask-floor", u64::from(c.alloc.mask_floor), 255)?;
    at_least("reclaim.cluster", u64::from(c.reclaim.cluster), 1)?;
    at_least("reclaim.def-priority", u64::from(c.reclaim.def_priority), 1)?;
    at_most("reclaim.def-priority", u64::from(c.reclaim.def_priority), 9)?;
    at_least("reclaim.kswapd-fail-ms", c.reclaim.kswapd_fail_ms, 1)?;
    at_most("swap.page-cluster", u64::from(c.swap.page_cluster), 8)?;
    at_most("swap.free-slot-below-pct", u64::from(c.swap.free_slot_below_pct), 100)?;
    at_least("readahead.max-pages", u64::from(c.readahead.max_pages), u64::from(c.readahead.min_pages))?;
    at_most("writeback.soft-pct", u64::from(c.writeback.soft_pct), 100)?;
    at_most("writeback.hard-pct", u64::from(c.writeback.hard_pct), 100)?;
    at_least("writeback.hard-pct", u64::from(c.writeback.hard_pct), u64::from(c.writeback.soft_pct))?;
    at_least("writeback.batch", u64::from(c.writeback.batch), 1)?;
    at_least("writeback.interval-ms", c.writeback.interval_ms, 1)?;
    if c.queue.slots != 0 {
        at_least("queue.slots", u64::from(c.queue.slots), 2)?;
    }
    at_least("queue.batch-divisor", u64::from(c.queue.batch_divisor), 1)?;
    at_least("queue.max-sectors", u64::from(c.queue.max_sectors), 8)?;
    at_least("queue.max-segments", u64::from(c.queue.max_segments), 1)?;
    let elevators = || block::policies().iter().map(|p| p.name);
    let name = c.elevator.policy.as_str();
    if !elevators().any(|p| p == name) {
        let hint = nearest(name, elevators()).map_or_else(
            || format!("the elevators are {}", elevators().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(("elevator.policy", format!("there is no elevator \"{name}\"; {hint}")));
    }
    match &c.device {
        DeviceConfig::Rotating { stroke_bytes, rate_bytes_s, queue_depth, .. } => {
            at_least("device.stroke-bytes", *stroke_bytes, 1)?;
            at_least("device.rate-bytes-s", *rate_bytes_s, 1)?;
            at_least("device.queue-depth", u64::from(*queue_depth), 1)
        }
        DeviceConfig::Disk { queue_depth, .. } => at_least("device.queue-depth", u64::from(*queue_depth), 1),
        DeviceConfig::Ssd { queue_depth, units, page_bytes, link_bytes_s, buffer_bytes, .. } => {
            at_least("device.queue-depth", u64::from(*queue_depth), 1)?;
            at_least("device.units", u64::from(*units), 1)?;
            at_least("device.page-bytes", *page_bytes, 512)?;
            at_least("device.link-bytes-s", *link_bytes_s, 1)?;
            at_least("device.buffer-bytes", *buffer_bytes, 1)
        }
        DeviceConfig::Null { queue_depth } => at_least("device.queue-depth", u64::from(*queue_depth), 1),
    }
}

fn at_least(key: &'static str, value: u64, least: u64) -> Result<(), Wrong> {
    if value < least { Err((key, format!("{value} is less than {least}"))) } else { Ok(()) }
}

fn at_most(key: &'static str, value: u64, most: u64) -> Result<(), Wrong> {
    if value > most { Err((key, format!("{value} is more than {most}"))) } else { Ok(()) }
}
