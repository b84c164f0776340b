//! `kreplay record`: a load, recorded for a replay.

use crate::args::{Cli, ProgressMode};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::record_args::{Blocks, RecordArgs};
use crate::{signal, stderr, stdout};
use indicatif::ProgressBar;
use kreplay_record::{BlockSource, Load, Plan, Progress, RecordError, Recorded, record};
use kreplay_reports::escape;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

/// Seconds between two lines where lines are wanted instead of bars.
const LINE_EVERY_S: u64 = 10;

pub(crate) fn run(cli: &Cli, args: &RecordArgs) -> Result<Exit> {
    let plan = plan(cli, args);
    let spinner = match cli.progress {
        ProgressMode::Auto if cli.quiet || !std::io::stderr().is_terminal() => ProgressBar::hidden(),
        ProgressMode::Auto | ProgressMode::Bar => ProgressBar::new_spinner(),
        ProgressMode::Plain | ProgressMode::None => ProgressBar::hidden(),
    };
    let every = if cli.progress == ProgressMode::Plain { LINE_EVERY_S } else { u64::MAX };
    let mut said = 0;
    let mut look = |p: Progress| {
        let second = p.elapsed.as_secs();
        let mib = p.strace_bytes as f64 / f64::from(1 << 20);
        let text = || format!("recording: {second} s, {mib:.1} MiB of calls, {} block events", p.block_events);
        if !spinner.is_hidden() {
            spinner.set_message(text());
            spinner.tick();
        } else if second / every > said {
            said = second / every;
            stderr::say(&(text() + "\n"));
        }
    };
    let recorded = record(&plan, &signal::DRAIN, &mut look);
    spinner.finish_and_clear();
    let recorded = recorded?;
    if cli.json {
        stdout::print_json(&document(&recorded))?;
    } else if !cli.quiet {
        stderr::say(&summary(&recorded));
    }
    Ok(if recorded.missing.is_empty() && recorded.lost_events == 0 { Exit::Ok } else { Exit::Skipped })
}

fn plan(cli: &Cli, args: &RecordArgs) -> Plan {
    let load = match (args.command.is_empty(), args.pid.is_empty()) {
        (false, _) => Load::Command(args.command.clone()),
        (true, false) => Load::Processes(args.pid.clone()),
        (true, true) => Load::Nothing,
    };
    let source = match args.block {
        Blocks::Auto => BlockSource::Auto,
        Blocks::Tracer => BlockSource::Tracer,
        Blocks::Events => BlockSource::Events,
    };
    Plan {
        output: args.output.clone(),
        load,
        limit: args.seconds.map(|s| Duration::from_secs(u64::from(s))),
        root: args.root.clone(),
        device: args.device.clone(),
        strace: !args.no_strace,
        block: (!args.no_block).then_some(source),
        vmstat_s: (!args.no_vmstat).then_some(args.interval),
        layout_files: args.layout_files,
        cgroup: args.cgroup.clone(),
        buffer_kib: args.buffer,
        facts: serde_json::Map::new(),
        strict: args.strict,
        output_to_stderr: cli.json,
    }
}

fn document(recorded: &Recorded) -> serde_json::Value {
    serde_json::json!({
        "recording": stdout::json_path(&recorded.path),
        "wall_s": recorded.wall.as_secs_f64(),
        "exit_status": recorded.status,
        "cut": recorded.cut,
        "block_source": recorded.block.map(|(source, _)| source),
        "block_events": recorded.block.map(|(_, lines)| lines),
        "lost_events": recorded.lost_events,
        "layout_files": recorded.layout_files,
        "missing": recorded.missing,
    })
}

fn summary(recorded: &Recorded) -> String {
    let path = escape::visible(&recorded.path.display().to_string());
    let mut text = format!("recorded {:.1} s into {path}", recorded.wall.as_secs_f64());
    if let Some((source, lines)) = recorded.block {
        let _ = write!(text, ", {lines} block events ({source})");
    }
    let _ = write!(text, ", places of {} files", recorded.layout_files);
    text.push('\n');
    if let Some(status) = recorded.status.filter(|s| *s != 0) {
        let _ = writeln!(text, "note: the command ended with exit status {status}");
    }
    if recorded.cut {
        text.push_str("note: the load was cut short\n");
    }
    if recorded.lost_events > 0 {
        let _ = writeln!(text, "warning: {} block events were lost: give --buffer more", recorded.lost_events);
    }
    for missing in &recorded.missing {
        let _ = writeln!(text, "not recorded: {missing}");
    }
    let _ = writeln!(text, "next: kreplay run {path} -o OUT");
    text
}

impl From<RecordError> for CliError {
    fn from(e: RecordError) -> Self {
        let what = e.to_string();
        match e {
            RecordError::Usage { help, .. } => Self::new(Exit::Usage, what).help(help),
            RecordError::Io { .. } => Self::new(Exit::Output, what).help("choose another place with -o, or --root"),
            RecordError::Start { .. } => {
                Self::new(Exit::Usage, what).help("is it on the path, and may it be executed?")
            }
            RecordError::Missing(_) => Self::new(Exit::Input, what)
                .help("without --strict the rest is recorded; --no-block, --no-strace leave out on purpose"),
        }
    }
}
