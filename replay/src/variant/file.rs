//! One variant file: header, choices and evidence, each with its place in the text.

use super::error::{Place, VariantError, did_you_mean};
use super::schema;
use indexmap::IndexMap;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

const HEADER: [&str; 9] = ["name", "about", "extends", "profile", "where", "yields", "sources", "checked", "evidence"];

/// How a choice is known (the tags of the specification's variant matrix).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Read in the kernel's source.
    Seen,
    /// Taken from a patch or a mail.
    Patch,
    /// Measured on a recording of that kernel.
    Measured,
    /// A conclusion or an assumption.
    Inferred,
}

impl Evidence {
    /// All tags.
    pub const ALL: [Evidence; 4] = [Evidence::Seen, Evidence::Patch, Evidence::Measured, Evidence::Inferred];

    /// The word in the files.
    pub const fn name(self) -> &'static str {
        match self {
            Evidence::Seen => "seen",
            Evidence::Patch => "patch",
            Evidence::Measured => "measured",
            Evidence::Inferred => "inferred",
        }
    }
}

/// A tag with its reason.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Reason {
    /// How it is known.
    pub evidence: Evidence,
    /// Where it was seen, or why it is assumed.
    pub note: String,
}

/// A value that a file gives to a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub value: Value,
    pub span: Range<usize>,
}

/// A parsed and checked file.
#[derive(Clone, Debug)]
pub(super) struct VariantFile {
    pub name: String,
    pub about: String,
    /// A part to be extended or added with `+`, not a kernel by itself.
    pub profile: bool,
    /// What the layers below must say for this file to be laid over them: "section.key" and value.
    pub only_where: Vec<(String, Value)>,
    /// Keys of which none is taken from this file where the named variant's own file, or the command line, sets one of them.
    pub yields: Vec<String>,
    /// Names it builds on, in order, each with its place.
    pub extends: Vec<(String, Range<usize>)>,
    pub sources: Vec<String>,
    pub checked: Vec<String>,
    /// "section.key" to value, in the order of the file.
    pub entries: IndexMap<String, Entry>,
    /// "section.key" or "section" to reason.
    pub evidence: IndexMap<String, Reason>,
    /// Where the name stands, for errors about the whole.
    pub name_span: Range<usize>,
    /// How messages call the file.
    pub path: String,
    pub text: Arc<str>,
}

impl VariantFile {
    pub(super) fn place(&self, span: Range<usize>) -> Place {
        Place::of(&self.path, &self.text, span)
    }

    /// The reason given for a key: its own, or that of the table or section above it.
    pub(super) fn reason(&self, key: &str) -> Option<&Reason> {
        let mut path = key;
        loop {
            match (self.evidence.get(path), path.rsplit_once('.')) {
                (Some(reason), _) => return Some(reason),
                (None, Some((above, _))) => path = above,
                (None, None) => return None,
            }
        }
    }

    /// Parses and checks one file; `path` is how messages call it.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, VariantError> {
        Parser { path, text }.file()
    }
}

struct Parser<'a> {
    path: &'a str,
    text: &'a str,
}

