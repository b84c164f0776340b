//! The one error type of the command line: what, where, what to do, and the exit code.

use crate::exit::Exit;
use kreplay_replay::results::ResultError;
use kreplay_replay::variant::VariantError;
use std::fmt::Write as _;
use std::path::Path;

/// Result of a subcommand.
pub(crate) type Result<T> = std::result::Result<T, CliError>;

/// An error as the user sees it.
#[derive(Debug)]
pub(crate) struct CliError {
    /// What went wrong, with the place below it if there is one.
    pub(crate) what: String,
    /// What was done about it, or what stays as it was.
    pub(crate) note: Option<String>,
    /// What the user can do.
    pub(crate) help: Option<String>,
    /// Exit code.
    pub(crate) exit: Exit,
}

impl CliError {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { what: what.into(), note: None, help: None, exit }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// A file of ours that could not be written.
    pub(crate) fn unwritable(path: &Path, e: &std::io::Error) -> Self {
        Self::new(Exit::Output, format!("cannot write {}: {e}", path.display()))
            .help("choose another place with -o, or free some space; then run the same command again")
    }

    /// The text for standard error.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("error: {}\n", self.what);
        if let Some(note) = &self.note {
            let _ = writeln!(text, "note: {note}");
        }
        if let Some(help) = &self.help {
            let _ = writeln!(text, "help: {help}");
        }
        text
    }

    /// The same as one JSON object.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "error": self.what,
            "note": self.note,
            "help": self.help,
            "exit": self.exit as u8,
        })
    }
}

impl From<VariantError> for CliError {
    fn from(e: VariantError) -> Self {
        let help = e.help.clone();
        let bare = VariantError { help: None, ..e };
        Self { help, ..Self::new(Exit::Usage, bare.to_string()) }
    }
}

impl From<ResultError> for CliError {
    fn from(e: ResultError) -> Self {
        let error = Self::new(Exit::Output, e.to_string());
        if e.is_disk_full() {
            error.help("free some space and run the same command again: finished cells are kept")
        } else {
            error.help("choose another folder with -o")
        }
    }
}

impl From<kreplay_traces::error::Error> for CliError {
    fn from(e: kreplay_traces::error::Error) -> Self {
        use kreplay_traces::error::{Doing, Error as E};
        let exit = match &e {
            E::NoSpace { .. } | E::NotWritable { .. } | E::NotOurs { .. } | E::Exists { .. } | E::Locked { .. } => {
                Exit::Output
            }
            E::Io { doing, .. } if *doing != Doing::Reading => Exit::Output,
            E::Param { .. } => Exit::Usage,
            E::Encode { .. } | E::Misuse(_) => Exit::Internal,
            _ => Exit::Input,
        };
        let help = e.hint().map(str::to_owned);
        Self { help, ..Self::new(exit, e.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_error_keeps_its_place_and_moves_its_hint() {
        let mut library = kreplay_replay::variant::Library::builtin().unwrap();
        let e = library.select(&["linux-2.4.16".into()], &[], &["machine.rum=1".into()]).unwrap_err();
        let e = CliError::from(e);
        assert_eq!(e.exit, Exit::Usage);
        let text = e.render();
        assert!(text.contains("--> --set:1:1") && text.ends_with("help: did you mean `ram`?\n"), "{text}");
    }
}
