//! `xterm`: a user starts a remote terminal while something else keeps the disk busy.
//!
//! The daemons and the shell that take part have been idle for a while, so their memory may have been swapped out and their code
//! dropped; the terminal's own code is read from disk.

use super::layout::Image;
use super::params::param;
use super::program::Program;
use super::script::{Area, Script, Task};
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("warm_s", "", 20, (0, 3600), "seconds of writing before the terminal is started"),
    param("written_mib", "", 300, (0, 2048), "size at which the writer begins anew, MiB; 0: no writer"),
    param("chunk_bytes", "", 65_536, (4096, 1 << 20), "size of a write, bytes"),
    param("idle_mib", "", 6, (0, 256), "memory of the idle daemons and the shell, MiB"),
    param("idle_text_mib", "", 3, (1, 256), "their code and libraries, MiB"),
    param("text_mib", "", 2, (1, 256), "code and libraries of the terminal, MiB"),
    param("heap_mib", "", 1, (1, 256), "its memory, MiB"),
    param("hog_mib", "", 0, (0, 1024), "memory that another process keeps in use, MiB"),
];

pub(super) const LOAD: Load = Load {
    name: "xterm",
    about: "one process writes for ever; after a while a remote terminal is started, whose helpers were idle",
    params: PARAMS,
    generate,
};

/// The terminal and what it needs, for other loads as well.
pub(super) struct Terminal {
    terminal: Program<'static>,
    helpers: Program<'static>,
}

impl Terminal {
    /// As the parameters say.
    pub(super) fn of(p: &Params) -> Self {
        let program = |path, text, heap| Program {
            path,
            text_bytes: p.mib(text),
            data_bytes: 0,
            heap_bytes: p.mib(heap),
            think_us: 300_000,
        };
        Self {
            terminal: program("/mnt/terminal", "text_mib", "heap_mib"),
            helpers: program("/mnt/helpers", "idle_text_mib", "idle_mib"),
        }
    }

    /// Declare its files.
    pub(super) fn files(&self, script: &mut Script<'_>) {
        self.terminal.files(script);
        self.helpers.files(script);
    }

    /// The helpers start, and are idle from then on.
    pub(super) fn idle(&self, script: &mut Script<'_>, task: &mut Task) -> (Area, Area) {
        self.helpers.start(script, task, 11)
    }

    /// The helpers wake up and use what they have, the terminal starts.
    pub(super) fn open(&self, script: &mut Script<'_>, task: &mut Task, (text, heap): (Area, Area)) {
        script.mark(task, "xterm starts");
        script.touch_all(task, text, false);
        script.touch_all(task, heap, true);
        self.terminal.start(script, task, 12);
        script.mark(task, "xterm up");
    }
}

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let terminal = Terminal::of(p);
    terminal.files(script);
    let mut main = script.main_task();
    main.set_client("xterm".into());
    let idle = terminal.idle(script, &mut main);
    if p.on("hog_mib") {
        hog(p, script, &mut main);
    }
    if p.on("written_mib") {
        writer(p, script, &mut main);
    }
    script.sleep_ms(&mut main, p.get("warm_s") * 1000);
    terminal.open(script, &mut main, idle);
    script.end(&mut main);
}

fn hog(p: &Params, script: &mut Script<'_>, main: &mut Task) {
    let mut task = script.run(main, None);
    task.set_client("hog".into());
    let area = script.map_anonymous(&mut task, p.mib("hog_mib"));
    script.touch_all(&mut task, area, true);
    task.repeat_from(script.next_line());
    script.sleep_ms(&mut task, 500);
    script.touch_all(&mut task, area, true);
    script.background(&mut task);
}

fn writer(p: &Params, script: &mut Script<'_>, main: &mut Task) {
    let (size, chunk) = (p.mib("written_mib"), p.get("chunk_bytes"));
    let mut task = script.run(main, None);
    task.set_client("writer".into());
    let fd = script.open(&mut task, "/mnt/flood", "O_RDWR|O_CREAT|O_TRUNC");
    task.repeat_from(script.next_line());
    (0..size.div_ceil(chunk)).for_each(|_| script.io(&mut task, "write", fd, chunk));
    script.seek(&mut task, fd, 0);
    script.background(&mut task);
}
