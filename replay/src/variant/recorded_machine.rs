//! The machine as recorded: memory, limits, scheduler and queue settings of a recording as the profile `recorded`, so that a
//! replay can begin at what was recorded and change one thing.
//!
//! The profile is made of what `run.json` says (`kreplay record` and our capture scripts write it) and is laid like any
//! other: sweeps and `+key=value` go on top. Settings that only kernels of today have are laid only over such kernels, and
//! the scheduler with its settings gives way to a variant that chooses one itself.

use super::error::VariantError;
use super::file::VariantFile;
use super::library::Library;
use kreplay_traces::store::MachineInfo;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Name of the profile.
pub const RECORDED: &str = "recorded";
/// Memory taken where only the load's limit is known, KiB: enough for the limit to be what counts.
const AMPLE_RAM_KIB: u64 = 4 << 20;
/// Schedulers of today that a recording may name.
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "bfq", "kyber"];

/// A fact and the key that it sets: the fact's number, times and divided by.
type Rule = (&'static str, &'static str, u64, u64);

const SETTINGS: [Rule; 8] = [
    ("vm.dirty_expire_centisecs", "writeback.expire-ms", 10, 1),
    ("vm.dirty_writeback_centisecs", "writeback.interval-ms", 10, 1),
    ("vm.swappiness", "reclaim.workingset.swappiness", 1, 1),
    ("vm.page-cluster", "swap.page-cluster", 1, 1),
    ("vm.dirty_ratio", "writeback.balanced.dirty-pct", 1, 1),
    ("vm.dirty_background_ratio", "writeback.balanced.background-pct", 1, 1),
    ("queue.read_ahead_kb", "readahead.on-demand.window-kib", 1, 1),
    ("queue.max_sectors_kb", "readahead.on-demand.io-kib", 1, 1),
];
const AMOUNTS: [Rule; 2] = [
    ("vm.dirty_bytes", "writeback.balanced.dirty-kib", 1, 1024),
    ("vm.dirty_background_bytes", "writeback.balanced.background-kib", 1, 1024),
];
const QUEUE: [Rule; 3] = [
    ("queue.max_sectors_kb", "queue.max-sectors", 2, 1),
    ("queue.max_segments", "queue.max-segments", 1, 1),
    ("queue.wbt_lat_usec", "queue.wbt.min-lat-us", 1, 1),
];
/// Tunables by scheduler, with the names of its sysfs files.
const TUNABLES: [(&str, &[Rule]); 3] = [
    (
        "mq-deadline",
        &[
            ("read_expire", "elevator.deadline.read-expire-ms", 1, 1),
            ("write_expire", "elevator.deadline.write-expire-ms", 1, 1),
            ("prio_aging_expire", "elevator.deadline.prio-aging-expire-ms", 1, 1),
            ("fifo_batch", "elevator.deadline.fifo-batch", 1, 1),
            ("writes_starved", "elevator.deadline.writes-starved", 1, 1),
            ("front_merges", "elevator.deadline.front-merges", 1, 1),
        ],
    ),
    (
        "bfq",
        &[
            ("fifo_expire_async", "elevator.bfq.fifo-expire-async-ms", 1, 1),
            ("fifo_expire_sync", "elevator.bfq.fifo-expire-sync-ms", 1, 1),
            ("back_seek_max", "elevator.bfq.back-seek-max-kib", 1, 1),
            ("back_seek_penalty", "elevator.bfq.back-seek-penalty", 1, 1),
            ("slice_idle", "elevator.bfq.slice-idle-ms", 1, 1),
            ("timeout_sync", "elevator.bfq.timeout-sync-ms", 1, 1),
            ("max_budget", "elevator.bfq.max-budget", 1, 1),
            ("low_latency", "elevator.bfq.low-latency", 1, 1),
        ],
    ),
    (
        "kyber",
        &[
            ("read_lat_nsec", "elevator.kyber.read-lat-us", 1, 1000),
            ("write_lat_nsec", "elevator.kyber.write-lat-us", 1, 1000),
        ],
    ),
];

