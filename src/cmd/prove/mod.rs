//! `kreplay prove KIND DIR`.

mod corpus;
mod exact;
mod figures;
mod pipeline;
mod recordings;
mod schedulers;
mod scores;

use crate::args::{Cli, ProveArgs};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::{signal, stdout};
use kreplay_replay::prove::{blocktrace, elevator, golden, linux24, lru, nfsd};
use kreplay_replay::sim::Pacing;
use kreplay_replay::variant::nearest;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A report, or why there is none.
type Outcome = std::result::Result<Box<dyn Report>, String>;

/// A kind of proof.
struct Kind {
    name: &'static str,
    about: &'static str,
    run: fn(&Path, &AtomicBool) -> Outcome,
}

/// What a proof comes to.
trait Report: Send {
    /// Whether its bars hold.
    fn holds(&self) -> bool;
    /// For `--json`.
    fn json(&self) -> serde_json::Value;
    /// In words and tables.
    fn text(&self, kind: &Kind) -> String;
}

/// All kinds.
static KINDS: &[Kind] = &[
    Kind {
        name: "linux24",
        about: "completion times and disk traffic of real 2.4 kernels on a modelled disk",
        run: |dir, stop| linux24::run(dir, stop).map(boxed),
    },
    Kind {
        name: "elevator",
        about: "every decision of real elevators on random streams",
        run: |dir, _| elevator::run(dir).map(boxed).map_err(|e| e.to_string()),
    },
    Kind {
        name: "blocktrace",
        about: "every insertion, merge and coalesce in the block event traces of real 2.4 kernels",
        run: |dir, stop| blocktrace::run(dir, stop).map(boxed),
    },
    Kind {
        name: "lru",
        about: "every decision of page replacement in the VM event traces of real 2.4 kernels",
        run: |dir, stop| lru::run(dir, stop).map(boxed),
    },
    Kind {
        name: "corpus",
        about: "every log of a corpus against the counts of its MANIFEST.tsv",
        run: |dir, _| corpus::run(dir).map(boxed),
    },
    Kind {
        name: "schedulers",
        about: "block traces of a real kernel under none, mq-deadline, kyber and bfq: dispatch order and latencies",
        run: |dir, stop| schedulers::run("schedulers", dir, Pacing::Recorded, stop).map(boxed),
    },
    Kind {
        name: "schedulers-closed",
        about: "the same, each process issuing its next bio when those that it waited for are done",
        run: |dir, stop| schedulers::run("schedulers-closed", dir, Pacing::Closed, stop).map(boxed),
    },
    Kind {
        name: "recordings",
        about: "runs of a real kernel predicted from recordings at other memory sizes and schedulers",
        run: |dir, stop| recordings::run(dir, stop).map(boxed),
    },
    Kind {
        name: "golden",
        about: "a real page cache step by step: read-ahead windows, lists under a limit, single operations",
        run: |dir, _| golden::run(dir).map(boxed),
    },
    Kind {
        name: "pipeline",
        about: "times of the chain of tasks that another page-cache model was evaluated on (tests/data/pipeline-2021.csv)",
        run: |file, stop| kreplay_replay::prove::pipeline::run(file, stop).map(boxed),
    },
    Kind {
        name: "nfsd",
        about: "a file server's reply strategies against another model of the same rules",
        run: |file, _| nfsd::run(file).map(boxed),
    },
];

fn boxed<R: Report + 'static>(report: R) -> Box<dyn Report> {
    Box::new(report)
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
        stdout::print_json(&report.json())?;
    } else {
        stdout::print(&report.text(kind))?;
    }
    Ok(if report.holds() { Exit::Ok } else { Exit::Bars })
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
