//! A sink that counts what passes: calls by name, actions by letter, tasks, devices, the time span.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use kreplay_traces::event::{
    BlockRow, CounterRow, EventSink, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow,
};
use rustc_hash::FxBuildHasher;
use serde_json::{Value, json};

/// Tasks that are listed one by one; a log with more says how many.
const LISTED_TASKS: usize = 1000;

/// What a log holds, in numbers.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Rows by table.
    pub rows: BTreeMap<&'static str, u64>,
    calls: HashMap<String, u64, FxBuildHasher>,
    actions: HashMap<String, u64, FxBuildHasher>,
    tasks: HashMap<i64, Task, FxBuildHasher>,
    devices: HashMap<i64, u64, FxBuildHasher>,
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

    /// Rows of a table.
    pub fn count(&self, table: &str) -> u64 {
        self.rows.get(table).copied().unwrap_or(0)
    }

    /// As JSON: `rows`, `span_ns`, `duration_ns`, `calls`, `actions`, `devices`, `processes`, ...
    pub fn to_json(&self) -> Value {
        let devices: Vec<Value> = self
            .devices()
            .into_iter()
            .map(|(dev, rows)| json!({"device": device_name(dev), "dev": dev, "rows": rows}))
            .collect();
        let processes: Vec<Value> = self
            .tasks()
            .into_iter()
            .take(LISTED_TASKS)
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
            "processes": processes,
            "process_count": self.tasks.len(),
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
        let task = self.tasks.entry(id).or_default();
        task.rows += 1;
        if let Some(comm) = comm.filter(|c| task.comm.as_deref() != Some(c)) {
            task.comm = Some(comm.to_owned());
        }
    }
}

/// `major:minor`.
pub fn device_name(dev: i64) -> String {
    format!("{}:{}", dev >> 20, dev & 0xf_ffff)
}

fn add(counts: &mut HashMap<String, u64, FxBuildHasher>, key: &str) {
    match counts.get_mut(key) {
        Some(n) => *n += 1,
        None => {
            counts.insert(key.to_owned(), 1);
        }
    }
}

impl EventSink for Survey {
    fn syscall(&mut self, r: &SyscallRow<'_>) {
        self.row("syscall", Some(r.time_ns));
        self.task(r.tid, None);
        add(&mut self.calls, r.call);
        self.failed_calls += u64::from(r.errno.is_some());
        self.unfinished_calls += u64::from(r.unfinished);
    }

    fn block(&mut self, r: &BlockRow<'_>) {
        self.row("block", Some(r.time_ns));
        if let Some(pid) = r.pid {
            // An interrupt completes in whatever process runs.
            self.task(pid, r.comm);
        }
        add(&mut self.actions, r.action);
        *self.devices.entry(r.dev).or_default() += 1;
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
        if let Some(comm) = r.comm {
            self.tasks.entry(r.tid).or_default().comm = Some(comm.to_owned());
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
