//! What /proc/vmstat and /proc/pressure of the simulated machine would show at the end, where the engine keeps such figures.

macro_rules! vmstat {
    ($($(#[$doc:meta])* $name:ident: $unit:literal,)*) => {
        /// Totals by the kernel's own names, additional rows of `counters` of kernels with refault detection.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct VmStat {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl VmStat {
            /// (name, value, unit) of every counter in table order.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
                [$((stringify!($name), self.$name, $unit),)*].into_iter()
            }
        }
    };
}

vmstat! {
    /// Read from devices.
    pgpgin: "KiB",
    /// Written to devices.
    pgpgout: "KiB",
    /// Read from swap.
    pswpin: "pages",
    /// Written to swap.
    pswpout: "pages",
    /// Looked at by kswapd.
    pgscan_kswapd: "pages",
    /// Looked at by tasks that wanted memory; as in the kernel not what a limit made them look at.
    pgscan_direct: "pages",
    /// Freed by kswapd.
    pgsteal_kswapd: "pages",
    /// Freed by tasks that wanted memory; as in the kernel not what a limit made them free.
    pgsteal_direct: "pages",
    /// Anonymous pages looked at.
    pgscan_anon: "pages",
    /// File pages looked at.
    pgscan_file: "pages",
    /// Anonymous pages freed.
    pgsteal_anon: "pages",
    /// File pages freed.
    pgsteal_file: "pages",
    /// Moves to the active list.
    pgactivate: "pages",
    /// Moves off it.
    pgdeactivate: "pages",
    /// Evicted anonymous pages that came back.
    workingset_refault_anon: "pages",
    /// Evicted file pages that came back.
    workingset_refault_file: "pages",
    /// ... and were activated at once.
    workingset_activate_anon: "pages",
    /// ... and were activated at once.
    workingset_activate_file: "pages",
    /// ... which had been active before.
    workingset_restore_anon: "pages",
    /// ... which had been active before.
    workingset_restore_file: "pages",
    /// File pages that became dirty.
    nr_dirtied: "pages",
    /// File pages whose write-out ended.
    nr_written: "pages",
    /// Time in which at least one task waited for I/O (`/proc/pressure/io`, some).
    pressure_io_some_us: "us",
    /// ... and none ran or was ready to (full).
    pressure_io_full_us: "us",
    /// Time in which at least one task was held up by memory: in reclaim, or by a page of swap (`/proc/pressure/memory`, some).
    pressure_memory_some_us: "us",
    /// ... and none ran or was ready to (full).
    pressure_memory_full_us: "us",
}
