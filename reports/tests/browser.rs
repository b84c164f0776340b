//! The page in a real browser: no error, no request, charts that answer. Skips with a reason where there is no Chromium.

#![allow(clippy::print_stderr, reason = "a test that skips says why")]

mod common;

use common::Browser;
use kreplay_analysis::fixture::{Spec, write_results};
use kreplay_analysis::{Options, analyse};
use kreplay_reports::{RenderOptions, render};
use serde_json::json;
use std::path::PathBuf;

fn page(dir: &tempfile::TempDir, spec: &Spec) -> PathBuf {
    let written = write_results(dir.path(), spec).unwrap();
    let report = analyse(&written.out, &Options::default()).unwrap();
    let path = dir.path().join("report.html");
    std::fs::write(&path, render(&report, "html", &RenderOptions::default()).unwrap()).unwrap();
    path
}

#[test]
fn charts_answer_and_nothing_is_fetched() {
    let Some(mut b) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = page(&dir, &Spec::default());
    b.resize(1280, 900);
    b.open(&path);
    assert_eq!(b.eval("document.documentElement.classList.contains('js')"), json!(true));
    assert!(b.number("document.querySelectorAll('figure[data-chart]').length") > 10.0);

    // Hover: a tip with a value.
    let plane = "#\\30 123456789abcdef-progress figure[data-chart]";
    let plane = if b.eval(&format!("!!document.querySelector({plane:?})")) == json!(true) {
        plane
    } else {
        "figure[data-chart]"
    };
    let svg = format!("{plane} .chart svg");
    let (x, y) = b.place(&svg, 0.5, 0.5);
    b.mouse("mouseMoved", x, y);
    let tip = format!("document.querySelector({:?})", format!("{plane} .tip"));
    assert!(b.becomes(&format!("!{tip}.hidden && {tip}.textContent.includes('s')")));

    // Bars and points say what they stand for, and a part of all bars can be left out.
    for (kind, shape) in [("bars", "rect"), ("dots", "circle")] {
        let figure = format!(
            "[...document.querySelectorAll('figure[data-chart]')].find(f => f.textContent.includes('\"kind\":\"{kind}\"'))"
        );
        b.eval(&format!("{figure}.id = 'the-{kind}'"));
        b.eval(&format!("document.querySelector('#the-{kind}').scrollIntoView()"));
        let (x, y) = b.place(&format!("#the-{kind} svg {shape}"), 0.5, 0.5);
        b.mouse("mouseMoved", x, y);
        assert!(b.becomes(&format!("!document.querySelector('#the-{kind} .tip').hidden")), "{kind}");
    }
    let rects = "document.querySelectorAll('#the-bars svg rect').length";
    let before = b.number(rects);
    b.eval("document.querySelector('#the-bars .key').click()");
    assert!(b.number(rects) < before);
    b.eval("document.querySelector('#the-bars .key').click()");
    b.eval("scrollTo(0, 0)");

    // A key of the legend switches its line.
    let lines = format!("document.querySelectorAll({:?}).length", format!("{svg} path"));
    let before = b.number(&lines);
    b.eval(&format!("document.querySelector({:?}).click()", format!("{plane} .key")));
    assert_eq!(b.number(&lines), before - 1.0);
    b.eval(&format!("document.querySelector({:?}).click()", format!("{plane} .key")));

    // Dragging zooms, the button goes back.
    let axis = format!("document.querySelector({:?}).textContent", svg);
    let whole = b.eval(&axis);
    let (left, y) = b.place(&svg, 0.3, 0.5);
    let (right, _) = b.place(&svg, 0.6, 0.5);
    b.mouse("mousePressed", left, y);
    b.mouse("mouseMoved", right, y);
    b.mouse("mouseReleased", right, y);
    assert_ne!(b.eval(&axis), whole);
    let reset = format!("document.querySelector({:?})", format!("{plane} .reset"));
    assert_eq!(b.eval(&format!("{reset}.hidden")), json!(false));
    b.eval(&format!("{reset}.click()"));
    assert_eq!(b.eval(&axis), whole);

    // The crosshair of the strips reads both series.
    let strip = "figure.strips .panel svg";
    let (x, y) = b.place(strip, 0.6, 0.5);
    b.mouse("mouseMoved", x, y);
    assert!(b.becomes(&format!("document.querySelector({strip:?}).textContent.includes('recorded')")));
    let others = b.eval("[...document.querySelectorAll('figure.strips')][0].querySelectorAll('.pt')[1].textContent");
    assert!(others.as_str().unwrap().contains(" at "), "the crosshair is in all panels: {others}");

    // A click on a part of the flame makes it the whole.
    let root = "document.querySelector('.flame .fl').textContent";
    let all = b.eval(root);
    b.eval("document.querySelectorAll('.flame .fl')[1].click()");
    assert_ne!(b.eval(root), all);

    // A variant goes out everywhere.
    b.eval("document.querySelector('.variants input').click()");
    assert_eq!(b.eval("[...document.querySelectorAll('tr[data-v=\"0\"]')].every(r => r.hidden)"), json!(true));
    assert!(b.number("document.querySelectorAll('tr[data-v=\"0\"]').length") > 5.0);
    b.eval("document.querySelector('.variants input').click()");

    // Folded figures are drawn when they are opened.
    b.eval("document.querySelectorAll('details.more').forEach(d => { d.open = true; })");
    assert!(b.becomes(
        "[...document.querySelectorAll('details.more figure svg')].every(s => s.getBoundingClientRect().width > 100)"
    ));
    b.eval("document.querySelectorAll('details.more').forEach(d => { d.open = false; })");
    b.eval("scrollTo(0, 0)");
    b.shot("fixture-1280");

    // A narrow window: tables scroll by themselves, the page does not.
    b.resize(400, 800);
    if !b.becomes("document.documentElement.scrollWidth <= 400") {
        let wide = "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 401 && !e.closest('.table,.chart:not(.live),pre')).slice(0, 3).map(e => e.outerHTML.slice(0, 90)).join()";
        panic!("{} pixels wide: {}", b.number("document.documentElement.scrollWidth"), b.eval(wide));
    }
    b.shot("fixture-400");
    assert_eq!(b.complaints(), Vec::<String>::new());
}

