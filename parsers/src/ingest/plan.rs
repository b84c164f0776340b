//! Which files are to be read, and as what.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kreplay_traces::error::Error as TraceError;
use kreplay_traces::input::{Compression, Input};
use walkdir::WalkDir;

use super::error::IngestError;
use super::recording::Recording;
use super::{Options, Skipped};
use crate::diag::Diagnostics;
use crate::format::{Format, HEAD_BYTES, Head, ParseOptions};
use crate::known::KnownFiles;
use crate::registry::{DetectError, by_id, detect_with};

/// Largest `run.json` that is looked at, bytes.
const RUN_JSON_BYTES: u64 = 1 << 20;

/// A file to be read.
pub struct Planned {
    /// Path as given or found.
    pub path: PathBuf,
    /// Its format.
    pub format: &'static dyn Format,
    /// Options for its parser.
    pub parse: ParseOptions,
    /// Length as stored, bytes; `None` for a stream.
    pub bytes: Option<u64>,
    /// Index into [`Plan::recordings`] of the recording that it belongs to.
    pub recording: Option<usize>,
    /// The files of a set that is read as one (the per-CPU files of a binary trace); empty for a single file.
    pub parts: Vec<PathBuf>,
    /// A stream, already open because its head was looked at.
    pub(super) open: Option<(Vec<u8>, Input)>,
}

/// What an ingest will do.
#[derive(Default)]
pub struct Plan {
    /// Files to be read, in the order of reading: sorted by path within each directory.
    pub inputs: Vec<Planned>,
    /// Files of directories that are not read, and why.
    pub skipped: Vec<Skipped>,
    /// Descriptions that recordings have of themselves.
    pub recordings: Vec<Recording>,
    /// What a reader of the trace should know about the choice of files.
    pub warnings: Vec<String>,
}

impl Plan {
    /// Bytes to be read, as stored.
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().filter_map(|i| i.bytes).sum()
    }
}

