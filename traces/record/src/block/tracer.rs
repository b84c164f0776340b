//! The `blk` tracer (kernel/trace/blktrace.c): what blktrace records, read through tracefs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::BlockCount;
use super::numbered::Numbered;
use super::pipe::Pipe;
use crate::device::Device;
use crate::tracefs::TraceFs;

/// The tracer at work, and what must be put back behind it. The pipe comes first: it must be closed by then.
pub(crate) struct BlkTracer {
    pipe: Pipe,
    settings: Settings,
}

/// Undone when dropped, from the last to the first.
struct Settings {
    top: TraceFs,
    clock: Option<String>,
    buffer: Option<String>,
    enabled: Vec<PathBuf>,
    chosen: bool,
}

impl BlkTracer {
    pub(super) fn start(top: &TraceFs, device: &Device, buffer_kib: u32, target: &Path) -> Result<Self, String> {
        let say = |what: &'static str| move |e: io::Error| format!("the blk tracer cannot be used: {what}: {e}");
        if !top.read("available_tracers").is_ok_and(|all| all.split(' ').any(|t| t == "blk")) {
            return Err("this kernel has no blk tracer (CONFIG_BLK_DEV_IO_TRACE)".into());
        }
        let current = top.read("current_tracer").map_err(say("current_tracer"))?;
        if current != "nop" {
            let switch = top.path("current_tracer");
            return Err(format!(
                "the tracer `{current}` is in use on this machine (echo nop > {}, if nobody needs it)",
                switch.display()
            ));
        }
        let mut settings = Settings {
            top: top.clone(),
            clock: top.chosen("trace_clock"),
            buffer: None,
            enabled: Vec::new(),
            chosen: false,
        };
        // The clock of strace's and vmstat's stamps is another one; run.json has both at the start.
        top.write("trace_clock", "mono").map_err(say("trace_clock"))?;
        settings.grow(buffer_kib);
        top.write("trace", "\n").map_err(say("trace"))?;
        for each in device.all() {
            let switch = each.sysfs.join("trace/enable");
            std::fs::write(&switch, "1").map_err(say("trace/enable, which another trace of the device may hold"))?;
            settings.enabled.push(switch);
        }
        top.write("current_tracer", "blk").map_err(say("current_tracer"))?;
        settings.chosen = true;
        // Else each line would begin with the ftrace's own task, processor and time.
        top.write("trace_options", "nocontext-info").map_err(say("nocontext-info"))?;
        top.write("trace_options", "blk_classic").map_err(say("blk_classic"))?;
        let pipe = Pipe::start(&top.path("trace_pipe"), target, Numbered::default()).map_err(say("trace_pipe"))?;
        Ok(Self { pipe, settings })
    }

    pub(super) fn lines(&self) -> u64 {
        self.pipe.lines()
    }

    pub(super) fn stop(mut self) -> Result<BlockCount, String> {
        self.settings.disable();
        let lines = self.pipe.finish()?;
        Ok(BlockCount { lines, lost: self.settings.top.lost() })
    }
}

impl Settings {
    /// Makes the buffers larger, if they are smaller; `7 (expanded: 1408)` will be 1408.
    fn grow(&mut self, kib: u32) {
        let Ok(text) = self.top.read("buffer_size_kb") else { return };
        let size = text.split_once("expanded: ").map_or(text.as_str(), |(_, rest)| rest.trim_end_matches(')'));
        if size.parse::<u32>().is_ok_and(|now| now < kib) && self.top.write("buffer_size_kb", &kib.to_string()).is_ok()
        {
            self.buffer = Some(size.to_owned());
        }
    }

    fn disable(&mut self) {
        for switch in self.enabled.drain(..) {
            let _ = std::fs::write(switch, "0");
        }
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        self.disable();
        if self.chosen {
            // Known only while the tracer is in.
            let _ = self.top.write("trace_options", "noblk_classic");
            // Refused while anything still reads the pipe.
            for _ in 0..25 {
                if self.top.write("current_tracer", "nop").is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            let _ = self.top.write("trace_options", "context-info");
        }
        if let Some(size) = &self.buffer {
            let _ = self.top.write("buffer_size_kb", size);
        }
        if let Some(clock) = &self.clock {
            let _ = self.top.write("trace_clock", clock);
        }
    }
}
