//! Page ids.

use kreplay_traces::units::PAGE_BYTES;

use super::{AreaState, CompileError, FileState, Layout, Placed};
use crate::program::{AreaInfo, DeviceInfo, Extent, FileInfo, FileKind};

/// Number all pages and turn what refers to blocks into page ids.
pub(super) fn number(
    placed: Vec<Placed>,
    meta: Vec<Vec<Extent>>,
    states: &[FileState],
    areas: &[AreaState],
    area_tasks: &[u32],
    devices: Vec<DeviceInfo>,
) -> Result<Layout, CompileError> {
    let too_large = || {
        let most = states.iter().max_by_key(|s| s.reach);
        let file = most.map_or_else(String::new, |s| {
            format!(" (most for {}, which line {} reaches at byte {})", s.path, s.reach_line, s.reach)
        });
        CompileError::TooLarge { what: format!("pages in all{file}") }
    };
    let mut next = 0_u32;
    let mut take = |pages: u32| -> Result<u32, CompileError> {
        let first = next;
        next = next.checked_add(pages).ok_or_else(too_large)?;
        Ok(first)
    };
    let mut offsets = Vec::with_capacity(placed.len());
    let mut files: Vec<FileInfo> = Vec::with_capacity(placed.len() + meta.len());
    for p in placed {
        let mut info = p.info;
        info.first_page = take(info.pages)?;
        if info.kind == FileKind::Directory && info.exists {
            info.initial_size = info.initial_size.max(u64::from(info.pages) * PAGE_BYTES);
        }
        offsets.push(p.name_offset);
        files.push(info);
    }
    let mut meta_first = Vec::with_capacity(meta.len());
    for (device, extents) in meta.into_iter().enumerate() {
        let pages = extents.iter().map(|e| e.pages).sum();
        let first_page = take(pages)?;
        meta_first.push(first_page);
        files.push(FileInfo {
            path: "[meta]".to_owned(),
            kind: FileKind::Metadata,
            device: device as u32,
            first_page,
            pages,
            initial_size: u64::from(pages) * PAGE_BYTES,
            exists: true,
            elsewhere: false,
            extents,
            parent: None,
            inode_page: None,
            name_page: None,
            indirect: Vec::new(),
            group: None,
        });
    }
    for i in 0..offsets.len() {
        let name_page = files[i].parent.zip(offsets[i]).map(|(dir, offset)| {
            let dir = &files[dir as usize];
            dir.first_page + ((offset / PAGE_BYTES) as u32).min(dir.pages.saturating_sub(1))
        });
        let file = &mut files[i];
        file.name_page = name_page;
        let first = meta_first[file.device as usize];
        for page in file.indirect.iter_mut().chain(&mut file.inode_page).chain(file.group.iter_mut().flatten()) {
            *page += first;
        }
    }
    let mut infos = Vec::with_capacity(areas.len());
    for (area, task) in areas.iter().zip(area_tasks) {
        let info = match area.file {
            None => {
                let pages = u32::try_from(area.reach).map_err(|_| too_large())?;
                AreaInfo { task: *task, pages, first_page: take(pages)?, file: None, private: area.private }
            }
            Some((file, first)) => {
                let size = states[file as usize].max_size.div_ceil(PAGE_BYTES).saturating_sub(first);
                let target = &files[file as usize];
                let room = u64::from(target.pages).saturating_sub(first);
                let pages = area.pages.min(size.max(area.reach)).min(room);
                AreaInfo {
                    task: *task,
                    pages: pages as u32,
                    first_page: target.first_page + first.min(u64::from(target.pages)) as u32,
                    file: Some(file),
                    private: area.private,
                }
            }
        };
        infos.push(info);
    }
    Ok(Layout { files, areas: infos, devices, pages: next })
}
