//! Ranges that the types of [`crate::config`] cannot say: one list for variants from files and for configurations built in
//! code.

use super::priority;
use crate::block;
use crate::config::{AllocPolicy, Config, DeviceConfig, QueueConfig, WritebackPolicy};
use crate::variant::nearest_or_longer;
use crate::writeback::MAX_BATCH;

/// A key and what is wrong with its value.
pub type Wrong = (&'static str, String);

/// Longest period of a daemon or deadline, ms: a day.
const MOST_MS: u64 = 86_400_000;
/// Longest single cost of processor or device, ns: a second.
const MOST_NS: u64 = 1_000_000_000;
/// Largest memory, KiB: 1 TiB.
const MOST_RAM_KIB: u64 = 1 << 30;
/// Largest swap space, KiB: 32 areas of 2 GiB, as many as 2.4 takes.
const MOST_SWAP_KIB: u64 = 64 << 20;
/// Most requests that a queue or a device holds.
const MOST_REQUESTS: u64 = 65_536;
/// Largest byte counts and rates.
const MOST_BYTES: u64 = 1 << 50;

/// The first key whose value makes no machine, with what is wrong about it.
///
/// # Errors
/// The key as in a variant file, and a sentence.
pub fn ranges(c: &Config) -> Result<(), Wrong> {
    machine(c)?;
    within("alloc.dma-ratio", c.alloc.dma_ratio, 1, u32::MAX)?;
    within("alloc.normal-ratio", c.alloc.normal_ratio, 1, u32::MAX)?;
    within("alloc.mask-floor", c.alloc.mask_floor, 0, 255)?;
    within("reclaim.cluster", c.reclaim.cluster, 1, 1024)?;
    within("reclaim.def-priority", c.reclaim.def_priority, 1, 12)?;
    within("reclaim.passes.count", c.reclaim.passes.count, 0, 10_000)?;
    within("reclaim.passes.scans", c.reclaim.passes.scans, 1, 100)?;
    within("reclaim.passes.scan-ratio", c.reclaim.passes.scan_ratio, 1, 10_000)?;
    within("reclaim.passes.mapped-ratio", c.reclaim.passes.mapped_ratio, 0, 1_000_000)?;
    within("reclaim.passes.unmap-rounds", c.reclaim.passes.unmap_rounds, 1, 100)?;
    within("reclaim.kswapd-fail-ms", c.reclaim.kswapd_fail_ms, 1, MOST_MS)?;
    within("swap.page-cluster", c.swap.page_cluster, 0, 8)?;
    within("swap.free-slot-below-pct", c.swap.free_slot_below_pct, 0, 100)?;
    within("swap.max-in-flight-clusters", c.swap.max_in_flight_clusters, 0, 1 << 16)?;
    within("readahead.max-pages", c.readahead.max_pages, c.readahead.min_pages, 32_768)?;
    within("writeback.soft-pct", c.writeback.soft_pct, 0, 100)?;
    within("writeback.hard-pct", c.writeback.hard_pct, c.writeback.soft_pct, 100)?;
    within("writeback.stop-pct", c.writeback.stop_pct, 0, 100)?;
    within("writeback.bdflush-buffers", c.writeback.bdflush_buffers, 0, 50_000)?;
    within("writeback.batch", c.writeback.batch, 1, MAX_BATCH as u32)?;
    within("writeback.flush-buffers", c.writeback.flush_buffers, 0, 1 << 20)?;
    within("reclaim.clock.buffer-min-pct", c.reclaim.clock.buffer_min_pct, 0, 100)?;
    within("reclaim.clock.cache-min-pct", c.reclaim.clock.cache_min_pct, 0, 100)?;
    within("machine.slice-ms", c.machine.slice_ms, 1, 10_000)?;
    within("writeback.interval-ms", c.writeback.interval_ms, 1, MOST_MS)?;
    nested("readahead", serde_json::to_value(&c.readahead).unwrap_or_default(), "readahead")?;
    within("readahead.on-demand.window-kib", c.readahead.on_demand.window_kib, 0, 128 << 10)?;
    within("readahead.on-demand.io-kib", c.readahead.on_demand.io_kib, 4, 128 << 10)?;
    within("readahead.on-demand.folio-order", c.readahead.on_demand.folio_order, 0, 9)?;
    within("reclaim.workingset.swappiness", c.reclaim.workingset.swappiness, 0, 200)?;
    within("reclaim.workingset.throttle-ms", c.reclaim.workingset.throttle_ms, 0, MOST_MS)?;
    let b = &c.writeback.balanced;
    within("writeback.balanced.dirty-pct", b.dirty_pct, 0, 100)?;
    within("writeback.balanced.background-pct", b.background_pct, 0, 100)?;
    within("writeback.balanced.extent-pages", b.extent_pages, 1, 32_768)?;
    within("writeback.balanced.commit-ms", b.commit_ms, 0, MOST_MS)?;
    within_kib("writeback.balanced.device-limit-kib", b.device_limit_kib, 0, MOST_RAM_KIB)?;
    within_kib("writeback.balanced.dirty-kib", b.dirty_kib, 0, MOST_RAM_KIB)?;
    within_kib("writeback.balanced.background-kib", b.background_kib, 0, MOST_RAM_KIB)?;
    within_kib("writeback.balanced.start-kib-s", b.start_kib_s, 4, MOST_RAM_KIB)?;
    within_kib("writeback.balanced.start-rate-kib-s", b.start_rate_kib_s, 4, MOST_RAM_KIB)?;
    if c.writeback.policy == WritebackPolicy::Balanced && !c.reclaim.policy.detects_refaults() {
        let what = "balanced write-out counts dirty pages by file, which only reclaim.policy \"workingset\" and \"generations\" keep";
        return Err(("writeback.policy", what.to_owned()));
    }
    if c.reclaim.policy.detects_refaults() && c.alloc.policy != AllocPolicy::Watermarks {
        return Err((
            "reclaim.policy",
            "\"workingset\" and \"generations\" need alloc.policy \"watermarks\"".to_owned(),
        ));
    }
    within("writeback.expire-ms", c.writeback.expire_ms, 0, MOST_MS)?;
    queue(&c.queue)?;
    elevator(c)?;
    nested("elevator", serde_json::to_value(&c.elevator).unwrap_or_default(), "elevator")?;
    nested("queue", serde_json::to_value(&c.queue).unwrap_or_default(), "queue")?;
    device(&c.device)
}

/// Bounds by the unit in a key's name, for the many tunables of schedulers and throttles.
fn nested(section: &'static str, value: serde_json::Value, path: &str) -> Result<(), Wrong> {
    match value {
        serde_json::Value::Object(keys) => {
            keys.into_iter().try_for_each(|(key, value)| nested(section, value, &format!("{path}.{key}")))
        }
        serde_json::Value::Number(n) => {
            let most = match path.rsplit('-').next() {
                Some("ms") => MOST_MS,
                Some("us") => MOST_MS * 1000,
                Some("ns") => MOST_NS,
                Some("kib") => MOST_RAM_KIB,
                _ => u64::from(u32::MAX),
            };
            match n.as_u64() {
                Some(n) if n > most => Err((section, format!("{path} = {n} is more than {most}"))),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn machine(c: &Config) -> Result<(), Wrong> {
    let m = &c.machine;
    within("machine.hz", m.hz, 1, 1000)?;
    within("machine.cpus", m.cpus, 1, 64)?;
    within_kib("machine.ram", m.ram, 4 * 1024, MOST_RAM_KIB)?;
    if m.reserved > m.ram / 2 {
        return Err(("machine.reserved", format!("{} KiB leave less than half of {} KiB", m.reserved, m.ram)));
    }
    within_kib("machine.swap", m.swap, 0, MOST_SWAP_KIB)?;
    within_kib("machine.memory-limit", m.memory_limit, 0, MOST_RAM_KIB)?;
    if m.memory_limit > 0 && m.memory_limit < m.limit_reserved + 1024 {
        let what = format!("{} KiB leave less than 1 MiB beside {} KiB", m.memory_limit, m.limit_reserved);
        return Err(("machine.memory-limit", what));
    }
    for (key, ns) in [
        ("machine.syscall-ns", m.syscall_ns),
        ("machine.copy-page-ns", m.copy_page_ns),
        ("machine.fault-ns", m.fault_ns),
        ("machine.fresh-frame-ns", m.fresh_frame_ns),
        ("machine.touch-ns", m.touch_ns),
        ("machine.scan-page-ns", m.scan_page_ns),
        ("machine.page-cache-add-ns", m.page_cache_add_ns),
        ("machine.submit-ns", m.submit_ns),
        ("machine.completion-page-ns", m.completion_page_ns),
    ] {
        within(key, ns, 0, MOST_NS)?;
    }
    if m.block_bytes != 4096 {
        return Err(("machine.block-bytes", format!("{}: only blocks of 4096 bytes are modelled", m.block_bytes)));
    }
    Ok(())
}

/// Ranges of the request queue.
pub(crate) fn queue(c: &QueueConfig) -> Result<(), Wrong> {
    if c.slots != 0 {
        within("queue.slots", u64::from(c.slots), 2, MOST_REQUESTS)?;
    }
    within("queue.batch-divisor", c.batch_divisor, 1, u32::MAX)?;
    within("queue.max-sectors", c.max_sectors, 8, 65_535)?;
    within("queue.max-segments", c.max_segments, 1, u32::MAX)?;
    priority::parse(&c.priorities).map_err(|what| ("queue.priorities", what))?;
    Ok(())
}

fn elevator(c: &Config) -> Result<(), Wrong> {
    let elevators = || block::policies().iter().map(|p| p.name);
    let name = c.elevator.policy.as_str();
    if !elevators().any(|p| p == name) {
        let hint = nearest_or_longer(name, elevators()).map_or_else(
            || format!("the elevators are {}", elevators().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(("elevator.policy", format!("there is no elevator \"{name}\"; {hint}")));
    }
    let d = &c.elevator.deadline;
    within("elevator.deadline.read-expire-ms", d.read_expire_ms, 0, MOST_MS)?;
    within("elevator.deadline.write-expire-ms", d.write_expire_ms, 0, MOST_MS)?;
    within("elevator.deadline.prio-aging-expire-ms", d.prio_aging_expire_ms, 0, MOST_MS)
}

/// Ranges of a device model: a disk that transfers nothing never finishes, a buffer drains at a page per unit in the time
/// that programming takes, and what is written is written at least once.
pub(crate) fn device(device: &DeviceConfig) -> Result<(), Wrong> {
    let depth = |n: u32| within("device.queue-depth", u64::from(n), 1, MOST_REQUESTS);
    match device {
        DeviceConfig::Rotating {
            overhead_us,
            seek_min_us,
            seek_span_us,
            stroke_bytes,
            rotation_us,
            rate_bytes_s,
            skip_gap_bytes,
            queue_depth,
            ..
        } => {
            for (key, us) in [
                ("device.overhead-us", overhead_us),
                ("device.seek-min-us", seek_min_us),
                ("device.seek-span-us", seek_span_us),
                ("device.rotation-us", rotation_us),
            ] {
                within(key, *us, 0, MOST_NS / 1000)?;
            }
            within("device.stroke-bytes", *stroke_bytes, 1, MOST_BYTES)?;
            within("device.rate-bytes-s", *rate_bytes_s, 1, MOST_BYTES)?;
            within("device.skip-gap-bytes", *skip_gap_bytes, 0, MOST_BYTES)?;
            depth(*queue_depth)
        }
        DeviceConfig::Disk { queue_depth, .. } | DeviceConfig::Null { queue_depth } => depth(*queue_depth),
        DeviceConfig::Ssd {
            queue_depth,
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
        } => {
            depth(*queue_depth)?;
            within("device.units", *units, 1, 65_536)?;
            within("device.page-bytes", *page_bytes, 512, 1 << 30)?;
            within("device.program-ns", *program_ns, 1, MOST_NS)?;
            for (key, ns) in [
                ("device.read-ns", read_ns),
                ("device.ack-ns", ack_ns),
                ("device.overhead-ns", overhead_ns),
                ("device.erase-ns", erase_ns),
            ] {
                within(key, *ns, 0, MOST_NS)?;
            }
            within("device.erase-pages", *erase_pages, 0, 1 << 30)?;
            within("device.link-bytes-s", *link_bytes_s, 1, MOST_BYTES)?;
            within("device.buffer-bytes", *buffer_bytes, 1, MOST_BYTES)?;
            within("device.write-amplification-pct", *write_amplification_pct, 100, 100_000)
        }
    }
}

fn within<T: Ord + std::fmt::Display>(key: &'static str, value: T, least: T, most: T) -> Result<(), Wrong> {
    if value < least {
        Err((key, format!("{value} is less than {least}")))
    } else if value > most {
        Err((key, format!("{value} is more than {most}")))
    } else {
        Ok(())
    }
}

fn within_kib(key: &'static str, kib: u64, least: u64, most: u64) -> Result<(), Wrong> {
    within(key, kib, least, most).map_err(|(key, what)| (key, format!("in KiB, {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunables_are_bounded_by_the_unit_in_their_names() {
        let mut c = crate::testing::config();
        assert_eq!(ranges(&c), Ok(()));
        c.queue.wbt.min_lat_us = u64::MAX;
        let (key, what) = ranges(&c).unwrap_err();
        assert!(key == "queue" && what.starts_with("queue.wbt.min-lat-us"), "{key}: {what}");
        let mut c = crate::testing::config();
        c.elevator.deadline.fifo_batch = u32::MAX;
        assert_eq!(ranges(&c), Ok(()), "a number of requests may be any");
    }
}
