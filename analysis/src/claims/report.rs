//! The answer as a report: a finding and a row a claim, then plots, real kernels beside the model, sweeps, and the question
//! whether the elevator or the memory management is unfair.

use super::evaluate::{Answer, FigureValue, GridFacts, OnsetFacts, Row, StarveFacts, Swept};
use super::verdict::{Tested, Verdict};
use crate::cell::{millis, seconds};
use crate::model::{
    Block, Cell, Column, Definition, DotPoint, DotRow, Dots, Finding, Legend, Level, Origin, Panel, Provenance, Report,
    SCHEMA, Section, Series, Strips, Table, TraceReport, Unit,
};
use serde_json::{Value, json};

/// Version of the JSON document.
const CLAIMS_SCHEMA: u32 = 1;
/// Factors of a grid, in the order of [`super::anova::Anova`].
const FACTORS: [&str; 4] = ["memory management (rows)", "elevator (columns)", "interaction", "chance"];

/// A number as sentences and tables print it: three digits that matter.
pub(super) fn digits(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || value == value.round() && size >= 1.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

pub(super) fn with_unit(value: f64, unit: Unit) -> String {
    let number = digits(value);
    match unit.label() {
        "" | "ratio" => number,
        label => format!("{number} {label}"),
    }
}

impl FigureValue {
    fn text(&self) -> String {
        match (self.value, self.range) {
            (Some(v), Some((low, high))) if digits(low) != digits(high) => {
                format!("{} {} (seeds: {} to {})", self.name, with_unit(v, self.unit), digits(low), digits(high))
            }
            (Some(v), _) => format!("{} {}", self.name, with_unit(v, self.unit)),
            (None, _) => format!("{} -", self.name),
        }
    }
}

impl Row {
    /// The simulated figures as one text.
    pub fn simulated(&self) -> String {
        self.figures.iter().map(FigureValue::text).collect::<Vec<_>>().join(", ")
    }

    /// The band as one text, each condition with the value that it got.
    pub fn band_text(&self) -> String {
        tests(&self.band)
    }

    fn json(&self) -> Value {
        let test = |t: &Tested| json!({"condition": t.text, "holds": t.holds, "value": t.value});
        let figure = |f: &FigureValue| {
            json!({"name": f.name, "variant": f.variant, "take": f.take, "unit": f.unit.label(), "value": f.value,
                "range": f.range, "by_seed": f.by_seed, "reported": f.reported, "missing": f.missing})
        };
        json!({
            "id": self.id,
            "title": self.title,
            "verdict": self.verdict.word(),
            "seeds": self.alone.map(|(agree, of)| json!({"agree": agree, "of": of})),
            "reported": self.reported,
            "simulated": self.simulated(),
            "band": self.band_text(),
            "why": self.why,
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
            "conditions": self.band.iter().map(test).collect::<Vec<_>>(),
            "direction": self.direction.iter().map(test).collect::<Vec<_>>(),
            "beside": self.beside.iter().map(|p| json!({"variant": p.variant, "take": p.take, "measured": p.measured,
                "simulated": p.simulated, "origin": p.origin})).collect::<Vec<_>>(),
            "sensitivity": self.sensitivity.as_ref().map(|(about, swept)| json!({"about": about, "values":
                swept.iter().map(|s| json!({"change": s.change, "verdict": s.verdict.word()})).collect::<Vec<_>>()})),
        })
    }
}

/// Conditions as one text.
pub(super) fn tests(tests: &[Tested]) -> String {
    let one = |t: &Tested| {
        let mark = match t.holds {
            Some(true) => "",
            Some(false) => " (no",
            None => " (?",
        };
        match (t.value, mark) {
            (Some(v), "") => format!("{} ({})", t.text, digits(v)),
            (Some(v), mark) => format!("{}{mark}, {})", t.text, digits(v)),
            (None, "") => t.text.clone(),
            (None, mark) => format!("{}{mark})", t.text),
        }
    };
    tests.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Answer {
    /// How many rows came out so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|r| r.verdict == verdict).count()
    }

    /// `{"claims": [...]}`, and the sums of squares of grids.
    pub fn json(&self) -> Value {
        let grids = self.grids.iter().map(|g| {
            let (rows, _) = g.grid.complete();
            json!({"claim": g.claim, "figure": g.take.text(), "variants": rows, "columns": g.grid.columns,
                "sums_of_squares": g.grid.anova().map(|a| json!({"variants": a.rows, "columns": a.columns,
                    "interaction": a.interaction, "within": a.within}))})
        });
        json!({
            "schema": CLAIMS_SCHEMA,
            "kind": "kreplay-claims",
            "claims": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "grids": grids.collect::<Vec<_>>(),
            "reproduced": self.count(Verdict::Reproduced),
        })
    }

    /// The report.
    pub fn report(&self, command: Vec<String>) -> Report {
        Report {
            schema: SCHEMA,
            kind: "kreplay-report".to_string(),
            title: "What was reported in 2001, replayed".to_string(),
            question: format!(
                "Which of {} claims does the model reproduce, within which band, and why?",
                self.rows.len()
            ),
            legend: Legend { terms: Verdict::definitions(), ..Legend::default() },
            verdict: vec![Finding::new(Level::Answer, self.summary())],
            traces: vec![TraceReport {
                id: "claims".to_string(),
                name: "claims".to_string(),
                matrix: self.matrix(),
                sections: self.sections(),
                findings: Vec::new(),
            }],
            provenance: Provenance {
                command,
                analysis_version: env!("CARGO_PKG_VERSION").to_string(),
                comparison_rule: "a claim is reproduced if every condition of its band holds".to_string(),
                models: self.models.clone(),
                ..Provenance::default()
            },
        }
    }

    /// One sentence over all rows.
    pub fn summary(&self) -> String {
        let others = [
            (Verdict::DirectionOnly, "in direction only"),
            (Verdict::NotReproduced, "not at all"),
            (Verdict::NotRun, "not run"),
        ];
        let others: Vec<String> = others
            .into_iter()
            .map(|(verdict, words)| (self.count(verdict), words))
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{count} {words}"))
            .collect();
        let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
        format!("{} of {} claims are reproduced{others}.", self.count(Verdict::Reproduced), self.rows.len())
    }

    fn matrix(&self) -> Table {
        let mut table = Table::new(
            "claims",
            "Claims and verdicts; the reasons follow row by row. The verdict is that of the medians over the seeds; \"seeds\" is how many of them, each by itself, give the same.",
            vec![
                Column::text("id", "id"),
                Column::text("verdict", "verdict"),
                Column::text("alone", "seeds"),
                Column::text("claim", "claim"),
            ],
        );
        for r in &self.rows {
            let alone = r.alone.map_or_else(|| "-".to_string(), |(agree, of)| format!("{agree}/{of}"));
            table.push(vec![Cell::text(&r.id), Cell::text(r.verdict.word()), Cell::text(alone), Cell::text(&r.title)]);
        }
        table
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![self.row_by_row()];
        sections.extend(self.names());
        sections.push(self.figures());
        sections.extend(self.beside());
        sections.extend(self.sensitivity());
        sections.extend(self.grids.iter().map(grid_section));
        if !self.starved.is_empty() {
            sections.push(starved_section(&self.starved, self.loads_of(self.starved.iter().map(|s| s.run.as_str()))));
        }
        if !self.onsets.is_empty() {
            sections.push(onset_section(&self.onsets, self.loads_of(self.onsets.iter().map(|o| o.run.as_str()))));
        }
        sections
    }

    /// What was run under these names.
    fn loads_of<'r>(&self, runs: impl Iterator<Item = &'r str>) -> Vec<Definition> {
        let mut said: Vec<Definition> = Vec::new();
        for run in runs {
            if let Some(load) = self.loads.iter().find(|l| l.term == run && !said.contains(l)) {
                said.push(load.clone());
            }
        }
        said
    }

    fn figures(&self) -> Section {
        let mut blocks = Vec::new();
        for r in &self.rows {
            let mut rows = Vec::new();
            let unit = r.figures.first().map_or(Unit::Count, |f| f.unit);
            for f in r.figures.iter().filter(|f| f.unit == unit) {
                let point = |label: &str, value: f64| DotPoint { label: label.to_string(), value };
                if !f.reported.is_empty() {
                    let points = f.reported.iter().map(|v| point("reported", *v)).collect();
                    rows.push(DotRow { label: format!("{} reported", f.name), origin: Origin::Recorded, points });
                }
                if let Some(v) = f.value {
                    let mut points = vec![point("simulated", v)];
                    points.extend(f.range.iter().flat_map(|(l, h)| [point("least", *l), point("most", *h)]));
                    let label = format!("{} ({})", f.name, f.variant);
                    rows.push(DotRow { label, origin: Origin::Simulated, points });
                }
            }
            if !rows.is_empty() {
                let definition = if r.definition.is_empty() { String::new() } else { format!(" {}", r.definition) };
                blocks.push(Block::Dots(Dots {
                    id: format!("figures-{}", r.id.to_ascii_lowercase()),
                    caption: format!("{}: {} ({}).{definition}", r.id, r.title, r.verdict.word()),
                    axis: r.figures.first().map_or_else(String::new, |f| f.take.clone()),
                    unit,
                    log: false,
                    rows,
                }));
            }
        }
        let mut table = Table::new(
            "figures",
            "Every figure: what was taken from which variant, what was reported.",
            vec![
                Column::text("claim", "claim"),
                Column::text("figure", "figure"),
                Column::text("variant", "variant"),
                Column::text("take", "taken"),
                Column::text("reported", "reported"),
                Column::text("simulated", "simulated"),
            ],
        );
        for r in &self.rows {
            for f in &r.figures {
                let reported = f.reported.iter().map(|v| digits(*v)).collect::<Vec<_>>().join(", ");
                let value = f.value.map_or_else(|| "-".to_string(), |v| with_unit(v, f.unit));
                table.push(vec![
                    Cell::text(&r.id),
                    Cell::text(&f.name),
                    Cell::text(&f.variant),
                    Cell::text(&f.take),
                    Cell::text(reported),
                    Cell::text(value),
                ]);
            }
        }
        blocks.push(Block::Table(table));
        Section {
            id: "figures".to_string(),
            title: "Reported and simulated figures".to_string(),
            lead: "Grey is what was reported, blue what the replay says; several dots of one row are several reports, or the least and the most over seeds. Reported machines are only partly described, so bands are on ratios and orders.".to_string(),
            blocks,
            definitions: Vec::new(),
        }
    }

    fn beside(&self) -> Option<Section> {
        let mut table = Table::new(
            "real-kernels",
            "The same load on a real kernel (emulated machine, modelled disk) and in the model on that machine.",
            vec![
                Column::text("claim", "claim"),
                Column::text("kernel", "kernel"),
                Column::text("take", "taken"),
                Column::text("measured", "measured"),
                Column::text("simulated", "simulated"),
                Column::number("error_pct", "error", Unit::Percent, 1),
                Column::text("origin", "recording"),
            ],
        );
        for r in &self.rows {
            for p in &r.beside {
                // Against the nearest of repeated measurements: what the kernel itself does twice is no error. Of nothing there is
                // no percentage.
                let error = p.simulated.and_then(|s| {
                    let errors = p.measured.iter().filter(|m| **m != 0.0).map(|m| ((s - m) / m * 100.0).abs());
                    errors.min_by(f64::total_cmp)
                });
                table.push(vec![
                    Cell::text(&r.id),
                    Cell::text(&p.variant),
                    Cell::text(&p.take),
                    Cell::text(p.measured.iter().map(|m| with_unit(*m, p.unit)).collect::<Vec<_>>().join(", ")),
                    Cell::text(p.simulated.map_or_else(|| "-".to_string(), |v| with_unit(v, p.unit))),
                    Cell::number(error),
                    Cell::text(&p.origin),
                ]);
            }
        }
        (!table.rows.is_empty()).then(|| Section {
            id: "real-kernels".to_string(),
            title: "Model and real kernels side by side".to_string(),
            lead: "Where a claim and a measurement differ, the model answers to the measurement.".to_string(),
            blocks: vec![Block::Table(table)],
            definitions: vec![Definition::new("error", "simulated against the nearest measured figure")],
        })
    }

    fn sensitivity(&self) -> Option<Section> {
        let mut blocks = Vec::new();
        for r in &self.rows {
            let Some((about, swept)) = &r.sensitivity else { continue };
            let rows: Vec<DotRow> = (0..r.band.len()).flat_map(|i| swept_rows(&r.band[i], i, swept)).collect();
            if !rows.is_empty() {
                blocks.push(Block::Dots(Dots {
                    id: format!("sensitivity-{}", r.id.to_ascii_lowercase()),
                    caption: format!("{}: the value that each condition compares, for each {about}; grey is where it has to lie, or, with one dot, the limit.", r.id),
                    axis: "compared value".to_string(),
                    unit: Unit::Ratio,
                    log: false,
                    rows,
                }));
            }
            let mut table = Table::new(
                &format!("sensitivity-table-{}", r.id.to_ascii_lowercase()),
                &format!("{}: the verdict for each {about}.", r.id),
                vec![
                    Column::text("change", "change"),
                    Column::text("verdict", "verdict"),
                    Column::text("band", "band"),
                ],
            );
            for s in swept {
                table.push(vec![Cell::text(&s.change), Cell::text(s.verdict.word()), Cell::text(tests(&s.band))]);
            }
            blocks.push(Block::Table(table));
        }
        (!blocks.is_empty()).then(|| Section {
            id: "sensitivity".to_string(),
            title: "Over which range the verdicts hold".to_string(),
            lead: "What the reports leave open was chosen once, in the machine's profile. Here it is varied: a verdict that holds at one value only says little.".to_string(),
            blocks,
            definitions: Vec::new(),
        })
    }
}

