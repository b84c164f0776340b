//! Single operations: what each reads from the disk, dirties, and leaves in memory.

use super::machine::{Script, cached, config, parse_runs};
use super::{Outcome, number};
use crate::program::{Advice, Op};

/// Pages of the recorded file on disk, and page ids that it may grow into.
const PAGES: u32 = 256;
const ROOM: u32 = 320;
const PAGE: u64 = 4096;

pub(super) fn cases(variant: &str, text: &str) -> Result<Vec<(String, Outcome)>, String> {
    let config = config(variant)?;
    let mut script = Script::with_room(&[(PAGES, ROOM), (1024, 1024)]);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with("majflt")).collect();
    let mut known = Vec::new();
    for (k, line) in lines.iter().enumerate() {
        let title = line.split(':').next().unwrap_or(line).trim();
        if title.starts_with("buffered read 64K@0 done") {
            // A step of its own: the line's figures are those of the direct read behind it.
            script.add(Op::Read { ofd: 0, off: 0, len: 65_536 });
            script.step();
            known.push(None);
        }
        if !operations(&mut script, title) {
            return Err(format!("\"{title}\" is not understood"));
        }
        script.step();
        known.push(Some((k, title.to_owned())));
    }
    let mut out = Vec::new();
    let mut before = (0, 0);
    script.play(&config, |k, sim| {
        let read = sim.mm.counters.disk_read_bytes;
        let dirtied = sim.mm.ws.as_ref().map_or(0, |w| w.dirtied) * PAGE;
        let here = ((read - before.0) as i64, (dirtied - before.1) as i64);
        before = (read, dirtied);
        let Some((k, title)) = &known[k] else { return };
        let line = lines[*k];
        let mut differs = Vec::new();
        for (what, key, value) in [("read", "read_bytes", here.0), ("dirtied", "write_bytes", here.1)] {
            // The recorder counted a direct write's bytes as written, which dirties nothing.
            let direct = what == "dirtied" && line.contains("O_DIRECT write");
            if let Some(recorded) = number(line, key)
                && recorded != value
                && !direct
            {
                differs.push(format!("{value} bytes are {what}, recorded were {recorded}"));
            }
        }
        if let Some(runs) = line.split("cached=").nth(1).and_then(parse_runs) {
            let state = if line.starts_with("mmap") { cached(sim, ROOM, 1024) } else { cached(sim, 0, ROOM) };
            if state != runs {
                differs.push(format!("{state:?} are in memory, recorded were {runs:?}"));
            }
        }
        let outcome = if differs.is_empty() { Ok(()) } else { Err(differs.join("; ")) };
        out.push((title.clone(), outcome));
    })?;
    Ok(out)
}

/// The operations that a line's title tells; false if it is unknown.
fn operations(s: &mut Script, title: &str) -> bool {
    let write = |off: u64, len: u64| Op::Write { ofd: 0, off, len };
    let advise = |advice| Op::Advise { ofd: 0, off: 0, len: 0, advice };
    let starts = |word: &str| title.starts_with(word);
    if starts("full aligned 4K overwrite") {
        s.add(write(10 * PAGE, PAGE));
    } else if starts("100 B overwrite inside uncached page 20") {
        s.add(write(20 * PAGE + 100, 100));
    } else if starts("8192 B write at 30*4096+2048") {
        s.add(write(30 * PAGE + 2048, 8192));
    } else if starts("100 B append at EOF") {
        s.add(write(u64::from(PAGES) * PAGE, 100));
    } else if starts("64 KiB aligned overwrite pages 64..79") {
        s.add(write(64 * PAGE, 16 * PAGE));
    } else if starts("write 1 B into hole") {
        s.add(write(300 * PAGE, 1));
    } else if starts("fadvise DONTNEED") {
        s.add(advise(Advice::DontNeed));
    } else if starts("fsync") {
        s.add(Op::Fsync { file: 0, data_only: false });
    } else if starts("buffered read 64K@0 done; O_DIRECT read") {
        s.add(Op::Direct { ofd: 0, off: 0, len: 65_536, write: false });
    } else if starts("O_DIRECT write 16K@0") {
        s.add(Op::Direct { ofd: 0, off: 0, len: 4 * PAGE, write: true });
    } else if starts("dirty page 5 buffered") {
        s.add(write(5 * PAGE, PAGE));
    } else if starts("O_DIRECT read 64K@0 over dirty page") {
        s.add(Op::Direct { ofd: 0, off: 0, len: 65_536, write: false });
    } else if starts("ftruncate to 4 pages") {
        s.add(Op::Truncate { file: 0, len: 4 * PAGE });
        s.add(advise(Advice::DontNeed));
    } else if starts("ftruncate back to 1 MiB") {
        s.add(Op::Truncate { file: 0, len: u64::from(PAGES) * PAGE });
    } else if starts("read hole 4K @ page 100") {
        s.read(0, 100, 1);
    } else if starts("overwrite 40 dirty pages") {
        s.add(write(0, 40 * PAGE));
    } else if starts("truncate dirty file to 0") {
        s.add(Op::Truncate { file: 0, len: 0 });
    } else if starts("write 40 pages then unlink+close") {
        s.add(Op::Write { ofd: 0, off: 0, len: 40 * PAGE });
    } else if starts("unlink+close") {
        s.add(Op::Truncate { file: 0, len: 0 });
    } else if starts("mmap shared store to page 200") {
        s.add(Op::Touch { area: 1, first: 200, count: 1, stride: 1, write: true });
    } else if starts("mmap touch pages 184..215") {
        s.add(Op::Touch { area: 1, first: 184, count: 32, stride: 1, write: false });
    } else {
        return false;
    }
    true
}
