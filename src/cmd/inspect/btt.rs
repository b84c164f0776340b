//! `kreplay inspect --btt`: the figures of btt.

use crate::error::Result;
use kreplay_analysis::btt::{Btt, Collector, DeviceStats, Seeks, text};
use kreplay_traces::store::TraceDir;

/// The figures of a trace's block events.
pub(super) fn figures(trace: &TraceDir) -> Result<Btt> {
    let mut collector = Collector::default();
    trace.blocks()?.for_each(|row| collector.row(&row))?;
    Ok(collector.finish())
}

/// As btt prints them.
pub(super) fn page(trace: &TraceDir) -> Result<String> {
    Ok(text(&figures(trace)?))
}

/// As JSON: btt's figures, and those that it lacks.
pub(super) fn json(trace: &TraceDir) -> Result<serde_json::Value> {
    let b = figures(trace)?;
    let devices: Vec<_> = b.devices.iter().map(device).collect();
    let (periods, active_s, idle_s, live_pct) = b.live.figures();
    Ok(serde_json::json!({
        "path": crate::stdout::json_path(trace.path()),
        "stages": b.stages,
        "devices": devices,
        "live": {"periods": periods, "mean_active_s": active_s, "mean_idle_s": idle_s, "live_pct": live_pct},
    }))
}

fn device(d: &DeviceStats) -> serde_json::Value {
    let (periods, active_s, idle_s, live_pct) = d.live.figures();
    serde_json::json!({
        "device": format!("{},{}", d.dev >> 20, d.dev & 0xf_ffff),
        "stages": d.stages,
        "q": d.q,
        "d": d.d,
        "merges": d.merges,
        "blocks": {"min": d.blocks_min, "max": d.blocks_max, "total": d.blocks_total},
        "q2q_seeks": seeks(&d.q2q_seeks),
        "d2d_seeks": seeks(&d.d2d_seeks),
        "unplugs": {"by_task": d.unplugs[0], "by_timer": d.unplugs[1]},
        "unplugged_requests": {"by_task": d.unplugged[0], "by_timer": d.unplugged[1]},
        "plugged_pct": d.plugged_pct,
        "mean_requests_at_q": if d.q > 0 { Some(d.active_at_q as f64 / d.q.max(d.d) as f64) } else { None },
        "live": {"periods": periods, "mean_active_s": active_s, "mean_idle_s": idle_s, "live_pct": live_pct},
    })
}

fn seeks(s: &Seeks) -> serde_json::Value {
    if s.seeks == 0 {
        return serde_json::Value::Null;
    }
    let mode = s.mode();
    serde_json::json!({
        "seeks": s.seeks,
        "mean_sectors": s.mean(),
        "median_sectors": s.median(),
        "btt_median_sectors": s.btt_median(),
        "zero": s.zero(),
        "mode": mode,
    })
}
