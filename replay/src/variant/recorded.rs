//! The device as recorded: a replay asks what another kernel would have done on the *same* disk, so where a recording
//! says what disk it had, that takes the place of the variant's own.

use super::file::{Evidence, Reason};
use super::resolve::{Choice, Variant};
use crate::config::DeviceConfig;
use std::collections::BTreeMap;

/// Prefix of the facts that describe a recording's disk model (units in the names, as our recording helper writes them).
const PREFIX: &str = "facts.disk.";

/// The rotating disk that a recording's facts describe; `None` unless all of its parameters are there.
pub fn recorded_device(facts: &BTreeMap<String, String>) -> Option<DeviceConfig> {
    let number = |key: &str| facts.get(&format!("{PREFIX}{key}"))?.parse::<f64>().ok().filter(|v| *v >= 0.0);
    let micros = |key: &str| Some((number(key)? * 1000.0).round() as u64);
    Some(DeviceConfig::Rotating {
        overhead_us: micros("overhead_ms")?,
        seek_min_us: micros("seek_min_ms")?,
        seek_span_us: micros("seek_span_ms")?,
        stroke_bytes: number("capacity_bytes").filter(|b| *b >= 1.0)? as u64,
        rotation_us: micros("rot_ms")?,
        rate_bytes_s: (number("rate_mb_s").filter(|r| *r > 0.0)? * 1e6) as u64,
        skip_gap_bytes: number("skip_gap_bytes")? as u64,
        skip_gap_costs: true,
        skip_same_direction: false,
        queue_depth: facts.get("facts.device_queue_depth")?.parse().ok().filter(|d| (1..=1024).contains(d))?,
        shared_channel: false,
    })
}

impl Variant {
    /// Whether the command line chose a device for this variant.
    pub fn has_chosen_device(&self) -> bool {
        self.changes.iter().any(|c| {
            let layer_sets_device = self.choices.iter().any(|k| k.key.starts_with("device.") && k.from == *c);
            layer_sets_device || c.starts_with("device.")
        })
    }

    /// Put the device of the recording under this variant.
    pub fn adopt_device(&mut self, device: &DeviceConfig) {
        self.config.device = device.clone();
        self.choices.retain(|c| !c.key.starts_with("device."));
        let value = toml::Value::try_from(device).expect("a device has only plain values");
        let reason = Reason { evidence: Evidence::Measured, note: "the disk that the recording ran on".into() };
        for (key, value) in value.as_table().into_iter().flatten() {
            self.choices.push(Choice {
                key: format!("device.{key}"),
                value: value.clone(),
                from: "the recording".into(),
                line: None,
                reason: Some(reason.clone()),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::Library;

    fn facts() -> BTreeMap<String, String> {
        [
            ("facts.disk.overhead_ms", "0.1"),
            ("facts.disk.seek_min_ms", "1"),
            ("facts.disk.seek_span_ms", "9"),
            ("facts.disk.capacity_bytes", "2147483648"),
            ("facts.disk.rot_ms", "4.17"),
            ("facts.disk.rate_mb_s", "20"),
            ("facts.disk.skip_gap_bytes", "131072"),
            ("facts.device_queue_depth", "4"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into()
    }

    #[test]
    fn the_bundled_recordings_disk_is_the_slowdisk_profile() {
        let mut library = Library::builtin().unwrap();
        let v = library.select(&["linux-2.4.16+slowdisk".into()], &[], &[]).unwrap();
        assert_eq!(recorded_device(&facts()), Some(v[0].config.device.clone()));
        assert!(v[0].has_chosen_device());
    }

    #[test]
    fn a_missing_or_impossible_fact_leaves_the_variants_disk() {
        for key in facts().keys() {
            let mut f = facts();
            f.remove(key);
            assert_eq!(recorded_device(&f), None, "{key}");
        }
        let mut f = facts();
        f.insert("facts.disk.rate_mb_s".into(), "0".into());
        assert_eq!(recorded_device(&f), None);
    }

    #[test]
    fn adopting_changes_the_configuration_and_says_so() {
        let mut v = Library::builtin().unwrap().select(&["linux-2.4.16".into()], &[], &[]).unwrap().remove(0);
        assert!(!v.has_chosen_device());
        let (name, hash) = (v.name.clone(), v.config_hash());
        v.adopt_device(&recorded_device(&facts()).unwrap());
        assert_eq!(v.name, name);
        assert_ne!(v.config_hash(), hash);
        assert!(v.choices.iter().filter(|c| c.key.starts_with("device.")).all(|c| c.from == "the recording"));
    }
}
