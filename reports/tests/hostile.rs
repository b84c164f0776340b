//! Names that try to break out, through the whole pipe: from result tables to every renderer.

use kreplay_analysis::fixture::{Spec, write_results};
use kreplay_analysis::model::Report;
use kreplay_analysis::{Options, analyse};
use kreplay_reports::{RenderOptions, chart_ids, render, renderers};

fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=1>",
        "=HYPERLINK(\"http://x\")",
        "+cmd",
        "-1+1",
        "@SUM",
        " =1",
        "\u{a0}=1",
        "a\n=1",
        "\t=1",
        "\r=1",
        "| a | b |",
        "`",
        "```",
        "[x](javascript:1)",
        "![x](http://x/y.png)",
        "<http://x>",
        "# heading",
        "1. list",
        "\x1b[2J",
        "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
        "\u{9b}2J",
        "\u{202e}gpj.exe",
        "a\u{200b}b\u{2028}c",
        "../../etc/passwd",
        "{{7*7}}",
        "%s%n",
        "${x}",
        "&lt;b&gt;",
        "]]>",
        "-->",
        "\0",
        "\u{fffd}",
        "ｆｕｌｌ＝１",
        "👩‍💻",
    ]
    .into_iter()
    .map(str::to_string)
    .collect();
    // What is left of a lone surrogate once bytes became text, and names of files that lead elsewhere.
    names.push(String::from_utf8_lossy(b"\xed\xa0\x80").into_owned());
    names.push("x".repeat(10_000));
    names.push("=".repeat(10_000));
    names
}

fn report() -> Report {
    let dir = tempfile::tempdir().unwrap();
    // Each name once as a client and process, and some as variants and as the trace's name.
    let spec = Spec {
        clients: names(),
        variants: names(),
        seconds: 8,
        trace_name: "<b>=x|`y`\u{202e}".to_string(),
        lost_cells: true,
        last_unfinished: true,
        ..Spec::default()
    };
    let written = write_results(dir.path(), &spec).unwrap();
    analyse(&written.out, &Options::default()).unwrap()
}

fn is_unseen(c: char) -> bool {
    c.is_control() && c != '\n'
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn every_renderer_stands_every_name() {
    let report = report();
    for renderer in renderers().iter().filter(|r| r.name() != "png") {
        let out = String::from_utf8(renderer.render(&report, &RenderOptions::default()).unwrap()).unwrap();
        let bad = out.chars().find(|c| is_unseen(*c));
        assert_eq!(bad, None, "{} lets an unseen character through", renderer.name());
    }
}

#[test]
fn html_and_svg_show_names_as_text() {
    let report = report();
    let charts = chart_ids(&report);
    assert!(charts.len() > 20, "{charts:?}");
    let pictures = charts.into_iter().map(|id| ("svg", Some(id)));
    for (kind, chart) in [("html", None), ("svg", None)].into_iter().chain(pictures) {
        let options = RenderOptions { chart, ..RenderOptions::default() };
        let page = String::from_utf8(render(&report, kind, &options).unwrap()).unwrap();
        assert_eq!(page.chars().find(|c| is_unseen(*c)), None, "{kind} {:?}", options.chart);
        let page = without_scripts(&page);
        for tag in page.split('<').skip(1) {
            let known = [
                "!DOCTYPE",
                "html",
                "head",
                "meta",
                "title",
                "style",
                "body",
                "header",
                "main",
                "nav",
                "section",
                "h1",
                "h2",
                "h3",
                "p",
                "ul",
                "li",
                "a",
                "span",
                "strong",
                "wbr",
                "div",
                "table",
                "caption",
                "thead",
                "tbody",
                "tr",
                "th",
                "td",
                "dl",
                "dt",
                "dd",
                "figure",
                "figcaption",
                "pre",
                "code",
                "details",
                "summary",
                "label",
                "input",
                "svg",
                "text",
                "rect",
                "polyline",
                "polygon",
                "circle",
                "line",
            ];
            let name = tag.trim_start_matches('/').split([' ', '>', '/', '\n']).next().unwrap();
            assert!(known.contains(&name), "{kind}: <{name}");
            // Names stand in quoted attributes only; what is left of the tag is ours.
            let inside = tag.split('>').next().unwrap();
            let ours: String = inside.split('"').step_by(2).collect();
            assert!(!ours.contains("onerror") && !ours.contains("alert"), "{kind}: <{inside}");
        }
    }
    let page = String::from_utf8(render(&report, "html", &RenderOptions::default()).unwrap()).unwrap();
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("\\u{202e}gpj.exe"));
    // Ten variants stay below 3 MB; these are 37, with names of every length.
    assert!(page.len() < 3_200_000, "{} bytes", page.len());
}