/// Whether a recording says what machine it was made on.
pub fn names_machine(m: &MachineInfo) -> bool {
    m.ram_kib.is_some() || scheduler(m).is_some() || m.facts.keys().any(|k| k.starts_with("vm."))
}

/// Selectors of what a recording of a kernel of today is compared with where nobody says: that kernel as it was recorded,
/// and under the other schedulers. Empty for other kernels.
pub fn recorded_defaults(m: &MachineInfo, library: &Library) -> Vec<String> {
    let Some(wanted) = m.kernel.as_deref().and_then(version).filter(|v| v.0 >= 4) else { return Vec::new() };
    let modern = library.list().filter(|s| !s.profile).filter_map(|s| {
        let v = version(s.name.strip_prefix("linux-")?)?;
        (v.0 >= 4 && s.name == format!("linux-{}.{}", v.0, v.1)).then_some((v, s.name))
    });
    // The newest one that is not newer; for older kernels the oldest.
    let mut known: Vec<_> = modern.collect();
    known.sort();
    let Some((_, kernel)) = known.iter().rev().find(|(v, _)| *v <= wanted).or_else(|| known.first()) else {
        return Vec::new();
    };
    // 0x1 is the switch; the other bits are details.
    let generations = m.facts.get("lru_gen").and_then(|v| u32::from_str_radix(v.trim_start_matches("0x"), 16).ok());
    let lists = if generations.is_some_and(|bits| bits & 1 == 1) { "-mglru" } else { "" };
    let recorded = scheduler(m);
    let mut all = vec![format!("{kernel}{lists}+{RECORDED}")];
    for other in SCHEDULERS.into_iter().filter(|s| recorded.is_some_and(|r| r != *s)) {
        all.push(format!("{kernel}{lists}+{RECORDED}+elevator.policy={other}"));
    }
    all
}

/// "6.18.44-fc" as (6, 18).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn scheduler(m: &MachineInfo) -> Option<&str> {
    let named = m.devices.iter().filter(|d| !d.swap).find_map(|d| d.scheduler.as_deref())?;
    SCHEDULERS.into_iter().find(|s| *s == named)
}

/// I/O priorities of a recorded load and of the kernel's threads beside it, as `queue.priorities` takes them.
///
/// A process that asks for none has the class of its processor scheduling policy and the level of its nice value
/// (`__get_task_ioprio` of 6.18; the recordings made with ftrace show it at each request): the load ran with the nice value
/// that the recording names, or under a real-time policy together with the kernel's workers (nice -10); ext4 asks for best
/// effort, 3, for its journal, and its lazy initialisation has no say.
pub(crate) fn priorities_of(real_time: bool, nice: i64) -> String {
    let (workers, load) = if real_time {
        ("rt:2".to_owned(), "rt:4".to_owned())
    } else {
        ("be:4".to_owned(), format!("be:{}", (nice.clamp(-20, 19) + 20) / 5))
    };
    format!("jbd2/*=be:3 ext4lazyinit=be:4 kworker/*={workers} *={load}")
}

impl Library {
    /// Adds the profile `recorded`: the machine that a recording describes. Without one it is a stand-in that changes nothing,
    /// with which a command line can be checked before any recording has been read.
    ///
    /// # Errors
    /// If one of the recorded values cannot be a setting's, which names the fact.
    pub fn add_recorded(&mut self, machine: Option<&MachineInfo>) -> Result<(), VariantError> {
        let files = machine.map_or_else(|| vec![header(RECORDED, "the recorded machine")], files);
        for text in files {
            self.add(VariantFile::parse("the recording's run.json", &text)?)?;
        }
        Ok(())
    }
}

fn header(name: &str, about: &str) -> String {
    format!("name = {name:?}\nabout = {}\nprofile = true\n", toml::Value::from(about))
}

/// A file under way.
#[derive(Default)]
struct Keys {
    /// "section" to keys and values, in order.
    sections: BTreeMap<String, Vec<(String, String)>>,
    /// Keys that the recording does not tell, with what is assumed.
    assumed: Vec<(&'static str, &'static str)>,
}

