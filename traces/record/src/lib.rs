//! Records a load for a replay: system calls (strace), block events, vmstat, where its files lie, and what a model needs to
//! know of the machine. The folder that comes out is what `ingest` and `run` read.
//!
//! | file | what | clock |
//! |---|---|---|
//! | `strace.log` | `strace -f -ttt -T -y -s 0` | wall clock |
//! | `blktrace.txt` | block events in blkparse's columns, by the `blk` tracer | monotonic |
//! | `block.ftrace.txt` | instead of it, `block_*` events, where the tracer is taken | monotonic |
//! | `vmstat.log` | `vmstat -t -w` | wall clock |
//! | `layout.txt`, `layout.after.txt` | extents of the files there were before, and of those that came | - |
//! | `run.json` | machine, kernel, settings, both clocks at the start, what is missing and why | - |

mod block;
mod device;
mod error;
mod layout;
mod load;
mod machine;
mod tracefs;
mod vmstat;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

pub use block::BlockSource;
use block::{BlockCount, BlockRecorder};
pub use device::Device;
pub use error::{RecordError, Result};
pub use load::Load;
use load::{Around, Ended, Running};
use machine::Clocks;
use vmstat::Vmstat;

/// How often the load is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long events in flight may take to arrive after the load has ended.
const SETTLE: Duration = Duration::from_millis(300);

/// What to record.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Folder to make; it must not exist, or be empty.
    pub output: PathBuf,
    /// The load.
    pub load: Load,
    /// End after this time, if the load has not ended by then.
    pub limit: Option<Duration>,
    /// Folder whose file system, device and files are meant: by default where the named device is mounted, or the working
    /// folder where none is named.
    pub root: Option<PathBuf>,
    /// Device to record instead of the root's.
    pub device: Option<PathBuf>,
    /// Record system calls.
    pub strace: bool,
    /// Record block events, and how.
    pub block: Option<BlockSource>,
    /// Record vmstat rows, one every so many seconds (1 or more).
    pub vmstat_s: Option<u32>,
    /// List the places of at most so many files; 0 for none.
    pub layout_files: usize,
    /// Memory cgroup (its folder) to run the command in.
    pub cgroup: Option<PathBuf>,
    /// The kernel's buffer for block events, KiB a processor.
    pub buffer_kib: u32,
    /// What the caller wants kept of the run, as `facts`.
    pub facts: Map<String, Value>,
    /// Fail where something wanted cannot be recorded.
    pub strict: bool,
    /// The command's standard output goes to standard error.
    pub output_to_stderr: bool,
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Since the load began.
    pub elapsed: Duration,
    /// Bytes of system-call log so far.
    pub strace_bytes: u64,
    /// Block events so far.
    pub block_events: u64,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The folder.
    pub path: PathBuf,
    /// How long the load ran.
    pub wall: Duration,
    /// Exit status of the command as a shell gives it; none without a command.
    pub status: Option<i32>,
    /// Ended by the limit or by an interrupt, not by itself.
    pub cut: bool,
    /// Block events written, and how they were recorded.
    pub block: Option<(&'static str, u64)>,
    /// Block events that the kernel's buffers could not hold.
    pub lost_events: u64,
    /// Files whose places are known.
    pub layout_files: usize,
    /// What was wanted and is not there, and the right or the program that it takes.
    pub missing: Vec<String>,
}

/// Records a load. `look` is told of the progress about 20 times a second; `stop` ends the recording early, which is kept.
///
/// # Errors
/// When nothing can be recorded: no such device or command, no place to write, or something missing under `strict`. Nothing is
/// left in that case.
pub fn record(plan: &Plan, stop: &AtomicBool, look: &mut dyn FnMut(Progress)) -> Result<Recorded> {
    let parent = parent_of(&plan.output);
    vacant(&plan.output)?;
    fs::create_dir_all(&parent).map_err(|e| RecordError::io(&parent, e))?;
    let staging = tempfile::Builder::new().prefix(".tmp-record-").tempdir_in(&parent);
    let staging = staging.map_err(|e| RecordError::io(&parent, io::Error::from(e.kind())))?;
    let dir = staging.path();

    let mut session = Session::prepare(plan, dir)?;
    let recorded = session.run(plan, dir, stop, look)?;
    publish(dir, &plan.output)?;
    // What was renamed is no longer there to be removed.
    let _ = staging.keep();
    Ok(Recorded { path: plan.output.clone(), ..recorded })
}

/// A folder of which nothing will be lost.
fn vacant(output: &Path) -> Result<()> {
    match fs::read_dir(output) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(RecordError::io(output, e)),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(RecordError::usage(
                format!("{} exists and is not empty", output.display()),
                "choose another name with -o, or remove it",
            )),
        },
    }
}

fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Makes what lies in `dir` durable and gives it its name.
fn publish(dir: &Path, output: &Path) -> Result<()> {
    let fail = |path: &Path, e| RecordError::io(path, e);
    for entry in fs::read_dir(dir).map_err(|e| fail(dir, e))?.flatten() {
        fs::File::open(entry.path()).and_then(|f| f.sync_all()).map_err(|e| fail(&entry.path(), e))?;
    }
    // A temporary folder is for its owner alone.
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).map_err(|e| fail(dir, e))?;
    fs::rename(dir, output).map_err(|e| fail(output, e))?;
    kreplay_traces::publish::sync_dir(&parent_of(output)).map_err(|e| fail(output, io::Error::other(e.to_string())))
}

/// What is known before the load begins.
struct Session {
    device: Option<Device>,
    /// Of files on the device; none where they are on another, or the device is not mounted.
    root: Option<PathBuf>,
    strace: Option<PathBuf>,
    facts: Map<String, Value>,
    before: layout::Listing,
    missing: Vec<String>,
}

impl Session {
    fn prepare(plan: &Plan, dir: &Path) -> Result<Self> {
        let mut missing = Vec::new();
        let named = plan.device.as_deref().map(Device::of).transpose()?;
        let root = match (&plan.root, &plan.device) {
            (Some(root), _) => Some(root.clone()),
            (None, Some(device)) => device::mounted_at(device),
            (None, None) => Some(PathBuf::from(".")),
        };
        let root = root.map(|r| fs::canonicalize(&r).map_err(|e| RecordError::io(r, e))).transpose()?;
        let below = root.as_deref().map(Device::of);
        let files_on_it = match (&named, &below) {
            (Some(named), Some(Ok(below))) => named.number == below.number,
            (None, Some(Ok(_))) => true,
            _ => false,
        };
        let device = match (named, below) {
            (Some(named), _) => Some(named),
            (None, Some(Ok(below))) => Some(below),
            (None, Some(Err(e))) => {
                if plan.block.is_some() {
                    missing.push(format!("block events: {e}"));
                }
                None
            }
            (None, None) => None,
        };
        let mut facts = Map::new();
        facts.insert("format".into(), "capture-1".into());
        machine::kernel(&mut facts);
        if let Some(device) = &device {
            machine::device(device, &mut facts);
        }
        let root = root.filter(|_| files_on_it);
        if let Some(root) = &root {
            machine::file_system(root, &mut facts);
        }
        if let Some(cgroup) = &plan.cgroup {
            if !cgroup.join("cgroup.procs").exists() {
                let help = "name a folder below /sys/fs/cgroup that exists";
                return Err(RecordError::usage(format!("{} is no cgroup", cgroup.display()), help));
            }
            facts.insert("memory_limit_bytes".into(), machine::memory_limit(cgroup).into());
            facts.insert("memory_cgroup".into(), machine::cgroup_version(cgroup).into());
        }
        let wanted = plan.strace && plan.load != Load::Nothing;
        let strace = (wanted && load::installed("strace")).then(|| dir.join("strace.log"));
        if wanted && strace.is_none() {
            missing.push("system calls: strace is not installed (package strace)".into());
        }
        let mut session = Self { device, root, strace, facts, before: layout::Listing::default(), missing };
        session.list_before(plan, dir);
        Ok(session)
    }

    fn list_before(&mut self, plan: &Plan, dir: &Path) {
        let Some(root) = self.root.clone().filter(|_| plan.layout_files > 0) else { return };
        if !load::installed("filefrag") {
            self.missing.push("places of files: filefrag is not installed (package e2fsprogs)".into());
        } else if let Some(files) = layout::below(&root, plan.layout_files) {
            self.before = self.write_layout(&files, &dir.join("layout.txt"));
        }
    }

    fn write_layout(&mut self, files: &std::collections::BTreeSet<PathBuf>, target: &Path) -> layout::Listing {
        let start = self.device.as_ref().map_or(0, |d| d.start_512);
        let listing = layout::write(files, start, target)
            .unwrap_or_else(|why| layout::Listing { lacks: Some(why), ..layout::Listing::default() });
        if let Some(why) = &listing.lacks {
            self.missing.push(format!("places of files: {why}"));
        }
        listing
    }

