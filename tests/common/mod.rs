//! Running the program and reading what it says.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::Path;
use std::process::Command;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kreplay");

/// What a run of the program left.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Exit code and both streams as one text for a snapshot.
    pub(crate) fn transcript(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// Runs the program in `dir`, whose path is written DIR in what it says.
pub(crate) fn kreplay_in(dir: &Path, args: &[&str]) -> Said {
    let output =
        Command::new(PROGRAM).args(args).current_dir(dir).env("COLUMNS", "100").output().expect("the program runs");
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let text = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes)
            .replace(&real.display().to_string(), "DIR")
            .replace(&dir.display().to_string(), "DIR")
    };
    Said { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Runs the program in a folder of its own.
pub(crate) fn kreplay(args: &[&str]) -> Said {
    let dir = tempfile::tempdir().expect("a temporary folder");
    kreplay_in(dir.path(), args)
}
