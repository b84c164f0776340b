//! The elevator of Linux 2.2.16 and 2.2.17 (`drivers/block/ll_rw_blk.c`): latency in segments.
//!
//! A new request starts with its direction's latency, less the segments queued before its place; each insertion and merge
//! ahead takes one more. It is never put so far back that nothing would be left. While reads wait, writes are kept from
//! growing beyond `max-bomb-segments` segments, so that none of them takes long ("write bombs").

use super::super::list::List;
use super::super::request::{NIL, Requests};
use super::super::{Bio, Dir, RqId};
use super::{Context, Elevator, End, Spot, Verdict};
use crate::config::ElevatorConfig;

/// The elevator of one queue. While it is plugged, a pseudo-request without direction, segments and patience is its first
/// element, written `NIL`, as in 2.2.20.
#[derive(Clone, Debug)]
pub(crate) struct Linux2216 {
    list: List,
    latency: [i64; 2],
    max_bomb_segments: u16,
}

/// Walks the list, the plug included.
#[derive(Clone, Copy)]
struct Walk {
    /// `NIL` = the plug.
    at: RqId,
    /// Patience left for a request placed here.
    latency: i64,
}

/// A request that a bio adjoins, and what the walk to it left.
struct Found {
    into: RqId,
    /// Looked at before it; `NIL` = nothing, or the plug.
    prev: RqId,
    end: End,
    /// Patience left for a request placed here.
    latency: i64,
    max_segments: u16,
}

impl Linux2216 {
    pub(crate) fn new(config: &ElevatorConfig) -> Self {
        let bomb = u16::try_from(config.max_bomb_segments).unwrap_or(u16::MAX);
        Self {
            list: List::new(),
            latency: [config.read_latency, config.write_latency].map(i64::from),
            // The kernel refuses 0; here it means that nothing is limited.
            max_bomb_segments: if bomb == 0 { u16::MAX } else { bomb },
        }
    }

    fn behind(&self, rqs: &Requests, at: RqId) -> RqId {
        if at == NIL { self.list.head } else { rqs[at].next }
    }

    fn segments(rqs: &Requests, at: RqId) -> i64 {
        if at == NIL { 0 } else { i64::from(rqs[at].segments) }
    }

    /// A read is queued from here on.
    fn reads_wait(&self, rqs: &Requests, from: RqId) -> bool {
        let mut at = if from == NIL { self.list.head } else { from };
        while at != NIL && rqs[at].dir != Dir::Read {
            at = rqs[at].next;
        }
        at != NIL
    }

    /// Moves to the last element that is out of patience, unless that is farther back than the new request may go.
    /// Whether there is one.
    fn skip_starving(&self, rqs: &Requests, w: &mut Walk) -> bool {
        let (mut found, mut pos, mut last_pos, mut at) = (false, 0, 0, w.at);
        loop {
            if at == NIL || rqs[at].seq <= 0 {
                found = true;
                w.at = at;
                last_pos = pos;
                if last_pos >= w.latency {
                    break;
                }
            }
            pos += Self::segments(rqs, at);
            at = self.behind(rqs, at);
            if at == NIL {
                break;
            }
        }
        w.latency -= last_pos;
        found
    }

    fn join(&mut self, rqs: &mut Requests, bio: &Bio, found: &Found, cx: &Context) -> Verdict {
        let Found { into, prev, end, latency, max_segments } = *found;
        let pair = match end {
            End::Back => {
                rqs.attach_back(into, *bio);
                let left = latency - i64::from(rqs[into].segments);
                rqs[into].seq = clamp(i64::from(rqs[into].seq).min(left));
                (into, rqs[into].next)
            }
            End::Front => {
                rqs.attach_front(into, *bio);
                rqs[into].seq = clamp((i64::from(rqs[into].seq) - 1).min(latency));
                (prev, into)
            }
        };
        self.list.charge_behind(rqs, into, 1);
        if pair.0 != NIL && pair.1 != NIL {
            let (a, b) = pair;
            let patience = rqs[a].seq.min(rqs[b].seq);
            let cx = Context { max_segments, ..*cx };
            if self.list.coalesce(rqs, a, b, &cx) {
                rqs[a].seq = patience;
                return Verdict::Merged { into: a, end, absorbed: Some(b) };
            }
        }
        Verdict::Merged { into, end, absorbed: None }
    }
}

