//! What a file server's threads do with a reply that does not fit into the client's send buffer.
//!
//! A queueing model in whole ticks. `threads` threads take requests from a first-come-first-served list of ready
//! sockets (a socket is listed once, and goes to the tail again after giving up one request). A reply enters its
//! client's send buffer whole or not at all; the client takes `rate` bytes a tick out of it, except while its network is
//! congested, and keeps `window` requests outstanding. The strategies are those that Linux used or that were proposed
//! for it: knfsd of 2.4 drops over UDP (`MSG_DONTWAIT` in `net/sunrpc/svcsock.c`), blocking is what its TCP code was
//! first meant to do, reserving is 2.6's `sk_reserved` test.
//!
//! Each tick has five phases, always in this order: clients take bytes from their buffers; replies that wait move into
//! buffers with room; services that are due end, in the order in which they began; clients issue (new requests, then
//! timers, client by client); idle threads take requests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What becomes of a reply without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Dropped; the client sends its request again after a time that doubles.
    UdpDrop,
    /// The thread keeps it until there is room.
    TcpBlock,
    /// As `TcpBlock`, and thread k serves client k only.
    TcpThreadPerConn,
    /// Parked at the socket; the thread goes on.
    TcpDeferred,
    /// A request is not begun unless twice what is reserved for its client, this reply included, is free.
    TcpReserve,
}

/// A case. Times in ticks, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// What becomes of a reply without room.
    pub strategy: Strategy,
    /// Server threads, 1 to 65536.
    pub threads: usize,
    /// Clients, 1 to 65536.
    pub clients: usize,
    /// Requests that each client keeps outstanding, 1 to 65536.
    pub window: usize,
    /// Service time.
    pub svc: u64,
    /// Size of a reply, at least 1.
    pub reply: u64,
    /// Size of a client's send buffer.
    pub sndbuf: u64,
    /// Bytes that a client takes a tick.
    pub rate: u64,
    /// Client, first tick and tick behind the last one of the congestion.
    pub congest: (usize, u64, u64),
    /// From a reply to the next request.
    pub think: u64,
    /// Ticks to simulate, at most 100 million.
    pub ticks: u64,
    /// UDP: first timeout.
    pub rto: u64,
    /// UDP: longest timeout.
    pub rto_cap: u64,
    /// Reservation for a reply (its largest size).
    pub reserve: u64,
}

/// Parameters that make no server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{name} = {value}: {why}")]
pub struct ParamError {
    name: &'static str,
    value: u64,
    why: &'static str,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Requests done per client.
    pub done: Vec<u64>,
    /// Mean time from issue to reply, per client; `None` where nothing was done.
    pub mean_latency: Vec<Option<f64>>,
    /// Longest such time per client.
    pub max_latency: Vec<u64>,
    /// Replies dropped.
    pub drops: u64,
    /// Requests sent again.
    pub retransmits: u64,
    /// Replies to requests that had been answered already.
    pub duplicate_replies: u64,
    /// Most replies parked at a time.
    pub max_deferred: usize,
    /// Most threads at a time that served, or waited for, the congested client.
    pub max_threads_held_by_congested: usize,
    /// Mean of the same over all ticks.
    pub mean_threads_held_by_congested: f64,
    /// First tick in which it held every thread.
    pub first_all_threads_stuck: Option<u64>,
    /// Ticks in which it did.
    pub ticks_all_threads_stuck: u64,
}

impl Outcome {
    /// Requests done by all clients.
    pub fn total(&self) -> u64 {
        self.done.iter().sum()
    }

    /// Jain's fairness index of the clients' throughput; `None` if nothing was done.
    pub fn jain(&self) -> Option<f64> {
        let sum = self.total() as f64;
        let squares: f64 = self.done.iter().map(|&d| (d as f64).powi(2)).sum();
        (squares > 0.0).then(|| sum * sum / (self.done.len() as f64 * squares))
    }
}

/// Number of a request, in order of issue.
type Xid = u64;

/// A request as its client sees it.
#[derive(Clone, Copy, Debug)]
struct Open {
    issued: u64,
    resend_at: u64,
    timeout: u64,
}

/// A client and its socket at the server.
#[derive(Clone, Debug, Default)]
struct Client {
    open: BTreeMap<Xid, Open>,
    /// Ticks at which requests will be issued, ascending.
    issues: VecDeque<u64>,
    /// Replies in the send buffer: bytes left, request.
    buffer: VecDeque<(u64, Xid)>,
    buffered: u64,
    /// Requests that no thread has taken.
    queued: VecDeque<Xid>,
    /// Requests queued or in service: a copy of one is ignored.
    known: BTreeSet<Xid>,
    listed: bool,
    reserved: u64,
    parked: VecDeque<Xid>,
    /// Threads that wait with a reply of this client.
    waiting: usize,
    done: u64,
    latency: u64,
    longest: u64,
}

