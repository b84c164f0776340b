//! One column on its way into a row group: which encoding its values take.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use super::bits::{hybrid, run, width_of};
use super::chunk::{Chunk, Zstd};
use super::delta::delta;
use super::dictionary::{Dictionary, Ints, Texts, push_plain};

/// How the values of a column are written.
enum Values {
    /// Integers as differences.
    Delta,
    /// Integers by dictionary, as differences once that no longer pays.
    Ints(Numbered<Ints>),
    /// Texts by dictionary, plain once that no longer pays.
    Texts(Numbered<Texts>),
    /// Bits.
    Flags,
}

/// A column of a row group.
pub(super) struct ColumnEncoder {
    descr: ColumnDescPtr,
    nullable: bool,
    values: Values,
    /// Smallest and largest value, where they are wanted.
    bounds: Option<Option<(i64, i64)>>,
    chunk: Chunk,
    scratch: Vec<i64>,
}

impl ColumnEncoder {
    /// For a column of this type. `delta` asks for differences from the start, `bounds` for statistics.
    pub(super) fn new(descr: ColumnDescPtr, data_type: &DataType, nullable: bool, delta: bool, bounds: bool) -> Self {
        let values = match data_type {
            DataType::Boolean => Values::Flags,
            DataType::Int64 if delta => Values::Delta,
            DataType::Int64 => Values::Ints(Numbered::default()),
            _ => Values::Texts(Numbered::default()),
        };
        Self { descr, nullable, values, bounds: bounds.then_some(None), chunk: Chunk::default(), scratch: Vec::new() }
    }

    /// Append a page with these rows.
    pub(super) fn page(&mut self, array: &ArrayRef, zstd: &mut Zstd) -> Result<()> {
        let mut body = Vec::new();
        let nulls = array.logical_nulls().filter(|n| n.null_count() > 0);
        if self.nullable {
            levels(&mut body, array.len(), nulls.as_ref());
        } else if nulls.is_some() {
            return Err(ParquetError::General(format!("{} has no value in a row", self.descr.name())));
        }
        let encoding = match &mut self.values {
            Values::Flags => {
                bits(&mut body, array.as_boolean_opt().ok_or_else(|| wrong_type(&self.descr))?);
                Encoding::PLAIN
            }
            Values::Delta | Values::Ints(_) => {
                let array = array.as_primitive_opt::<Int64Type>().ok_or_else(|| wrong_type(&self.descr))?;
                let values = present(array, nulls.as_ref(), &mut self.scratch);
                if let Some(bounds) = &mut self.bounds {
                    *bounds =
                        values.iter().fold(*bounds, |b, v| Some(b.map_or((*v, *v), |b| (b.0.min(*v), b.1.max(*v)))));
                }
                let by_number = match &mut self.values {
                    Values::Ints(numbered) => numbered.page(&mut body, values.iter().copied()),
                    _ => false,
                };
                if by_number {
                    Encoding::RLE_DICTIONARY
                } else {
                    delta(&mut body, values);
                    Encoding::DELTA_BINARY_PACKED
                }
            }
            Values::Texts(numbered) => texts(&mut body, numbered, array).ok_or_else(|| wrong_type(&self.descr))?,
        };
        self.chunk.page(body, array.len(), encoding, zstd)
    }

    /// The finished chunk.
    pub(super) fn finish(self, zstd: &mut Zstd) -> Result<(Bytes, ColumnCloseResult)> {
        let statistics = self.bounds.map(|b| {
            let (least, most) = b.unzip();
            Statistics::int64(least, most, None, None, false)
        });
        let dictionary = match &self.values {
            Values::Ints(numbered) => numbered.dictionary(),
            Values::Texts(numbered) => numbered.dictionary(),
            Values::Delta | Values::Flags => None,
        };
        self.chunk.finish(self.descr, dictionary, statistics, zstd)
    }
}

fn wrong_type(descr: &ColumnDescPtr) -> ParquetError {
    ParquetError::General(format!("{} is of another type than its schema says", descr.name()))
}

/// Values that decide whether a dictionary pays.
const TRIAL_VALUES: usize = 8192;

/// A dictionary, until it does not pay.
struct Numbered<D> {
    dictionary: D,
    /// Pages so far that refer to it, and their values.
    pages: usize,
    values: usize,
    given_up: bool,
    numbers: Vec<u32>,
}

impl<D: Default> Default for Numbered<D> {
    fn default() -> Self {
        Self { dictionary: D::default(), pages: 0, values: 0, given_up: false, numbers: Vec::new() }
    }
}

