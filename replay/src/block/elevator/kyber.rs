//! Kyber as in Linux 6.1 (`block/kyber-iosched.c`): first in, first out per direction, with a throttle on each.
//!
//! A direction may have so many requests at the device as it has tokens; a timer gives and takes tokens by how latencies
//! compare with targets. Reduced: discards and other operations do not occur, and there is one hardware queue.

use kreplay_traces::units::Nanos;

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, Dir, RqId};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::KyberConfig;

/// Tokens at the start, and the most there are: reads, writes.
const MAX_DEPTH: [u32; 2] = [256, 128];
/// Requests of a direction in a row.
const BATCH: [u32; 2] = [16, 8];
/// Share of the scheduler tags that asynchronous requests may use, percent.
const ASYNC_PERCENT: u32 = 75;
/// Buckets are a quarter of the target wide; the last also holds everything beyond.
const BUCKETS: usize = 8;
/// Buckets within the target.
const GOOD: usize = 4;
/// A percentile is taken from this many samples, or after [`PATIENCE`].
const SAMPLES: u32 = 500;
const PATIENCE: Nanos = Nanos::from_secs(1);
const TIMER: Nanos = Nanos::from_millis(100);
/// Bios are merged into the newest requests of their direction only.
const LOOK_BACK: usize = 8;

/// Latencies since the last percentile.
#[derive(Clone, Copy, Debug, Default)]
struct Histogram {
    buckets: [u32; BUCKETS],
}

impl Histogram {
    fn add(&mut self, latency: Nanos, target: Nanos) {
        let bucket = latency.get().saturating_sub(1) / (target.get() / GOOD as u64);
        self.buckets[(bucket as usize).min(BUCKETS - 1)] += 1;
    }

    fn samples(&self) -> u32 {
        self.buckets.iter().sum()
    }

    /// The bucket of a percentile; starts anew.
    fn take(&mut self, percent: u32) -> usize {
        let mut left = (self.samples() * percent).div_ceil(100);
        let bucket = self.buckets.iter().position(|&n| {
            let found = n >= left;
            left = left.saturating_sub(n);
            found
        });
        *self = Self::default();
        bucket.unwrap_or(BUCKETS - 1)
    }
}

/// A direction.
#[derive(Clone, Debug, Default)]
struct Domain {
    list: List,
    depth: u32,
    in_flight: u32,
    /// At the device, and from arrival on.
    io: Histogram,
    total: Histogram,
    /// When a percentile is due though samples are few.
    due: Option<Nanos>,
    /// Percentile kept for the next congestion.
    last_p99: Option<usize>,
}

impl Domain {
    fn percentile(&mut self, which: fn(&mut Self) -> &mut Histogram, percent: u32, now: Nanos) -> Option<usize> {
        let samples = which(self).samples();
        if samples == 0 {
            return None;
        }
        let due = *self.due.get_or_insert(now + PATIENCE);
        if samples < SAMPLES && now < due {
            return None;
        }
        self.due = None;
        Some(which(self).take(percent))
    }
}

/// The scheduler of one queue.
#[derive(Clone, Debug)]
pub(crate) struct Kyber {
    /// Latency targets of reads and writes.
    target: [Nanos; 2],
    domains: [Domain; 2],
    current: usize,
    batching: u32,
    timer: Option<Nanos>,
}

impl Kyber {
    pub(crate) fn new(c: &KyberConfig) -> Self {
        Self {
            target: [c.read_lat_us, c.write_lat_us].map(|us| Nanos(us.max(1) * 1000)),
            domains: MAX_DEPTH.map(|depth| Domain { depth, ..Domain::default() }),
            current: 0,
            batching: 0,
            timer: None,
        }
    }

    /// Adapts the tokens, at most once per timer period.
    fn adapt(&mut self, now: Nanos) {
        let congested = self.domains.iter_mut().fold(false, |bad, d| {
            let p90 = d.percentile(|d| &mut d.io, 90, now);
            bad | p90.is_some_and(|b| b >= GOOD)
        });
        for (d, most) in self.domains.iter_mut().zip(MAX_DEPTH) {
            let fresh = d.percentile(|d| &mut d.total, 99, now);
            // Directions rarely have enough samples in the same period: an old percentile counts once.
            let p99 = if congested {
                fresh.or(d.last_p99.take())
            } else {
                d.last_p99 = fresh.or(d.last_p99);
                fresh
            };
            if let Some(p99) = p99
                && (congested || p99 >= GOOD)
            {
                d.depth = (d.depth * (p99 as u32 + 1) / GOOD as u32).clamp(1, most);
            }
        }
    }

