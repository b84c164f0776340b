//! Memory as the engine keeps it, with the instances of a log as its pages.

use std::collections::BTreeSet;

use super::events::{Instance, Log, NONE, Owner, What};
use crate::config::Config;
use crate::mm::Mm;
use crate::mm::page::{List, flag};
use crate::mm::zone::{DMA, NORMAL};
use crate::program::{AreaInfo, DeviceInfo, Extent, FileInfo, FileKind, Program, Start, TaskProgram};
use crate::writeback::{self, DirtyLimits};
use kreplay_traces::units::{Nanos, Sectors};

/// The first zone's frames.
const DMA_FRAMES: u64 = 4096;

/// Memory, and which of its pages stands for which instance.
#[derive(Clone)]
pub(super) struct World {
    pub(super) mm: Mm,
    pub(super) limits: DirtyLimits,
    /// Instance to page id.
    ids: Vec<u32>,
    /// Page id to instance.
    back: Vec<u32>,
    /// Free frames a zone, as assumed: the trace does not show them.
    pub(super) free: [u64; 2],
}

/// Whether an instance is anonymous memory: on kernels that list it, a page of nobody is; on others such a page holds buffers.
fn is_memory(i: &Instance, config: &Config) -> bool {
    i.owner == Owner::Swap || (i.owner == Owner::None && config.reclaim.anon_on_lru)
}

impl World {
    pub(super) fn new(log: &Log, config: &Config) -> Self {
        let (mut files, mut memory) = (Vec::new(), Vec::new());
        for (n, i) in log.pages.iter().enumerate() {
            if is_memory(i, config) { memory.push(n as u32) } else { files.push(n as u32) }
        }
        let mut ids = vec![0; log.pages.len()];
        let back: Vec<u32> = files.iter().chain(&memory).copied().collect();
        for (id, &instance) in back.iter().enumerate() {
            ids[instance as usize] = id as u32;
        }
        let program = program(files.len() as u32, memory.len() as u32);
        let mut mm = Mm::new(&program, config);
        mm.slab_reclaims = false;
        let limits = writeback::limits(&config.writeback, &mm);
        let free = [DMA, NORMAL].map(|z| mm.zones.zone[z].low);
        let mut w = Self { mm, limits, ids, back, free };
        w.settle();
        w
    }

    pub(super) fn id(&self, instance: u32) -> u32 {
        self.ids[instance as usize]
    }

    pub(super) fn instance(&self, id: u32) -> u32 {
        self.back.get(id as usize).copied().unwrap_or(NONE)
    }

    /// Free frames are what they are assumed to be.
    pub(super) fn settle(&mut self) {
        for z in [DMA, NORMAL] {
            self.mm.zones.zone[z].free = self.free[z].min(self.mm.zones.zone[z].size);
        }
    }

    pub(super) fn list(&self, instance: u32) -> List {
        self.mm.page(self.id(instance)).list
    }

    /// A page comes on the lists.
    pub(super) fn add(&mut self, n: u32, i: &Instance, config: &Config) {
        let id = self.id(n);
        if self.mm.page(id).any(flag::PRESENT) {
            return;
        }
        let zone = if i.pfn < DMA_FRAMES { DMA } else { NORMAL };
        if is_memory(i, config) {
            self.mm.add_anon(id, zone);
            if i.owner == Owner::Swap {
                self.enter_swap_cache(id);
            }
            self.mm.lru_add(id);
            if config.reclaim.anon_accessed && i.owner == Owner::None {
                self.mm.mark_accessed(id);
            }
        } else {
            let buffers = i.owner == Owner::None && !config.reclaim.anon_on_lru;
            if buffers {
                self.mm.set(id, flag::META);
            }
            self.mm.adopt_frame(id, zone);
            self.mm.unlock(id);
            if buffers {
                self.mm.attach_buffer(id);
            }
        }
        self.mm.set(id, flag::UPTODATE);
        if i.unmapped {
            self.mm.set(id, flag::DIRTY);
        }
        if i.mapped {
            self.mm.set(id, flag::MAPPED);
        }
        if i.read {
            // A page that is read has buffers from then on.
            self.mm.lock(id);
            self.mm.attach_buffer(id);
        }
        self.settle();
    }

    /// Page tables give a page up.
    pub(super) fn unmapped(&mut self, n: u32) {
        let id = self.id(n);
        if self.mm.page(id).any(flag::PRESENT) && self.mm.page(id).any(flag::ANON) {
            self.enter_swap_cache(id);
            self.mm.set(id, flag::DIRTY);
        }
    }

    fn enter_swap_cache(&mut self, id: u32) {
        if !self.mm.page(id).any(flag::SWAP_CACHE) && self.mm.allocate_slot(id) {
            self.mm.add_to_swap_cache(id);
        }
    }

    /// Page tables map a page, or none does any more.
    pub(super) fn set_mapped(&mut self, n: u32, mapped: bool) {
        let id = self.id(n);
        if !self.mm.page(id).any(flag::PRESENT) {
            return;
        }
        if mapped {
            self.mm.set(id, flag::MAPPED);
        } else {
            self.mm.clear(id, flag::MAPPED);
        }
    }

    /// Its I/O is over.
    pub(super) fn io_done(&mut self, n: u32) {
        let id = self.id(n);
        if self.mm.page(id).any(flag::LOCKED) {
            self.mm.unlock(id);
            self.mm.unlocked.clear();
        }
    }