#[test]
fn hostile_names_are_text() {
    let Some(mut b) = Browser::start() else { return };
    let name = "</script><script>alert(1)</script>";
    let image = "\"><img src=x onerror=alert(2)>";
    let dir = tempfile::tempdir().unwrap();
    let names = |extra: &str| vec![name.to_string(), image.to_string(), extra.to_string()];
    let path = page(&dir, &Spec { clients: names("{{7*7}}"), variants: names("${x}"), ..Spec::default() });
    b.open(&path);
    assert_eq!(b.eval("document.documentElement.classList.contains('js')"), json!(true));
    let shown = format!("[...document.querySelectorAll('tbody th')].some(t => t.textContent === {name:?})");
    assert_eq!(b.eval(&shown), json!(true));
    let keys = format!("[...document.querySelectorAll('.key')].some(t => t.textContent === {image:?})");
    assert_eq!(b.eval(&keys), json!(true), "legends made by the script show it as text as well");
    assert_eq!(b.number("document.querySelectorAll('img').length"), 0.0);
    assert_eq!(b.complaints(), Vec::<String>::new());
}

/// Pictures of a real report for people to look at: `KREPLAY_PAGE` names the page, `KREPLAY_SHOTS` the folder.
#[test]
fn pictures() {
    let (Ok(page), Ok(_)) = (std::env::var("KREPLAY_PAGE"), std::env::var("KREPLAY_SHOTS")) else { return };
    let Some(mut b) = Browser::start() else { return };
    for (width, scheme) in [(1280, "light"), (400, "light"), (1280, "dark")] {
        b.call("Emulation.setEmulatedMedia", json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}));
        b.resize(width, 900);
        b.open(&PathBuf::from(&page));
        std::thread::sleep(std::time::Duration::from_millis(300));
        b.shot(&format!("page-{width}-{scheme}"));
    }
    assert_eq!(b.complaints(), Vec::<String>::new());
}
