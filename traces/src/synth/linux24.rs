//! The recorded runs of real 2.2 and 2.4 kernels: from a run's description to the same load.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::layout::{GROUP_BLOCKS, GROUP_INODES};
use super::{LOADS, Load, Params};
use crate::error::{Doing, Error, Result};
use crate::store::{DeviceSpec, MachineInfo, MountSpec};

/// A run's description: the load and the machine it ran on.
pub struct Run {
    /// Name of the workload as the run calls it (`srnetfresh`).
    pub workload: String,
    /// The load.
    pub load: &'static Load,
    /// Its parameters.
    pub params: Params,
    /// Kernel (`2.4.16`, `2.4.17rl1`).
    pub kernel: String,
    /// Memory, MiB.
    pub ram_mib: u64,
    /// Swap space, MiB.
    pub swap_mib: u64,
    /// The disk model behind data and swap.
    pub disk: DiskModel,
    /// Elevator latencies set before the start, if any.
    pub elevator: Option<ElevatorSetting>,
    /// The run came to its end.
    pub completed: bool,
}

/// The disk model of the recorded runs: one request at a time, served in
/// `overhead + bytes / rate`, plus `seek_a + seek_b * sqrt(distance / stroke) + rot` unless the request begins 0 to
/// 64 KiB after the end of the one before and goes in the same direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct DiskModel {
    /// Microseconds a request.
    pub overhead_us: u64,
    /// Least seek, microseconds.
    pub seek_a_us: u64,
    /// Factor of the square root, microseconds.
    pub seek_b_us: u64,
    /// Half a rotation, microseconds.
    pub rot_us: u64,
    /// Bytes per second.
    #[serde(rename = "rate_Bps")]
    pub rate_bytes_s: u64,
    /// Distance that counts as the whole stroke, bytes.
    pub stroke_bytes: u64,
}

/// Passover limits of the 2.4 elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElevatorSetting {
    /// Of a read.
    pub read_latency: u64,
    /// Of a write.
    pub write_latency: u64,
    /// `max_bomb_segments`, which the read-latency patches use as their threshold.
    pub max_bomb: u64,
}

#[derive(Deserialize)]
struct RunJson {
    kernel: String,
    mem_mb: u64,
    workload: String,
    params: BTreeMap<String, String>,
    swap_mb: u64,
    disk_model: DiskModel,
    #[serde(default)]
    completed: bool,
}

/// Loads by the beginning of the program's workload word, longer words first.
const WORDS: [(&str, &str); 10] = [
    ("neta", "netatalk"),
    ("srnet", "srnet"),
    ("sr", "sr"),
    ("seqhot", "seqhot"),
    ("wr16", "wr16"),
    ("read", "read"),
    ("hog", "hog"),
    ("dc", "dcache"),
    ("untar", "untar"),
    ("desk", "desk"),
];

/// Settings of the recording, not of the load.
const RECORDING_KEYS: [&str; 9] = ["WL", "DMA", "IV", "ide1", "ELVR", "ELVW", "ELVB", "TAIL", "SWAP"];

/// Read a `run.json`.
///
/// # Errors
/// If it cannot be read, is of another shape, or has a parameter that its load does not know.
pub fn from_run_json(path: &Path) -> Result<Run> {
    let text = fs::read(path).map_err(|e| Error::io(path, Doing::Reading, e))?;
    let wrong = |why: String| Error::RunDescription { path: path.to_path_buf(), why };
    let json: RunJson = serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))?;
    let word = json.params.get("WL").map_or("base", String::as_str);
    let name = WORDS.iter().find(|(w, _)| word.starts_with(w)).map_or("base", |(_, load)| load);
    let load = LOADS.iter().find(|l| l.name == name).ok_or_else(|| wrong(format!("no load for {word:?}")))?;
    let mut params = Params::defaults(load);
    for (key, value) in json.params.iter().filter(|(k, _)| !RECORDING_KEYS.contains(&k.as_str())) {
        let spec = load.params.iter().find(|p| p.recorded == key);
        let spec = spec.ok_or_else(|| wrong(format!("load {name} has no parameter {key}")))?;
        let value = leading_number(value).ok_or_else(|| wrong(format!("{key}={value:?} is no number")))?;
        params.set(spec.name, value)?;
    }
    let setting = |key: &str| json.params.get(key).and_then(|v| leading_number(v));
    let elevator = setting("ELVR").map(|read_latency| ElevatorSetting {
        read_latency,
        write_latency: setting("ELVW").unwrap_or(0),
        max_bomb: setting("ELVB").unwrap_or(0),
    });
    Ok(Run {
        workload: json.workload,
        load,
        params,
        kernel: json.kernel,
        ram_mib: json.mem_mb,
        swap_mib: json.swap_mb,
        disk: json.disk_model,
        elevator,
        completed: json.completed,
    })
}

