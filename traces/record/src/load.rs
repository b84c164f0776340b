//! What is recorded: a command, processes that run already, or just a stretch of time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{RecordError, Result};

/// How long a load that is told to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// The load to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// A command and its arguments, run for the recording.
    Command(Vec<String>),
    /// Processes that run already, by process id; with all their threads and what they start.
    Processes(Vec<u32>),
    /// Nothing of its own: whatever uses the device meanwhile.
    Nothing,
}

/// The load under way.
pub(crate) struct Running {
    /// The command, or strace above it; none for a stretch of time, or for processes that are not straced.
    child: Option<Child>,
    /// Processes that were there before.
    processes: Vec<u32>,
    /// Ends a tracer of processes by SIGINT, which makes it let go of them.
    attached: bool,
}

/// How a load ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Exit status of a command as a shell gives it: 128 + signal for a death by signal.
    pub status: Option<i32>,
}

/// What surrounds the load.
pub(crate) struct Around<'a> {
    /// Log of system calls, if they are wanted.
    pub strace: Option<&'a Path>,
    /// Memory cgroup to run the command in.
    pub cgroup: Option<&'a Path>,
    /// Where the command's standard output goes: to standard error, if ours is for a program.
    pub output_to_stderr: bool,
}

impl Running {
    pub(crate) fn start(load: &Load, around: &Around<'_>) -> Result<Self> {
        let argv = arguments(load, around);
        let processes = if let Load::Processes(list) = load { list.clone() } else { Vec::new() };
        for pid in &processes {
            if !Path::new(&format!("/proc/{pid}")).exists() {
                return Err(RecordError::usage(format!("there is no process {pid}"), "look for it with ps or pgrep"));
            }
        }
        let attached = !processes.is_empty();
        let Some((program, rest)) = argv.split_first() else { return Ok(Self { child: None, processes, attached }) };
        let mut command = Command::new(program);
        command.args(rest);
        if attached {
            // Ctrl-C is for us; the tracer is told to let go afterwards.
            command.process_group(0).stdin(Stdio::null());
        }
        if around.output_to_stderr {
            command.stdout(std::io::stderr());
        }
        let child = command.spawn().map_err(|error| RecordError::Start { command: program.clone(), error })?;
        Ok(Self { child: Some(child), processes, attached })
    }

    /// Has the load ended by itself?
    pub(crate) fn ended(&mut self) -> Option<Ended> {
        match &mut self.child {
            Some(child) => {
                let status = child.try_wait().ok().flatten()?;
                Some(Ended { status: (!self.attached).then(|| code(status)) })
            }
            None if self.processes.is_empty() => None,
            None => {
                let gone = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
                self.processes.iter().all(gone).then_some(Ended { status: None })
            }
        }
    }

