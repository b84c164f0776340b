//! Network links between the traced tasks and clients that are not traced.

use super::Sim;
use super::event::Event;
use super::sched::Flow;
use super::task::At;
use crate::config::ReplyStrategy;
use crate::net::nfsd;
use crate::program::LinkKind;
use kreplay_traces::units::Nanos;

/// A receiver that finds nothing sleeps for this long, as it asks for; the kernel's timer makes it more.
const POLL: Nanos = Nanos::from_millis(1);

/// A client of the time resends after this time, doubled each time up to the second, over UDP.
const FIRST_TIMEOUT_MS: u64 = 700;
const LONGEST_TIMEOUT_MS: u64 = 60_000;
/// What a server reserves beside a reply's data.
const REPLY_HEADER_BYTES: u64 = 1024;

fn strategy(of: ReplyStrategy) -> nfsd::Strategy {
    match of {
        ReplyStrategy::UdpDrop => nfsd::Strategy::UdpDrop,
        ReplyStrategy::TcpBlock => nfsd::Strategy::TcpBlock,
        ReplyStrategy::TcpThreadPerConn => nfsd::Strategy::TcpThreadPerConn,
        ReplyStrategy::TcpDeferred => nfsd::Strategy::TcpDeferred,
        ReplyStrategy::TcpReserve => nfsd::Strategy::TcpReserve,
    }
}

impl Sim<'_> {
    /// One message over a first-come-first-served link.
    pub(super) fn step_link(&mut self, t: u32, link: u32, bytes: u32) -> Option<Flow> {
        if self.tasks[t as usize].op.at == At::Done {
            return None;
        }
        self.tasks[t as usize].op.at = At::Done;
        let rate = self.program.links[link as usize].rate_bytes_s.max(1);
        let local = self.local_now();
        let l = &mut self.links[link as usize];
        let start = l.busy_until.max(local);
        l.busy_until = start + Nanos(u64::from(bytes) * 1_000_000_000 / rate);
        let done = l.busy_until;
        Some(self.sleep_until(t, done))
    }

    /// A client's whole conversation with a request server: the queueing model answers for all clients of the link at once.
    pub(super) fn step_ask(&mut self, t: u32, link: u32, client: u32) -> Option<Flow> {
        if self.tasks[t as usize].op.at == At::Done {
            return None;
        }
        self.tasks[t as usize].op.at = At::Done;
        let info = self.program.links[link as usize];
        let LinkKind::Server(load) = info.kind else { return None };
        let bytes = u64::from(load.reply_bytes);
        let params = nfsd::Params {
            strategy: strategy(self.config.net.reply_strategy),
            threads: load.threads as usize,
            clients: info.clients as usize,
            window: load.window as usize,
            svc: u64::from(load.service_ms),
            reply: bytes,
            sndbuf: u64::from(load.send_buffer_bytes),
            rate: info.rate_bytes_s / 1000,
            congest: (load.congested.0 as usize, u64::from(load.congested.1), u64::from(load.congested.2)),
            think: 0,
            ticks: u64::from(load.duration_ms),
            rto: FIRST_TIMEOUT_MS,
            rto_cap: LONGEST_TIMEOUT_MS,
            reserve: bytes + REPLY_HEADER_BYTES,
        };
        // Sizes that make no server serve nothing; the generator's ranges leave none.
        let done = nfsd::simulate(&params).map_or(0, |o| o.done[client as usize]);
        self.tasks[t as usize].op.pos = done * bytes;
        let at = self.local_now() + Nanos::from_millis(u64::from(load.duration_ms));
        Some(self.sleep_until(t, at))
    }

    /// A paced link hands out what the elapsed time allows, segment by segment, round robin.
    pub(super) fn link_tick(&mut self, link: usize) {
        let info = self.program.links[link];
        let LinkKind::Segments { mss, window, burst, tick } = info.kind else { return };
        let l = &mut self.links[link];
        let elapsed_us = (self.now - l.last_tick).0 / 1000;
        l.last_tick = self.now;
        l.budget = (l.budget + elapsed_us * info.rate_bytes_s / 1_000_000).min(u64::from(burst));
        let (mss, window) = (u64::from(mss), u64::from(window));
        let mut idle = 0;
        while l.budget >= mss && idle < info.clients {
            let c = l.next_client as usize;
            l.next_client = (l.next_client + 1) % info.clients;
            if l.arrived[c] + mss <= window {
                l.arrived[c] += mss;
                l.budget -= mss;
                idle = 0;
            } else {
                idle += 1;
            }
        }
        let next = self.timer_at(tick);
        self.events.push(next, Event::LinkTick(link as u32));
    }

    /// Receive and write, in pieces of what has arrived.
    pub(super) fn step_recv_write(&mut self, t: u32, link: u16, client: u16, chunk: u32) -> Option<Flow> {
        let op = self.tasks[t as usize].op;
        match op.at {
            At::Begin | At::Done if op.pos == op.end => {
                if op.pos >= op.outer_end {
                    return None;
                }
                let arrived = &mut self.links[link as usize].arrived[client as usize];
                let n = u64::from(chunk).min(*arrived).min(op.outer_end - op.pos);
                if n == 0 {
                    let at = self.timer_at(POLL);
                    return Some(self.sleep_until(t, at));
                }
                *arrived -= n;
                let op = &mut self.tasks[t as usize].op;
                op.end = op.pos + n;
                op.at = At::Begin;
                self.charge(self.config.machine.syscall_ns);
                Some(Flow::Continue)
            }
            _ => match self.step_write(t) {
                Some(flow) => Some(flow),
                None => {
                    // A write that ended short leaves the rest out, as the program would.
                    let op = &mut self.tasks[t as usize].op;
                    op.pos = op.end;
                    op.at = At::Done;
                    Some(Flow::Continue)
                }
            },
        }
    }
}
