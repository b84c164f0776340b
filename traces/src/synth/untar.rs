//! `untar`: many small files are made, then synced.

use super::layout::Image;
use super::params::param;
use super::script::Script;
use super::{Load, ParamSpec, Params};
use crate::store::{LinkKind, LinkSpec};

const PARAMS: &[ParamSpec] = &[
    param("directories", "N", 60, (1, 10_000), "directories made"),
    param("files", "F", 150, (1, 10_000), "files in each, of 500 to 24 499 bytes"),
    param(
        "rate_kb_s",
        "",
        0,
        (0, 10_000_000),
        "rate at which they come from a network, 10^3 bytes/s; 0: they are there",
    ),
];

pub(super) const LOAD: Load = Load {
    name: "untar",
    about: "make directories full of small files, each with one write, then sync",
    params: PARAMS,
    generate,
};

/// The recorded program's random numbers: r = r x 1103515245 + 12345 (mod 2^32), value r / 256.
pub(super) struct Lcg(u32);

impl Lcg {
    /// The generator's start plus an offset.
    pub(super) fn seeded(offset: u32) -> Self {
        Self(12_345_u32.wrapping_add(offset))
    }

    pub(super) fn next_value(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        self.0 >> 8
    }
}

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false).everything(script);
    let mut random = Lcg::seeded(0);
    let link = p
        .on("rate_kb_s")
        .then(|| script.link(LinkSpec { kind: LinkKind::Fifo, rate_bytes_s: p.get("rate_kb_s") * 1000, clients: 1 }));
    let mut task = script.main_task();
    script.path_call(&mut task, "mkdir", "/mnt/t");
    for d in 0..p.get("directories") {
        let directory = format!("/mnt/t/d{d}");
        script.path_call(&mut task, "mkdir", &directory);
        for f in 0..p.get("files") {
            let fd = script.open(&mut task, &format!("{directory}/f{f}"), "O_WRONLY|O_CREAT");
            let bytes = u64::from(500 + random.next_value() % 24_000);
            if let Some(link) = link {
                script.message(&mut task, link, bytes);
            }
            script.io(&mut task, "write", fd, bytes);
            script.close(&mut task, fd);
        }
        if d % 10 == 9 {
            script.mark(&mut task, &format!("untar dirs {}", d + 1));
        }
    }
    script.mark(&mut task, "untar files");
    script.plain_call(&mut task, "sync");
    script.mark(&mut task, "untar+sync");
    script.end(&mut task);
}
