//! Conditions over named figures: `slow / max(a, b) in 1.2..1.8`, `a > b >= c`.
//!
//! A condition is one comparison chain over arithmetic of figures and numbers, or an arithmetic value that is to lie in a
//! range. The text of a condition is what reports print as the band, so the language stays as small as that needs.

use std::collections::BTreeSet;
use std::fmt;

/// Why a text is no condition, with the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    /// Byte offset in the text.
    pub at: usize,
    /// What was expected.
    pub why: String,
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at + 1, self.why)
    }
}

/// Arithmetic.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    Figure(String),
    Negative(Box<Value>),
    Binary(Box<Value>, u8, Box<Value>),
    Call(Function, Vec<Value>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Min,
    Max,
    Mean,
    Abs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Chain(Value, Vec<(Relation, Value)>),
    Within(Value, Value, Value),
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    test: Test,
}

/// What a condition came out as.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// It holds.
    pub holds: bool,
    /// The value that was compared, where the condition has one on its left side that is no bare figure.
    pub value: Option<f64>,
    /// The same for a plot.
    pub plotted: Option<Plotted>,
}

/// A condition on an axis: the value that it is about, and the ends of the range in which that may lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Plotted {
    /// The value, or, where two figures are compared, the first divided by the second.
    pub value: f64,
    /// The ends that the condition has: one or two.
    pub ends: Vec<f64>,
    /// It is a quotient of two compared figures.
    pub quotient: bool,
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// Where and why the text is none.
    pub fn parse(text: &str) -> Result<Condition, ExprError> {
        let mut p = Parser { text, at: 0 };
        let left = p.sum()?;
        let test = if p.word("in") {
            let low = p.sum()?;
            if !p.take("..") {
                return Err(p.wrong("`..` between the ends of the range"));
            }
            Test::Within(left, low, p.sum()?)
        } else {
            let mut rest = Vec::new();
            while let Some(relation) = p.relation() {
                rest.push((relation, p.sum()?));
            }
            if rest.is_empty() {
                return Err(p.wrong("`<`, `<=`, `>`, `>=` or `in`"));
            }
            Test::Chain(left, rest)
        };
        p.space();
        if p.at < text.len() {
            return Err(p.wrong("the end of the condition"));
        }
        Ok(Condition { text: text.to_string(), test })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The figures that it names.
    pub fn figures(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        match &self.test {
            Test::Chain(first, rest) => {
                first.names(&mut names);
                rest.iter().for_each(|(_, v)| v.names(&mut names));
            }
            Test::Within(v, low, high) => [v, low, high].iter().for_each(|v| v.names(&mut names)),
        }
        names
    }

    /// Evaluates it; `None` if a figure is not known or something is not finite (a division by zero).
    pub fn test(&self, figure: &dyn Fn(&str) -> Option<f64>) -> Option<Outcome> {
        match &self.test {
            Test::Chain(first, rest) => {
                let start = first.eval(figure)?;
                let mut holds = true;
                let mut left = start;
                for (relation, value) in rest {
                    let right = value.eval(figure)?;
                    holds &= relation.holds(left, right);
                    left = right;
                }
                let value = (!matches!(first, Value::Figure(_))).then_some(start);
                Some(Outcome { holds, value, plotted: plotted(first, start, rest, figure) })
            }
            Test::Within(v, low, high) => {
                let (v, low, high) = (v.eval(figure)?, low.eval(figure)?, high.eval(figure)?);
                let plotted = Plotted { value: v, ends: vec![low, high], quotient: false };
                let plotted = Some(plotted).filter(|p| p.value.is_finite());
                Some(Outcome { holds: low <= v && v <= high, value: Some(v), plotted })
            }
        }
    }
}

/// The first comparison of a chain on an axis.
fn plotted(
    first: &Value,
    start: f64,
    rest: &[(Relation, Value)],
    figure: &dyn Fn(&str) -> Option<f64>,
) -> Option<Plotted> {
    let (_, second) = rest.first()?;
    let right = second.eval(figure)?;
    let plotted = match (first.is_constant(), second.is_constant()) {
        (_, true) => Plotted { value: start, ends: vec![right], quotient: false },
        (true, false) => Plotted { value: right, ends: vec![start], quotient: false },
        (false, false) => Plotted { value: start / right, ends: vec![1.0], quotient: true },
    };
    Some(plotted).filter(|p| p.value.is_finite() && p.ends.iter().all(|e| e.is_finite()))
}

impl Relation {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Relation::Less => left < right,
            Relation::LessEqual => left <= right,
            Relation::Greater => left > right,
            Relation::GreaterEqual => left >= right,
        }
    }
}

impl Value {
    fn is_constant(&self) -> bool {
        let mut names = BTreeSet::new();
        self.names(&mut names);
        names.is_empty()
    }

