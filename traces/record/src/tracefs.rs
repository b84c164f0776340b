//! The kernel's tracing file system, as far as block events need it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where it is mounted on every kernel since 4.1.
const PLACE: &str = "/sys/kernel/tracing";

/// A folder of it: the top level, or an instance.
#[derive(Clone, Debug)]
pub(crate) struct TraceFs {
    folder: PathBuf,
}

impl TraceFs {
    /// The top level, mounted if it is not.
    ///
    /// # Errors
    /// A sentence that says which right is lacking.
    pub(crate) fn top() -> Result<Self, String> {
        let folder = PathBuf::from(PLACE);
        if !folder.join("trace").exists() {
            let mount = ["-t", "tracefs", "nodev", PLACE];
            let done = Command::new("mount").args(mount).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
            if !done {
                return Err(format!("{PLACE} cannot be read or mounted: that takes root (CAP_SYS_ADMIN)"));
            }
        }
        let top = Self { folder };
        match OpenOptions::new().append(true).open(top.path("trace_marker")) {
            Ok(_) => Ok(top),
            Err(e) => Err(format!("{PLACE} cannot be written ({e}): that takes root, or a group that owns it")),
        }
    }

    /// An instance of its own, in which events can be switched on without disturbing anybody.
    pub(crate) fn instance(&self, name: &str) -> io::Result<Self> {
        self.remove_stale();
        let folder = self.folder.join("instances").join(name);
        fs::create_dir(&folder)?;
        Ok(Self { folder })
    }

    /// Instances of recordings that were killed.
    fn remove_stale(&self) {
        for entry in fs::read_dir(self.folder.join("instances")).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|n| n.strip_prefix("kreplay-")) else { continue };
            if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
                let stale = Self { folder: entry.path() };
                let _ = stale.write("events/enable", "0");
                let _ = stale.remove();
            }
        }
    }

    /// Removes this instance.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_dir(&self.folder)
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    /// Writes a setting.
    pub(crate) fn write(&self, file: &str, value: &str) -> io::Result<()> {
        OpenOptions::new().write(true).truncate(true).open(self.path(file))?.write_all(value.as_bytes())
    }

    /// Reads a setting, without the line's end.
    pub(crate) fn read(&self, file: &str) -> io::Result<String> {
        Ok(fs::read_to_string(self.path(file))?.trim_end().to_owned())
    }

    /// Of `a [b] c` the chosen one.
    pub(crate) fn chosen(&self, file: &str) -> Option<String> {
        let text = self.read(file).ok()?;
        let (_, rest) = text.split_once('[')?;
        rest.split_once(']').map(|(chosen, _)| chosen.to_owned())
    }

    /// Events that did not fit into the buffers, over all processors.
    pub(crate) fn lost(&self) -> u64 {
        let folders = fs::read_dir(self.path("per_cpu")).into_iter().flatten().flatten();
        folders.filter_map(|f| fs::read_to_string(f.path().join("stats")).ok()).map(|text| lost_in(&text)).sum()
    }
}

fn lost_in(stats: &str) -> u64 {
    let counts = stats.lines().filter(|l| l.starts_with("overrun") || l.starts_with("dropped events"));
    counts.filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overruns_and_drops_are_lost() {
        assert_eq!(lost_in("entries: 5\noverrun: 3\ncommit overrun: 9\nbytes: 1\ndropped events: 4\n"), 7);
    }

    #[test]
    fn the_chosen_one_stands_in_brackets() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("trace_clock"), "local [mono] boot\n").unwrap();
        let fs_ = TraceFs { folder: dir.path().to_owned() };
        assert_eq!(fs_.chosen("trace_clock").as_deref(), Some("mono"));
        assert!(!fs_.has("trace"));
    }
}