/// What a thread does.
#[derive(Clone, Copy, Debug)]
struct Job {
    client: usize,
    xid: Xid,
    ends: u64,
}

struct Server<'a> {
    p: &'a Params,
    clients: Vec<Client>,
    ready: VecDeque<usize>,
    threads: Vec<Option<Job>>,
    /// Threads in service, in the order in which they began.
    serving: Vec<usize>,
    /// Threads that wait with a reply, in order.
    waiting: Vec<usize>,
    next_xid: Xid,
    parked: usize,
    held: usize,
    held_sum: u64,
    out: Outcome,
}

/// Plays a case.
///
/// # Errors
/// A parameter is out of its range.
pub fn simulate(p: &Params) -> Result<Outcome, ParamError> {
    check(p)?;
    let mut server = Server::new(p);
    for now in 0..p.ticks {
        server.drain(now);
        server.move_waiting();
        server.finish(now);
        server.issue(now);
        server.dispatch(now);
        server.observe(now);
    }
    Ok(server.outcome())
}

fn check(p: &Params) -> Result<(), ParamError> {
    const MANY: u64 = 65_536;
    let ranges = [
        ("threads", p.threads as u64, 1, MANY, "1 to 65536"),
        ("clients", p.clients as u64, 1, MANY, "1 to 65536"),
        ("window", p.window as u64, 1, MANY, "1 to 65536"),
        ("clients x window", (p.clients as u64).saturating_mul(p.window as u64), 1, 1 << 24, "at most 16777216"),
        ("reply", p.reply, 1, u64::MAX >> 8, "at least one byte"),
        ("ticks", p.ticks, 1, 100_000_000, "1 to 100000000"),
        ("svc", p.svc, 0, u64::MAX >> 8, "too long"),
        ("think", p.think, 0, u64::MAX >> 8, "too long"),
        ("rto", p.rto, 1, u64::MAX >> 8, "at least one tick"),
        ("rto_cap", p.rto_cap, 1, u64::MAX >> 8, "at least one tick"),
        ("sndbuf", p.sndbuf, 0, u64::MAX >> 8, "too large"),
        ("rate", p.rate, 0, u64::MAX >> 8, "too large"),
        ("reserve", p.reserve, 0, u64::MAX >> 20, "too large"),
    ];
    for (name, value, least, most, why) in ranges {
        if !(least..=most).contains(&value) {
            return Err(ParamError { name, value, why });
        }
    }
    Ok(())
}

impl<'a> Server<'a> {
    fn new(p: &'a Params) -> Self {
        let client = Client { issues: std::iter::repeat_n(0, p.window).collect(), ..Client::default() };
        Self {
            p,
            clients: vec![client; p.clients],
            ready: VecDeque::new(),
            threads: vec![None; p.threads],
            serving: Vec::new(),
            waiting: Vec::new(),
            next_xid: 0,
            parked: 0,
            held: 0,
            held_sum: 0,
            out: Outcome {
                done: Vec::new(),
                mean_latency: Vec::new(),
                max_latency: Vec::new(),
                drops: 0,
                retransmits: 0,
                duplicate_replies: 0,
                max_deferred: 0,
                max_threads_held_by_congested: 0,
                mean_threads_held_by_congested: 0.0,
                first_all_threads_stuck: None,
                ticks_all_threads_stuck: 0,
            },
        }
    }

    fn drain(&mut self, now: u64) {
        let (congested, from, to) = self.p.congest;
        for (c, client) in self.clients.iter_mut().enumerate() {
            if c == congested && (from..to).contains(&now) {
                continue;
            }
            let mut budget = self.p.rate;
            while budget > 0
                && let Some((left, xid)) = client.buffer.front_mut()
            {
                let n = budget.min(*left);
                *left -= n;
                budget -= n;
                client.buffered -= n;
                if *left > 0 {
                    break;
                }
                let xid = *xid;
                client.buffer.pop_front();
                if let Some(open) = client.open.remove(&xid) {
                    let took = now - open.issued;
                    client.done += 1;
                    client.latency += took;
                    client.longest = client.longest.max(took);
                    client.issues.push_back(now + self.p.think);
                } else {
                    self.out.duplicate_replies += 1;
                }
            }
        }
    }

