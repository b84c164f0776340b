//! What the command line says, word for word.

mod common;

use common::{kreplay, kreplay_in};

#[test]
fn help() {
    let said = kreplay(&["--help"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!(said.out);
}

#[test]
fn help_of_run() {
    let said = kreplay(&["run", "--help"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!(said.out);
}

#[test]
fn formats() {
    let said = kreplay(&["formats"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!(said.out);
}

#[test]
fn variants_list() {
    let said = kreplay(&["variants", "list"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!(said.out);
}

#[test]
fn variants_show() {
    let said = kreplay(&["variants", "show", "linux-2.4.17+machine.ram=128MiB"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!(said.out);
}

#[test]
fn variants_show_resolved() {
    let said = kreplay(&["variants", "show", "linux-2.4.16", "--resolved"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!(said.out);
}

#[test]
fn variants_diff() {
    let said = kreplay(&["variants", "diff", "linux-2.4.16", "linux-2.4.17"]);
    assert_eq!(said.code, 0);
    insta::assert_snapshot!(said.out);
}

#[test]
fn a_resolved_variant_is_a_file_that_means_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let shown = kreplay_in(dir.path(), &["variants", "show", "linux-2.4.17", "--resolved"]);
    std::fs::write(dir.path().join("mine.toml"), shown.out).unwrap();
    let diff = kreplay_in(dir.path(), &["variants", "diff", "linux-2.4.17", "mine.toml"]);
    assert_eq!((diff.code, diff.out.as_str()), (0, "linux-2.4.17 and linux-2.4.17-copy are the same\n"));
}

#[test]
fn facts_come_as_json_when_asked_for() {
    for args in [
        &["variants", "list", "--json"][..],
        &["variants", "show", "linux-2.4.16", "--json"],
        &["variants", "diff", "linux-2.4.16", "linux-2.4.17", "--json"],
        &["formats", "--json"],
        &["synth", "--list", "--json"],
        &["prove", "list", "--json"],
    ] {
        let said = kreplay(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        let document: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
        assert!(document.is_array() || document.is_object());
    }
}

#[test]
fn completions_and_manual_pages_are_made() {
    for shell in ["bash", "zsh", "fish"] {
        let said = kreplay(&["completions", shell]);
        assert!(said.code == 0 && said.out.contains("kreplay"), "{shell}: {}", said.err);
    }
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(kreplay_in(dir.path(), &["man", "pages"]).code, 0);
    let page = std::fs::read_to_string(dir.path().join("pages/kreplay-run.1")).unwrap();
    assert!(page.contains(".TH"), "{page}");
}
