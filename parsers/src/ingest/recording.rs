//! `run.json`: what our recording helper knows about a recording beside its logs.

use std::path::{Path, PathBuf};

use kreplay_traces::store::{DeviceSpec, MachineInfo};
use serde_json::Value;

/// Marker of the files that are understood.
const FORMAT: &str = "capture-1";

/// A recording's own description of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The `run.json`.
    pub path: PathBuf,
    /// The machine.
    pub machine: MachineInfo,
    /// Wall clock at the start, nanoseconds since 1970.
    pub start_realtime_ns: Option<i64>,
    /// Monotonic clock at the start, nanoseconds.
    pub start_monotonic_ns: Option<i64>,
    /// Directory that the paths of `layout.txt` belong under.
    pub root: Option<String>,
    /// Recorded device, `major << 20 | minor`.
    pub dev: Option<i64>,
    /// What a reader should know (lost events).
    pub warnings: Vec<String>,
}

impl Recording {
    /// The recorded device has zones that must be written in order, as far as the facts say.
    pub fn is_zoned(&self) -> bool {
        let zoned = |name: &str| name == "zoned" || name.ends_with(".zoned");
        self.machine.facts.iter().any(|(name, value)| zoned(name) && !matches!(value.as_str(), "none" | "false" | "0"))
    }

    /// Read a `run.json`; `Ok(None)` where it is JSON of another kind.
    ///
    /// # Errors
    /// A sentence, when the text is not JSON.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Option<Self>, String> {
        let json: Value = serde_json::from_slice(text).map_err(|e| format!("not readable as JSON: {e}"))?;
        if json["format"] != FORMAT {
            return Ok(None);
        }
        let text_of = |v: &Value| v.as_str().map(str::to_owned);
        let dev = json["dev"].as_str().and_then(device);
        let disk = &json["facts"]["disk"];
        let device = dev.map(|dev| DeviceSpec {
            dev,
            name: json["device"].as_str().map(|d| d.trim_start_matches("/dev/").to_owned()),
            sectors: disk["capacity_bytes"].as_u64().or_else(|| json["capacity_bytes"].as_u64()).map(|b| b / 512),
            scheduler: text_of(&json["scheduler"]),
            ..DeviceSpec::default()
        });
        let mut machine = MachineInfo {
            // A limit on the load is the memory that it had; without one it had the machine's.
            ram_kib: json["memory_limit_bytes"].as_u64().or_else(|| json["ram_bytes"].as_u64()).map(|b| b / 1024),
            swap_kib: json["swap_bytes"].as_u64().map(|b| b / 1024),
            cpus: json["cpus"].as_u64().and_then(|c| u32::try_from(c).ok()),
            kernel: text_of(&json["kernel"]),
            devices: device.into_iter().collect(),
            ..MachineInfo::default()
        };
        flatten("", &json, &mut machine);
        let lost = |key: &str| json[key].as_u64().filter(|n| *n > 0).map(|n| format!("the recording has {n} {key}"));
        let missing = json["missing"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let missing = missing.map(|what| format!("the recording lacks {what}"));
        Ok(Some(Self {
            path: path.to_path_buf(),
            start_realtime_ns: seconds_ns(text, "\"start_realtime\""),
            start_monotonic_ns: seconds_ns(text, "\"start_monotonic\""),
            root: text_of(&json["mount"]).or_else(|| root(json["facts"]["command"].as_str()?)),
            dev,
            warnings: ["lost_events", "lost_blk_records"].into_iter().filter_map(lost).chain(missing).collect(),
            machine,
        }))
    }
}

/// Every scalar under its dotted name.
fn flatten(prefix: &str, value: &Value, machine: &mut MachineInfo) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&name, inner, machine);
            }
        }
        Value::Null | Value::Array(_) => {}
        Value::String(s) => {
            machine.facts.insert(prefix.to_owned(), s.clone());
        }
        scalar => {
            machine.facts.insert(prefix.to_owned(), scalar.to_string());
        }
    }
}

/// `7:0` as one number.
fn device(text: &str) -> Option<i64> {
    let (major, minor) = text.split_once(':')?;
    Some(major.parse::<i64>().ok()? << 20 | minor.parse::<i64>().ok()?)
}

/// The seconds after a key, taken from the text: a float would lose the nanoseconds.
fn seconds_ns(text: &[u8], key: &str) -> Option<i64> {
    let after = &text[memchr::memmem::find(text, key.as_bytes())? + key.len()..];
    let number = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let end = number.iter().position(|b| !(b.is_ascii_digit() || *b == b'.'))?;
    crate::num::secs_ns(&number[..end])
}

/// The file system under test is mounted on `/mnt/NAME`, which the recorded command names.
fn root(command: &str) -> Option<String> {
    let at = command.find("/mnt/")?;
    let name = command[at + 5..].split(|c: char| c == '/' || c.is_whitespace()).next()?;
    (!name.is_empty()).then(|| format!("/mnt/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"format": "capture-1", "kernel": "6.18", "device": "/dev/loop0", "dev": "7:0",
        "scheduler": "none", "queue": {"nr_requests": 256}, "memory_limit_bytes": 35651584, "cpus": 2,
        "start_realtime": 1796035855.328544662, "start_monotonic": 1425.516809, "lost_events": 3,
        "facts": {"command": "/lab/bin/wl clients /mnt/disk 5 rw ", "disk": {"capacity_bytes": 1024}}}"#;

    #[test]
    fn the_facts_come_out() {
        let r = Recording::parse(Path::new("run.json"), TEXT.as_bytes()).unwrap().unwrap();
        assert_eq!((r.machine.ram_kib, r.machine.cpus, r.dev), (Some(34_816), Some(2), Some(7 << 20)));
        assert_eq!(r.start_monotonic_ns, Some(1_425_516_809_000));
        assert_eq!(r.start_realtime_ns, Some(1_796_035_855_328_544_662));
        assert_eq!(r.root.as_deref(), Some("/mnt/disk"));
        assert_eq!(r.machine.devices[0].sectors, Some(2));
        assert_eq!(r.machine.facts["queue.nr_requests"], "256");
        assert_eq!(r.warnings, ["the recording has 3 lost_events"]);
    }

    #[test]
    fn without_a_limit_the_machines_memory_counts_and_what_is_missing_is_told() {
        let text =
            br#"{"format": "capture-1", "ram_bytes": 1048576, "swap_bytes": 2048, "dev": "8:0", "capacity_bytes": 512,
            "memory_limit_bytes": null, "mount": "/srv", "missing": ["block events: no rights"]}"#;
        let r = Recording::parse(Path::new("run.json"), text).unwrap().unwrap();
        assert_eq!(
            (r.machine.ram_kib, r.machine.swap_kib, r.machine.devices[0].sectors),
            (Some(1024), Some(2), Some(1))
        );
        assert_eq!((r.root.as_deref(), r.warnings.len()), (Some("/srv"), 1));
    }

    #[test]
    fn other_json_is_none_of_ours() {
        assert_eq!(Recording::parse(Path::new("x"), b"{\"kernel\": \"2.4.10\"}"), Ok(None));
        assert!(Recording::parse(Path::new("x"), b"{").is_err());
    }
}