/// A condition of a band over the swept values: the range that it asks for, and what came out.
fn swept_rows(condition: &Tested, i: usize, swept: &[Swept]) -> Vec<DotRow> {
    let plotted = |s: &Swept| s.band.get(i)?.plotted.clone();
    let points: Vec<DotPoint> =
        swept.iter().filter_map(|s| Some(DotPoint { label: s.change.clone(), value: plotted(s)?.value })).collect();
    let Some(asked) = swept.iter().find_map(plotted).filter(|_| !points.is_empty()) else { return Vec::new() };
    let end = |v: &f64| DotPoint { label: digits(*v), value: *v };
    let quotient = if asked.quotient { ", the first side by the second" } else { "" };
    vec![
        DotRow {
            label: format!("{}{quotient}", condition.text),
            origin: Origin::Recorded,
            points: asked.ends.iter().map(end).collect(),
        },
        DotRow { label: "simulated".to_string(), origin: Origin::Simulated, points },
    ]
}

/// Means, confidence intervals and sums of squares of a grid.
fn grid_section(facts: &GridFacts) -> Section {
    let unit = facts.take.kind().unit;
    let (names, values) = facts.grid.complete();
    let mut blocks = Vec::new();
    if let Some(a) = facts.grid.anova() {
        let mut table = Table::new(
            "sums-of-squares",
            "How much of the variation over the grid each factor explains.",
            vec![
                Column::text("factor", "factor"),
                Column::number("sum", "sum of squares", Unit::Count, 3),
                Column::number("share", "share", Unit::Percent, 1),
            ],
        );
        for (factor, part) in FACTORS.iter().zip([a.rows, a.columns, a.interaction, a.within]) {
            table.push(vec![Cell::text(*factor), Cell::number(part), Cell::number(a.share_pct(part))]);
        }
        blocks.push(Block::Table(table));
    }
    let mut columns = vec![Column::text("variant", "variant")];
    let shown = |c: &str| {
        if c.is_empty() { "as it is".to_string() } else { c.trim_start_matches("elevator.policy=").to_string() }
    };
    columns.extend(facts.grid.columns.iter().enumerate().map(|(i, c)| Column::text(&format!("c{i}"), &shown(c))));
    let mut means = Table::new("grid", "Mean over the seeds, and half the 95 % confidence interval.", columns);
    let mut rows = Vec::new();
    for (name, row) in names.iter().zip(&values) {
        let mut cells = vec![Cell::text(*name)];
        let mut points = Vec::new();
        for (cell, column) in row.iter().zip(&facts.grid.columns) {
            let mean = cell.iter().sum::<f64>() / cell.len().max(1) as f64;
            let half = super::anova::half_width(cell).map_or(String::new(), |h| format!(" ±{}", digits(h)));
            cells.push(Cell::text(format!("{}{half}", digits(mean))));
            points.push(DotPoint { label: shown(column), value: mean });
        }
        means.push(cells);
        rows.push(DotRow { label: (*name).to_string(), origin: Origin::Simulated, points });
    }
    blocks.push(Block::Dots(Dots {
        id: format!("grid-{}", facts.take.kind().name),
        caption: "A row a memory management, a dot an elevator: a wide row means that the elevator matters there."
            .to_string(),
        axis: facts.take.text(),
        unit,
        log: false,
        rows,
    }));
    blocks.push(Block::Table(means));
    Section {
        id: format!("grid-{}-{}", facts.claim.to_ascii_lowercase(), facts.take.kind().name),
        title: format!("{}: {} under every elevator with every memory management", facts.claim, facts.take.kind().name),
        lead: "The same load, each variant's memory management with each elevator put under it. Two-way analysis of variance with the seeds as repetitions.".to_string(),
        blocks,
        definitions: vec![
            Definition::new("interaction", "what an elevator does under one memory management and not under another"),
            Definition::new("chance", "between seeds, which draw the state of the machine that the load begins on: the daemons' timers, slices, beginnings up to 1 ms apart"),
        ],
    }
}

