//! The figures as btt prints them.

use std::fmt::Write as _;

use super::{Btt, DeviceStats, Live, Seeks, Stage, Stages, seconds};

/// btt's report, section by section. Its activity ranges (data for a plot, not figures) are left out.
pub fn text(b: &Btt) -> String {
    let mut t = String::new();
    stages(&mut t, &b.stages);
    overhead(&mut t, b);
    merges(&mut t, b);
    section(&mut t, "Device Q2Q Seek Information");
    seeks(&mut t, b, |d| &d.q2q_seeks);
    section(&mut t, "Device D2D Seek Information");
    seeks(&mut t, b, |d| &d.d2d_seeks);
    plugs(&mut t, b);
    active(&mut t, b);
    periods(&mut t, b);
    t
}

fn section(t: &mut String, title: &str) {
    let bar = "=".repeat(20);
    let _ = writeln!(t, "{bar} {title} {bar}\n");
}

fn name(d: &DeviceStats) -> String {
    format!("({:>3},{:>3})", d.dev >> 20, d.dev & 0xf_ffff)
}

fn stages(t: &mut String, s: &Stages) {
    section(t, "All Devices");
    let _ = writeln!(t, "{:>15} {:>13} {:>13} {:>13} {:>11}", "ALL", "MIN", "AVG", "MAX", "N");
    let dash = "-".repeat(13);
    let _ = writeln!(t, "{} {dash} {dash} {dash} {}", "-".repeat(15), "-".repeat(11));
    for (name, stage) in s.rows() {
        if name == "Q2Q" {
            t.push('\n');
        }
        if stage.n > 0 && name != "Q2D" {
            let Stage { n, min_ns, max_ns, .. } = *stage;
            let _ = writeln!(
                t,
                "{name:<15} {:>13.9} {:>13.9} {:>13.9} {n:>11}",
                seconds(min_ns),
                stage.avg_s(),
                seconds(max_ns)
            );
        }
    }
    t.push('\n');
}

fn overhead(t: &mut String, b: &Btt) {
    section(t, "Device Overhead");
    let head = ["Q2G", "G2I", "Q2M", "I2D", "D2C"].map(|h| format!("{h:>9}")).join(" ");
    let _ = writeln!(t, "{:>10} | {head}", "DEV");
    let rule = format!("{} | {}", "-".repeat(10), std::array::from_fn::<_, 5, _>(|_| "-".repeat(9)).join(" "));
    let _ = writeln!(t, "{rule}");
    let parts = |s: &Stages| [s.q2g, s.g2i, s.q2m, s.i2d, s.d2c];
    let mut all: Option<([u64; 5], u64)> = None;
    let line = |t: &mut String, name: &str, totals: [u64; 5], of: u64| {
        let cells = totals.map(|x| format!("{:>8.4}%", 100.0 * x as f64 / of as f64)).join(" ");
        let _ = writeln!(t, "{name:>10} | {cells}");
    };
    for d in b.devices.iter().filter(|d| d.stages.q2c.total_ns > 0) {
        let totals = parts(&d.stages).map(|s| s.total_ns);
        line(t, &name(d), totals, d.stages.q2c.total_ns);
        let sum = all.get_or_insert(([0; 5], 0));
        sum.0.iter_mut().zip(totals).for_each(|(a, x)| *a += x);
        sum.1 += d.stages.q2c.total_ns;
    }
    if let Some((totals, of)) = all {
        let _ = writeln!(t, "{rule}");
        line(t, "Overall", totals, of);
    }
    t.push('\n');
}