impl Parser<'_> {
    fn error(&self, what: impl Into<String>, span: Range<usize>) -> VariantError {
        VariantError::new(what).at(Place::of(self.path, self.text, span))
    }

    fn file(&self) -> Result<VariantFile, VariantError> {
        let spans = DeTable::parse(self.text)
            .map_err(|e| self.error(e.message().trim_end(), e.span().unwrap_or(0..0)).help("variant files are TOML"))?;
        let values: toml::Table =
            toml::from_str(self.text).map_err(|e| self.error(e.message().trim_end(), e.span().unwrap_or(0..0)))?;
        let mut file = VariantFile {
            name: String::new(),
            about: String::new(),
            profile: false,
            only_where: Vec::new(),
            yields: Vec::new(),
            extends: Vec::new(),
            sources: Vec::new(),
            checked: Vec::new(),
            entries: IndexMap::new(),
            evidence: IndexMap::new(),
            name_span: 0..1,
            path: self.path.to_owned(),
            text: self.text.into(),
        };
        for (key, node) in in_file_order(spans.get_ref()) {
            let name: &str = key.get_ref();
            let value = &values[name];
            match name {
                "name" => {
                    file.name = self.name(value, node.span())?;
                    file.name_span = node.span();
                }
                "about" => file.about = self.string(name, value, node.span())?,
                "profile" => {
                    file.profile =
                        value.as_bool().ok_or_else(|| self.error("`profile` must be true or false", node.span()))?;
                }
                "where" => file.only_where = self.conditions(value, node)?,
                "yields" => file.yields = self.names(name, value, node)?.into_iter().map(|n| n.0).collect(),
                "extends" => file.extends = self.names(name, value, node)?,
                "sources" => file.sources = self.names(name, value, node)?.into_iter().map(|n| n.0).collect(),
                "checked" => file.checked = self.names(name, value, node)?.into_iter().map(|n| n.0).collect(),
                "evidence" => self.evidence(&mut file, value, node)?,
                section => self.section(&mut file, section, key.span(), value, node)?,
            }
        }
        if file.name.is_empty() {
            return Err(self.error("the file gives no `name`", 0..0).help("begin it with: name = \"my-kernel\""));
        }
        for (key, span) in self.evidence_keys(&file, &spans) {
            let known = file.entries.contains_key(&key)
                || file.entries.keys().any(|k| k.strip_prefix(&key).is_some_and(|rest| rest.starts_with('.')));
            if !known {
                let near = did_you_mean(&key, file.entries.keys().map(String::as_str));
                return Err(self
                    .error(format!("evidence for `{key}`, which this file does not set"), span)
                    .help_if(near));
            }
        }
        Ok(file)
    }

    fn name(&self, value: &Value, span: Range<usize>) -> Result<String, VariantError> {
        let name = self.string("name", value, span.clone())?;
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
        let edge = name.starts_with(['.', '+']) || name.ends_with('+');
        if name.is_empty() || name.len() > 80 || !name.chars().all(fine) || edge {
            return Err(self.error(format!("\"{name}\" cannot name a variant"), span).help(
                "a name has 1 to 80 letters, digits, '.', '-', '_' or, inside, '+', and does not begin with '.'",
            ));
        }
        Ok(name)
    }

    fn string(&self, key: &str, value: &Value, span: Range<usize>) -> Result<String, VariantError> {
        match value.as_str() {
            Some(s) => Ok(s.to_owned()),
            None => Err(self.error(format!("`{key}` must be a string"), span)),
        }
    }

    /// A string or a list of strings.
    fn names(
        &self,
        key: &str,
        value: &Value,
        node: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<(String, Range<usize>)>, VariantError> {
        let wrong = |span| self.error(format!("`{key}` must be a string or a list of strings"), span);
        match (value, node.get_ref()) {
            (Value::String(s), _) => Ok(vec![(s.clone(), node.span())]),
            (Value::Array(values), DeValue::Array(nodes)) => values
                .iter()
                .zip(nodes.iter())
                .map(|(v, n)| v.as_str().map(|s| (s.to_owned(), n.span())).ok_or_else(|| wrong(n.span())))
                .collect(),
            _ => Err(wrong(node.span())),
        }
    }

    /// `where = { "section.key" = value }`.
    fn conditions(&self, value: &Value, node: &Spanned<DeValue<'_>>) -> Result<Vec<(String, Value)>, VariantError> {
        let Value::Table(values) = value else {
            return Err(self.error("`where` must be a table: { \"section.key\" = value }", node.span()));
        };
        for (key, value) in values {
            schema::check(key, value).map_err(|r| self.error(r.what, node.span()).help_if(r.help))?;
        }
        Ok(values.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
    }

    fn section(
        &self,
        file: &mut VariantFile,
        section: &str,
        key_span: Range<usize>,
        value: &Value,
        node: &Spanned<DeValue<'_>>,
    ) -> Result<(), VariantError> {
        let (Value::Table(values), DeValue::Table(nodes)) = (value, node.get_ref()) else {
            let refusal = schema::check(section, value).err();
            let what = refusal.as_ref().map_or_else(String::new, |r| r.what.clone());
            let header = did_you_mean(section, HEADER);
            return Err(self.error(what, key_span).help_if(header.or(refusal.and_then(|r| r.help))));
        };
        if values.is_empty() && !schema::sections().iter().any(|s| s == section) {
            let refusal = schema::check(section, value).err();
            let (what, help) = refusal.map_or((String::new(), None), |r| (r.what, r.help));
            return Err(self.error(what, key_span).help_if(help));
        }
        self.entries(file, section, key_span, values, nodes)
    }

    /// The keys of a section, and those of tables in it (`elevator.bfq.low-latency`), one by one: a file that extends
    /// another changes the keys it names and no others.
    fn entries(
        &self,
        file: &mut VariantFile,
        section: &str,
        key_span: Range<usize>,
        values: &toml::Table,
        nodes: &DeTable<'_>,
    ) -> Result<(), VariantError> {
        for (key, leaf) in in_file_order(nodes) {
            let path = format!("{section}.{}", key.get_ref());
            let value = &values[key.get_ref().as_ref()];
            // A device's table is one choice out of several (`order.positioning`): half of it is no value.
            if let (Value::Table(values), DeValue::Table(nodes)) = (value, leaf.get_ref())
                && !values.is_empty()
                && !path.starts_with("device.")
            {
                self.entries(file, &path, key_span.clone(), values, nodes)?;
                continue;
            }
            schema::check(&path, value).map_err(|r| {
                let whole_section = r.on_key && r.what.contains("no section");
                let span = if whole_section {
                    key_span.clone()
                } else if r.on_key {
                    key.span()
                } else {
                    leaf.span()
                };
                self.error(r.what, span).help_if(r.help)
            })?;
            file.entries.insert(path, Entry { value: value.clone(), span: leaf.span() });
        }
        Ok(())
    }

    fn evidence(&self, file: &mut VariantFile, value: &Value, node: &Spanned<DeValue<'_>>) -> Result<(), VariantError> {
        let (Value::Table(values), DeValue::Table(nodes)) = (value, node.get_ref()) else {
            return Err(self.error("`evidence` must be a table", node.span()));
        };
        for (key, leaf) in in_file_order(nodes) {
            let name: &str = key.get_ref();
            let reason = values[name].as_str().and_then(parse_reason).ok_or_else(|| {
                self.error(format!("the evidence of `{name}` is not understood"), leaf.span()).help(
                    "write \"seen: where\", \"patch: which\", \"measured: on what\" or \"inferred: why\", \
                     and keys in quotes: \"machine.ram\" = ...",
                )
            })?;
            file.evidence.insert(name.to_owned(), reason);
        }
        Ok(())
    }

    fn evidence_keys(&self, file: &VariantFile, spans: &Spanned<DeTable<'_>>) -> Vec<(String, Range<usize>)> {
        let Some(DeValue::Table(nodes)) = spans.get_ref().get("evidence").map(|n| n.get_ref()) else {
            return Vec::new();
        };
        in_file_order(nodes)
            .into_iter()
            .filter(|(k, _)| file.evidence.contains_key(k.get_ref().as_ref()))
            .map(|(k, _)| (k.get_ref().to_string(), k.span()))
            .collect()
    }
}

fn parse_reason(text: &str) -> Option<Reason> {
    let (word, note) = text.split_once(':').unwrap_or((text, ""));
    let evidence = Evidence::ALL.into_iter().find(|e| e.name() == word.trim())?;
    Some(Reason { evidence, note: note.trim().to_owned() })
}

type Node<'a, 'i> = (&'a Spanned<toml::de::DeString<'i>>, &'a Spanned<DeValue<'i>>);

fn in_file_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<Node<'a, 'i>> {
    let mut nodes: Vec<_> = table.iter().collect();
    nodes.sort_by_key(|(key, _)| key.span().start);
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "mine"
about = "a test"
extends = ["base", "disk"]
checked = "nothing"
[elevator]
read-latency = 64
[evidence]
"elevator" = "patch: elvtune of 2001"
"#;

    fn message(text: &str) -> String {
        VariantFile::parse("mine.toml", text).expect_err(text).to_string()
    }

    #[test]
    fn a_file_is_taken_apart() {
        let f = VariantFile::parse("mine.toml", GOOD).unwrap();
        assert_eq!(f.name, "mine");
        assert_eq!(f.extends.iter().map(|e| e.0.as_str()).collect::<Vec<_>>(), ["base", "disk"]);
        assert_eq!(f.checked, ["nothing"]);
        assert_eq!(f.entries["elevator.read-latency"].value, 64.into());
        let reason = f.reason("elevator.read-latency").unwrap();
        assert_eq!((reason.evidence, reason.note.as_str()), (Evidence::Patch, "elvtune of 2001"));
    }

    #[test]
    fn each_mistake_is_shown_in_its_place() {
        insta::assert_snapshot!(message("name = \"x\"\n[elevator]\nread-latancy = 64\n"));
        insta::assert_snapshot!(message("name = \"x\"\n[elevater]\nread-latency = 64\n"));
        insta::assert_snapshot!(message("name = \"x\"\n[machine]\nram = \"64 parsecs\"\n"));
        insta::assert_snapshot!(message("name = \"x\"\n[machine]\nram = 64\n"));
        insta::assert_snapshot!(message("name = \"x\"\n[queue\nslots = 64\n"));
        insta::assert_snapshot!(message("name = \"x\"\nextend = \"base\"\n"));
        insta::assert_snapshot!(message("name = \"../x\"\n"));
        insta::assert_snapshot!(message("about = \"x\"\n"));
        insta::assert_snapshot!(message("name = \"x\"\n[machine]\nhz = 100\n[evidence]\n\"machine.hz\" = \"heard\"\n"));
        insta::assert_snapshot!(message("name = \"x\"\n[machine]\nhz = 100\n[evidence]\n\"machine.ht\" = \"seen\"\n"));
    }
}
