//! What the recorded kernel said of memory that it could not give, until the load's end.

/// Counts of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Messages {
    /// Single frames that were refused.
    pub failures: f64,
    /// Processes killed, by the killer or because a fault of theirs got no frame.
    pub kills: f64,
}

impl Messages {
    /// Messages of serial.log before the event that ends the load; all of them where there is no such event.
    pub(super) fn of(serial: &str) -> Self {
        let mut told = Self::default();
        for line in serial.lines() {
            if line.starts_with("@T") && line.split_whitespace().nth(2) == Some("workload") {
                break;
            }
            if line.contains("__alloc_pages: 0-order allocation failed") {
                told.failures += 1.0;
            }
            if line.contains("Out of Memory: Killed process") || line.contains("VM: killing process") {
                told.kills += 1.0;
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_load_does_not_count() {
        let log = "@T 5 start 0 0 0\r\n__alloc_pages: 0-order allocation failed (gfp=0x1d2/0) from c01275b0\r\n\
            __alloc_pages: 2-order allocation failed (gfp=0x1f0/0)\r\nVM: killing process load\r\n\
            @T 9 workload us 4 0 0\r\nOut of Memory: Killed process 9 (init).\r\n";
        assert_eq!(Messages::of(log), Messages { failures: 1.0, kills: 1.0 });
        let cut_off = log.replace("workload", "progress");
        assert_eq!(Messages::of(&cut_off).kills, 2.0);
    }
}
