//! strace: system calls of one or many threads.
//!
//! Line grammar after strace 6.1 and its forms back to 4.x. A call may be cut in two (`<unfinished ...>` and
//! `<... name resumed>`) when another thread makes one meanwhile; the halves are joined by thread. Events come out in the
//! order in which the calls end; per thread that is the order in which they began.

mod calls;
mod clock;
mod columns;
mod lex;
mod prefix;
mod result;
mod tasks;
mod text;

use kreplay_traces::event::{EventSink, SyscallRow};

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::lines::{Line, LineParser, Lines};
use crate::num::unquote;
use calls::ResultRole;
use clock::Clock;
use columns::Columns;
use prefix::{Prefix, prefix};
use result::{BadResult, CallResult};
use tasks::Tasks;

/// The format.
pub struct Strace;

impl Format for Strace {
    fn id(&self) -> &'static str {
        "strace"
    }

    fn about(&self) -> &'static str {
        "strace output (-f -ttt -T -y best; any options)"
    }

    fn sniff(&self, head: Head<'_>) -> Score {
        score_lines(StraceLines::new(&ParseOptions::default()), head)
    }

    fn parser(&self, options: &ParseOptions) -> Box<dyn Parser> {
        Box::new(Lines::new(StraceLines::new(options)))
    }
}

static NOT_A_CALL: Reason = Reason {
    code: "strace-not-a-call",
    expected: "a call `name(arguments) = result`, a signal `--- SIG... ---` or an exit `+++ ... +++`",
    hint: "output of the traced program may be mixed in: record with -o FILE",
};
static NO_END: Reason = Reason {
    code: "strace-no-end",
    expected: "`)` after the arguments",
    hint: "the line was cut, or output of the traced program was printed into it: record with -o FILE",
};
static NO_RESULT: Reason = Reason {
    code: "strace-no-result",
    expected: "`= result` after the arguments",
    hint: "the line was cut, or this is the log of another tool",
};
static BAD_VALUE: Reason = Reason {
    code: "strace-bad-result",
    expected: "a number, an address or `?` after `=`",
    hint: "the line was cut, or this is the log of another tool",
};

/// Parser of strace lines.
struct StraceLines {
    clock: Clock,
    tasks: Tasks,
    columns: Columns,
    default_tid: i64,
    /// Lines without a thread id were seen: on a terminal the first thread has none until there is a second.
    bare: bool,
    joined: Vec<u8>,
    /// A call without an end: output of the traced program may have been printed into it.
    cut: Option<Cut>,
    /// Inside of a `-c`/`-C` table.
    summary: bool,
}

/// Lines that a cut call may span: program output is mostly one.
const CUT_LINES: usize = 16;

/// A held line and what followed it.
struct Cut {
    text: Vec<u8>,
    number: i64,
    offset: i64,
    paren: usize,
    body: usize,
    start: Start,
    reason: &'static Reason,
    at: usize,
    more: Vec<Vec<u8>>,
}

/// Where and when a call began.
#[derive(Clone, Copy)]
struct Start {
    tid: i64,
    time_ns: i64,
    line: i64,
}

impl StraceLines {
    fn new(options: &ParseOptions) -> Self {
        Self {
            clock: Clock::new(options),
            tasks: Tasks::default(),
            columns: Columns::default(),
            default_tid: options.tid.unwrap_or(0),
            bare: false,
            joined: Vec::new(),
            cut: None,
            summary: false,
        }
    }

    /// A whole call: `body` from its name on.
    fn call(
        &mut self,
        body: &[u8],
        paren: usize,
        start: Start,
        joined_dur_ns: Option<i64>,
        out: &mut dyn EventSink,
    ) -> Result<(), (&'static Reason, usize)> {
        let text = &body[paren + 1..];
        let mut list = lex::arg_list(text);
        let parsed = if list.closed { result::result(&text[list.end + 1..]) } else { Err(BadResult::NoEquals(0)) };
        let result = match parsed {
            Ok(result) => result,
            // A line that ends between two arguments was cut: what looks like a result in it is program output.
            Err(problem) if !list.closed && !list.broken => {
                return Err(self.no_end(problem, false, paren + 1 + list.end));
            }
            // The structure misled (an unescaped `>` or quote in a name): the last `) = ` of the line decides.
            Err(problem) => match last_end(text).map(|end| (end, result::result(&text[end + 1..]))) {
                Some((end, Ok(result))) if !list.closed || end != list.end => {
                    list.end = end;
                    result
                }
                _ => return Err(self.no_end(problem, list.closed, paren + 1 + list.end)),
            },
        };
        let name = &body[..paren];
        self.emit(name, &text[..list.end], &list.args, &result, start, joined_dur_ns, false, out);
        Ok(())
    }

