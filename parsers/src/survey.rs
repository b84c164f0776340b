//! A sink that counts what passes: calls by name, actions by letter, tasks, devices, the time span.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use kreplay_traces::event::{
    BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow,
};
use rustc_hash::FxBuildHasher;
use serde_json::{Value, json};

/// Tasks, and devices, that are listed one by one; a log with more says how many.
const LISTED: usize = 1000;
/// Different values of a kind that are told apart; what has another one after that is counted together.
pub const MAX_DISTINCT: usize = 1 << 16;

/// Longest name of a call or action that is counted by itself, bytes.
const MAX_NAME_BYTES: usize = 256;
/// Characters of a process name that are kept.
const MAX_NAME_CHARS: usize = 64;

/// What a log holds, in numbers.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Rows by table.
    pub rows: BTreeMap<&'static str, u64>,
    calls: HashMap<String, u64, FxBuildHasher>,
    actions: HashMap<String, u64, FxBuildHasher>,
    tasks: HashMap<i64, Task, FxBuildHasher>,
    devices: HashMap<i64, u64, FxBuildHasher>,
    /// Rows with a value after the first [`MAX_DISTINCT`], by the kind of value.
    others: BTreeMap<&'static str, u64>,
    /// First and last time, nanoseconds in the log's own clock.
    pub span_ns: Option<(i64, i64)>,
    /// Calls that failed.
    pub failed_calls: u64,
    /// Calls that were never seen to return.
    pub unfinished_calls: u64,
    /// vmstat runs.
    pub runs: i64,
}

#[derive(Clone, Debug, Default)]
struct Task {
    rows: u64,
    comm: Option<String>,
}

impl Survey {
    /// System calls by name.
    pub fn calls(&self) -> BTreeMap<&str, u64> {
        self.calls.iter().map(|(name, n)| (name.as_str(), *n)).collect()
    }

    /// Block events by action letter.
    pub fn actions(&self) -> BTreeMap<&str, u64> {
        self.actions.iter().map(|(name, n)| (name.as_str(), *n)).collect()
    }

    /// Block events by device (`major << 20 | minor`).
    pub fn devices(&self) -> BTreeMap<i64, u64> {
        self.devices.iter().map(|(dev, n)| (*dev, *n)).collect()
    }

    /// Threads and processes: rows and name.
    pub fn tasks(&self) -> BTreeMap<i64, (u64, Option<&str>)> {
        self.tasks.iter().map(|(tid, t)| (*tid, (t.rows, t.comm.as_deref()))).collect()
    }

    /// Rows whose value is none of the first [`MAX_DISTINCT`] of its kind (`calls`, `devices`, `processes`): they are
    /// counted, but not by value. Empty for nearly every log.
    pub fn others(&self) -> &BTreeMap<&'static str, u64> {
        &self.others
    }

    /// The same in words.
    pub fn remarks(&self) -> Vec<String> {
        let sentence = |(kind, rows): (&&str, &u64)| {
            format!("more than {MAX_DISTINCT} different {kind}: {rows} rows of the others are counted together")
        };
        self.others.iter().map(sentence).collect()
    }

    /// Rows of a table.
    pub fn count(&self, table: &str) -> u64 {
        self.rows.get(table).copied().unwrap_or(0)
    }

    /// As JSON: `rows`, `span_ns`, `duration_ns`, `calls`, `actions`, `devices`, `processes`, ...
    pub fn to_json(&self) -> Value {
        let devices: Vec<Value> = self
            .devices()
            .into_iter()
            .take(LISTED)
            .map(|(dev, rows)| json!({"device": device_name(dev), "dev": dev, "rows": rows}))
            .collect();
        let processes: Vec<Value> = self
            .tasks()
            .into_iter()
            .take(LISTED)
            .map(|(id, (rows, comm))| json!({"id": id, "comm": comm, "rows": rows}))
            .collect();
        json!({
            "rows": self.rows,
            "span_ns": self.span_ns.map(|(first, last)| [first, last]),
            "duration_ns": self.span_ns.map(|(first, last)| last.saturating_sub(first)),
            "calls": self.calls(),
            "failed_calls": self.failed_calls,
            "unfinished_calls": self.unfinished_calls,
            "actions": self.actions(),
            "devices": devices,
            "device_count": self.devices.len(),
            "processes": processes,
            "process_count": self.tasks.len(),
            "others": self.others,
            "vmstat_runs": self.runs,
        })
    }

    fn row(&mut self, table: &'static str, time_ns: Option<i64>) {
        *self.rows.entry(table).or_default() += 1;
        if let Some(t) = time_ns {
            self.span_ns = Some(self.span_ns.map_or((t, t), |(first, last)| (first.min(t), last.max(t))));
        }
    }

    fn task(&mut self, id: i64, comm: Option<&str>) {
        if let Some(task) = entry(&mut self.tasks, id, "processes", &mut self.others) {
            task.rows += 1;
            task.name(comm);
        }
    }
}

impl Task {
    fn name(&mut self, comm: Option<&str>) {
        if let Some(comm) = comm.filter(|c| self.comm.as_deref() != Some(c)) {
            self.comm = Some(comm.chars().take(MAX_NAME_CHARS).collect());
        }
    }
}

