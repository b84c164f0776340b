//! The tables.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::error::ArrowError;

use super::column::{Flag, Int, Kind, OptInt, OptName, OptText, OptWord, Text, Word};
use super::{Column, RowBuilder, RowView, Table};
use crate::event::{BlockRow, CounterRow, FaultRow, FileRow, ProcessRow, RejectRow, SyscallRow, VmstatRow};

/// Declares a table: its columns in the order of the row's fields, each with its kind; `~` marks delta encoding.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $table:ident = $row:ident $(<$lt:lifetime>)?, $name:literal, sorted $sorted:literal,
        time |$t:ident| $time:expr, line |$l:ident| $line:expr, shift |$s:ident, $zero:ident| { $($shift:tt)* },
        builder $builder:ident, view $view:ident,
        { $($field:ident: $kind:ident $(~ $delta:ident)?,)* }
    ) => {
        $(#[$doc])*
        pub enum $table {}

        impl Table for $table {
            const NAME: &'static str = $name;
            const SORTED: bool = $sorted;
            type Row<'a> = $row $(<$lt>)?;
            type Builder = $builder;
            type View = $view;

            fn columns() -> Vec<Column> {
                vec![$(Column {
                    name: stringify!($field),
                    data_type: $kind::data_type(),
                    read_as: $kind::read_as(),
                    nullable: $kind::NULLABLE,
                    delta: false $(|| stringify!($delta) == "delta")?,
                },)*]
            }
            #[inline]
            fn time_ns($t: &Self::Row<'_>) -> Option<i64> {
                $time
            }
            #[inline]
            fn line($l: &Self::Row<'_>) -> i64 {
                $line
            }
            #[inline]
            #[allow(unused_variables, reason = "side tables have no time to shift")]
            fn shift($s: &mut Self::Row<'_>, $zero: i64) {
                $($shift)*
            }
        }

        #[doc = concat!("Builder of table `", $name, "`.")]
        pub struct $builder {
            $($field: <$kind as Kind>::Builder,)*
        }

        impl RowBuilder<$table> for $builder {
            fn with_capacity(rows: usize) -> Self {
                Self { $($field: $kind::builder(rows),)* }
            }
            #[inline]
            fn push(&mut self, row: &<$table as Table>::Row<'_>) {
                $($kind::push(&mut self.$field, row.$field);)*
            }
            #[inline]
            fn text_bytes(&self) -> usize {
                0 $(+ $kind::text_bytes(&self.$field))*
            }
            fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
                let columns: Vec<ArrayRef> = vec![$($kind::finish(&mut self.$field),)*];
                RecordBatch::try_new(Arc::clone(&$table::schema()), columns)
            }
        }

        #[doc = concat!("View of a batch of table `", $name, "`.")]
        pub struct $view {
            $($field: <$kind as Kind>::View,)*
        }

        impl RowView<$table> for $view {
            fn new(batch: &RecordBatch, wanted: Option<&[&str]>) -> Option<Self> {
                Some(Self { $($field: {
                    let name = stringify!($field);
                    let array = match wanted {
                        Some(wanted) if !wanted.contains(&name) => &$kind::nothing(batch.num_rows()),
                        _ => batch.column_by_name(name)?,
                    };
                    $kind::view(array)?
                },)* })
            }
            #[inline]
            fn row(&self, i: usize) -> <$table as Table>::Row<'_> {
                $row { $($field: $kind::get(&self.$field, i),)* }
            }
        }
    };
}

table! {
    /// System calls.
    Syscalls = SyscallRow<'a>, "syscall", sorted true,
    time |r| Some(r.time_ns), line |r| r.line, shift |r, zero| { r.time_ns = r.time_ns.wrapping_sub(zero); },
    builder SyscallBuilder, view SyscallView,
    {
        time_ns: Int ~ delta,
        tid: Int,
        call: Word,
        ret: OptInt,
        errno: OptWord,
        dur_ns: OptInt,
        fd: OptInt,
        fd2: OptInt,
        path: OptText,
        path2: OptText,
        offset_bytes: OptInt ~ delta,
        len_bytes: OptInt,
        addr: OptInt,
        flags: OptWord,
        args: OptText,
        unfinished: Flag,
        line: Int ~ delta,
    }
}

