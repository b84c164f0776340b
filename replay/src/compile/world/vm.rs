//! Memory: mmap, brk and their kin, page touches, and what is assumed where touches were not recorded.

use kreplay_traces::event::{FaultRow, SyscallRow};
use kreplay_traces::units::PAGE_BYTES;

use super::fd::has;
use super::{World, args};
use crate::compile::fds::Target;
use crate::program::{Advice, AreaId, FileId, Op};

/// Anonymous mappings up to this size are assumed to be touched in full (16 MiB; a guess).
const SMALL_PAGES: u64 = 4096;
/// Of larger ones this share is (a guess).
const BIG_TOUCHED_PCT: u64 = 60;
/// Of executable mappings of files this share is (a guess).
const TEXT_TOUCHED_PCT: u64 = 50;
/// Pages touched of a mapping made as a stack.
const STACK_PAGES: u64 = 4;
/// A touch of an address that no call mapped falls in a made-up area of this size.
const UNMAPPED_AREA_BYTES: u64 = 2 * 1024 * 1024;

impl World<'_> {
    /// Calls on memory. Returns whether it was one.
    pub(super) fn vm_call(&mut self, r: &SyscallRow<'_>) -> bool {
        let mm = self.tasks.get(self.task).mm;
        match r.call {
            "mmap" | "mmap2" | "old_mmap" => self.map(r),
            "munmap" => {
                if let (Some(addr), Some(len)) = (r.addr, r.len_bytes) {
                    let (addr, len) = (addr as u64, len.max(0) as u64);
                    let mut parts = self.mem.parts(mm, addr, len);
                    let gone = self.mem.unmap(mm, addr, len);
                    parts.retain(|p| !gone.contains(&p.0) && self.mem.owns(mm, p.0));
                    for part in parts {
                        self.advise_part(part, Advice::DontNeed);
                    }
                    self.unmapped(gone);
                }
            }
            "brk" => self.brk(r),
            "mremap" => {
                let arg = |n| args::nth(r.args, n).and_then(args::leading_number).map(|v| v as u64);
                let old = arg(0).or(r.addr.map(|a| a as u64));
                let new_len = arg(2).or(r.len_bytes.and_then(|l| u64::try_from(l).ok()));
                match (old, arg(1), new_len, r.ret) {
                    (Some(old), Some(old_len), Some(new_len), Some(new)) => {
                        let (gone, found) = self.mem.remap(mm, old, old_len, new as u64, new_len);
                        self.unmapped(gone);
                        if !found {
                            self.notes.count("mremap of an area that the trace did not map");
                        }
                    }
                    _ => self.notes.count("mremap whose arguments were not kept (not replayed)"),
                }
            }
            "msync" => {
                let file = r.addr.and_then(|a| self.mem.file_at(mm, a as u64));
                if let Some(file) = file.filter(|_| has(r, "MS_SYNC")) {
                    self.emit(Op::Fsync { file, data_only: false });
                }
            }
            "madvise" => self.madvise(r),
            "process_madvise" => self.notes.count("advice on another process's memory (not replayed)"),
            "mlock" | "mlock2" | "mlockall" | "munlock" | "munlockall" => {
                self.notes.count("memory locking (not replayed)")
            }
            "shmat" => self.notes.count("System V shared memory (not replayed)"),
            _ => return false,
        }
        true
    }

    fn madvise(&mut self, r: &SyscallRow<'_>) {
        let (Some(addr), Some(len)) = (r.addr, r.len_bytes.and_then(|l| u64::try_from(l).ok())) else {
            return self.notes.count("memory advice whose address or length is missing (not replayed)");
        };
        let mm = self.tasks.get(self.task).mm;
        let parts = self.mem.parts(mm, addr as u64, len);
        let populate = [("MADV_POPULATE_READ", false), ("MADV_POPULATE_WRITE", true)];
        if let Some((_, write)) = populate.iter().find(|(word, _)| has(r, word)) {
            for (area, first, pages) in parts {
                let pages = self.touchable(area, first + pages).saturating_sub(first);
                self.touch(area, first, pages, 1, *write);
            }
            return;
        }
        let known = [
            ("MADV_NORMAL", Advice::Normal),
            ("MADV_RANDOM", Advice::Random),
            ("MADV_SEQUENTIAL", Advice::Sequential),
            ("MADV_WILLNEED", Advice::WillNeed),
            ("MADV_DONTNEED", Advice::DontNeed),
            ("MADV_DONTNEED_LOCKED", Advice::DontNeed),
        ];
        let Some((_, advice)) = known.iter().find(|(word, _)| has(r, word)) else {
            return self.notes.count("memory advice that changes nothing here (MADV_FREE, MADV_HUGEPAGE and others)");
        };
        for part in parts {
            self.advise_part(part, *advice);
        }
    }

    fn advise_part(&mut self, (area, first, pages): (AreaId, u64, u64), advice: Advice) {
        self.emit(Op::AdviseArea { area, first: clip(first), count: clip(pages), advice });
    }

    fn map(&mut self, r: &SyscallRow<'_>) {
        let (Some(addr), Some(len)) = (r.ret.or(r.addr), r.len_bytes.and_then(|l| u64::try_from(l).ok())) else {
            return self.notes.count("mappings whose address or length is missing (not replayed)");
        };
        let (mm, addr) = (self.tasks.get(self.task).mm, addr as u64);
        let word = |w| has(r, w);
        let private = !(word("MAP_SHARED") || word("MAP_SHARED_VALIDATE"));
        let file = match r.fd.filter(|fd| *fd >= 0 && !word("MAP_ANONYMOUS")) {
            None => None,
            Some(fd) => match self.resolve(r, fd, r.path).map(|d| self.fds.target(d)) {
                Some(Target::File { file, .. }) => {
                    self.survey.seeks(file);
                    Some(file)
                }
                _ => {
                    // A file outside of the model: only what it replaces counts.
                    let gone = self.mem.unmap(mm, addr, len);
                    self.unmapped(gone);
                    return;
                }
            },
        };
        let off = r.offset_bytes.and_then(|o| u64::try_from(o).ok()).unwrap_or(0);
        if let Some(f) = file {
            self.survey.size(f).at_least(off + 1);
            self.names.get_mut(f).grow_to(off + 1);
        }
        let (area, gone) = self.mem.map(mm, self.task, addr, len, file.map(|f| (f, off / PAGE_BYTES)), private);
        self.unmapped(gone);
        self.emit(Op::Map { area });
        let pages = len.div_ceil(PAGE_BYTES);
        let reserve = word("PROT_NONE") || word("MAP_NORESERVE");
        let touched = if word("MAP_POPULATE") {
            self.touchable(area, pages)
        } else if self.assumes_touches() && !reserve {
            self.assume(area, pages, file, word("PROT_EXEC"), word("MAP_STACK") || word("MAP_GROWSDOWN"))
        } else {
            0
        };
        let write = file.is_none();
        self.touch(area, 0, touched, 1, write);
    }

    fn assumes_touches(&self) -> bool {
        self.opts.assume_touches && !self.generated() && self.out.as_ref().is_some_and(|o| !o.known.faults)
    }

    /// Pages of a new mapping that a touch can reach: those of the file, if it is one.
    fn touchable(&self, area: AreaId, pages: u64) -> u64 {
        match self.mem.area(area).file {
            Some((f, first)) => pages.min(self.names.get(f).size.div_ceil(PAGE_BYTES).saturating_sub(first)),
            None => pages,
        }
    }

    /// How many pages of a new mapping are taken to be touched at once.
    fn assume(&mut self, area: AreaId, pages: u64, file: Option<FileId>, text: bool, stack: bool) -> u64 {
        let pages = self.touchable(area, pages);
        if file.is_some() {
            let touched = if text { (pages * TEXT_TOUCHED_PCT).div_ceil(100) } else { pages };
            self.notes.add("pages of mapped files assumed to be touched, in order, at the mapping", touched);
            return touched;
        }
        let touched = if stack {
            pages.min(STACK_PAGES)
        } else if pages <= SMALL_PAGES {
            pages
        } else {
            (pages * BIG_TOUCHED_PCT).div_ceil(100)
        };
        self.notes.add("anonymous pages assumed to be written, in order, at the mapping", touched);
        touched
    }

    fn brk(&mut self, r: &SyscallRow<'_>) {
        let Some(now) = r.ret else { return };
        let mm = self.tasks.get(self.task).mm;
        let now = (now as u64).next_multiple_of(PAGE_BYTES);
        let Some(before) = self.mem.set_brk(mm, now) else { return };
        if now > before {
            let (area, gone) = self.mem.map(mm, self.task, before, now - before, None, true);
            self.unmapped(gone);
            self.emit(Op::Map { area });
            if self.assumes_touches() {
                let pages = self.assume(area, (now - before) / PAGE_BYTES, None, false, false);
                self.touch(area, 0, pages, 1, true);
            }
        } else if now < before {
            let gone = self.mem.unmap(mm, now, before - now);
            self.unmapped(gone);
        }
    }

    pub(super) fn unmapped(&mut self, gone: Vec<AreaId>) {
        let mm = self.tasks.get(self.task).mm;
        for area in gone.into_iter().filter(|a| self.mem.replayed(mm, *a)).collect::<Vec<_>>() {
            self.emit(Op::Unmap { area });
        }
    }

    /// Touch `count` pages of an area, `stride` apart, from `first` on.
    fn touch(&mut self, area: AreaId, first: u64, count: u64, stride: u64, write: bool) {
        let (mut first, mut count) = (first, count);
        if count == 0 {
            return;
        }
        let last = first + (count - 1) * stride;
        let a = self.mem.area_mut(area);
        a.reach = a.reach.max(last + 1);
        if let Some((file, start)) = a.file {
            self.names.get_mut(file).reaches((start + last + 1) * PAGE_BYTES, self.line);
        }
        // A run longer than the operation can say is split.
        while count > 0 {
            let n = count.min(u64::from(u32::MAX));
            self.emit(Op::Touch { area, first: clip(first), count: clip(n), stride: stride as u16, write });
            first += n * stride;
            count -= n;
        }
    }

    /// A row of the fault table: find the areas of its addresses.
    pub(super) fn touch_addresses(&mut self, f: &FaultRow) {
        let (mut addr, stride) = (f.addr as u64, f.stride_bytes);
        let mut left = u64::try_from(f.count).unwrap_or(0);
        let page = PAGE_BYTES as i64;
        while left > 0 {
            let (area, first, room) = self.area_at(addr, f.write);
            // Touches that stay in this stretch of addresses can be one operation if they step by whole pages, by
            // nothing, or by less than a page (then each page counts once).
            let (touches, pages, step) = if stride == 0 {
                (left, left, 0)
            } else if stride > 0 && stride % page == 0 && stride / page <= i64::from(u16::MAX) {
                let n = left.min(room.div_ceil(stride as u64).max(1));
                (n, n, (stride / page) as u64)
            } else if (1..page).contains(&stride) {
                let n = left.min(room.div_ceil(stride as u64).max(1));
                let last = addr + (n - 1) * stride as u64;
                (n, last / PAGE_BYTES - addr / PAGE_BYTES + 1, 1)
            } else {
                (1, 1, 1)
            };
            self.touch(area, first, pages, step, f.write);
            left -= touches;
            addr = addr.wrapping_add((touches as i64).wrapping_mul(stride) as u64);
        }
    }

    /// The area of an address, its page there, and the bytes from there to the end of the stretch.
    fn area_at(&mut self, addr: u64, write: bool) -> (AreaId, u64, u64) {
        let mm = self.tasks.get(self.task).mm;
        if self.mem.find(mm, addr).is_none() {
            self.notes.count("areas made up for touched addresses that no call mapped");
            let start = addr - addr % UNMAPPED_AREA_BYTES;
            let (area, len) = self.mem.map_around(mm, self.task, addr, start, UNMAPPED_AREA_BYTES);
            debug_assert!(len > 0);
            self.emit(Op::Map { area });
        }
        let hit = self.mem.find(mm, addr).unwrap_or_else(|| unreachable!("the address was just mapped"));
        let room = hit.end - addr;
        let state = self.mem.area(hit.area);
        if write && state.private && state.file.is_none() && !self.mem.owns(mm, hit.area) {
            // Copy on write after a fork.
            let (own, gone) = self.mem.privatise(mm, self.task, hit.area);
            self.unmapped(gone.into_iter().collect());
            self.emit(Op::Map { area: own });
            return (own, hit.page, room);
        }
        (hit.area, hit.page, room)
    }
}

/// Pages of one area fit in 32 bits or the program is refused when its pages are numbered.
fn clip(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