/// The value of a key that is known, or for which there is room; else a row of the others.
fn entry<'a, V: Default>(
    map: &'a mut HashMap<i64, V, FxBuildHasher>,
    key: i64,
    kind: &'static str,
    others: &mut BTreeMap<&'static str, u64>,
) -> Option<&'a mut V> {
    if map.len() < MAX_DISTINCT || map.contains_key(&key) {
        return Some(map.entry(key).or_default());
    }
    *others.entry(kind).or_default() += 1;
    None
}

/// `major:minor`.
pub fn device_name(dev: i64) -> String {
    format!("{}:{}", dev >> 20, dev & 0xf_ffff)
}

fn add(
    counts: &mut HashMap<String, u64, FxBuildHasher>,
    key: &str,
    kind: &'static str,
    others: &mut BTreeMap<&'static str, u64>,
) {
    let full = counts.len() >= MAX_DISTINCT;
    match counts.get_mut(key) {
        Some(n) => *n += 1,
        None if full || key.len() > MAX_NAME_BYTES => *others.entry(kind).or_default() += 1,
        None => {
            counts.insert(key.to_owned(), 1);
        }
    }
}

impl EventSink for Survey {
    fn syscall(&mut self, r: &SyscallRow<'_>) {
        self.row("syscall", Some(r.time_ns));
        self.task(r.tid, None);
        add(&mut self.calls, r.call, "calls", &mut self.others);
        self.failed_calls += u64::from(r.errno.is_some());
        self.unfinished_calls += u64::from(r.unfinished);
    }

    fn block(&mut self, r: &BlockRow<'_>) {
        self.row("block", Some(r.time_ns));
        if let Some(pid) = r.pid {
            // An interrupt completes in whatever process runs.
            self.task(pid, r.comm);
        }
        add(&mut self.actions, r.action, "actions", &mut self.others);
        if let Some(dev) = r.dev
            && let Some(rows) = entry(&mut self.devices, dev, "devices", &mut self.others)
        {
            *rows += 1;
        }
    }

    fn vmstat(&mut self, r: &VmstatRow) {
        self.row("vmstat", r.time_ns);
        self.runs = self.runs.max(r.run + 1);
    }

    fn fault(&mut self, r: &FaultRow) {
        self.row("fault", Some(r.time_ns));
        self.task(r.tid, None);
    }

    fn process(&mut self, r: &ProcessRow<'_>) {
        self.row("process", None);
        if r.comm.is_some()
            && let Some(task) = entry(&mut self.tasks, r.tid, "processes", &mut self.others)
        {
            task.name(r.comm);
        }
    }

    fn file(&mut self, _: &FileRow<'_>) {
        self.row("file", None);
    }

    fn counter(&mut self, _: &CounterRow<'_>) {
        self.row("counter", None);
    }

    fn reject(&mut self, _: &RejectRow<'_>) {
        self.row("reject", None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_values_than_are_told_apart_are_counted_together() {
        let mut survey = Survey::default();
        let n = MAX_DISTINCT as i64 + 5;
        for i in 0..n {
            let (call, comm) = (format!("call{i}"), format!("c{i}"));
            survey.syscall(&SyscallRow { tid: i, call: &call, ..SyscallRow::default() });
            survey.block(&BlockRow {
                dev: Some(i),
                pid: Some(i),
                comm: Some(&comm),
                action: "Q",
                ..BlockRow::default()
            });
        }
        let others = BTreeMap::from([("calls", 5), ("devices", 5), ("processes", 10)]);
        assert_eq!(*survey.others(), others);
        assert_eq!((survey.count("syscall"), survey.count("block")), (n as u64, n as u64));
        assert_eq!(survey.devices().values().sum::<u64>() + 5, n as u64);
        let json = survey.to_json();
        assert_eq!(
            (json["devices"].as_array().map(Vec::len), &json["device_count"]),
            (Some(LISTED), &json!(MAX_DISTINCT))
        );
        assert_eq!(json["others"]["calls"], 5);
        assert!(survey.remarks()[1].starts_with("more than 65536 different devices: 5 rows"), "{:?}", survey.remarks());
    }

    #[test]
    fn rows_are_counted_by_what_they_are() {
        let text = b"7 1700000001.5 close(3) = 0\n8 1700000002.5 close(9) = -1 EBADF (Bad file descriptor)\n8 1700000003.5 read(0, \n";
        let mut survey = Survey::default();
        let mut diag = crate::Diagnostics::new();
        let mut parser = crate::by_id("strace").unwrap().parser(&crate::ParseOptions::default());
        crate::format::Parser::feed(&mut *parser, text, &mut survey, &mut diag);
        crate::format::Parser::finish(&mut *parser, &mut survey, &mut diag);
        assert_eq!(survey.calls(), BTreeMap::from([("close", 2)]));
        assert_eq!((survey.failed_calls, survey.count("reject"), survey.count("syscall")), (1, 1, 2));
        let json = survey.to_json();
        assert_eq!(json["process_count"], 2);
        assert_eq!(json["duration_ns"], 1_000_000_000i64);
    }
}
