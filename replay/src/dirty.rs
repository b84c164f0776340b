//! Balanced dirty throttling: how long a writer pauses, and the estimators behind it. Arithmetic only.
//!
//! Source: mm/page-writeback.c of 6.1 to 6.18 (`balance_dirty_pages`, `wb_position_ratio`, `wb_update_dirty_ratelimit`,
//! `wb_update_write_bandwidth`, `wb_max_pause`, `wb_min_pause`). Rates are pages per second, times are ticks, ratios are in
//! 1/1024.

use crate::config::BalancedConfig;

/// Pages that a task dirties before its first look, and the least that is worth a pause (128 KiB).
const POLL: u64 = 32;
/// Pages between two looks while the device is over its limit (32 KiB).
const POLL_EXCEEDED: u64 = 8;
/// 1.0.
const ONE: u64 = 1 << 10;

/// What a task remembers between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// Pages dirtied since the last pause.
    pub dirtied: u64,
    /// Pages after which it looks again.
    pub pause_after: u64,
    /// End of the last pause.
    paused_when: u64,
}

impl Default for Writer {
    fn default() -> Self {
        Self { dirtied: 0, pause_after: POLL, paused_when: 0 }
    }
}

/// Dirty pages and limits, of all and of the device, pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Dirty and under write-out, of all devices.
    pub dirty: u64,
    /// Limit.
    pub thresh: u64,
    /// Level of background write-out.
    pub background: u64,
    /// Dirty and under write-out, of the device.
    pub dev_dirty: u64,
    /// The device's share of the limit.
    pub dev_thresh: u64,
    /// ... of the level of background write-out.
    pub dev_background: u64,
    /// The device's share is a limit of its own.
    pub strict: bool,
}

impl Levels {
    /// Below this nobody pauses.
    fn freerun(&self) -> u64 {
        if self.strict {
            u64::midpoint(self.dev_thresh, self.dev_background)
        } else {
            u64::midpoint(self.thresh, self.background)
        }
    }
    fn counted(&self) -> (u64, u64) {
        if self.strict { (self.dev_dirty, self.dev_thresh) } else { (self.dirty, self.thresh) }
    }
    /// Nobody pauses at this level.
    pub fn is_free(&self) -> bool {
        self.counted().0 <= self.freerun()
    }
}

/// Estimators of a device.
#[derive(Clone, Copy, Debug)]
pub struct Estimator {
    hz: u64,
    write_bw: u64,
    avg_bw: u64,
    ratelimit: u64,
    balanced: u64,
    stamp: u64,
    written_stamp: u64,
    dirtied_stamp: u64,
    /// The device is over its limit.
    exceeded: bool,
    /// Hard limit, which follows the limit down slowly.
    limit: u64,
    limit_stamp: u64,
}

/// What a writer does after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Go,
    /// It sleeps so many ticks, then goes on.
    Pause(u64),
    /// It sleeps so many ticks, then looks again.
    PauseAndLook(u64),
}

/// `pos_ratio_polynom`.
fn polynom(setpoint: u64, dirty: u64, limit: u64) -> u64 {
    let (setpoint, dirty, limit) = (setpoint as i64, dirty as i64, limit as i64);
    let one = ONE as i64;
    let x = (setpoint - dirty) * one / (limit - setpoint).max(1);
    let cube = x * x / one * x / one;
    (cube + one).clamp(0, 2 * one) as u64
}

impl Estimator {
    /// As the variant says that it begins.
    pub fn new(cfg: &BalancedConfig, hz: u32) -> Self {
        let (bw, rate) = ((cfg.start_kib_s / 4).max(1), (cfg.start_rate_kib_s / 4).max(1));
        Self {
            hz: u64::from(hz),
            write_bw: bw,
            avg_bw: bw,
            ratelimit: rate,
            balanced: rate,
            stamp: 0,
            written_stamp: 0,
            dirtied_stamp: 0,
            exceeded: false,
            limit: 0,
            limit_stamp: 0,
        }
    }

    /// Average write bandwidth, pages per second.
    pub fn bandwidth(&self) -> u64 {
        self.avg_bw
    }

    /// Does a task that dirtied so many pages look now?
    #[inline]
    pub fn due(&self, w: &Writer) -> bool {
        w.dirtied >= if self.exceeded { w.pause_after.min(POLL_EXCEEDED) } else { w.pause_after }
    }