    /// Puts a reply into its client's buffer, if it fits.
    fn send(&mut self, c: usize, xid: Xid) -> bool {
        let client = &mut self.clients[c];
        let fits = client.buffered + self.p.reply <= self.p.sndbuf;
        if fits {
            client.buffer.push_back((self.p.reply, xid));
            client.buffered += self.p.reply;
        }
        fits
    }

    fn move_waiting(&mut self) {
        if self.parked > 0 {
            for c in 0..self.clients.len() {
                while let Some(&xid) = self.clients[c].parked.front() {
                    if !self.send(c, xid) {
                        break;
                    }
                    self.clients[c].parked.pop_front();
                    self.parked -= 1;
                }
            }
        }
        for thread in std::mem::take(&mut self.waiting) {
            let Some(job) = self.threads[thread] else { continue };
            if self.send(job.client, job.xid) {
                self.clients[job.client].waiting -= 1;
                self.release(thread);
            } else {
                self.waiting.push(thread);
            }
        }
    }

    fn finish(&mut self, now: u64) {
        for thread in std::mem::take(&mut self.serving) {
            let Some(job) = self.threads[thread] else { continue };
            if job.ends > now {
                self.serving.push(thread);
                continue;
            }
            let c = job.client;
            self.clients[c].known.remove(&job.xid);
            match self.p.strategy {
                Strategy::UdpDrop => {
                    self.release(thread);
                    if !self.send(c, job.xid) {
                        self.out.drops += 1;
                    }
                }
                Strategy::TcpDeferred => {
                    self.release(thread);
                    // Replies of one connection keep their order.
                    if !self.clients[c].parked.is_empty() || !self.send(c, job.xid) {
                        self.clients[c].parked.push_back(job.xid);
                        self.parked += 1;
                    }
                }
                Strategy::TcpBlock | Strategy::TcpThreadPerConn | Strategy::TcpReserve => {
                    if self.p.strategy == Strategy::TcpReserve {
                        self.clients[c].reserved -= self.p.reserve;
                    }
                    if self.clients[c].waiting == 0 && self.send(c, job.xid) {
                        self.release(thread);
                    } else {
                        self.clients[c].waiting += 1;
                        self.waiting.push(thread);
                    }
                }
            }
        }
        self.out.max_deferred = self.out.max_deferred.max(self.parked);
    }

    fn issue(&mut self, now: u64) {
        for c in 0..self.clients.len() {
            while self.clients[c].issues.front().is_some_and(|&t| t <= now) {
                self.clients[c].issues.pop_front();
                let xid = self.next_xid;
                self.next_xid += 1;
                let open = Open { issued: now, resend_at: now + self.p.rto, timeout: self.p.rto };
                self.clients[c].open.insert(xid, open);
                self.arrive(c, xid);
            }
            if self.p.strategy == Strategy::UdpDrop {
                self.resend(c, now);
            }
        }
    }

    fn resend(&mut self, c: usize, now: u64) {
        let mut again = Vec::new();
        for (&xid, open) in self.clients[c].open.iter_mut().filter(|(_, o)| o.resend_at <= now) {
            open.timeout = open.timeout.saturating_mul(2).min(self.p.rto_cap);
            open.resend_at = now + open.timeout;
            again.push(xid);
        }
        for xid in again {
            self.out.retransmits += 1;
            if !self.clients[c].known.contains(&xid) {
                self.arrive(c, xid);
            }
        }
    }

    fn arrive(&mut self, c: usize, xid: Xid) {
        let client = &mut self.clients[c];
        client.queued.push_back(xid);
        client.known.insert(xid);
        if !client.listed {
            client.listed = true;
            self.ready.push_back(c);
        }
    }

    fn dispatch(&mut self, now: u64) {
        if self.p.strategy == Strategy::TcpThreadPerConn {
            for c in 0..self.threads.len().min(self.clients.len()) {
                if self.threads[c].is_none()
                    && let Some(xid) = self.clients[c].queued.pop_front()
                {
                    self.begin(c, c, xid, now);
                }
            }
            return;
        }
        let mut thread = 0;
        let mut refused = Vec::new();
        while thread < self.threads.len() {
            if self.threads[thread].is_some() {
                thread += 1;
                continue;
            }
            let Some(c) = self.ready.pop_front() else { break };
            if self.p.strategy == Strategy::TcpReserve {
                let client = &mut self.clients[c];
                if 2 * (client.reserved + self.p.reserve) > self.p.sndbuf - client.buffered {
                    refused.push(c);
                    continue;
                }
                client.reserved += self.p.reserve;
            }
            let client = &mut self.clients[c];
            // A socket is listed only while requests are queued at it.
            let Some(xid) = client.queued.pop_front() else { continue };
            client.listed = !client.queued.is_empty();
            if client.listed {
                self.ready.push_back(c);
            }
            self.begin(thread, c, xid, now);
        }
        // Those without room keep their places.
        for c in refused.into_iter().rev() {
            self.ready.push_front(c);
        }
    }

