//! Compressed logs that are damaged or cut: where, what came before, and that the other inputs go on.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use kreplay_parsers::ingest::{IngestError, Options, Report, Watch, ingest, plan};
use kreplay_traces::error::Error;
use kreplay_traces::store::{Manifest, TraceWriter, WriterOptions};

/// A log of more than one bzip2 block at level 1, that does not shrink to nothing.
fn log() -> Vec<u8> {
    (0..5000u64)
        .flat_map(|i| {
            let name = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("7 1700000000.{i:06} openat(AT_FDCWD, \"/{name:x}\", O_RDONLY) = 3\n").into_bytes()
        })
        .collect()
}

fn bzip2(text: &[u8]) -> Vec<u8> {
    use std::io::Read;
    let mut packed = Vec::new();
    bzip2::read::BzEncoder::new(text, bzip2::Compression::fast()).read_to_end(&mut packed).unwrap();
    packed
}

struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        Self(dir)
    }

    fn read(&self, names: &[&str], options: &Options) -> Result<(Report, Manifest), IngestError> {
        let paths: Vec<PathBuf> = names.iter().map(|n| self.0.path().join(n)).collect();
        let out = tempfile::tempdir().unwrap();
        let plan = plan(&paths, options)?;
        let mut writer = TraceWriter::create(&out.path().join("trace"), WriterOptions::default())?;
        let stop = AtomicBool::new(false);
        let report = ingest(plan, &mut writer, options, &mut Watch { stop: &stop, progress: &mut |_| {} })?;
        Ok((report, writer.finish()?.1))
    }
}

/// Damaged in its first block, which decodes to wrong text or to none: the first 64 KiB are no log.
fn damaged() -> Vec<u8> {
    let mut packed = bzip2(&log());
    packed[200] ^= 0x55;
    packed
}

#[test]
fn a_log_damaged_at_its_beginning_is_called_damaged_with_the_place() {
    let files =
        Files::new(&[("a.bz2", &damaged()), ("b.gz", b"\x1f\x8a\x08 no magic number"), ("c", b"no log at all\n")]);
    let error = |name: &str| files.read(&[name], &Options::default()).err().unwrap();
    let IngestError::Store(Error::Undecodable { at_bytes, .. }) = error("a.bz2") else { panic!("{}", error("a.bz2")) };
    assert!((200..bzip2(&log()).len() as u64).contains(&at_bytes), "{at_bytes}");
    let said = error("a.bz2").to_string();
    assert!(said.contains(&format!("the bzip2 data is damaged near byte {at_bytes} (")), "{said}");
    assert!(said.contains("bytes of text came before that"), "{said}");
    assert!(error("b.gz").to_string().contains("the gzip data is damaged near byte 0"), "{}", error("b.gz"));
    assert!(error("c").to_string().contains("no known log format"));
}

#[test]
fn the_other_inputs_are_read() {
    let files = Files::new(&[("a.bz2", &damaged()), ("b.bz2", &bzip2(&log())), ("c.log", &log())]);
    let (report, manifest) = files.read(&["a.bz2", "b.bz2", "c.log"], &Options::default()).unwrap();
    assert_eq!(manifest.counts["syscall"], 10_000);
    assert!(report.skipped[0].unreadable && report.skipped[0].why.starts_with("the bzip2 data is damaged near byte"));
    let (report, manifest) = files.read(&[""], &Options::default()).unwrap();
    assert_eq!((manifest.counts["syscall"], report.skipped.len(), report.skipped[0].unreadable), (10_000, 1, true));
    let strict = Options { strict: true, ..Options::default() };
    assert!(matches!(files.read(&["a.bz2", "c.log"], &strict), Err(IngestError::Store(Error::Undecodable { .. }))));
    let files = Files::new(&[("a.bz2", &damaged()), ("b.bz2", &damaged())]);
    assert!(matches!(files.read(&["a.bz2", "b.bz2"], &Options::default()), Err(IngestError::Store(_))));
}

#[test]
fn what_came_before_the_damage_is_kept() {
    let mut packed = bzip2(&log());
    let at = packed.len() - 3000;
    packed[at] ^= 0x55;
    let files = Files::new(&[("a.bz2", &packed), ("b.bz2", &bzip2(&log())[..at])]);
    for (name, what) in [("a.bz2", "is damaged near byte"), ("b.bz2", "ends early, at byte")] {
        let (report, manifest) = files.read(&[name], &Options::default()).unwrap();
        let cut = report.inputs[0].cut.as_ref().unwrap().to_string();
        assert!(cut.contains(what) && manifest.counts["syscall"] > 1000, "{cut}: {}", manifest.counts["syscall"]);
    }
}