    fn names<'v>(&'v self, into: &mut BTreeSet<&'v str>) {
        match self {
            Value::Number(_) => {}
            Value::Figure(name) => {
                into.insert(name);
            }
            Value::Negative(v) => v.names(into),
            Value::Binary(a, _, b) => {
                a.names(into);
                b.names(into);
            }
            Value::Call(_, args) => args.iter().for_each(|a| a.names(into)),
        }
    }

    fn eval(&self, figure: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Value::Number(n) => *n,
            Value::Figure(name) => figure(name)?,
            Value::Negative(v) => -v.eval(figure)?,
            Value::Binary(a, op, b) => {
                let (a, b) = (a.eval(figure)?, b.eval(figure)?);
                match op {
                    b'+' => a + b,
                    b'-' => a - b,
                    b'*' => a * b,
                    // Two counts of nothing are alike.
                    _ if a == 0.0 && b == 0.0 => 1.0,
                    _ => a / b,
                }
            }
            Value::Call(function, args) => {
                let values = args.iter().map(|a| a.eval(figure)).collect::<Option<Vec<f64>>>()?;
                match function {
                    Function::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
                    Function::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                    Function::Mean => values.iter().sum::<f64>() / values.len() as f64,
                    Function::Abs => values[0].abs(),
                }
            }
        };
        (!value.is_nan()).then_some(value)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.space();
        let there = self.rest().starts_with(token);
        if there {
            self.at += token.len();
        }
        there
    }

    fn word(&mut self, word: &str) -> bool {
        self.space();
        let there = self.rest().strip_prefix(word).is_some_and(|r| !r.starts_with(is_name));
        if there {
            self.at += word.len();
        }
        there
    }

    fn wrong(&self, expected: &str) -> ExprError {
        let found: String = self.rest().chars().take(12).collect();
        let found = if found.is_empty() { "the end".to_string() } else { format!("`{found}`") };
        ExprError { at: self.at, why: format!("expected {expected}, found {found}") }
    }

    fn relation(&mut self) -> Option<Relation> {
        for (token, relation) in [
            ("<=", Relation::LessEqual),
            (">=", Relation::GreaterEqual),
            ("<", Relation::Less),
            (">", Relation::Greater),
        ] {
            if self.take(token) {
                return Some(relation);
            }
        }
        None
    }

    fn sum(&mut self) -> Result<Value, ExprError> {
        let mut left = self.product()?;
        loop {
            let op = if self.take("+") {
                b'+'
            } else if self.take("-") {
                b'-'
            } else {
                return Ok(left);
            };
            left = Value::Binary(Box::new(left), op, Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Value, ExprError> {
        let mut left = self.atom()?;
        loop {
            let op = if self.take("*") {
                b'*'
            } else if self.take("/") {
                b'/'
            } else {
                return Ok(left);
            };
            left = Value::Binary(Box::new(left), op, Box::new(self.atom()?));
        }
    }

    fn atom(&mut self) -> Result<Value, ExprError> {
        if self.take("-") {
            return Ok(Value::Negative(Box::new(self.atom()?)));
        }
        if self.take("(") {
            let inner = self.sum()?;
            return self.close(inner);
        }
        self.space();
        let rest = self.rest();
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            // A point belongs to the number only if a digit follows: `1..2` is a range.
            let mut end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            if let Some(fraction) =
                rest[end..].strip_prefix('.').filter(|f| f.starts_with(|c: char| c.is_ascii_digit()))
            {
                let digits = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
                end += 1 + digits;
            }
            let number = rest[..end].parse().map_err(|_| self.wrong("a number"))?;
            self.at += end;
            return Ok(Value::Number(number));
        }
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.wrong("a figure, a number or `(`"));
        }
        let name = &rest[..end];
        self.at += end;
        let function = match name {
            "min" => Function::Min,
            "max" => Function::Max,
            "mean" => Function::Mean,
            "abs" => Function::Abs,
            _ => return Ok(Value::Figure(name.to_string())),
        };
        if !self.take("(") {
            return Err(self.wrong("`(`"));
        }
        let mut args = vec![self.sum()?];
        while self.take(",") {
            args.push(self.sum()?);
        }
        self.close(Value::Call(function, args))
    }

    fn close(&mut self, value: Value) -> Result<Value, ExprError> {
        if self.take(")") { Ok(value) } else { Err(self.wrong("`)`")) }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(text: &str) -> Option<Outcome> {
        let figures = |name: &str| match name {
            "a" => Some(48.0),
            "b" => Some(33.0),
            "c" => Some(30.0),
            "zero" => Some(0.0),
            _ => None,
        };
        Condition::parse(text).unwrap().test(&figures)
    }

    fn holds(text: &str) -> Option<bool> {
        test(text).map(|o| o.holds)
    }

    #[test]
    fn chains_and_ranges_are_compared_as_written() {
        assert_eq!(holds("a > b > c"), Some(true));
        assert_eq!(holds("a > c > b"), Some(false));
        assert_eq!(holds("a / max(b, c) in 1.2..1.8"), Some(true));
        assert_eq!(holds("a / c in 1..1.5"), Some(false));
        assert_eq!(holds("abs(b - a) <= 0.5 * mean(a, b, c)"), Some(true));
        assert_eq!(holds("(a - b) * 2 - -c >= 60"), Some(true));
        assert_eq!(test("a / b in 1..2").unwrap().value, Some(48.0 / 33.0));
        assert_eq!(test("a > b").unwrap().value, None);
    }

    #[test]
    fn what_is_not_known_is_neither_true_nor_false() {
        assert_eq!(holds("a > missing"), None);
        assert_eq!(holds("zero / zero in 1..1"), Some(true), "nothing against nothing");
        assert_eq!(holds("a / zero > 5"), Some(true), "something against nothing");
    }

    #[test]
    fn mistakes_have_a_place() {
        let wrong = |text: &str| Condition::parse(text).unwrap_err().to_string();
        assert_eq!(wrong("a / b"), "at 6: expected `<`, `<=`, `>`, `>=` or `in`, found the end");
        assert_eq!(wrong("a in 1-2"), "at 9: expected `..` between the ends of the range, found the end");
        assert_eq!(wrong("a > b)"), "at 6: expected the end of the condition, found `)`");
        assert_eq!(wrong("max a > 1"), "at 5: expected `(`, found `a > 1`");
    }

    #[test]
    fn the_figures_of_a_condition_are_known() {
        let c = Condition::parse("x / max(y, 2) in low..z").unwrap();
        assert_eq!(c.figures().into_iter().collect::<Vec<_>>(), ["low", "x", "y", "z"]);
    }
}
