//! `read`: one sequential reader.

use super::layout::Image;
use super::params::param;
use super::script::Script;
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("chunk_bytes", "CH", 512, (1, 1 << 20), "size of a read, bytes"),
    param("big_mib", "BIG", 160, (0, 640), "part of the file that is read, MiB"),
    param("repeats", "REPS", 2, (1, 1000), "times"),
];

pub(super) const LOAD: Load = Load {
    name: "read",
    about: "one process reads a large file from its beginning, some times over",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    let image = Image::mount(script, false);
    image.existing(script, "big");
    let mut task = script.main_task();
    for r in 0..p.get("repeats") {
        let fd = script.open(&mut task, "/mnt/big", "O_RDONLY");
        let progress = |mib| format!("rprog {r} {mib}");
        script.read_file(&mut task, fd, p.mib("big_mib"), p.get("chunk_bytes"), 8 << 20, progress);
        script.mark(&mut task, &format!("readdone {r}"));
        script.close(&mut task, fd);
    }
    script.end(&mut task);
}
