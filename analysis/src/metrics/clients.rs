//! Fairness between clients: finish times and Jain's index.
//!
//! What a client is: [`crate::who`]. A client finishes when its last task ends (s from the start of the trace).
//! `last_over_first`: latest finish over earliest finish (ratio). `jain`: Jain's index ([`crate::stats::jain`]) over the
//! clients' rates, bytes moved per second between a client's start and its finish; over 1/seconds if no bytes moved.

use super::{Context, Metric};
use crate::cell::{CellData, mib, seconds};
use crate::error::Result;
use crate::model::{Better, Block, Cell, Column, Definition, DotPoint, DotRow, Dots, Origin, Section, Table, Unit};
use crate::recorded::Recorded;
use crate::stats::jain;
use crate::who::Who;

/// Clients that get a row each in the table of finish times; more are summed up in words.
const ROWS_PER_CELL: usize = 40;

/// Most dots in a row of the chart.
const DOTS: usize = 60;

pub(crate) struct Clients;

struct Client {
    name: String,
    start_ns: i64,
    end_ns: Option<i64>,
    recorded_end_ns: Option<i64>,
    bytes: i64,
}

impl Client {
    fn rate(&self, by_bytes: bool) -> Option<f64> {
        let busy = seconds(self.end_ns? - self.start_ns);
        (busy > 0.0).then(|| if by_bytes { self.bytes as f64 / busy } else { 1.0 / busy })
    }
}

pub(crate) struct Facts {
    clients: Vec<Client>,
}

impl Facts {
    fn ends_s(&self) -> Option<(f64, f64)> {
        let ends: Option<Vec<i64>> = self.clients.iter().map(|c| c.end_ns).collect();
        let ends = ends?;
        Some((seconds(*ends.iter().min()?), seconds(*ends.iter().max()?)))
    }

    fn last_over_first(&self) -> Option<f64> {
        self.ends_s().filter(|(first, _)| *first > 0.0).map(|(first, last)| last / first)
    }

    fn jain(&self) -> Option<f64> {
        let by_bytes = self.clients.iter().any(|c| c.bytes > 0);
        let rates: Option<Vec<f64>> = self.clients.iter().map(|c| c.rate(by_bytes)).collect();
        jain(&rates?)
    }

    /// Fairness needs somebody to be unfair to.
    fn several(&self) -> bool {
        self.clients.len() > 1
    }
}

fn clients_of(cell: &CellData, recorded: &Recorded) -> Vec<Client> {
    let who = Who::of(cell);
    let begin_ns = cell.begin_ns();
    let recorded_begin_ns = recorded.begin_ns(cell.foreground().map(|t| t.tid)).unwrap_or(0);
    let ended = |client: usize| {
        let tasks = cell.foreground().filter(|t| who.client(t.task) == Some(client));
        tasks.filter_map(|t| recorded.end_ns(t.tid)).max().map(|end| end - recorded_begin_ns)
    };
    (0..who.names.len())
        .map(|c| Client {
            name: who.names[c].clone(),
            start_ns: who.spans[c].0 - begin_ns,
            end_ns: who.spans[c].1.map(|end| end - begin_ns),
            recorded_end_ns: ended(c),
            bytes: who.bytes[c],
        })
        .collect()
}

impl Metric for Clients {
    type Facts = Facts;

    fn measure(&self, cell: &CellData, recorded: &Recorded) -> Result<Facts> {
        Ok(Facts { clients: clients_of(cell, recorded) })
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::number("first_finish_s", "first finish", Unit::Seconds, 2),
            Column::number("last_finish_s", "last finish", Unit::Seconds, 2).better(Better::Lower),
            Column::number("last_over_first", "last/first", Unit::Count, 2).better(Better::Lower),
            Column::number("jain", "Jain index", Unit::Count, 3).better(Better::Higher),
        ]
    }

    fn values(&self, facts: &Facts) -> Vec<Option<f64>> {
        if !facts.several() {
            return vec![None; 4];
        }
        let ends = facts.ends_s();
        vec![ends.map(|e| e.0), ends.map(|e| e.1), facts.last_over_first(), facts.jain()]
    }

    fn section(&self, context: &Context<'_>, facts: &[Facts]) -> Option<Section> {
        if !facts.iter().any(Facts::several) {
            return None;
        }
        Some(Section {
            id: "clients".to_string(),
            title: "Clients: who finished when".to_string(),
            lead: "Clients with the same work should finish at about the same time. A wide gap between the first and the last means that some were served at the expense of others.".to_string(),
            blocks: vec![
                Block::Dots(finish_chart(context, facts)),
                Block::Table(fairness_table(context, facts)),
                Block::Table(finish_table(context, facts)),
            ],
            definitions: vec![
                Definition::new("client", "the tasks that carry one client's name; without such names each task that moved at least 1 % of what the busiest one moved"),
                Definition::new("last/first", "latest finish divided by earliest finish; 1 is even"),
                Definition::new("Jain index", "(sum of rates)² / (n × sum of squared rates), where a client's rate is the bytes it moved per second from its start to its finish (where no client moved any: one over that time); 1 is even, 1/n is one client taking all (Jain, Chiu, Hawe, 1984)"),
            ],
        })
    }
}

