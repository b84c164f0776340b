//! One small report through every renderer.

use kreplay_analysis::diff::{Side, compare};
use kreplay_analysis::fixture::{Spec, write_results};
use kreplay_analysis::model::Report;
use kreplay_analysis::{Options, analyse};
use kreplay_reports::{Detail, RenderOptions, chart_ids, render, renderers};

fn report(spec: &Spec) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let written = write_results(dir.path(), spec).unwrap();
    let mut report = analyse(&written.out, &Options::default()).unwrap();
    report.provenance.analysis_version = "0.0.0".to_string();
    for table in report.provenance.cells.iter_mut().flat_map(|c| &mut c.tables) {
        table.blake3 = "(hash)".to_string();
    }
    report
}

fn text(report: &Report, kind: &str, options: &RenderOptions) -> String {
    String::from_utf8(render(report, kind, options).unwrap()).unwrap()
}

/// The fixture with something of everything: a run that did not end, lost cells.
fn eventful() -> Report {
    report(&Spec { last_unfinished: true, lost_cells: true, ..Spec::default() })
}

#[test]
fn terminal_at_100_columns() {
    let out = text(&eventful(), "text", &RenderOptions::default());
    assert!(out.lines().all(|l| l.chars().count() <= 100));
    insta::assert_snapshot!(out);
}

#[test]
fn terminal_brief_at_72_columns() {
    let options = RenderOptions { width: 72, detail: Detail::Brief, ..RenderOptions::default() };
    let out = text(&report(&Spec { seeds: 3, ..Spec::default() }), "text", &options);
    assert!(out.lines().all(|l| l.chars().count() <= 72));
    insta::assert_snapshot!(out);
}

#[test]
fn markdown() {
    insta::assert_snapshot!(text(&eventful(), "md", &RenderOptions::default()));
}

#[test]
fn mail() {
    let out = text(&report(&Spec { seeds: 3, ..Spec::default() }), "mail", &RenderOptions::default());
    assert!(out.lines().all(|l| l.chars().count() <= 72));
    insta::assert_snapshot!(out);
}

#[test]
fn comparison_of_two_runs() {
    let dir = tempfile::tempdir().unwrap();
    let side = |name: &str, seconds: i64| {
        let spec = Spec { seeds: 3, variants: vec!["a".into(), "b".into()], seconds, ..Spec::default() };
        let written = write_results(&dir.path().join(name), &spec).unwrap();
        Side { dir: written.out, variant: None }
    };
    let threshold = ["p99_read > +10%".parse().unwrap(), "elapsed > +5%".parse().unwrap()];
    let out = compare(&side("before", 40), &side("after", 44), &threshold, &Options::default()).unwrap();
    assert_eq!(out.crossed.len(), 2, "{:?}", out.crossed);
    let options = RenderOptions { detail: Detail::Brief, ..RenderOptions::default() };
    let folder = dir.path().display().to_string();
    let mut shown = out.report;
    shown.question = shown.question.replace(&folder, "");
    shown.traces[0].matrix.caption = shown.traces[0].matrix.caption.replace(&folder, "");
    insta::assert_snapshot!(text(&shown, "text", &options));
    let mail = text(&shown, "mail", &options);
    assert!(mail.contains("elapsed (s)") && mail.contains("44.440"), "{mail}");
    assert!(mail.lines().all(|l| l.chars().count() <= 72));
}

#[test]
fn csv() {
    insta::assert_snapshot!(text(&eventful(), "csv", &RenderOptions::default()));
}

#[test]
fn json() {
    // The model has its own snapshot; here the document: same content, schema first.
    let report = report(&Spec { variants: vec!["a".into()], seconds: 3, ..Spec::default() });
    let out = text(&report, "json", &RenderOptions::default());
    assert!(out.starts_with("{\"schema\":2,\"kind\":\"kreplay-report\","));
    let back: Report = serde_json::from_str(&out).unwrap();
    assert_eq!(back.verdict, report.verdict);
    assert_eq!(back.provenance, report.provenance);
    assert_eq!(back.traces[0].sections.len(), report.traces[0].sections.len());
}

