//! `wr16`: a small cold read under a flood of writes.

use super::layout::Image;
use super::params::param;
use super::script::Script;
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("warm_s", "WARM", 8, (0, 3600), "seconds of writing before the first read"),
    param("written_mib", "WMAX", 300, (1, 600), "size at which the writer begins anew, MiB"),
    param("chunk_bytes", "CH", 65_536, (4096, 1 << 20), "size of a write, bytes"),
    param("files", "NR", 1, (1, 4), "16 MiB files read one after the other, 3 s apart"),
    param("read_bytes", "RCH", 4096, (1, 1 << 20), "size of a read, bytes"),
    param("partition", "PART", 0, (0, 1), "1: the writer's file is on another partition of the same disk"),
];

pub(super) const LOAD: Load = Load {
    name: "wr16",
    about: "one process writes for ever; after a while another reads cold 16 MiB files",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    let image = Image::mount(script, p.on("partition"));
    let (size, chunk) = (p.mib("written_mib"), p.get("chunk_bytes"));
    for k in 0..p.get("files") {
        image.existing(script, &format!("r{k}"));
    }
    let path = image.written(script, size);
    let mut main = script.main_task();
    let mut writer = script.clone_task(&mut main);
    writer.set_client("writer".into());
    let fd = script.open(&mut writer, path, "O_RDWR|O_CREAT|O_TRUNC");
    writer.repeat_from(script.next_line());
    // Progress counts from the file's beginning in each round, so a round that ends between two marks has none there.
    let mut done = 0;
    while done < size {
        script.io(&mut writer, "write", fd, chunk);
        done += chunk;
        if done.is_multiple_of(16 << 20) {
            script.mark(&mut writer, "wprog");
        }
    }
    script.seek(&mut writer, fd, 0);
    script.background(&mut writer);

    main.set_client("reader".into());
    script.sleep_ms(&mut main, p.get("warm_s") * 1000);
    for k in 0..p.get("files") {
        let fd = script.open(&mut main, &format!("/mnt/r{k}"), "O_RDONLY");
        let progress = |mib| format!("rprog {k} {mib}");
        script.read_file(&mut main, fd, 16 << 20, p.get("read_bytes"), 4 << 20, progress);
        script.mark(&mut main, &format!("read16 {k}"));
        script.close(&mut main, fd);
        script.sleep_ms(&mut main, 3000);
    }
    script.end(&mut main);
}
