//! What was varied between the variants: keys of the resolved configuration, put together to settings and factors.
//!
//! * Keys that always change together are one setting.
//! * A key whose value follows from another setting's (a scheduler brings its own queue) belongs to that one, unless that one has
//!   a value of its own for every variant: then nothing can be told apart by it.
//! * [`grid`]: settings that do not occur in all combinations belong together (what a kernel changes); what remains are the
//!   factors, if every combination of their values is there once.

use crate::matrix::{Matrix, MatrixRow};
use crate::model::CellProvenance;
use indexmap::{IndexMap, IndexSet};

/// Keys named for one setting.
const KEYS: usize = 3;
/// Keys by which people know a setting, if they are among its keys; the most telling first.
const TELLING: [&str; 5] = ["elevator.policy", "machine.memory-limit", "machine.ram", "device.model", "device.preset"];
/// What a setting with such a first key is called.
const CALLED: [(&str, &str); 9] = [
    ("elevator.policy", "I/O scheduler"),
    ("machine.memory-limit", "memory limit"),
    ("machine.ram", "memory"),
    ("device.model", "disk"),
    ("device.preset", "disk"),
    ("reclaim.policy", "page replacement"),
    ("writeback.policy", "write-back"),
    ("readahead.policy", "read-ahead"),
    ("machine.swap", "swap"),
];

/// A setting that was varied.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The keys, the most telling first.
    pub keys: Vec<String>,
    /// Different values of the first key, or of several where one does not tell them apart, in the order of the run (numbers ascending).
    pub values: Vec<String>,
    /// Level of each matrix row.
    pub level: Vec<usize>,
}

impl Setting {
    /// The keys, for captions.
    pub(crate) fn name(&self) -> String {
        let shown = self.keys.iter().take(KEYS).cloned().collect::<Vec<_>>().join(", ");
        let more = self.keys.len().saturating_sub(KEYS);
        if more > 0 { format!("{shown} and {more} more") } else { shown }
    }

    /// What people call it: `memory limit`; else its first key.
    pub(crate) fn called(&self) -> &str {
        let first = self.keys.first().map_or("", String::as_str);
        CALLED.iter().find(|(key, _)| first == *key).map_or(first, |(_, called)| called)
    }

    /// The values as numbers, if all are: `64 MiB` counts as 64 of its unit.
    pub(crate) fn numbers(&self) -> Option<Vec<f64>> {
        self.values.iter().map(|v| number(v)).collect()
    }

    fn tells_every_row_apart(&self) -> bool {
        self.values.len() == self.level.len()
    }
}

/// A number with an optional size suffix; sizes in bytes.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let value: f64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim() {
        "" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(value * factor)
}

/// Configurations of the rows by key.
type Rows<'c> = Vec<IndexMap<&'c str, &'c str>>;

fn value_of<'c>(row: &IndexMap<&'c str, &'c str>, key: &str) -> &'c str {
    row.get(key).copied().unwrap_or("(unset)")
}

/// The settings in which the variants of `matrix` differ, in configuration order; none if a configuration is not known.
pub(crate) fn settings(matrix: &Matrix, cells: &[CellProvenance]) -> Vec<Setting> {
    let config = |row: &MatrixRow| cells.iter().find(|c| c.variant == row.variant).map(|c| &c.config);
    let rows: Option<Rows<'_>> =
        matrix.rows.iter().map(|r| Some(config(r)?.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect())).collect();
    let Some(rows) = rows else { return Vec::new() };
    let keys: IndexSet<&str> = rows.iter().flat_map(|r| r.keys().copied()).collect();
    let mut settings: Vec<Setting> = Vec::new();
    for key in keys {
        let Some(new) = setting(&rows, &[key.to_string()]) else { continue };
        // Keys that always change together cannot be told apart: one setting.
        match settings.iter_mut().find(|s| alias(&s.level, &new.level)) {
            Some(same) => same.keys.push(key.to_string()),
            None => settings.push(new),
        }
    }
    let together = follow(&settings);
    together.into_iter().filter_map(|keys| setting(&rows, &keys)).collect()
}

