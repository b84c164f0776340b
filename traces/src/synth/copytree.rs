//! `copytree`: a tree of files is copied; meanwhile a 16 MiB file is read, or a terminal started.

use super::layout::Image;
use super::params::param;
use super::script::{Script, Task, unmarked};
use super::untar::Lcg;
use super::xterm::Terminal;
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("directories", "", 100, (1, 10_000), "directories of the tree"),
    param("files", "", 100, (1, 10_000), "files in each, of 500 to 24 499 bytes"),
    param("warm_s", "", 5, (0, 3600), "seconds of copying before the other begins"),
    param("xterm", "", 0, (0, 1), "1: start a terminal; 0: read a 16 MiB file"),
    param("idle_mib", "", 6, (0, 256), "memory of the terminal's idle helpers, MiB"),
    param("idle_text_mib", "", 3, (1, 256), "their code and libraries, MiB"),
    param("text_mib", "", 2, (1, 256), "code and libraries of the terminal, MiB"),
    param("heap_mib", "", 1, (1, 256), "its memory, MiB"),
];

pub(super) const LOAD: Load = Load {
    name: "copytree",
    about: "one process copies a tree of small files; after a while another reads 16 MiB, or starts a terminal",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let terminal = Terminal::of(p);
    if p.on("xterm") {
        terminal.files(script);
    } else {
        script.lying_file("/mnt/read", 16 << 20);
    }
    let sizes = sizes(p);
    for (n, bytes) in sizes.iter().enumerate() {
        script.lying_file(&path(p, "tree", n as u64), *bytes);
    }
    let mut main = script.main_task();
    main.set_client("reader".into());
    let idle = p.on("xterm").then(|| terminal.idle(script, &mut main));
    let mut copier = script.run(&mut main, None);
    copier.set_client("copier".into());
    copy(p, script, &mut copier, &sizes);
    script.background(&mut copier);
    script.sleep_ms(&mut main, p.get("warm_s") * 1000);
    match idle {
        Some(idle) => terminal.open(script, &mut main, idle),
        None => {
            script.mark(&mut main, "read starts");
            let fd = script.open(&mut main, "/mnt/read", "O_RDONLY");
            script.read_file(&mut main, fd, 16 << 20, 4096, 0, unmarked);
            script.mark(&mut main, "read done");
        }
    }
    script.end(&mut main);
}

fn sizes(p: &Params) -> Vec<u64> {
    let mut random = Lcg::seeded(0);
    (0..p.get("directories") * p.get("files")).map(|_| u64::from(500 + random.next_value() % 24_000)).collect()
}

fn path(p: &Params, tree: &str, n: u64) -> String {
    format!("/mnt/{tree}/d{}/f{}", n / p.get("files"), n % p.get("files"))
}

fn copy(p: &Params, script: &mut Script<'_>, task: &mut Task, sizes: &[u64]) {
    script.path_call(task, "mkdir", "/mnt/copy");
    for (n, bytes) in sizes.iter().enumerate() {
        let n = n as u64;
        if n.is_multiple_of(p.get("files")) {
            script.path_call(task, "mkdir", &format!("/mnt/copy/d{}", n / p.get("files")));
        }
        let from = script.open(task, &path(p, "tree", n), "O_RDONLY");
        let to = script.open(task, &path(p, "copy", n), "O_WRONLY|O_CREAT");
        let mut left = *bytes;
        while left > 0 {
            let piece = left.min(4096);
            script.io(task, "read", from, piece);
            script.io(task, "write", to, piece);
            left -= piece;
        }
        script.close(task, to);
        script.close(task, from);
    }
}
