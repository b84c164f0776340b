//! Sleeping and waiting for what the model does not have.

use kreplay_traces::event::SyscallRow;
use kreplay_traces::units::Nanos;

use super::fd::has;
use super::{World, args};
use crate::compile::link::AbsoluteSleep;
use crate::program::Op;

impl World<'_> {
    /// Calls that wait. Returns whether it was one.
    pub(super) fn wait_call(&mut self, r: &SyscallRow<'_>) -> bool {
        if matches!(r.call, "nanosleep" | "clock_nanosleep" | "clock_nanosleep_time64") {
            self.sleep(r);
            return true;
        }
        if is_wait(r.call) {
            self.external(r);
            return true;
        }
        false
    }

    fn sleep(&mut self, r: &SyscallRow<'_>) {
        if has(r, "TIMER_ABSTIME") {
            // Until a point of the recorded clock, which the replay does not have.
            self.external(r);
            if let (Some(until), Some(out)) = (args::timespec(r.args), &mut self.out)
                && let Some((task, op)) = out.emitter.last_op()
                && r.ret == Some(0)
            {
                let until_ns = i64::try_from(until.get()).unwrap_or(i64::MAX);
                out.absolute.push(AbsoluteSleep { task, op, until_ns });
            }
            return;
        }
        let recorded = r.dur_ns.and_then(|d| u64::try_from(d).ok()).map(Nanos);
        match args::timespec(r.args).or(recorded) {
            Some(time) => self.emit(Op::Sleep { time }),
            None => self.external(r),
        }
    }
}

/// Calls that block on an event from outside of the model.
pub(super) fn is_wait(call: &str) -> bool {
    matches!(
        call,
        "poll"
            | "ppoll"
            | "ppoll_time64"
            | "select"
            | "_newselect"
            | "pselect6"
            | "pselect6_time64"
            | "epoll_wait"
            | "epoll_pwait"
            | "epoll_pwait2"
            | "futex"
            | "futex_time64"
            | "futex_wait"
            | "futex_waitv"
            | "recv"
            | "recvfrom"
            | "recvmsg"
            | "recvmmsg"
            | "send"
            | "sendto"
            | "sendmsg"
            | "sendmmsg"
            | "connect"
            | "pause"
            | "rt_sigtimedwait"
            | "rt_sigsuspend"
            | "sigsuspend"
            | "flock"
            | "semop"
            | "semtimedop"
            | "msgrcv"
            | "msgsnd"
            | "mq_timedreceive"
            | "mq_timedsend"
            | "io_getevents"
            | "io_pgetevents"
            | "restart_syscall"
            | "nanosleep"
            | "clock_nanosleep"
            | "clock_nanosleep_time64"
            | "wait4"
            | "waitpid"
            | "waitid"
            | "wait3"
    )
}