/// The keys of each setting with those of the settings that follow from it.
fn follow(settings: &[Setting]) -> Vec<Vec<String>> {
    let leads = |a: usize, b: usize| {
        let (a, b) = (&settings[a], &settings[b]);
        !a.tells_every_row_apart() && a.values.len() > b.values.len() && pairs(&a.level, &b.level) == a.values.len()
    };
    let leader = |b: usize| (0..settings.len()).find(|a| *a != b && leads(*a, b));
    let top = |b: usize| {
        let mut at = b;
        // Each step has more values than the last, so it ends.
        while let Some(next) = leader(at) {
            at = next;
        }
        at
    };
    let tops: Vec<usize> = (0..settings.len()).map(top).collect();
    (0..settings.len())
        .filter(|s| tops[*s] == *s)
        .map(|s| (0..settings.len()).filter(|o| tops[*o] == s).flat_map(|o| settings[o].keys.clone()).collect())
        .collect()
}

/// The setting of these keys; `None` if they never change.
fn setting(rows: &Rows<'_>, keys: &[String]) -> Option<Setting> {
    let mut keys = keys.to_vec();
    let rank = |key: &String| TELLING.iter().position(|t| t == key).unwrap_or(TELLING.len());
    keys.sort_by_key(rank);
    let tuple = |row: &IndexMap<&str, &str>| keys.iter().map(|k| value_of(row, k).to_string()).collect::<Vec<_>>();
    let mut tuples: IndexSet<Vec<String>> = rows.iter().map(tuple).collect();
    if tuples.len() < 2 {
        return None;
    }
    // As few keys as tell the values apart.
    let distinct = |n: usize| tuples.iter().map(|t| &t[..n]).collect::<IndexSet<_>>().len() == tuples.len();
    let shown = (1..keys.len()).find(|n| distinct(*n)).unwrap_or(keys.len());
    if shown == 1 && tuples.iter().all(|t| number(&t[0]).is_some()) {
        tuples.sort_by(|a, b| number(&a[0]).unwrap_or(0.0).total_cmp(&number(&b[0]).unwrap_or(0.0)));
    }
    let level = rows.iter().map(|r| tuples.get_index_of(&tuple(r)).unwrap_or(0)).collect();
    let values = tuples.iter().map(|t| t[..shown].join(", ")).collect();
    Some(Setting { keys, values, level })
}

/// The factors of a full grid: settings that occur in all combinations, each combination once. None if there are fewer than two.
///
/// A setting with a value of its own for every variant is left out where the others make a grid: it follows from them.
pub(crate) fn grid(settings: &[Setting]) -> Vec<Setting> {
    let apart: Vec<&Setting> = settings.iter().filter(|s| !s.tells_every_row_apart()).collect();
    let mut factors: Vec<Setting> = Vec::new();
    for setting in apart {
        let mut new = setting.clone();
        while let Some(at) =
            factors.iter().position(|f| pairs(&f.level, &new.level) < f.values.len() * new.values.len())
        {
            new = joined(&factors.remove(at), &new);
        }
        factors.push(new);
    }
    let rows = settings.first().map_or(0, |s| s.level.len());
    let cells: usize = factors.iter().map(|f| f.values.len()).product();
    let different: IndexSet<Vec<usize>> = (0..rows).map(|r| factors.iter().map(|f| f.level[r]).collect()).collect();
    if factors.len() > 1 && cells == rows && different.len() == rows { factors } else { Vec::new() }
}

/// Two settings that do not occur in all combinations as one.
fn joined(a: &Setting, b: &Setting) -> Setting {
    let both: Vec<(usize, usize)> = a.level.iter().copied().zip(b.level.iter().copied()).collect();
    let levels: IndexSet<(usize, usize)> = both.iter().copied().collect();
    let mut keys = a.keys.clone();
    keys.extend(b.keys.iter().cloned());
    // Where one of the two tells all values apart, its values are enough.
    let name = |(x, y): &(usize, usize)| {
        if a.values.len() == levels.len() {
            a.values[*x].clone()
        } else if b.values.len() == levels.len() {
            b.values[*y].clone()
        } else {
            format!("{}, {}", a.values[*x], b.values[*y])
        }
    };
    let level = both.iter().map(|pair| levels.get_index_of(pair).unwrap_or(0)).collect();
    Setting { keys, values: levels.iter().map(name).collect(), level }
}

