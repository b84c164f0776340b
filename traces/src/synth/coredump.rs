//! `coredump`: many processes crash, and each writes its memory to a file: into its working directory or into one directory for
//! all, under one of several names.

use super::layout::Image;
use super::params::param;
use super::script::{Script, Task};
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("processes", "", 24, (1, 1000), "processes that crash"),
    param("names", "", 4, (1, 1000), "different process names among them"),
    param("directories", "", 6, (1, 1000), "different working directories"),
    param("core_mib", "", 4, (1, 1024), "memory of each, MiB"),
    param("scheme", "", 0, (0, 3), "file name: 0: core; 1: core.name; 2: core.pid; 3: core.name.pid.host"),
    param("one_directory", "", 0, (0, 1), "1: one configured directory for all; 0: each its working directory"),
    param("restarts", "", 2, (1, 100), "hosts or boots that share the directories: process ids come again"),
];

pub(super) const LOAD: Load = Load {
    name: "coredump",
    about: "processes crash and dump their memory, by naming scheme and directory",
    params: PARAMS,
    generate,
};

/// What is written at a time.
const CHUNK: u64 = 65_536;

/// Where the dump of a process goes. Process ids come again with each restart.
fn path(p: &Params, process: u64, restart: u64) -> String {
    let directory = if p.on("one_directory") {
        "/mnt/cores".to_owned()
    } else {
        format!("/mnt/work{}", process % p.get("directories"))
    };
    let (name, pid) = (process % p.get("names"), 1000 + process);
    match p.get("scheme") {
        0 => format!("{directory}/core"),
        1 => format!("{directory}/core.program{name}"),
        2 => format!("{directory}/core.{pid}"),
        _ => format!("{directory}/core.program{name}.{pid}.host{restart}"),
    }
}

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let mut main = script.main_task();
    for restart in 0..p.get("restarts") {
        let tasks: Vec<Task> = (0..p.get("processes"))
            .map(|process| {
                let mut task = script.clone_task(&mut main);
                task.set_client(format!("program {}", process % p.get("names")));
                dump(p, script, &mut task, process, restart);
                task
            })
            .collect();
        for task in &tasks {
            script.wait(&mut main, task);
        }
        script.mark(&mut main, "crashed");
    }
    script.end(&mut main);
}

fn dump(p: &Params, script: &mut Script<'_>, task: &mut Task, process: u64, restart: u64) {
    let heap = script.map_anonymous(task, p.mib("core_mib"));
    script.touch_all(task, heap, true);
    let fd = script.open(task, &path(p, process, restart), "O_WRONLY|O_CREAT|O_TRUNC");
    (0..p.mib("core_mib") / CHUNK).for_each(|_| script.io(task, "write", fd, CHUNK));
    script.close(task, fd);
    script.mark(task, &format!("dumped {}", path(p, process, restart)));
    script.exit(task);
}
