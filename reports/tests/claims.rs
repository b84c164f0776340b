//! Claims over the fixture: verdicts, causes and every form of the report.

use kreplay_analysis::claims::{Answer, CellId, Cells, Registry, Verdict, evaluate};
use kreplay_analysis::fixture::{Spec, write_results};
use kreplay_reports::{Detail, RenderOptions, render};

const REGISTRY: &str = r#"
[[run]]
id = "files"
load = "fileserver"
variants = ["linux-2.4.16", "linux-2.4.16-noop"]
seeds = 2

[[run]]
id = "other"
load = "fileserver"
variants = ["linux-2.4.99"]

[[claim]]
id = "T1"
title = "the no-op elevator is less even"
reported = "1.5 against 1.1"
run = "files"
take = "last-over-first"
figures = [
    { name = "noop", variant = "linux-2.4.16-noop", reported = [1.5] },
    { name = "plain", variant = "linux-2.4.16", reported = [1.1] },
]
holds = ["noop > plain"]
why = { figure = "noop", against = "plain", tasks = "client", queue = true, counters = ["swap_in_pages"] }
beside = [{ run = "files", variant = "linux-2.4.16", take = "last-over-first", measured = [1.2], origin = "a recording" }]

[[claim]]
id = "T2"
title = "it is a hundred times less even"
reported = "100 times"
run = "files"
take = "last-over-first"
figures = [
    { name = "noop", variant = "linux-2.4.16-noop" },
    { name = "plain", variant = "linux-2.4.16" },
]
holds = ["noop / plain > 100"]
direction = ["noop > plain"]

[[claim]]
id = "T3"
title = "it is more even"
reported = "1.0"
run = "files"
take = "last-over-first"
figures = [
    { name = "noop", variant = "linux-2.4.16-noop" },
    { name = "plain", variant = "linux-2.4.16" },
]
holds = ["noop < plain"]

[[claim]]
id = "T4"
title = "another kernel is better"
reported = "better"
run = "other"
take = "last-finish"
figures = [{ name = "other", variant = "linux-2.4.99" }]
holds = ["other < 10"]
"#;

fn answer() -> Answer {
    let dir = tempfile::tempdir().unwrap();
    let written = write_results(dir.path(), &Spec { seeds: 2, ..Spec::default() }).unwrap();
    let registry = Registry::parse(&[("test.toml", REGISTRY)]).unwrap();
    let mut cells = Cells::default();
    for variant in ["linux-2.4.16", "linux-2.4.16-noop"] {
        let id = |seed| CellId { trace: "0123456789abcdef".into(), variant: variant.into(), seed };
        cells.found.insert(("files".into(), variant.into()), vec![id(1), id(2)]);
    }
    cells.missing.insert(("other".into(), "linux-2.4.99".into()), "variant linux-2.4.99 is unknown".into());
    let claims = registry.select(&[]).unwrap();
    evaluate(&registry, &claims, &written.out, &cells).unwrap()
}

#[test]
fn verdicts_follow_from_bands_and_directions() {
    let answer = answer();
    let verdicts: Vec<Verdict> = answer.rows.iter().map(|r| r.verdict).collect();
    let expected = [Verdict::Reproduced, Verdict::DirectionOnly, Verdict::NotReproduced, Verdict::NotRun];
    assert_eq!(verdicts, expected);
    assert_eq!(answer.rows[3].why, "not run: variant linux-2.4.99 is unknown.");
    let json = answer.json();
    for claim in json["claims"].as_array().unwrap() {
        for key in ["id", "verdict", "reported", "simulated", "band", "why"] {
            assert!(claim[key].is_string(), "{key} of {claim}");
        }
    }
}

#[test]
fn the_mail_form_fits_72_columns() {
    let options = RenderOptions { width: 72, detail: Detail::Brief, ..RenderOptions::default() };
    let text = String::from_utf8(render(&answer().report(Vec::new()), "text", &options).unwrap()).unwrap();
    assert!(text.lines().all(|l| l.chars().count() <= 72));
    insta::assert_snapshot!(text);
}

#[test]
fn markdown() {
    let text = render(&answer().report(Vec::new()), "md", &RenderOptions::default()).unwrap();
    insta::assert_snapshot!(String::from_utf8(text).unwrap());
}

#[test]
fn the_page_has_a_plot_for_each_claim_with_figures() {
    let page = render(&answer().report(Vec::new()), "html", &RenderOptions::default()).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(page.matches("<figure").count(), 3);
    assert!(page.contains("Model and real kernels side by side"));
}