/// Walk the paths and find each file's format. Files that are named must be logs; files found in a directory may be
/// anything and are listed as skipped.
///
/// # Errors
/// If a path cannot be read, a named file has no known format, a directory is empty or holds no log.
pub fn plan(paths: &[PathBuf], options: &Options) -> Result<Plan, IngestError> {
    let forced = match &options.format {
        Some(id) => Some(by_id(id).ok_or_else(|| IngestError::UnknownFormat(id.clone()))?),
        None => None,
    };
    if paths.iter().filter(|p| is_stdin(p)).count() > 1 {
        return Err(IngestError::StdinTwice);
    }
    let (mut plan, mut damaged) = (Plan::default(), None);
    for path in &matched(paths)? {
        if !is_stdin(path) && fs::metadata(path).is_ok_and(|m| m.is_dir()) {
            directory(path, forced, options, &mut plan)?;
        } else {
            let mut set = if options.single { Vec::new() } else { siblings(path) };
            if set.is_empty() {
                match named(path, forced, options) {
                    Ok(input) => plan.inputs.push(input),
                    // Nothing can be read of it; the others go on.
                    Err(IngestError::Store(e @ TraceError::Undecodable { .. }))
                        if paths.len() > 1 && !options.strict =>
                    {
                        let why = without_path(&e, path);
                        damaged.get_or_insert(e);
                        plan.skipped.push(Skipped { path: path.clone(), why, unreadable: true });
                    }
                    Err(e) => return Err(e),
                }
                continue;
            }
            set.retain(|part| !plan.inputs.iter().any(|i| i.parts.contains(part)));
            let (mut idle, mut busy): (Vec<_>, Vec<_>) = set.into_iter().partition(|p| is_idle_cpu(p));
            if busy.is_empty() {
                // Nothing at all was traced: the first of them says so.
                busy.append(&mut idle);
            }
            let inputs = busy.iter().map(|p| named(p, forced, options)).collect::<Result<Vec<_>, _>>()?;
            let mut inputs = merge_sets(inputs);
            join_idle(&mut inputs, idle);
            plan.inputs.extend(inputs);
        }
    }
    drop_repeated(&mut plan);
    match damaged {
        Some(damaged) if plan.inputs.is_empty() => Err(damaged.into()),
        _ => Ok(plan),
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The paths, with patterns that the shell did not expand (`'name.blktrace.*'`) replaced by the files that fit.
fn matched(paths: &[PathBuf]) -> Result<Vec<PathBuf>, IngestError> {
    let mut out = Vec::new();
    for path in paths {
        let text = path.to_string_lossy();
        if !text.contains(['*', '?', '[']) || path.exists() {
            out.push(path.clone());
            continue;
        }
        let no_match = || IngestError::NoMatch { pattern: text.clone().into_owned() };
        let name = path.file_name().ok_or_else(no_match)?.to_string_lossy().into_owned();
        let glob = globset::Glob::new(&name).map_err(|_| no_match())?.compile_matcher();
        let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let entries = fs::read_dir(dir).map_err(|_| no_match())?;
        let mut found: Vec<PathBuf> = entries
            .flatten()
            .filter(|e| glob.is_match(e.file_name()))
            .map(|e| path.with_file_name(e.file_name()))
            .collect();
        if found.is_empty() {
            return Err(no_match());
        }
        found.sort();
        out.extend(found);
    }
    Ok(out)
}

/// A file that is named twice, by whatever path, counts once.
fn drop_repeated(plan: &mut Plan) {
    let mut seen = BTreeMap::new();
    let mut kept = Vec::new();
    for input in std::mem::take(&mut plan.inputs) {
        let files = if input.parts.is_empty() { std::slice::from_ref(&input.path) } else { &input.parts[..] };
        let same = files.iter().filter(|f| !is_stdin(f)).filter_map(|f| fs::canonicalize(f).ok()).collect::<Vec<_>>();
        if let Some(first) = seen.get(&same) {
            let why = format!("the same file as {first}, which is read once");
            plan.warnings.push(format!("{} is {why}", input.path.display()));
            plan.skipped.push(Skipped::unwanted(input.path, why));
            continue;
        }
        if !same.is_empty() {
            seen.insert(same, input.path.display().to_string());
        }
        kept.push(input);
    }
    plan.inputs = kept;
}

/// A folder of several recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Several {
    /// Each directory that has a description of its own (`run.json`), sorted.
    pub recordings: Vec<PathBuf>,
    /// Files that lie in none of them.
    pub others: Vec<PathBuf>,
}

/// The recordings below a directory, where it is a folder of several; `None` where it is one recording, or just a folder
/// of logs. Times of different recordings have nothing in common, so each is a trace of its own.
pub fn recordings_below(dir: &Path) -> Option<Several> {
    if !dir.is_dir() || dir.join("run.json").is_file() {
        return None;
    }
    let (files, _) = walk(dir).ok()?;
    let described: Vec<PathBuf> = files
        .iter()
        .filter(|p| p.file_name().is_some_and(|n| n == "run.json") && matches!(recording(p), Ok(Some(_))))
        .filter_map(|p| p.parent().map(Path::to_path_buf))
        .collect();
    let inside = |file: &&PathBuf| described.iter().any(|d| file.starts_with(d));
    let others = files.iter().filter(|f| !inside(f)).cloned().collect();
    (described.len() > 1).then_some(Several { recordings: described, others })
}

/// A file that the user named.
fn named(path: &Path, forced: Option<&'static dyn Format>, options: &Options) -> Result<Planned, IngestError> {
    let mut input = Input::open(path, options.limits)?;
    let bytes = input.bytes_expected();
    let (head, cut) = read_head(&mut input)?;
    let format = match (chosen(&head, forced, &options.parse), cut) {
        (Ok(format), _) => format,
        // What there is of a damaged file need not look like its format: the damage is the news.
        (Err(_), Some(cut)) => return Err(cut.into()),
        (Err(why), None) => {
            return Err(match damage(&mut input, path) {
                Some(damage) => damage.into(),
                None => IngestError::Undetected { path: path.to_path_buf(), why },
            });
        }
    };
    // A pipe gives its bytes once: what was looked at must be parsed too.
    let open = bytes.is_none().then_some((head, input));
    Ok(Planned {
        path: path.to_path_buf(),
        format,
        parse: parse_options(path, options, None),
        bytes,
        recording: None,
        parts: Vec::new(),
        open,
    })
}

/// The format asked for, or the one that fits the head. Nothing at all is no log of any format.
fn chosen(
    head: &[u8],
    forced: Option<&'static dyn Format>,
    parse: &ParseOptions,
) -> Result<&'static dyn Format, DetectError> {
    if head.is_empty() {
        return Err(DetectError::Empty);
    }
    let complete = head.len() < HEAD_BYTES;
    match forced {
        Some(format) => Ok(format),
        None => detect_with(Head { bytes: head, complete }, parse),
    }
}

