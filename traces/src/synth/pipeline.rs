//! `pipeline`: tasks in a chain, each of which reads a whole file into memory, computes, and writes another one.
//!
//! The load of the WRENCH page-cache study (H.-D. Do, V. Hayot-Sasson, R. Ferreira da Silva, C. Steele, H. Casanova,
//! T. Glatard: Modeling the Linux page cache for accurate simulation of data-intensive applications, CLUSTER 2021; its
//! program and raw results: github.com/big-data-lab-team/paper-io-simulation). There three processes, one after the
//! other, `fread` a file of 20, 50, 75 or 100 GB into a new buffer, add one to every byte, and `fwrite` the buffer to a
//! new file, which the next one reads; nothing is synced.
//!
//! The C library asks for 2 GB at a time. The trace has smaller calls, each before its part of the buffer is touched for
//! the first time: in the kernel both happen together, page for page, while the disk goes on.

use super::layout::DATA_DEV;
use super::params::param;
use super::script::Script;
use super::{Load, ParamSpec, Params};
use crate::event::FileRow;
use crate::store::DeviceSpec;
use crate::units::PAGE_BYTES;

const PARAMS: &[ParamSpec] = &[
    param("tasks", "", 3, (1, 64), "processes in the chain"),
    param("size_mb", "", 20_000, (1, 10_000_000), "size of each file, 10^6 bytes"),
    param("compute_ms", "", 28_000, (0, 100_000_000), "what each task computes between reading and writing, ms"),
    param("chunk_kib", "", 1024, (4, 1 << 20), "KiB of a read or write"),
];

pub(super) const LOAD: Load = Load {
    name: "pipeline",
    about: "a chain of processes: each reads a whole file into memory, computes, and writes the file that the next one reads",
    params: PARAMS,
    generate,
};

fn path(n: u64) -> String {
    format!("/mnt/file{n}")
}

fn generate(p: &Params, script: &mut Script<'_>) {
    let bytes = p.get("size_mb") * 1_000_000;
    let tasks = p.get("tasks");
    // Room for all files and as much again.
    let sectors = Some(2 * (tasks + 1) * bytes.div_ceil(512));
    script.made.devices = vec![DeviceSpec { dev: DATA_DEV, sectors, ..DeviceSpec::default() }];
    script.file(&FileRow {
        path: &path(1),
        size_bytes: Some(bytes.cast_signed()),
        dev: Some(DATA_DEV),
        ..FileRow::default()
    });
    let mut main = script.main_task();
    for n in 1..=tasks {
        let mut task = script.clone_task(&mut main);
        task.set_client(format!("task {n}"));
        let buffer = script.map_anonymous(&mut task, bytes);
        let pieces = || {
            let chunk = p.get("chunk_kib") << 10;
            (0..bytes).step_by(usize::try_from(chunk).unwrap_or(usize::MAX)).map(move |at| (at, chunk.min(bytes - at)))
        };

        let input = script.open(&mut task, &path(n), "O_RDONLY");
        script.mark(&mut task, &format!("begin {n}"));
        for (at, len) in pieces() {
            script.io(&mut task, "read", input, len);
            script.touch(&mut task, buffer, at / PAGE_BYTES, len.div_ceil(PAGE_BYTES), 1, true);
        }
        script.close(&mut task, input);
        script.mark(&mut task, &format!("read {n}"));

        script.compute_us(&mut task, p.get("compute_ms") * 1000);
        script.mark(&mut task, &format!("computed {n}"));

        let output = script.open(&mut task, &path(n + 1), "O_WRONLY|O_CREAT|O_TRUNC");
        for (_, len) in pieces() {
            script.io(&mut task, "write", output, len);
        }
        script.close(&mut task, output);
        script.mark(&mut task, &format!("wrote {n}"));
        script.exit(&mut task);
        script.wait(&mut main, &task);
    }
    script.end(&mut main);
}
