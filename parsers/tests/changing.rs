//! A file that changes while it is read: what was read is kept, and the report says that it is not the file's whole.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::sync::atomic::AtomicBool;

use kreplay_parsers::ingest::{Options, Watch, ingest, plan};
use kreplay_traces::store::{TraceWriter, WriterOptions};

#[test]
fn a_file_that_grows_while_it_is_read_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("strace.log");
    let line = |i: u32| format!("7 17000{i:05}.100000 read(3</mnt/f>, \"\"..., 4096) = 4096 <0.000020>\n");
    fs::write(&log, (0..90_000).map(line).collect::<String>()).unwrap();
    let options = Options::default();
    let plan = plan(std::slice::from_ref(&log), &options).unwrap();
    let mut writer = TraceWriter::create(&dir.path().join("trace"), WriterOptions::default()).unwrap();
    let stop = AtomicBool::new(false);
    let mut grown = false;
    let mut grow = |_: kreplay_parsers::ingest::Progress<'_>| {
        if !std::mem::replace(&mut grown, true) {
            let mut file = OpenOptions::new().append(true).open(&log).unwrap();
            file.write_all(line(90_000).as_bytes()).unwrap();
        }
    };
    let report = ingest(plan, &mut writer, &options, &mut Watch { stop: &stop, progress: &mut grow }).unwrap();
    assert!(grown, "the log is long enough for progress to be told");
    assert!(report.inputs[0].changed.is_some(), "{:?}", report.inputs[0]);
    let (_, manifest) = writer.finish().unwrap();
    assert!(manifest.count("syscall") >= 90_000);
}
