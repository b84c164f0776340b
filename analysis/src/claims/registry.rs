//! Claims as data: what was reported, which runs answer it, and what counts as reproduced.
//!
//! The files in `analysis/claims/` are the registry. A `[[run]]` names cells (a load with its parameters on a machine,
//! under variants, with seeds); a `[[claim]]` takes figures from cells and compares them. Nothing of a claim is in code.

use super::expr::Condition;
use super::figures::Take;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The files of the registry, in the order of reports.
const FILES: [(&str, &str); 6] = [
    ("desktop.toml", include_str!("../../claims/desktop.toml")),
    ("fileserver.toml", include_str!("../../claims/fileserver.toml")),
    ("receive.toml", include_str!("../../claims/receive.toml")),
    ("stream.toml", include_str!("../../claims/stream.toml")),
    ("latency.toml", include_str!("../../claims/latency.toml")),
    ("others.toml", include_str!("../../claims/others.toml")),
];

/// What is wrong with a registry file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {place}: {why}")]
pub struct RegistryError {
    /// The file.
    pub file: String,
    /// The claim or run, or the line.
    pub place: String,
    /// What is wrong there.
    pub why: String,
}

/// Cells: a load on a machine under variants.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Run {
    /// Name, unique in the registry.
    pub id: String,
    /// Load, as `kreplay synth` names it.
    pub load: String,
    /// Its parameters, `key=value`.
    #[serde(default)]
    pub params: Vec<String>,
    /// Profiles put on every variant: the machine first.
    #[serde(default)]
    pub with: Vec<String>,
    /// Variants.
    pub variants: Vec<String>,
    /// Changes of which each makes a column of a grid, put behind the variant: `elevator.policy=noop-2.4`, an empty text for none.
    #[serde(default = "no_change")]
    pub columns: Vec<String>,
    /// How many seeds, from 1 on.
    #[serde(default = "one")]
    pub seeds: u64,
}

fn one() -> u64 {
    1
}

fn no_change() -> Vec<String> {
    vec![String::new()]
}

/// A figure of a claim, taken from the cells of one variant of a run (the median of its seeds), or from a whole grid.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FigureSpec {
    /// Name in conditions.
    pub name: String,
    /// Run, if not the claim's.
    pub run: Option<String>,
    /// Variant (with changes) of the run; none: the whole grid.
    pub variant: Option<String>,
    /// What to take, if not what the claim takes.
    pub take: Option<String>,
    /// What was reported; several where it was reported several times.
    #[serde(default)]
    pub reported: Vec<f64>,
}

/// Whose blame explains a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Why {
    /// The figure to explain.
    pub figure: String,
    /// The figure to compare with.
    pub against: Option<String>,
    /// Only tasks whose client or name begins so.
    #[serde(default)]
    pub tasks: String,
    /// How requests of the data disk waited is part of the cause.
    #[serde(default)]
    pub queue: bool,
    /// Counters that are part of the cause.
    #[serde(default)]
    pub counters: Vec<String>,
    /// Sum these marks' stretch only: the claim's figure is a time from one mark to another.
    #[serde(default)]
    pub between: Vec<String>,
}

/// A figure measured on a real kernel, and where the model says the same on the same machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Beside {
    /// Run of the model on the machine of the measurement.
    pub run: String,
    /// Variant of the kernel that was measured.
    pub variant: String,
    /// What to take.
    pub take: String,
    /// What was measured; several runs, several figures.
    pub measured: Vec<f64>,
    /// The recording and the figure in it.
    pub origin: String,
}

/// A figure over a swept setting: over which range does the verdict hold?
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sensitivity {
    /// Run whose columns are the swept values.
    pub run: String,
    /// What is swept, in words.
    pub about: String,
}

/// A row of what was reported.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClaimFile {
    id: String,
    title: String,
    reported: String,
    #[serde(default)]
    run: String,
    #[serde(default)]
    take: String,
    figures: Vec<FigureSpec>,
    holds: Vec<String>,
    #[serde(default)]
    direction: Vec<String>,
    #[serde(default)]
    why: Option<Why>,
    #[serde(default)]
    beside: Vec<Beside>,
    #[serde(default)]
    sensitivity: Option<Sensitivity>,
    #[serde(default)]
    definition: String,
    #[serde(default)]
    samples: bool,
}