    fn begin(&mut self, thread: usize, client: usize, xid: Xid, now: u64) {
        self.threads[thread] = Some(Job { client, xid, ends: now + self.p.svc });
        self.serving.push(thread);
        self.held += usize::from(client == self.p.congest.0);
    }

    fn release(&mut self, thread: usize) {
        if let Some(job) = self.threads[thread].take() {
            self.held -= usize::from(job.client == self.p.congest.0);
        }
    }

    fn observe(&mut self, now: u64) {
        self.held_sum += self.held as u64;
        self.out.max_threads_held_by_congested = self.out.max_threads_held_by_congested.max(self.held);
        if self.held == self.threads.len() {
            self.out.ticks_all_threads_stuck += 1;
            self.out.first_all_threads_stuck.get_or_insert(now);
        }
    }

    fn outcome(mut self) -> Outcome {
        self.out.mean_threads_held_by_congested = self.held_sum as f64 / self.p.ticks as f64;
        for c in &self.clients {
            self.out.done.push(c.done);
            self.out.mean_latency.push((c.done > 0).then(|| c.latency as f64 / c.done as f64));
            self.out.max_latency.push(c.longest);
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::{Params, Strategy, simulate};
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

    fn params(strategy: Strategy) -> Params {
        Params {
            strategy,
            threads: 8,
            clients: 4,
            window: 16,
            svc: 4,
            reply: 8192,
            sndbuf: 65_536,
            rate: 10_000,
            congest: (0, 1000, 8000),
            think: 0,
            ticks: 20_000,
            rto: 700,
            rto_cap: 60_000,
            reserve: 9216,
        }
    }

    #[test]
    fn one_congested_client_blocks_all_threads_unless_they_are_kept_from_waiting() {
        let block = simulate(&params(Strategy::TcpBlock)).expect("valid");
        assert_eq!(block.done, [6510; 4]);
        assert_eq!((block.first_all_threads_stuck, block.ticks_all_threads_stuck), (Some(1048), 6952));
        // Fairness alone calls the worst strategy perfect.
        assert_eq!(block.jain(), Some(1.0));
        for s in [Strategy::UdpDrop, Strategy::TcpDeferred, Strategy::TcpReserve, Strategy::TcpThreadPerConn] {
            let o = simulate(&params(s)).expect("valid");
            assert_eq!(o.ticks_all_threads_stuck, 0, "{s:?}");
            assert!(o.max_latency[1..].iter().all(|&l| l < 100), "{s:?}: {:?}", o.max_latency);
        }
    }

    #[test]
    fn udp_sends_again_what_was_dropped() {
        let o = simulate(&params(Strategy::UdpDrop)).expect("valid");
        assert_eq!(o.done, [6503, 11_145, 11_144, 11_144]);
        assert_eq!((o.drops, o.retransmits), (56, 56));
    }

    #[test]
    fn nonsense_is_refused() {
        let p = Params { threads: 0, ..params(Strategy::UdpDrop) };
        assert_eq!(simulate(&p).unwrap_err().to_string(), "threads = 0: 1 to 65536");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        /// No strategy does more than the threads can, nor loses a client that has room and time.
        #[test]
        fn work_is_bounded_by_the_threads(
            which in 0..5usize, threads in 1..6usize, clients in 1..6usize, window in 1..20usize,
            svc in 1..6u64, reply in 1..20_000u64, rate in 1..20_000u64, think in 0..50u64,
        ) {
            let strategy = [Strategy::UdpDrop, Strategy::TcpBlock, Strategy::TcpThreadPerConn, Strategy::TcpDeferred,
                Strategy::TcpReserve][which];
            let p = Params { threads, clients, window, svc, reply, rate, think, ticks: 3000, congest: (0, 500, 900),
                ..params(strategy) };
            let o = simulate(&p).expect("valid");
            prop_assert!(o.total() * svc <= 3000 * threads as u64);
            prop_assert!(o.max_deferred <= window * clients);
            prop_assert!(o.max_threads_held_by_congested <= threads);
            prop_assert_eq!(simulate(&p).expect("valid"), o);
        }
    }
}