table! {
    /// Block-layer events.
    Blocks = BlockRow<'a>, "block", sorted true,
    time |r| Some(r.time_ns), line |r| r.line, shift |r, zero| { r.time_ns = r.time_ns.wrapping_sub(zero); },
    builder BlockBuilder, view BlockView,
    {
        time_ns: Int ~ delta,
        dev: OptInt,
        cpu: OptInt,
        seq: OptInt ~ delta,
        action: Word,
        rwbs: Word,
        sector_512: OptInt ~ delta,
        len_bytes: OptInt,
        pid: OptInt,
        comm: OptName,
        error: OptInt,
        from_dev: OptInt,
        from_sector_512: OptInt ~ delta,
        unplugged: OptInt,
        text: OptText,
        line: Int ~ delta,
    }
}

table! {
    /// vmstat rows.
    Vmstats = VmstatRow, "vmstat", sorted false,
    time |r| r.time_ns, line |r| r.line, shift |r, zero| { r.time_ns = r.time_ns.map(|t| t.wrapping_sub(zero)); },
    builder VmstatBuilder, view VmstatView,
    {
        time_ns: OptInt ~ delta,
        run: Int,
        since_boot: Flag,
        r: OptInt,
        b: OptInt,
        w: OptInt,
        swpd_kib: OptInt,
        free_kib: OptInt,
        buff_kib: OptInt,
        cache_kib: OptInt,
        inact_kib: OptInt,
        active_kib: OptInt,
        si_kib_s: OptInt,
        so_kib_s: OptInt,
        bi_kib_s: OptInt,
        bo_kib_s: OptInt,
        in_s: OptInt,
        cs_s: OptInt,
        us_pct: OptInt,
        sy_pct: OptInt,
        id_pct: OptInt,
        wa_pct: OptInt,
        st_pct: OptInt,
        gu_pct: OptInt,
        line: Int ~ delta,
    }
}

table! {
    /// Page touches.
    Faults = FaultRow, "fault", sorted true,
    time |r| Some(r.time_ns), line |r| r.line, shift |r, zero| { r.time_ns = r.time_ns.wrapping_sub(zero); },
    builder FaultBuilder, view FaultView,
    {
        time_ns: Int ~ delta,
        tid: Int,
        addr: Int ~ delta,
        count: Int,
        stride_bytes: Int,
        write: Flag,
        line: Int ~ delta,
    }
}

table! {
    /// Processes and threads.
    Processes = ProcessRow<'a>, "process", sorted false,
    time |_r| None, line |_r| 0, shift |r, zero| {},
    builder ProcessBuilder, view ProcessView,
    {
        tid: Int,
        parent_tid: OptInt,
        comm: OptText,
        client: OptText,
        background: Flag,
        repeat_from_line: OptInt,
        gives_up: Flag,
    }
}

table! {
    /// Files and where they lie.
    Files = FileRow<'a>, "file", sorted false,
    time |_r| None, line |_r| 0, shift |r, zero| {},
    builder FileBuilder, view FileView,
    {
        path: Text,
        size_bytes: OptInt,
        dev: OptInt,
        inode: OptInt ~ delta,
        extent_offset_bytes: OptInt,
        extent_sector_512: OptInt ~ delta,
        extent_len_bytes: OptInt,
        directory: Flag,
    }
}

table! {
    /// Totals and averages of summaries.
    Counters = CounterRow<'a>, "counter", sorted false,
    time |r| r.time_ns, line |r| r.line, shift |r, zero| { r.time_ns = r.time_ns.map(|t| t.wrapping_sub(zero)); },
    builder CounterBuilder, view CounterView,
    {
        time_ns: OptInt ~ delta,
        subject: Word,
        name: Word,
        value: Int,
        line: Int ~ delta,
    }
}

table! {
    /// Lines and records that could not be understood.
    Rejects = RejectRow<'a>, "reject", sorted false,
    time |_r| None, line |r| r.line, shift |r, zero| {},
    builder RejectBuilder, view RejectView,
    {
        line: Int ~ delta,
        byte_offset: Int ~ delta,
        column: OptInt,
        reason: Word,
        expected: Word,
        text: Text,
    }
}