    /// A swap page is written, which gives it buffers.
    pub(super) fn written(&mut self, id: u32) {
        self.mm.attach_buffer(id);
        self.settle();
    }

    /// A page is as it was.
    pub(super) fn set_state(&mut self, id: u32, flags: u32, age: u8) {
        match (flags & flag::BUFFER != 0, self.mm.page(id).any(flag::BUFFER)) {
            (true, false) => self.mm.attach_buffer(id),
            (false, true) => self.mm.drop_buffer(id),
            _ => {}
        }
        let p = self.mm.page_mut(id);
        p.flags = flags & !flag::SWAP_CACHE | p.flags & flag::SWAP_CACHE;
        p.age = age;
        self.settle();
    }

    /// A page goes, whatever state it is in.
    pub(super) fn drop(&mut self, n: u32) {
        let id = self.id(n);
        if !self.mm.page(id).any(flag::PRESENT) {
            return;
        }
        self.mm.page_mut(id).pins = 0;
        if self.mm.page(id).any(flag::BUFFER) {
            self.mm.drop_buffer(id);
        }
        self.mm.clear(id, flag::LOCKED | flag::LAUNDER | flag::DIRTY | flag::MAPPED);
        if self.mm.page(id).any(flag::ANON) {
            if self.mm.page(id).any(flag::SWAP_CACHE) {
                self.mm.remove_from_swap_cache(id);
            }
            self.mm.remove_anon(id);
        } else {
            self.mm.remove_from_page_cache(id);
        }
        self.settle();
    }

    /// A page that the model took and the kernel kept comes back, at the head of `list`.
    pub(super) fn restore(&mut self, n: u32, i: &Instance, config: &Config, list: List, flags: u32, age: u8) {
        self.add(n, &Instance { read: false, unmapped: false, mapped: false, ..*i }, config);
        self.set_state(self.id(n), flags, age);
        self.put(n, list);
    }

    /// A page is at the head of `list`, whatever list it was on.
    pub(super) fn put(&mut self, n: u32, list: List) {
        let id = self.id(n);
        if self.mm.page(id).any(flag::PRESENT) {
            self.mm.move_to(id, list);
        }
    }

    /// A page is at the tail of `list`; false if it was not, and had to be put there.
    pub(super) fn at_tail(&mut self, n: u32, list: List) -> bool {
        let id = self.id(n);
        if !self.mm.page(id).any(flag::PRESENT) {
            return false;
        }
        let zone = usize::from(self.mm.page(id).zone);
        let tail = match list {
            List::Active => self.mm.active.tail(),
            List::Inactive => self.mm.inactive.tail(),
            _ => self.mm.clean[zone].tail(),
        };
        if tail == id {
            return true;
        }
        self.mm.lru_del(id);
        let mm = &mut self.mm;
        match list {
            List::Active => mm.active.push_tail(&mut mm.pages, id),
            List::Inactive => mm.inactive.push_tail(&mut mm.pages, id),
            _ => mm.clean[zone].push_tail(&mut mm.pages, id),
        }
        false
    }
}

/// Pages that are kept on the lists and not scored: of programs (how often they are mapped and used is not recorded), of
/// metadata (uses are not recorded).
pub(super) fn not_scored(log: &Log, config: &Config) -> Vec<bool> {
    let mut programs: BTreeSet<u64> = BTreeSet::from([22, 23]);
    let mut longest: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
    for e in &log.events {
        if let Owner::File(ino) = e.owner {
            if e.what == What::NopageFault {
                programs.insert(ino);
            }
            if e.what == What::LruAdd {
                let end = longest.entry(ino).or_default();
                *end = (*end).max(e.index);
            }
        }
    }
    let metadata = |i: &Instance| match i.owner {
        // Inodes below 12 stand for block devices, as does the first page of what shares a number with one.
        Owner::File(ino) => ino < 12 || (ino == 12 && i.index == 0) || longest.get(&ino) == Some(&0),
        Owner::None => !config.reclaim.anon_on_lru,
        Owner::Swap => false,
    };
    let program = |i: &Instance| matches!(i.owner, Owner::File(ino) if programs.contains(&ino));
    log.pages.iter().map(|i| metadata(i) || program(i)).collect()
}

/// One file and one area that have as many pages as the log has instances.
fn program(files: u32, memory: u32) -> Program {
    let mut p = Program::default();
    p.devices.push(DeviceInfo { name: "d".into(), sectors: Sectors(1 << 30), partitions: vec![Sectors(0)] });
    p.files.push(FileInfo {
        path: "pages".into(),
        kind: FileKind::Regular,
        device: 0,
        first_page: 0,
        pages: files.max(1),
        initial_size: u64::from(files) * 4096,
        exists: true,
        elsewhere: false,
        extents: vec![Extent { page: 0, pages: files.max(1), sector: Sectors(0) }],
        parent: None,
        inode_page: None,
        name_page: None,
        indirect: Vec::new(),
        group: None,
    });
    // Without file pages the file has one that no instance uses, behind all others.
    let first_file = if files == 0 { memory } else { 0 };
    p.files[0].first_page = first_file;
    p.areas.push(AreaInfo { task: 0, pages: memory, first_page: files, file: None, private: true });
    p.pages = files.max(1) + memory;
    p.tasks.push(TaskProgram::new(1, "t", Start::At(Nanos::ZERO)));
    p
}
