//! `pollute`: a hot set in use, then one pass over a large file, then the hot set again: what of it survived?

use super::layout::Image;
use super::params::param;
use super::script::{Script, unmarked};
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("hot_mib", "", 16, (1, 1024), "files of the hot set, MiB"),
    param("heap_mib", "", 8, (0, 1024), "memory of its process, MiB"),
    param("big_mib", "", 1024, (1, 16_384), "the large file, MiB"),
    param("chunk_bytes", "", 65_536, (512, 1 << 20), "size of the large file's reads, bytes"),
    param("passes", "", 4, (1, 100), "passes over the hot set before the large file"),
    param("pause_ms", "", 0, (0, 10_000), "pause after each read of the large file, ms"),
    param("walk", "", 0, (0, 1), "1: walk over a tree of 15 100 names before, so that name caches are full"),
];

pub(super) const LOAD: Load = Load {
    name: "pollute",
    about: "a hot set is read several times, a large file once, then the hot set again",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    let image = Image::mount(script, false);
    if p.on("walk") {
        super::tree::declare(script, image);
    }
    script.lying_file("/mnt/hotset", p.mib("hot_mib"));
    script.lying_file("/mnt/stream", p.mib("big_mib"));
    let mut main = script.main_task();
    if p.on("walk") {
        super::tree::walk(script, &mut main);
        script.mark(&mut main, "walked");
    }
    let heap = p.on("heap_mib").then(|| script.map_anonymous(&mut main, p.mib("heap_mib")));
    for n in 0..=p.get("passes") {
        if n == p.get("passes") {
            script.mark(&mut main, "pollute");
            let fd = script.open(&mut main, "/mnt/stream", "O_RDONLY");
            if p.on("pause_ms") {
                for _ in 0..p.mib("big_mib") / p.get("chunk_bytes") {
                    script.io(&mut main, "read", fd, p.get("chunk_bytes"));
                    script.sleep_ms(&mut main, p.get("pause_ms"));
                }
            } else {
                script.read_file(&mut main, fd, p.mib("big_mib"), p.get("chunk_bytes"), 0, unmarked);
            }
            script.close(&mut main, fd);
            script.mark(&mut main, "polluted");
        }
        let fd = script.open(&mut main, "/mnt/hotset", "O_RDONLY");
        script.read_file(&mut main, fd, p.mib("hot_mib"), 4096, 0, unmarked);
        script.close(&mut main, fd);
        if let Some(heap) = heap {
            script.touch_all(&mut main, heap, true);
        }
        script.mark(&mut main, "hot");
    }
    script.mark(&mut main, "again");
    script.end(&mut main);
}
