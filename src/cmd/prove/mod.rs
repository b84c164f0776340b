//! `kreplay prove KIND DIR`.

mod pipeline;
mod recordings;
mod schedulers;

use crate::args::{Cli, ProveArgs};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::{signal, stdout};
use kreplay_replay::prove::order::OrderReport;
use kreplay_replay::prove::pipeline::PipelineReport;
use kreplay_replay::prove::recordings::RecordingsReport;
use kreplay_replay::prove::scores::ScoreReport;
use kreplay_replay::prove::{
    ExactReport, FigureReport, blocktrace, elevator, golden, linux24, lru, median_error, nfsd,
};
use kreplay_replay::sim::Pacing;
use kreplay_replay::variant::nearest;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

mod corpus;
mod scores;

/// A kind of proof.
struct Kind {
    name: &'static str,
    about: &'static str,
    run: fn(&Path, &AtomicBool) -> std::result::Result<Report, String>,
}

/// What a proof comes to.
enum Report {
    Figures(FigureReport),
    Exact(ExactReport),
    Recordings(RecordingsReport),
    Pipeline(PipelineReport),
    Scores(ScoreReport),
}

/// All kinds.
static KINDS: &[Kind] = &[
    Kind {
        name: "linux24",
        about: "completion times and disk traffic of real 2.4 kernels on a modelled disk",
        run: |dir, stop| linux24::run(dir, stop).map(Report::Figures),
    },
    Kind {
        name: "elevator",
        about: "every decision of real elevators on random streams",
        run: |dir, _| elevator::run(dir).map(Report::Exact).map_err(|e| e.to_string()),
    },
    Kind {
        name: "blocktrace",
        about: "every insertion, merge and coalesce in the block event traces of real 2.4 kernels",
        run: |dir, stop| blocktrace::run(dir, stop).map(Report::Scores),
    },
    Kind {
        name: "lru",
        about: "every decision of page replacement in the VM event traces of real 2.4 kernels",
        run: |dir, stop| lru::run(dir, stop).map(Report::Scores),
    },
    Kind {
        name: "corpus",
        about: "every log of a corpus against the counts of its MANIFEST.tsv",
        run: |dir, _| corpus::run(dir).map(Report::Exact),
    },
    Kind {
        name: "schedulers",
        about: "block traces of a real kernel under none, mq-deadline, kyber and bfq: dispatch order and latencies",
        run: |dir, stop| schedulers::run("schedulers", dir, Pacing::Recorded, stop).map(Report::Figures),
    },
    Kind {
        name: "schedulers-closed",
        about: "the same, each process issuing its next bio when those that it waited for are done",
        run: |dir, stop| schedulers::run("schedulers-closed", dir, Pacing::Closed, stop).map(Report::Figures),
    },
    Kind {
        name: "recordings",
        about: "runs of a real kernel predicted from recordings at other memory sizes and schedulers",
        run: |dir, stop| recordings::run(dir, stop).map(Report::Recordings),
    },
    Kind {
        name: "golden",
        about: "a real page cache step by step: read-ahead windows, lists under a limit, single operations",
        run: |dir, _| golden::run(dir).map(Report::Exact),
    },
    Kind {
        name: "pipeline",
        about: "times of the chain of tasks that another page-cache model was evaluated on (tests/data/pipeline-2021.csv)",
        run: |file, stop| kreplay_replay::prove::pipeline::run(file, stop).map(Report::Pipeline),
    },
    Kind {
        name: "nfsd",
        about: "a file server's reply strategies against another model of the same rules",
        run: |file, _| nfsd::run(file).map(Report::Exact),
    },
];

impl Report {
    fn holds(&self) -> bool {
        match self {
            Report::Figures(r) => r.holds(),
            Report::Exact(r) => r.holds(),
            Report::Recordings(r) => r.holds(),
            Report::Pipeline(r) => r.holds(),
            Report::Scores(r) => r.holds(),
        }
    }
}

pub(crate) fn run(cli: &Cli, args: &ProveArgs) -> Result<Exit> {
    if args.kind == "list" {
        list(cli)?;
        return Ok(Exit::Ok);
    }
    let kind = KINDS.iter().find(|k| k.name == args.kind).ok_or_else(|| unknown(&args.kind))?;
    let Some(dir) = &args.dir else {
        return Err(CliError::new(Exit::Usage, format!("prove {} needs the folder of the recordings", kind.name))
            .help(format!("kreplay prove {} DIR", kind.name)));
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads.map_or(0, usize::from))
        .build()
        .map_err(|e| CliError::new(Exit::Internal, format!("cannot start threads: {e}")))?;
    let report = pool.install(|| (kind.run)(dir, &signal::DRAIN));
    if signal::interrupted() {
        return Err(CliError::new(Exit::Interrupted, "interrupted"));
    }
    let report = report.map_err(|why| CliError::new(Exit::Input, why))?;
    if cli.json {
        match &report {
            Report::Figures(r) => stdout::print_json(&serde_json::json!(r))?,
            Report::Exact(r) => stdout::print_json(&serde_json::json!(r))?,
            Report::Recordings(r) => stdout::print_json(&serde_json::json!(r))?,
            Report::Pipeline(r) => stdout::print_json(&serde_json::json!(r))?,
            Report::Scores(r) => stdout::print_json(&serde_json::json!(r))?,
        }
    } else {
        let text = match &report {
            Report::Figures(r) => figures_text(kind, r),
            Report::Exact(r) => exact_text(kind, r),
            Report::Recordings(r) => recordings::text(r),
            Report::Pipeline(r) => pipeline::text(r),
            Report::Scores(r) => scores::text(kind, r),
        };
        stdout::print(&text)?;
    }
    Ok(if report.holds() { Exit::Ok } else { Exit::Bars })
}