fn merges(t: &mut String, b: &Btt) {
    section(t, "Device Merge Information");
    let head = format!(
        "{:>10} | {:>8} {:>8} {:>7} | {:>8} {:>8} {:>8} {:>8}",
        "DEV", "#Q", "#D", "Ratio", "BLKmin", "BLKavg", "BLKmax", "Total"
    );
    let d8 = "-".repeat(8);
    let rule = format!("{} | {d8} {d8} {} | {d8} {d8} {d8} {d8}", "-".repeat(10), "-".repeat(7));
    let _ = writeln!(t, "{head}\n{rule}");
    let line = |t: &mut String, name: &str, q: u64, d: u64, ratio: f64, blocks: [u64; 3]| {
        let [min, max, total] = blocks;
        let avg = (total as f64 / d as f64) as u64;
        let _ = writeln!(t, "{name:>10} | {q:>8} {d:>8} {ratio:>7.1} | {min:>8} {avg:>8} {max:>8} {total:>8}");
    };
    let shown: Vec<_> = b.devices.iter().filter(|d| d.q > 0 && d.d > 0).collect();
    for d in &shown {
        let q = queued(d);
        line(t, &name(d), q, d.d, q as f64 / d.d as f64, [d.blocks_min, d.blocks_max, d.blocks_total]);
    }
    if shown.len() > 1 {
        let _ = writeln!(t, "{rule}\n{head}");
        let sum = |f: fn(&DeviceStats) -> u64| shown.iter().map(|d| f(d)).sum::<u64>();
        let (q, d) = (sum(queued), sum(|d| d.d));
        let min = shown.iter().map(|d| d.blocks_min).min().unwrap_or(0);
        let max = shown.iter().map(|d| d.blocks_max).max().unwrap_or(0);
        line(t, "TOTAL", q, d, f64::from(q as f32 / d as f32), [min, max, sum(|d| d.blocks_total)]);
    }
    t.push('\n');
}

/// Never fewer bios than requests, as btt counts.
fn queued(d: &DeviceStats) -> u64 {
    if d.q > 0 && d.d > 0 { d.q.max(d.d) } else { d.q }
}

fn seeks(t: &mut String, b: &Btt, of: fn(&DeviceStats) -> &Seeks) {
    let head = |t: &mut String, who: &str| {
        let _ = writeln!(t, "{who:>10} | {:>15} {:>15} {:>15} | {:<15}", "NSEEKS", "MEAN", "MEDIAN", "MODE");
    };
    let d15 = "-".repeat(15);
    let rule = format!("{} | {d15} {d15} {d15} | {d15}", "-".repeat(10));
    let more = |t: &mut String, n: usize| {
        let _ = writeln!(t, "\n{:>10}   {:>15} {:>15} {:>15}   ...({n} more)", "", "", "", "");
    };
    head(t, "DEV");
    let _ = writeln!(t, "{rule}");
    let mut all = Overall::default();
    for d in b.devices.iter().filter(|d| of(d).seeks > 0) {
        let s = of(d);
        let (mean, median, mode) = (s.mean(), s.btt_median(), s.mode());
        let first = mode.distances.first().copied().unwrap_or(0);
        let _ = write!(t, "{:>10} | {:>15} {mean:>15.1} {median:>15} | {first}({})", name(d), s.seeks, mode.seeks);
        if mode.distances.len() > 2 {
            more(t, mode.distances.len() - 1);
        } else {
            for other in &mode.distances[1..] {
                let _ = write!(t, " {other}");
            }
            t.push('\n');
        }
        all.seeks += s.seeks;
        all.mean += s.seeks as f64 * mean;
        all.median += s.seeks * median;
        for distance in mode.distances {
            match all.modes.iter_mut().find(|m| m.0 == distance) {
                Some(m) => m.1 += mode.seeks,
                None => all.modes.push((distance, mode.seeks)),
            }
        }
    }
    if all.seeks > 0 {
        let _ = writeln!(t, "{rule}");
        head(t, "Overall");
        let most = all.modes.iter().map(|m| m.1).max().unwrap_or(0);
        let mut best = all.modes.iter().filter(|m| m.1 == most);
        let first = best.next().map_or(0, |m| m.0);
        let _ = write!(
            t,
            "{:>10} | {:>15} {:>15.1} {:>15} | {first}({most})",
            "Average",
            all.seeks,
            all.mean / all.seeks as f64,
            all.median / all.seeks
        );
        match best.count() {
            0 => {}
            n => more(t, n),
        }
        t.push('\n');
    }
    t.push('\n');
}

/// Sums over devices.
#[derive(Default)]
struct Overall {
    seeks: u64,
    mean: f64,
    median: u64,
    /// Distance and how often, in the order of their first device.
    modes: Vec<(u64, u64)>,
}

