//! `desktop`: the three runs of a desktop experiment of September 2001, with an audio stream all the time.
//!
//! Order 0: walk the file system as locate does, make a 2560 x 2560 image, start an office suite, a browser and a few other
//! applications until memory is short, rotate the image. Order 1: without the walk. Order 2: the suite first, then the image.
//! What the report leaves open (sizes of programs, computing) is a parameter; the defaults are those of programs of the time.

use super::audio::{self, Audio};
use super::layout::Image;
use super::params::param;
use super::program::Program;
use super::script::{Area, Script, Task};
use super::{Load, ParamSpec, Params};

const PARAMS: &[ParamSpec] = &[
    param(
        "order",
        "",
        0,
        (0, 2),
        "0: walk, image, applications; 1: without the walk; 2: without it, the office suite before the image",
    ),
    param(
        "names",
        "",
        100_000,
        (0, 1_000_000),
        "names that the walk looks at, 150 in a directory; a distribution of the time installs about so many",
    ),
    param("image_mib", "", 25, (1, 1024), "an image in memory, MiB (2560 x 2560 pixels of 4 bytes)"),
    param("suite_text_mib", "", 32, (1, 1024), "code of the office suite, MiB"),
    param("suite_data_mib", "", 8, (0, 1024), "resources that it reads, MiB"),
    param("suite_heap_mib", "", 24, (1, 1024), "its memory, MiB"),
    param("apps", "", 3, (0, 32), "other applications"),
    param("app_text_mib", "", 8, (1, 1024), "code of each, MiB"),
    param("app_heap_mib", "", 10, (1, 1024), "memory of each, MiB"),
    param("session_mib", "", 20, (0, 1024), "memory of the session that is there before: window system, desktop, MiB"),
    param("suite_think_ms", "", 12_000, (0, 600_000), "computing while the suite starts, ms"),
    param("rotate_think_ms", "", 12_000, (0, 600_000), "computing while the image is rotated, ms"),
    audio::SECONDS,
    audio::STREAM,
];

pub(super) const LOAD: Load = Load {
    name: "desktop",
    about: "walk the file system, make an image, start an office suite and applications, rotate the image; audio plays",
    params: PARAMS,
    generate,
};

/// Names in a directory of the walk.
const NAMES: u64 = 150;
/// Tile of the image editor, pages (64 x 64 pixels of 4 bytes).
const TILE_PAGES: u64 = 4;

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false);
    let order = p.get("order");
    let suite = Program {
        path: "/mnt/suite",
        text_bytes: p.mib("suite_text_mib"),
        data_bytes: p.mib("suite_data_mib"),
        heap_bytes: p.mib("suite_heap_mib"),
        think_us: p.get("suite_think_ms") * 1000,
    };
    suite.files(script);
    let paths: Vec<String> = (0..p.get("apps")).map(|n| format!("/mnt/app{n}")).collect();
    let apps: Vec<Program<'_>> = paths
        .iter()
        .map(|path| Program {
            path,
            text_bytes: p.mib("app_text_mib"),
            data_bytes: 2 << 20,
            heap_bytes: p.mib("app_heap_mib"),
            think_us: 1_000_000,
        })
        .collect();
    apps.iter().for_each(|app| app.files(script));
    if order == 0 {
        declare_names(p, script);
    }
    let audio = Audio { seconds: p.get("audio_s"), stream: p.on("audio_stream") };
    if p.on("audio_s") {
        audio.file(script);
    }
    let mut main = script.main_task();
    main.set_client("image".into());
    if p.on("audio_s") {
        audio.start(script, &mut main);
    }
    if p.on("session_mib") {
        session(p, script, &mut main);
    }
    if order == 0 {
        walk(p, script, &mut main);
        script.mark(&mut main, "walked");
    }
    let (source, target) = if order == 2 {
        start(script, &mut main, &suite, "suite", 1);
        create(p, script, &mut main)
    } else {
        let image = create(p, script, &mut main);
        start(script, &mut main, &suite, "suite", 1);
        image
    };
    for (n, app) in apps.iter().enumerate() {
        start(script, &mut main, app, &format!("app {n}"), 2 + n as u32);
    }
    script.mark(&mut main, "rotating");
    rotate(p, script, &mut main, source, target);
    script.mark(&mut main, "rotated");
    script.end(&mut main);
}