#[test]
fn svg() {
    let mut report = report(&Spec { variants: vec!["a".into(), "b".into()], seconds: 8, ..Spec::default() });
    // One drawing of each kind.
    let shown = ["tradeoffs", "clients", "blame", "client-blame", "cache"];
    report.traces[0].sections.retain(|s| shown.contains(&s.id.as_str()));
    let overview = text(&report, "svg", &RenderOptions::default());
    assert!(overview.contains("more charts are left out"), "it says what it is");
    let mut out = overview;
    for id in chart_ids(&report) {
        let drawn = text(&report, "svg", &RenderOptions { chart: Some(id), ..RenderOptions::default() });
        assert!(drawn.contains("<text"), "labels are text, not outlines");
        // Style sheet and foot are the overview's.
        out.extend(
            drawn.lines().filter(|l| !l.starts_with("<style") && !l.contains("f-muted")).flat_map(|l| [l, "\n"]),
        );
    }
    insta::assert_snapshot!(out);
}

/// The page's skeleton: elements that carry structure, with the text of headings and captions.
#[test]
fn html_structure() {
    let out = text(&eventful(), "html", &RenderOptions::default());
    let mut skeleton = String::new();
    for line in out.lines() {
        let shown = [
            "<section",
            "<h1",
            "<h2",
            "<h3",
            "<figure",
            "<figcaption",
            "<caption",
            "<li",
            "<nav",
            "<meta",
            "<details",
            "<p",
        ];
        if shown.iter().any(|s| line.starts_with(s)) {
            skeleton.push_str(line.split("<div class=\"chart\">").next().unwrap());
            skeleton.push('\n');
        }
    }
    // The script's hash changes with every word of it and says nothing here.
    let (before, rest) = skeleton.split_once("'sha256-").unwrap();
    let (_, after) = rest.split_once('\'').unwrap();
    insta::assert_snapshot!(format!("{before}'sha256-(hash)'{after}"));
}

#[test]
fn html_is_self_contained_and_well_formed() {
    let out = text(&eventful(), "html", &RenderOptions::default());
    // The one script and the charts' data are looked at apart.
    let parts: Vec<&str> = out.split("<script").collect();
    let rest: Vec<&str> = parts[1..].iter().map(|p| p.split_once("</script>").unwrap().1).collect();
    let out = parts[0].to_owned() + &rest.concat();
    let code = parts.iter().filter(|p| p.starts_with('>')).collect::<Vec<_>>();
    assert_eq!(code.len(), 1, "one script");
    for forbidden in
        ["http", "fetch(", "XMLHttp", "WebSocket", "import(", "eval(", "innerHTML", "document.write", ".src"]
    {
        assert!(!code[0].contains(forbidden), "{forbidden}");
    }
    let lower = out.to_lowercase();
    for forbidden in ["<link", "<img", "<iframe", "@import", "url(", "src=", "onload"] {
        assert!(!lower.contains(forbidden), "{forbidden}");
    }
    // The only addresses are the name of the SVG language.
    assert_eq!(lower.matches("http").count(), lower.matches("xmlns=\"http://www.w3.org/2000/svg\"").count() + 1);
    assert!(lower.contains("default-src 'none'") && lower.contains("script-src 'sha256-"));
    check_nesting(&out);
}

/// Every element that is opened is closed in order (void elements and plotters' self-closed ones aside).
fn check_nesting(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closing {name}");
        } else if !tag.ends_with('/') && !tag.starts_with('!') && name != "meta" && name != "input" {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn ten_variants_stay_below_three_megabytes() {
    let variants = (0..10).map(|i| format!("variant-{i}")).collect();
    let page = render(&report(&Spec { variants, seconds: 5000, ..Spec::default() }), "html", &RenderOptions::default())
        .unwrap();
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(String::from_utf8(page).unwrap().contains("Thinned from 14000 samples"));
}

#[test]
fn many_clients_do_not_fill_the_page() {
    let clients = (0..500).map(|i| format!("client {i}")).collect();
    let out = text(&report(&Spec { clients, seconds: 20, ..Spec::default() }), "html", &RenderOptions::default());
    assert!(out.contains("Of more than 60 clients 60 are drawn"));
    // The seek plot has some hundred marks, whatever the number of clients.
    assert!(out.matches("<circle").count() < 1500, "{}", out.matches("<circle").count());
    assert!(out.contains("client 499"), "the last to finish is named");
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let report = eventful();
    for renderer in renderers() {
        let options = RenderOptions::default();
        assert_eq!(renderer.render(&report, &options).unwrap(), renderer.render(&report, &options).unwrap());
        assert!(!renderer.about().is_empty());
        for extension in renderer.extensions() {
            assert_eq!(kreplay_reports::renderer(extension).unwrap().name(), renderer.name());
        }
    }
    let error = render(&report, "pdf", &RenderOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "no renderer for `pdf`; there are: text, mail, markdown, html, json, csv, svg, png");
    assert!(!error.hint().is_empty());
}
