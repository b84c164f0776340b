//! `receive`: several receivers overwrite a file each in the pieces in which data arrive, pass after pass.
//!
//! As `srnet`, but every write is a row of the trace, so that what a write costs leads back to its line. From a network come
//! whole segments, as many as have arrived: pieces that are no multiple of a page. From a local pipe come pages.

use super::layout::Image;
use super::params::param;
use super::script::{Script, Task};
use super::untar::Lcg;
use super::{Load, ParamSpec, Params};
use crate::store::{LinkKind, LinkSpec};

const PARAMS: &[ParamSpec] = &[
    param("clients", "", 5, (1, 64), "receivers"),
    param("size_mib", "", 30, (1, 1024), "size of each receiver's file, MiB"),
    param("repeats", "", 10, (1, 1000), "passes over it; the first makes the file"),
    param("segment_bytes", "", 1448, (1, 65_536), "segment of the network, bytes"),
    param("segments", "", 5, (1, 64), "most segments in a piece; each piece has 1 to so many"),
    param("chunk_bytes", "", 8192, (512, 1 << 20), "largest write, bytes"),
    param("pipe", "", 0, (0, 1), "1: a local pipe, pieces of a page"),
    param("rate_kb_s", "", 4000, (1, 10_000_000), "rate at which data arrive, 10^3 bytes/s, all receivers together"),
];

pub(super) const LOAD: Load = Load {
    name: "receive",
    about: "receivers write a file each in pieces as they arrive over a network or a pipe, pass after pass without truncating",
    params: PARAMS,
    generate,
};

/// A pipe hands over a page.
const PIPE_BYTES: u64 = 4096;

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let clients = p.get("clients");
    let link = script.link(LinkSpec {
        kind: LinkKind::Fifo,
        rate_bytes_s: p.get("rate_kb_s") * 1000,
        clients: u32::try_from(clients).unwrap_or(u32::MAX),
    });
    for client in 0..clients {
        let mut task = script.root_task(&format!("receiver {client}"));
        if client == 0 {
            script.mark(&mut task, "start");
        }
        let mut random = Lcg::seeded(client as u32 * 7919);
        let fd = script.open(&mut task, &format!("/mnt/received{client}"), "O_RDWR|O_CREAT|O_TRUNC");
        for pass in 0..p.get("repeats") {
            script.seek(&mut task, fd, 0);
            receive(p, script, &mut task, fd, link, &mut random);
            script.mark(&mut task, &format!("pass {client} {pass}"));
        }
        script.close(&mut task, fd);
        script.mark(&mut task, &format!("client done {client}"));
        script.exit(&mut task);
    }
}

fn receive(p: &Params, script: &mut Script<'_>, task: &mut Task, fd: i64, link: usize, random: &mut Lcg) {
    let size = p.mib("size_mib");
    let mut done = 0;
    while done < size {
        let piece = if p.on("pipe") {
            PIPE_BYTES
        } else {
            p.get("segment_bytes") * (1 + u64::from(random.next_value()) % p.get("segments"))
        };
        let piece = piece.min(p.get("chunk_bytes")).min(size - done);
        script.message(task, link, piece);
        script.io(task, "write", fd, piece);
        done += piece;
    }
}
