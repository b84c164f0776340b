//! Where everything lies: page ids, places on disk, metadata blocks.
//!
//! Page ids number each file's pages in the order of file ids (one metadata file per device last), then each anonymous
//! area's pages.
//!
//! Recorded extents are taken as they are. Pages without one are placed by rule, as an empty ext2 of 4 KiB blocks would
//! place files that are written one after the other (see [`ext2`]): those that were there first, then those that the
//! trace makes, each in the order of first use, from the block group behind the last recorded extent on. Directories come out of the same sequence. A file whose recorded extents leave
//! exactly the room of an indirect block where ext2 has one is taken to have it there; other recorded files have none
//! (extent trees).

mod ext2;
mod meta;
mod number;
mod place;
mod recorded;

use std::collections::BTreeMap;

use kreplay_traces::units::{PAGE_BYTES, Sectors};
use rustc_hash::FxHashMap;

use super::memory::AreaState;
use super::names::FileState;
use super::source::SideTables;
use super::survey::Known;
use super::{CompileError, CompileOptions, paths};
use crate::program::{AreaInfo, Coverage, DeviceInfo, FileInfo, FileKind};

/// Everything that layout decides.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) files: Vec<FileInfo>,
    pub(super) areas: Vec<AreaInfo>,
    pub(super) devices: Vec<DeviceInfo>,
    pub(super) pages: u32,
}

/// Lay out all files and areas. `area_tasks` gives each area's task in the program.
pub(super) fn lay_out(
    side: &SideTables,
    opts: &CompileOptions,
    known: &Known,
    states: &[FileState],
    areas: &[AreaState],
    area_tasks: &[u32],
    coverage: &mut Coverage,
) -> Result<Layout, CompileError> {
    let mut devices = device_list(side);
    let table = recorded::by_path(side);
    let mut files = Vec::with_capacity(states.len() + devices.infos.len());
    let mut directories = DirectoryFill::new(side);
    let roots = recorded_roots(states, |path| table.get(path).is_some_and(|r| !r.pieces.is_empty()));
    for (i, state) in states.iter().enumerate() {
        let initial = known.initial[i];
        let row = if state.first_generation { table.get(state.path.as_str()) } else { None };
        let parent = state.parent.map(|p| p as usize);
        let device = row
            .and_then(|r| r.dev)
            .map(|dev| devices.index_of(dev))
            .or_else(|| parent.map(|p| device_of(&files, p)))
            .unwrap_or(0);
        let name_offset = parent.map(|p| directories.place(p, &states[p].path, paths::name(&state.path)));
        files.push(Placed {
            info: FileInfo {
                path: state.path.clone(),
                kind: if state.directory { FileKind::Directory } else { FileKind::Regular },
                device,
                first_page: 0,
                pages: 0,
                initial_size: initial.bytes,
                exists: initial.exists,
                elsewhere: initial.exists && !roots.is_empty() && !roots.iter().any(|r| on_the_way(r, &state.path)),
                extents: Vec::new(),
                parent: state.parent,
                inode_page: None,
                name_page: None,
                indirect: Vec::new(),
                group: None,
            },
            name_offset,
            wanted: reserved_bytes(state, opts),
        });
    }
    for (dir, bytes) in directories.used {
        files[dir].wanted = files[dir].wanted.max(bytes);
    }
    let meta = place::place(side, &mut devices, &table, states, &mut files, coverage)?;
    number::number(files, meta, states, areas, area_tasks, devices.infos)
}

/// Directories of the files that the recording has places of: what lies below them is on the recorded disk.
fn recorded_roots(states: &[FileState], has_place: impl Fn(&str) -> bool) -> Vec<&str> {
    let placed = states.iter().filter(|s| s.first_generation && !s.directory && has_place(&s.path));
    let mut roots: Vec<&str> = placed.filter_map(|s| Some(s.path.rsplit_once('/')?.0)).collect();
    roots.sort_unstable();
    // What lies below one that is kept needs no look of its own.
    roots.dedup_by(|inner, outer| within(outer, inner));
    roots
}