fn fairness_table(context: &Context<'_>, facts: &[Facts]) -> Table {
    let mut table = Table::new(
        "fairness",
        "First and last client to finish.",
        vec![
            Column::text("variant", "variant"),
            Column::number("clients", "clients", Unit::Count, 0),
            Column::number("first_finish_s", "first finish", Unit::Seconds, 2),
            Column::number("last_finish_s", "last finish", Unit::Seconds, 2).better(Better::Lower),
            Column::number("last_over_first", "last/first", Unit::Count, 2).better(Better::Lower),
            Column::number("jain", "Jain index", Unit::Count, 3).better(Better::Higher),
            Column::number("unfinished", "unfinished", Unit::Count, 0),
        ],
    );
    for (label, f) in context.labelled(facts) {
        let ends = f.ends_s();
        table.push(vec![
            Cell::text(label),
            Cell::count(f.clients.len() as i64),
            Cell::number(ends.map(|e| e.0)),
            Cell::number(ends.map(|e| e.1)),
            Cell::number(f.last_over_first()),
            Cell::number(f.jain()),
            Cell::count(f.clients.iter().filter(|c| c.end_ns.is_none()).count() as i64),
        ]);
    }
    table.mark_best(|i| context.finished(i));
    if let Some((clients, first, last)) = recorded_ends(facts) {
        let mut cells = vec![
            Cell::text("(recorded)"),
            Cell::count(clients),
            Cell::number(seconds(first)),
            Cell::number(seconds(last)),
            Cell::number((first > 0).then(|| last as f64 / first as f64)),
        ];
        cells.resize_with(table.columns.len(), || Cell::number(None));
        table.push(cells);
    }
    table
}

/// How many clients have a recorded end, and the first and last of them.
fn recorded_ends(facts: &[Facts]) -> Option<(i64, i64, i64)> {
    let ends: Vec<i64> = facts.first()?.clients.iter().filter_map(|c| c.recorded_end_ns).collect();
    Some((ends.len() as i64, *ends.iter().min()?, *ends.iter().max()?))
}

fn finish_chart(context: &Context<'_>, facts: &[Facts]) -> Dots {
    let mut rows: Vec<DotRow> = Vec::new();
    if let Some(f) = facts.first() {
        let points = dots(f.clients.iter().filter_map(|c| Some((c.name.as_str(), c.recorded_end_ns?))));
        if !points.is_empty() {
            rows.push(DotRow { label: "(recorded)".to_string(), origin: Origin::Recorded, points });
        }
    }
    rows.extend(context.labelled(facts).map(|(label, f)| DotRow {
        label: label.to_string(),
        origin: Origin::Simulated,
        points: dots(f.clients.iter().filter_map(|c| Some((c.name.as_str(), c.end_ns?)))),
    }));
    let mut caption =
        "One dot a client, where it finished. The bar spans first to last: short and left is good.".to_string();
    if facts.iter().any(|f| f.clients.len() > DOTS) {
        caption
            .push_str(&format!(" Of more than {DOTS} clients {DOTS} are drawn, evenly by their place in the finish."));
    }
    Dots { id: "client-finish".to_string(), caption, axis: "finish".to_string(), unit: Unit::Seconds, log: false, rows }
}

/// Points in the order of finish; of many every n-th, the first and the last among them.
fn dots<'a>(clients: impl Iterator<Item = (&'a str, i64)>) -> Vec<DotPoint> {
    let mut ends: Vec<(&str, i64)> = clients.collect();
    ends.sort_by_key(|(_, ns)| *ns);
    let point = |(name, ns): (&str, i64)| DotPoint { label: name.to_string(), value: seconds(ns) };
    if ends.len() <= DOTS {
        return ends.into_iter().map(point).collect();
    }
    (0..DOTS).map(|i| point(ends[i * (ends.len() - 1) / (DOTS - 1)])).collect()
}

fn finish_table(context: &Context<'_>, facts: &[Facts]) -> Table {
    let mut caption = "When each client finished, in the order in which the clients appear in the trace.".to_string();
    let longest = facts.iter().map(|f| f.clients.len()).max().unwrap_or(0);
    if longest > ROWS_PER_CELL {
        caption.push_str(&format!(" The first {ROWS_PER_CELL} of {longest} clients; the rest are in clients.parquet."));
    }
    let mut columns = vec![Column::text("client", "client"), Column::number("moved_mib", "moved", Unit::Mib, 1)];
    let recorded = facts.iter().any(|f| f.clients.iter().any(|c| c.recorded_end_ns.is_some()));
    if recorded {
        columns.push(Column::number("recorded_s", "(recorded)", Unit::Seconds, 2));
    }
    columns.extend(
        context
            .cells
            .iter()
            .enumerate()
            .map(|(i, c)| Column::number(&format!("cell{i}_s"), &c.label, Unit::Seconds, 2)),
    );
    let mut table = Table::new("client-finish-times", &caption, columns);
    let Some(first) = facts.first() else { return table };
    for client in first.clients.iter().take(ROWS_PER_CELL) {
        let mut cells = vec![Cell::text(client.name.clone()), Cell::number(mib(client.bytes))];
        if recorded {
            cells.push(Cell::number(client.recorded_end_ns.map(seconds)));
        }
        cells.extend(facts.iter().map(|f| {
            let same = f.clients.iter().find(|c| c.name == client.name);
            Cell::number(same.and_then(|c| c.end_ns).map(seconds))
        }));
        table.push(cells);
    }
    table
}
