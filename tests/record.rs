//! `kreplay record`: on a loop device where the machine allows it, and what every user may do.

mod common;

use common::kreplay_in;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system on a loop device, gone when dropped.
struct Lab {
    dir: tempfile::TempDir,
    device: String,
}

fn did(program: &str, args: &[&str]) -> Option<String> {
    let done = Command::new(program).args(args).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

impl Lab {
    /// A sentence says what the machine does not allow.
    fn new() -> Result<Self, &'static str> {
        if did("id", &["-u"]).as_deref() != Some("0") {
            return Err("not root");
        }
        if !["strace", "filefrag", "vmstat", "mkfs.ext4", "losetup"].iter().all(|p| did("which", &[p]).is_some()) {
            return Err("strace, filefrag, vmstat, mkfs.ext4 or losetup is not installed");
        }
        if !Path::new("/sys/kernel/tracing/trace").exists()
            && did("mount", &["-t", "tracefs", "x", "/sys/kernel/tracing"]).is_none()
        {
            return Err("no tracefs");
        }
        if !Path::new("/sys/kernel/tracing/events/block/block_rq_issue").exists() {
            return Err("this kernel has no block events");
        }
        let dir = tempfile::tempdir().map_err(|_| "no temporary folder")?;
        let path = |name: &str| dir.path().join(name).display().to_string();
        fs::File::create(path("image")).and_then(|f| f.set_len(64 << 20)).map_err(|_| "no space")?;
        fs::create_dir(path("disk")).map_err(|_| "no space")?;
        let device = did("losetup", &["-f", "--show", &path("image")]).ok_or("no loop device")?;
        let lab = Self { device: device.clone(), dir };
        did("mkfs.ext4", &["-q", &device]).ok_or("mkfs.ext4 failed")?;
        did("mount", &[&device, &lab.path("disk").display().to_string()]).ok_or("mounting is not allowed")?;
        Ok(lab)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        did("umount", &[&self.path("disk").display().to_string()]);
        did("losetup", &["-d", &self.device]);
    }
}

/// Writes and syncs a file of a mebibyte, whatever was cached before.
const LOAD: &str = "dd if=/dev/zero of=disk/new bs=4096 count=256 conv=fsync 2>/dev/null";

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says why")]
fn a_load_on_a_loop_device_is_recorded_and_reads_back() {
    let lab = match Lab::new() {
        Ok(lab) => lab,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let dir = lab.dir.path();
    fs::write(dir.join("disk/old"), vec![7; 100_000]).unwrap();
    for (out, how) in [("a", "auto"), ("b", "events")] {
        let args =
            ["record", "-o", out, "--root", "disk", "--block", how, "--json", "--strict", "--", "sh", "-c", LOAD];
        let said = kreplay_in(dir, &args);
        assert_eq!(said.code, 0, "{}", said.err);
        let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(
            (&facts["missing"], &facts["exit_status"]),
            (&serde_json::json!([]), &serde_json::json!(0)),
            "{facts}"
        );
        if how == "events" {
            assert_eq!(facts["block_source"], "events");
        }
        // The second run overwrites what the first one made: it was there before.
        let layout = fs::read_to_string(dir.join(out).join("layout.txt")).unwrap();
        assert!(layout.contains("disk/old ino ") && layout.contains(" size 100000\n"), "{layout}");

        let trace = format!("trace-{out}");
        let said = kreplay_in(dir, &["ingest", out, "-o", &trace, "--json", "--strict"]);
        assert_eq!(said.code, 0, "{}", said.err);
        let said = kreplay_in(dir, &["inspect", &trace, "--json"]);
        assert!(said.out.contains("\"fsync\"") || said.out.contains("\"write\""), "{}", said.out);
        let btt = kreplay_in(dir, &["inspect", "--btt", "--json", &trace]);
        let btt: serde_json::Value = serde_json::from_str(&btt.out).unwrap();
        let written = sectors_written(&fs::read_to_string(dir.join(out).join(name_of(how, dir, out))).unwrap());
        assert!(written >= 2048, "a mebibyte reached the disk: {written} sectors, {btt}");
    }
    assert_eq!(fs::read_to_string("/sys/kernel/tracing/current_tracer").unwrap_or_default().trim(), "nop");
    let instances = fs::read_dir("/sys/kernel/tracing/instances")
        .map_or(0, |d| d.flatten().filter(|e| e.file_name().to_string_lossy().starts_with("kreplay-")).count());
    assert_eq!(instances, 0, "no instance stays");
}

/// The file with block events, of whichever source it was.
fn name_of(how: &str, dir: &Path, out: &str) -> &'static str {
    let tracer = how == "auto" && dir.join(out).join("blktrace.txt").exists();
    if tracer { "blktrace.txt" } else { "block.ftrace.txt" }
}

/// Sectors of completed writes, from either text.
fn sectors_written(log: &str) -> u64 {
    let of = |line: &str| {
        let completed = line.contains("  C ") || line.contains("block_rq_complete:");
        let fields: Vec<_> = line.split_whitespace().collect();
        let plus = fields.iter().position(|f| *f == "+")?;
        let write = fields[..plus].iter().any(|f| f.len() <= 4 && f.starts_with('W') || f.starts_with("FW"));
        (completed && write).then(|| fields.get(plus + 1)?.parse::<u64>().ok()).flatten()
    };
    log.lines().filter_map(of).sum()
}

#[test]
fn an_ordinary_user_gets_what_there_is_and_is_told_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let plain = ["record", "-o", "rec", "--no-strace", "--no-block", "--no-vmstat", "--", "sh", "-c", "echo said"];
    let said = kreplay_in(dir.path(), &plain);
    assert_eq!((said.code, said.out.as_str()), (0, "said\n"), "{}", said.err);
    assert!(said.err.contains("recorded 0.") && said.err.contains("next: kreplay run rec -o OUT"), "{}", said.err);
    let again = kreplay_in(dir.path(), &plain);
    assert_eq!(again.code, 2, "{}", again.err);
    assert!(again.err.contains("rec exists and is not empty"), "{}", again.err);

    let nowhere = ["record", "-o", "x", "--root", "/proc", "--no-strace", "--no-vmstat", "-t", "1"];
    let said = kreplay_in(dir.path(), &nowhere);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("not recorded: block events: /proc lies on no block device"), "{}", said.err);
    let mut strict = nowhere.to_vec();
    strict[2] = "y";
    strict.push("--strict");
    let said = kreplay_in(dir.path(), &strict);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(dir.path().join("x").is_dir() && !dir.path().join("y").exists());
}

#[test]
fn nothing_to_record_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["record", "-o", "x"][..], &["record", "-o", "x", "-p", "1", "--", "true"], &["record", "--", "true"]]
    {
        let said = kreplay_in(dir.path(), args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
    }
    assert!(!dir.path().join("x").exists());
}