fn starved_section(all: &[StarveFacts], mut definitions: Vec<Definition>) -> Section {
    let mut table = Table::new(
        "episodes",
        "The longest stretches in which a client got single pages only.",
        vec![
            Column::text("run", "run"),
            Column::text("client", "client"),
            Column::number("from_s", "from", Unit::Seconds, 1),
            Column::number("lasted_s", "lasted", Unit::Seconds, 1),
            Column::number("reads", "reads", Unit::Count, 0),
            Column::number("wait_ms", "median wait", Unit::Milliseconds, 0),
            Column::number("passed", "passed by", Unit::Count, 1),
            Column::number("tail_pct", "at the tail", Unit::Percent, 0),
        ],
    );
    let mut chains = Table::new(
        "wait-chain",
        "Whose requests were dispatched while the reads of the longest episode waited.",
        vec![
            Column::text("run", "run"),
            Column::text("client", "waiting"),
            Column::text("who", "behind"),
            Column::number("requests", "requests", Unit::Count, 0),
            Column::number("service_s", "disk time", Unit::Seconds, 2),
        ],
    );
    for s in all {
        let name = |task: i64| s.names.get(&task).cloned().unwrap_or_default();
        for e in &s.episodes {
            table.push(vec![
                Cell::text(&s.label),
                Cell::text(name(e.task)),
                Cell::number(seconds(e.start_ns)),
                Cell::number(seconds(e.end_ns - e.start_ns)),
                Cell::count(e.reads as i64),
                Cell::number(millis(e.median_ns)),
                Cell::number(e.passed),
                Cell::number(e.tail_pct),
            ]);
        }
        for link in &s.chain {
            let waiting = s.episodes.first().map_or_else(String::new, |e| name(e.task));
            chains.push(vec![
                Cell::text(&s.label),
                Cell::text(waiting),
                Cell::text(&link.who),
                Cell::count(link.requests as i64),
                Cell::number(seconds(link.service_ns)),
            ]);
        }
    }
    definitions
        .push(Definition::new("episode", "at least 8 successive data reads of a client, each a request of one page"));
    Section {
        id: "starvation".to_string(),
        title: "Starved clients: episodes and wait chains".to_string(),
        lead: "On real kernels a client starved for as long as it read single pages without read-ahead, each inserted at the tail of the queue and passed by about 124 dispatches (2.4.10, 64 MiB: 44 s, 35 reads, 89 % at the tail).".to_string(),
        blocks: vec![Block::Table(table), Block::Table(chains)],
        definitions,
    }
}