/// How many different pairs of levels occur.
fn pairs(a: &[usize], b: &[usize]) -> usize {
    a.iter().copied().zip(b.iter().copied()).collect::<IndexSet<(usize, usize)>>().len()
}

/// True if two settings divide the rows in the same way.
fn alias(a: &[usize], b: &[usize]) -> bool {
    let count = |v: &[usize]| v.iter().collect::<IndexSet<_>>().len();
    let both = pairs(a, b);
    both == count(a) && both == count(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[&[(&'static str, &'static str)]]) -> Rows<'static> {
        all.iter().map(|r| r.iter().copied().collect()).collect()
    }

    fn of(rows: &Rows<'_>) -> Vec<Setting> {
        let keys: IndexSet<&str> = rows.iter().flat_map(|r| r.keys().copied()).collect();
        let mut all: Vec<Setting> = Vec::new();
        for key in keys {
            let Some(new) = setting(rows, &[key.to_string()]) else { continue };
            match all.iter_mut().find(|s| alias(&s.level, &new.level)) {
                Some(same) => same.keys.push(key.to_string()),
                None => all.push(new),
            }
        }
        follow(&all).into_iter().filter_map(|keys| setting(rows, &keys)).collect()
    }

    #[test]
    fn a_scheduler_that_brings_its_own_queue_is_one_setting() {
        let cell = |policy, slots, limit| {
            [("queue.slots", slots), ("elevator.policy", policy), ("machine.memory-limit", limit)]
        };
        let all = [
            cell("bfq", "256", "34MiB"),
            cell("mq-deadline", "256", "34MiB"),
            cell("none", "0", "34MiB"),
            cell("bfq", "256", "68MiB"),
            cell("mq-deadline", "256", "68MiB"),
            cell("none", "0", "68MiB"),
        ];
        let rows = rows(&all.iter().map(|c| c.as_slice()).collect::<Vec<_>>());
        let settings = of(&rows);
        let called: Vec<&str> = settings.iter().map(Setting::called).collect();
        assert_eq!(called, ["I/O scheduler", "memory limit"]);
        assert_eq!(settings[0].values, ["bfq", "mq-deadline", "none"]);
        assert_eq!(settings[0].name(), "elevator.policy, queue.slots");
        assert_eq!(grid(&settings).len(), 2);
    }

    #[test]
    fn what_a_kernel_changes_is_one_factor_of_a_grid() {
        let cell = |a, b, ram| [("reclaim.policy", a), ("readahead.policy", b), ("machine.ram", ram)];
        let mut all = Vec::new();
        for ram in ["64MiB", "128MiB"] {
            all.extend([cell("x", "p", ram), cell("x", "q", ram), cell("y", "q", ram)]);
        }
        let rows = rows(&all.iter().map(|c| c.as_slice()).collect::<Vec<_>>());
        let factors = grid(&of(&rows));
        let names: Vec<String> = factors.iter().map(Setting::name).collect();
        assert_eq!(names, ["reclaim.policy, readahead.policy", "machine.ram"]);
        assert_eq!(factors[0].values, ["x, p", "x, q", "y, q"]);
    }

    #[test]
    fn one_change_at_a_time_makes_no_grid() {
        let cell = |policy, ram| [("elevator.policy", policy), ("machine.ram", ram)];
        let all = [cell("a", "64MiB"), cell("b", "64MiB"), cell("a", "32MiB")];
        let rows = rows(&all.iter().map(|c| c.as_slice()).collect::<Vec<_>>());
        let settings = of(&rows);
        assert_eq!(settings.len(), 2);
        assert!(grid(&settings).is_empty());
    }
}
