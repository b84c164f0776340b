//! `sr`: the writers of `srnet` without a link.

use super::layout::Image;
use super::params::param;
use super::script::Script;
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("clients", "N", 5, (1, 5), "writers"),
    param("size_mib", "SZ", 30, (1, 60), "size of each writer's file, MiB"),
    param("repeats", "REPS", 3, (1, 1000), "passes over it"),
    param("chunk_bytes", "CH", 8192, (1, 1 << 20), "size of a write, bytes"),
    param("yield", "YIELD", 0, (0, 1), "1: sched_yield after each write"),
    param("fresh", "FRESH", 0, (0, 1), "1: the files are made by the first pass; 0: they exist and are overwritten"),
];

pub(super) const LOAD: Load = Load {
    name: "sr",
    about: "several processes overwrite a file each, as fast as they can, pass after pass",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    let image = Image::mount(script, false);
    let (clients, fresh) = (p.get("clients"), p.on("fresh"));
    if fresh {
        image.everything(script);
    } else {
        (0..clients).for_each(|i| image.existing(script, &format!("f{i}")));
    }
    let (size, chunk) = (p.mib("size_mib"), p.get("chunk_bytes"));
    let mut main = script.main_task();
    let mut children = Vec::new();
    for i in 0..clients {
        let mut task = script.clone_task(&mut main);
        task.set_client(format!("client {i}"));
        let name = if fresh { "g" } else { "f" };
        let flags = if fresh { "O_RDWR|O_CREAT|O_TRUNC" } else { "O_RDWR" };
        let fd = script.open(&mut task, &format!("/mnt/{name}{i}"), flags);
        for r in 0..p.get("repeats") {
            script.seek(&mut task, fd, 0);
            let mut done = 0;
            while done < size {
                let n = chunk.min(size - done);
                script.io(&mut task, "write", fd, n);
                done += n;
                if p.on("yield") {
                    script.plain_call(&mut task, "sched_yield");
                }
            }
            script.mark(&mut task, &format!("rep {i} {r}"));
        }
        script.mark(&mut task, &format!("client done {i}"));
        script.close(&mut task, fd);
        script.exit(&mut task);
        children.push(task);
    }
    for child in &children {
        script.wait(&mut main, child);
    }
    script.end(&mut main);
}
