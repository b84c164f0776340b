//! vmstat(8) beside the load.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// vmstat at work; ended when dropped.
pub(crate) struct Vmstat(Child);

impl Vmstat {
    /// Begins to write a row every `interval_s` seconds.
    ///
    /// # Errors
    /// A sentence that says what is lacking.
    pub(crate) fn start(interval_s: u32, target: &Path) -> Result<Self, String> {
        let log = File::create(target).map_err(|e| format!("{}: {e}", target.display()))?;
        let child = Command::new("vmstat")
            .args(["-t", "-w", &interval_s.to_string()])
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            // Ctrl-C is for us: the last row would be lost.
            .process_group(0)
            .spawn()
            .map_err(|e| format!("vmstat cannot be started ({e}): it comes with procps"))?;
        Ok(Self(child))
    }
}

impl Drop for Vmstat {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