fn onset_section(all: &[OnsetFacts], mut definitions: Vec<Definition>) -> Section {
    let mut blocks = Vec::new();
    let mut table = Table::new(
        "onset",
        "The sample in which reads begin, and the sample in which the cache reached its height.",
        vec![
            Column::text("run", "run"),
            Column::number("reads", "reads begin at", Unit::Seconds, 0),
            Column::number("full", "cache full at", Unit::Seconds, 0),
            Column::number("ratio", "bo after/before", Unit::Ratio, 2),
            Column::number("writes", "writes that read data", Unit::Count, 0),
            Column::number("meta", "metadata only", Unit::Count, 0),
        ],
    );
    let mut lines = Table::new(
        "reading-writes",
        "The first writes that had to read: the rest of a page that they cover in part and that was no longer in memory. Writes of whole pages read no more than the file's metadata, where its blocks lie; such are not listed.",
        vec![
            Column::text("run", "run"),
            Column::number("line", "line", Unit::Count, 0),
            Column::number("at_s", "at", Unit::Seconds, 2),
            Column::number("bytes", "bytes written", Unit::Count, 0),
            Column::number("read_ms", "waited for reads", Unit::Milliseconds, 1),
        ],
    );
    for o in all {
        let at = |sample: usize| o.seconds.get(sample).copied();
        table.push(vec![
            Cell::text(&o.label),
            Cell::number(o.onset.as_ref().and_then(|x| at(x.reads_sample))),
            Cell::number(o.onset.as_ref().and_then(|x| at(x.cache_full_sample))),
            Cell::number(o.onset.as_ref().and_then(|x| x.bo_after_over_before)),
            Cell::count(o.count as i64),
            Cell::count(o.metadata_only as i64),
        ]);
        for w in &o.writes {
            lines.push(vec![
                Cell::text(&o.label),
                Cell::count(w.line),
                Cell::number(seconds(w.start_ns)),
                Cell::count(w.len_bytes),
                Cell::number(millis(w.read_ns)),
            ]);
        }
        blocks.push(Block::Strips(strips(o)));
    }
    blocks.insert(0, Block::Table(table));
    blocks.push(Block::Table(lines));
    definitions.push(Definition::new("line", "line of the generated load, which lies as a trace in the folder `traces` of the output: what `kreplay inspect` shows of it"));
    Section {
        id: "onset".to_string(),
        title: "Writes that read: where it begins and which writes ask for it".to_string(),
        lead: "The load only writes. Reads appear once pages that are to be overwritten have left the cache and a write covers only part of one; writes of whole pages need none: under a run of such writes nothing stands behind \"reads begin at\".".to_string(),
        blocks,
        definitions,
    }
}

fn strips(o: &OnsetFacts) -> Strips {
    let panels = o
        .series
        .iter()
        .map(|(column, values)| {
            let (title, about, unit) = match *column {
                "bi_kib_s" => ("bi", "read from disks", Unit::KibPerSecond),
                "bo_kib_s" => ("bo", "written to disks", Unit::KibPerSecond),
                _ => ("cache", "page cache", Unit::Kib),
            };
            let points: Vec<(f64, f64)> = o.seconds.iter().copied().zip(values.iter().copied()).collect();
            Panel {
                title: title.to_string(),
                about: about.to_string(),
                unit,
                top: values.iter().copied().fold(1.0, f64::max),
                series: vec![Series { origin: Origin::Simulated, points: crate::stats::envelope(&points, 300) }],
            }
        })
        .collect();
    Strips {
        id: "onset-strips".to_string(),
        label: o.label.clone(),
        caption: "Reads, writes and page cache, a sample a second.".to_string(),
        end_s: o.seconds.last().copied().unwrap_or(1.0),
        panels,
        thinned_from: (o.seconds.len() > 600).then_some(o.seconds.len()),
    }
}