fn leading_number(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().ok()
}

impl Run {
    /// The machine of the run, for a generated trace's manifest.
    pub fn machine(&self, devices: &[DeviceSpec]) -> MachineInfo {
        let mut machine = image_machine(devices);
        machine.ram_kib = Some(self.ram_mib * 1024);
        machine.swap_kib = Some(self.swap_mib * 1024);
        machine.kernel = Some(self.kernel.clone());
        for device in &mut machine.devices {
            if device.swap {
                device.sectors = Some(self.swap_mib * 2048);
            }
        }
        machine
    }
}

/// The machine that all loads are for, as far as it does not depend on the run: one processor, the image's geometry.
pub fn image_machine(devices: &[DeviceSpec]) -> MachineInfo {
    let mount = |path: &str, dev: i64| MountSpec { path: path.to_owned(), dev: Some(dev), fs: Some("ext2".into()) };
    let data: Vec<&DeviceSpec> = devices.iter().filter(|d| !d.swap).collect();
    let mut mounts: Vec<MountSpec> = data.iter().map(|d| mount("/mnt", d.dev)).collect();
    mounts.extend(data.iter().filter(|d| d.partitions.len() > 1).map(|d| mount("/mnt2", d.dev)));
    let fact = |k: &str, v: String| (k.to_owned(), v);
    MachineInfo {
        cpus: Some(1),
        devices: devices.to_vec(),
        mounts,
        facts: BTreeMap::from([
            fact("fs.block_bytes", "4096".into()),
            fact("fs.blocks_per_group", GROUP_BLOCKS.to_string()),
            fact("fs.inodes_per_group", GROUP_INODES.to_string()),
            fact("fs.inode_bytes", "128".into()),
            // From the group's first block: 4 in groups with a copy of the superblock, 2 in the others.
            fact("fs.inode_table_blocks", "4,2".into()),
        ]),
        ..MachineInfo::default()
    }
}

/// The mark that belongs to an event of a run's `summary.json` (`hogpass proc pass us 1 2 345` is `hogpass 1 2`);
/// `None` for events that no load marks (`boot`, `nprog`, `reaped`, ...).
pub fn mark_of_event(event: &str) -> Option<String> {
    /// Words of the message before its three numbers; the mark's word; which of the numbers identify it.
    const EVENTS: [(&str, &str, &[usize]); 25] = [
        ("start", "start", &[]),
        ("workload us", "workload", &[]),
        ("read16 k us", "read16", &[0]),
        ("write32 us", "write32", &[]),
        ("write32+fsync us", "write32+fsync", &[]),
        ("reread32 cached us", "reread32", &[]),
        ("hotpass n us", "hotpass", &[]),
        ("bigstart", "bigstart", &[]),
        ("bigprog id MB us", "bigprog", &[1]),
        ("bigdone us", "bigdone", &[]),
        ("rprog id MB us", "rprog", &[0, 1]),
        ("rprog rep MB us", "rprog", &[0, 1]),
        ("readdone rep us", "readdone", &[0]),
        ("rep client rep us", "rep", &[0, 1]),
        ("client done us", "client done", &[0]),
        ("phase client n us", "phase", &[0, 1]),
        ("wprog MB us", "wprog", &[]),
        ("hogpass proc pass us", "hogpass", &[0, 1]),
        ("walk n us", "walk", &[2]),
        ("bigread us", "bigread", &[]),
        ("walk-after-bigread n us", "walk-after-bigread", &[]),
        ("hog us", "hog", &[]),
        ("walk-after-hog n us", "walk-after-hog", &[]),
        ("untar dirs us", "untar dirs", &[0]),
        ("gimp-rotate us", "gimp-rotate", &[0]),
    ];
    const PLAIN: [(&str, &str); 5] = [
        ("untar files us", "untar files"),
        ("untar+sync us", "untar+sync"),
        ("slocate n us", "slocate"),
        ("gimp-create us", "gimp-create"),
        ("staroffice-load us", "staroffice-load"),
    ];
    let mut words: Vec<&str> = event.split_ascii_whitespace().collect();
    let numbers = words.split_off(words.len().checked_sub(3)?);
    let message = words.join(" ");
    if let Some((_, mark)) = PLAIN.iter().find(|(m, _)| *m == message) {
        return Some((*mark).to_owned());
    }
    let (_, word, which) = EVENTS.iter().find(|(m, ..)| *m == message)?;
    Some(which.iter().fold((*word).to_owned(), |mark, i| format!("{mark} {}", numbers[*i])))
}