fn exact_text(kind: &Kind, report: &ExactReport) -> String {
    let mut t = format!("{}: {}\n", kind.name, kind.about);
    for (title, list) in [("differ", &report.failed), ("not run", &report.skipped)] {
        if !list.is_empty() {
            let _ = writeln!(t, "\n{title}:");
            for v in list {
                let _ = writeln!(t, "  {}: {}", v.case, v.why);
            }
        }
    }
    let verdict = if report.holds() { "holds" } else { "does not hold" };
    let _ = writeln!(t, "\n{} of {} cases agree in everything: {verdict} (bar: all)", report.passed, report.cases);
    t
}

fn unknown(name: &str) -> CliError {
    let names = || KINDS.iter().map(|k| k.name);
    let help = nearest(name, names()).map_or_else(
        || format!("the kinds are {}", names().collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    CliError::new(Exit::Usage, format!("there is no proof \"{name}\"")).help(help)
}

fn list(cli: &Cli) -> Result<()> {
    if cli.json {
        let kinds: Vec<_> = KINDS.iter().map(|k| serde_json::json!({"name": k.name, "about": k.about})).collect();
        return stdout::print_json(&serde_json::json!(kinds));
    }
    let lines: Vec<String> = KINDS.iter().map(|k| format!("{}: {}\n", k.name, k.about)).collect();
    stdout::print(&lines.concat())
}

/// A line for each variant, where there are several and each has several runs to sum up.
fn by_variant(t: &mut String, report: &FigureReport) {
    let mut variants: Vec<&str> = report.runs.iter().map(|r| r.variant.as_str()).collect();
    variants.sort_unstable();
    variants.dedup();
    if variants.len() < 2 || variants.len() * 2 > report.runs.len() {
        return;
    }
    t.push_str("\nmedian error by variant:\n");
    for variant in variants {
        let runs = report.runs.iter().filter(|r| r.variant == variant);
        let n = runs.clone().count();
        let median = median_error(runs.flat_map(|r| &r.figures)).unwrap_or(0.0);
        let _ = writeln!(t, "  {variant}: {median:.1} % in {n} runs");
    }
}

/// Order of the kernels: counts, the wrong pairs, the rule for noise.
fn order_text(t: &mut String, order: &OrderReport) {
    t.push_str(
        "\norder of kernels, pairs of recorded figures of one load that differ by more than repeated recordings do:\n",
    );
    for w in &order.wrong {
        let [a, b] = &w.kernels;
        let _ = writeln!(
            t,
            "  wrong: {}, {}: {a} {:.2}, {b} {:.2} recorded; {:.2}, {:.2} simulated",
            w.load, w.figure, w.recorded[0], w.recorded[1], w.simulated[0], w.simulated[1]
        );
    }
    for l in &order.loads {
        let _ = writeln!(t, "  {}: {} of {} pairs right", l.load, l.right, l.pairs);
    }
    for n in &order.noise {
        let _ = writeln!(
            t,
            "  noise of {}: {:.1} % at least, which nine tenths of {} repeated figures lie below",
            n.kind, n.p90_pct, n.repeats
        );
    }
    let share = order.right_pct.map_or_else(|| "no pairs".to_owned(), |p| format!("{p:.1} %"));
    let _ = writeln!(t, "  {} of {} pairs right: {share} (goal: {} %)", order.right, order.pairs, order.bar_pct);
}

fn figures_text(kind: &Kind, report: &FigureReport) -> String {
    let mut t = format!("{}: {}\n", kind.name, kind.about);
    for run in &report.runs {
        let median = run.median_error_pct.map_or_else(|| "no figures".to_owned(), |m| format!("median error {m:.1} %"));
        let _ = writeln!(t, "\n{} under {}: {median}", run.run, run.variant);
        let width = run.figures.iter().map(|f| f.name.len()).max().unwrap_or(0).max(6);
        let _ = writeln!(t, "  {:width$} {:>12} {:>12} {:>9}", "figure", "recorded", "simulated", "error %");
        for f in &run.figures {
            let _ = writeln!(t, "  {:width$} {:>12.3} {:>12.3} {:>9.1}", f.name, f.recorded, f.simulated, f.error_pct);
        }
    }
    by_variant(&mut t, report);
    if !report.skipped.is_empty() {
        t.push_str("\nnot compared:\n");
        for s in &report.skipped {
            let _ = writeln!(t, "  {}: {}", s.case, s.why);
        }
    }
    if let Some(order) = &report.order {
        order_text(&mut t, order);
    }
    let all = || report.runs.iter().flat_map(|r| &r.figures);
    let (figures, telling) = (all().count(), all().filter(|f| f.telling).count());
    let median = report.median_error_pct.map_or_else(|| "no figures".to_owned(), |m| format!("{m:.1} %"));
    let verdict = if report.holds() { "holds" } else { "does not hold" };
    let _ = writeln!(
        t,
        "\n{} runs, {figures} figures, {telling} of them telling (not next to nothing on both sides: the medians are over these); \
         median error {median}: {verdict} (bar: below {} %)",
        report.runs.len(),
        report.bar_pct
    );
    t
}
