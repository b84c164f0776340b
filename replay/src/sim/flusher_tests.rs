//! When the flusher of balanced write-out begins.

use crate::config::Config;
use crate::program::Op;
use crate::results::MemorySink;
use crate::testing::{Builder, play, write_all};
use crate::variant::Library;
use kreplay_traces::units::Nanos;

const MIB: u64 = 1 << 20;

fn machine(settings: &str) -> Config {
    // Without a journal, whose commits are writes as well.
    let name = format!("linux-6.1+{settings}+writeback.balanced.commit-ms=0");
    Library::builtin().unwrap().select(&[name], &[], &[]).unwrap().remove(0).config
}

/// Writes `mib`, then does nothing for so many seconds.
fn write_and_rest(config: &Config, mib: u64, rest_s: u64) -> MemorySink {
    let mut b = Builder::new();
    let (f, o) = (b.file((mib * 256) as u32, 0), b.ofd());
    let mut ops = write_all(o, f, mib * MIB, 65_536);
    ops.push(Op::Sleep { time: Nanos::from_secs(rest_s) });
    b.task(ops);
    play(&b.build(), config).1
}

#[test]
fn what_lies_dirty_long_enough_is_written_without_anybody_asking() {
    let config = machine("ram-256M");
    let written = |rest_s| write_and_rest(&config, 1, rest_s).counters.unwrap().disk_write_bytes;
    assert_eq!(written(29), 0, "younger than dirty_expire_centisecs");
    assert!(written(37) >= MIB, "30 s and a period of 5 s later it is on its way");
}

#[test]
fn write_out_begins_at_the_background_level_although_nobody_is_slowed_down() {
    // 10 and 20 percent of about 120 MiB: writers run free up to 18 MiB.
    let config = machine("ram-128M");
    let sink = write_and_rest(&config, 16, 3);
    assert!(sink.counters.unwrap().disk_write_bytes >= 2 * MIB, "{:?}", sink.counters);
    let few = write_and_rest(&config, 8, 3);
    assert_eq!(few.counters.unwrap().disk_write_bytes, 0, "below the level nothing happens within a period");
}
