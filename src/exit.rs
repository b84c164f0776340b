//! Exit codes. They are documented in README.md and never change their meaning.

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All done.
    Ok = 0,
    /// A bug in this program.
    Internal = 1,
    /// The command line, a variant or a setting is wrong.
    Usage = 2,
    /// The input cannot be read or understood at all.
    Input = 3,
    /// Done, but parts of the input were skipped.
    Skipped = 4,
    /// A comparison or a proof did not hold.
    Bars = 5,
    /// Some cells failed; the others are whole.
    Cells = 6,
    /// The output cannot be written: not ours, locked, not writable, no space.
    Output = 7,
    /// Stopped from the keyboard or by a signal.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn codes_are_those_of_the_readme() {
        let all = [
            Exit::Ok,
            Exit::Internal,
            Exit::Usage,
            Exit::Input,
            Exit::Skipped,
            Exit::Bars,
            Exit::Cells,
            Exit::Output,
            Exit::Interrupted,
        ];
        assert_eq!(all.map(|e| e as u8), [0, 1, 2, 3, 4, 5, 6, 7, 130]);
    }
}
