//! Which cells a command means, and what identifies each.

use crate::program::Program;
use crate::results::CellHeader;
use crate::variant::Variant;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Longest name of a variant's folder, bytes; longer names are cut and told apart by a hash.
const MAX_FOLDER_BYTES: usize = 120;

/// Version of the simulating code: the package's, and a hash of this crate's sources.
pub fn code_version() -> String {
    format!("{}+{}", env!("CARGO_PKG_VERSION"), env!("KREPLAY_CODE_HASH"))
}

/// A compiled trace.
#[derive(Clone, Debug)]
pub struct TraceInput {
    /// What to simulate; shared by all cells.
    pub program: Program,
    /// Its trace directory, for overlays in reports.
    pub path: Option<PathBuf>,
}

/// Everything to simulate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Traces.
    pub traces: Vec<TraceInput>,
    /// Variants.
    pub variants: Vec<Variant>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Cells that are meant, by the numbers of trace and variant and by seed; `None` means every combination.
    pub picked: Option<Vec<(usize, usize, u64)>>,
    /// Pacing in words, as it goes to the engine.
    pub pacing: String,
    /// Keep no rows of single requests and operations.
    pub totals_only: bool,
    /// Version of the code; [`code_version`] outside of tests.
    pub code_version: String,
}

/// One cell of a plan.
#[derive(Clone, Copy, Debug)]
pub struct CellSpec<'p> {
    /// The plan.
    pub plan: &'p Plan,
    /// Trace.
    pub trace: &'p TraceInput,
    /// Variant.
    pub variant: &'p Variant,
    /// Seed.
    pub seed: u64,
}

impl Plan {
    /// All cells: by trace, then variant, then seed; or those picked, in their order. Numbers of no trace or variant are left out.
    pub fn cells(&self) -> Vec<CellSpec<'_>> {
        if let Some(picked) = &self.picked {
            let cell = |&(trace, variant, seed): &(usize, usize, u64)| {
                let (trace, variant) = (self.traces.get(trace)?, self.variants.get(variant)?);
                Some(CellSpec { plan: self, trace, variant, seed })
            };
            return picked.iter().filter_map(cell).collect();
        }
        let mut cells = Vec::with_capacity(self.traces.len() * self.variants.len() * self.seeds.len());
        for trace in &self.traces {
            for variant in &self.variants {
                for &seed in &self.seeds {
                    cells.push(CellSpec { plan: self, trace, variant, seed });
                }
            }
        }
        cells
    }
}

impl CellSpec<'_> {
    /// blake3 (hex) over trace id, resolved configuration, seed, pacing and code version: equal ids, equal results.
    pub fn id(&self) -> String {
        let mut hash = blake3::Hasher::new_derive_key("kreplay cell, version 1");
        let config = self.variant.config_hash();
        let seed = self.seed.to_string();
        for part in [&self.trace.program.trace_id, &config, &seed, &self.pacing(), &self.plan.code_version] {
            // Each part's length first: no two lists of parts have the same bytes.
            hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hash.finalize().to_hex().to_string()
    }

    pub(super) fn totals_only(&self) -> bool {
        self.plan.totals_only
    }

    /// How it was played, in words: cells without rows are other cells.
    fn pacing(&self) -> String {
        let without = if self.plan.totals_only { ", totals only" } else { "" };
        format!("{}{without}", self.plan.pacing)
    }

    /// Its folder below the results folder, in hive style.
    pub fn path(&self) -> PathBuf {
        let trace = &self.trace.program.trace_id;
        Path::new(&format!("trace={}", trace.get(..16).unwrap_or(trace)))
            .join(format!("variant={}", folder_name(&self.variant.name)))
            .join(format!("seed={}", self.seed))
    }

    pub(super) fn header(&self, id: String) -> CellHeader {
        CellHeader {
            id,
            trace: self.trace.program.trace_id.clone(),
            trace_path: self.trace.path.as_ref().map(|p| p.display().to_string()),
            variant: self.variant.name.clone(),
            parts: self.variant.parts.clone(),
            seed: self.seed,
            pacing: self.pacing(),
            config: self.variant.config.clone(),
            config_hash: self.variant.config_hash(),
            code_version: self.plan.code_version.clone(),
            checked_against: self.variant.checked.clone(),
            model: crate::model::lines(self.variant),
            assumptions: self.variant.assumptions(),
        }
    }
}

/// A variant's name as a folder's: what hive readers could take amiss ('=' above all) percent-encoded.
fn folder_name(name: &str) -> String {
    let mut folder = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+') {
            folder.push(char::from(byte));
        } else {
            let _ = write!(folder, "%{byte:02X}");
        }
    }
    if folder.len() > MAX_FOLDER_BYTES {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        folder.truncate(MAX_FOLDER_BYTES - 17);
        let _ = write!(folder, "-{}", &hash[..16]);
    }
    folder
}

#[cfg(test)]
mod tests {
    use super::folder_name;

    #[test]
    fn folder_names_are_safe_and_bounded() {
        assert_eq!(folder_name("linux-2.4.16+machine.ram=64MiB"), "linux-2.4.16+machine.ram%3D64MiB");
        assert_eq!(folder_name("a/b c"), "a%2Fb%20c");
        let (a, b) = (folder_name(&"x=".repeat(200)), folder_name(&"x=".repeat(201)));
        assert!(a.len() <= 120 && b.len() <= 120 && a != b, "{a} {b}");
    }
}
