//! Fitting device models to recorded times from dispatch to completion.
//!
//! The requests of a recording, in the order of their dispatch, go to a device model that serves them in order; its
//! parameters are chosen so that the times of the single requests come close. A busy queue dispatches when something
//! completes, so each request follows the completion that it followed in the recording, as long after it as there: a model
//! that is slow is then as slow as it is, and not slower with every request. How good the
//! result is, the *demerit figure* says: the root of the mean squared horizontal distance between the distribution curves
//! of recorded and modelled times, in percent of the recorded mean (Ruemmler and Wilkes, "An introduction to disk drive
//! modeling", IEEE Computer 27(3), 1994). It is taken on the second half of the recording; the first half is fitted.

mod demerit;
mod rotating;
mod search;
mod ssd;

use serde::Serialize;
use thiserror::Error;

use crate::block::device::{self, Device, Transfer};
use crate::blockreplay::BlockProgram;
use crate::config::DeviceConfig;
use kreplay_traces::units::Nanos;

pub use demerit::demerit_pct;

/// Halves with fewer requests determine nothing.
pub const LEAST: usize = 50;
/// The fit looks at no more requests of its half than this; the test at all.
const MOST: usize = 20_000;

/// A request with its recorded times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) t: Transfer,
    pub(crate) d: Nanos,
    pub(crate) c: Nanos,
    /// The last request that had completed before its dispatch, and for how long it had.
    pub(crate) follows: Option<(usize, Nanos)>,
}

impl Sample {
    fn recorded_ns(&self) -> f64 {
        self.c.saturating_sub(self.d).get() as f64
    }
}

/// Why a recording cannot be fitted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FitError {
    /// Too few complete requests.
    #[error("{found} requests with dispatch and completion on {device}: {needed} are needed")]
    TooFew {
        /// Found.
        found: usize,
        /// Needed.
        needed: usize,
        /// Where.
        device: String,
    },
    /// No device of that name.
    #[error("the trace has no device \"{0}\"; it has {1}")]
    NoDevice(String, String),
}

/// A fitted model.
#[derive(Clone, Debug, Serialize)]
pub struct Fitted {
    /// "rotating" or "ssd".
    pub model: &'static str,
    /// Its parameters.
    pub device: DeviceConfig,
    /// Demerit figure on the half that was fitted, percent.
    pub demerit_fitted_pct: f64,
    /// Demerit figure on the other half, percent.
    pub demerit_tested_pct: f64,
    /// Mean error of the single requests' times on the other half, percent of the mean time.
    pub request_error_pct: f64,
}

/// Outcome of a fit.
#[derive(Clone, Debug, Serialize)]
pub struct FitReport {
    /// Device that was fitted.
    pub device: String,
    /// Requests in the fitted half.
    pub fitted_requests: usize,
    /// Requests in the tested half.
    pub tested_requests: usize,
    /// Recorded mean of the tested half, ms.
    pub recorded_mean_ms: f64,
    /// Demerit on the tested half of a model that takes the fitted half's mean for every request: what any model has to
    /// beat.
    pub constant_demerit_pct: f64,
    /// Whether the better model beats that constant on the tested half. If not, its parameters say little.
    pub beats_constant: bool,
    /// Models, the better one (on the fitted half) first.
    pub models: Vec<Fitted>,
}

/// Fits both models to one device of a block trace (the busiest one, unless `device` names another).
///
/// # Errors
/// See [`FitError`].
pub fn fit(program: &BlockProgram, device: Option<&str>) -> Result<FitReport, FitError> {
    let index = match device {
        Some(name) => program.devices.iter().position(|d| d.name == name).ok_or_else(|| {
            let names: Vec<_> = program.devices.iter().map(|d| d.name.as_str()).collect();
            FitError::NoDevice(name.to_owned(), names.join(", "))
        })?,
        None => busiest(program),
    };
    let mut samples: Vec<Sample> = program
        .requests
        .iter()
        .filter(|r| usize::from(r.dev) == index)
        .filter_map(|r| {
            let t = Transfer { dir: r.dir, sector: r.sector, nr: r.nr };
            Some(Sample { t, d: r.d, c: r.c.filter(|c| *c > r.d)?, follows: None })
        })
        .collect();
    follow(&mut samples);
    let name = program.devices.get(index).map_or_else(String::new, |d| d.name.clone());
    if samples.len() < 2 * LEAST {
        return Err(FitError::TooFew { found: samples.len(), needed: 2 * LEAST, device: name });
    }
    let (train, test) = samples.split_at(samples.len() / 2);
    let part = &train[..train.len().min(MOST)];
    let depth = depth(&samples);
    let mut models: Vec<Fitted> = [rotating::fit(part, depth), ssd::fit(part, depth)]
        .into_iter()
        .map(|device| judge(device, &samples, train.len()))
        .collect();
    models.sort_by(|a, b| a.demerit_fitted_pct.total_cmp(&b.demerit_fitted_pct));
    let recorded: Vec<f64> = test.iter().map(Sample::recorded_ns).collect();
    let mean = |s: &[Sample]| s.iter().map(Sample::recorded_ns).sum::<f64>() / s.len() as f64;
    let constant_demerit_pct = demerit_pct(&recorded, &vec![mean(train); test.len()]);
    Ok(FitReport {
        device: name,
        fitted_requests: train.len(),
        tested_requests: test.len(),
        recorded_mean_ms: mean(test) / 1e6,
        constant_demerit_pct,
        beats_constant: models.first().is_some_and(|best| best.demerit_tested_pct < constant_demerit_pct),
        models,
    })
}

