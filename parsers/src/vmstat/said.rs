//! What stands between the rows of vmstat without being a command of it: dates, prompts, the end of a run.

/// The line over the header: `procs memory swap io system cpu`, with or without dashes, or a part of it that a mailer put
/// on a line of its own.
pub(super) fn is_banner(line: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    if has(b"procs") && has(b"memory") && has(b"swap") {
        return true;
    }
    let mut named = false;
    let only_titles = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).all(|word| {
        let start = word.iter().take_while(|b| **b == b'-').count();
        let end = word.iter().rposition(|b| *b != b'-').map_or(start, |at| at + 1);
        let title = &word[start.min(end)..end];
        named |= !title.is_empty();
        matches!(title, b"" | b"procs" | b"memory" | b"swap" | b"io" | b"system" | b"cpu" | b"timestamp")
    });
    only_titles && named
}

/// The output of `date`: `Thu Feb 11 10:00:01 IST 2016`.
pub(super) fn is_date(line: &[u8]) -> bool {
    const DAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
    DAYS.iter().any(|d| line.starts_with(d)) && line.iter().filter(|b| **b == b':').count() == 2
}

/// The end of a run on a terminal: the key that ended it, the shell's word about it, its prompt.
pub(super) fn is_terminal(line: &[u8]) -> bool {
    const SAID: [&[u8]; 5] = [b"Terminated", b"Killed", b"Script done", b"exit", b"logout"];
    let key = matches!(line, [b'^', b'C' | b'D' | b'Z' | b'\\', ..]);
    let job = matches!(line, [b'[', b'1'..=b'9', b']', b'+' | b'-' | b' ', ..]);
    key || job || SAID.iter().any(|s| line.starts_with(s) && line.len() <= s.len() + 60) || is_prompt(line)
}

/// `$`, `$ exit`, `user@host:~$ exit`, `[root@host ~]# `, `bash-5.2$`.
fn is_prompt(line: &[u8]) -> bool {
    if matches!(line, b"$" | b"#" | b"%" | b">" | [b'$', b' ', ..]) {
        return true;
    }
    let Some(sign) = line.iter().position(|b| matches!(b, b'$' | b'#' | b'%' | b'>')) else { return false };
    let (before, after) = (&line[..sign], &line[sign + 1..]);
    if !(after.is_empty() || after[0] == b' ') || before.len() > 100 {
        return false;
    }
    let bracket = before.starts_with(b"[") && before.ends_with(b"]");
    let one_word = !before.is_empty() && !before.contains(&b' ');
    let user = one_word && before.contains(&b'@');
    let shell = one_word && [&b"bash-"[..], b"sh-", b"zsh-"].iter().any(|s| before.starts_with(s));
    bracket || user || shell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_banner() {
        for line in [
            "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----",
            "   procs                      memory    swap          io     system         cpu",
            "cpu",
            "------cpu----- -----timestamp-----",
        ] {
            assert!(is_banner(line.as_bytes()), "{line}");
        }
        for line in ["", "-----", "the cpu was idle", "memory 12"] {
            assert!(!is_banner(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn prompts_and_other_ends() {
        for line in [
            "^C",
            "^C[root@host ~]#",
            "[root@host ~]#",
            "$ exit",
            "user@host:~$",
            "user@host:~/a$ ls -l",
            "bash-5.2#",
            "[1]+  Stopped                 vmstat 1",
            "Terminated",
        ] {
            assert!(is_terminal(line.as_bytes()), "{line}");
        }
        for line in [
            "aa:",
            "costs 5 $ a day",
            "see #12",
            "",
            "[a] b",
            "vmstat 5",
            "exits are what this long line of prose is all about, and it does not end soon",
        ] {
            assert!(!is_terminal(line.as_bytes()), "{line}");
        }
    }
}
