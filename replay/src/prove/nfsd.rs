//! `prove nfsd`: the reply strategies of a file server against cases of another model of the same rules, exactly.
//!
//! A JSON file `{"schema": "nfsd-oracle/1", "cases": [{"params": .., "expected": ..}]}`. A case names
//! every figure of the model, and every one has to be met: whole numbers exactly, others to the digits printed.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ExactReport, Verdict};
use crate::net::nfsd::{Outcome, Params, simulate};

/// Larger files are not case files (the recorded one has 17 KB).
const MAX_FILE_BYTES: u64 = 256 << 20;

#[derive(Deserialize)]
struct File {
    schema: String,
    cases: Vec<Value>,
}

/// Runs every case of a file, or of the `nfsd.json` in a folder, in order.
///
/// # Errors
/// The file can't be read or is not of this schema, in words. A case that makes no sense is a failed case.
pub fn run(path: &Path) -> Result<ExactReport, String> {
    let path = if path.is_dir() { path.join("nfsd.json") } else { path.to_owned() };
    let explain = |what: String| format!("{}: {what}", path.display());
    let size = std::fs::metadata(&path).map_err(|e| explain(e.to_string()))?.len();
    if size > MAX_FILE_BYTES {
        return Err(explain(format!("{size} bytes are too many for a file of cases")));
    }
    let text = std::fs::read_to_string(&path).map_err(|e| explain(e.to_string()))?;
    let file: File = serde_json::from_str(&text).map_err(|e| explain(format!("not a file of nfsd cases: {e}")))?;
    if file.schema != "nfsd-oracle/1" {
        return Err(explain(format!("schema \"{}\" is not known here, expected \"nfsd-oracle/1\"", file.schema)));
    }
    let mut report = ExactReport { kind: "nfsd", cases: 0, passed: 0, failed: Vec::new(), skipped: Vec::new() };
    for (number, case) in file.cases.iter().enumerate() {
        report.cases += 1;
        match check(case) {
            Ok(()) => report.passed += 1,
            Err(why) => report.failed.push(Verdict { case: name(number, case), why }),
        }
    }
    Ok(report)
}

fn name(number: usize, case: &Value) -> String {
    let p = &case["params"];
    let strategy = p["strategy"].as_str().unwrap_or("?");
    format!("{}: {strategy}, {} threads, window {}", number + 1, p["threads"], p["window"])
}

fn check(case: &Value) -> Result<(), String> {
    let params: Params = Params::deserialize(&case["params"]).map_err(|e| format!("params: {e}"))?;
    let expected = case["expected"].as_object().ok_or("no expected figures")?;
    let outcome = simulate(&params).map_err(|e| e.to_string())?;
    let got = figures(&outcome);
    for (key, want) in expected {
        let have = got.get(key).ok_or_else(|| format!("\"{key}\" is not a figure of this model"))?;
        if !agrees(want, have) {
            return Err(format!("{key}: expected {want}, simulated {have}"));
        }
    }
    match got.keys().find(|key| !expected.contains_key(*key)) {
        Some(key) => Err(format!("the case says nothing about \"{key}\"; all figures are compared")),
        None => Ok(()),
    }
}

/// The figures by the names of the schema.
fn figures(o: &Outcome) -> Map<String, Value> {
    let Value::Object(map) = json!({
        "done": o.done,
        "total": o.total(),
        "jain": o.jain(),
        "mean_latency": o.mean_latency,
        "max_latency": o.max_latency,
        "drops": o.drops,
        "retransmits": o.retransmits,
        "duplicate_replies": o.duplicate_replies,
        "max_deferred": o.max_deferred,
        "max_threads_held_by_congested": o.max_threads_held_by_congested,
        "mean_threads_held_by_congested": o.mean_threads_held_by_congested,
        "first_all_threads_stuck": o.first_all_threads_stuck,
        "ticks_all_threads_stuck": o.ticks_all_threads_stuck,
    }) else {
        return Map::new();
    };
    map
}

/// Whole numbers exactly; a decimal number to its last digit; nothing done counts as no latency, however it is written.
fn agrees(want: &Value, have: &Value) -> bool {
    match (want, have) {
        (Value::Array(w), Value::Array(h)) => w.len() == h.len() && w.iter().zip(h).all(|(w, h)| agrees(w, h)),
        (Value::Number(w), Value::Number(h)) => {
            if let (Some(w), Some(h)) = (w.as_u64(), h.as_u64()) {
                return w == h;
            }
            let text = w.to_string();
            let digits = text.split_once('.').map_or(0, |(_, d)| d.len()).max(3);
            match (w.as_f64(), h.as_f64()) {
                (Some(w), Some(h)) => (w - h).abs() <= 0.500_001 * 10f64.powi(-(digits as i32)),
                _ => false,
            }
        }
        (Value::Number(w), Value::Null) => w.as_f64() == Some(0.0),
        _ => want == have,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(strategy: &str, expected: &Value) -> Value {
        json!({
            "params": {"strategy": strategy, "threads": 8, "clients": 4, "window": 16, "svc": 4, "reply": 8192,
                "sndbuf": 65536, "rate": 10000, "congest": [0, 1000, 8000], "think": 0, "ticks": 20000, "rto": 700,
                "rto_cap": 60000, "reserve": 9216},
            "expected": expected,
        })
    }

    #[test]
    fn a_figure_that_differs_fails_its_case() {
        let right =
            json!({"done": [6510, 6510, 6510, 6510], "jain": 1.0, "mean_latency": [49.113, 49.115, 49.116, 49.116]});
        let params = Params::deserialize(&case("tcp_block", &right)["params"]).unwrap();
        let mut all = figures(&simulate(&params).unwrap());
        all.extend(right.as_object().unwrap().clone());
        assert_eq!(check(&case("tcp_block", &Value::Object(all))), Ok(()));
        // A case that asks for less than everything, or for nothing, is no proof.
        assert!(check(&case("tcp_block", &right)).unwrap_err().contains("says nothing about"));
        assert!(check(&case("tcp_block", &json!({}))).unwrap_err().contains("says nothing about"));
        let wrong = json!({"mean_latency": [49.114, 49.115, 49.116, 49.116]});
        assert!(check(&case("tcp_block", &wrong)).unwrap_err().starts_with("mean_latency"));
        assert!(check(&case("tcp_block", &json!({"speed": 1}))).unwrap_err().contains("speed"));
        assert!(check(&case("carrier_pigeon", &right)).unwrap_err().starts_with("params"));
    }

    #[test]
    fn all_recorded_cases_agree_where_they_are_at_hand() {
        let Some(shared) = std::env::var_os("KREPLAY_SHARED") else { return };
        let report = run(&Path::new(&shared).join("oracle/nfsd.json")).expect("readable");
        assert_eq!(report.failed, []);
        assert!(report.holds());
    }
}
