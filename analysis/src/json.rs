//! Reading the JSON documents beside the tables.

use crate::error::{Error, Result};
use serde_json::Value;
use std::path::Path;

/// Largest JSON document that is read, bytes: a guard against a wrong file, far above any real one.
const LIMIT_BYTES: u64 = 256 << 20;

/// Reads `path` as a JSON document.
///
/// # Errors
/// [`Error::Io`], or [`Error::Json`] with line and column.
pub(crate) fn read(path: &Path) -> Result<Value> {
    let io = |source| Error::Io { path: path.to_path_buf(), source };
    let size = std::fs::metadata(path).map_err(io)?.len();
    if size > LIMIT_BYTES {
        return Err(bad(path, format!("{size} bytes are too many for this document (limit {LIMIT_BYTES})")));
    }
    let bytes = std::fs::read(path).map_err(io)?;
    serde_json::from_slice(&bytes).map_err(|e| bad(path, e.to_string()))
}

/// Checks the `schema` member against the version read here.
///
/// # Errors
/// [`Error::Schema`] if it is later, [`Error::Json`] if there is none.
pub(crate) fn check_schema(path: &Path, document: &Value, known: u64) -> Result<()> {
    match document.get("schema").and_then(Value::as_u64) {
        Some(found) if found == known => Ok(()),
        Some(found) => Err(Error::Schema { path: path.to_path_buf(), found, known }),
        None => Err(bad(path, "no `schema` number".to_string())),
    }
}

/// A text member that must be there.
///
/// # Errors
/// [`Error::Json`] if it is not.
pub(crate) fn text(path: &Path, document: &Value, key: &str) -> Result<String> {
    optional_text(document, key).ok_or_else(|| bad(path, format!("`{key}` is no text")))
}

/// A text member, if it is there.
pub(crate) fn optional_text(document: &Value, key: &str) -> Option<String> {
    document.get(key).and_then(Value::as_str).map(str::to_string)
}

/// The members of a list as texts; members that are no texts as JSON. A lone text is a list of one.
pub(crate) fn texts(document: &Value, key: &str) -> Vec<String> {
    match document.get(key) {
        Some(Value::Array(items)) => items.iter().map(plain).collect(),
        None | Some(Value::Null) => Vec::new(),
        Some(single) => vec![plain(single)],
    }
}

/// A nested document as `a.b.c` keys with plain values, in document order.
pub(crate) fn flatten(document: Option<&Value>) -> Vec<(String, String)> {
    fn walk(prefix: &str, value: &Value, out: &mut Vec<(String, String)>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (key, member) in members {
                    let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                    walk(&name, member, out);
                }
            }
            _ => out.push((prefix.to_string(), plain(value))),
        }
    }
    let mut out = Vec::new();
    if let Some(value) = document.filter(|v| !v.is_null()) {
        walk("", value, &mut out);
    }
    out
}

/// A value as a reader would write it: a text without quotes, a list with commas.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// [`Error::Json`] about `path`.
pub(crate) fn bad(path: &Path, why: String) -> Error {
    Error::Json { path: path.to_path_buf(), why }
}
