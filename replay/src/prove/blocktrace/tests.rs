//! The proof on the bundled beginnings of two traces, and on events spoilt on purpose.

use std::path::PathBuf;

use super::*;

fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/traced")
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

/// The decisions of a text of events under a bundled run's configuration.
fn scores(folder: &str, change: impl Fn(String) -> String) -> RunScores {
    let folder = bundled().join(folder);
    let text = change(traced::text(&folder, FILE).expect("fixture"));
    let run = traced::open(&folder, "test").expect("a run");
    play::play(&run, &run.config, &events::parse(FILE, &text).expect("events"), true).expect("played")
}

fn below(scores: &RunScores) -> Vec<&str> {
    scores.scores.iter().filter(|s| !s.holds()).map(|s| s.name.as_str()).collect()
}

#[test]
fn bundled_traces_agree_in_everything() {
    let report = run(&bundled(), &never()).expect("readable");
    assert_eq!(report.skipped, []);
    assert_eq!(report.runs.len(), 2);
    for r in &report.runs {
        assert_eq!(below(r), Vec::<&str>::new(), "{}", r.run);
        assert!(r.scores.iter().all(|s| s.right == s.of), "{:?}", r.scores);
    }
    let all =
        |name: &str| report.runs.iter().flat_map(|r| &r.scores).filter(|s| s.name == name).map(|s| s.of).sum::<u64>();
    assert!(all("insert position") > 500 && all("back merge") > 5000, "{report:?}");
    assert!(all("front merge") > 50 && all("coalesce") > 50 && all("sleep for a slot") > 500, "{report:?}");
}

#[test]
fn all_recorded_traces_agree_and_broken_rules_are_noticed() {
    let dir = std::env::var_os("KREPLAY_SHARED").map(|d| PathBuf::from(d).join("oracle/linux24"));
    let Some(dir) = dir.filter(|d| d.is_dir()) else { return };
    let report = run(&dir, &never()).expect("readable");
    assert!(report.holds(), "{report:?}");
    assert!(report.runs.len() >= 18);
}

#[test]
fn a_spoilt_event_is_noticed() {
    let run = "2.4.16-traced-64M-netatalk-s-d10";
    assert!(below(&scores(run, |t| t)).is_empty());
    let spoil = |kind: &str, change: &dyn Fn(&str) -> String| {
        scores(run, |t| {
            let at = t.lines().position(|l| l.contains(kind)).expect("there is one");
            t.lines().enumerate().map(|(i, l)| if i == at { change(l) } else { l.to_owned() } + "\n").collect()
        })
    };
    let gone = |_: &str| "0,0,D,22:0,R,0,8,,,".to_owned();
    assert_eq!(below(&spoil(",X,", &gone)), ["coalesce"]);
    assert_eq!(below(&spoil(",P,22:0", &|l| l.replace(",P,", ",S,"))), ["sleep for a slot"]);
    assert!(
        below(&spoil(",C,22:0", &|l| l.replace(",8,,,", ",16,,,").replace(",2,,,", ",16,,,")))
            .contains(&"dispatched request")
    );
    let moved = |l: &str| l.replace(",0,0", ",1,0");
    assert_eq!(below(&spoil(",0,0", &moved)), ["insert position"]);
}

#[test]
fn damaged_files_say_where() {
    let header = "t_us,pid,event,dev,rw,sector,nsect,aux,pos,qlen";
    let wrong = |text: &str| events::parse(FILE, text).expect_err("damaged");
    assert_eq!(
        wrong(""),
        "block_events.csv: empty, expected the header \"t_us,pid,event,dev,rw,sector,nsect,aux,pos,qlen\""
    );
    assert!(wrong("a,b\n").starts_with("block_events.csv:1: the header is"));
    assert_eq!(
        wrong(&format!("{header}\n1,2,I,3:0,R,0,2,,,\n")),
        "block_events.csv:2: an insertion without position or queue length"
    );
    assert_eq!(wrong(&format!("{header}\n1,2,Y,3:0,R,0,2,,,\n")), "block_events.csv:2: event \"Y\" is not known");
    assert_eq!(wrong(&format!("{header}\n1,2,Q,3:0,R,0\n")), "block_events.csv:2: the line ends early");
    assert_eq!(
        wrong(&format!("{header}\n1,2,M,3:0,R,0,2,x,,\n")),
        "block_events.csv:2: aux \"x\" is no number that fits"
    );
}