fn directory(
    dir: &Path,
    forced: Option<&'static dyn Format>,
    options: &Options,
    plan: &mut Plan,
) -> Result<(), IngestError> {
    let (files_before, skipped_before) = (plan.inputs.len(), plan.skipped.len());
    let (files, links) = walk(dir)?;
    let found_files = files.len() + links.len();
    for path in links {
        plan.skipped.push(Skipped::unwanted(path, "a symbolic link or special file"));
    }
    let mut recordings = BTreeMap::new();
    for path in files.iter().filter(|p| p.file_name().is_some_and(|n| n == "run.json")) {
        match recording(path) {
            Ok(Some(found)) => {
                recordings.insert(path.parent().map(Path::to_path_buf), plan.recordings.len());
                plan.recordings.push(found);
            }
            Ok(None) => plan.skipped.push(Skipped::unwanted(path.clone(), "a description of another kind")),
            Err(why) => {
                plan.skipped.push(Skipped { path: path.clone(), why, unreadable: fs::File::open(path).is_err() })
            }
        }
    }
    let mut idle = Vec::new();
    for path in files.iter().filter(|p| p.file_name().is_none_or(|n| n != "run.json")) {
        if is_idle_cpu(path) {
            idle.push(path.clone());
            continue;
        }
        let recording = recordings.get(&path.parent().map(Path::to_path_buf)).copied();
        match found(path, forced, options) {
            Ok((format, bytes)) => plan.inputs.push(Planned {
                path: path.clone(),
                format,
                parse: parse_options(path, options, recording.map(|r| &plan.recordings[r])),
                bytes,
                recording,
                parts: Vec::new(),
                open: None,
            }),
            Err((_, false)) if is_document(path) => {
                plan.skipped.push(Skipped::unwanted(path.clone(), "a text for people, no log"));
            }
            Err((why, unreadable)) => plan.skipped.push(Skipped { path: path.clone(), why, unreadable }),
        }
    }
    let mut found = merge_sets(plan.inputs.split_off(files_before));
    for path in join_idle(&mut found, idle) {
        plan.skipped.push(Skipped::unwanted(path, DetectError::Empty.to_string()));
    }
    plan.skipped[skipped_before..].sort_by(|a, b| a.path.cmp(&b.path));
    let found = one_block_source(found, &mut plan.skipped);
    plan.inputs.extend(found);
    exclude_known_files(&mut plan.inputs[files_before..]);
    let is_log = |i: &Planned| i.format.id() != crate::layout::Layout.id();
    if files.is_empty() && plan.skipped.len() == skipped_before {
        return Err(IngestError::EmptyDirectory { path: dir.to_path_buf() });
    }
    if !plan.inputs[files_before..].iter().any(is_log) {
        let reasons: Vec<String> =
            plan.skipped[skipped_before..].iter().map(|s| format!("{}: {}", name(&s.path), s.why)).collect();
        return Err(IngestError::NoLogs { path: dir.to_path_buf(), files: found_files, reasons });
    }
    Ok(())
}

/// `name.blktrace.N` cut into the set's name and the CPU.
fn cpu_file(path: &Path) -> Option<(PathBuf, u32)> {
    let cpu = path.extension()?.to_str()?.parse().ok()?;
    let set = path.with_extension("");
    (set.extension()? == "blktrace").then_some((set, cpu))
}

/// The per-CPU files that belong to a path: to one of them, to `name.blktrace`, or to the bare name that blktrace was
/// given. Empty where the path is something else.
fn siblings(path: &Path) -> Vec<PathBuf> {
    let set = match cpu_file(path) {
        Some((set, _)) => set,
        None if path.exists() => return Vec::new(),
        None if path.extension().is_some_and(|e| e == "blktrace") => path.to_path_buf(),
        None => {
            let mut name = path.as_os_str().to_owned();
            name.push(".blktrace");
            name.into()
        }
    };
    let dir = set.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut files: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|e| {
            let path = set.with_file_name(e.file_name());
            let (of, cpu) = cpu_file(&path)?;
            (of == set).then_some((cpu, path))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}

/// Put the per-CPU files of each binary trace together, in the place of the first.
fn merge_sets(inputs: Vec<Planned>) -> Vec<Planned> {
    let mut out: Vec<Planned> = Vec::new();
    for input in inputs {
        let set = cpu_file(&input.path).filter(|_| input.format.id() == crate::blktrace::Blktrace.id());
        let Some((set, _)) = set else {
            out.push(input);
            continue;
        };
        match out.iter_mut().find(|i| i.path == set && !i.parts.is_empty()) {
            Some(first) => {
                first.bytes = first.bytes.zip(input.bytes).map(|(a, b)| a + b);
                first.parts.push(input.path);
                first.parts.sort_by_key(|p| cpu_file(p).map(|(_, cpu)| cpu));
            }
            None => out.push(Planned { parts: vec![input.path], path: set, ..input }),
        }
    }
    out
}

/// The file of a CPU that had nothing to trace: blktrace leaves it empty.
fn is_idle_cpu(path: &Path) -> bool {
    cpu_file(path).is_some() && fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() == 0)
}

