//! From files to a configuration: the layers of a chain laid over each other, then profiles, then single keys.

use super::error::{Place, VariantError};
use super::file::{Evidence, Reason, VariantFile};
use super::library::Library;
use super::schema;
use crate::config::{Config, check};
use indexmap::IndexMap;
use toml::{Table, Value};

/// One key of a resolved variant: its value, who set it and how that is known.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Choice {
    /// "section.key".
    pub key: String,
    /// The value as in the file.
    pub value: Value,
    /// Variant or profile that set it, or "--set".
    pub from: String,
    /// Line in that file; `None` for "--set".
    pub line: Option<usize>,
    /// How it is known; `None` for "--set" and for files that do not say.
    pub reason: Option<Reason>,
}

/// What a part of a variant's name stands for, as its own file says it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NamePart {
    /// The named variant, or a profile put on top of it.
    pub name: String,
    /// One line about it.
    pub about: String,
}

/// A variant ready to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Name, which is also the selector that makes it again: `linux-2.4.16+machine.ram=64MiB`.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// What the simulator reads.
    pub config: Config,
    /// Every key with its origin, in the order of [`Config`].
    pub choices: Vec<Choice>,
    /// Files it was made of, base first.
    pub layers: Vec<String>,
    /// Where the facts come from, over all layers.
    pub sources: Vec<String>,
    /// What the variant's own file says it was checked against. Keys changed by profiles or `--set` after that are in
    /// [`Variant::changes`].
    pub checked: Vec<String>,
    /// Profiles and keys put on top of the named variant.
    pub changes: Vec<String>,
    /// What the name's parts stand for: the named variant first, then the profiles on top of it.
    pub parts: Vec<NamePart>,
}

impl Variant {
    /// Hash of the resolved configuration (blake3, hex): equal configurations, equal hash, whatever the name.
    pub fn config_hash(&self) -> String {
        let json = serde_json::to_vec(&self.config).expect("a configuration has only plain values");
        blake3::hash(&json).to_hex().to_string()
    }

    /// Choices that rest on a conclusion or an assumption, as "key = value: why".
    pub fn assumptions(&self) -> Vec<String> {
        let inferred = |c: &&Choice| c.reason.as_ref().is_some_and(|r| r.evidence == Evidence::Inferred);
        self.choices
            .iter()
            .filter(inferred)
            .map(|c| {
                let note = c.reason.as_ref().map_or("", |r| r.note.as_str());
                format!("{} = {}: {note}", c.key, c.value)
            })
            .collect()
    }
}

/// A `key=value` given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub key: String,
    pub value: String,
}

impl Assignment {
    /// The value with its type: a TOML value if it reads as one, else a string (`64MiB`, `noop`).
    fn typed(&self) -> Value {
        let text = format!("v = {}", self.value);
        let parsed = toml::from_str::<Table>(&text).ok().and_then(|mut t| t.remove("v"));
        parsed.unwrap_or_else(|| Value::String(self.value.clone()))
    }
}

struct Layered {
    value: Value,
    choice: Choice,
}

/// Lays the chain of `name`, then the chains of `profiles`, then `sets` over each other.
pub(super) fn resolve(
    library: &Library,
    name: &str,
    profiles: &[String],
    sets: &[Assignment],
) -> Result<Variant, VariantError> {
    let chain = library.chain(name)?;
    let Some(top) = chain.last().copied() else { return Err(library.unknown(name)) };
    let mut layers: Vec<&VariantFile> = chain.clone();
    for profile in profiles {
        // A profile lies above the variant even where the variant was built on it already.
        layers.extend(library.chain(profile)?);
    }
    let mut keys: IndexMap<String, Layered> = IndexMap::new();
    layers.retain(|file| {
        let fits = file.only_where.iter().all(|(key, value)| keys.get(key).is_some_and(|l| l.value == *value));
        if fits {
            let own = |key: &String| keys.get(key).is_some_and(|l| l.choice.from == top.name);
            let chosen = |key: &String| own(key) || sets.iter().any(|s| s.key == *key);
            let without: &[String] = if file.yields.iter().any(chosen) { &file.yields } else { &[] };
            lay_file(&mut keys, file, without);
        }
        fits
    });
    for set in sets {
        lay_set(&mut keys, set)?;
    }
    let config = build(&keys, top)?;
    check::ranges(&config).map_err(|(key, what)| {
        let mut error = VariantError::new(format!("`{key}` of {name}: {what}"));
        if let Some(set) = sets.iter().find(|s| s.key == key) {
            return error.help(format!("it was set by --set {}={}", set.key, set.value));
        }
        if let Some(origin) = keys.get(key).and_then(|l| layers.iter().find(|f| f.name == l.choice.from)) {
            error = error.at(origin.place(origin.entries[key].span.clone()));
        }
        error
    })?;
    let changes: Vec<String> =
        profiles.iter().cloned().chain(sets.iter().map(|s| format!("{}={}", s.key, s.value))).collect();
    let full_name = changes.iter().fold(name.to_owned(), |n, c| format!("{n}+{c}"));
    let part = |file: &VariantFile| NamePart { name: file.name.clone(), about: file.about.clone() };
    let mut parts = vec![part(top)];
    for profile in profiles {
        parts.extend(library.chain(profile)?.last().copied().map(part));
    }
    let mut layer_names: Vec<String> = Vec::new();
    let mut sources: Vec<String> = Vec::new();
    for file in &layers {
        if !layer_names.contains(&file.name) {
            layer_names.push(file.name.clone());
            sources.extend(file.sources.iter().filter(|s| !sources.contains(s)).cloned().collect::<Vec<_>>());
        }
    }
    Ok(Variant {
        name: full_name,
        about: top.about.clone(),
        choices: in_config_order(&config, keys),
        config,
        layers: layer_names,
        sources,
        checked: top.checked.clone(),
        changes,
        parts,
    })
}