fn busiest(program: &BlockProgram) -> usize {
    let mut counts = vec![0usize; program.devices.len()];
    program.requests.iter().for_each(|r| counts[usize::from(r.dev)] += 1);
    let most = counts.iter().copied().max().unwrap_or(0);
    counts.iter().position(|&n| n == most).unwrap_or(0)
}

/// Finds the completion that each dispatch followed. Samples are in the order of their dispatch.
fn follow(samples: &mut [Sample]) {
    let mut by_completion: Vec<usize> = (0..samples.len()).collect();
    by_completion.sort_by_key(|&i| samples[i].c);
    let mut done = by_completion.into_iter().peekable();
    let mut last = None;
    for i in 0..samples.len() {
        while let Some(&k) = done.peek().filter(|k| samples[**k].c <= samples[i].d) {
            last = Some(k);
            done.next();
        }
        samples[i].follows = last.map(|k| (k, samples[i].d - samples[k].c));
    }
}

/// Most requests at the device at a time.
fn depth(samples: &[Sample]) -> u32 {
    let mut ends = std::collections::BinaryHeap::new();
    let mut most = 1;
    for s in samples {
        while ends.peek().is_some_and(|std::cmp::Reverse(c)| *c <= s.d) {
            ends.pop();
        }
        ends.push(std::cmp::Reverse(s.c));
        most = most.max(ends.len());
    }
    most.min(1024) as u32
}

/// Scores a model on both halves. It serves all requests, so that the second half finds the arm and the queue as the first
/// one left them; its parameters know the first half only.
fn judge(device: DeviceConfig, samples: &[Sample], half: usize) -> Fitted {
    let recorded = |s: &[Sample]| s.iter().map(Sample::recorded_ns).collect::<Vec<_>>();
    let (train, test) = samples.split_at(half);
    let times = modelled(&device, samples);
    let (on_train, on_test) = times.split_at(half);
    let r = recorded(test);
    let off: f64 = r.iter().zip(on_test).map(|(a, b)| (a - b).abs()).sum();
    Fitted {
        model: if matches!(device, DeviceConfig::Ssd { .. }) { "ssd" } else { "rotating" },
        demerit_fitted_pct: demerit_pct(&recorded(train), on_train),
        demerit_tested_pct: demerit_pct(&r, on_test),
        request_error_pct: 100.0 * off / r.iter().sum::<f64>(),
        device,
    }
}

/// Times from dispatch to completion of a model that serves the requests in order, ns; as if it were infinitely slow
/// where its parameters make no device.
fn modelled(config: &DeviceConfig, samples: &[Sample]) -> Vec<f64> {
    let Ok(attached) = device::build(config) else { return vec![f64::MAX; samples.len()] };
    let mut device = attached.device;
    let mut completed: Vec<Nanos> = Vec::with_capacity(samples.len());
    let mut last = Nanos::ZERO;
    samples
        .iter()
        .map(|s| {
            let d = s.follows.and_then(|(k, gap)| Some(*completed.get(k)? + gap)).unwrap_or(s.d).max(last);
            last = d;
            let done = device.serve(d, s.t).done_at;
            completed.push(done);
            done.saturating_sub(d).get() as f64
        })
        .collect()
}

/// What a fit makes small: the mean distance of the single requests' times, with what is far off counting only linearly
/// (recordings have completions that came late for reasons outside of the device).
fn loss(config: &DeviceConfig, samples: &[Sample]) -> f64 {
    let times = modelled(config, samples);
    samples.iter().zip(times).map(|(s, t)| (s.recorded_ns() - t).abs()).sum::<f64>() / samples.len() as f64
}