    /// Ends the load (or the tracing of it) now.
    pub(crate) fn end(&mut self) -> Ended {
        let Some(child) = &mut self.child else { return Ended { status: None } };
        let tracer = child.id();
        let first = if self.attached { Signal::SIGINT } else { Signal::SIGTERM };
        for signal in [first, Signal::SIGKILL] {
            // strace lets a signal to itself wait until its command has ended, so that is what must be told.
            let below = if self.attached { Vec::new() } else { descendants(tracer) };
            for pid in std::iter::once(tracer).chain(below) {
                send(pid, signal);
            }
            let since = Instant::now();
            while since.elapsed() < GRACE {
                if let Ok(Some(status)) = child.try_wait() {
                    return Ended { status: (!self.attached).then(|| code(status)) };
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ended { status: child.wait().ok().filter(|_| !self.attached).map(code) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.end();
        }
    }
}

fn send(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// The command line that runs, or attaches to, the load; empty when nothing is to be run.
fn arguments(load: &Load, around: &Around<'_>) -> Vec<String> {
    let mut argv = Vec::new();
    if let Some(log) = around.strace.filter(|_| *load != Load::Nothing) {
        argv.extend(["strace", "-q", "-f", "-ttt", "-T", "-y", "-s", "0", "-o"].map(str::to_owned));
        argv.push(log.display().to_string());
    }
    match load {
        Load::Command(command) => {
            if let Some(cgroup) = around.cgroup {
                // The command joins by itself, so that the tracer stays outside.
                let join = r#"echo $$ >"$0/cgroup.procs" || exit 125; exec "$@""#;
                argv.extend(["sh".into(), "-c".into(), join.into(), cgroup.display().to_string()]);
            } else if !argv.is_empty() {
                argv.push("--".into());
            }
            argv.extend(command.iter().cloned());
        }
        Load::Processes(list) if !argv.is_empty() => {
            argv.extend(list.iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]));
        }
        Load::Processes(_) | Load::Nothing => argv.clear(),
    }
    argv
}

/// All processes below one, in no order.
fn descendants(of: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let stat = fs::read(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut at) = (vec![of], 0);
    while let Some(pid) = found.get(at) {
        let below = children.remove(pid).unwrap_or_default();
        found.extend(below);
        at += 1;
    }
    found.split_off(1)
}

/// The parent in a line of `/proc/PID/stat`; the name before it, in parentheses, may hold anything.
fn parent(stat: &[u8]) -> Option<u32> {
    let after = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
    std::str::from_utf8(after).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Is a program on the path?
pub(crate) fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir: PathBuf| dir.join(program)).any(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Around<'_> = Around { strace: None, cgroup: None, output_to_stderr: true };

    fn command(words: &[&str]) -> Load {
        Load::Command(words.iter().map(|w| (*w).to_owned()).collect())
    }

    #[test]
    fn the_command_stands_behind_the_tracer_and_the_cgroup() {
        let log = Path::new("/o/strace.log");
        let around = Around { strace: Some(log), ..PLAIN };
        let straced = arguments(&command(&["ls", "-l"]), &around);
        assert_eq!(straced[..11].join(" "), "strace -q -f -ttt -T -y -s 0 -o /o/strace.log --");
        assert_eq!(straced[11..], ["ls", "-l"]);
        let within = arguments(&command(&["ls"]), &Around { cgroup: Some(Path::new("/cg")), ..PLAIN });
        assert_eq!((within[0].as_str(), within[3].as_str(), within[4].as_str()), ("sh", "/cg", "ls"));
        let attached = arguments(&Load::Processes(vec![3, 4]), &around);
        assert_eq!(attached[10..], ["-p", "3", "-p", "4"]);
        assert!(arguments(&Load::Nothing, &around).is_empty());
        assert!(arguments(&Load::Processes(vec![3]), &PLAIN).is_empty());
    }

    #[test]
    fn a_command_ends_by_itself_or_is_ended_with_all_below_it() {
        let mut quick = Running::start(&command(&["sh", "-c", "exit 7"]), &PLAIN).unwrap();
        let ended = loop {
            if let Some(ended) = quick.ended() {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(ended.status, Some(7));

        let mut slow = Running::start(&command(&["sh", "-c", "sleep 1000; true"]), &PLAIN).unwrap();
        assert_eq!(slow.ended(), None);
        let shell = slow.child.as_ref().unwrap().id();
        while descendants(shell).is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(slow.end().status, Some(128 + 15));
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let missing = Running::start(&command(&["/no/such/program"]), &PLAIN);
        assert!(matches!(missing, Err(RecordError::Start { .. })));
        let nobody = Running::start(&Load::Processes(vec![u32::MAX]), &PLAIN);
        assert!(matches!(nobody, Err(RecordError::Usage { .. })));
    }

    #[test]
    fn a_name_with_a_parenthesis_hides_no_parent() {
        assert_eq!(parent(b"12 (a) b) S 7 12 12"), Some(7));
        assert_eq!(parent(b"12"), None);
    }
}
