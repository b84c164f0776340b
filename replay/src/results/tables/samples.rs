//! `samples.parquet`.

use super::{Columns, int, ints, schema, take_ints};
use crate::results::rows::SampleRow;
use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;

const NAMES: [&str; 27] = [
    "time_ns",
    "r",
    "b",
    "w",
    "swpd_kib",
    "free_kib",
    "buff_kib",
    "cache_kib",
    "si_kib_s",
    "so_kib_s",
    "bi_kib_s",
    "bo_kib_s",
    "in_s",
    "cs_s",
    "us_pct",
    "sy_pct",
    "id_pct",
    "wa_pct",
    "active_kib",
    "inactive_kib",
    "anon_kib",
    "dirty_kib",
    "writeback_kib",
    "slab_kib",
    "dentries",
    "inodes",
    "queue_len",
];

#[derive(Default)]
pub(in crate::results) struct Samples {
    numbers: [Vec<i64>; NAMES.len()],
}

impl Samples {
    pub(in crate::results) fn push(&mut self, r: &SampleRow) {
        let row = [
            r.time.0,
            r.r,
            r.b,
            r.w,
            r.swpd_kib,
            r.free_kib,
            r.buff_kib,
            r.cache_kib,
            r.si_kib_s,
            r.so_kib_s,
            r.bi_kib_s,
            r.bo_kib_s,
            r.in_s,
            r.cs_s,
            r.us_pct,
            r.sy_pct,
            r.id_pct,
            r.wa_pct,
            r.active_kib,
            r.inactive_kib,
            r.anon_kib,
            r.dirty_kib,
            r.writeback_kib,
            r.slab_kib,
            r.dentries,
            r.inodes,
            r.queue_len,
        ];
        for (column, value) in self.numbers.iter_mut().zip(row) {
            column.push(int(value));
        }
    }
}

impl Columns for Samples {
    const NAME: &'static str = "samples";

    fn schema() -> SchemaRef {
        schema(ints(&NAMES))
    }

    fn rows(&self) -> usize {
        self.numbers[0].len()
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        take_ints(&mut self.numbers).collect()
    }
}
