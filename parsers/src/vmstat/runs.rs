//! Where one run of vmstat ends and the next begins: its first row holds averages since boot.
//!
//! What vmstat never prints between two rows (a date, a prompt, other columns) ends a run. Where runs were appended to one
//! file there is only a header, and vmstat repeats that too: every `rows of the terminal - 3` rows, 21 where it has no
//! terminal (procps, `vmstat.c`). A header is taken for a restart where one of these tells:
//!
//! - the row after it repeats the averages that the run began with, and the row before it did not;
//! - the stamps step back, or by more than twice the longest step of the run;
//! - it comes sooner than the header before it did (or than any terminal's height), unless the stamps go on in step.

use super::row::MAX_COLUMNS;

/// No terminal has so few rows that headers come closer than this.
const MIN_DISTANCE: i64 = 10;
/// ... or so many that the first repeated header comes later: `vmstat -n` prints it only once.
const MAX_DISTANCE: i64 = 300;

/// The rates and percentages of a row, in the order of its columns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    values: [i64; MAX_COLUMNS],
    count: usize,
}

impl Rates {
    pub(super) fn push(&mut self, value: i64) {
        if let Some(place) = self.values.get_mut(self.count) {
            *place = value;
            self.count += 1;
        }
    }

    fn all(&self) -> &[i64] {
        &self.values[..self.count]
    }

    /// Equal as averages since boot of two near moments are: to 2 %, or by the rounding.
    fn near(&self, other: &Self) -> bool {
        let near = |(a, b): (&i64, &i64)| a.abs_diff(*b) <= 1 + a.max(b).unsigned_abs() / 50;
        self.count == other.count && self.all().iter().zip(other.all()).all(near)
    }
}

/// Where a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its run, from 0.
    pub(super) run: i64,
    /// It is the first of its run.
    pub(super) first: bool,
    /// That is only known from the rows.
    pub(super) inferred: bool,
    /// By how much the clock stepped back before it, nanoseconds.
    pub(super) back_ns: Option<u64>,
}

/// Tells the runs of a log apart.
pub(super) struct Runs {
    run: i64,
    rows: i64,
    interrupted: bool,
    rows_since_header: i64,
    /// A header stands before the next row, so many rows after the one before it.
    header_after: Option<i64>,
    /// Rows between two headers of this run.
    distance: Option<i64>,
    first: Option<Rates>,
    last: Option<Rates>,
    last_ns: Option<i64>,
    /// Shortest and longest step of the stamps in this run, nanoseconds.
    steps_ns: Option<(i64, i64)>,
}

impl Runs {
    pub(super) fn new() -> Self {
        Self {
            run: -1,
            rows: 0,
            interrupted: true,
            rows_since_header: 0,
            header_after: None,
            distance: None,
            first: None,
            last: None,
            last_ns: None,
            steps_ns: None,
        }
    }

    pub(super) fn count(&self) -> i64 {
        self.run + 1
    }

    /// Something stands between the rows that vmstat does not print: a run begins.
    pub(super) fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// A header stands here.
    pub(super) fn header(&mut self) {
        if self.rows > 0 && self.rows_since_header > 0 {
            self.header_after = Some(self.rows_since_header);
        }
        self.rows_since_header = 0;
    }

    /// A row, with what is known of it: a row that could not be read is one too.
    pub(super) fn row(&mut self, rates: Option<Rates>, stamp_ns: Option<i64>) -> Place {
        let step = stamp_ns.zip(self.last_ns).map(|(now, last)| now.saturating_sub(last));
        let inferred = !self.interrupted && self.header_after.is_some_and(|rows| self.is_restart(rows, rates, step));
        let first = self.interrupted || inferred;
        if first {
            *self = Self { run: self.run + 1, first: rates, ..Self::new() };
            self.interrupted = false;
        } else {
            if let Some(distance) = self.header_after.take() {
                self.distance = Some(distance);
            }
            if let Some(step) = step.filter(|s| *s >= 0) {
                let (low, high) = self.steps_ns.unwrap_or((step, step));
                self.steps_ns = Some((low.min(step), high.max(step)));
            }
        }
        self.rows += 1;
        self.rows_since_header += 1;
        self.last = rates;
        self.last_ns = stamp_ns;
        Place { run: self.run, first, inferred, back_ns: step.filter(|s| *s < 0).map(i64::unsigned_abs) }
    }

