//! `fileserver`: network clients of a file server, each writing a file and reading it back, again and again.
//!
//! As `netatalk`, with what that leaves out: clients that nobody starts in lockstep, a link in bytes per second, messages cut
//! into segments, and long turns in which one client's requests arrive together.

use super::layout::Image;
use super::params::param;
use super::script::{Script, Task};
use super::{Load, ParamSpec, Params};
use crate::store::{LinkKind, LinkSpec};

const PARAMS: &[ParamSpec] = &[
    param("clients", "", 5, (1, 64), "clients, each with a server process and a file"),
    param("size_mib", "", 30, (1, 1024), "size of each client's file, MiB"),
    param("repeats", "", 10, (1, 1000), "times the file is written and read back"),
    param("chunk_bytes", "", 8192, (512, 1 << 20), "bytes of a read or write of the server"),
    param("turn_kib", "", 0, (0, 65_536), "KiB that a client sends or gets before others have the link; 0: one chunk"),
    param("segment_bytes", "", 0, (0, 65_536), "pieces in which messages share the link; 0: whole messages in turn"),
    param(
        "rate_kb_s",
        "",
        11_860,
        (1, 10_000_000),
        "the link's rate, 10^3 bytes/s, both directions together (100 Mbit Ethernet carries 11 860 of payload)",
    ),
    param("header_bytes", "", 120, (0, 65_536), "bytes of a message beside its data"),
];

pub(super) const LOAD: Load = Load {
    name: "fileserver",
    about: "network clients write a file each and read it back, several times; the server reads and writes small pieces",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let clients = p.get("clients");
    let link = script.link(LinkSpec {
        kind: LinkKind::Fifo,
        rate_bytes_s: p.get("rate_kb_s") * 1000,
        clients: u32::try_from(clients).unwrap_or(u32::MAX),
    });
    let mut tasks: Vec<(Task, i64)> = (0..clients)
        .map(|c| {
            let mut task = script.root_task(&format!("client {c}"));
            if c == 0 {
                script.mark(&mut task, "start");
            }
            let fd = script.open(&mut task, &format!("/mnt/share{c}"), "O_RDWR|O_CREAT|O_TRUNC");
            (task, fd)
        })
        .collect();
    for (client, (task, fd)) in tasks.iter_mut().enumerate() {
        for pass in 0..p.get("repeats") {
            for writes in [true, false] {
                script.seek(task, *fd, 0);
                phase(p, script, task, *fd, link, writes);
                let what = if writes { "written" } else { "read" };
                script.mark(task, &format!("{what} {client} {pass}"));
            }
        }
        script.mark(task, &format!("client done {client}"));
        script.exit(task);
    }
}

/// The whole file once, turn by turn.
fn phase(p: &Params, script: &mut Script<'_>, task: &mut Task, fd: i64, link: usize, writes: bool) {
    let (size, chunk) = (p.mib("size_mib"), p.get("chunk_bytes"));
    let turn = (p.get("turn_kib") << 10).max(chunk);
    let mut done = 0;
    while done < size {
        let bytes = turn.min(size - done);
        let (request, reply) = if writes { (bytes, 0) } else { (0, bytes) };
        message(p, script, task, link, request);
        let mut left = bytes;
        while left > 0 {
            let n = chunk.min(left);
            script.io(task, if writes { "write" } else { "read" }, fd, n);
            left -= n;
        }
        message(p, script, task, link, reply);
        done += bytes;
    }
}

fn message(p: &Params, script: &mut Script<'_>, task: &mut Task, link: usize, data: u64) {
    let mut left = data + p.get("header_bytes");
    let segment = match p.get("segment_bytes") {
        0 => left,
        bytes => bytes,
    };
    while left > 0 {
        let n = segment.min(left);
        script.message(task, link, n);
        left -= n;
    }
}
