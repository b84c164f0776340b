//! Variants as text and as JSON: what `kreplay variants show` and `diff` print.

use super::resolve::{Choice, Variant};
use std::fmt::Write as _;

impl Variant {
    /// The variant as TOML, each key with a comment that says who set it and how that is known: `resolved` with every
    /// key, else with those that its own file and its changes set.
    pub fn to_toml(&self, resolved: bool) -> String {
        let mut text = format!("# {}\n", self.name);
        let _ = writeln!(text, "# {}", self.about);
        let _ = writeln!(text, "# layers: {}", self.layers.join(" <- "));
        for checked in &self.checked {
            let _ = writeln!(text, "# checked against: {checked}");
        }
        let mut section = "";
        // The file that the name begins with; names may contain '+' themselves.
        let begins =
            |l: &&String| self.name.strip_prefix(l.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('+'));
        let top = self.layers.iter().filter(begins).max_by_key(|l| l.len()).unwrap_or(&self.name);
        // What a profile on top extends lies above the named file as well.
        let place = |layer: &str| self.layers.iter().position(|l| l == layer);
        let above = |c: &Choice| place(&c.from).is_some_and(|at| place(top).is_some_and(|top| at >= top));
        let own = |c: &&Choice| c.line.is_none() || self.changes.contains(&c.from) || above(c);
        for choice in self.choices.iter().filter(|c| resolved || own(c)) {
            let (own_section, key) = choice.key.split_once('.').unwrap_or(("", &choice.key));
            if own_section != section {
                section = own_section;
                let _ = writeln!(text, "\n[{section}]");
            }
            let setting = format!("{key} = {}", choice.value);
            let _ = writeln!(text, "{setting:<34} # {}", choice.origin());
        }
        text
    }

    /// The resolved variant as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "about": self.about,
            "layers": self.layers,
            "changes": self.changes,
            "sources": self.sources,
            "checked": self.checked,
            "config": self.config,
            "config_hash": self.config_hash(),
            "choices": self.choices,
        })
    }

    /// Keys in which two variants differ, in configuration order; `None` where one has no such key.
    pub fn diff<'a>(&'a self, other: &'a Variant) -> Vec<Difference<'a>> {
        let find = |list: &'a [Choice], key: &str| list.iter().find(|c| c.key == key);
        let mut differences = Vec::new();
        for a in &self.choices {
            let b = find(&other.choices, &a.key);
            if b.is_none_or(|b| b.value != a.value) {
                differences.push(Difference { key: &a.key, a: Some(a), b });
            }
        }
        for b in &other.choices {
            if find(&self.choices, &b.key).is_none() {
                differences.push(Difference { key: &b.key, a: None, b: Some(b) });
            }
        }
        differences
    }
}

/// A key in which two variants differ.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Difference<'a> {
    /// "section.key".
    pub key: &'a str,
    /// In the first variant.
    pub a: Option<&'a Choice>,
    /// In the second.
    pub b: Option<&'a Choice>,
}

impl Choice {
    /// Who set it and how that is known: "linux-2.4.16:12 seen: mm/vmscan.c".
    pub fn origin(&self) -> String {
        let mut text = self.from.clone();
        if let Some(line) = self.line {
            let _ = write!(text, ":{line}");
        }
        if let Some(reason) = &self.reason {
            let _ = write!(text, " {}", reason.evidence.name());
            if !reason.note.is_empty() {
                let _ = write!(text, ": {}", reason.note);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::Library;

    fn one(name: &str) -> super::Variant {
        let mut library = Library::builtin().unwrap();
        library.select(&[name.to_owned()], &[], &[]).unwrap().remove(0)
    }

    #[test]
    fn the_text_is_a_variant_file_with_the_same_configuration() {
        let variant = one("linux-2.4.16");
        let text = format!("name = \"copy\"\n{}", variant.to_toml(true));
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let copy = one(file.path().to_str().unwrap());
        assert_eq!(copy.config_hash(), variant.config_hash());
    }

    #[test]
    fn a_diff_names_the_changed_keys_only() {
        let (a, b) = (one("linux-2.4.16"), one("linux-2.4.17"));
        let keys: Vec<_> = a.diff(&b).iter().map(|d| d.key).collect();
        assert_eq!(
            keys,
            ["reclaim.max-mapped", "reclaim.anon-accessed", "reclaim.swapin-accessed", "writeback.count-locked"]
        );
        let null = one("linux-2.4.16+device.model=null+device.queue-depth=1");
        assert!(a.diff(&null).iter().any(|d| d.key == "device.rotation-us" && d.b.is_none()));
    }
}