/// Let the empty files of idle CPUs join the sets that they belong to, with no records; gives those without a set.
fn join_idle(inputs: &mut [Planned], idle: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut alone = Vec::new();
    for path in idle {
        let set = cpu_file(&path).map(|(set, _)| set);
        match inputs.iter_mut().find(|i| !i.parts.is_empty() && Some(&i.path) == set.as_ref()) {
            Some(input) => {
                input.parts.push(path);
                input.parts.sort_by_key(|p| cpu_file(p).map(|(_, cpu)| cpu));
            }
            None => alone.push(path),
        }
    }
    alone
}

/// A recording may keep its block trace in several forms; the same events must not count twice. blkparse's text
/// goes first (it names the processes, which a converted binary may not), then the binary form, then ftrace's.
fn one_block_source(inputs: Vec<Planned>, skipped: &mut Vec<Skipped>) -> Vec<Planned> {
    let rank = |i: &Planned| ["blkparse", "blktrace", "ftrace"].iter().position(|id| *id == i.format.id());
    let mut best: BTreeMap<usize, (usize, PathBuf)> = BTreeMap::new();
    for input in &inputs {
        if let (Some(recording), Some(rank)) = (input.recording, rank(input)) {
            let entry = best.entry(recording).or_insert((rank, input.path.clone()));
            if rank < entry.0 {
                *entry = (rank, input.path.clone());
            }
        }
    }
    let (kept, dropped): (Vec<_>, Vec<_>) = inputs.into_iter().partition(|i| match (i.recording, rank(i)) {
        (Some(recording), Some(_)) => best.get(&recording).is_none_or(|b| b.1 == i.path),
        _ => true,
    });
    skipped.extend(dropped.into_iter().map(|i| {
        let other = i.recording.and_then(|r| best.get(&r)).map_or_else(String::new, |b| name(&b.1));
        Skipped::unwanted(i.path, format!("the same block events as {other}"))
    }));
    kept
}

/// A layout written after the run (`layout.after.txt`) is only for the files that the run made.
fn exclude_known_files(inputs: &mut [Planned]) {
    let is_layout = |i: &Planned| i.format.id() == crate::layout::Layout.id();
    let is_after = |i: &Planned| is_layout(i) && name(&i.path).contains(".after.");
    let mut known: BTreeMap<Option<PathBuf>, KnownFiles> = BTreeMap::new();
    for input in inputs.iter().filter(|i| is_layout(i) && !is_after(i)) {
        let Ok(text) = Input::open(&input.path, Default::default()) else { continue };
        let files = known.entry(input.path.parent().map(Path::to_path_buf)).or_default();
        // What is wrong with it is said when it is read for its rows.
        let mut diag = Diagnostics::new();
        let _ = super::read(&[], text.into(), input.format, &input.parse, files, &mut diag, &mut |_| true);
    }
    for input in inputs.iter_mut().filter(|i| is_after(i)) {
        input.parse.after_run =
            Some(known.get(&input.path.parent().map(Path::to_path_buf)).cloned().unwrap_or_default());
    }
}

/// Marks a folder that this tool writes its output into; reading it back as logs would feed a run its own results.
const OUTPUT_MARKER: &str = ".kreplay";

/// Regular files below a directory sorted by path, and everything else that is no directory. Output folders are left out.
fn walk(dir: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), IngestError> {
    let (mut files, mut others) = (Vec::new(), Vec::new());
    let mut walk = WalkDir::new(dir).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|e| IngestError::Walk {
            path: e.path().unwrap_or(dir).to_path_buf(),
            why: e.io_error().map_or_else(|| e.to_string(), ToString::to_string),
        })?;
        if entry.depth() > 0 && entry.file_type().is_dir() && entry.path().join(OUTPUT_MARKER).is_file() {
            walk.skip_current_dir();
        } else if entry.file_type().is_file() {
            files.push(entry.into_path());
        } else if !entry.file_type().is_dir() && entry.depth() > 0 {
            others.push(entry.into_path());
        }
    }
    Ok((files, others))
}