    fn is_restart(&self, rows: i64, rates: Option<Rates>, step_ns: Option<i64>) -> bool {
        let again = match (&self.first, &self.last, &rates) {
            (Some(first), Some(last), Some(now)) => now.near(first) && !last.near(first),
            _ => false,
        };
        let in_step = step_ns.zip(self.steps_ns).map(|(step, (low, high))| (low..=2 * high).contains(&step));
        let soon = match self.distance {
            Some(distance) => rows < distance,
            None => !(MIN_DISTANCE..=MAX_DISTANCE).contains(&rows),
        };
        again || in_step == Some(false) || step_ns.is_some_and(|s| s < 0) || soon && in_step.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(values: &[i64]) -> Option<Rates> {
        let mut rates = Rates::default();
        values.iter().for_each(|v| rates.push(*v));
        Some(rates)
    }

    /// Indices of the rows that begin a run; a header stands before each block.
    fn firsts(blocks: &[&[(i64, Option<i64>)]]) -> Vec<usize> {
        let (mut runs, mut at, mut found) = (Runs::new(), 0, Vec::new());
        for block in blocks {
            runs.header();
            for (value, stamp) in *block {
                if runs.row(rates(&[*value, 7]), *stamp).first {
                    found.push(at);
                }
                at += 1;
            }
        }
        found
    }

    #[test]
    fn a_header_at_the_usual_distance_is_a_repeated_one() {
        let block: Vec<_> = (0..21).map(|v| (v * 100, None)).collect();
        let cut: Vec<_> = (5..9).map(|v| (v * 100, None)).collect();
        assert_eq!(firsts(&[&block, &cut]), [0]);
        assert_eq!(firsts(&[&block, &cut, &cut]), [0, 25], "sooner than before");
        assert_eq!(firsts(&[&cut, &cut, &cut]), [0, 4, 8], "no terminal is so small");
        let long = vec![(3, None); 301];
        assert_eq!(firsts(&[&long, &cut]), [0, 301], "-n prints one header");
    }

    #[test]
    fn averages_that_come_again_begin_a_run() {
        let block: Vec<_> = std::iter::once((1000, None)).chain((1..21).map(|v| (v * 7, None))).collect();
        assert_eq!(firsts(&[&block, &block]), [0, 21]);
        let steady = vec![(1000, None); 21];
        assert_eq!(firsts(&[&steady, &steady]), [0], "all rows look like that");
    }

    #[test]
    fn stamps_tell_too() {
        let block = |from: i64, step: i64| -> Vec<_> { (0..21).map(|v| (from + v, Some(from + v * step))).collect() };
        assert_eq!(firsts(&[&block(0, 5), &block(105, 5)]), [0]);
        assert_eq!(firsts(&[&block(0, 5), &block(103, 5)]), [0, 21], "too soon");
        assert_eq!(firsts(&[&block(0, 5), &block(200, 5)]), [0, 21], "too late");
        assert_eq!(firsts(&[&block(0, 5)[..4], &block(20, 5)]), [0], "a small terminal, in step");
        assert_eq!(firsts(&[&block(0, 5)[..4], &block(0, 5)]), [0, 4]);
    }

    #[test]
    fn a_step_back_has_its_size() {
        let mut runs = Runs::new();
        runs.row(None, Some(10));
        assert_eq!(runs.row(None, Some(7)).back_ns, Some(3));
        assert_eq!(runs.row(None, None).back_ns, None);
    }
}