impl<D: Dictionary> Numbered<D> {
    /// Append a page of values by their numbers; false, and nothing appended, where the dictionary does not pay.
    fn page<'a>(&mut self, body: &mut Vec<u8>, values: impl Iterator<Item = D::Item<'a>>) -> bool {
        if self.given_up {
            return false;
        }
        let known = self.dictionary.len();
        self.numbers.clear();
        self.numbers.extend(values.map(|v| self.dictionary.number(v)));
        self.push(body, known)
    }

    /// Append the numbers; `known` is what the dictionary held before them.
    fn push(&mut self, body: &mut Vec<u8>, known: usize) -> bool {
        self.values += self.numbers.len();
        // Where most values are new ones, they and their numbers together are larger than the values.
        let mostly_new = self.values >= TRIAL_VALUES && self.dictionary.len() > self.values / 2;
        if self.dictionary.is_full() || mostly_new {
            self.given_up = true;
            self.dictionary.cut(known);
            return false;
        }
        self.pages += 1;
        let width = width_of(self.dictionary.len().saturating_sub(1) as u64);
        body.push(width as u8);
        hybrid(body, &self.numbers, width);
        true
    }

    /// PLAIN bytes and number of values, if a page refers to it.
    fn dictionary(&self) -> Option<(&[u8], usize)> {
        (self.pages > 0).then(|| (self.dictionary.plain(), self.dictionary.len()))
    }
}

/// Append texts, whether the array has a dictionary of its own or not.
fn texts(body: &mut Vec<u8>, numbered: &mut Numbered<Texts>, array: &ArrayRef) -> Option<Encoding> {
    if let Some(array) = array.as_string_opt::<i32>() {
        if numbered.page(body, array.iter().flatten().map(str::as_bytes)) {
            return Some(Encoding::RLE_DICTIONARY);
        }
        array.iter().flatten().for_each(|text| push_plain(body, text.as_bytes()));
        return Some(Encoding::PLAIN);
    }
    let array = array.as_dictionary_opt::<Int32Type>()?;
    let words = array.values().as_string_opt::<i32>()?;
    let keys = array.keys().iter().flatten();
    if !numbered.given_up {
        // Each word is looked up once a page, not once a row.
        let known = numbered.dictionary.len();
        let numbers: Vec<u32> = words.iter().map(|w| numbered.dictionary.number(w.unwrap_or("").as_bytes())).collect();
        numbered.numbers.clear();
        match array.keys().nulls() {
            None => numbered.numbers.extend(array.keys().values().iter().map(|key| numbers[*key as usize])),
            Some(_) => numbered.numbers.extend(keys.clone().map(|key| numbers[key as usize])),
        }
        if numbered.push(body, known) {
            return Some(Encoding::RLE_DICTIONARY);
        }
    }
    keys.for_each(|key| push_plain(body, words.value(key as usize).as_bytes()));
    Some(Encoding::PLAIN)
}

/// Append which rows have a value: length, then levels of one bit.
fn levels(body: &mut Vec<u8>, rows: usize, nulls: Option<&NullBuffer>) {
    let start = body.len();
    body.extend_from_slice(&[0; 4]);
    match nulls {
        None => run(body, rows, 1, 1),
        Some(nulls) if nulls.null_count() == rows => run(body, rows, 0, 1),
        Some(nulls) => {
            super::bits::varint(body, (rows.div_ceil(8) as u64) << 1 | 1);
            push_bits(body, &nulls.inner().sliced(), rows);
        }
    }
    let length = (body.len() - start - 4) as u32;
    body[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Append booleans, one bit each.
fn bits(body: &mut Vec<u8>, array: &BooleanArray) {
    push_bits(body, &array.values().sliced(), array.len());
}

/// Append `count` bits; those after them in the last byte are zero, whatever the buffer holds.
fn push_bits(body: &mut Vec<u8>, bits: &[u8], count: usize) {
    body.extend_from_slice(&bits[..count.div_ceil(8)]);
    if let Some(last) = body.last_mut().filter(|_| !count.is_multiple_of(8)) {
        *last &= (1 << (count % 8)) - 1;
    }
}

/// The values that are there, without copying where all are.
fn present<'a>(array: &'a Int64Array, nulls: Option<&NullBuffer>, scratch: &'a mut Vec<i64>) -> &'a [i64] {
    let Some(nulls) = nulls else { return array.values() };
    scratch.clear();
    if nulls.null_count() < array.len() {
        scratch.extend(nulls.valid_indices().map(|i| array.values()[i]));
    }
    scratch
}