    fn no_end(&self, problem: BadResult, closed: bool, end: usize) -> (&'static Reason, usize) {
        match problem {
            _ if !closed => (&NO_END, end),
            BadResult::NoEquals(at) => (&NO_RESULT, end + 1 + at),
            BadResult::NoValue(at) => (&BAD_VALUE, end + 1 + at),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one row's parts, from two callers in this file")]
    fn emit(
        &mut self,
        name: &[u8],
        args_text: &[u8],
        args: &lex::Args,
        result: &CallResult<'_>,
        start: Start,
        joined_dur_ns: Option<i64>,
        unfinished: bool,
        out: &mut dyn EventSink,
    ) {
        let known = calls::find(name);
        let call = known.map(|k| k.1);
        self.columns.fill(call, args_text, args, result);
        // Names are ASCII: `call_paren` lets nothing else through.
        let name = known.map_or_else(|| std::str::from_utf8(name).unwrap_or("?"), |k| k.0);
        match call.map(|c| c.result) {
            Some(ResultRole::Child) => {
                if let Some(child) = result.ret.filter(|c| *c > 0) {
                    self.tasks.born(child, start.tid);
                }
            }
            Some(ResultRole::Exec) if result.ret == Some(0) => {
                if let Some(path) = self.columns.path() {
                    self.tasks.named(start.tid, path.rsplit('/').next().unwrap_or(path));
                }
            }
            _ => {}
        }
        let c = &self.columns;
        out.syscall(&SyscallRow {
            time_ns: start.time_ns,
            tid: start.tid,
            call: name,
            ret: result.ret,
            errno: result.errno.and_then(|e| std::str::from_utf8(e).ok()),
            dur_ns: result.dur_ns.or(joined_dur_ns),
            fd: c.fd,
            fd2: c.fd2,
            path: c.path(),
            path2: c.path2(),
            offset_bytes: c.offset,
            len_bytes: c.len,
            addr: c.addr,
            flags: c.flags(),
            args: c.args(),
            unfinished,
            line: start.line,
        });
    }

    /// Emit the call that a thread had begun and will not end.
    fn abandon(&mut self, tid: i64, out: &mut dyn EventSink) {
        let Some(open) = self.tasks.take_open(tid) else { return };
        let text = std::mem::take(self.tasks.text_of(tid));
        let args = lex::arg_list(&text[open.name_len..]);
        let start = Start { tid, time_ns: open.time_ns, line: open.line };
        let (name, rest) = text.split_at(open.name_len);
        self.emit(name, rest, &args.args, &CallResult::default(), start, None, true, out);
        *self.tasks.text_of(tid) = text;
    }

    fn resumed(
        &mut self,
        body: &[u8],
        mut start: Start,
        line: &Line<'_>,
        body_at: usize,
        out: &mut dyn EventSink,
        diag: &mut Diagnostics,
    ) -> Outcome {
        let Some((name, rest)) = resumed_parts(body) else {
            return Outcome::Reject(&NOT_A_CALL, Some(body_at));
        };
        // The thread may have been printed without its id in one of the halves.
        if !self.tasks.has_open(start.tid)
            && let Some(tid) = self.tasks.only_open(name).filter(|tid| *tid == 0 || start.tid == self.default_tid)
        {
            start.tid = tid;
        }
        let open = self.tasks.take_open(start.tid);
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        let matching = open.filter(|o| &self.tasks.text_of(start.tid)[..o.name_len] == name);
        let outcome = match matching {
            Some(open) => {
                let text = self.tasks.text_of(start.tid);
                joined.extend_from_slice(&text[..open.name_len]);
                joined.push(b'(');
                joined.extend_from_slice(&text[open.name_len..]);
                joined.extend_from_slice(rest);
                let dur = self.clock.fine().then_some(start.time_ns - open.time_ns).filter(|d| *d >= 0);
                let began = Start { tid: start.tid, time_ns: open.time_ns, line: open.line };
                match self.call(&joined, open.name_len, began, dur, out) {
                    Ok(()) => Outcome::Note("resumed"),
                    Err((reason, _)) => {
                        // The first half was counted as an event: it stays one, without a result.
                        self.tasks.reopen(start.tid, open);
                        self.abandon(start.tid, out);
                        Outcome::Reject(reason, Some(body_at))
                    }
                }
            }
            None => {
                if let Some(open) = open {
                    diag.warn("strace-resumed-other", Some(line.number), || {
                        format!("thread {} resumes another call than it had begun", start.tid)
                    });
                    self.tasks.reopen(start.tid, open);
                    self.abandon(start.tid, out);
                }
                diag.warn("strace-orphan-resumed", Some(line.number), || {
                    "a call resumes whose beginning is not in the log; its start is taken as end minus duration".into()
                });
                joined.extend_from_slice(name);
                joined.push(b'(');
                joined.extend_from_slice(rest);
                match self.call(&joined, name.len(), start, None, &mut Orphan { end_ns: start.time_ns, out }) {
                    Ok(()) => Outcome::Event,
                    Err((reason, at)) => {
                        let shift = body.len().saturating_sub(rest.len()) as i64 - name.len() as i64 - 1;
                        Outcome::Reject(reason, Some((body_at as i64 + at as i64 + shift).max(0) as usize))
                    }
                }
            }
        };
        self.joined = joined;
        outcome
    }
}

impl LineParser for StraceLines {
    fn line(&mut self, line: &Line<'_>, out: &mut dyn EventSink, diag: &mut Diagnostics) -> Outcome {
        let bytes = unquote(line.bytes);
        let shift = line.bytes.len() - bytes.len();
        if self.cut.is_some() {
            if let Some(outcome) = self.mend(bytes, out, diag) {
                return outcome;
            }
            self.give_up(out, diag);
        }
        let p = prefix(bytes);
        let body = &bytes[p.body..];
        let Some(&first) = body.first() else {
            self.summary = false;
            return Outcome::Note("blank");
        };
        if let Some(kind) = remark(line.bytes, body) {
            self.without_message(body);
            return Outcome::Note(kind);
        }
        if (first == b'%' || self.summary || body.starts_with(b"time "))
            && let Some(outcome) = self.table(bytes.trim_ascii())
        {
            return outcome;
        }
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'?' => {
                let Some(paren) = call_paren(body) else { return Outcome::Reject(&NOT_A_CALL, Some(shift + p.body)) };
                let start = self.start(&p, line, diag);
                self.abandon(start.tid, out);
                if let Some(end) = unfinished_end(body) {
                    self.tasks.open(start.tid, &body[..paren], &body[paren + 1..end], start.time_ns, line.number);
                    return Outcome::Event;
                }
                match self.call(body, paren, start, None, out) {
                    Ok(()) => Outcome::Event,
                    Err((reason, at)) => {
                        let text = self.without_message(body).to_vec();
                        self.cut = Some(Cut {
                            text,
                            number: line.number,
                            offset: line.offset,
                            paren,
                            body: shift + p.body,
                            start,
                            reason,
                            at,
                            more: Vec::new(),
                        });
                        Outcome::Later
                    }
                }
            }
            b'<' => {
                let start = self.start(&p, line, diag);
                self.resumed(body, start, line, shift + p.body, out, diag)
            }
            b'-' if body.starts_with(b"--- ") => {
                self.start(&p, line, diag);
                Outcome::Note("signal")
            }
            b'+' if body.starts_with(b"+++ ") => {
                let start = self.start(&p, line, diag);
                self.abandon(start.tid, out);
                Outcome::Note("exit")
            }
            _ => Outcome::Reject(&NOT_A_CALL, Some(shift + p.body)),
        }
    }

    fn end(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        self.give_up(out, diag);
        for tid in self.tasks.open_tids() {
            self.abandon(tid, out);
        }
        self.tasks.emit(out);
        self.clock.report(diag);
    }
}

impl StraceLines {
    /// The thread whose lines had no id is this one: it is new, but nobody made it.
    #[cold]
    fn identify(&mut self, tid: i64, line: i64, diag: &mut Diagnostics) {
        self.tasks.identify(0, tid);
        self.default_tid = tid;
        diag.warn("strace-first-thread", Some(line), || {
            format!("calls before this line without a thread id (0) are those of thread {tid}; record with -o FILE")
        });
    }