fn recording(path: &Path) -> Result<Option<Recording>, String> {
    let length = fs::metadata(path).map_err(|e| e.to_string())?.len();
    if length > RUN_JSON_BYTES {
        return Err(format!("{length} bytes are too many for a description"));
    }
    Recording::parse(path, &fs::read(path).map_err(|e| e.to_string())?)
}

/// The format of a file found in a directory, or why it is skipped and whether that is because it cannot be read.
fn found(
    path: &Path,
    forced: Option<&'static dyn Format>,
    options: &Options,
) -> Result<(&'static dyn Format, Option<u64>), (String, bool)> {
    let cannot =
        |e: TraceError| (without_path(&e, path), matches!(e, TraceError::Io { .. } | TraceError::Undecodable { .. }));
    let mut input = Input::open(path, options.limits).map_err(cannot)?;
    let bytes = input.bytes_expected();
    let (head, cut) = read_head(&mut input).map_err(cannot)?;
    match (chosen(&head, forced, &options.parse), cut) {
        (Ok(format), _) => Ok((format, bytes)),
        (Err(_), Some(cut)) => Err(cannot(cut)),
        (Err(why), None) => Err(damage(&mut input, path).map_or_else(|| (why.to_string(), false), cannot)),
    }
}

/// An error in words, without the path that it begins with.
fn without_path(error: &TraceError, path: &Path) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{}: ", path.display())).map_or_else(|| text.clone(), str::to_owned)
}

/// A file that describes the others, by its name.
fn is_document(path: &Path) -> bool {
    let stem = path.file_stem().map(|s| s.to_string_lossy().to_ascii_uppercase());
    let named = stem.is_some_and(|s| ["README", "LICENSE", "COPYING", "NOTES", "CHANGELOG"].contains(&s.as_str()));
    let written =
        path.extension().is_some_and(|e| ["md", "rst", "html", "pdf"].iter().any(|k| e.eq_ignore_ascii_case(k)));
    named || written
}

/// The first bytes of an input, and the error that ended them, if one did: the real reading meets it again.
fn read_head(input: &mut Input) -> Result<(Vec<u8>, Option<TraceError>), TraceError> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let read = input.take(HEAD_BYTES as u64).read_to_end(&mut head);
    match read {
        Err(e) if head.is_empty() => Err(input.explain(e)),
        Err(e) => Ok((head, Some(input.explain(e)))),
        Ok(_) => Ok((head, None)),
    }
}

/// How much more of a compressed input is looked at where its first bytes are no log, decompressed bytes.
const DAMAGE_BYTES: u64 = 16 << 20;

/// What is wrong with a compressed input whose first bytes are no log. Damage may decode to wrong text, until a checksum at
/// the end of the block (900 KB for bzip2) tells; or it begins at the magic number, and only the name tells.
fn damage(input: &mut Input, path: &Path) -> Option<TraceError> {
    if input.compression() == Compression::None {
        let compression = Compression::of_name(path)?;
        let source = io::Error::new(io::ErrorKind::InvalidData, "it does not begin as such data, as its name says");
        return Some(TraceError::Undecodable {
            path: path.to_owned(),
            compression,
            at_bytes: 0,
            text_bytes: 0,
            source,
        });
    }
    let read = io::copy(&mut input.take(DAMAGE_BYTES), &mut io::sink());
    read.err().map(|e| input.explain(e)).filter(|e| matches!(e, TraceError::Undecodable { .. }))
}

/// The user's parser options, with what the file's name and the recording add.
fn parse_options(path: &Path, options: &Options, recording: Option<&Recording>) -> ParseOptions {
    let mut parse = options.parse.clone();
    // `strace -ff -o NAME` writes NAME.TID.
    let suffix = path.extension().and_then(|e| e.to_str()).filter(|e| e.bytes().all(|b| b.is_ascii_digit()));
    let suffix = suffix.filter(|_| cpu_file(path).is_none());
    parse.tid = parse.tid.or_else(|| suffix?.parse().ok());
    parse.root = parse.root.or_else(|| recording?.root.clone());
    parse.dev = parse.dev.or_else(|| recording?.dev);
    parse
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

#[cfg(test)]
mod walk_tests {
    use super::walk;

    #[test]
    fn output_folders_below_are_not_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        std::fs::create_dir(&out).unwrap();
        std::fs::write(dir.path().join("vmstat.log"), "x").unwrap();
        std::fs::write(out.join(".kreplay"), "").unwrap();
        std::fs::write(out.join("vmstat.log"), "x").unwrap();
        let (files, _) = walk(dir.path()).unwrap();
        assert_eq!(files, [dir.path().join("vmstat.log")]);
    }
}
