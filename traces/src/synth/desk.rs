//! `desk`: a desktop's afternoon: an image program, and an office program loaded beside it.

use super::layout::Image;
use super::params::param;
use super::script::{Area, Script, Task};
use super::tree;
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param("image_mib", "G", 26, (1, 4096), "size of each of the image program's two buffers, MiB"),
    param("text_mib", "SO", 40, (1, 640), "part of a file that the office program maps and reads, MiB"),
    param("heap_mib", "AN", 24, (1, 4096), "the office program's own memory, MiB"),
    param("wait_s", "SOWAIT", 8, (0, 3600), "seconds the image program waits while the other loads"),
    param("walk", "WALK", 1, (0, 1), "1: begin with a walk over the tree of 15 100 names"),
    param("office_first", "ORD", 0, (0, 1), "1: the office program starts before the image is made"),
    param(
        "grain_pages",
        "",
        16,
        (1, 65_536),
        "pages that a rotation takes from one buffer before it turns to the other; the recorded program took 1",
    ),
];

pub(super) const LOAD: Load = Load {
    name: "desk",
    about: "an image in memory is rotated into a second buffer three times, beside an office program kept active",
    params: PARAMS,
    generate,
};

/// Bytes of a page that a rotation takes at a time, so many rounds make a page.
const ROUNDS: u64 = 64;
const ROTATIONS: u64 = 3;

fn generate(p: &Params, script: &mut Script<'_>) {
    let image = Image::mount(script, false);
    image.existing(script, "big");
    if p.on("walk") {
        tree::declare(script, image);
    }
    let mut main = script.main_task();
    main.set_client("image".into());
    if p.on("walk") {
        tree::walk(script, &mut main);
        script.mark(&mut main, "slocate");
    }
    let (source, target) = if p.on("office_first") {
        office(p, script, &mut main);
        create(p, script, &mut main)
    } else {
        let buffers = create(p, script, &mut main);
        office(p, script, &mut main);
        buffers
    };
    for r in 0..ROTATIONS {
        for _ in 0..ROUNDS {
            rotate(p, script, &mut main, source, target);
        }
        script.mark(&mut main, &format!("gimp-rotate {r}"));
    }
    script.end(&mut main);
}

/// Map both buffers and write the first: the program writes every 256th byte, which is sixteen times each page in
/// turn and counts as one touch.
fn create(p: &Params, script: &mut Script<'_>, task: &mut Task) -> (Area, Area) {
    let source = script.map_anonymous(task, p.mib("image_mib"));
    let target = script.map_anonymous(task, p.mib("image_mib"));
    script.touch_all(task, source, true);
    script.mark(task, "gimp-create");
    (source, target)
}

/// Start the office program; it lives until the load ends.
fn office(p: &Params, script: &mut Script<'_>, main: &mut Task) {
    let mut task = script.clone_task(main);
    task.set_client("office".into());
    let fd = script.open(&mut task, "/mnt/big", "O_RDONLY");
    let text = script.map_file(&mut task, fd, p.mib("text_mib"));
    script.touch_all(&mut task, text, false);
    let heap = script.map_anonymous(&mut task, p.mib("heap_mib"));
    script.touch_all(&mut task, heap, true);
    script.mark(&mut task, "staroffice-load");
    task.repeat_from(script.next_line());
    script.sleep_ms(&mut task, 2000);
    script.touch(&mut task, heap, 0, p.get("heap_mib") * 256 / 16, 16, true);
    script.background(&mut task);
    script.sleep_ms(main, 100);
    script.sleep_ms(main, p.get("wait_s") * 1000);
}

/// One round of a rotation: a byte from each page, in order, to the mirrored page of the other buffer. The pieces of
/// the target go downwards, the pages inside a piece upwards.
fn rotate(p: &Params, script: &mut Script<'_>, task: &mut Task, source: Area, target: Area) {
    let pages = p.get("image_mib") * 256;
    let mut first = 0;
    while first < pages {
        let n = p.get("grain_pages").min(pages - first);
        script.touch(task, source, first, n, 1, false);
        script.touch(task, target, pages - first - n, n, 1, true);
        first += n;
    }
}