fn lay_file(keys: &mut IndexMap<String, Layered>, file: &VariantFile, without: &[String]) {
    if file.entries.contains_key("device.model") {
        forget_device(keys);
    }
    for (key, entry) in file.entries.iter().filter(|(key, _)| !without.contains(key)) {
        let choice = Choice {
            key: key.clone(),
            value: entry.value.clone(),
            from: file.name.clone(),
            line: Some(file.place(entry.span.clone()).line),
            reason: file.reason(key).cloned(),
        };
        keys.insert(key.clone(), Layered { value: entry.value.clone(), choice });
    }
}

/// A device model has its own keys: naming one drops those of the model below.
fn forget_device(keys: &mut IndexMap<String, Layered>) {
    keys.retain(|k, _| !k.starts_with("device."));
}

fn lay_set(keys: &mut IndexMap<String, Layered>, set: &Assignment) -> Result<(), VariantError> {
    let value = set.typed();
    schema::check(&set.key, &value).map_err(|r| {
        let text = format!("{}={}", set.key, set.value);
        let range = if r.on_key { 0..set.key.len() } else { set.key.len() + 1..text.len() };
        let place = Place::of("--set", &text, range);
        VariantError { what: r.what, place: Some(place), help: r.help }
    })?;
    if set.key == "device.model" && keys.get("device.model").is_none_or(|old| old.value != value) {
        forget_device(keys);
    }
    let choice =
        Choice { key: set.key.clone(), value: value.clone(), from: "--set".to_owned(), line: None, reason: None };
    keys.insert(set.key.clone(), Layered { value, choice });
    Ok(())
}

fn build(keys: &IndexMap<String, Layered>, top: &VariantFile) -> Result<Config, VariantError> {
    let mut whole = Table::new();
    for section in schema::sections() {
        whole.insert(section, Value::Table(Table::new()));
    }
    for (path, layered) in keys {
        let Some((section, key)) = path.split_once('.') else { continue };
        if let Some(Value::Table(table)) = whole.get_mut(section) {
            schema::insert(table, key, layered.value.clone());
        }
    }
    // Section by section, so that a message names its section.
    let mut missing: Option<(String, String)> = None;
    let result = Value::Table(whole.clone()).try_into::<Config>();
    if result.is_err() {
        missing = whole.iter().find_map(|(section, value)| {
            let mut one = Table::new();
            one.insert(section.clone(), value.clone());
            let message = Value::Table(one).try_into::<Config>().err().map(|e| e.message().to_owned())?;
            // The other sections are missing here by design.
            let other = schema::sections().iter().any(|s| message == format!("missing field `{s}`"));
            (!other).then(|| (section.clone(), message))
        });
    }
    result.map_err(|e| {
        let (section, message) = missing.unwrap_or_else(|| ("?".to_owned(), e.message().to_owned()));
        VariantError::new(format!("{} is not complete: section [{section}]: {message}", top.name))
            .at(top.place(top.name_span.clone()))
            .help("extend a variant that sets the key, or set it here")
    })
}

fn in_config_order(config: &Config, mut keys: IndexMap<String, Layered>) -> Vec<Choice> {
    let json = serde_json::to_value(config).expect("a configuration has only plain values");
    let mut choices = Vec::with_capacity(keys.len());
    for (section, table) in json.as_object().into_iter().flatten() {
        take_in_order(section, table, &mut keys, &mut choices);
    }
    choices
}

fn take_in_order(
    path: &str,
    value: &serde_json::Value,
    keys: &mut IndexMap<String, Layered>,
    choices: &mut Vec<Choice>,
) {
    choices.extend(keys.swap_remove(path).map(|l| l.choice));
    for (key, value) in value.as_object().into_iter().flatten() {
        take_in_order(&format!("{path}.{key}"), value, keys, choices);
    }
}