    /// `balance_dirty_pages`: one look. `dirtied` and `written` are the device's totals.
    pub fn look(&mut self, w: &mut Writer, l: &Levels, dirtied: u64, written: u64, now: u64) -> Verdict {
        if l.is_free() {
            let (dirty, thresh) = l.counted();
            w.pause_after = if thresh > dirty { 1 << ((thresh - dirty).ilog2() / 2) } else { 1 };
            (w.paused_when, w.dirtied) = (now, 0);
            return Verdict::Go;
        }
        self.exceeded = l.dev_dirty > l.dev_thresh && (l.dirty > l.thresh || l.strict);
        let pos = self.position(l);
        if now > self.stamp + self.interval() {
            self.update(Some((l, pos)), dirtied, written, now);
        }
        let rate = self.ratelimit * pos / ONE;
        let most = self.max_pause(l.dev_dirty);
        if rate == 0 {
            (w.paused_when, w.dirtied) = (now + most, 0);
            w.pause_after = POLL;
            return Verdict::PauseAndLook(most);
        }
        let (least, next) = self.min_pause(most, rate);
        let period = (self.hz * w.dirtied / rate) as i64;
        let mut pause = period;
        if w.paused_when != 0 {
            pause -= (now - w.paused_when.min(now)) as i64;
        }
        if pause < least as i64 {
            if pause < -(self.hz as i64) {
                (w.paused_when, w.dirtied) = (now, 0);
            } else if period > 0 {
                w.paused_when += period as u64;
                w.dirtied = 0;
            } else if w.pause_after <= w.dirtied {
                w.pause_after += w.dirtied;
            }
            return Verdict::Go;
        }
        let mut from = now;
        if pause > most as i64 {
            from += (pause as u64 - most).min(most);
            pause = most as i64;
        }
        w.paused_when = from + pause as u64;
        (w.dirtied, w.pause_after) = (0, next.max(1));
        Verdict::Pause(pause as u64)
    }

    /// `wb_position_ratio`.
    fn position(&self, l: &Levels) -> u64 {
        let limit = self.limit.max(l.thresh);
        if l.dirty >= limit {
            return 0;
        }
        let freerun = u64::midpoint(l.thresh, l.background);
        let setpoint = u64::midpoint(freerun, limit);
        let pos = polynom(setpoint, l.dirty, limit);
        if l.strict {
            let setpoint = u64::midpoint(l.dev_thresh, l.dev_background);
            if l.dev_dirty >= l.dev_thresh || setpoint == 0 || setpoint == l.dev_thresh {
                return 0;
            }
            return pos.min(polynom(setpoint, l.dev_dirty, l.dev_thresh));
        }
        let dev_thresh = l.dev_thresh.min(l.thresh).max((limit - l.dirty) / 8);
        let x = dev_thresh * 1024 / (l.thresh + 1);
        let dev_setpoint = setpoint * x / 1024;
        let span = (l.thresh.saturating_sub(dev_thresh) + 8 * self.avg_bw) * x / 1024;
        let intercept = dev_setpoint + span;
        let mut pos = if l.dev_dirty < intercept - span / 4 {
            pos * (intercept - l.dev_dirty) / (intercept - dev_setpoint).max(1)
        } else {
            pos / 4
        };
        let half = dev_thresh / 2;
        if l.dev_dirty < half {
            pos = if l.dev_dirty > half / 8 { pos * half / l.dev_dirty } else { pos * 8 };
        }
        pos
    }

    /// `__wb_update_bandwidth`, at most every 200 ms.
    pub fn update(&mut self, levels: Option<(&Levels, u64)>, dirtied: u64, written: u64, now: u64) {
        let elapsed = (now - self.stamp.min(now)).max(1);
        if let Some((l, pos)) = levels {
            self.update_limit(l, now);
            self.update_rate(l, pos, dirtied, elapsed);
        }
        self.update_bandwidth(written, elapsed);
        (self.stamp, self.dirtied_stamp, self.written_stamp) = (now, dirtied, written);
    }

    /// [`Estimator::update`] of the bandwidth alone, if the last one is more than 200 ms ago.
    pub fn update_if_due(&mut self, dirtied: u64, written: u64, now: u64) {
        if now > self.stamp + self.interval() {
            self.update(None, dirtied, written, now);
        }
    }

    /// Time between two updates, ticks (`BANDWIDTH_INTERVAL`).
    pub fn interval(&self) -> u64 {
        (self.hz / 5).max(1)
    }

    /// A file begins to be written, and no other is on its way: what was counted since an update that is more than 200 ms ago
    /// says nothing (`wb_bandwidth_estimate_start`).
    pub fn restart(&mut self, dirtied: u64, written: u64, now: u64) {
        if now > self.stamp + self.interval() {
            (self.stamp, self.dirtied_stamp, self.written_stamp) = (now, dirtied, written);
        }
    }

    fn update_limit(&mut self, l: &Levels, now: u64) {
        if now < self.limit_stamp + self.interval() {
            return;
        }
        self.limit_stamp = now;
        if self.limit < l.thresh {
            self.limit = l.thresh;
        } else {
            let floor = l.thresh.max(l.dirty);
            self.limit -= self.limit.saturating_sub(floor) >> 5;
        }
    }

