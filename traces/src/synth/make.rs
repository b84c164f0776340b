//! `make`: a parallel build, each job a compiler that reads a source and shared headers, computes in its memory, and writes an object.

use super::layout::Image;
use super::params::param;
use super::program::Program;
use super::script::{Script, Task};
use super::untar::Lcg;
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("jobs", "", 12, (1, 64), "compilers at a time"),
    param("units", "", 240, (1, 100_000), "sources compiled"),
    param("headers", "", 120, (0, 10_000), "headers that every source may need"),
    param("headers_each", "", 40, (0, 1000), "headers that a source reads"),
    param("heap_mib", "", 5, (1, 256), "memory of a compiler, MiB"),
    param("text_mib", "", 3, (1, 256), "code of the compiler, shared, MiB"),
    param("think_ms", "", 2000, (0, 600_000), "computing of a compilation, ms"),
];

pub(super) const LOAD: Load = Load {
    name: "make",
    about: "compilers side by side read sources and shared headers, compute in memory of their own, write objects",
    params: PARAMS,
    generate,
};

const SOURCE_BYTES: u64 = 24 << 10;
const HEADER_BYTES: u64 = 8 << 10;
const OBJECT_BYTES: u64 = 20 << 10;

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let compiler =
        Program { path: "/mnt/cc1", text_bytes: p.mib("text_mib"), data_bytes: 0, heap_bytes: 4096, think_us: 0 };
    compiler.files(script);
    (0..p.get("headers")).for_each(|h| script.lying_file(&format!("/mnt/include/h{h}.h"), HEADER_BYTES));
    (0..p.get("units")).for_each(|u| script.lying_file(&format!("/mnt/src/u{u}.c"), SOURCE_BYTES));
    let mut main = script.main_task();
    let jobs: Vec<Task> = (0..p.get("jobs"))
        .map(|job| {
            let mut task = script.clone_task(&mut main);
            task.set_client(format!("job {job}"));
            let mut unit = job;
            while unit < p.get("units") {
                let mut one = script.run(&mut task, Some(compiler.path));
                one.set_client(format!("job {job}"));
                compile(p, script, &mut one, &compiler, unit);
                script.exit(&mut one);
                script.wait(&mut task, &one);
                unit += p.get("jobs");
            }
            script.exit(&mut task);
            task
        })
        .collect();
    for job in &jobs {
        script.wait(&mut main, job);
    }
    script.end(&mut main);
}

fn read_all(script: &mut Script<'_>, task: &mut Task, path: &str, bytes: u64) {
    let fd = script.open(task, path, "O_RDONLY");
    (0..bytes.div_ceil(4096)).for_each(|_| script.io(task, "read", fd, 4096.min(bytes)));
    script.close(task, fd);
}

/// One compilation: parse, then four passes over the memory, then the object.
fn compile(p: &Params, script: &mut Script<'_>, task: &mut Task, compiler: &Program<'_>, unit: u64) {
    const PASSES: u64 = 4;
    compiler.start(script, task, unit as u32);
    read_all(script, task, &format!("/mnt/src/u{unit}.c"), SOURCE_BYTES);
    let mut random = Lcg::seeded(unit as u32 * 31);
    let heap = script.map_anonymous(task, p.mib("heap_mib"));
    let pages = p.mib("heap_mib") / 4096;
    let headers = p.get("headers_each").min(p.get("headers"));
    for h in 0..headers {
        let which = u64::from(random.next_value()) % p.get("headers");
        read_all(script, task, &format!("/mnt/include/h{which}.h"), HEADER_BYTES);
        let upto = |h: u64| pages * h / headers;
        script.touch(task, heap, upto(h), upto(h + 1) - upto(h), 1, true);
    }
    for _ in 0..PASSES {
        script.touch_all(task, heap, true);
        script.compute_us(task, p.get("think_ms") * 1000 / PASSES);
    }
    let fd = script.open(task, &format!("/mnt/obj/u{unit}.o"), "O_WRONLY|O_CREAT|O_TRUNC");
    script.io(task, "write", fd, OBJECT_BYTES);
    script.close(task, fd);
}
