//! One row a second, as vmstat would print it on the simulated machine.

use super::Sim;
use super::task::Wait;
use crate::mm::buffer::BufList;
use crate::results::SampleRow;

impl Sim<'_> {
    pub(super) fn sample(&mut self) -> SampleRow {
        let s = std::mem::take(&mut self.since_sample);
        let mm = &self.mm;
        let tasks = &self.tasks;
        let ready = tasks.iter().filter(|t| t.ready).count() + self.running.iter().flatten().count();
        let blocked = tasks
            .iter()
            .filter(|t| matches!(t.wait, Wait::Page(_) | Wait::Buffer(_) | Wait::Slot | Wait::Inode(_)))
            .count();
        let second = 1_000_000_000 * u64::from(self.config.machine.cpus);
        let user = (s.user.0 * 100 / second).min(100);
        let busy = (s.busy.0 * 100 / second).min(100).max(user);
        let devices = self.block.devices();
        SampleRow {
            time: self.now,
            r: ready as u64,
            b: blocked as u64,
            w: 0,
            swpd_kib: u64::from(mm.swap.used()) * 4,
            free_kib: mm.zones.free() * 4,
            buff_kib: mm.meta_pages * 4,
            cache_kib: (mm.cache_pages - mm.meta_pages) * 4,
            si_kib_s: s.swap_in * 4,
            so_kib_s: s.swap_out * 4,
            bi_kib_s: s.read_sectors / 2,
            bo_kib_s: s.write_sectors / 2,
            in_s: s.interrupts + u64::from(self.config.machine.hz),
            cs_s: s.switches,
            us_pct: user,
            sy_pct: busy - user,
            id_pct: 100 - busy,
            wa_pct: 0,
            active_kib: u64::from(mm.active.len()) * 4,
            inactive_kib: u64::from(mm.inactive.len()) * 4,
            anon_kib: mm.anon_pages * 4,
            dirty_kib: u64::from(mm.bufs.len(BufList::Dirty)) * 4,
            writeback_kib: u64::from(mm.bufs.len(BufList::Locked)) * 4,
            slab_kib: mm.slab_frames() * 4,
            dentries: u64::from(mm.names.dentries()),
            inodes: u64::from(mm.names.inodes()),
            queue_len: (0..devices).map(|d| self.block.queue_len(d) as u64).sum(),
        }
    }
}
