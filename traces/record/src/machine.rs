//! What a model needs to know of the machine: memory, limits, scheduler, queue settings.

use std::fs;
use std::path::Path;

use nix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

use crate::device::{Device, mount_of, number_in};

/// Settings of the queue that models ask for.
const QUEUE: [&str; 11] = [
    "nr_requests",
    "read_ahead_kb",
    "rotational",
    "max_sectors_kb",
    "max_hw_sectors_kb",
    "max_segments",
    "logical_block_size",
    "physical_block_size",
    "wbt_lat_usec",
    "nomerges",
    "zoned",
];

/// Settings of memory management.
const VM: [&str; 12] = [
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "dirty_ratio",
    "dirty_writeback_centisecs",
    "swappiness",
    "vfs_cache_pressure",
    "overcommit_memory",
    "min_free_kbytes",
    "page-cluster",
    "watermark_scale_factor",
];

/// Both clocks at one moment, as decimal seconds with nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// Wall clock, since 1970: strace's and vmstat's.
    pub realtime: String,
    /// Monotonic clock: of the block events.
    pub monotonic: String,
}

impl Clocks {
    pub(crate) fn now() -> Self {
        let read = |clock| {
            let text = clock_gettime(clock).map(|t| format!("{}.{:09}", t.tv_sec(), t.tv_nsec()));
            text.unwrap_or_else(|_| "0.000000000".to_owned())
        };
        Self { realtime: read(ClockId::CLOCK_REALTIME), monotonic: read(ClockId::CLOCK_MONOTONIC) }
    }
}

/// Facts of the kernel and the processors.
pub(crate) fn kernel(facts: &mut Map<String, Value>) {
    facts.insert("kernel".into(), text_in("/proc/sys/kernel/osrelease"));
    facts.insert("cpus".into(), std::thread::available_parallelism().map_or(Value::Null, |n| n.get().into()));
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    for (name, key) in [("MemTotal:", "ram_bytes"), ("SwapTotal:", "swap_bytes")] {
        let kib = memory.lines().find_map(|l| l.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        facts.insert(key.into(), kib.map(|k| k * 1024).into());
    }
    let vm: Map<_, _> = VM.iter().map(|k| ((*k).to_owned(), value_in(&format!("/proc/sys/vm/{k}")))).collect();
    facts.insert("vm".into(), without_null(vm).into());
    let mglru = text_in("/sys/kernel/mm/lru_gen/enabled");
    facts.insert("lru_gen".into(), mglru);
}

/// Facts of a device.
pub(crate) fn device(device: &Device, facts: &mut Map<String, Value>) {
    let queue = device.sysfs.join("queue");
    facts.insert("device".into(), format!("/dev/{}", device.name).into());
    facts.insert("dev".into(), format!("{}:{}", device.number.0, device.number.1).into());
    facts.insert("capacity_bytes".into(), (device.sectors_512 * 512).into());
    facts.insert("partition_start_512".into(), device.start_512.into());
    facts.insert("scheduler".into(), scheduler(&queue.join("scheduler")));
    let mut settings: Map<String, Value> = QUEUE.iter().map(|k| ((*k).to_owned(), value_at(&queue.join(k)))).collect();
    let mut tunables: Vec<_> = fs::read_dir(queue.join("iosched")).into_iter().flatten().flatten().collect();
    tunables.sort_by_key(fs::DirEntry::file_name);
    for file in tunables {
        let value = value_at(&file.path());
        if value.is_number() {
            settings.insert(format!("iosched/{}", file.file_name().to_string_lossy()), value);
        }
    }
    facts.insert("queue".into(), without_null(settings).into());
    let bdi = format!("/sys/class/bdi/{}:{}", device.number.0, device.number.1);
    let limits: Map<_, _> = ["max_bytes", "max_ratio", "max_ratio_fine", "min_bytes", "strict_limit", "read_ahead_kb"]
        .iter()
        .map(|k| ((*k).to_owned(), value_at(&Path::new(&bdi).join(k))))
        .collect();
    facts.insert("bdi".into(), without_null(limits).into());
    let below: Vec<_> =
        device.below.iter().map(|d| json!({"name": d.name, "dev": format!("{}:{}", d.number.0, d.number.1)})).collect();
    if !below.is_empty() {
        facts.insert("devices_below".into(), below.into());
    }
}

/// Facts of the file system that a path is on.
pub(crate) fn file_system(path: &Path, facts: &mut Map<String, Value>) {
    if let Some((point, kind)) = mount_of(path) {
        facts.insert("mount".into(), point.to_string_lossy().into());
        facts.insert("file_system".into(), kind.into());
    }
}

/// Version of the memory controller: under version 1 reclaim waits for write-out where version 2 has writers wait before.
pub(crate) fn cgroup_version(cgroup: &Path) -> Option<u64> {
    let has = |file: &str| cgroup.join(file).exists();
    if has("memory.max") { Some(2) } else { has("memory.limit_in_bytes").then_some(1) }
}

/// The memory limit of a cgroup, of either version; none where it has none.
pub(crate) fn memory_limit(cgroup: &Path) -> Option<u64> {
    let limit = ["memory.max", "memory.limit_in_bytes"].iter().find_map(|f| number_in(&cgroup.join(f)))?;
    // Version 1 says "no limit" by the largest number of pages.
    (limit < 1 << 62).then_some(limit)
}

/// The chosen one of `none [mq-deadline]`, or the only one.
fn scheduler(file: &Path) -> Value {
    let Ok(text) = fs::read_to_string(file) else { return Value::Null };
    match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((chosen, _)) => chosen.into(),
        None => text.trim().into(),
    }
}

