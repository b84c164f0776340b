//! strace: system calls of one or many threads.
//!
//! Line grammar after strace 6.1 and its forms back to 4.x. A call may be cut in two (`<unfinished ...>` and
//! `<... name resumed>`) when another thread makes one meanwhile; the halves are joined by thread. Events come out in the
//! order in which the calls end; per thread that is the order in which they began.

mod body;
mod calls;
mod clock;
mod columns;
mod lex;
mod mend;
mod prefix;
mod result;
mod tasks;
mod text;

use kreplay_traces::event::{EventSink, SyscallRow};

use crate::diag::{Diagnostics, Outcome, Reason};
use crate::format::{Format, Head, ParseOptions, Parser, Score, score_lines};
use crate::lines::{Line, LineParser, Lines};
use crate::num::unquote;
use body::{call_paren, last_end, moved_end, remark, resumed_parts, superseded_by, unfinished_end};
use calls::ResultRole;
use clock::Clock;
use columns::Columns;
use mend::Cut;
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
    /// The file of one thread (`-ff`): a thread that took over its id had begun its `execve` in a file of its own.
    one_thread: bool,
    taken_over: bool,
    /// Inside of a `-c`/`-C` table.
    summary: bool,
}

/// Where and when a call began.
#[derive(Clone, Copy)]
struct Start {
    tid: i64,
    time_ns: i64,
    line: i64,
    /// The time is that of the call's end: its beginning is not in the log.
    is_end: bool,
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
            one_thread: options.tid.is_some(),
            taken_over: false,
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
            time_ns: start.time_ns.saturating_sub(if start.is_end { result.dur_ns.unwrap_or(0) } else { 0 }),
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
        let start = Start { tid: open.tid, time_ns: open.time_ns, line: open.line, is_end: false };
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
            && (start.tid == self.default_tid || self.tasks.knows(0))
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
                let dur = self.clock.fine().then_some(start.time_ns.saturating_sub(open.time_ns)).filter(|d| *d >= 0);
                let began = Start { tid: open.tid, time_ns: open.time_ns, line: open.line, is_end: false };
                match self.call(&joined, open.name_len, began, dur, out) {
                    Ok(()) => {
                        if open.tid != start.tid {
                            self.tasks.name_as(start.tid, open.tid);
                        }
                        Outcome::Note("resumed")
                    }
                    Err((reason, _)) => {
                        // The first half was counted as an event: it stays one, without a result.
                        self.tasks.reopen(start.tid, open);
                        self.abandon(start.tid, out);
                        Outcome::Reject(reason, Some(body_at))
                    }
                }
            }
            // The file of the thread that began it has the whole row.
            None if open.is_none() && std::mem::take(&mut self.taken_over) && name.starts_with(b"execve") => {
                Outcome::Note("resumed")
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
                match self.call(&joined, name.len(), Start { is_end: true, ..start }, None, out) {
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
        if self.tasks.full() {
            self.make_room(line.number, out, diag);
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
                if let Some(end) = moved_end(body) {
                    let text = &body[paren + 1..end.max(paren + 1)];
                    let args = lex::arg_list(text);
                    let done = CallResult { ret: Some(0), ..CallResult::default() };
                    self.emit(&body[..paren], text, &args.args, &done, start, None, false, out);
                    return Outcome::Event;
                }
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
                if let Some(thread) = superseded_by(body) {
                    let joined = self.tasks.take_over(start.tid, thread);
                    self.taken_over = self.one_thread && !joined;
                }
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

    /// Put away the threads that were silent for longest, with the calls that they have open.
    #[cold]
    fn make_room(&mut self, line: i64, out: &mut dyn EventSink, diag: &mut Diagnostics) {
        let mut oldest = self.tasks.oldest();
        // The thread of lines without an id has a place of its own.
        oldest.retain(|tid| *tid != self.default_tid);
        if oldest.is_empty() {
            return;
        }
        let mut unfinished = 0u64;
        for tid in &oldest {
            unfinished += u64::from(self.tasks.has_open(*tid));
            self.abandon(*tid, out);
        }
        self.tasks.forget(&oldest, out);
        diag.warn("strace-many-threads", Some(line), || {
            format!(
                "more threads, or begun calls, than are kept at once: {} threads that were silent for longest were put \
                 away, {unfinished} of them within a call; if that call ends later, it counts as one whose beginning is \
                 not in the log",
                oldest.len()
            )
        });
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
        Start { tid, time_ns, line: line.number, is_end: false }
    }
}

#[cfg(test)]
mod tests;
