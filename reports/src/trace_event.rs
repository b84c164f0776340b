//! A run in the Trace Event Format (JSON), which ui.perfetto.dev and chrome://tracing open.
//!
//! Calls are complete events (`ph` "X"), a thread a task; block requests are nestable asynchronous events (`b`, `e`), the phases in
//! the queue and at the device nested in each, and bios that were merged into it instants (`n`); memory levels are counters (`C`). Times are microseconds with three digits.
//! Format: "Trace Event Format" of the Chromium project, sections Complete, Nestable Async, Counter and Metadata Events.

use crate::escape;
use kreplay_analysis::timeline::{CallSpan, RequestSpan, Timeline};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Process ids of the document: the tasks, and the devices from the second on.
const TASKS: i64 = 1;
const DEVICES: i64 = 1000;
/// Longest text, characters.
const LONGEST: usize = 500;

/// Nanoseconds as microseconds.
fn us(ns: i64) -> Value {
    // Exact up to 2^53 ns, more than 100 days.
    json!(ns as f64 / 1e3)
}

fn text(t: &str) -> String {
    escape::terminal(t, LONGEST)
}

/// Writes the document.
///
/// # Errors
/// What `out` says.
pub fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let mut events = Events { out, first: true };
    let about = json!({"run": text(&timeline.label), "model held against": timeline.held_against.iter().map(|t| text(t)).collect::<Vec<_>>()});
    let head =
        format!("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[", escape::json(&about.to_string()));
    events.out.write_all(head.as_bytes())?;
    events.put(&json!({"name": "process_name", "ph": "M", "pid": TASKS, "tid": 0, "args": {"name": format!("tasks: {}", text(&timeline.label))}}))?;
    for lane in &timeline.tasks {
        let name = text(&format!("{} ({})", lane.name, lane.tid));
        events.put(
            &json!({"name": "thread_name", "ph": "M", "pid": TASKS, "tid": lane.task + 1, "args": {"name": name}}),
        )?;
    }
    let mut devices: Vec<u32> = timeline.requests.iter().map(|r| r.dev).collect();
    devices.sort_unstable();
    devices.dedup();
    for dev in devices {
        events.put(&json!({"name": "process_name", "ph": "M", "pid": DEVICES + i64::from(dev), "tid": 0, "args": {"name": format!("disk {dev}")}}))?;
    }
    for call in &timeline.calls {
        events.put(&complete(call))?;
    }
    for (id, request) in timeline.requests.iter().enumerate() {
        for event in nested(id, request) {
            events.put(&event)?;
        }
    }
    for (time, levels) in &timeline.levels {
        for (name, kib) in levels {
            events.put(
                &json!({"name": name, "ph": "C", "pid": TASKS, "tid": 0, "ts": us(*time), "args": {"KiB": kib}}),
            )?;
        }
    }
    events.out.write_all(b"\n]}\n")
}

struct Events<'a, W: Write> {
    out: &'a mut W,
    first: bool,
}

impl<W: Write> Events<'_, W> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        let comma: &[u8] = if std::mem::take(&mut self.first) { b"\n" } else { b",\n" };
        self.out.write_all(comma)?;
        self.out.write_all(escape::json(&event.to_string()).as_bytes())
    }
}

fn complete(call: &CallSpan) -> Value {
    let mut args = serde_json::Map::new();
    if !call.file.is_empty() {
        args.insert("file".to_string(), json!(text(&call.file)));
    }
    if call.line > 0 {
        args.insert("line".to_string(), json!(call.line));
    }
    for (cause, ns) in &call.waits {
        args.insert(format!("{cause} (us)"), us(*ns));
    }
    json!({"name": text(&call.op), "cat": "call", "ph": "X", "pid": TASKS, "tid": i64::from(call.task) + 1, "ts": us(call.start_ns), "dur": us(call.dur_ns), "args": args})
}

fn nested(id: usize, r: &RequestSpan) -> Vec<Value> {
    let [q, i, d, c] = r.stamps_ns;
    let name = format!("{} {} KiB", if r.read { "read" } else { "write" }, r.len_bytes / 1024);
    let args =
        json!({"sector": r.sector_512, "bytes": r.len_bytes, "bios": r.bios, "for": text(&r.kind), "task": r.task});
    let event = |ph: &str, name: &str, ns: i64, args: &Value| json!({"name": name, "cat": "request", "ph": ph, "id": format!("0x{id:x}"), "pid": DEVICES + i64::from(r.dev), "tid": 0, "ts": us(ns), "args": args});
    let none = json!({});
    let mut events = vec![event("b", &name, q, &args)];
    events.extend(r.joined_ns.iter().map(|ns| event("n", "a bio joins", *ns, &none)));
    if d > i {
        events.extend([event("b", "in the queue", i, &none), event("e", "in the queue", d, &none)]);
    }
    if c > d {
        events.extend([event("b", "at the disk", d, &none), event("e", "at the disk", c, &none)]);
    }
    events.push(event("e", &name, c, &none));
    events
}
