//! Damage of every kind gives an error with a path and a hint, never a panic.

use kreplay_analysis::fixture::{Spec, Written, write_results};
use kreplay_analysis::{Error, Options, analyse};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn fixture() -> (TempDir, Written) {
    let dir = tempfile::tempdir().unwrap();
    let spec = Spec { variants: vec!["a".into()], seconds: 5, ..Spec::default() };
    let written = write_results(dir.path(), &spec).unwrap();
    (dir, written)
}

fn fails(dir: &Path) -> Error {
    let error = analyse(dir, &Options::default()).unwrap_err();
    assert!(!error.hint().is_empty());
    if let Some(path) = error.path() {
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
    error
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut document = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut document);
    fs::write(path, serde_json::to_vec(&document).unwrap()).unwrap();
}

/// Lets the damage reach the Parquet reader.
fn forget_hashes(written: &Written) {
    edit(&written.cells[0].join("cell.json"), |d| d["tables"] = Value::Null);
}

#[test]
fn foreign_directories() {
    let (_dir, written) = fixture();
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(fails(empty.path()), Error::NotResults { .. }));
    assert!(matches!(fails(&written.trace), Error::NotResults { .. }));
    assert!(matches!(fails(&empty.path().join("nowhere")), Error::NotResults { .. }));
}

#[test]
fn manifests_that_are_none() {
    let (_dir, written) = fixture();
    let path = written.out.join("results/manifest.json");
    edit(&path, |d| d["schema"] = 2.into());
    assert!(matches!(fails(&written.out), Error::Schema { found: 2, known: 1, .. }));
    edit(&path, |d| {
        d["schema"] = 1.into();
        d["cells"][0]["path"] = "../../etc".into();
    });
    assert!(matches!(fails(&written.out), Error::Json { .. }));
    edit(&path, |d| d["cells"][0]["seed"] = "one".into());
    assert!(matches!(fails(&written.out), Error::Json { .. }));
    edit(&path, |d| d["cells"] = Value::Array(Vec::new()));
    assert!(matches!(fails(&written.out), Error::NoCells { .. }));
    fs::write(&path, b"{\"schema\": 1, \"cells\": [").unwrap();
    assert!(fails(&written.out).to_string().contains("line 1"));
    fs::write(&path, b"{\"schema\": 1, \"cells\": [{\"path\": \"\\ud800\"}]}").unwrap();
    assert!(matches!(fails(&written.out), Error::Json { .. }));
}

#[test]
fn tables_that_are_gone_or_changed() {
    let (_dir, written) = fixture();
    let table = written.cells[0].join("calls.parquet");
    let whole = fs::read(&table).unwrap();
    let mut flipped = whole.clone();
    flipped[40] ^= 1;
    fs::write(&table, &flipped).unwrap();
    assert!(fails(&written.out).to_string().contains("hash"));
    fs::remove_file(&table).unwrap();
    assert!(matches!(fails(&written.out), Error::MissingTable { .. }));
    fs::rename(written.cells[0].join("io.parquet"), &table).unwrap();
    forget_hashes(&written);
    assert!(matches!(fails(&written.out), Error::Column { .. }));
}

#[test]
fn damaged_parquet_never_panics() {
    let (_dir, written) = fixture();
    forget_hashes(&written);
    let table = written.cells[0].join("clients.parquet");
    let whole = fs::read(&table).unwrap();
    fs::write(&table, b"").unwrap();
    assert!(matches!(fails(&written.out), Error::Damaged { .. }));
    fs::write(&table, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(fails(&written.out), Error::Damaged { .. }));
    // Bytes of the footer overwritten, at fixed places: the result may even read as fine, but it must return.
    for i in 0..60usize {
        let mut broken = whole.clone();
        let at = broken.len() - 1 - (i * 37) % broken.len().min(1500);
        broken[at] = broken[at].wrapping_add(1 + (i * 29 % 250) as u8);
        fs::write(&table, &broken).unwrap();
        if let Err(error) = analyse(&written.out, &Options::default()) {
            assert!(!error.to_string().is_empty());
        }
    }
}
