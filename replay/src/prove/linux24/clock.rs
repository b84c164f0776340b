//! The clocks of a recorded machine: when it was sampled, when its daemons wake, and when it stood still.
//!
//! samples.csv has the time of each sample since init began and the interrupts and processor ticks since the machine began;
//! serial.log has the load's start on the first of these clocks.

use kreplay_traces::input::{Input, InputLimits};
use kreplay_traces::units::Nanos;
use std::io::Read as _;
use std::path::Path;

/// A timer tick of the recorded machines (100 Hz).
const TICK_S: f64 = 0.01;
/// When the daemons begin to sleep for the first time, seconds after the machine's start: where the event traces of 2.4.10, 2.4.16
/// and 2.4.18 show kupdate at work, it is at 0.38 to 0.5 in its interval in six runs of eight (slow starts in two).
const DAEMONS_BEGIN_S: f64 = 0.4;
/// A shorter standstill is not told from interrupts that came at a sample's edge, seconds.
const LEAST_STANDSTILL_S: f64 = 0.2;

/// One line of samples.csv.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Since init began, seconds.
    at: f64,
    interrupts: f64,
    /// Processor ticks of all kinds.
    ticks: f64,
}

/// A stretch in which the machine got fewer interrupts than its timer ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Standstill {
    from: f64,
    to: f64,
    /// So much of it the machine stood still, at least, seconds.
    lost: f64,
}

/// Clocks of one recording. Times are seconds after the load's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MachineClock {
    /// The first sample after the load's start.
    pub first_sample: Option<f64>,
    /// How long the machine had been up at the load's start, seconds.
    pub uptime: Option<f64>,
    stands: Vec<Standstill>,
}

impl MachineClock {
    /// Clocks of a run by its serial.log and samples.csv; what they do not tell is left out.
    pub(super) fn of(serial: &str, csv: &str) -> Self {
        let Some(start) = start_of(serial) else { return Self::default() };
        let samples: Vec<Sample> = samples(csv).map(|s| Sample { at: s.at - start, ..s }).collect();
        Self::from_samples(&samples)
    }

    fn from_samples(samples: &[Sample]) -> Self {
        let stands = samples.windows(2).filter_map(|pair| {
            let [a, b] = pair else { return None };
            // A counter that falls is another machine's.
            if b.interrupts < a.interrupts {
                return None;
            }
            let ticks = (b.interrupts - a.interrupts) * TICK_S;
            let lost = b.at - a.at - ticks;
            (lost > LEAST_STANDSTILL_S).then_some(Standstill { from: a.at, to: b.at, lost })
        });
        Self {
            first_sample: samples.iter().map(|s| s.at).find(|at| *at > 0.0),
            uptime: samples.first().map(|s| s.ticks * TICK_S - s.at),
            stands: stands.collect(),
        }
    }

    /// A time of this recording without what the machine stood still before it, at least.
    pub(super) fn running(&self, at: f64) -> f64 {
        let lost =
            self.stands.iter().map(|s| if at >= s.to { s.lost } else { (s.lost - (s.to - at)).clamp(0.0, s.lost) });
        at - lost.sum::<f64>()
    }

    /// Until kupdate wakes first after the load's start.
    pub(super) fn kupdate_in(&self, interval: Nanos) -> Option<Nanos> {
        self.next_of(interval)
    }

    /// Until kswapd of the aging kernels, which began with kupdate and looks once a second, wakes by itself.
    pub(super) fn kswapd_in(&self) -> Option<Nanos> {
        self.next_of(Nanos::from_secs(1))
    }

    fn next_of(&self, interval: Nanos) -> Option<Nanos> {
        let interval = interval.as_secs_f64();
        let into = (self.uptime? - DAEMONS_BEGIN_S).rem_euclid(interval);
        Some(Nanos(((interval - into) * 1e9) as u64))
    }
}

/// All of serial.log; empty where there is none.
pub(super) fn serial_log(folder: &Path) -> String {
    let logs = ["serial.log", "serial.log.zst"].map(|name| folder.join(name));
    let Some(log) = logs.iter().find(|p| p.is_file()) else { return String::new() };
    let mut text = Vec::new();
    let read = Input::open(log, InputLimits::default()).is_ok_and(|mut input| input.read_to_end(&mut text).is_ok());
    if read { String::from_utf8_lossy(&text).into_owned() } else { String::new() }
}

/// The load's start on init's clock, seconds: `@T <microseconds> start ...`.
fn start_of(serial: &str) -> Option<f64> {
    serial.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let us = words.next().filter(|w| *w == "@T").and_then(|_| words.next())?;
        words.next().filter(|w| *w == "start")?;
        Some(us.parse::<f64>().ok()? / 1e6)
    })
}

/// Samples of samples.csv, up to the first line that can't be read.
fn samples(csv: &str) -> impl Iterator<Item = Sample> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| header.iter().position(|c| *c == name);
    let (at, interrupts) = (column("t_us"), column("intr"));
    let ticks = ["cpu_user", "cpu_nice", "cpu_sys", "cpu_idle"].map(column);
    lines.map_while(move |line| {
        let fields: Vec<&str> = line.split(',').collect();
        let value = |i: Option<usize>| fields.get(i?)?.parse::<f64>().ok();
        let ticks = ticks.into_iter().map(value).sum::<Option<f64>>()?;
        Some(Sample { at: value(at)? / 1e6, interrupts: value(interrupts)?, ticks })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "t_us,intr,ctxt,cpu_user,cpu_nice,cpu_sys,cpu_idle\n\
        50000,700,5,0,0,600,50\n1050000,900,6,0,0,600,150\n2050000,1200,9,0,0,700,150\n\
        7050000,1330,9,0,0,830,150\n8050000,1500,9,0,0,930,150\n";

    fn clock() -> MachineClock {
        MachineClock::of("noise\n@T 5394 boot 0 0 0\r\n@T 1550000 start 0 0 0\r\n", CSV)
    }

    #[test]
    fn a_machine_that_gets_fewer_interrupts_than_ticks_stood_still() {
        let clock = clock();
        // 130 interrupts in 5 s: 3.7 s are missing, between 0.5 and 5.5 s after the start.
        assert_eq!(clock.running(0.4), 0.4);
        assert!((clock.running(6.0) - 2.3).abs() < 1e-9);
        // The last 1.3 s before the interval's end may all have been running.
        assert!((clock.running(4.5) - 1.8).abs() < 1e-9);
        assert!((clock.running(1.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn samples_and_daemons_keep_the_machines_time() {
        let clock = clock();
        assert!((clock.first_sample.unwrap() - 0.5).abs() < 1e-9);
        // 650 ticks at the first sample, 1.5 s before the start.
        assert!((clock.uptime.unwrap() - 8.0).abs() < 1e-9);
        let next = clock.kupdate_in(Nanos::from_secs(5)).unwrap().as_secs_f64();
        assert!((next - (0.4 + 10.0 - 8.0)).abs() < 1e-6, "{next}");
        assert_eq!(MachineClock::default().kupdate_in(Nanos::from_secs(5)), None);
    }

    #[test]
    fn what_cannot_be_read_ends_the_list() {
        assert_eq!(samples("t_us,intr\n1,2\n").count(), 0);
        assert_eq!(samples(&format!("{CSV}broken\n9050000,1,1,1,1,1,1\n")).count(), 5);
        assert_eq!(start_of("@T x start"), None);
    }
}