fn plugs(t: &mut String, b: &Btt) {
    section(t, "Plug Information");
    let head = |t: &mut String, who: &str| {
        let _ = writeln!(t, "{who:>10} | {:>10} {:>10}  | % Time Q Plugged", "# Plugs", "# Timer Us");
    };
    let d10 = "-".repeat(10);
    let rule = format!("{d10} | {d10} {d10}  | {}", "-".repeat(16));
    head(t, "DEV");
    let _ = writeln!(t, "{rule}");
    let line = |t: &mut String, name: &str, plugs: u64, timed: u64, pct: f64| {
        let _ = writeln!(t, "{name:>10} | {plugs:>10}({timed:>10}) | {pct:>13.9}%");
    };
    let shown: Vec<_> = b.devices.iter().filter(|d| d.unplugs[0] + d.unplugs[1] > 0).collect();
    for d in &shown {
        line(t, &name(d), d.unplugs[0], d.unplugs[1], d.plugged_pct);
    }
    if shown.len() > 1 {
        let _ = writeln!(t, "{rule}");
        head(t, "Overall");
        let n = shown.len() as u64;
        let sum = |k: usize| shown.iter().map(|d| d.unplugs[k]).sum::<u64>() / n;
        let pct = shown.iter().map(|d| d.plugged_pct).sum::<f64>() / n as f64;
        line(t, "Average", sum(0), sum(1), pct);
    }
    t.push('\n');

    let head = |t: &mut String, who: &str| {
        let _ = writeln!(t, "{who:>10} | {:>10}   {:>10}", "IOs/Unp", "IOs/Unp(to)");
    };
    head(t, "DEV");
    let _ = writeln!(t, "{d10} | {d10}   {d10}");
    let mut all = [(0, 0); 2];
    for d in &b.devices {
        let mut mean = [0.0; 2];
        for k in 0..2 {
            if d.unplugged[k] > 0 && d.unplugs[k] > 0 {
                mean[k] = d.unplugged[k] as f64 / d.unplugs[k] as f64;
                all[k].0 += d.unplugged[k];
                all[k].1 += d.unplugs[k];
            }
        }
        let _ = writeln!(t, "{:>10} | {:>10.1}   {:>10.1}", name(d), mean[0], mean[1]);
    }
    if all[0].1 + all[1].1 > 0 {
        let mean = all.map(|(n, of)| if of > 0 { n as f64 / of as f64 } else { 0.0 });
        let _ = writeln!(t, "{d10} | {d10}   {d10}");
        head(t, "Overall");
        let _ = writeln!(t, "{:>10} | {:>10.1}   {:>10.1}", "Average", mean[0], mean[1]);
    }
    t.push('\n');
}

fn active(t: &mut String, b: &Btt) {
    section(t, "Active Requests At Q Information");
    let d10 = "-".repeat(10);
    let d13 = "-".repeat(13);
    let _ = writeln!(t, "{:>10} | {:>13}\n{d10} | {d13}", "DEV", "Avg Reqs @ Q");
    let shown: Vec<_> =
        b.devices.iter().filter(|d| queued(d) > 0 && !super::REMAPPERS.contains(&(d.dev >> 20))).collect();
    for d in &shown {
        let _ = writeln!(t, "{:>10} | {:>13.1}", name(d), d.active_at_q as f64 / queued(d) as f64);
    }
    if shown.len() > 1 {
        let (held, q): (u64, u64) = shown.iter().fold((0, 0), |(h, q), d| (h + d.active_at_q, q + queued(d)));
        let _ = writeln!(t, "{d10} | {d13}\n{:>10} | {:>13}", "Overall", "Avgs Reqs @ Q");
        let _ = writeln!(t, "{:>10} | {:>13.1}", "Average", held as f64 / q as f64);
    }
    t.push('\n');
}

fn periods(t: &mut String, b: &Btt) {
    section(t, "I/O Active Period Information");
    let d13 = "-".repeat(13);
    let rule = format!("{} | {} {d13} {d13} {}", "-".repeat(10), "-".repeat(10), "-".repeat(6));
    let _ =
        writeln!(t, "{:>10} | {:>10} {:>13} {:>13} {:>6}\n{rule}", "DEV", "# Live", "Avg. Act", "Avg. !Act", "% Live");
    let line = |t: &mut String, name: &str, live: &Live| {
        let (n, length, gap, pct) = live.figures();
        let _ = writeln!(t, "{name:>10} | {n:>10} {length:>13.9} {gap:>13.9} {pct:>6.2}");
    };
    for d in &b.devices {
        line(t, &name(d), &d.live);
    }
    let _ = writeln!(t, "{rule}");
    line(t, "Total Sys", &b.live);
    t.push('\n');
}