/// A row of what was reported, ready to be answered.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Id, as in the tables of reports (`E1p`).
    pub id: String,
    /// What is claimed, a few words.
    pub title: String,
    /// What was reported, in the reporter's figures.
    pub reported: String,
    /// Run that its figures come from, where they name no other.
    pub run: String,
    /// Figures.
    pub figures: Vec<(FigureSpec, Take)>,
    /// All hold: reproduced.
    pub holds: Vec<Condition>,
    /// All hold: at least the direction is right.
    pub direction: Vec<Condition>,
    /// Where the cause is looked for.
    pub why: Option<Why>,
    /// Real kernels.
    pub beside: Vec<(Beside, Take)>,
    /// Sweep.
    pub sensitivity: Option<Sensitivity>,
    /// How the figures are defined, where their names do not say it.
    pub definition: String,
    /// The report shows the samples of its cells, and which writes had to read.
    pub samples: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    run: Vec<Run>,
    #[serde(default)]
    claim: Vec<ClaimFile>,
}

/// All claims and the runs that they need.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Runs.
    pub runs: Vec<Run>,
    /// Claims.
    pub claims: Vec<Claim>,
}

impl Registry {
    /// The claims that come with the program.
    ///
    /// # Errors
    /// A mistake in one of its files.
    pub fn builtin() -> Result<Registry, RegistryError> {
        Registry::parse(&FILES)
    }

    /// Reads files (name and text).
    ///
    /// # Errors
    /// A text that is not TOML of this shape, an id used twice, a figure, run or condition that does not fit.
    pub fn parse(files: &[(&str, &str)]) -> Result<Registry, RegistryError> {
        let mut registry = Registry::default();
        let mut claims = Vec::new();
        for (name, text) in files {
            let file: File = toml::from_str(text).map_err(|e| RegistryError {
                file: (*name).to_string(),
                place: e
                    .span()
                    .map_or_else(|| "file".into(), |s| format!("line {}", 1 + text[..s.start].matches('\n').count())),
                why: e.message().to_string(),
            })?;
            registry.runs.extend(file.run);
            claims.extend(file.claim.into_iter().map(|c| (*name, c)));
        }
        let mut seen = BTreeSet::new();
        for run in &registry.runs {
            if !seen.insert(run.id.as_str()) {
                return Err(RegistryError {
                    file: "runs".into(),
                    place: run.id.clone(),
                    why: "the id is used twice".into(),
                });
            }
        }
        for (file, claim) in claims {
            let id = claim.id.clone();
            if registry.claims.iter().any(|c| c.id == id) {
                return Err(RegistryError { file: file.into(), place: id, why: "the id is used twice".into() });
            }
            let claim = registry.check(claim).map_err(|why| RegistryError { file: file.into(), place: id, why })?;
            registry.claims.push(claim);
        }
        Ok(registry)
    }

    /// A run by its id.
    pub fn run(&self, id: &str) -> Option<&Run> {
        self.runs.iter().find(|r| r.id == id)
    }

    /// The claims whose ids match one of `patterns`: an id, or the beginning of ids with a `*` behind it. None asked for: all.
    ///
    /// # Errors
    /// The first pattern that matches nothing.
    pub fn select(&self, patterns: &[String]) -> Result<Vec<&Claim>, String> {
        let matches = |pattern: &str, id: &str| match pattern.strip_suffix('*') {
            Some(start) => id.starts_with(start),
            None => id.eq_ignore_ascii_case(pattern),
        };
        if let Some(none) = patterns.iter().find(|p| !self.claims.iter().any(|c| matches(p, &c.id))) {
            return Err(none.clone());
        }
        Ok(self.claims.iter().filter(|c| patterns.is_empty() || patterns.iter().any(|p| matches(p, &c.id))).collect())
    }

    /// The runs that a claim's figures, measurements and sweep come from, in the order of the registry.
    pub fn runs_of(&self, claim: &Claim) -> Vec<&Run> {
        let mut ids: BTreeSet<&str> = claim.figures.iter().filter_map(|(f, _)| f.run.as_deref()).collect();
        ids.extend(claim.beside.iter().map(|(b, _)| b.run.as_str()));
        ids.extend(claim.sensitivity.iter().map(|s| s.run.as_str()));
        self.runs.iter().filter(|r| ids.contains(r.id.as_str())).collect()
    }

