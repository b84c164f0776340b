//! Weight raising: BFQ's low latency for processes that look interactive or soft real-time (`block/bfq-iosched.c` of 6.1).

use super::Queue;

/// What a raised weight is multiplied by.
pub(super) const COEFFICIENT: u64 = 30;
/// ... for soft real-time, times this.
const SOFT_RT_FACTOR: u64 = 100;
/// A queue that was idle for this long looks interactive when it comes back, ns.
pub(super) const MIN_IDLE: u64 = 2_000_000_000;
/// An asynchronous queue is raised anew after this, ns.
pub(super) const MIN_INTER_ARRIVAL_ASYNC: u64 = 500_000_000;
/// Soft real-time raising lasts this long, ns.
pub(super) const SOFT_RT_TIME: u64 = 300_000_000;
/// Most bandwidth of a soft real-time process, sectors per second.
const SOFT_RT_RATE: u64 = 7_000;
/// Interactive raising ends after so much service, sectors.
const MAX_SERVICE: u64 = 120_000;
/// So many queues created within [`BURST_GAP`] of each other are a burst: services that start, not somebody's program.
const BURST: usize = 8;
pub(super) const BURST_GAP: u64 = 180_000_000;
/// Queues parted from a shared one since less than this are not new, ns.
const PARTED: u64 = 10_000_000;
/// A queue that was idle for so long has outlived its burst, ns.
pub(super) const OUTLIVES_BURST: u64 = 10_000_000_000;

/// Raising of one queue. Times in ns; "never" is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raise {
    /// 1 = not raised.
    pub(super) coefficient: u64,
    pub(super) since: u64,
    pub(super) lasts: u64,
    /// When interactive raising began that soft real-time raising replaced.
    pub(super) interactive_since: Option<u64>,
    pub(super) service: u64,
    pub(super) soft_rt_from: u64,
    pub(super) backlogged_at: u64,
    pub(super) backlogged_service: u64,
    /// When the present backlog was first served.
    pub(super) first_io: u64,
    pub(super) soft_rt_pending: bool,
    pub(super) in_burst: bool,
}

impl Default for Raise {
    fn default() -> Self {
        Self {
            coefficient: 1,
            since: 0,
            lasts: 0,
            interactive_since: None,
            service: 0,
            soft_rt_from: 0,
            backlogged_at: 0,
            backlogged_service: 0,
            first_io: 0,
            soft_rt_pending: false,
            in_burst: false,
        }
    }
}

impl Raise {
    pub(super) fn raised(&self) -> bool {
        self.coefficient > 1
    }

    fn soft_rt(&self) -> bool {
        self.raised() && self.lasts == SOFT_RT_TIME
    }

    /// A queue becomes busy. `deserves`: raised already, or now to be. True if raising starts.
    pub(super) fn arrival(&mut self, now: u64, deserves: bool, interactive: bool, soft_rt: bool, lasts: u64) -> bool {
        if !self.raised() && deserves {
            if interactive {
                self.service = 0;
                self.coefficient = COEFFICIENT;
                self.lasts = lasts;
            } else {
                self.interactive_since = None;
                self.coefficient = COEFFICIENT * SOFT_RT_FACTOR;
                self.lasts = SOFT_RT_TIME;
            }
            return true;
        }
        if self.raised() {
            if interactive {
                self.coefficient = COEFFICIENT;
                self.lasts = lasts;
            } else if self.in_burst {
                self.coefficient = 1;
            } else if soft_rt {
                if self.lasts != SOFT_RT_TIME {
                    self.interactive_since = Some(self.since);
                    self.lasts = SOFT_RT_TIME;
                    self.coefficient = COEFFICIENT * SOFT_RT_FACTOR;
                }
                self.since = now;
            }
        }
        false
    }

    fn end(&mut self, now: u64) {
        if self.lasts != SOFT_RT_TIME {
            self.soft_rt_from = now;
        }
        self.coefficient = 1;
        self.lasts = 0;
        self.since = now;
    }

    fn soft_rt_over(&mut self, now: u64, lasts: u64) {
        match self.interactive_since {
            Some(since) if since + lasts >= now => {
                self.coefficient = COEFFICIENT;
                self.lasts = lasts;
                self.since = since;
            }
            _ => self.end(now),
        }
    }