    fn take(&mut self, rqs: &mut Requests) -> Option<RqId> {
        let d = &mut self.domains[self.current];
        let rq = d.list.head;
        if rq == NIL || d.in_flight >= d.depth {
            return None;
        }
        d.list.remove(rqs, rq);
        d.in_flight += 1;
        self.batching += 1;
        Some(rq)
    }
}

impl Elevator for Kyber {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let (start, end) = (bio.sector.get(), bio.sector.get() + u64::from(bio.nr));
        let mut at = self.domains[bio.dir.index()].list.tail;
        for _ in 0..LOOK_BACK {
            if at == NIL {
                break;
            }
            let r = &rqs[at];
            let side = match () {
                () if r.partition != bio.partition => None,
                () if r.end() == start => Some(End::Back),
                () if r.sector == end => Some(End::Front),
                () => None,
            };
            if let Some(side) = side
                && r.nr + bio.nr <= cx.max_sectors
                && r.segments < cx.max_segments
            {
                match side {
                    End::Back => rqs.attach_back(at, *bio),
                    End::Front => rqs.attach_front(at, *bio),
                }
                return Verdict::Merged { into: at, end: side, absorbed: None };
            }
            at = r.prev;
        }
        Verdict::Insert(Spot::Tail)
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, _: &Context) -> bool {
        self.domains[rqs[rq].dir.index()].list.push_back(rqs, rq);
        true
    }

    fn dispatch(&mut self, rqs: &mut Requests, _: &Context) -> Option<RqId> {
        if self.batching < BATCH[self.current]
            && let Some(rq) = self.take(rqs)
        {
            return Some(rq);
        }
        self.batching = 0;
        // The other direction first, then this one again.
        (0..self.domains.len()).find_map(|_| {
            self.current = (self.current + 1) % self.domains.len();
            self.take(rqs)
        })
    }

    fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
        let life = *rqs.life(rq);
        let dir = rqs[rq].dir.index();
        let d = &mut self.domains[dir];
        d.in_flight -= 1;
        d.io.add(cx.now.saturating_sub(life.d), self.target[dir]);
        d.total.add(cx.now.saturating_sub(life.q), self.target[dir]);
        let due = *self.timer.get_or_insert(cx.now + TIMER);
        if cx.now >= due {
            self.timer = None;
            self.adapt(cx.now);
        }
    }

    fn len(&self) -> usize {
        self.domains.iter().map(|d| d.list.len()).sum()
    }

    fn position(&self, _: &Requests, _: RqId) -> Option<usize> {
        None
    }

    fn word_depth(&self, _: Dir, sync: bool, word: u32) -> u32 {
        if sync { word } else { (word * ASYNC_PERCENT / 100).max(1) }
    }

    fn least_tags(&self, total: u32) -> u32 {
        (total * ASYNC_PERCENT / 100).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_fall_into_quarters_of_the_target() {
        let target = [Nanos::from_millis(2)];
        let mut h = Histogram::default();
        for _ in 0..90 {
            h.add(Nanos(500_000), target[0]);
        }
        for _ in 0..10 {
            h.add(Nanos::from_millis(50), target[0]);
        }
        assert_eq!(h.clone().take(90), 0);
        assert_eq!(h.take(91), 7);
        assert_eq!(h.samples(), 0);
    }

    #[test]
    fn slow_reads_take_tokens_from_writes() {
        let mut k = Kyber::new(&KyberConfig::default());
        let target = k.target;
        for _ in 0..SAMPLES {
            // Reads 2.5 times their target at the device: congestion. Writes well within theirs.
            k.domains[0].io.add(Nanos::from_millis(5), target[0]);
            k.domains[0].total.add(Nanos::from_millis(5), target[0]);
            k.domains[1].total.add(Nanos::from_millis(4), target[1]);
        }
        k.adapt(Nanos::from_secs(1));
        // Writes: p99 in the second quarter, so the depth is halved; reads stay at their maximum.
        assert_eq!(k.domains.clone().map(|d| d.depth), [256, 64]);
    }
}