    fn run(&mut self, plan: &Plan, dir: &Path, stop: &AtomicBool, look: &mut dyn FnMut(Progress)) -> Result<Recorded> {
        let block = self.start_block(plan, dir);
        let vmstat = plan.vmstat_s.and_then(|interval| {
            Vmstat::start(interval, &dir.join("vmstat.log")).map_err(|why| self.missing.push(why)).ok()
        });
        if plan.strict && !self.missing.is_empty() {
            return Err(RecordError::Missing(self.missing.join("; ")));
        }
        let load_before = load_average();
        let (clocks, began) = (Clocks::now(), Instant::now());
        let around = Around {
            strace: self.strace.as_deref(),
            cgroup: plan.cgroup.as_deref(),
            output_to_stderr: plan.output_to_stderr,
        };
        let mut running = Running::start(&plan.load, &around)?;
        let (ended, cut) = self.wait(plan, &mut running, block.as_ref(), (stop, began), look);
        let wall = began.elapsed();
        let end = Clocks::now();
        drop(vmstat);
        let source = block.as_ref().map(BlockRecorder::name);
        let count = block.map_or_else(BlockCount::default, |b| {
            std::thread::sleep(SETTLE);
            b.stop().unwrap_or_else(|why| {
                self.missing.push(format!("block events: {why}"));
                BlockCount::default()
            })
        });
        if let Some(log) = self.strace.as_ref().filter(|log| fs::metadata(log).map_or(0, |m| m.len()) == 0) {
            let _ = fs::remove_file(log);
            self.missing.push("system calls: strace wrote nothing (may it trace? see kernel.yama.ptrace_scope)".into());
            self.strace = None;
        }
        let after = self.list_after(plan, dir);
        let facts = &mut self.facts;
        facts.insert("start_realtime".into(), Value::Null);
        facts.insert("load_before".into(), load_before);
        facts.insert("load_after".into(), load_average());
        facts.insert("wall_s".into(), wall.as_secs_f64().into());
        facts.insert("exit_status".into(), ended.status.into());
        facts.insert("cut".into(), cut.into());
        facts.insert("strace".into(), i32::from(self.strace.is_some()).into());
        facts.insert("block_source".into(), source.into());
        facts.insert("lost_events".into(), count.lost.into());
        facts.insert("missing".into(), self.missing.clone().into());
        let mut own = plan.facts.clone();
        if let Load::Command(words) = &plan.load {
            own.insert("command".into(), words.join(" ").into());
        }
        facts.insert("facts".into(), own.into());
        write_run(dir, facts, &clocks, &end)?;
        Ok(Recorded {
            path: PathBuf::new(),
            wall,
            status: ended.status,
            cut,
            block: source.map(|s| (s, count.lines)),
            lost_events: count.lost,
            layout_files: self.before.files.len() + after,
            missing: std::mem::take(&mut self.missing),
        })
    }

    fn start_block(&mut self, plan: &Plan, dir: &Path) -> Option<BlockRecorder> {
        let (source, device) = (plan.block?, self.device.as_ref()?);
        match BlockRecorder::start(source, device, plan.buffer_kib, dir) {
            Ok(block) => Some(block),
            Err(why) => {
                self.missing.push(format!("block events: {why}"));
                None
            }
        }
    }

    fn wait(
        &self,
        plan: &Plan,
        running: &mut Running,
        block: Option<&BlockRecorder>,
        (stop, began): (&AtomicBool, Instant),
        look: &mut dyn FnMut(Progress),
    ) -> (Ended, bool) {
        loop {
            // Ctrl-C reaches the command as well: it may have ended by it.
            let stopped = stop.load(Ordering::Relaxed);
            if let Some(ended) = running.ended() {
                return (ended, stopped);
            }
            if stopped || plan.limit.is_some_and(|limit| began.elapsed() >= limit) {
                let a_command = matches!(plan.load, Load::Command(_));
                return (running.end(), stopped || a_command);
            }
            look(Progress {
                elapsed: began.elapsed(),
                strace_bytes: self.strace.as_ref().and_then(|p| fs::metadata(p).ok()).map_or(0, |m| m.len()),
                block_events: block.map_or(0, BlockRecorder::lines),
            });
            std::thread::sleep(LOOK);
        }
    }

    /// The files that the load made, or named below the root where that was too large to list before.
    fn list_after(&mut self, plan: &Plan, dir: &Path) -> usize {
        let wanted = plan.layout_files > 0 && load::installed("filefrag");
        let Some(root) = self.root.clone().filter(|_| wanted) else { return 0 };
        let named = self.strace.as_ref().and_then(|log| layout::named(log, &root, plan.layout_files).ok());
        let made = layout::below(&root, plan.layout_files);
        let mut files = made.or(named).unwrap_or_default();
        files.retain(|f| !self.before.files.contains(f));
        self.write_layout(&files, &dir.join("layout.after.txt")).files.len()
    }
}

fn load_average() -> Value {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse::<f64>().ok()).into()
}

/// Writes `run.json`. The clocks are put in as text: a float would lose the nanoseconds.
fn write_run(dir: &Path, facts: &mut Map<String, Value>, start: &Clocks, end: &Clocks) -> Result<()> {
    facts.insert("start_realtime".into(), json!("@start_realtime"));
    facts.insert("end_realtime".into(), json!("@end_realtime"));
    facts.insert("start_monotonic".into(), json!("@start_monotonic"));
    let mut text = serde_json::to_string_pretty(&facts).unwrap_or_default();
    for (mark, value) in [
        ("\"@start_realtime\"", &start.realtime),
        ("\"@end_realtime\"", &end.realtime),
        ("\"@start_monotonic\"", &start.monotonic),
    ] {
        text = text.replacen(mark, value, 1);
    }
    let path = dir.join("run.json");
    fs::write(&path, text + "\n").map_err(|e| RecordError::io(path, e))
}

#[cfg(test)]
mod tests;