/// The path is the directory's, or of something in it.
fn within(directory: &str, path: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The path lies in the directory, or contains it.
fn on_the_way(root: &str, path: &str) -> bool {
    within(root, path) || within(path, root)
}

/// A file on its way.
#[derive(Debug)]
struct Placed {
    info: FileInfo,
    /// Where its name lies in its directory, bytes.
    name_offset: Option<u64>,
    /// Bytes that must have page ids.
    wanted: u64,
}

fn device_of(files: &[Placed], parent: usize) -> u32 {
    files[parent].info.device
}

/// Bytes of a file that operations or read-ahead behind them may reach.
fn reserved_bytes(state: &FileState, opts: &CompileOptions) -> u64 {
    if state.directory {
        return state.reach.max(state.max_size);
    }
    let window = u64::from(opts.readahead_pages) * PAGE_BYTES;
    state.reach.max(state.max_size.min(state.reach.saturating_add(window)))
}

/// Devices by index; 0 is the one that holds what does not say otherwise.
#[derive(Debug)]
struct Devices {
    numbers: Vec<Option<i64>>,
    infos: Vec<DeviceInfo>,
}

fn device_list(side: &SideTables) -> Devices {
    let mut devices = Devices { numbers: Vec::new(), infos: Vec::new() };
    for fact in &side.machine.devices {
        devices.numbers.push(Some(fact.dev));
        devices.infos.push(DeviceInfo {
            name: fact.name.clone(),
            sectors: fact.sectors.unwrap_or(Sectors::ZERO),
            partitions: if fact.partitions.is_empty() { vec![Sectors::ZERO] } else { fact.partitions.clone() },
        });
    }
    for dev in side.files.iter().filter_map(|f| f.dev) {
        devices.index_of(dev);
    }
    if devices.infos.is_empty() {
        devices.numbers.push(None);
        devices.infos.push(DeviceInfo {
            name: "disk".to_owned(),
            sectors: Sectors::ZERO,
            partitions: vec![Sectors::ZERO],
        });
    }
    devices
}

impl Devices {
    fn index_of(&mut self, dev: i64) -> u32 {
        if let Some(i) = self.numbers.iter().position(|n| *n == Some(dev)) {
            return i as u32;
        }
        self.numbers.push(Some(dev));
        self.infos.push(DeviceInfo {
            name: format!("{}:{}", dev >> 20, dev & 0xf_ffff),
            sectors: Sectors::ZERO,
            partitions: vec![Sectors::ZERO],
        });
        (self.infos.len() - 1) as u32
    }
}

/// Where names lie in their directories: one after the other, those of the side table first, records of ext2's size.
struct DirectoryFill<'a> {
    /// Offset of each name that the side table has, and bytes used, by directory.
    recorded: FxHashMap<&'a str, u64>,
    filled: FxHashMap<&'a str, u64>,
    /// Bytes used by directory (file id, ascending).
    used: BTreeMap<usize, u64>,
}

impl<'a> DirectoryFill<'a> {
    fn new(side: &'a SideTables) -> Self {
        let mut recorded = FxHashMap::default();
        let mut filled: FxHashMap<&str, u64> = FxHashMap::default();
        for f in &side.files {
            let Some(dir) = paths::parent(&f.path) else { continue };
            if recorded.contains_key(f.path.as_str()) {
                continue;
            }
            let end = filled.entry(dir).or_insert(DOT_BYTES);
            recorded.insert(f.path.as_str(), *end);
            *end += record_bytes(paths::name(&f.path));
        }
        Self { recorded, filled, used: BTreeMap::new() }
    }

    /// Offset of a name in its directory.
    fn place(&mut self, dir: usize, dir_path: &str, name: &str) -> u64 {
        let start = self.filled.get(dir_path).copied().unwrap_or(DOT_BYTES);
        let end = self.used.entry(dir).or_insert(start);
        let full = if dir_path == "/" { format!("/{name}") } else { format!("{dir_path}/{name}") };
        if let Some(at) = self.recorded.get(full.as_str()) {
            return *at;
        }
        let at = *end;
        *end += record_bytes(name);
        at
    }
}

/// The records of `.` and `..`.
const DOT_BYTES: u64 = 24;

/// Bytes of an ext2 directory record.
fn record_bytes(name: &str) -> u64 {
    8 + (name.len() as u64).next_multiple_of(4)
}