impl Keys {
    fn set(&mut self, key: &str, value: impl Into<toml::Value>) {
        let (table, leaf) = key.rsplit_once('.').unwrap_or((key, ""));
        self.sections.entry(table.to_owned()).or_default().push((leaf.to_owned(), value.into().to_string()));
    }

    fn rules(&mut self, rules: &[Rule], prefix: &str, facts: &BTreeMap<String, String>) {
        for (fact, key, times, by) in rules {
            let Some(number) = facts.get(&format!("{prefix}{fact}")).and_then(|v| v.parse::<u64>().ok()) else {
                continue;
            };
            if key.ends_with("front-merges") || key.ends_with("low-latency") {
                self.set(key, number != 0);
            } else if let Ok(n) = i64::try_from(number.saturating_mul(*times) / by) {
                self.set(key, n);
            }
        }
    }

    fn text(&self, header: &str) -> String {
        let mut text = header.to_owned();
        for (table, lines) in &self.sections {
            let _ = writeln!(text, "[{table}]");
            for (key, value) in lines {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        let sections: Vec<&String> = self.sections.keys().collect();
        if !sections.is_empty() {
            text.push_str("[evidence]\n");
        }
        for section in sections {
            let _ = writeln!(text, "{section:?} = \"measured: as the recording says\"");
        }
        for (key, why) in &self.assumed {
            let _ = writeln!(text, "{key:?} = \"inferred: {why}\"");
        }
        text
    }
}

fn files(m: &MachineInfo) -> Vec<String> {
    let facts = &m.facts;
    let number = |key: &str| facts.get(key).and_then(|v| v.parse::<u64>().ok());
    let mut about: Vec<String> = Vec::new();
    let limit_kib = number("memory_limit_bytes").map(|b| b / 1024);
    let real_time = number("facts.keys.rt").is_some_and(|n| n > 0);

    let mut machine = Keys::default();
    if let Some(kib) = m.ram_kib {
        machine.set("machine.ram", format!("{kib}KiB"));
        about.push(format!("{} of memory{}", size(kib), if limit_kib.is_some() { " for the load" } else { "" }));
    }
    if let Some(kib) = m.swap_kib {
        machine.set("machine.swap", format!("{kib}KiB"));
        about.push(if kib == 0 { "no swap".to_owned() } else { format!("{} of swap", size(kib)) });
    }
    if let Some(cpus) = m.cpus {
        machine.set("machine.cpus", i64::from(cpus));
        about.push(format!("{cpus} processor{}", if cpus == 1 { "" } else { "s" }));
    }

    let mut settings = Keys::default();
    if let Some(kib) = limit_kib {
        let ram = number("ram_bytes").map_or(AMPLE_RAM_KIB.max(kib * 2), |b| b / 1024);
        settings.set("machine.ram", format!("{ram}KiB"));
        if number("ram_bytes").is_none() {
            settings.assumed.push(("machine.ram", "not recorded; so much that the load's limit is what counts"));
        }
        settings.set("machine.memory-limit", format!("{kib}KiB"));
        if number("memory_cgroup") == Some(1) {
            settings.set("reclaim.workingset.wait-writeback", true);
        }
    }
    // Programs and libraries come from another disk than the one that was recorded.
    settings.set("machine.cache", "elsewhere");
    settings.assumed.push(("machine.cache", "not recorded; what lies on other disks was not read from this one"));
    settings.rules(&SETTINGS, "", facts);
    settings.rules(&AMOUNTS, "", facts);
    if real_time {
        settings.set("writeback.balanced.real-time", true);
    }
    if number("bdi.strict_limit") == Some(1)
        && let Some(kib) = number("bdi.max_bytes").map(|b| b / 1024).filter(|k| *k > 0)
    {
        settings.set("writeback.balanced.device-limit-kib", i64::try_from(kib).unwrap_or(i64::MAX));
        about.push(format!("at most {} of dirty pages on the disk", size(kib)));
    }

    let mut queue = Keys::default();
    queue.rules(&QUEUE, "", facts);
    if let Some(nice) = facts.get("facts.keys.nice").and_then(|v| v.parse().ok()) {
        queue.set("queue.priorities", priorities_of(real_time, nice));
    }

    let driver = m.devices.iter().filter(|d| !d.swap).find_map(|d| d.name.as_deref());
    if driver.is_some_and(|n| ["loop", "nvme", "vd"].iter().any(|p| n.starts_with(p))) {
        queue.set("queue.wbt.driver-depth", false);
    }

    let mut elevator = Keys::default();
    let recorded = scheduler(m);
    if let Some(name) = recorded {
        about.push(format!("I/O scheduler {name}"));
        elevator.set("elevator.policy", name);
        // Without a scheduler the file shows the tags that the device was made with, of which it may have fewer by now.
        if let Some(n) = number("queue.nr_requests").and_then(|n| i64::try_from(n).ok()) {
            elevator.set(if name == "none" { "queue.wbt.requests" } else { "queue.slots" }, n);
        }
        for (_, rules) in TUNABLES.iter().filter(|(s, _)| *s == name) {
            elevator.rules(rules, "queue.iosched/", facts);
        }
    }

    let part = |name: &str, condition: &str, keys: &Keys| {
        let about = "a part of the recorded machine";
        keys.text(&format!("{}{condition}", header(&format!("{RECORDED}-{name}"), about)))
    };
    let today = "where = { \"writeback.policy\" = \"balanced\" }\n";
    let tags = "where = { \"queue.wake\" = \"tags\" }\n";
    let group = format!("{tags}yields = [\"elevator.policy\", \"queue.slots\"]\n");
    let top = format!("the recorded machine: {}", about.join(", "));
    let parts = ["memory", "settings", "queue", "scheduler"].map(|p| format!("\"{RECORDED}-{p}\"")).join(", ");
    vec![
        part("memory", "", &machine),
        part("settings", today, &settings),
        part("queue", tags, &queue),
        part("scheduler", &group, &elevator),
        format!("{}extends = [{parts}]\n", header(RECORDED, &top)),
    ]
}

fn size(kib: u64) -> String {
    if kib >= 10 << 10 { format!("{} MiB", (kib + 512) >> 10) } else { format!("{kib} KiB") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::Variant;
    use kreplay_traces::store::DeviceSpec;

    fn machine(scheduler: &str) -> MachineInfo {
        let facts = [
            ("memory_limit_bytes", "33554432"),
            ("vm.dirty_ratio", "15"),
            ("vm.dirty_bytes", "0"),
            ("vm.dirty_expire_centisecs", "3000"),
            ("bdi.max_bytes", "6672368"),
            ("bdi.strict_limit", "1"),
            ("queue.nr_requests", "64"),
            ("queue.read_ahead_kb", "256"),
            ("queue.max_sectors_kb", "512"),
            ("queue.iosched/fifo_batch", "4"),
            ("queue.iosched/front_merges", "0"),
        ];
        MachineInfo {
            ram_kib: Some(32 << 10),
            cpus: Some(2),
            kernel: Some("6.18.44-x".into()),
            devices: vec![DeviceSpec { scheduler: Some(scheduler.into()), ..DeviceSpec::default() }],
            facts: facts.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ..MachineInfo::default()
        }
    }

    fn select(m: &MachineInfo, pattern: &str) -> Variant {
        let mut library = Library::builtin().unwrap();
        library.add_recorded(Some(m)).unwrap();
        library.select(&[pattern.to_owned()], &[], &[]).unwrap().remove(0)
    }

    #[test]
    fn a_kernel_of_today_gets_the_recorded_limits_scheduler_and_queue() {
        let v = select(&machine("mq-deadline"), "linux-6.18+recorded");
        let c = &v.config;
        assert_eq!((c.machine.memory_limit, c.machine.ram, c.machine.cpus), (32 << 10, 4 << 20, 2));
        let b = &c.writeback.balanced;
        assert_eq!((b.dirty_pct, b.dirty_kib, b.device_limit_kib), (15, 0, 6515));
        assert_eq!((c.readahead.on_demand.window_kib, c.queue.max_sectors, c.queue.slots), (256, 1024, 64));
        assert_eq!((c.elevator.deadline.fifo_batch, c.elevator.deadline.front_merges), (4, false));
        assert_eq!(
            v.parts[1].about,
            "the recorded machine: 32 MiB of memory for the load, 2 processors, at most 6515 KiB of dirty pages on the disk, \
             I/O scheduler mq-deadline"
        );
    }

    #[test]
    fn a_scheduler_that_the_variant_or_the_command_line_chooses_stays_with_its_own_queue() {
        let none = machine("none");
        assert_eq!(select(&none, "linux-6.18+recorded").config.elevator.policy, "none");
        for (pattern, policy) in
            [("linux-6.18-bfq+recorded", "bfq"), ("linux-6.18+recorded+elevator.policy=mq-deadline", "mq-deadline")]
        {
            let c = select(&none, pattern).config;
            assert_eq!((c.elevator.policy.as_str(), c.queue.slots, c.queue.max_sectors), (policy, 256, 1024));
        }
        let c = select(&machine("mq-deadline"), "linux-6.18-kyber+recorded").config;
        assert_eq!((c.elevator.policy.as_str(), c.queue.slots), ("kyber", 256));
    }

    #[test]
    fn an_old_kernel_gets_memory_and_processors_alone() {
        let plain = select(&machine("bfq"), "linux-2.4.16").config;
        let c = select(&machine("bfq"), "linux-2.4.16+recorded").config;
        assert_eq!((c.machine.ram, c.machine.memory_limit, c.machine.cpus), (32 << 10, 0, 2));
        assert_eq!((c.writeback, c.queue, c.elevator), (plain.writeback, plain.queue, plain.elevator));
    }

    #[test]
    fn what_is_set_by_hand_goes_on_top() {
        let c = select(&machine("none"), "linux-6.18+recorded+machine.memory-limit=64MiB").config;
        assert_eq!(c.machine.memory_limit, 64 << 10);
    }

    #[test]
    fn the_recorded_kernel_and_the_other_schedulers_are_what_is_compared_by_default() {
        let library = Library::builtin().unwrap();
        let all = |kernel: &str, scheduler: &str, lru: &str| {
            let mut m = machine(scheduler);
            m.kernel = Some(kernel.into());
            m.facts.insert("lru_gen".into(), lru.into());
            recorded_defaults(&m, &library)
        };
        assert_eq!(
            all("6.18.44-x", "none", "0x0000"),
            [
                "linux-6.18+recorded",
                "linux-6.18+recorded+elevator.policy=mq-deadline",
                "linux-6.18+recorded+elevator.policy=bfq",
                "linux-6.18+recorded+elevator.policy=kyber",
            ]
        );
        assert_eq!(all("6.14.0", "bfq", "0x0007")[0], "linux-6.12-mglru+recorded");
        assert_eq!(all("7.2", "bfq", "0")[0], "linux-6.18+recorded");
        assert_eq!(all("5.10.1", "bfq", "0")[0], "linux-6.1+recorded");
        assert!(all("2.4.18", "none", "0").is_empty());
    }

    #[test]
    fn a_stand_in_changes_nothing_and_a_bad_value_names_its_key() {
        let mut library = Library::builtin().unwrap();
        library.add_recorded(None).unwrap();
        let found = library.select(&["linux-6.18".into(), "linux-6.18+recorded".into()], &[], &[]).unwrap();
        assert_eq!(found[0].config, found[1].config);
        let mut m = machine("none");
        m.facts.insert("vm.swappiness".into(), "99999999999".into());
        let mut library = Library::builtin().unwrap();
        let e = library.add_recorded(Some(&m)).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(e.contains("swappiness"), "{e}");
        assert!(!names_machine(&MachineInfo::default()) && names_machine(&m));
    }
}
