//! `hog`: processes that write more memory than there is.

use super::layout::Image;
use super::params::param;
use super::script::Script;
use super::untar::Lcg;
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("processes", "N", 1, (1, 100), "processes"),
    param("size_mib", "M", 80, (1, 1 << 20), "memory of each, MiB"),
    param("passes", "PASSES", 4, (1, 1000), "passes over it"),
    param("random", "RAND", 0, (0, 1), "1: pages in random order after the first pass"),
    param("read_only", "RO", 0, (0, 1), "1: the passes after the first only read"),
];

pub(super) const LOAD: Load = Load {
    name: "hog",
    about: "processes touch every page of a large anonymous area, pass after pass",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let pages = p.get("size_mib") * 256;
    let mut main = script.main_task();
    let mut children = Vec::new();
    for i in 0..p.get("processes") {
        let mut task = script.clone_task(&mut main);
        task.set_client(format!("hog {i}"));
        let area = script.map_anonymous(&mut task, p.mib("size_mib"));
        let mut random = Lcg::seeded(i as u32 * 977);
        for pass in 0..p.get("passes") {
            let write = pass == 0 || !p.on("read_only");
            if p.on("random") && pass > 0 {
                for _ in 0..pages {
                    let page = u64::from(random.next_value()) % pages;
                    script.touch(&mut task, area, page, 1, 1, write);
                }
            } else {
                script.touch_all(&mut task, area, write);
            }
            script.mark(&mut task, &format!("hogpass {i} {pass}"));
        }
        script.exit(&mut task);
        children.push(task);
    }
    for child in &children {
        script.wait(&mut main, child);
    }
    script.end(&mut main);
}