    /// strace's own message at the end of a cut line, `... Process N attached`: the line without it.
    fn without_message<'b>(&mut self, body: &'b [u8]) -> &'b [u8] {
        let Some(at) = memchr::memmem::rfind(body, b"Process ") else { return body };
        let Some(tid) = body[at + 8..].strip_suffix(b" attached").and_then(crate::num::dec_i64) else { return body };
        self.tasks.seen(tid);
        let head = &body[..at];
        head.strip_suffix(b"strace: ").unwrap_or(head)
    }

    /// Try this line as the rest of a held call. A terminal shows `write(1, "done\n", 5done` and then `) = 5`.
    fn mend(&mut self, line: &[u8], out: &mut dyn EventSink, diag: &mut Diagnostics) -> Option<Outcome> {
        let cut = self.cut.as_mut()?;
        let p = prefix(line);
        let own = call_paren(&line[p.body..]).is_some() || line[p.body..].starts_with(b"<... ");
        // A line that is a call by itself is none of the program's output; neither is one with a prefix.
        if own || (p.stamp.is_some() && cut.text.first() != line.first()) || cut.more.len() == CUT_LINES {
            return None;
        }
        if line.trim_ascii() == b"<unfinished ...>" {
            let cut = self.cut.take()?;
            let (name, args) = (&cut.text[..cut.paren], &cut.text[cut.paren + 1..]);
            self.tasks.open(cut.start.tid, name, args, cut.start.time_ns, cut.number);
            self.settle_cut(&cut, Outcome::Event, out, diag);
            return Some(Outcome::Note("continuation"));
        }
        let end = last_end(line).filter(|end| result::result(&line[end + 1..]).is_ok());
        let Some(end) = end else {
            cut.more.push(line.to_vec());
            return Some(Outcome::Later);
        };
        let cut = self.cut.take()?;
        let mut joined = cut.text.clone();
        for piece in &cut.more {
            joined.push(b'\n');
            joined.extend_from_slice(piece);
        }
        joined.push(b'\n');
        joined.extend_from_slice(&line[..end]);
        joined.extend_from_slice(&line[end..]);
        let done = self.call(&joined, cut.paren, cut.start, None, out);
        let outcome = match done {
            Ok(()) => Outcome::Event,
            Err(_) => Outcome::Reject(cut.reason, Some(cut.body + cut.at)),
        };
        self.settle_cut(&cut, outcome, out, diag);
        diag.warn("program-output", Some(cut.number), || {
            "output of the traced program was printed into a call; the call was put together again".into()
        });
        Some(Outcome::Note("program-output"))
    }

    /// Decide a held call's own line; the lines after it were the program's output.
    fn settle_cut(&self, cut: &Cut, outcome: Outcome, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        diag.settle(outcome, &Line { bytes: &cut.text, number: cut.number, offset: cut.offset }, out);
        for (i, piece) in cut.more.iter().enumerate() {
            let line = Line { bytes: piece, number: cut.number + 1 + i as i64, offset: cut.offset };
            diag.settle(Outcome::Note("program-output"), &line, out);
        }
    }

    /// A held call has no end: it is a reject, and so is what followed it.
    fn give_up(&mut self, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let Some(cut) = self.cut.take() else { return };
        let line = Line { bytes: &cut.text, number: cut.number, offset: cut.offset };
        diag.settle(Outcome::Reject(cut.reason, Some(cut.body + cut.at)), &line, out);
        let mut offset = cut.offset + cut.text.len() as i64;
        for (i, piece) in cut.more.iter().enumerate() {
            let line = Line { bytes: piece, number: cut.number + 1 + i as i64, offset };
            let outcome = match piece.trim_ascii() {
                b"" => Outcome::Note("blank"),
                text => remark(piece, text).map_or(Outcome::Reject(&NOT_A_CALL, None), Outcome::Note),
            };
            diag.settle(outcome, &line, out);
            offset += piece.len() as i64 + 1;
        }
    }

    /// Lines of a summary table (`-c`, `-C`): header, rule, rows, total.
    fn table(&mut self, line: &[u8]) -> Option<Outcome> {
        let is_header = memchr::memmem::find(line, b"usecs/call").is_some();
        if is_header {
            self.summary = true;
            return Some(Outcome::Note("summary"));
        }
        let in_table = self.summary && line.iter().all(|b| b.is_ascii_alphanumeric() || b" .-_%".contains(b));
        self.summary &= in_table;
        in_table.then_some(Outcome::Note("summary"))
    }

    #[inline]
    fn start(&mut self, p: &Prefix<'_>, line: &Line<'_>, diag: &mut Diagnostics) -> Start {
        let tid = match p.tid {
            None => {
                self.bare = true;
                self.default_tid
            }
            Some(tid) => {
                if self.bare && self.default_tid == 0 && !self.tasks.knows(tid) {
                    self.identify(tid, line.number, diag);
                }
                tid
            }
        };
        let task = self.tasks.seen(tid);
        if let Some(comm) = p.comm {
            task.rename(comm);
        }
        let time_ns = self.clock.read(p, line.number, &mut task.last_ns, diag);
        Start { tid, time_ns, line: line.number }
    }
}