    fn check(&self, mut claim: ClaimFile) -> Result<Claim, String> {
        let run_of = |id: &str| self.run(id).ok_or_else(|| format!("there is no run `{id}`"));
        let mut figures = Vec::new();
        for mut figure in claim.figures {
            let named = |why: String| format!("figure `{}`: {why}", figure.name);
            if figure.run.is_none() {
                figure.run = Some(claim.run.clone());
            }
            let run = run_of(figure.run.as_deref().unwrap_or_default()).map_err(named)?;
            if let Some(variant) = &figure.variant
                && !run.names().contains(variant)
            {
                return Err(format!("figure `{}`: run `{}` has no variant `{variant}`", figure.name, run.id));
            }
            let take = Take::parse(figure.take.as_deref().unwrap_or(&claim.take)).map_err(named)?;
            if take.of_grid() == figure.variant.is_some() {
                return Err(format!("figure `{}`: a cell's figure needs a variant, a grid's has none", figure.name));
            }
            figures.push((figure, take));
        }
        let condition = |text: &String| -> Result<Condition, String> {
            let condition = Condition::parse(text).map_err(|e| format!("`{text}`: {e}"))?;
            let unknown = condition.figures().into_iter().find(|n| !figures.iter().any(|(f, _)| f.name == *n));
            match unknown {
                Some(name) => Err(format!("`{text}`: there is no figure `{name}`")),
                None => Ok(condition),
            }
        };
        let holds = claim.holds.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
        let direction = claim.direction.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
        if holds.is_empty() {
            return Err("a claim needs at least one condition".into());
        }
        if let Some(why) = &claim.why {
            let names = std::iter::once(&why.figure).chain(&why.against);
            for name in names {
                if !figures.iter().any(|(f, _)| f.name == *name) {
                    return Err(format!("why: there is no figure `{name}`"));
                }
            }
        }
        let mut beside = Vec::new();
        for b in std::mem::take(&mut claim.beside) {
            let run = run_of(&b.run)?;
            if !run.names().contains(&b.variant) {
                return Err(format!("beside: run `{}` has no variant `{}`", run.id, b.variant));
            }
            let take = Take::parse(&b.take)?;
            beside.push((b, take));
        }
        if let Some(s) = &claim.sensitivity {
            run_of(&s.run)?;
        }
        Ok(Claim {
            id: claim.id,
            title: claim.title,
            reported: claim.reported,
            run: claim.run,
            figures,
            holds,
            direction,
            why: claim.why,
            beside,
            sensitivity: claim.sensitivity,
            definition: claim.definition,
            samples: claim.samples,
        })
    }
}

impl Run {
    /// Its variants with their changes as figures name them: `variant`, `variant+change`.
    pub fn names(&self) -> Vec<String> {
        self.variants.iter().flat_map(|v| self.columns.iter().map(move |c| named(v, c))).collect()
    }
}

/// A variant and a change of it as one name.
pub(crate) fn named(variant: &str, change: &str) -> String {
    if change.is_empty() { variant.to_string() } else { format!("{variant}+{change}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_claims_are_in_order() {
        let registry = Registry::builtin().unwrap();
        assert!(registry.claims.len() >= 40, "{}", registry.claims.len());
        for claim in &registry.claims {
            assert!(!claim.reported.is_empty() && !claim.title.is_empty(), "{}", claim.id);
            assert!(claim.why.is_some(), "{} has no place to look for its cause", claim.id);
            assert!(!registry.runs_of(claim).is_empty(), "{}", claim.id);
        }
        let ids = |patterns: &[&str]| -> Vec<String> {
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_string()).collect();
            registry.select(&patterns).unwrap().iter().map(|c| c.id.clone()).collect()
        };
        assert_eq!(ids(&["e1p", "A1"]), ["A1", "E1p"]);
        assert_eq!(ids(&["D*"]), ["D512", "Dpol"]);
        assert_eq!(registry.select(&["Z9".into()]).unwrap_err(), "Z9");
    }

    fn error(claim: &str) -> String {
        let run = "[[run]]\nid = \"r\"\nload = \"base\"\nvariants = [\"v\"]\n";
        let head = "[[claim]]\nid = \"X\"\ntitle = \"t\"\nreported = \"r\"\nrun = \"r\"\n";
        Registry::parse(&[("x.toml", &format!("{run}{head}{claim}"))]).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_are_told_with_their_claim() {
        let figure = "figures = [{ name = \"a\", variant = \"v\", take = \"elapsed\" }]\n";
        let e = error("figures = [{ name = \"a\", variant = \"w\", take = \"elapsed\" }]\nholds = [\"a > 1\"]\n");
        assert_eq!(e, "x.toml: X: figure `a`: run `r` has no variant `w`");
        let e = error(&format!("{figure}holds = [\"b > 1\"]\n"));
        assert_eq!(e, "x.toml: X: `b > 1`: there is no figure `b`");
        let e = error(&format!("{figure}holds = []\n"));
        assert_eq!(e, "x.toml: X: a claim needs at least one condition");
        let e = error(&format!("{figure}hold = [\"a > 1\"]\n"));
        assert!(e.starts_with("x.toml: line 11: unknown field `hold`"), "{e}");
    }
}