fn without_null(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().filter(|(_, v)| !v.is_null()).collect()
}

fn text_in(file: &str) -> Value {
    fs::read_to_string(file).map_or(Value::Null, |t| t.trim().into())
}

fn value_in(file: &str) -> Value {
    value_at(Path::new(file))
}

/// A number where it is one, else the text.
fn value_at(file: &Path) -> Value {
    let Ok(text) = fs::read_to_string(file) else { return Value::Null };
    let text = text.trim();
    text.parse::<i64>().map_or_else(|_| if text.is_empty() { Value::Null } else { text.into() }, Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_a_model_asks() {
        let mut facts = Map::new();
        kernel(&mut facts);
        assert!(facts["ram_bytes"].as_u64().unwrap() > 1 << 20, "{facts:?}");
        assert!(facts["cpus"].as_u64().unwrap() >= 1 && facts["kernel"].is_string());
    }

    #[test]
    fn a_device_with_its_scheduler_and_tunables() {
        let dir = tempfile::tempdir().unwrap();
        let queue = dir.path().join("queue");
        fs::create_dir_all(queue.join("iosched")).unwrap();
        for (file, text) in [
            ("scheduler", "none [bfq] kyber\n"),
            ("nr_requests", "64\n"),
            ("zoned", "none\n"),
            ("iosched/slice_idle", "8\n"),
        ] {
            fs::write(queue.join(file), text).unwrap();
        }
        let mut facts = Map::new();
        let sysfs = dir.path().to_owned();
        let found =
            Device { name: "sdz".into(), number: (8, 400), start_512: 63, sectors_512: 2, sysfs, below: Vec::new() };
        device(&found, &mut facts);
        assert_eq!(facts["scheduler"], "bfq");
        assert_eq!(facts["queue"], json!({"nr_requests": 64, "zoned": "none", "iosched/slice_idle": 8}));
        assert_eq!((&facts["dev"], &facts["capacity_bytes"]), (&json!("8:400"), &json!(1024)));
    }

    #[test]
    fn no_limit_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("memory.max");
        fs::write(&file, "max\n").unwrap();
        assert_eq!(memory_limit(dir.path()), None);
        fs::write(&file, "35651584\n").unwrap();
        assert_eq!(memory_limit(dir.path()), Some(35_651_584));
    }
}
