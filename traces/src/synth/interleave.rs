//! `interleave`: processes that read single blocks here and there, each with one request under way: what a 386 of 1991 gave its disk.

use super::layout::Image;
use super::params::param;
use super::script::{Script, Task};
use super::untar::Lcg;
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("processes", "", 8, (1, 64), "processes"),
    param("requests", "", 200, (1, 1_000_000), "reads of each"),
    param(
        "size_mib",
        "",
        4,
        (1, 1024),
        "size of each process' file, MiB; no page of it is read twice while there are others",
    ),
    param("think_us", "", 500, (0, 1_000_000), "most computing between two reads, us; each has 0 to so much"),
];

pub(super) const LOAD: Load = Load {
    name: "interleave",
    about: "processes read single blocks of their files in random order, one request each under way",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let paths: Vec<String> = (0..p.get("processes")).map(|n| format!("/mnt/file{n}")).collect();
    paths.iter().for_each(|path| script.lying_file(path, p.mib("size_mib")));
    let mut main = script.main_task();
    let tasks: Vec<Task> = paths
        .iter()
        .enumerate()
        .map(|(n, path)| {
            let mut task = script.clone_task(&mut main);
            task.set_client(format!("process {n}"));
            read(p, script, &mut task, path, n as u32);
            script.exit(&mut task);
            task
        })
        .collect();
    for task in &tasks {
        script.wait(&mut main, task);
    }
    script.end(&mut main);
}

fn read(p: &Params, script: &mut Script<'_>, task: &mut Task, path: &str, seed: u32) {
    let pages = p.mib("size_mib") / 4096;
    let mut order: Vec<u64> = (0..pages).collect();
    super::program::shuffle(&mut order, seed * 101);
    let mut random = Lcg::seeded(seed * 103);
    let fd = script.open(task, path, "O_RDONLY");
    for request in 0..p.get("requests") {
        script.seek(task, fd, order[(request % pages) as usize] * 4096);
        script.io(task, "read", fd, 512);
        script.compute_us(task, u64::from(random.next_value()) % (p.get("think_us") + 1));
    }
}
