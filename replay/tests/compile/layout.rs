//! Page ids and places on disk.

use kreplay_replay::compile::{OwnedFile, OwnedSyscall};
use kreplay_replay::program::{Extent, FileKind};
use kreplay_traces::units::Sectors;

use crate::trace::*;

fn placed(path: &str, offset: i64, sector: i64, len: i64) -> OwnedFile {
    OwnedFile {
        path: path.to_owned(),
        size_bytes: Some(1 << 20),
        dev: Some(7 << 20),
        inode: Some(14),
        extent_offset_bytes: Some(offset),
        extent_sector_512: Some(sector),
        extent_len_bytes: Some(len),
        directory: false,
    }
}

#[test]
fn recorded_extents_are_taken_and_the_rest_goes_behind() {
    let mut t = Trace::new();
    t.tables.side.files.push(placed("/m/a", 0, 265_728, 131_072));
    t.tables.side.files.push(placed("/m/a", 131_072, 267_264, 917_504));
    let p = t
        .then(open("/m/a", "O_RDONLY", 3))
        .then(io("read", 3, 1 << 20))
        .then(open("/m/new", "O_WRONLY|O_CREAT|O_EXCL", 4))
        .then(io("write", 4, 100_000))
        .compile();
    assert_eq!(p.devices[0].name, "7:0");
    let (_, a) = file(&p, "/m/a");
    assert_eq!(
        a.extents,
        [
            Extent { page: 0, pages: 32, sector: Sectors(265_728) },
            Extent { page: 32, pages: 224, sector: Sectors(267_264) }
        ]
    );
    assert!(a.indirect.is_empty(), "these extents leave no room for one");
    let (_, new) = file(&p, "/m/new");
    // The last recorded sector is 269055, in block group 1: group 2 is the first free one.
    assert!(new.extents[0].sector.0 > 2 * 32_768 * 8);
    assert_eq!(new.pages, 25);
    assert_eq!(new.indirect.len(), 1);
    assert_eq!(new.sector_of(12).0 - new.sector_of(11).0, 16, "the indirect block lies between");
    assert_eq!(p.coverage.bytes_placed, 1 << 20);
    assert!(p.devices[0].sectors.0 > new.sector_of(24).0);
}

#[test]
fn page_ids_are_dense_and_metadata_is_shared() {
    let mut t = Trace::new().file("/d/a", 5000).then(open("/d/a", "O_RDONLY", 3)).then(io("read", 3, 5000));
    t = t.then(open("/d/b", "O_RDONLY", 4)).then(io("read", 4, 70_000));
    let p = t.compile();
    let meta = p.files.last().expect("there is one");
    assert_eq!((meta.path.as_str(), meta.kind), ("[meta]", FileKind::Metadata));
    let (a, b) = (file(&p, "/d/a").1, file(&p, "/d/b").1);
    assert_eq!(a.inode_page, b.inode_page, "one block holds 32 inodes");
    assert_eq!(a.name_page, Some(file(&p, "/d").1.first_page));
    assert_eq!(b.indirect.len(), 1);
    assert_eq!(meta.pages, 2, "an inode-table block and an indirect block");
    let mut next = 0;
    for f in &p.files {
        assert_eq!(f.first_page, next);
        next += f.pages;
    }
    assert_eq!(p.pages, next);
    assert_eq!(p.validate(), Ok(()));
}

#[test]
fn names_in_large_directories_lie_in_different_blocks() {
    let mut t = Trace::new();
    for i in 0..1000 {
        t.tables.side.files.push(OwnedFile {
            path: format!("/s/file{i:04}"),
            size_bytes: Some(0),
            ..OwnedFile::default()
        });
    }
    let p = t.then(on_path("stat", "/s/file0000")).then(on_path("stat", "/s/file0999")).compile();
    let (first, last) = (file(&p, "/s/file0000").1, file(&p, "/s/file0999").1);
    // 24 bytes for . and .., 16 for each name: the last one begins at 16008.
    assert_eq!(last.name_page.zip(first.name_page).map(|(l, f)| l - f), Some(3));
    assert_eq!(file(&p, "/s").1.pages, 4);
}

#[test]
fn read_ahead_has_room_up_to_the_end_of_the_file() {
    let p = Trace::new()
        .file("/big", 1 << 30)
        .file("/small", 5 * 4096)
        .then(open("/big", "O_RDONLY", 3))
        .then(io("read", 3, 4096))
        .then(open("/small", "O_RDONLY", 4))
        .then(io("read", 4, 4096))
        .compile();
    assert_eq!(file(&p, "/big").1.pages, 1 + 1024);
    assert_eq!(file(&p, "/small").1.pages, 5);
}

#[test]
fn the_same_trace_gives_the_same_program() {
    let build = || {
        let mut t = Trace::new();
        for i in 0..50 {
            t = t.then(open(&format!("/d{}/f{i}", i % 7), "O_RDWR|O_CREAT", 10 + i)).then(io(
                "write",
                10 + i,
                5000 * (i + 1),
            ));
        }
        t.then(OwnedSyscall { path2: Some("/e".into()), ..on_path("rename", "/d3") }).then(exit()).compile()
    };
    assert_eq!(format!("{:?}", build()), format!("{:?}", build()));
}