    fn update_bandwidth(&mut self, written: u64, elapsed: u64) {
        let period = (3 * self.hz).next_power_of_two();
        let done = (written - self.written_stamp.min(written)) * self.hz;
        let old = self.write_bw;
        if elapsed > period {
            self.write_bw = done / elapsed;
            self.avg_bw = self.write_bw.max(1);
            return;
        }
        let bw = (done + self.write_bw * (period - elapsed)) / period;
        let avg = self.avg_bw;
        if avg > old && old >= bw {
            self.avg_bw -= (avg - old) / 8;
        }
        if avg < old && old <= bw {
            self.avg_bw += (old - avg) / 8;
        }
        self.avg_bw = self.avg_bw.max(1);
        self.write_bw = bw;
    }

    fn update_rate(&mut self, l: &Levels, pos: u64, dirtied: u64, elapsed: u64) {
        let write_bw = self.avg_bw;
        let dirty_rate = (dirtied - self.dirtied_stamp.min(dirtied)) * self.hz / elapsed;
        let task_rate = self.ratelimit * pos / ONE + 1;
        let balanced = (task_rate * write_bw / (dirty_rate | 1)).min(write_bw);
        let (dirty, setpoint) = if l.strict {
            (l.dev_dirty, u64::midpoint(l.dev_thresh, l.dev_background))
        } else {
            let limit = self.limit.max(l.thresh);
            (l.dirty, u64::midpoint(u64::midpoint(l.thresh, l.background), limit))
        };
        let step = if dirty < setpoint {
            self.balanced.min(balanced).min(task_rate).saturating_sub(self.ratelimit)
        } else {
            self.ratelimit.saturating_sub(self.balanced.max(balanced).max(task_rate))
        };
        let shift = self.ratelimit / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        self.ratelimit = if self.ratelimit < balanced { self.ratelimit + step } else { self.ratelimit - step }.max(1);
        self.balanced = balanced;
    }

    /// `wb_max_pause`, ticks.
    fn max_pause(&self, dev_dirty: u64) -> u64 {
        let t = dev_dirty / (1 + self.avg_bw / (1 + self.hz / 8).next_power_of_two());
        (t + 1).min((self.hz / 5).max(1))
    }

    /// `wb_min_pause`: ticks, and the pages after which to look again.
    fn min_pause(&self, most: u64, rate: u64) -> (u64, u64) {
        let hz2 = self.hz.next_power_of_two();
        let (hi, lo) = (self.avg_bw.ilog2(), self.ratelimit.ilog2());
        let mut t = (self.hz / 100).max(1);
        if hi > lo {
            t += u64::from(hi - lo) * 10 * self.hz / 1024;
        }
        t = t.min(1 + most / 2);
        let mut pages = self.ratelimit * t / hz2;
        if pages < POLL {
            t = most;
            pages = self.ratelimit * t / hz2;
            if pages > POLL {
                pages = POLL;
                t = self.hz * POLL / self.ratelimit;
            }
        }
        if self.hz * pages / (rate + 1) > most {
            t = most;
            pages = rate * t / hz2;
        }
        (if pages >= POLL { 1 + t / 2 } else { t }, pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(dirty: u64) -> Levels {
        Levels {
            dirty: 6562,
            thresh: 1_430_138,
            background: 715_069,
            dev_dirty: dirty,
            dev_thresh: 4267,
            dev_background: 2133,
            strict: true,
        }
    }

    /// The first pauses of a recorded run of 6.18: 32 pages at 643 pages a second, then less as the level rises.
    #[test]
    fn pauses_of_a_recorded_writer() {
        // The device's rate, which an earlier write-out had taught.
        let cfg = BalancedConfig { start_rate_kib_s: 2572, start_kib_s: 20 << 10, ..BalancedConfig::default() };
        let mut e = Estimator::new(&cfg, 250);
        let mut w = Writer { dirtied: 32, ..Writer::default() };
        e.stamp = 1000;
        assert_eq!(e.look(&mut w, &strict(3208), 3208, 0, 1000), Verdict::Pause(12));
        assert_eq!(w.pause_after, 32);
        w.dirtied = 32;
        assert_eq!(e.look(&mut w, &strict(3240), 3240, 0, 1013), Verdict::Pause(11));
    }

    #[test]
    fn below_the_free_level_nobody_pauses() {
        let mut e = Estimator::new(&BalancedConfig::default(), 250);
        let mut w = Writer { dirtied: 32, ..Writer::default() };
        assert_eq!(e.look(&mut w, &strict(3199), 0, 0, 1), Verdict::Go);
        assert_eq!(w.pause_after, 32);
    }

    #[test]
    fn at_the_devices_limit_a_writer_waits_and_looks_again() {
        let mut e = Estimator::new(&BalancedConfig::default(), 250);
        let mut w = Writer { dirtied: 32, ..Writer::default() };
        assert!(matches!(e.look(&mut w, &strict(4267), 0, 0, 1), Verdict::PauseAndLook(_)));
    }
}
