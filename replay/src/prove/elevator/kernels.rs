//! Which elevator, slot rule and habits each family of cases was recorded with.

use super::case::Case;
use crate::block::elevator;
use crate::block::qos::Qos;
use crate::block::queue::{Limits, Queue};
use crate::block::slots::Slots;
use crate::config::{
    AnticipatoryConfig, BfqConfig, Cfq26Config, CfqConfig, DeadlineConfig, ElevatorConfig, KyberConfig, PlugList,
    WakeRule,
};

/// A family of cases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    policy: &'static str,
    wake: WakeRule,
    refused_beside: bool,
    seek_cost: u32,
    plugging: bool,
    /// The queue is one list, and positions in it are recorded.
    pub(super) listed: bool,
    /// Requests are merged, and their members recorded.
    pub(super) merges: bool,
    /// A process waits for each of its requests (0.01).
    pub(super) waits_for_completion: bool,
    /// Distance between the starts of two drives in the recording's service times, sectors.
    pub(super) drive_sectors: u32,
    /// A process that waits for a slot runs `tq_disk` and so clears the pending unplug.
    pub(super) waiter_runs_tq_disk: bool,
}

const V24: Setup = Setup {
    policy: "linus-2.4",
    wake: WakeRule::PendingBatch,
    refused_beside: false,
    seek_cost: 1,
    plugging: true,
    listed: true,
    merges: true,
    waits_for_completion: false,
    drive_sectors: 0,
    waiter_runs_tq_disk: false,
};

/// By the case's `elevator`.
const FAMILIES: &[(&str, Setup)] = &[
    (
        "linux-0.01",
        Setup {
            policy: "linux-0.01",
            wake: WakeRule::SleepChain,
            plugging: false,
            merges: false,
            waits_for_completion: true,
            drive_sectors: 1_000_000,
            ..V24
        },
    ),
    ("linux-2.2.20", Setup { policy: "linux-2.2.20", wake: WakeRule::Table22, waiter_runs_tq_disk: true, ..V24 }),
    ("linus-2.4.10", V24),
    ("linus-2.4.17", Setup { wake: WakeRule::AllLifo, ..V24 }),
    ("linus-2.4.18", Setup { wake: WakeRule::AllLifo, refused_beside: true, ..V24 }),
    (
        "linus-2.4.20",
        Setup { policy: "linus-2.4.20", wake: WakeRule::OneFifo, refused_beside: true, seek_cost: 16, ..V24 },
    ),
    ("linus-2.4.23", Setup { policy: "linus-2.4.21", wake: WakeRule::Chain, refused_beside: true, ..V24 }),
    ("noop-2.4.10", Setup { policy: "noop-2.4", ..V24 }),
    ("noop-2.4.18", Setup { policy: "noop-2.4", wake: WakeRule::AllLifo, refused_beside: true, ..V24 }),
    ("rl1-2.4.17", Setup { policy: "read-latency", wake: WakeRule::AllLifo, ..V24 }),
    ("rl2-2.4.19", Setup { policy: "read-latency2", wake: WakeRule::OneFifo, refused_beside: true, ..V24 }),
    ("rl2-2.4.18rh", Setup { policy: "read-latency2-rh", wake: WakeRule::OneFifo, refused_beside: true, ..V24 }),
    ("rl2-2.4.32", Setup { policy: "read-latency2-2.4.32", wake: WakeRule::Chain, refused_beside: true, ..V24 }),
    ("mq-deadline-6.1", Setup { policy: "mq-deadline", wake: WakeRule::Tags, plugging: false, listed: false, ..V24 }),
];

/// Whether cases of this elevator can be run.
pub(super) fn known(elevator: &str) -> bool {
    FAMILIES.iter().any(|(name, _)| *name == elevator)
}

/// The family of a case.
pub(super) fn setup(case: &Case) -> Result<Setup, String> {
    FAMILIES
        .iter()
        .find(|(name, _)| *name == case.elevator)
        .map(|(_, setup)| *setup)
        .ok_or_else(|| format!("elevator \"{}\" is not known", case.elevator))
}

impl Setup {
    pub(super) fn queue(&self, case: &Case) -> Result<Queue, String> {
        let p = &case.params;
        let defaults = DeadlineConfig::default();
        let policy = if p.fixed { format!("{}-fixed", self.policy) } else { self.policy.to_owned() };
        let config = ElevatorConfig {
            policy,
            read_latency: p.read_latency,
            write_latency: p.write_latency,
            refused_beside: self.refused_beside,
            max_bomb_segments: p.max_bomb_segments,
            seek_cost: self.seek_cost,
            irq_during_sort: Vec::new(),
            sort_element_ns: 0,
            irq_after_head_load: Vec::new(),
            anticipatory: AnticipatoryConfig::default(),
            cfq: CfqConfig::default(),
            cfq_2_6: Cfq26Config::default(),
            bfq: BfqConfig::default(),
            kyber: KyberConfig::default(),
            deadline: DeadlineConfig {
                read_expire_ms: p.read_expire.unwrap_or(defaults.read_expire_ms),
                write_expire_ms: p.write_expire.unwrap_or(defaults.write_expire_ms),
                writes_starved: p.writes_starved.unwrap_or(defaults.writes_starved),
                fifo_batch: p.fifo_batch.unwrap_or(defaults.fifo_batch),
                front_merges: p.front_merges.map_or(defaults.front_merges, |f| f != 0),
                prio_aging_expire_ms: p.prio_aging_expire.unwrap_or(defaults.prio_aging_expire_ms),
                next_by_place: defaults.next_by_place,
                async_depth: defaults.async_depth,
                least_tags: defaults.least_tags,
            },
        };
        let limits = Limits {
            max_sectors: p.max_sectors,
            max_segments: p.max_segments,
            // 0.01 leaves the request in service listed, as the drivers with an active head do later.
            head_active: p.head_active != 0 || self.waits_for_completion,
            plugging: self.plugging,
            ahead: false,
            task_plugs: false,
            plug_list: PlugList::Stack,
            depth: p.depth,
            rotational: true,
        };
        let elevator = elevator::build(&config).map_err(|e| e.to_string())?;
        Ok(Queue::new(elevator, limits, p.nr_requests, Qos::default()))
    }

    pub(super) fn slots(&self, case: &Case) -> Slots {
        Slots::new(self.wake, case.params.nr_requests, case.params.batch)
    }
}
