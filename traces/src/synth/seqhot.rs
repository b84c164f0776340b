//! `seqhot`: a hot file read again and again while a large file is read once.

use super::layout::Image;
use super::params::param;
use super::script::{Script, Task, unmarked};
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("hot_mib", "HOT", 16, (1, 64), "part of the hot file that is read each pass, MiB"),
    param("big_mib", "BIG", 256, (0, 640), "part of the large file that is read, MiB"),
    param("chunk_bytes", "CH", 65_536, (1, 1 << 20), "size of the large file's reads, bytes"),
    param("warm_passes", "WARM", 3, (1, 1000), "hot passes before the large file is begun"),
    param("pause_ms", "PAUSE", 500, (0, 3_600_000), "sleep between hot passes, ms"),
];

pub(super) const LOAD: Load = Load {
    name: "seqhot",
    about: "a hot file is read for ever, with pauses; after some passes another process reads a large file once",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    let image = Image::mount(script, false);
    image.existing(script, "hot");
    image.existing(script, "big");
    let mut main = script.main_task();
    let mut warm = script.pipe(&mut main);
    let mut hot = script.clone_task(&mut main);
    hot.set_client("hot".into());
    let warm_passes = p.get("warm_passes");
    for n in 0..warm_passes {
        pass(p, script, &mut hot);
        if n + 1 < warm_passes {
            script.sleep_ms(&mut hot, p.get("pause_ms"));
        }
    }
    // The recording polls a flag every 50 ms, so there the large read begins up to 50 ms (and a timer tick) later.
    script.post(&mut hot, &mut warm);
    script.sleep_ms(&mut hot, p.get("pause_ms"));
    hot.repeat_from(script.next_line());
    pass(p, script, &mut hot);
    script.sleep_ms(&mut hot, p.get("pause_ms"));
    script.background(&mut hot);

    main.set_client("big".into());
    script.take(&mut main, &mut warm);
    script.mark(&mut main, "bigstart");
    let fd = script.open(&mut main, "/mnt/big", "O_RDONLY");
    let progress = |mib| format!("bigprog {mib}");
    script.read_file(&mut main, fd, p.mib("big_mib"), p.get("chunk_bytes"), 16 << 20, progress);
    script.mark(&mut main, "bigdone");
    script.end(&mut main);
}

/// One pass over the hot file, without the pause that follows.
fn pass(p: &Params, script: &mut Script<'_>, task: &mut Task) {
    let fd = script.open(task, "/mnt/hot", "O_RDONLY");
    script.read_file(task, fd, p.mib("hot_mib"), 4096, 0, unmarked);
    script.close(task, fd);
    script.mark(task, "hotpass");
}
