//! A headless Chromium, spoken to over pipes by the DevTools protocol: no crate and no network needed.

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: File,
    answers: Receiver<Value>,
    next: u64,
    session: Value,
    /// Everything that the page reported.
    pub(crate) events: Vec<Value>,
    _home: tempfile::TempDir,
}

/// The browser's command, if there is one.
fn command() -> Option<String> {
    let named = std::env::var("KREPLAY_CHROMIUM").ok();
    let usual = ["chromium", "chromium-browser", "google-chrome"].map(str::to_string);
    named.into_iter().chain(usual).find(|c| {
        Command::new(c).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    })
}

impl Browser {
    /// Starts it; `None`, with the reason on standard error, where there is no Chromium.
    pub(crate) fn start() -> Option<Browser> {
        let Some(chromium) = command() else {
            eprintln!(
                "skipped: no chromium, chromium-browser or google-chrome on the path, and KREPLAY_CHROMIUM is not set"
            );
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        let (to, from) = (home.path().join("to"), home.path().join("from"));
        if !Command::new("mkfifo").arg(&to).arg(&from).status().is_ok_and(|s| s.success()) {
            eprintln!("skipped: no mkfifo, or it failed");
            return None;
        }
        let script = r#"exec "$0" --headless --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage --user-data-dir="$3" --remote-debugging-pipe 3<"$1" 4>"$2""#;
        let child = Command::new("sh")
            .args(["-c", script, &chromium])
            .args([to.as_os_str(), from.as_os_str(), home.path().join("profile").as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = OpenOptions::new().write(true).open(&to).unwrap();
        let output = BufReader::new(File::open(&from).unwrap());
        let (send, answers) = channel();
        std::thread::spawn(move || {
            for message in output.split(0) {
                let Ok(message) = message else { break };
                let Ok(value) = serde_json::from_slice(&message) else { continue };
                if send.send(value).is_err() {
                    break;
                }
            }
        });
        let mut browser =
            Browser { child, input, answers, next: 0, session: Value::Null, events: Vec::new(), _home: home };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].clone();
        for domain in ["Runtime", "Log", "Network", "Page"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method and waits for its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer = self.answers.recv_timeout(left).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == json!(id) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&mut self, path: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        let until = Instant::now() + PATIENCE;
        while self.eval("document.readyState") != json!("complete") {
            assert!(Instant::now() < until, "the page does not load");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let result = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true; false if it does not become so. Pages draw when they get to it.
    pub(crate) fn becomes(&mut self, expression: &str) -> bool {
        let until = Instant::now() + PATIENCE;
        while self.eval(expression) != json!(true) {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// A number of the page.
    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        self.eval(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
    }

    /// Window size in CSS pixels.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
    }

    /// A mouse event at a place of the window.
    pub(crate) fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        self.call("Input.dispatchMouseEvent", json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1}));
    }

    /// Place in the window of an element, scrolled into view, at a share of its width and height.
    pub(crate) fn place(&mut self, selector: &str, across: f64, down: f64) -> (f64, f64) {
        let find = format!("document.querySelector({selector:?})");
        self.eval(&format!("{find}.scrollIntoView({{block: 'center'}})"));
        let at = self.eval(&format!(
            "(() => {{ const r = {find}.getBoundingClientRect(); return [r.left + r.width * {across}, r.top + r.height * {down}]; }})()"
        ));
        (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
    }

    /// Writes a picture of the page (of its first `height` pixels) into the folder that `KREPLAY_SHOTS` names, if it does.
    pub(crate) fn shot(&mut self, name: &str) {
        let Ok(dir) = std::env::var("KREPLAY_SHOTS") else { return };
        let data = self.call("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true}));
        let bytes = base64(data["data"].as_str().unwrap());
        std::fs::write(Path::new(&dir).join(format!("{name}.png")), bytes).unwrap();
    }

    /// What the page must not have done: errors, messages, dialogs, requests other than for itself.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let bad = |e: &&Value| match e["method"].as_str().unwrap_or("") {
            "Runtime.exceptionThrown"
            | "Runtime.consoleAPICalled"
            | "Log.entryAdded"
            | "Page.javascriptDialogOpening" => true,
            "Network.requestWillBeSent" => e["params"]["type"] != json!("Document"),
            _ => false,
        };
        self.events.iter().filter(bad).map(ToString::to_string).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().filter_map(digit).collect();
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let n = four.iter().fold(0u32, |n, d| (n << 6) | u32::from(*d)) << (6 * (4 - four.len()));
        out.extend(&n.to_be_bytes()[1..four.len()]);
    }
    out
}