/// A sink that moves a resumed call without a beginning to where it must have begun.
struct Orphan<'a> {
    end_ns: i64,
    out: &'a mut dyn EventSink,
}

impl EventSink for Orphan<'_> {
    fn syscall(&mut self, row: &SyscallRow<'_>) {
        self.out.syscall(&SyscallRow { time_ns: self.end_ns - row.dur_ns.unwrap_or(0), ..*row });
    }
    fn block(&mut self, row: &kreplay_traces::event::BlockRow<'_>) {
        self.out.block(row);
    }
    fn vmstat(&mut self, row: &kreplay_traces::event::VmstatRow) {
        self.out.vmstat(row);
    }
    fn fault(&mut self, row: &kreplay_traces::event::FaultRow) {
        self.out.fault(row);
    }
    fn process(&mut self, row: &kreplay_traces::event::ProcessRow<'_>) {
        self.out.process(row);
    }
    fn file(&mut self, row: &kreplay_traces::event::FileRow<'_>) {
        self.out.file(row);
    }
    fn reject(&mut self, row: &kreplay_traces::event::RejectRow<'_>) {
        self.out.reject(row);
    }
}

/// Lines that strace itself says and that are no call.
fn remark(line: &[u8], body: &[u8]) -> Option<&'static str> {
    let word = line.trim_ascii();
    if word.starts_with(b"> ") && word.ends_with(b"]") && memchr::memmem::find(word, b" [0x").is_some() {
        return Some("stack");
    }
    match body[0] {
        b's' if word.starts_with(b"strace: ") => Some("strace-message"),
        b'P' if body.starts_with(b"Process ") => {
            let said = [&b" attached"[..], b" detached", b" suspended", b" resumed", b" terminated"];
            said.iter().any(|s| memchr::memmem::find(body, s).is_some()).then_some("strace-message")
        }
        b'[' if body.starts_with(b"[ Process PID=") => Some("strace-message"),
        _ => None,
    }
}

