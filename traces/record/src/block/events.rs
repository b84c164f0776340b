//! The `block_*` trace events in an instance of tracefs.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::BlockCount;
use super::pipe::{AsItIs, Pipe};
use crate::device::Device;
use crate::tracefs::TraceFs;

/// Those with a device, by which they are filtered; plugs have none and are left out. What an older kernel lacks is left
/// out too.
const EVENTS: [&str; 11] = [
    "block_bio_queue",
    "block_getrq",
    "block_rq_insert",
    "block_rq_issue",
    "block_rq_complete",
    "block_rq_requeue",
    "block_rq_merge",
    "block_bio_backmerge",
    "block_bio_frontmerge",
    "block_split",
    "block_bio_remap",
];

/// Events at work. The pipe comes first: it must be closed before the instance can go.
pub(crate) struct BlockEvents {
    pipe: Pipe,
    instance: Instance,
}

struct Instance(TraceFs);

impl BlockEvents {
    pub(super) fn start(top: &TraceFs, device: &Device, buffer_kib: u32, target: &Path) -> Result<Self, String> {
        let say = |what: &'static str| move |e: io::Error| format!("block events cannot be used: {what}: {e}");
        let name = format!("kreplay-{}", std::process::id());
        let instance = Instance(top.instance(&name).map_err(say("instances"))?);
        let fs = &instance.0;
        // A new instance inherits these from the top level, where another recording may be at work.
        fs.write("trace_options", "context-info").map_err(say("context-info"))?;
        fs.write("trace_options", "nobin").map_err(say("nobin"))?;
        fs.write("trace_clock", "mono").map_err(say("trace_clock"))?;
        fs.write("buffer_size_kb", &buffer_kib.to_string()).map_err(say("buffer_size_kb"))?;
        let filter: Vec<_> = device.all().map(|d| format!("dev == {}", d.dev_t())).collect();
        for event in EVENTS.map(|e| format!("events/block/{e}")) {
            if fs.has(&event) {
                fs.write(&format!("{event}/filter"), &filter.join(" || ")).map_err(say("filter"))?;
            }
        }
        let pipe = Pipe::start(&fs.path("trace_pipe"), target, AsItIs).map_err(say("trace_pipe"))?;
        for event in EVENTS.map(|e| format!("events/block/{e}")) {
            if fs.has(&event) {
                fs.write(&format!("{event}/enable"), "1").map_err(say("enable"))?;
            }
        }
        Ok(Self { pipe, instance })
    }

    pub(super) fn lines(&self) -> u64 {
        self.pipe.lines()
    }

    pub(super) fn stop(mut self) -> Result<BlockCount, String> {
        let fs = &self.instance.0;
        let _ = fs.write("tracing_on", "0");
        let lines = self.pipe.finish()?;
        Ok(BlockCount { lines, lost: fs.lost() })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.0.write("events/enable", "0");
        for _ in 0..25 {
            if self.0.remove().is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}
