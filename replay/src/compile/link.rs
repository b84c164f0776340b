//! Sleeps until a point of time that were waits for a shared link, or that paced a task.
//!
//! A load that models a network sleeps until the moment at which a message would have gone through: the end of the message
//! before it, of whichever task, plus its length over the link's rate. Where the recorded points of time of several tasks
//! lie such distances apart often enough, the sleeps are replayed as messages over a link of that rate, so that the wait for
//! one's turn follows from what the other tasks do in the replay. Other chains of such sleeps keep the distances between
//! their points of time: a task that is late sleeps less, as it did.

use crate::program::{LinkInfo, LinkKind, Op, TaskProgram};
use kreplay_traces::units::Nanos;
use std::collections::BTreeMap;

/// An emitted sleep until a point of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct AbsoluteSleep {
    /// Emitted task.
    pub(super) task: usize,
    /// Operation of the task.
    pub(super) op: usize,
    /// The point of time, ns of the recorded clock.
    pub(super) until_ns: i64,
}

/// Pairs of points of time that have to lie one message apart, of a hundred.
const SHARE_PCT: usize = 20;
/// Fewer sleeps tell nothing.
const FEW: usize = 50;

/// Rewrite the sleeps. Returns the link, and how many sleeps became messages and how many a pace.
pub(super) fn infer(tasks: &mut [TaskProgram], sleeps: &[AbsoluteSleep]) -> (Option<LinkInfo>, usize, usize) {
    let mut sorted: Vec<(AbsoluteSleep, u64)> = sleeps.iter().map(|s| (*s, message(&tasks[s.task], s.op))).collect();
    sorted.sort_by_key(|(s, _)| (s.until_ns, s.task, s.op));
    if let Some(ps) = price(&sorted) {
        let rate_bytes_s = (1e12 / ps as f64).round() as u64;
        for (s, bytes) in &sorted {
            if let Ok(bytes) = u32::try_from(*bytes) {
                tasks[s.task].ops[s.op] = Op::Link { link: 0, bytes };
            }
        }
        let clients = sorted.iter().map(|(s, _)| s.task).collect::<std::collections::BTreeSet<_>>().len() as u32;
        return (Some(LinkInfo { kind: LinkKind::Fifo, rate_bytes_s, clients }), sorted.len(), 0);
    }
    let mut last: BTreeMap<usize, i64> = BTreeMap::new();
    let mut paced = 0;
    let mut by_task: Vec<AbsoluteSleep> = sleeps.to_vec();
    by_task.sort_by_key(|s| (s.task, s.op));
    for s in by_task {
        let before = last.insert(s.task, s.until_ns);
        let Op::External { time } = tasks[s.task].ops[s.op] else { continue };
        let after = match before {
            Some(before) => Nanos(u64::try_from(s.until_ns - before).unwrap_or(0)),
            None => time,
        };
        tasks[s.task].ops[s.op] = Op::Pace { after, first: before.is_none() };
        paced += 1;
    }
    (None, 0, paced)
}

/// Length of the message that a sleep stands for: what is written next, or was read before.
fn message(task: &TaskProgram, op: usize) -> u64 {
    let next =
        task.ops[op + 1..].iter().find(|o| matches!(o, Op::Read { .. } | Op::Write { .. } | Op::External { .. }));
    let before =
        task.ops[..op].iter().rev().find(|o| matches!(o, Op::Read { .. } | Op::Write { .. } | Op::External { .. }));
    match (next, before) {
        (Some(Op::Write { len, .. }), _) | (_, Some(Op::Read { len, .. })) => *len,
        _ => 0,
    }
}

/// Picoseconds a byte that enough pairs of neighbours agree on, of more than one task.
fn price(sorted: &[(AbsoluteSleep, u64)]) -> Option<u64> {
    if sorted.len() < FEW || sorted.iter().all(|(s, _)| s.task == sorted[0].0.task) {
        return None;
    }
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    // A task alone that keeps a pace spaces its points of time just as well.
    for pair in sorted.windows(2).filter(|p| p[0].0.task != p[1].0.task) {
        let (gap, bytes) = (pair[1].0.until_ns - pair[0].0.until_ns, pair[1].1);
        if let (Ok(gap), true) = (u64::try_from(gap), bytes > 0) {
            *votes.entry(gap * 1000 / bytes).or_default() += 1;
        }
    }
    // Rounding of the recorded times moves a price by one at most.
    let around = |ps: u64| (ps.saturating_sub(1)..=ps + 1).filter_map(|p| votes.get(&p)).sum::<usize>();
    let (&best, _) = votes.iter().max_by_key(|(ps, n)| (**n, std::cmp::Reverse(**ps)))?;
    (best > 0 && around(best) * 100 >= (sorted.len() - 1) * SHARE_PCT).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Start;

    fn writer(n: usize) -> TaskProgram {
        let mut t = TaskProgram::new(1, "w", Start::At(Nanos::ZERO));
        for i in 0..n as u64 {
            t.ops.push(Op::External { time: Nanos(1000) });
            t.ops.push(Op::Write { ofd: 0, off: i * 8192, len: 8192 });
        }
        t
    }

    fn sleeps(points: &[(usize, i64)]) -> Vec<AbsoluteSleep> {
        let mut next = [0; 2];
        points
            .iter()
            .map(|&(task, until_ns)| {
                next[task] += 2;
                AbsoluteSleep { task, op: next[task] - 2, until_ns }
            })
            .collect()
    }

    #[test]
    fn two_tasks_that_take_turns_share_a_link() {
        let mut tasks = [writer(50), writer(50)];
        let points: Vec<_> = (0..100).map(|i| ((i % 2) as usize, i * 409_600)).collect();
        let (link, messages, _) = infer(&mut tasks, &sleeps(&points));
        assert_eq!(link.map(|l| l.rate_bytes_s), Some(20_000_000));
        assert_eq!(messages, 100);
        assert_eq!(tasks[1].ops[2], Op::Link { link: 0, bytes: 8192 });
    }

    #[test]
    fn a_task_alone_keeps_its_pace() {
        let mut tasks = [writer(60), writer(0)];
        let points: Vec<_> = (0..60).map(|i| (0, i * 3_333_333)).collect();
        let (link, _, paced) = infer(&mut tasks, &sleeps(&points));
        assert!(link.is_none());
        assert_eq!(paced, 60);
        assert_eq!(tasks[0].ops[4], Op::Pace { after: Nanos(3_333_333), first: false });
    }
}
