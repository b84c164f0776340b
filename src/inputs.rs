//! What the inputs of a command line mean: folders of several recordings, and the same one named twice.

use crate::stderr;
use kreplay_parsers::ingest::recordings_below;
use kreplay_traces::store::TraceDir;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One path for each trace that the inputs become: a folder of recordings stands for each of them, and what is named twice
/// counts once. Says so on standard error.
pub(crate) fn expand(inputs: &[PathBuf], quiet: bool) -> Vec<PathBuf> {
    let say = |text: String| {
        if !quiet {
            stderr::say(&format!("{text}\n"));
        }
    };
    let mut out: Vec<PathBuf> = Vec::new();
    let mut seen = BTreeSet::new();
    for input in inputs {
        let several = if TraceDir::is_trace(input) { None } else { recordings_below(input) };
        let paths = match several {
            Some(several) => {
                say(format!("{}: {} recordings, each a trace of its own", input.display(), several.recordings.len()));
                for other in several.others {
                    say(format!("not read: {}: it lies in none of the recordings", other.display()));
                }
                several.recordings
            }
            None => vec![input.clone()],
        };
        for path in paths {
            let same = path.canonicalize().unwrap_or_else(|_| path.clone());
            if seen.insert(same) || path.as_os_str() == "-" {
                out.push(path);
            } else {
                say(format!("{} is named twice and read once", path.display()));
            }
        }
    }
    out
}

/// Name of the trace made from an input: its own, told apart by its number where there are several.
pub(crate) fn trace_name(input: &Path, number: usize) -> PathBuf {
    let absolute = std::path::absolute(input).unwrap_or_else(|_| input.to_owned());
    let name = absolute.file_name().map_or_else(|| "trace".into(), |n| n.to_string_lossy().into_owned());
    if number == 0 { name.into() } else { format!("{name}-{}", number + 1).into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_of_recordings_is_several_and_a_repeated_one_is_one() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("run.json"), r#"{"format": "capture-1"}"#).unwrap();
        }
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let got = expand(&[dir.path().to_owned(), dir.path().join("./b"), a.clone()], true);
        assert_eq!(got, [a.clone(), b]);
        assert_eq!((trace_name(&a, 0), trace_name(&a, 2)), ("a".into(), "a-3".into()));
    }
}