/// Index of the parenthesis after a call's name, if the body begins like a call.
#[inline]
fn call_paren(body: &[u8]) -> Option<usize> {
    let end = body.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'?')))?;
    (end > 0 && body[end] == b'(').then_some(end)
}

/// Where the arguments of an unfinished call end, or `None` for a whole one.
#[inline]
fn unfinished_end(body: &[u8]) -> Option<usize> {
    let trimmed = body.trim_ascii_end();
    if !trimmed.ends_with(b">") || trimmed.len() < 16 {
        return None;
    }
    if trimmed.ends_with(b"<unfinished ...>") {
        return Some(trimmed.len() - 16);
    }
    if trimmed.ends_with(b"<detached ...>") {
        return Some(trimmed.len() - 14);
    }
    if trimmed.ends_with(b" ...>") {
        let open = memchr::memmem::rfind(trimmed, b"<unfinished #")?;
        let number = &trimmed[open + 13..trimmed.len() - 5];
        return number.iter().all(u8::is_ascii_digit).then_some(open);
    }
    None
}

/// `<... name resumed>rest`, also `<... name resumed> rest` and `<... name resumed #N>rest`: name and rest.
fn resumed_parts(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = body.strip_prefix(b"<... ")?;
    let name_end = memchr::memchr(b' ', inner)?;
    let tail = inner[name_end..].strip_prefix(b" resumed")?;
    let close = memchr::memchr(b'>', tail)?;
    let mark = &tail[..close];
    let fits = mark.is_empty() || mark.strip_prefix(b" #").is_some_and(|n| n.iter().all(u8::is_ascii_digit));
    fits.then_some((&inner[..name_end], &tail[close + 1..]))
}

/// Index of the parenthesis of the last `) = ` (any blanks) in the text.
fn last_end(text: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'=', text).find_map(|at| {
        let before = text[..at].trim_ascii_end();
        (before.len() < at && before.ends_with(b")")).then(|| before.len() - 1)
    })
}

#[cfg(test)]
mod tests;
