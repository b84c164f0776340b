//! Looking at logs without keeping them: what each is, and what is in it.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use kreplay_traces::error::Error as TraceError;
use kreplay_traces::input::InputFacts;
use serde_json::{Value, json};

use super::{IngestError, Options, Plan, Planned, Progress, Watch, open_input, option_names, pump};
use crate::diag::Diagnostics;
use crate::survey::Survey;

/// What one log is and holds.
#[derive(Debug)]
pub struct Inspected {
    /// The file, or the set that it belongs to.
    pub path: PathBuf,
    /// Format id.
    pub format: &'static str,
    /// Options that were given, or that the file's name says, by name.
    pub options: std::collections::BTreeMap<String, String>,
    /// Counts, rejects, warnings, and the options that the text gives away.
    pub diagnostics: Diagnostics,
    /// The rows, counted.
    pub survey: Survey,
    /// Lengths, compression, hash.
    pub facts: InputFacts,
    /// Reading ended early: why.
    pub cut: Option<TraceError>,
}

impl Inspected {
    /// Parts of it were not understood, or could not be read.
    pub fn has_problems(&self) -> bool {
        self.diagnostics.rejected() > 0 || self.cut.is_some() || self.facts.changed.is_some()
    }

    /// Warnings in words, each with its count and first place.
    pub fn warnings(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.diagnostics.warnings().iter().map(|w| super::note(w.count, w.first_line, &w.text)).collect();
        all.extend(self.cut.iter().map(|cut| format!("reading ended early: {cut}")));
        all.extend(self.facts.changed.iter().map(|how| format!("the file changed while it was read: {how}")));
        all.extend(self.survey.remarks());
        if self.diagnostics.events() == 0 {
            all.push("it has no event".into());
        }
        all
    }

    /// Everything as one JSON object.
    pub fn to_json(&self) -> Value {
        let d = &self.diagnostics;
        let notes: serde_json::Map<String, Value> =
            d.notes().iter().map(|(k, n)| ((*k).to_owned(), json!(n))).collect();
        let rejects: Vec<Value> = d
            .rejects()
            .iter()
            .map(|r| {
                json!({
                    "reason": r.reason.code, "count": r.count, "expected": r.reason.expected, "hint": r.reason.hint,
                    "first_line": r.first_line, "first_byte": r.first_byte, "first_column": r.first_column,
                })
            })
            .collect();
        let codes: Vec<Value> = d
            .warnings()
            .iter()
            .map(|w| json!({"code": w.code, "count": w.count, "first_line": w.first_line, "text": w.text}))
            .collect();
        let mut document = json!({
            "path": self.path.to_string_lossy(),
            "format": self.format,
            "options": self.options,
            "detected": d.options(),
            "compression": self.facts.compression.to_string(),
            "bytes": self.facts.bytes,
            "text_bytes": self.facts.text_bytes,
            "blake3": self.facts.blake3,
            "lines": d.lines(),
            "events": d.events(),
            "notes": notes,
            "rejected": d.rejected(),
            "rejects": rejects,
            "adds_up": d.adds_up(),
        });
        if let (Value::Object(all), Value::Object(survey)) = (&mut document, self.survey.to_json()) {
            all.extend(survey);
            all.insert("findings".into(), json!(codes));
            all.insert("warnings".into(), json!(self.warnings()));
        }
        document
    }
}

/// Read all inputs of a plan and say what is in each.
///
/// # Errors
/// As [`super::ingest`], except that a log without events is none.
pub fn inspect(plan: Plan, options: &Options, watch: &mut Watch<'_>) -> Result<Vec<Inspected>, IngestError> {
    let total_bytes = plan.bytes();
    let mut done_bytes = 0;
    let mut all = Vec::new();
    for (index, planned) in plan.inputs.into_iter().enumerate() {
        let Planned { path, format, parse, bytes, parts, open, .. } = planned;
        format.check(&parse).map_err(|why| IngestError::BadOption { path: path.clone(), why })?;
        let (head, input) = open_input(&path, open, &parts, options)?;
        let (mut survey, mut diagnostics) = (Survey::default(), Diagnostics::new());
        let mut on_bytes = |read: u64| {
            (watch.progress)(Progress { path: &path, index, bytes: done_bytes + read, total_bytes });
            !watch.stop.load(Ordering::Relaxed)
        };
        if options.strict {
            diagnostics = Diagnostics::strict();
        }
        let (read, _) =
            pump(&path, &head, input, format, &parse, options, &mut survey, &mut diagnostics, &mut on_bytes)?;
        done_bytes += bytes.unwrap_or(0);
        let options = option_names(&parse);
        all.push(Inspected {
            path,
            format: format.id(),
            options,
            diagnostics,
            survey,
            facts: read.facts,
            cut: read.cut,
        });
    }
    Ok(all)
}
