//! Which keys and values a variant file may hold, asked from the types of [`crate::config`] themselves.
//!
//! The configuration structs are the only list of keys. Each key of a file is tried alone against them: serde reports
//! an unknown key or a bad value before it reports what is missing, so one file of an `extends` chain can be checked
//! without the others. Names for "did you mean" come from the same reports.

use super::error::did_you_mean;
use crate::config::Config;
use toml::{Table, Value};

/// Why a key cannot stand with its value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub what: String,
    pub help: Option<String>,
    /// The key itself is wrong, not its value.
    pub on_key: bool,
}

/// Tries one key, `path` being "section.key", with its value.
pub(super) fn check(path: &str, value: &Value) -> Result<(), Refusal> {
    let Some((section, key)) = path.split_once('.') else {
        return unknown_section(path);
    };
    if section == "device" && key != "model" {
        return check_device(key, value);
    }
    let mut inner = Table::new();
    insert(&mut inner, key, value.clone());
    judge(section, path, value, try_section(section, inner))
}

/// Puts a value under "key" or "table.key".
pub(super) fn insert(into: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            into.insert(path.to_owned(), value);
        }
        Some((table, rest)) => {
            let inner = into.entry(table).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// A device key is right if any device model has it; whether *the* model has it shows when the chain is resolved.
fn check_device(key: &str, value: &Value) -> Result<(), Refusal> {
    let path = format!("device.{key}");
    let mut refusal: Option<Refusal> = None;
    let mut known: Vec<String> = Vec::new();
    for model in device_models() {
        let mut inner = Table::new();
        inner.insert("model".to_owned(), Value::String(model));
        inner.insert(key.to_owned(), value.clone());
        let message = try_section("device", inner);
        known.extend(message.as_deref().map(expected_names).unwrap_or_default());
        match judge("device", &path, value, message) {
            Ok(()) => return Ok(()),
            Err(r) if refusal.as_ref().is_none_or(|old| old.on_key) => refusal = Some(r),
            Err(_) => {}
        }
    }
    match refusal {
        Some(mut r) => {
            if r.on_key {
                r.help = did_you_mean(key, known.iter().map(String::as_str));
            }
            Err(r)
        }
        None => Ok(()),
    }
}

/// Names of the device models.
pub(super) fn device_models() -> Vec<String> {
    let mut inner = Table::new();
    inner.insert("model".to_owned(), Value::String("?".to_owned()));
    try_section("device", inner).as_deref().map(expected_names).unwrap_or_default()
}

/// Names of the sections.
pub(super) fn sections() -> Vec<String> {
    try_section("?", Table::new()).as_deref().map(expected_names).unwrap_or_default()
}

fn unknown_section(section: &str) -> Result<(), Refusal> {
    let sections = sections();
    if sections.iter().any(|s| s == section) {
        return Err(Refusal {
            what: format!("`{section}` is a section"),
            help: Some(format!("write [{section}] and its keys below")),
            on_key: true,
        });
    }
    Err(Refusal {
        what: format!("there is no section `{section}`"),
        help: did_you_mean(section, sections.iter().map(String::as_str))
            .or_else(|| Some(format!("the sections are {}", sections.join(", ")))),
        on_key: true,
    })
}

/// serde's complaint about a configuration that has only this section.
fn try_section(section: &str, inner: Table) -> Option<String> {
    let mut whole = Table::new();
    whole.insert(section.to_owned(), Value::Table(inner));
    Value::Table(whole).try_into::<Config>().err().map(|e| e.message().to_owned())
}

fn judge(section: &str, path: &str, value: &Value, message: Option<String>) -> Result<(), Refusal> {
    let Some(message) = message else { return Ok(()) };
    if message.starts_with("missing field") {
        return Ok(());
    }
    if message.starts_with("unknown field") {
        let names = expected_names(&message);
        let names = || names.iter().map(String::as_str);
        if message.starts_with(&format!("unknown field `{section}`")) {
            return unknown_section(section);
        }
        let (section, key) = path.rsplit_once('.').unwrap_or((section, path));
        return Err(Refusal {
            what: format!("there is no key `{key}` in section `{section}`"),
            help: did_you_mean(key, names())
                .or_else(|| Some(format!("its keys are {}", names().collect::<Vec<_>>().join(", ")))),
            on_key: true,
        });
    }
    let help = match value.as_str() {
        Some(word) if message.starts_with("unknown variant") => {
            let names = expected_names(&message);
            did_you_mean(word, names.iter().map(String::as_str))
        }
        _ => None,
    };
    let what = match message.strip_prefix("unknown variant ") {
        Some(rest) => format!("`{path}` cannot be {rest}"),
        None => format!("`{path}`: {message}"),
    };
    Err(Refusal { what, help, on_key: false })
}

/// The names in back ticks after "expected" in a serde message.
fn expected_names(message: &str) -> Vec<String> {
    let Some((_, list)) = message.split_once("expected ") else { return Vec::new() };
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &str, value: impl Into<Value>) -> Refusal {
        check(path, &value.into()).expect_err(path)
    }

    #[test]
    fn good_keys_pass_alone() {
        assert_eq!(check("machine.ram", &"64MiB".into()), Ok(()));
        assert_eq!(check("device.model", &"null".into()), Ok(()));
        assert_eq!(check("device.rotation-us", &4170.into()), Ok(()));
        assert_eq!(check("queue.wake", &"all-lifo".into()), Ok(()));
    }

    #[test]
    fn names_are_known_from_the_types() {
        assert!(sections().contains(&"writeback".to_owned()));
        assert!(["rotating", "null"].iter().all(|m| device_models().contains(&(*m).to_owned())));
    }

    #[test]
    fn unknown_keys_sections_and_words_are_told_apart() {
        let r = refusal("elevator.read-latancy", 3);
        assert_eq!(r.help.as_deref(), Some("did you mean `read-latency`?"));
        assert!(r.on_key && r.what.contains("`read-latancy`"), "{r:?}");
        let r = refusal("elevater.read-latency", 3);
        assert_eq!(r.help.as_deref(), Some("did you mean `elevator`?"));
        let r = refusal("device.rotation_us", 3);
        assert_eq!(r.help.as_deref(), Some("did you mean `rotation-us`?"));
        let r = refusal("queue.wake", "all-fifo");
        assert_eq!(r.help.as_deref(), Some("did you mean `all-lifo`?"));
        assert!(!r.on_key);
    }

    #[test]
    fn wrong_types_units_and_ranges_are_refused() {
        assert!(refusal("machine.ram", 64).what.contains("unit"), "{:?}", refusal("machine.ram", 64));
        assert!(refusal("machine.ram", "64 parsecs").what.contains("64 parsecs"));
        assert!(refusal("machine.cpus", -1).what.contains("-1"));
        assert!(refusal("alloc.cumulative", "yes").what.contains("boolean"));
        assert!(refusal("device.rotation-us", "slow").what.contains("slow"));
        assert!(refusal("machine", 3).what.contains("section"));
    }
}
