//! Workload generators: they write ordinary traces, so that a load can be replayed without a recording.
//!
//! One file a load, one line here. The loads up to `netatalk` are those that were run on real 2.2 and 2.4 kernels (see
//! [`linux24`]), with all their parameters open; those after it are what was reported on the kernel list in 2001.
//!
//! # Conventions of generated rows
//! - System calls have their real names and columns: `openat` with path and `ret` = descriptor, `read`/`write` with
//!   `fd`, `ret`, `len_bytes`, `clone` (row of the parent, `ret` = child), `pipe2` (`fd` = read end, `fd2` = write
//!   end, inherited by later clones), `mmap`/`munmap` with `addr`, `getdents64`, `stat`, `clock_nanosleep` (`dur_ns` =
//!   time asked for), `wait4`, `exit_group`.
//! - "Start after another task's third pass" is a `read(fd, 1)` of a pipe that the other task writes a byte to.
//! - Page touches are rows of table `fault`; addresses are unique in the whole trace.
//! - Computing is a pseudo-call, `x-compute`: the task has a processor for its `dur_ns`, in user mode.
//! - Other pseudo-calls: `x-mark` (`path` = the mark's name), `x-link` (`len_bytes` on the wire, `args` = `link=0`),
//!   `x-ask` (`args` = `link=0 client=2`: a whole conversation with a request server), `x-recvwrite` (`fd`, `len_bytes` = all bytes of the pass, `args` = `link=0 client=2 chunk=8192`).
//! - Tasks that end when the load ends are [`background`](crate::event::ProcessRow::background); endless loops
//!   [repeat from a line](crate::event::ProcessRow::repeat_from_line).
//! - Each task has its own clock, which begins when it is cloned. Every call takes [`script::STEP_NS`] and the next
//!   follows at once: think times are zero. Waits end when what they wait for happened.
//! - Lines count emitted rows; a task's rows are in program order by line and by time.
//!
//! # Marks
//! A mark has the words of the recording's event without its measured figures, and with the numbers that identify it:
//! `read16 0`, `rprog 0 4`, `hogpass 1 2`, `rep 3 0` (client 3, pass 0), `client done 3`, `phase 3 5`, `start`,
//! `workload`. What an endless loop counts has no number (`hotpass`, `wprog`): the n-th occurrence is pass n.
//! [`linux24::mark_of_event`] turns a recorded event into its mark.

mod audio;
mod base;
mod copytree;
mod coredump;
mod dcache;
mod desk;
mod desktop;
mod fileserver;
mod hog;
mod interleave;
mod layout;
pub mod linux24;
mod make;
mod netatalk;
mod nfsd;
mod params;
mod pipeline;
mod pollute;
mod program;
mod read;
mod receive;
pub mod script;
mod seqhot;
mod sr;
mod srnet;
mod tree;
mod untar;
mod wr16;
mod xterm;

use std::path::{Path, PathBuf};

pub use params::{ParamSpec, Params};
pub use script::Generated;
use script::Script;

use crate::error::{Error, Result};
use crate::event::EventSink;
use crate::store::{ClockKind, MachineInfo, Manifest, SourceFacts, SourceKey, TraceWriter, WriterOptions};

/// All loads.
pub static LOADS: &[Load] = &[
    base::LOAD,
    seqhot::LOAD,
    read::LOAD,
    srnet::LOAD,
    sr::LOAD,
    wr16::LOAD,
    hog::LOAD,
    dcache::LOAD,
    untar::LOAD,
    desk::LOAD,
    netatalk::LOAD,
    fileserver::LOAD,
    receive::LOAD,
    desktop::LOAD,
    audio::LOAD,
    xterm::LOAD,
    copytree::LOAD,
    make::LOAD,
    pollute::LOAD,
    coredump::LOAD,
    interleave::LOAD,
    nfsd::LOAD,
    pipeline::LOAD,
];

/// Loads under another name with some parameters set.
pub static PRESETS: &[Preset] = &[
    Preset { name: "seqhot512", load: "seqhot", settings: &["chunk_bytes=512"] },
    Preset { name: "read512", load: "read", settings: &["chunk_bytes=512"] },
    Preset { name: "read4096", load: "read", settings: &["chunk_bytes=4096"] },
    Preset { name: "srnetfresh", load: "srnet", settings: &["fresh=1"] },
    Preset { name: "wr16p", load: "wr16", settings: &["partition=1"] },
    Preset { name: "hog80", load: "hog", settings: &["size_mib=80"] },
    Preset { name: "oom", load: "hog", settings: &["processes=3", "size_mib=36", "passes=2"] },
    Preset { name: "netatalk-s", load: "netatalk", settings: &["size_mib=15"] },
];

/// A workload generator.
pub struct Load {
    /// Name.
    pub name: &'static str,
    /// What it does, one sentence.
    pub about: &'static str,
    /// Its parameters.
    pub params: &'static [ParamSpec],
    generate: fn(&Params, &mut Script<'_>),
}

/// Another name for a load with some parameters set.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name.
    pub name: &'static str,
    /// Load.
    pub load: &'static str,
    /// Settings, `key=value`.
    pub settings: &'static [&'static str],
}

impl Load {
    /// Emit the load's rows.
    pub fn generate(&self, params: &Params, sink: &mut dyn EventSink) -> Generated {
        let mut script = Script::new(sink);
        (self.generate)(params, &mut script);
        script.finish()
    }
}

/// A load and its parameters from a name (of a load or a preset) and `key=value` settings.
///
/// # Errors
/// An unknown name, an unknown key, a value that is no number or out of range; the message says what is allowed.
///
/// ```
/// let (load, params) = kreplay_traces::synth::find("seqhot512", &["big_mib=64"]).unwrap();
/// assert_eq!((load.name, params.get("chunk_bytes"), params.get("big_mib")), ("seqhot", 512, 64));
/// ```
pub fn find<S: AsRef<str>>(name: &str, settings: &[S]) -> Result<(&'static Load, Params)> {
    let preset = PRESETS.iter().find(|p| p.name == name);
    let load_name = preset.map_or(name, |p| p.load);
    let Some(load) = LOADS.iter().find(|l| l.name == load_name) else {
        let known: Vec<&str> = LOADS.iter().map(|l| l.name).chain(PRESETS.iter().map(|p| p.name)).collect();
        let why = format!("unknown load; known are {}", known.join(", "));
        return Err(Error::Param { load: name.to_owned(), why });
    };
    let mut params = Params::defaults(load);
    for setting in preset.map_or(&[][..], |p| p.settings) {
        params.set_text(setting)?;
    }
    for setting in settings {
        params.set_text(setting.as_ref())?;
    }
    Ok((load, params))
}

/// Generate a load into a trace directory.
///
/// # Errors
/// As [`TraceWriter`].
pub fn write_trace(
    load: &Load,
    params: &Params,
    machine: Option<MachineInfo>,
    path: &Path,
    options: WriterOptions,
) -> Result<(PathBuf, Manifest)> {
    let mut writer = TraceWriter::create(path, WriterOptions { fresh: true, ..options })?;
    let key = SourceKey { path: format!("synth:{}", load.name), format: "synth".into(), options: params.to_map() };
    writer.begin_source(key, ClockKind::Trace)?;
    let generated = load.generate(params, &mut writer);
    writer.finish_source(SourceFacts { lines: generated.rows, ..SourceFacts::default() })?;
    generated.links.into_iter().for_each(|l| writer.add_link(l));
    writer.set_machine(machine.unwrap_or_else(|| linux24::image_machine(&generated.devices)));
    writer.finish()
}

#[cfg(test)]
mod tests;
