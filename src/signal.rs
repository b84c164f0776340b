//! Ctrl-C. Where cells are simulated: once, finish what runs; twice, stop it; three times, go. Elsewhere: once, stop at the
//! next place to stop at; twice, go. Nothing half-written is left either way: files appear by rename.

use crate::exit::Exit;
use crate::stderr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Set by the first Ctrl-C (or SIGTERM): begin nothing new.
pub(crate) static DRAIN: AtomicBool = AtomicBool::new(false);
/// Set by the second: stop what runs.
pub(crate) static ABORT: AtomicBool = AtomicBool::new(false);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Installs the handler. Without one (in a place that allows none) a signal ends the program at once, which leaves
/// nothing half-written either.
pub(crate) fn install(simulates: bool) {
    let installed = ctrlc::set_handler(move || match COUNT.fetch_add(1, Ordering::SeqCst) {
        0 => {
            DRAIN.store(true, Ordering::SeqCst);
            stderr::say(if simulates {
                "\nfinishing what runs; press Ctrl-C again to stop it\n"
            } else {
                "\nstopping; press Ctrl-C again to end at once\n"
            });
        }
        1 if simulates => ABORT.store(true, Ordering::SeqCst),
        _ => std::process::exit(i32::from(Exit::Interrupted as u8)),
    });
    if let Err(e) = installed {
        stderr::say(&format!("warning: Ctrl-C will end the program at once ({e})\n"));
    }
}

/// Was the program told to end?
pub(crate) fn interrupted() -> bool {
    DRAIN.load(Ordering::SeqCst)
}
