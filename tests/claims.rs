//! `kreplay claims` end to end, on claims that cost little.

mod common;

use common::{kreplay, kreplay_in};

const CHEAP: &str = r#"
[[run]]
id = "small"
load = "read512"
params = ["big_mib=2", "repeats=2"]
variants = ["linux-2.4.10", "linux-2.4.16"]

[[run]]
id = "nobody"
load = "read512"
params = ["big_mib=2", "repeats=2"]
variants = ["linux-2.4.99+fancy"]

[[claim]]
id = "X1"
title = "a small file is read from disk once"
reported = "2 MB"
run = "small"
take = "read-mib"
figures = [
    { name = "old", variant = "linux-2.4.10", reported = [2] },
    { name = "new", variant = "linux-2.4.16", reported = [2] },
]
holds = ["old in 2..2.2", "new in 2..2.2"]
why = { figure = "old", against = "new", counters = ["page_misses"] }

[[claim]]
id = "X2"
title = "2.4.10 activates every page of it, 2.4.16 none"
reported = "yes"
run = "small"
take = "active-pct"
figures = [{ name = "old", variant = "linux-2.4.10" }, { name = "new", variant = "linux-2.4.16" }]
holds = ["old > new"]

[[claim]]
id = "Y1"
title = "another kernel is better"
reported = "yes"
run = "nobody"
take = "elapsed"
figures = [{ name = "other", variant = "linux-2.4.99+fancy" }]
holds = ["other < 1"]
"#;

#[test]
fn claims_are_simulated_judged_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.toml"), CHEAP).unwrap();
    let command = ["claims", "--file", "mine.toml", "-o", "out", "--json", "-q"];
    let said = kreplay_in(dir.path(), &command);
    assert_eq!(said.code, 0, "{}", said.err);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let claims = facts["claims"].as_array().unwrap();
    let verdict = |i: usize| claims[i]["verdict"].as_str().unwrap().to_owned();
    assert_eq!((claims.len(), verdict(0), verdict(2)), (3, "reproduced".into(), "not run".into()), "{}", said.out);
    assert_eq!(claims[2]["why"], "not run: variant linux-2.4.99+fancy is unknown.");
    assert!(claims[0]["why"].as_str().unwrap().contains("page misses"), "{}", claims[0]["why"]);
    for file in ["claims.html", "claims.md", "claims.txt", "claims.json"] {
        assert!(dir.path().join("out").join(file).is_file(), "{file}");
    }
    let mail = std::fs::read_to_string(dir.path().join("out/claims.txt")).unwrap();
    assert!(mail.lines().all(|l| l.chars().count() <= 72), "{mail}");
    // The same again simulates nothing, and answers the same.
    let again = kreplay_in(dir.path(), &command);
    assert_eq!(again.out, said.out);
    let err = kreplay_in(dir.path(), &["claims", "--file", "mine.toml", "-o", "out", "X1"]).err;
    assert!(err.contains("2 of 2 cells done (2 of them from an earlier run)"), "{err}");
}

/// One figure is of the swept run, the other of a run that the sweep leaves alone.
const SWEPT: &str = r#"
[[run]]
id = "two"
load = "read512"
params = ["big_mib=2", "repeats=1"]
variants = ["linux-2.4.16"]

[[run]]
id = "one"
load = "read512"
params = ["big_mib=1", "repeats=1"]
variants = ["linux-2.4.16"]

[[run]]
id = "two-memory"
load = "read512"
params = ["big_mib=2", "repeats=1"]
variants = ["linux-2.4.16"]
columns = ["machine.ram=48MiB"]

[[claim]]
id = "X1"
title = "twice the file, twice the reads"
reported = "yes"
run = "two"
take = "read-mib"
figures = [{ name = "two", variant = "linux-2.4.16" }, { name = "one", run = "one", variant = "linux-2.4.16" }]
holds = ["two > 1.5 * one"]
sensitivity = { run = "two-memory", about = "memory" }
"#;

#[test]
fn a_sweep_changes_only_the_figures_of_the_claims_own_run() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine.toml"), SWEPT).unwrap();
    let said = kreplay_in(dir.path(), &["claims", "--file", "mine.toml", "-o", "out", "--json", "-q"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let claim = &facts["claims"][0];
    assert_eq!(claim["verdict"], "reproduced", "{}", said.out);
    assert_eq!(claim["sensitivity"]["values"][0]["verdict"], "reproduced", "{}", said.out);
}

#[test]
fn a_claim_that_does_not_exist_is_a_mistake_with_a_hint() {
    let said = kreplay(&["claims", "E11", "-o", "out"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("there is no claim `E11`") && said.err.contains("did you mean `E1`?"), "{}", said.err);
}

#[test]
fn every_built_in_claim_is_listed_with_its_band() {
    let said = kreplay(&["claims", "--list", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let claims = facts["claims"].as_array().unwrap();
    assert!(claims.len() >= 40, "{}", claims.len());
    assert!(claims.iter().all(|c| !c["band"].as_str().unwrap().is_empty()));
}
