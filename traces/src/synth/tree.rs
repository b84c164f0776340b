//! The directory tree `small` of the image, and the walk over it: `getdents` and `stat` of every name.

use super::layout::{Image, SMALL_INODE};
use super::script::{Script, Task};

/// Block of `small` itself.
pub(super) const SMALL_BLOCK: u64 = 274_565;
/// The file made last when the image was filled, and its inode.
pub(super) const LAST_FILE: &str = "/mnt/small/d099/f149";
pub(super) const LAST_INODE: i64 = SMALL_INODE + (DIRECTORIES * (FILES + 1)) as i64;
/// Directories in it.
const DIRECTORIES: usize = 100;
/// Empty files in each.
const FILES: usize = 150;
/// Bytes of a name's record as the call returns it: header and a name of four letters, padded.
const RECORD_BYTES: usize = 24;
/// Bytes of the caller's buffer.
const BUFFER_BYTES: usize = 4096;

/// Blocks of the directories in the order of the walk, from the disk logs of the runs that walk (alike in all).
const DIRECTORY_BLOCKS: [u64; DIRECTORIES] = [
    274_566, 274_889, 275_180, 275_447, 275_742, 276_058, 276_399, 276_692, 276_991, 277_308, 277_613, 277_909,
    278_230, 278_539, 278_858, 279_142, 279_461, 279_761, 280_034, 280_315, 280_628, 280_920, 281_209, 281_518,
    281_813, 282_111, 282_388, 282_688, 282_997, 283_336, 283_626, 283_910, 284_217, 284_514, 284_814, 285_109,
    285_402, 285_716, 286_027, 286_323, 286_607, 286_909, 287_215, 287_494, 287_809, 288_079, 288_353, 288_661,
    288_957, 289_258, 289_558, 289_832, 290_142, 290_440, 290_753, 291_070, 291_377, 291_664, 291_972, 292_291,
    292_599, 292_907, 293_209, 293_516, 293_819, 294_127, 294_443, 294_725, 295_120, 295_455, 295_758, 296_061,
    296_340, 296_640, 296_948, 297_239, 297_539, 297_836, 298_131, 298_439, 298_704, 299_014, 299_310, 299_598,
    299_901, 300_173, 300_474, 300_770, 301_081, 301_385, 301_697, 301_973, 302_257, 302_555, 302_843, 303_130,
    303_440, 303_718, 304_010, 304_299,
];

fn directory_name(d: usize) -> String {
    format!("/mnt/small/d{d:03}")
}

fn file_name(d: usize, f: usize) -> String {
    format!("/mnt/small/d{d:03}/f{f:03}")
}

/// Declare the tree.
pub(super) fn declare(script: &mut Script<'_>, image: Image) {
    image.directory(script, "/mnt/small", SMALL_INODE, &[SMALL_BLOCK]);
    for (d, block) in DIRECTORY_BLOCKS.iter().enumerate() {
        // Inodes were given out depth first: a directory, then its files.
        let inode = SMALL_INODE + 1 + (d * (FILES + 1)) as i64;
        image.directory(script, &directory_name(d), inode, &[*block]);
        for f in 0..FILES {
            image.empty(script, &file_name(d, f), inode + 1 + f as i64);
        }
    }
}

/// List a directory in pieces of the buffer, with `visit` called for each entry after the piece that holds it.
fn list(
    script: &mut Script<'_>,
    task: &mut Task,
    path: &str,
    entries: usize,
    mut visit: impl FnMut(&mut Script<'_>, &mut Task, usize),
) {
    let fd = script.open(task, path, "O_RDONLY");
    let per_call = BUFFER_BYTES / RECORD_BYTES;
    let mut entry = 0;
    while entry < entries {
        let n = per_call.min(entries - entry);
        script.getdents(task, fd, (n * RECORD_BYTES) as i64);
        for e in entry..entry + n {
            visit(script, task, e);
        }
        entry += n;
    }
    script.getdents(task, fd, 0);
    script.close(task, fd);
}

/// Walk the tree once.
pub(super) fn walk(script: &mut Script<'_>, task: &mut Task) {
    list(script, task, "/mnt/small", DIRECTORIES, |script, task, d| {
        let directory = directory_name(d);
        script.path_call(task, "stat", &directory);
        list(script, task, &directory, FILES, |script, task, f| {
            script.path_call(task, "stat", &file_name(d, f));
        });
    });
}
