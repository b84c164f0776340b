//! A vmstat command line inside of a log: what it says about the rows that follow.

use crate::num::dec_i64;

/// Options of a `vmstat ...` command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// Seconds between rows.
    pub(super) delay_s: Option<i64>,
    /// `-S`: bytes per memory unit.
    pub(super) unit_bytes: Option<i64>,
    /// `-y`: no row of averages since boot.
    pub(super) no_average: bool,
}

/// Read a line that ends in a vmstat command, whatever prompt stands before it.
pub(super) fn command(line: &[u8]) -> Option<Command> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    words.find(|w| *w == b"vmstat" || w.ends_with(b"/vmstat") || w.ends_with(b"#vmstat") || w.ends_with(b"$vmstat"))?;
    let mut command = Command::default();
    let mut unit_next = false;
    for word in words {
        if std::mem::take(&mut unit_next) {
            command.unit_bytes = Some(unit(word)?);
        } else if let Some(letters) = word.strip_prefix(b"-") {
            command.no_average |= letters.contains(&b'y');
            if let Some(at) = letters.iter().position(|b| *b == b'S') {
                match &letters[at + 1..] {
                    b"" => unit_next = true,
                    rest => command.unit_bytes = Some(unit(&rest[..1])?),
                }
            }
        } else if let Some(number) = dec_i64(word) {
            command.delay_s = command.delay_s.or(Some(number));
        } else if matches!(word, b"|" | b">" | b">>" | b"&" | b"output:") {
            break;
        } else {
            return None;
        }
    }
    Some(command)
}

fn unit(word: &[u8]) -> Option<i64> {
    Some(match word {
        b"k" => 1000,
        b"K" => 1024,
        b"m" => 1_000_000,
        b"M" => 1 << 20,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let c = |delay_s, unit_bytes, no_average| Some(Command { delay_s, unit_bytes, no_average });
        let cases: &[(&str, Option<Command>)] = &[
            ("vmstat", c(None, None, false)),
            ("[root@hostabc /root]# vmstat 5", c(Some(5), None, false)),
            ("$ vmstat -S M -y 1 2", c(Some(1), Some(1 << 20), true)),
            ("vmstat 2 -wSM", c(Some(2), Some(1 << 20), false)),
            ("~ vmstat -Sk 2 3 > log", c(Some(2), Some(1000), false)),
            ("Here's the #vmstat 2 output:", c(Some(2), None, false)),
            ("vmstat says nothing", None),
            ("hello", None),
        ];
        for (line, expected) in cases {
            assert_eq!(command(line.as_bytes()), *expected, "{line}");
        }
    }
}