/// A fitted device as a profile for variants, in TOML.
pub fn profile(report: &FitReport, fitted: &Fitted, trace: &str) -> String {
    let device = toml::to_string(&fitted.device).unwrap_or_default();
    format!(
        "name = \"fitted\"\n\
         about = \"Device {} of a recording, fitted: {} model\"\n\
         profile = true\n\
         sources = [\"times from dispatch to completion of trace {trace}: {} requests fitted, {} tested, \
         demerit {:.1} % on the tested ones\"]\n\n\
         [device]\n{device}\n\
         [evidence]\n\"device\" = \"measured: fitted to a recording\"\n",
        report.device.replace(['"', '\\'], ""),
        fitted.model,
        report.fitted_requests,
        report.tested_requests,
        fitted.demerit_tested_pct,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Dir;

    fn slowdisk() -> DeviceConfig {
        DeviceConfig::Rotating {
            overhead_us: 100,
            seek_min_us: 1000,
            seek_span_us: 9000,
            stroke_bytes: 2 << 30,
            rotation_us: 4170,
            rate_bytes_s: 20_000_000,
            skip_gap_bytes: 131_072,
            skip_gap_costs: true,
            skip_same_direction: false,
            queue_depth: 4,
            shared_channel: false,
        }
    }

    /// Requests of one device served by a known model: some streams, some scattered, up to `depth` at a time.
    fn recording(config: &DeviceConfig, n: u64, depth: usize) -> Vec<Sample> {
        let mut device = device::build(config).expect("valid").device;
        let mut x = 9u64;
        let mut random = move |below: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % below
        };
        let (mut at, mut out) = (0, Vec::<Sample>::new());
        for k in 0..n {
            let nr = [8, 64, 256, 1024][random(4) as usize];
            at = match random(4) {
                0 => at,
                1 => at + random(200),
                _ => random((2 << 30) / 512 - 2048),
            };
            let dir = if random(3) == 0 { Dir::Write } else { Dir::Read };
            let t = Transfer { dir, sector: at, nr };
            let free = out.len().checked_sub(depth).map_or(Nanos::ZERO, |i| out[i].c);
            let last = out.last().map_or(Nanos::ZERO, |s| s.d);
            let d = free.max(last) + Nanos(random(50_000) * u64::from(k % 3 == 0));
            let c = device.serve(d, t).done_at;
            out.push(Sample { t, d, c, follows: None });
            at += u64::from(nr);
        }
        follow(&mut out);
        out
    }

    #[test]
    fn a_rotating_disk_is_found_again() {
        let samples = recording(&slowdisk(), 1200, 4);
        let fitted = judge(rotating::fit(&samples[..600], depth(&samples)), &samples, 600);
        assert!(fitted.demerit_tested_pct < 3.0, "{fitted:?}");
        let DeviceConfig::Rotating { rate_bytes_s, queue_depth, .. } = fitted.device else { unreachable!() };
        assert!((19_000_000..21_000_000).contains(&rate_bytes_s), "{rate_bytes_s}");
        assert_eq!(queue_depth, 4);
    }

    #[test]
    fn a_flash_device_is_found_again_and_a_disk_does_not_fit_it() {
        let config = DeviceConfig::Ssd {
            queue_depth: 8,
            units: 8,
            page_bytes: 16_384,
            read_ns: 75_000,
            program_ns: 600_000,
            ack_ns: 25_000,
            overhead_ns: 20_000,
            link_bytes_s: 550_000_000,
            buffer_bytes: 1 << 30,
            write_amplification_pct: 100,
            erase_pages: 0,
            erase_ns: 0,
        };
        let samples = recording(&config, 1200, 8);
        let flash = judge(ssd::fit(&samples[..600], 8), &samples, 600);
        let disk = judge(rotating::fit(&samples[..600], 8), &samples, 600);
        assert!(flash.demerit_tested_pct < 10.0, "{flash:?}");
        assert!(disk.demerit_tested_pct > flash.demerit_tested_pct, "{disk:?}");
    }

    #[test]
    fn a_profile_can_be_read_back() {
        let samples = recording(&slowdisk(), 200, 1);
        let fitted = judge(slowdisk(), &samples, 100);
        let report = FitReport {
            device: "loop0".to_owned(),
            fitted_requests: 200,
            tested_requests: 200,
            recorded_mean_ms: 1.0,
            constant_demerit_pct: 50.0,
            beats_constant: true,
            models: Vec::new(),
        };
        assert_eq!(fitted.demerit_tested_pct, 0.0);
        let text = profile(&report, &fitted, "abc");
        let value: toml::Table = toml::from_str(&text).expect("TOML");
        let device: DeviceConfig = value["device"].clone().try_into().expect("device");
        assert_eq!(device, slowdisk());
    }

    #[test]
    fn few_requests_are_refused() {
        let program = BlockProgram::default();
        assert!(matches!(fit(&program, None), Err(FitError::TooFew { found: 0, .. })));
        assert!(matches!(fit(&program, Some("sda")), Err(FitError::NoDevice(..))));
    }
}