fn name(n: u64) -> (String, String) {
    let directory = format!("/mnt/tree/d{:04}", n / NAMES);
    let file = format!("{directory}/f{:03}", n % NAMES);
    (directory, file)
}

fn declare_names(p: &Params, script: &mut Script<'_>) {
    for n in 0..p.get("names") {
        let (_, file) = name(n);
        script.lying_file(&file, 0);
    }
}

/// As updatedb: every directory is listed and every name in it looked up.
fn walk(p: &Params, script: &mut Script<'_>, task: &mut Task) {
    let names = p.get("names");
    let mut n = 0;
    while n < names {
        let (directory, _) = name(n);
        let fd = script.open(task, &directory, "O_RDONLY");
        script.getdents(task, fd, (NAMES * 24) as i64);
        for m in n..(n + NAMES).min(names) {
            script.path_call(task, "stat", &name(m).1);
        }
        script.getdents(task, fd, 0);
        script.close(task, fd);
        n += NAMES;
    }
}

/// What runs on a desktop all the time: it uses a sixteenth of its memory every second.
fn session(p: &Params, script: &mut Script<'_>, main: &mut Task) {
    let mut task = script.run(main, None);
    task.set_client("session".into());
    let pages = p.mib("session_mib") / 4096;
    let heap = script.map_anonymous(&mut task, p.mib("session_mib"));
    script.touch_all(&mut task, heap, true);
    task.repeat_from(script.next_line());
    script.sleep_ms(&mut task, 1000);
    script.touch(&mut task, heap, 0, pages / 16, 1, true);
    script.background(&mut task);
}

/// Two images: the picture and where its rotation goes.
fn create(p: &Params, script: &mut Script<'_>, task: &mut Task) -> (Area, Area) {
    let source = script.map_anonymous(task, p.mib("image_mib"));
    let target = script.map_anonymous(task, p.mib("image_mib"));
    script.touch_all(task, source, true);
    script.mark(task, "created");
    (source, target)
}

/// Start a program and wait until it is up, as a user does; it then uses a little of its memory now and then.
fn start(script: &mut Script<'_>, main: &mut Task, program: &Program<'_>, name: &str, seed: u32) {
    script.mark(main, &format!("{name} starts"));
    let mut up = script.pipe(main);
    let mut task = script.run(main, Some(program.path));
    task.set_client(name.to_owned());
    let (text, heap) = program.start(script, &mut task, seed);
    script.post(&mut task, &mut up);
    task.repeat_from(script.next_line());
    script.sleep_ms(&mut task, 2000);
    script.touch(&mut task, heap, 0, program.heap_bytes / 4096 / 16, 16, true);
    script.touch(&mut task, text, 0, program.text_bytes / 4096 / 64, 16, false);
    script.background(&mut task);
    script.take(main, &mut up);
    script.mark(main, &format!("{name} up"));
}

/// Tile by tile: read one of the picture, write the mirrored one of the other.
fn rotate(p: &Params, script: &mut Script<'_>, task: &mut Task, source: Area, target: Area) {
    let pages = p.get("image_mib") * 256;
    let think = p.get("rotate_think_ms") * 1000 * TILE_PAGES / pages;
    let mut first = 0;
    while first < pages {
        let n = TILE_PAGES.min(pages - first);
        script.touch(task, source, first, n, 1, false);
        script.touch(task, target, pages - first - n, n, 1, true);
        script.compute_us(task, think);
        first += n;
    }
}
