//! Whole recordings, as far as an ordinary user may: no tracing of the kernel, no strace.

use super::*;

fn plan(output: PathBuf, root: &Path, words: &[&str]) -> Plan {
    Plan {
        output,
        load: Load::Command(words.iter().map(|w| (*w).to_owned()).collect()),
        limit: None,
        root: Some(root.to_owned()),
        device: None,
        strace: false,
        block: None,
        vmstat_s: None,
        layout_files: 0,
        cgroup: None,
        buffer_kib: 64,
        facts: Map::new(),
        strict: true,
        output_to_stderr: true,
    }
}

fn run_json(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("run.json")).unwrap()).unwrap()
}

#[test]
fn a_command_is_recorded_with_its_machine_and_both_clocks() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("rec");
    let plan = plan(out.clone(), dir.path(), &["sh", "-c", "exit 3"]);
    let recorded = record(&plan, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert_eq!((recorded.status, recorded.cut, recorded.path.as_path()), (Some(3), false, out.as_path()));
    let facts = run_json(&out);
    assert_eq!((&facts["format"], &facts["exit_status"]), (&json!("capture-1"), &json!(3)));
    assert_eq!(facts["facts"]["command"], "sh -c exit 3");
    assert!(facts["start_realtime"].as_f64().unwrap() > 1.6e9 && facts["start_monotonic"].as_f64().unwrap() > 0.0);
    assert!(facts["end_realtime"].as_f64() >= facts["start_realtime"].as_f64());
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["rec"], "nothing but the recording");
}

#[test]
fn a_limit_and_an_interrupt_cut_a_load_and_keep_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut limited = plan(dir.path().join("a"), dir.path(), &["sleep", "1000"]);
    limited.limit = Some(Duration::from_millis(100));
    let recorded = record(&limited, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert_eq!((recorded.cut, recorded.status), (true, Some(128 + 15)));

    let stopped = plan(dir.path().join("b"), dir.path(), &["sleep", "1000"]);
    let stop = AtomicBool::new(false);
    let recorded = record(&stopped, &stop, &mut |_| stop.store(true, Ordering::Relaxed)).unwrap();
    assert!(recorded.cut);
    assert_eq!(run_json(&dir.path().join("b"))["cut"], true);
}

#[test]
fn what_cannot_be_is_refused_before_the_load_runs() {
    let dir = tempfile::tempdir().unwrap();
    let never = AtomicBool::new(false);
    let mark = dir.path().join("ran");
    let touch = format!("touch {}", mark.display());
    let words = ["sh", "-c", touch.as_str()];

    let full = dir.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("x"), "precious").unwrap();
    let error = record(&plan(full.clone(), dir.path(), &words), &never, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    assert_eq!(fs::read(full.join("x")).unwrap(), b"precious");

    let mut elsewhere = plan(dir.path().join("o"), dir.path(), &words);
    elsewhere.device = Some("/no/such/device".into());
    assert!(record(&elsewhere, &never, &mut |_| {}).is_err());

    let mut lacking = plan(dir.path().join("o"), Path::new("/proc"), &words);
    lacking.block = Some(BlockSource::Auto);
    let error = record(&lacking, &never, &mut |_| {}).unwrap_err();
    assert!(error.to_string().starts_with("not recorded: block events: /proc lies on no block device"), "{error}");

    let missing = plan(dir.path().join("o"), dir.path(), &["/no/such/program"]);
    assert!(matches!(record(&missing, &never, &mut |_| {}), Err(RecordError::Start { .. })));
    assert!(!mark.exists() && !dir.path().join("o").exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no folder of a recording that was not");
}

#[test]
fn without_strict_what_is_missing_is_told_and_the_rest_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let mut lacking = plan(dir.path().join("o"), Path::new("/proc"), &["true"]);
    lacking.block = Some(BlockSource::Auto);
    lacking.strict = false;
    let recorded = record(&lacking, &AtomicBool::new(false), &mut |_| {}).unwrap();
    assert_eq!(recorded.missing.len(), 1);
    assert!(run_json(&dir.path().join("o"))["missing"][0].as_str().unwrap().contains("no block device"));
}
