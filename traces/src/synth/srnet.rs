//! `srnet`: receivers behind a shared, paced link write what arrives, in pieces that end where segments end.

use super::layout::Image;
use super::params::param;
use super::script::Script;
use super::{Load, ParamSpec, Params};
use crate::store::{LinkKind, LinkSpec};

const PARAMS: &[ParamSpec] = &[
    param("clients", "N", 5, (1, 5), "receivers"),
    param("size_mib", "SZ", 30, (1, 60), "size of each receiver's file, MiB"),
    param("repeats", "REPS", 3, (1, 1000), "passes over it"),
    param("chunk_bytes", "CH", 8192, (1, 1 << 20), "largest write, bytes"),
    param("rate_mb_s", "RATE", 10, (1, 10_000), "the link's rate, 10^6 bytes/s"),
    param("window_bytes", "WIN", 65_536, (1, 1 << 30), "bytes that may wait for one receiver"),
    param("segment_bytes", "MSS", 1448, (1, 65_536), "segment, bytes"),
    param("fresh", "FRESH", 0, (0, 1), "1: the files are made by the first pass; 0: they exist and are overwritten"),
];

pub(super) const LOAD: Load = Load {
    name: "srnet",
    about: "receivers behind one link write their files in pieces cut where segments end, pass after pass",
    params: PARAMS,
    generate,
};

/// Largest budget that the link may save up, bytes.
const BURST_BYTES: u32 = 200_000;

fn generate(p: &Params, script: &mut Script<'_>) {
    let image = Image::mount(script, false);
    let (clients, fresh) = (p.get("clients"), p.on("fresh"));
    let small = |name| u32::try_from(p.get(name)).unwrap_or(u32::MAX);
    if fresh {
        image.everything(script);
    } else {
        (0..clients).for_each(|i| image.existing(script, &format!("f{i}")));
    }
    let link = script.link(LinkSpec {
        kind: LinkKind::Segments {
            mss_bytes: small("segment_bytes"),
            window_bytes: small("window_bytes"),
            burst_bytes: BURST_BYTES,
            tick_ns: 1_000_000,
        },
        rate_bytes_s: p.get("rate_mb_s") * 1_000_000,
        clients: small("clients"),
    });
    let mut main = script.main_task();
    let mut children = Vec::new();
    for i in 0..clients {
        let mut task = script.clone_task(&mut main);
        task.set_client(format!("client {i}"));
        let (path, flags) =
            if fresh { (format!("/mnt/g{i}"), "O_RDWR|O_CREAT|O_TRUNC") } else { (format!("/mnt/f{i}"), "O_RDWR") };
        let fd = script.open(&mut task, &path, flags);
        for r in 0..p.get("repeats") {
            script.seek(&mut task, fd, 0);
            script.receive(&mut task, fd, p.mib("size_mib"), link, i, p.get("chunk_bytes"));
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
