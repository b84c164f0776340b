//! A starved client's episodes: stretches in which all that it reads are single pages without read-ahead.
//!
//! Traces of real 2.4 kernels under file-server clients showed them: for as long as such a stretch lasts each page waits
//! behind everything that is queued, since nothing sorts it forward and no read-ahead comes before it.

use super::view::View;
use crate::error::Result;

/// A page, bytes.
const PAGE: i64 = 4096;
/// Least reads of an episode.
const LEAST: usize = 8;

/// One stretch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Episode {
    /// Task.
    pub task: i64,
    /// First request queued, ns.
    pub start_ns: i64,
    /// Last request done, ns.
    pub end_ns: i64,
    /// Requests.
    pub reads: usize,
    /// Mean number of requests dispatched before a read that were not before it when it came.
    pub passed: f64,
    /// Share inserted at the tail, percent.
    pub tail_pct: f64,
    /// Median time from queueing to completion, ns.
    pub median_ns: i64,
}

/// All episodes of the tasks that stand for clients, longest first.
pub(crate) fn episodes(view: &View) -> Result<Vec<Episode>> {
    let io = view.io()?;
    let clients: Vec<i64> = view.cell.foreground().filter(|t| t.client.is_some()).map(|t| t.task).collect();
    let mut found = Vec::new();
    for task in clients {
        let mut reads: Vec<usize> =
            (0..io.q_ns.len()).filter(|&i| io.read[i] && !io.swap[i] && !io.meta[i] && io.task[i] == task).collect();
        reads.sort_by_key(|&i| (io.q_ns[i], io.c_ns[i]));
        let mut start = 0;
        while start < reads.len() {
            let length = reads[start..].iter().take_while(|&&i| io.len_bytes[i] == PAGE).count();
            if length >= LEAST {
                found.push(episode(view, task, &reads[start..start + length])?);
            }
            start += length.max(1);
        }
    }
    found.sort_by_key(|e| (e.start_ns - e.end_ns, e.task));
    Ok(found)
}

fn episode(view: &View, task: i64, reads: &[usize]) -> Result<Episode> {
    let io = view.io()?;
    let n = reads.len() as f64;
    let mut waits: Vec<i64> = reads.iter().map(|&i| io.c_ns[i] - io.q_ns[i]).collect();
    waits.sort_unstable();
    Ok(Episode {
        task,
        start_ns: io.q_ns[reads[0]],
        end_ns: reads.iter().map(|&i| io.c_ns[i]).max().unwrap_or(0),
        reads: reads.len(),
        passed: reads.iter().map(|&i| io.passed[i] as f64).sum::<f64>() / n,
        tail_pct: reads.iter().filter(|&&i| io.tail[i]).count() as f64 / n * 100.0,
        median_ns: waits[waits.len() / 2],
    })
}

/// The longest episode of a cell.
pub(crate) fn longest_episode(view: &View) -> Result<Option<Episode>> {
    Ok(episodes(view)?.into_iter().next())
}

/// Who was served while an episode's reads waited: a link of its wait chain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// `client 2 reads`, `write-out`.
    pub who: String,
    /// Requests dispatched between the queueing and the dispatch of one of the reads.
    pub requests: usize,
    /// What the device spent on them, ns.
    pub service_ns: i64,
}

/// Most links that are told apart; the rest is one.
const LINKS: usize = 6;

/// The requests that went before an episode's reads, by whom and what they were for; the most time first.
pub(crate) fn chain(view: &View, episode: &Episode) -> Result<Vec<Link>> {
    let io = view.io()?;
    let mut waits: Vec<(i64, i64)> = (0..io.q_ns.len())
        .filter(|&i| io.read[i] && !io.swap[i] && !io.meta[i] && io.task[i] == episode.task)
        .filter(|&i| io.q_ns[i] >= episode.start_ns && io.c_ns[i] <= episode.end_ns)
        .map(|i| (io.q_ns[i], io.d_ns[i]))
        .collect();
    waits.sort_unstable();
    let name = |task: i64| {
        let t = view.cell.tasks.iter().find(|t| t.task == task);
        t.map_or_else(|| "the kernel".to_string(), |t| t.client.clone().unwrap_or_else(|| t.name.clone()))
    };
    let mut links: std::collections::BTreeMap<String, Link> = std::collections::BTreeMap::new();
    for i in 0..io.d_ns.len() {
        if io.task[i] == episode.task && io.read[i] {
            continue;
        }
        // Whether one of the waits spans the dispatch: they follow each other, so the last that began before it decides.
        let before = waits.partition_point(|w| w.0 <= io.d_ns[i]);
        if before == 0 || io.d_ns[i] >= waits[before - 1].1 {
            continue;
        }
        let what = if io.swap[i] {
            "swaps"
        } else if io.read[i] {
            "reads"
        } else {
            "writes"
        };
        let who = format!("{} {what}", name(io.task[i]));
        let link = links.entry(who.clone()).or_insert(Link { who, requests: 0, service_ns: 0 });
        link.requests += 1;
        link.service_ns += io.c_ns[i] - io.d_ns[i];
    }
    let mut links: Vec<Link> = links.into_values().collect();
    links.sort_by(|a, b| b.service_ns.cmp(&a.service_ns).then_with(|| a.who.cmp(&b.who)));
    if links.len() > LINKS {
        let rest = links.split_off(LINKS - 1);
        links.push(Link {
            who: format!("{} others", rest.len()),
            requests: rest.iter().map(|l| l.requests).sum(),
            service_ns: rest.iter().map(|l| l.service_ns).sum(),
        });
    }
    Ok(links)
}
