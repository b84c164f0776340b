//! The variants that can be named: those built in, and those loaded from disk.

use super::error::{VariantError, did_you_mean};
use super::file::VariantFile;
use indexmap::IndexMap;
use std::path::Path;

include!(concat!(env!("OUT_DIR"), "/embedded_variants.rs"));

/// Largest variant file that is read, bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A set of variant files by name.
#[derive(Clone, Debug)]
pub struct Library {
    files: IndexMap<String, VariantFile>,
}

/// What a listing shows of a file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Name to select it by.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// A part to be added with `+`, not a kernel.
    pub profile: bool,
    /// What it builds on.
    pub extends: Vec<String>,
    /// What it was checked against.
    pub checked: Vec<String>,
}

impl Library {
    /// The variants in this binary (folder `replay/variants`).
    ///
    /// # Errors
    /// If a file in that folder is wrong; a test keeps that from being shipped.
    pub fn builtin() -> Result<Self, VariantError> {
        let mut library = Self { files: IndexMap::new() };
        for (path, text) in EMBEDDED {
            library.add(VariantFile::parse(path, text)?)?;
        }
        library.files.sort_by(|a, _, b, _| natural(a).cmp(&natural(b)));
        Ok(library)
    }

    /// Adds a file from disk and returns its name.
    ///
    /// # Errors
    /// If it cannot be read, is larger than 1 MiB, is not a correct variant file or its name is taken.
    pub fn load(&mut self, path: &Path) -> Result<String, VariantError> {
        let shown = path.display().to_string();
        let fail = |e: std::io::Error| VariantError::new(format!("cannot read the variant file {shown}: {e}"));
        let meta = std::fs::metadata(path).map_err(fail)?;
        if !meta.is_file() {
            return Err(VariantError::new(format!("{shown} is not a file")).help("name a .toml file or a variant"));
        }
        if meta.len() > MAX_FILE_BYTES {
            return Err(VariantError::new(format!("{shown} is larger than a variant file may be (1 MiB)")));
        }
        let bytes = std::fs::read(path).map_err(fail)?;
        let text = String::from_utf8(bytes).map_err(|e| {
            VariantError::new(format!("{shown} is not UTF-8 text (byte {})", e.utf8_error().valid_up_to()))
        })?;
        let file = VariantFile::parse(&shown, &text)?;
        let name = file.name.clone();
        self.add(file)?;
        Ok(name)
    }

    pub(super) fn add(&mut self, file: VariantFile) -> Result<(), VariantError> {
        if let Some(old) = self.files.get(&file.name) {
            if old.text == file.text && old.path == file.path {
                return Ok(());
            }
            let place = file.place(file.name_span.clone());
            return Err(VariantError::new(format!("the name \"{}\" is taken by {}", file.name, old.path))
                .at(place)
                .help("give the file another name and let it extend that one"));
        }
        self.files.insert(file.name.clone(), file);
        Ok(())
    }

    /// Every file, kernels and profiles, in listing order.
    pub fn list(&self) -> impl Iterator<Item = Summary> + '_ {
        self.files.values().map(|f| Summary {
            name: f.name.clone(),
            about: f.about.clone(),
            profile: f.profile,
            extends: f.extends.iter().map(|e| e.0.clone()).collect(),
            checked: f.checked.clone(),
        })
    }

    pub(super) fn names(&self, profile: bool) -> impl Iterator<Item = &str> {
        self.files.values().filter(move |f| f.profile == profile).map(|f| f.name.as_str())
    }

    pub(super) fn get(&self, name: &str) -> Option<&VariantFile> {
        self.files.get(name)
    }

    /// The files that a name stands for: what it extends first, itself last, each once.
    pub(super) fn chain(&self, name: &str) -> Result<Vec<&VariantFile>, VariantError> {
        let top = self.files.get(name).ok_or_else(|| self.unknown(name))?;
        let mut done = Vec::new();
        self.visit(top, &mut Vec::new(), &mut done)?;
        Ok(done)
    }

    fn visit<'a>(
        &'a self,
        file: &'a VariantFile,
        open: &mut Vec<&'a str>,
        done: &mut Vec<&'a VariantFile>,
    ) -> Result<(), VariantError> {
        if done.iter().any(|f| f.name == file.name) {
            return Ok(());
        }
        open.push(&file.name);
        for (base, span) in &file.extends {
            if open.contains(&base.as_str()) {
                let round = format!("{} -> {base}", open.join(" -> "));
                return Err(VariantError::new(format!("`extends` goes in a circle: {round}"))
                    .at(file.place(span.clone()))
                    .help("remove one of these `extends`"));
            }
            let Some(next) = self.files.get(base) else {
                let mut error = self.unknown(base).at(file.place(span.clone()));
                error.what = format!("`extends` names \"{base}\", which is not a variant");
                return Err(error);
            };
            self.visit(next, open, done)?;
        }
        open.pop();
        done.push(file);
        Ok(())
    }

    pub(super) fn unknown(&self, name: &str) -> VariantError {
        VariantError::new(format!("there is no variant \"{name}\"")).help(
            did_you_mean(name, self.files.keys().map(String::as_str))
                .unwrap_or_else(|| "`kreplay variants list` shows all".to_owned()),
        )
    }
}

/// Sort key that counts runs of digits as numbers, so that 2.4.9 comes before 2.4.16.
fn natural(name: &str) -> Vec<(&str, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (word, tail) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let (number, tail) = tail.split_at(tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len()));
        parts.push((word, number.parse().unwrap_or(u64::MAX)));
        rest = tail;
    }
    parts
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::variant) fn with(files: &[(&str, &str)]) -> Library {
        let mut library = Library::builtin().expect("the built-in files are correct");
        for (path, text) in files {
            library.add(VariantFile::parse(path, text).expect(path)).expect(path);
        }
        library
    }

    #[test]
    fn versions_sort_as_numbers() {
        let mut names = ["linux-2.4.16-noop", "linux-2.4.9", "linux-2.4.16", "linux-2.4.17"];
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        assert_eq!(names, ["linux-2.4.9", "linux-2.4.16", "linux-2.4.16-noop", "linux-2.4.17"]);
    }

    #[test]
    fn a_circle_is_refused_with_its_path() {
        let library = with(&[
            ("a.toml", "name = \"a\"\nextends = \"b\"\n"),
            ("b.toml", "name = \"b\"\nextends = [\"linux-2.4.16\", \"a\"]\n"),
        ]);
        insta::assert_snapshot!(library.chain("a").expect_err("circle"));
    }

    #[test]
    fn an_unknown_base_is_shown_where_it_stands() {
        let library = with(&[("a.toml", "name = \"a\"\nextends = \"linux-2.4.61\"\n")]);
        insta::assert_snapshot!(library.chain("a").expect_err("unknown"));
    }

    #[test]
    fn a_base_reached_twice_counts_once_and_comes_first() {
        let library = with(&[("a.toml", "name = \"a\"\nextends = [\"linux-2.4.16-noop\", \"linux-2.4.16\"]\n")]);
        let names: Vec<_> = library.chain("a").unwrap().iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names.iter().filter(|n| **n == "linux-2.4.16").count(), 1);
        assert_eq!(names.last(), Some(&"a"));
    }
}
