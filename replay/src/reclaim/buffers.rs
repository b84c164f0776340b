//! Reclaim and buffers: `try_to_free_buffers` and `sync_page_buffers` (fs/buffer.c of 2.4.5 to 2.4.17), and how a run waits.

use super::{Cursor, Need, Phase};
use crate::config::BufferWait;
use crate::mm::Mm;
use crate::mm::page::flag;
use crate::mm::zone::AllocFlags;
use crate::writeback::{self, DirtyLimits};

/// What `try_to_free_buffers` came to.
pub(super) enum Buffers {
    /// The page has no buffer any more.
    Dropped,
    /// Nothing was done.
    Busy,
    /// The caller is to write the buffer.
    Write,
    /// The caller is to wait for the buffer, then to try again without I/O.
    Wait,
}

/// Drop a page's buffer, or say what has to be done first.
pub(super) fn try_to_free_buffers(rule: BufferWait, mm: &mut Mm, flags: AllocFlags, id: u32) -> Buffers {
    let p = *mm.page(id);
    if !p.buffer_busy() {
        mm.drop_buffer(id);
        return Buffers::Dropped;
    }
    if !flags.io {
        return Buffers::Busy;
    }
    let at_once = matches!(rule, BufferWait::AtOnce | BufferWait::WriteThenWait);
    if !at_once && !p.any(flag::BUF_WAIT) {
        mm.set(id, flag::BUF_WAIT);
        return Buffers::Busy;
    }
    if !p.any(flag::BUF_LOCKED) {
        return Buffers::Write;
    }
    let waits = match rule {
        BufferWait::Any => flags.wait && !p.any(flag::BUF_DIRTY),
        BufferWait::Laundered => p.any(flag::BUF_LAUNDER),
        BufferWait::AtOnce | BufferWait::WriteThenWait => flags.wait,
    };
    if waits { Buffers::Wait } else { Buffers::Busy }
}

/// Hand a page to the simulator: it is pinned until the run goes on.
pub(super) fn wait_for(mm: &mut Mm, cur: &mut Cursor, id: u32, phase: Phase, need: Need) -> Need {
    mm.page_mut(id).pins += 1;
    cur.page = id;
    cur.phase = phase;
    need
}

/// The buffer in hand is still busy: leave the page.
pub(super) fn release_busy(mm: &mut Mm, cur: &mut Cursor) {
    mm.page_mut(cur.page).pins -= 1;
    mm.unlock(cur.page);
    cur.phase = Phase::Scan;
}

pub(super) fn wake_bdflush_if_dirty(mm: &mut Mm, limits: &DirtyLimits) {
    if writeback::over_soft(mm, limits) {
        mm.wake_bdflush = true;
    }
}
