//! Trace directories, and the generated loads in them.

use kreplay_replay::compile::{CompileOptions, StoredTrace, compile};
use kreplay_replay::program::{Op, Program};
use kreplay_traces::store::{TraceDir, WriterOptions};
use kreplay_traces::synth;

fn generate(load: &str, settings: &[&str]) -> Program {
    let at = tempfile::tempdir().expect("a folder");
    let (load, params) = synth::find(load, settings).expect("the load is known");
    let path = at.path().join("trace");
    let (path, _) = synth::write_trace(load, &params, None, &path, WriterOptions::default()).expect("it is written");
    let dir = TraceDir::open(path).expect("it opens");
    compile(&mut StoredTrace::new(&dir).expect("side tables"), &CompileOptions::default()).expect("it compiles")
}

fn count(p: &Program, what: impl Fn(&Op) -> bool) -> usize {
    p.tasks.iter().flat_map(|t| &t.ops).filter(|o| what(o)).count()
}

#[test]
fn base_reads_and_writes_what_it_says() {
    let p = generate("base", &[]);
    let s = p.summary();
    // r0 and r1 of 16 MiB, w written and read back, 32 MiB.
    assert_eq!(s.read_bytes.get(), 64 << 20);
    assert_eq!(s.written_bytes.get(), 32 << 20);
    assert_eq!(count(&p, |o| matches!(o, Op::Fsync { .. })), 1);
    assert_eq!(p.coverage.unknown_fds, 0);
    assert!(!p.marks.is_empty());
    let big = p.files.iter().find(|f| f.path.ends_with("/r0")).expect("r0 is there");
    assert_eq!((big.initial_size, big.pages, big.exists), (16 << 20, 4096, true));
}

#[test]
fn every_load_compiles() {
    for load in synth::LOADS {
        let p = generate(load.name, &[]);
        assert_eq!(p.coverage.unknown_fds, 0, "{}", load.name);
        assert!(p.coverage.calls > 0, "{}", load.name);
        assert!(p.tasks.iter().any(|t| !t.background), "{}", load.name);
        assert_eq!(count(&p, |o| matches!(o, Op::External { .. })), 0, "{}: everything is in the trace", load.name);
        let computes = ["audio", "desktop", "interleave", "make", "xterm"].contains(&load.name);
        let thinks = p.tasks.iter().flat_map(|t| &t.think).any(|t| t.get() > 0);
        assert!(computes || !thinks, "{}: scripts do not think", load.name);
    }
}