/// Size in a PNG file's head.
fn size(file: &[u8]) -> (u32, u32) {
    assert_eq!(file[..8], *b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn pictures_keep_their_bounds_whatever_the_names() {
    let report = report();
    let all = render(&report, "png", &RenderOptions::default()).unwrap();
    let (width, height) = size(&all);
    assert!(width == 2 * 712 && height > 500 && height < 2 * 16_000, "{width} x {height}");
    // Names are drawn, never written: only the chunks that a picture needs are in the file.
    for name in ["tEXt", "iTXt", "zTXt", "alert(1)"] {
        assert!(!all.windows(name.len()).any(|w| w == name.as_bytes()), "{name}");
    }
    let of = |id: &str| RenderOptions { chart: Some(id.to_string()), ..RenderOptions::default() };
    let one = render(&report, "png", &of("time-by-cause")).unwrap();
    assert!(size(&one).1 < height);
    let error = render(&report, "png", &of("<b>\u{202e}")).unwrap_err().to_string();
    assert!(error.starts_with("no chart `<b>\\u{202e}` in this report; there are: "), "{error}");
    let strips = String::from_utf8(render(&report, "svg", &of("vmstat")).unwrap()).unwrap();
    assert!(strips.contains("over time") && strips.contains("free"), "strips can be chosen");
}

#[test]
fn colour_is_ours_alone() {
    let report = report();
    let options = RenderOptions { color: true, ..RenderOptions::default() };
    let out = String::from_utf8(render(&report, "text", &options).unwrap()).unwrap();
    let plain = String::from_utf8(render(&report, "text", &RenderOptions::default()).unwrap()).unwrap();
    let mut rest = out.as_str();
    let mut without = String::new();
    while let Some(at) = rest.find('\x1b') {
        without.push_str(&rest[..at]);
        let end = rest[at..].find('m').unwrap();
        assert!(
            ["\x1b[0", "\x1b[1", "\x1b[1;31", "\x1b[1;32", "\x1b[1;33"].contains(&&rest[at..at + end]),
            "{:?}",
            &rest[at..at + end]
        );
        rest = &rest[at + end + 1..];
    }
    without.push_str(rest);
    assert!(without == plain && out.len() > plain.len(), "colour changes no text");
}

/// The page without its one script and without the charts' data; what stands in the data cannot end its element.
fn without_scripts(page: &str) -> String {
    let mut out = String::new();
    let mut scripts = 0;
    let mut rest = page;
    while let Some(at) = rest.find("<script") {
        out.push_str(&rest[..at]);
        let body = &rest[at..];
        let (tag, after) = body.split_once('>').unwrap();
        let (text, after) = after.split_once("</script>").unwrap();
        match tag {
            "<script" => scripts += 1,
            "<script type=\"application/json\"" => {
                assert!(!text.contains(['<', '>', '&']), "data leaves its element");
                serde_json::from_str::<serde_json::Value>(text).unwrap();
            }
            other => panic!("{other}"),
        }
        rest = after;
    }
    out.push_str(rest);
    assert!(scripts <= 1, "one script of our own");
    out
}

/// Reads RFC 4180 with all texts quoted.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                out.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out.last_mut().unwrap().push(c),
        }
    }
    out
}

#[test]
fn csv_cells_are_never_formulas() {
    let out = String::from_utf8(render(&report(), "csv", &RenderOptions::default()).unwrap()).unwrap();
    let rows: Vec<Vec<String>> = out.lines().map(fields).collect();
    assert_eq!(rows.len(), 1 + names().len(), "one line a row, whatever is in the names");
    for row in &rows {
        assert_eq!(row.len(), rows[0].len());
        for field in row {
            let first = field.trim_start().chars().next();
            let number = field.parse::<f64>().is_ok();
            assert!(number || !matches!(first, Some('=' | '+' | '-' | '@')), "{field:?}");
        }
    }
    assert!(rows.iter().any(|r| r[1].starts_with("'=HYPERLINK")));
    assert!(rows.iter().any(|r| r[1].starts_with("'-1+1")));
}

#[test]
fn markdown_rows_keep_their_columns() {
    let out = String::from_utf8(render(&report(), "md", &RenderOptions::default()).unwrap()).unwrap();
    let bars = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
    let mut before = None;
    for line in out.lines() {
        if !line.starts_with('|') {
            before = None;
            continue;
        }
        assert_eq!(bars(line), before.unwrap_or(bars(line)), "{line}");
        before = Some(bars(line));
    }
    // In an indented block, as the command is, nothing takes effect.
    let plain: String = out.replace("\\\\", "").lines().filter(|l| !l.starts_with("    ")).collect();
    let unescaped = |mark: char| {
        let at = plain.match_indices(mark);
        at.filter(|(i, _)| !plain[..*i].ends_with('\\')).count()
    };
    assert_eq!(unescaped('<'), 0);
    assert_eq!(unescaped('['), 0);
    assert_eq!(unescaped('`'), 0);
}

#[test]
fn the_terminal_keeps_its_width() {
    let report = report();
    for width in [40, 72, 100, 250] {
        let options = RenderOptions { width, ..RenderOptions::default() };
        let out = String::from_utf8(render(&report, "text", &options).unwrap()).unwrap();
        let longest = out.lines().map(|l| l.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} columns at {width}");
    }
}

#[test]
fn mails_keep_to_72_columns() {
    let out = String::from_utf8(render(&report(), "mail", &RenderOptions::default()).unwrap()).unwrap();
    assert!(out.lines().all(|l| l.chars().count() <= 72), "{:?}", out.lines().find(|l| l.chars().count() > 72));
    assert!(out.contains("[2J") && !out.contains('\x1b'));
}

#[test]
fn json_has_every_name_exactly() {
    let out = String::from_utf8(render(&report(), "json", &RenderOptions::default()).unwrap()).unwrap();
    let report: Report = serde_json::from_str(&out).unwrap();
    let variants: Vec<&str> = report.provenance.cells.iter().map(|c| c.variant.as_str()).collect();
    for name in names() {
        assert!(variants.contains(&name.as_str()), "{name:?}");
    }
}