    /// `bfq_bfqq_served`: the queue got so many sectors, whether in its turn or past another's.
    pub(super) fn got(&mut self, now: u64, sectors: u64) {
        if self.backlogged_service == 0 {
            self.first_io = now;
        }
        if self.raised() {
            self.service += sectors;
        }
        self.backlogged_service += sectors;
    }

    /// A turn begins. The time that a soft real-time queue had nothing to do, or waited for its turn, does not count as raised.
    pub(super) fn turn_begins(&mut self, now: u64, idle_since: Option<u64>) {
        if self.since < now && self.soft_rt() && idle_since.is_none_or(|t| t < now) {
            match idle_since {
                Some(t) if t > self.since => self.since += now - t,
                _ => self.since = now,
            }
        }
    }

    /// A raised queue was served in its turn: is it time to stop? (`bfq_update_wr_data`)
    pub(super) fn served(&mut self, now: u64, lasts: u64) {
        if !self.raised() {
            return;
        }
        if self.in_burst {
            self.end(now);
        } else if self.since + self.lasts < now {
            if self.soft_rt() { self.soft_rt_over(now, lasts) } else { self.end(now) }
        }
        if self.raised() && !self.soft_rt() && self.service > MAX_SERVICE {
            self.end(now);
        }
    }

    /// Raising that was interrupted goes on, if it still may.
    pub(super) fn resumes(&mut self, now: u64, lasts: u64) {
        if !self.raised() || (!self.in_burst && self.since + self.lasts >= now) {
            return;
        }
        match self.interactive_since {
            Some(since) if self.soft_rt() && !self.in_burst && since + lasts >= now => {
                self.coefficient = COEFFICIENT;
                self.lasts = lasts;
                self.since = since;
            }
            _ => self.coefficient = 1,
        }
    }

    /// A soft real-time queue that only seeks is none.
    pub(super) fn seeks_only(&mut self, now: u64, lasts: u64) {
        if self.soft_rt() {
            self.soft_rt_over(now, lasts);
        }
    }

    /// From when on the next arrival looks soft real-time: not sooner than its bandwidth allows.
    pub(super) fn next_soft_rt(&mut self, now: u64, slice_idle: u64) {
        let paced = self.backlogged_at + 1_000_000_000 * self.backlogged_service / SOFT_RT_RATE;
        self.soft_rt_from = self.soft_rt_from.max(paced).max(now + slice_idle + 4_000_000);
    }
}

/// Creations of queues close to each other (`bfq_handle_burst`).
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    last: u64,
    /// Creations that count; queues may have left the list since.
    size: usize,
    members: Vec<u32>,
    pub(super) large: bool,
}

impl Burst {
    /// A new queue gets its first request; nothing that makes a burst was going on, and `alone`: no other queue is busy.
    pub(super) fn created(&mut self, id: u32, now: u64, alone: bool, queues: &mut [Queue]) {
        let q = &queues[id as usize];
        let listed = self.members.contains(&id);
        if (self.size == 0 && !alone) || listed || q.raise.in_burst || q.parted.is_some_and(|t| now <= t + PARTED) {
            return;
        }
        if now > self.last + BURST_GAP {
            self.large = false;
            self.members.clear();
            self.size = 0;
            if alone {
                self.members.push(id);
                self.size = 1;
            }
        } else if self.large {
            queues[id as usize].raise.in_burst = true;
        } else {
            self.size += 1;
            self.members.push(id);
            if self.size == BURST {
                self.large = true;
                for m in self.members.drain(..) {
                    queues[m as usize].raise.in_burst = true;
                }
            }
        }
        self.last = now;
    }

    pub(super) fn lists(&self, id: u32) -> bool {
        self.members.contains(&id)
    }

    /// A queue that was idle for long belongs to no burst any more.
    pub(super) fn leave(&mut self, id: u32) {
        self.members.retain(|&m| m != id);
    }

    /// A queue that was parted from a shared one is listed again; it was counted before.
    pub(super) fn rejoin(&mut self, id: u32) {
        self.members.push(id);
    }
}
