//! `dcache`: do names and inodes survive a streaming read and a memory hog?

use super::layout::Image;
use super::params::param;
use super::script::{Script, unmarked};
use super::tree;
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("big_mib", "BIG", 160, (0, 640), "part of the large file that is read, MiB"),
    param("hog_mib", "M", 0, (0, 1 << 20), "anonymous memory written and freed before the last walk, MiB; 0: none"),
];

pub(super) const LOAD: Load = Load {
    name: "dcache",
    about: "walk a tree of 15 100 names three times, read a large file, walk, write and free memory, walk",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    let image = Image::mount(script, false);
    image.existing(script, "big");
    tree::declare(script, image);
    let mut task = script.main_task();
    for n in 0..3 {
        tree::walk(script, &mut task);
        script.mark(&mut task, &format!("walk {n}"));
    }
    let fd = script.open(&mut task, "/mnt/big", "O_RDONLY");
    script.read_file(&mut task, fd, p.mib("big_mib"), 65_536, 0, unmarked);
    script.mark(&mut task, "bigread");
    tree::walk(script, &mut task);
    script.mark(&mut task, "walk-after-bigread");
    if p.on("hog_mib") {
        let area = script.map_anonymous(&mut task, p.mib("hog_mib"));
        script.touch_all(&mut task, area, true);
        script.mark(&mut task, "hog");
        script.unmap(&mut task, area);
        tree::walk(script, &mut task);
        script.mark(&mut task, "walk-after-hog");
    }
    script.end(&mut task);
}
