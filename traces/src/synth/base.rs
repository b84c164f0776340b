//! `base`: an idle machine's timings, one process.

use super::layout::Image;
use super::params::param;
use super::script::{Script, unmarked};
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("files", "", 2, (0, 4), "existing 16 MiB files read, 4 KiB at a time"),
    param("write_mib", "", 32, (1, 1024), "size of the file written, MiB"),
];

pub(super) const LOAD: Load = Load {
    name: "base",
    about: "one process reads existing files, writes a new one with fsync, and reads it back",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    let image = Image::mount(script, false);
    let (files, bytes) = (p.get("files"), p.mib("write_mib"));
    for k in 0..files {
        image.existing(script, &format!("r{k}"));
    }
    let path = image.written(script, bytes);
    let mut task = script.main_task();
    for k in 0..files {
        let fd = script.open(&mut task, &format!("/mnt/r{k}"), "O_RDONLY");
        script.read_file(&mut task, fd, 16 << 20, 4096, 0, unmarked);
        script.mark(&mut task, &format!("read16 {k}"));
        script.close(&mut task, fd);
    }
    let fd = script.open(&mut task, path, "O_RDWR|O_CREAT|O_TRUNC");
    for _ in 0..bytes / 65_536 {
        script.io(&mut task, "write", fd, 65_536);
    }
    script.mark(&mut task, "write32");
    script.fd_call(&mut task, "fsync", fd);
    script.mark(&mut task, "write32+fsync");
    script.close(&mut task, fd);
    let fd = script.open(&mut task, path, "O_RDONLY");
    script.read_file(&mut task, fd, bytes, 4096, 0, unmarked);
    script.mark(&mut task, "reread32");
    script.end(&mut task);
}
