//! Where files lie on their disk, by filefrag(8), which asks the file system (FIEMAP).
//!
//! Before the load runs, all files below the root are listed, if they are few. Afterwards come those that the load made or
//! named; of these no size is kept by who reads it, since it is the size after the run.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Arguments at a time: well below what a kernel takes.
const BATCH: usize = 200;

/// What a listing found.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Files written down.
    pub files: BTreeSet<PathBuf>,
    /// Why it is not whole.
    pub lacks: Option<String>,
}

/// All regular files below a root on its file system, at most `limit`; none if there are more.
pub(crate) fn below(root: &Path, limit: usize) -> Option<BTreeSet<PathBuf>> {
    let device = fs::metadata(root).ok()?.dev();
    let (mut found, mut folders) = (BTreeSet::new(), vec![root.to_owned()]);
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > limit {
                return None;
            }
            let Ok(meta) = entry.metadata() else { continue };
            if meta.dev() != device {
                continue;
            }
            if meta.is_dir() {
                folders.push(entry.path());
            } else if meta.is_file() {
                found.insert(entry.path());
            }
        }
    }
    Some(found)
}

/// Files that a log of strace names (`3</path>`, as `-y` writes it) below a root, at most `limit`.
pub(crate) fn named(log: &Path, root: &Path, limit: usize) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut reader = BufReader::with_capacity(256 << 10, File::open(log)?);
    let mut line = Vec::new();
    while found.len() < limit {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        for path in paths(&line) {
            if path.starts_with(root)
                && !found.contains(&path)
                && fs::symlink_metadata(&path).is_ok_and(|m| m.is_file())
            {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

/// Absolute paths in angle brackets; those with escapes (bytes outside of ASCII) are passed over.
fn paths(line: &[u8]) -> impl Iterator<Item = PathBuf> {
    let text = std::str::from_utf8(line).unwrap_or_default();
    text.split('<').skip(1).filter_map(|rest| {
        let (path, _) = rest.split_once('>')?;
        (path.starts_with('/') && !path.contains('\\')).then(|| PathBuf::from(path))
    })
}

/// Writes the layout of files; `start_512` is where their partition begins on the disk, in sectors.
pub(crate) fn write(files: &BTreeSet<PathBuf>, start_512: u64, target: &Path) -> Result<Listing, String> {
    let mut listing = Listing::default();
    if files.is_empty() {
        return Ok(listing);
    }
    let say = |e: io::Error| format!("{}: {e}", target.display());
    let mut out = io::BufWriter::new(File::create(target).map_err(say)?);
    let all: Vec<_> = files.iter().filter(|f| !f.to_string_lossy().contains('\n')).collect();
    for batch in all.chunks(BATCH) {
        // -s: what is dirty has no place yet.
        let done = Command::new("filefrag").args(["-s", "-v", "-b512", "--"]).args(batch).stdin(Stdio::null()).output();
        let done = done.map_err(|e| format!("filefrag cannot be started ({e}): it comes with e2fsprogs"))?;
        if !done.status.success() {
            listing.lacks = Some("filefrag found no place for some files: their file system does not tell".into());
        }
        let text = String::from_utf8_lossy(&done.stdout);
        let extents = extents(&text, start_512);
        for file in batch {
            let Ok(meta) = fs::metadata(file) else { continue };
            let name = file.to_string_lossy();
            writeln!(out, "# {name} ino {} size {}", meta.ino(), meta.len()).map_err(say)?;
            for line in extents.iter().filter(|(of, _)| *of == name).map(|(_, line)| line) {
                writeln!(out, "{line}").map_err(say)?;
            }
            listing.files.insert((*file).clone());
        }
    }
    out.into_inner().map_err(io::IntoInnerError::into_error).and_then(|f| f.sync_all()).map_err(say)?;
    Ok(listing)
}

/// The extents of filefrag's output, each with the file that it belongs to, moved by the partition's start.
fn extents(text: &str, start_512: u64) -> Vec<(&str, String)> {
    let (mut out, mut file) = (Vec::new(), None);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("File size of ") {
            file = rest.rfind(" is ").map(|at| &rest[..at]);
        } else if let (Some(file), Some(line)) = (file, extent(line, start_512)) {
            out.push((file, line));
        }
    }
    out
}

/// `i: a..b: c..d: n: [expected:] [flags]`; none for an extent without a place (data in the inode, not yet allocated).
fn extent(line: &str, start_512: u64) -> Option<String> {
    let mut parts = line.split(':').map(str::trim);
    let index: u32 = parts.next()?.parse().ok()?;
    let range = |text: &str| {
        let (from, to) = text.split_once("..")?;
        Some((from.trim().parse::<u64>().ok()?, to.trim().parse::<u64>().ok()?))
    };
    let logical = range(parts.next()?)?;
    let physical = range(parts.next()?)?;
    let length: u64 = parts.next()?.parse().ok()?;
    if ["unknown", "delalloc", "inline", "not_aligned"].iter().any(|flag| line.contains(flag)) {
        return None;
    }
    let (from, to) = (physical.0 + start_512, physical.1 + start_512);
    Some(format!("{index:>4}: {:>8}..{:>8}: {from:>10}..{to:>10}: {length:>6}:", logical.0, logical.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_the_disks_begin() {
        let text = "Filesystem type is: ef53\nFile size of /a b is 8192 (16 blocks of 512 bytes)\n \
            ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
            0:        0..      15:      33792..     33807:     16:             last,eof\n/a b: 1 extent found\n\
            File size of /c is 4 (8 blocks of 512 bytes)\n   0:        0..       7:          0..         7:      8:  \
            last,not_aligned,inline,eof\n";
        let got = extents(text, 2048);
        assert_eq!(got, [("/a b", "   0:        0..      15:      35840..     35855:     16:".to_owned())]);
    }

    #[test]
    fn paths_of_a_log() {
        let line = br#"7 1.5 renameat(AT_FDCWD</mnt>, "x", 4</mnt/a b>, "y", 5</mnt/\303\244>, 6<pipe:[3]>) = 0 <0.1>"#;
        assert_eq!(paths(line).collect::<Vec<_>>(), [PathBuf::from("/mnt"), PathBuf::from("/mnt/a b")]);
    }

    #[test]
    fn a_tree_with_too_many_files_is_not_listed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(dir.path().join("d/x"), "1").unwrap();
        fs::write(dir.path().join("y"), "1").unwrap();
        assert_eq!(below(dir.path(), 3).unwrap().len(), 2);
        assert_eq!(below(dir.path(), 2), None);
        let log = dir.path().join("log");
        fs::write(&log, format!("1 2 read(3<{0}/y>) = 0\n1 2 read(3<{0}/gone>) = 0\n", dir.path().display())).unwrap();
        assert_eq!(named(&log, dir.path(), 9).unwrap(), BTreeSet::from([dir.path().join("y")]));
    }
}
