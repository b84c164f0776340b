//! I/O priorities of the tasks of a block trace: key `queue.priorities`.
//!
//! Most block traces do not say which priority a process had; schedulers with classes (mq-deadline, BFQ, CFQ) treat it by that.

use crate::block::IoClass;

/// Lowest priority within a class.
const LOWEST: u8 = 7;

/// What the tasks get that a pattern names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pattern: String,
    pub(crate) class: IoClass,
    /// 0 (highest) to 7.
    pub(crate) level: u8,
}

impl Rule {
    fn matches(&self, name: &str, pid: i64) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == self.pattern || self.pattern.parse() == Ok(pid),
        }
    }
}

/// Reads rules `WHO=CLASS` or `WHO=CLASS:LEVEL`, separated by blanks. WHO is a process number, a name, or the beginning of
/// one and `*`; CLASS is `rt`, `be` or `idle`; the level is 0 (highest) to 7, 4 where it is left out.
///
/// # Errors
/// The rule that cannot be read, and what is expected.
pub(crate) fn parse(rules: &str) -> Result<Vec<Rule>, String> {
    rules.split_whitespace().map(rule).collect()
}

fn rule(text: &str) -> Result<Rule, String> {
    let wrong =
        |what: &str| format!("\"{text}\": {what}; a rule is WHO=rt:4, with WHO a name, NAME* or a process number");
    let (who, what) = text.rsplit_once('=').filter(|(who, _)| !who.is_empty()).ok_or_else(|| wrong("no WHO=CLASS"))?;
    let (class, level) = class_and_level(what).map_err(wrong)?;
    Ok(Rule { pattern: who.to_owned(), class, level })
}

/// Reads `CLASS` or `CLASS:LEVEL`, as in a rule.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn class_and_level(what: &str) -> Result<(IoClass, u8), &'static str> {
    let (class, level) = what.split_once(':').unwrap_or((what, "4"));
    let class = match class {
        "rt" => IoClass::RealTime,
        "be" => IoClass::BestEffort,
        "idle" => IoClass::Idle,
        _ => return Err("the classes are rt, be and idle"),
    };
    let level = level.parse().ok().filter(|l| *l <= LOWEST).ok_or("levels are 0 to 7")?;
    Ok((class, level))
}

/// Class and level of a task: those of the first rule that names it.
pub(crate) fn of(rules: &[Rule], name: &str, pid: i64) -> Option<(IoClass, u8)> {
    rules.iter().find(|r| r.matches(name, pid)).map(|r| (r.class, r.level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_names_a_task_counts() {
        let rules = parse("jbd2/*=be:3  42=idle kworker/0:1=rt *=be:2").expect("rules");
        assert_eq!(of(&rules, "jbd2/sda1-8", 7), Some((IoClass::BestEffort, 3)));
        assert_eq!(of(&rules, "dd", 42), Some((IoClass::Idle, 4)));
        assert_eq!(of(&rules, "kworker/0:1", 8), Some((IoClass::RealTime, 4)));
        assert_eq!(of(&rules, "kworker/0:2", 8), Some((IoClass::BestEffort, 2)));
        assert_eq!(of(&parse("a=rt").expect("rules"), "ab", 1), None);
        assert_eq!(parse("").expect("none"), []);
    }

    #[test]
    fn what_is_no_rule_is_said() {
        for bad in ["jbd2", "=rt", "a=fast", "a=rt:8", "a=rt:x"] {
            assert!(parse(bad).unwrap_err().contains(bad), "{bad}");
        }
    }
}