fn clamp(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(if n < 0 { i32::MIN } else { i32::MAX })
}

impl Elevator for Linux2216 {
    fn offer(&mut self, rqs: &mut Requests, bio: &Bio, cx: &Context) -> Verdict {
        let new = Verdict::Insert(Spot::Tail);
        if self.list.is_empty() {
            return new;
        }
        let (start, end) = (bio.sector.get(), bio.sector.get() + u64::from(bio.nr));
        let mut w = Walk { at: if cx.plugged { NIL } else { self.list.head }, latency: self.latency[bio.dir.index()] };
        if cx.head_active {
            // The driver may work on the first element.
            let first = w.at;
            w.at = self.behind(rqs, first);
            if w.at == NIL {
                return new;
            }
            w.latency -= Self::segments(rqs, first);
        }
        let mut max_segments = cx.max_segments;
        if bio.dir == Dir::Write && self.reads_wait(rqs, w.at) {
            max_segments = max_segments.min(self.max_bomb_segments);
        }
        let starving = self.skip_starving(rqs, &mut w);
        let mut prev = None;
        loop {
            if w.at != NIL {
                let r = rqs[w.at];
                let fits = r.dir == bio.dir && r.nr + bio.nr <= cx.max_sectors && r.partition == bio.partition;
                let side = match () {
                    () if !fits => None,
                    () if r.end() == start => Some(End::Back),
                    () if r.sector == end => Some(End::Front),
                    () => None,
                };
                if let Some(side) = side {
                    let late = match side {
                        End::Back => w.latency < i64::from(r.segments),
                        End::Front => prev.is_none() && starving,
                    };
                    if late || r.segments >= max_segments {
                        return new;
                    }
                    let before = prev.unwrap_or(NIL);
                    let found = Found { into: w.at, prev: before, end: side, latency: w.latency, max_segments };
                    return self.join(rqs, bio, &found, cx);
                }
            }
            prev = Some(w.at);
            w.latency -= Self::segments(rqs, w.at);
            w.at = self.behind(rqs, w.at);
            if w.latency < 0 || w.at == NIL {
                return new;
            }
        }
    }

    fn insert(&mut self, rqs: &mut Requests, rq: RqId, _: Spot, cx: &Context) -> bool {
        let latency = self.latency[rqs[rq].dir.index()];
        if self.list.is_empty() {
            rqs[rq].seq = clamp(latency);
            self.list.push_back(rqs, rq);
            return true;
        }
        let key = |rqs: &Requests, at: RqId| if at == NIL { None } else { Some((rqs[at].partition, rqs[at].sector)) };
        let x = key(rqs, rq);
        let mut w = Walk { at: if cx.plugged { NIL } else { self.list.head }, latency };
        let starving = self.skip_starving(rqs, &mut w);
        let from = w;
        let mut first = false;
        loop {
            w.latency -= Self::segments(rqs, w.at);
            if w.latency <= 0 {
                // Too far back: to the start of the walk, on devices without a busy head even before it.
                w = Walk { at: from.at, latency: from.latency - Self::segments(rqs, from.at) };
                if !starving && !cx.head_active {
                    first = true;
                    w.latency = from.latency;
                }
                break;
            }
            let next = self.behind(rqs, w.at);
            if next == NIL {
                break;
            }
            let (kp, kq) = (key(rqs, w.at), key(rqs, next));
            let fits = if kp < kq { kp < x && x < kq } else { kp < x || x < kq };
            if fits {
                break;
            }
            w.at = next;
        }
        rqs[rq].seq = clamp(w.latency);
        if first && w.at != NIL {
            self.list.insert_before(rqs, w.at, rq);
        } else {
            self.list.insert_after(rqs, w.at, rq);
        }
        self.list.charge_behind(rqs, rq, 1);
        self.list.tail == rq
    }

    fn dispatch(&mut self, rqs: &mut Requests, cx: &Context) -> Option<RqId> {
        self.list.serve(rqs, cx)
    }

    fn complete(&mut self, rqs: &mut Requests, rq: RqId, cx: &Context) {
        self.list.served(rqs, rq, cx);
    }

    fn len(&self) -> usize {
        self.list.len()
    }

    fn position(&self, rqs: &Requests, rq: RqId) -> Option<usize> {
        self.list.position(rqs, rq)
    }
}
