//! Kinds of columns: how a field of a row becomes an Arrow array, and comes back.
//!
//! One zero-sized type a kind; the tables are lists of (field, kind). Builders copy borrowed text straight into Arrow
//! buffers, so appending a row allocates nothing of its own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, DictionaryArray, Int32Array, Int64Array, StringArray,
    new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Int32Type, Int64Type};

/// A kind of column.
pub(super) trait Kind {
    /// The field's type in a row.
    type Item<'a>;
    /// Collects values.
    type Builder: Send;
    /// Gives them back.
    type View;
    /// Nulls are allowed ("the source does not say").
    const NULLABLE: bool;
    /// Arrow's type in the file.
    fn data_type() -> DataType;
    /// Arrow's type in memory when it is read.
    fn read_as() -> DataType {
        Self::data_type()
    }
    /// An array of that type which says nothing of `rows` rows.
    fn nothing(rows: usize) -> ArrayRef {
        if Self::NULLABLE { new_null_array(&Self::read_as(), rows) } else { blank_array(&Self::read_as(), rows) }
    }
    /// An empty builder.
    fn builder(rows: usize) -> Self::Builder;
    /// Append a value.
    fn push(builder: &mut Self::Builder, value: Self::Item<'_>);
    /// Bytes of text of an open set that the builder holds.
    fn text_bytes(_builder: &Self::Builder) -> usize {
        0
    }
    /// The array; the builder begins anew.
    fn finish(builder: &mut Self::Builder) -> ArrayRef;
    /// View of an array, `None` if it is of another type.
    fn view(array: &ArrayRef) -> Option<Self::View>;
    /// Value of row `i`.
    fn get(view: &Self::View, i: usize) -> Self::Item<'_>;
}

/// Which rows of an optional column have a value.
#[derive(Default)]
struct Present {
    words: Vec<u64>,
    word: u64,
    rows: usize,
}

impl Present {
    #[inline]
    fn push(&mut self, is_there: bool) {
        let at = self.rows % 64;
        self.word |= u64::from(is_there) << at;
        self.rows += 1;
        if at == 63 {
            self.words.push(std::mem::take(&mut self.word));
        }
    }

    /// The rows so far as Arrow's null mask, `None` where all have a value; begins anew.
    fn finish(&mut self) -> Option<NullBuffer> {
        self.words.push(std::mem::take(&mut self.word));
        let rows = std::mem::take(&mut self.rows);
        let room = Vec::with_capacity(self.words.len());
        let words = std::mem::replace(&mut self.words, room);
        let nulls = NullBuffer::new(BooleanBuffer::new(ScalarBuffer::<u64>::from(words).into_inner(), 0, rows));
        (nulls.null_count() > 0).then_some(nulls)
    }
}

/// Collects integers, of which some may be missing. A vector that keeps its size from batch to batch, where Arrow's own
/// builder would begin small each time. Most optional columns of a source are empty throughout: until the first value
/// comes, missing ones are only counted.
#[derive(Default)]
pub(super) struct IntBuilder {
    values: Vec<i64>,
    present: Present,
    missing: usize,
}

impl IntBuilder {
    #[inline]
    fn push(&mut self, value: Option<i64>) {
        if self.values.is_empty() {
            if value.is_none() {
                self.missing += 1;
                return;
            }
            self.settle();
        }
        self.values.push(value.unwrap_or(0));
        self.present.push(value.is_some());
    }

    /// Make the missing values that were only counted.
    fn settle(&mut self) {
        self.values.resize(self.missing, 0);
        (0..std::mem::take(&mut self.missing)).for_each(|_| self.present.push(false));
    }

    /// All values are there: `values` alone is used.
    fn finish_full(&mut self) -> ArrayRef {
        let room = Vec::with_capacity(self.values.len());
        Arc::new(Int64Array::new(ScalarBuffer::from(std::mem::replace(&mut self.values, room)), None))
    }

    fn finish(&mut self) -> ArrayRef {
        if self.missing > 0 {
            return Arc::new(Int64Array::new_null(std::mem::take(&mut self.missing)));
        }
        let nulls = self.present.finish();
        let room = Vec::with_capacity(self.values.len());
        Arc::new(Int64Array::new(ScalarBuffer::from(std::mem::replace(&mut self.values, room)), nulls))
    }
}

/// Collects texts, of which some may be missing; as [`IntBuilder`].
#[derive(Default)]
pub(super) struct TextBuilder {
    bytes: String,
    /// Where each text ends.
    ends: Vec<i32>,
    present: Present,
    missing: usize,
}

impl TextBuilder {
    #[inline]
    fn push(&mut self, value: Option<&str>) {
        if self.ends.is_empty() {
            if value.is_none() {
                self.missing += 1;
                return;
            }
            self.settle();
        }
        self.bytes.push_str(value.unwrap_or(""));
        self.ends.push(self.bytes.len() as i32);
        self.present.push(value.is_some());
    }

    fn settle(&mut self) {
        self.ends.resize(self.missing, 0);
        (0..std::mem::take(&mut self.missing)).for_each(|_| self.present.push(false));
    }

    fn finish(&mut self) -> ArrayRef {
        if self.missing > 0 {
            return Arc::new(StringArray::new_null(std::mem::take(&mut self.missing)));
        }
        let nulls = self.present.finish();
        let mut offsets = Vec::with_capacity(self.ends.len() + 1);
        offsets.push(0);
        offsets.append(&mut self.ends);
        let room = String::with_capacity(self.bytes.len());
        let bytes = std::mem::replace(&mut self.bytes, room).into_bytes();
        Arc::new(StringArray::new(OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(bytes), nulls))
    }
}

/// Places of the words seen last; a power of two.
const LAST_WORDS: usize = 64;

/// Collects words of a small closed set. The usual short ones are found by their bytes as two numbers in a small table
/// of the words seen last, which is several times faster than hashing each.
#[derive(Default)]
pub(super) struct WordBuilder {
    keys: Vec<i32>,
    any_null: bool,
    words: Vec<String>,
    last: Vec<Option<(Short, i32)>>,
    index: HashMap<String, i32>,
}

impl WordBuilder {
    #[inline]
    fn push(&mut self, word: &str) {
        let key = match Short::of(word.as_bytes()) {
            Some(short) => match self.last.get(short.place()) {
                Some(Some((last, key))) if *last == short => *key,
                _ => self.remember(word, short),
            },
            None => self.look_up(word),
        };
        self.keys.push(key);
    }

    #[inline]
    fn push_null(&mut self) {
        self.any_null = true;
        self.keys.push(-1);
    }

    #[inline(never)]
    fn remember(&mut self, word: &str, short: Short) -> i32 {
        let key = self.look_up(word);
        self.last.resize(LAST_WORDS, None);
        self.last[short.place()] = Some((short, key));
        key
    }

    #[inline(never)]
    fn look_up(&mut self, word: &str) -> i32 {
        if let Some(key) = self.index.get(word) {
            return *key;
        }
        let key = self.words.len() as i32;
        self.words.push(word.to_owned());
        self.index.insert(word.to_owned(), key);
        key
    }

    fn finish(&mut self) -> ArrayRef {
        let mut done = std::mem::take(self);
        self.keys.reserve(done.keys.len());
        let nulls = done.any_null.then(|| NullBuffer::from_iter(done.keys.iter().map(|k| *k >= 0)));
        if done.any_null {
            done.keys.iter_mut().for_each(|k| *k = (*k).max(0));
        }
        let keys = Int32Array::new(ScalarBuffer::from(done.keys), nulls);
        Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from_iter_values(done.words))))
    }
}

/// A word of up to 16 bytes as numbers: its first and its last bytes, which overlap where it is short, and its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Short {
    first: u64,
    last: u64,
    length: u8,
}

impl Short {
    #[inline]
    fn of(word: &[u8]) -> Option<Self> {
        let length = word.len() as u8;
        let (first, last) = match word {
            [] => (0, 0),
            [a] => (u64::from(*a), 0),
            [a, b] => (u64::from(*a), u64::from(*b)),
            [a, b, c] => (u64::from(*a), u64::from(*b) << 8 | u64::from(*c)),
            _ => match (word.first_chunk(), word.last_chunk()) {
                (Some(first), Some(last)) if length <= 16 => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
                (None, None) => {
                    let (first, last) = (word.first_chunk()?, word.last_chunk()?);
                    (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
                }
                _ => return None,
            },
        };
        Some(Self { first, last, length })
    }

    #[inline]
    fn place(self) -> usize {
        let mixed =
            (self.first ^ self.last.rotate_left(29) ^ u64::from(self.length)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - LAST_WORDS.trailing_zeros())) as usize
    }
}

/// `i64`.
pub(super) enum Int {}
/// `Option<i64>`.
pub(super) enum OptInt {}
/// `bool`.
pub(super) enum Flag {}
/// `&str` of a small closed set, dictionary-encoded.
pub(super) enum Word {}
/// `Option<&str>` of a small closed set, dictionary-encoded.
pub(super) enum OptWord {}
/// `Option<&str>` of an open set in which few values come often: read as a dictionary, so that a batch holds each once.
pub(super) enum OptName {}
/// `&str` of an open set.
pub(super) enum Text {}
/// `Option<&str>` of an open set.
pub(super) enum OptText {}

impl Kind for Int {
    type Item<'a> = i64;
    type Builder = IntBuilder;
    type View = Int64Array;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Int64
    }
    fn builder(_rows: usize) -> IntBuilder {
        IntBuilder::default()
    }
    #[inline]
    fn push(builder: &mut IntBuilder, value: i64) {
        builder.values.push(value);
    }
    fn finish(builder: &mut IntBuilder) -> ArrayRef {
        builder.finish_full()
    }
    fn view(array: &ArrayRef) -> Option<Int64Array> {
        array.as_primitive_opt::<Int64Type>().cloned()
    }
    #[inline]
    fn get(view: &Int64Array, i: usize) -> i64 {
        view.value(i)
    }
}

impl Kind for OptInt {
    type Item<'a> = Option<i64>;
    type Builder = IntBuilder;
    type View = Int64Array;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Int64
    }
    fn builder(_rows: usize) -> Self::Builder {
        IntBuilder::default()
    }
    #[inline]
    fn push(builder: &mut Self::Builder, value: Option<i64>) {
        builder.push(value);
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        builder.finish()
    }
    fn view(array: &ArrayRef) -> Option<Int64Array> {
        Int::view(array)
    }
    #[inline]
    fn get(view: &Int64Array, i: usize) -> Option<i64> {
        view.is_valid(i).then(|| view.value(i))
    }
}

impl Kind for Flag {
    type Item<'a> = bool;
    type Builder = BooleanBuilder;
    type View = BooleanArray;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Boolean
    }
    fn builder(rows: usize) -> BooleanBuilder {
        BooleanBuilder::with_capacity(rows)
    }
    #[inline]
    fn push(builder: &mut BooleanBuilder, value: bool) {
        builder.append_value(value);
    }
    fn finish(builder: &mut BooleanBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }
    fn view(array: &ArrayRef) -> Option<BooleanArray> {
        array.as_boolean_opt().cloned()
    }
    #[inline]
    fn get(view: &BooleanArray, i: usize) -> bool {
        view.value(i)
    }
}

/// A dictionary column taken apart, so that a value is two array accesses.
pub(super) struct WordView {
    keys: Int32Array,
    values: StringArray,
}

impl WordView {
    fn of(array: &ArrayRef) -> Option<Self> {
        let dictionary = array.as_dictionary_opt::<Int32Type>()?;
        let values = dictionary.values().as_string_opt::<i32>()?.clone();
        Some(Self { keys: dictionary.keys().clone(), values })
    }
    #[inline]
    fn get(&self, i: usize) -> Option<&str> {
        self.keys.is_valid(i).then(|| self.values.value(self.keys.value(i) as usize))
    }
}

/// Zeros, empty texts or `false`.
fn blank_array(data_type: &DataType, rows: usize) -> ArrayRef {
    let blank = StringArray::from_iter_values([""]);
    match data_type {
        DataType::Int64 => Arc::new(Int64Array::new(ScalarBuffer::from(vec![0; rows]), None)),
        DataType::Boolean => Arc::new(BooleanArray::new(BooleanBuffer::new_unset(rows), None)),
        DataType::Dictionary(..) => {
            let keys = Int32Array::new(ScalarBuffer::from(vec![0; rows]), None);
            Arc::new(DictionaryArray::new(keys, Arc::new(blank)))
        }
        _ => Arc::new(StringArray::from_iter_values((0..rows).map(|_| ""))),
    }
}

fn word_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

impl Kind for Word {
    type Item<'a> = &'a str;
    type Builder = WordBuilder;
    type View = WordView;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        word_type()
    }
    fn builder(_rows: usize) -> Self::Builder {
        WordBuilder::default()
    }
    #[inline]
    fn push(builder: &mut Self::Builder, value: &str) {
        builder.push(value);
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        builder.finish()
    }
    fn view(array: &ArrayRef) -> Option<WordView> {
        WordView::of(array)
    }
    #[inline]
    fn get(view: &WordView, i: usize) -> &str {
        view.get(i).unwrap_or("")
    }
}

impl Kind for OptWord {
    type Item<'a> = Option<&'a str>;
    type Builder = WordBuilder;
    type View = WordView;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        word_type()
    }
    fn builder(_rows: usize) -> Self::Builder {
        WordBuilder::default()
    }
    #[inline]
    fn push(builder: &mut Self::Builder, value: Option<&str>) {
        match value {
            None => builder.push_null(),
            Some(value) => builder.push(value),
        }
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        builder.finish()
    }
    fn view(array: &ArrayRef) -> Option<WordView> {
        WordView::of(array)
    }
    #[inline]
    fn get(view: &WordView, i: usize) -> Option<&str> {
        view.get(i)
    }
}

impl Kind for OptName {
    type Item<'a> = Option<&'a str>;
    type Builder = TextBuilder;
    type View = WordView;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn read_as() -> DataType {
        word_type()
    }
    fn builder(_rows: usize) -> TextBuilder {
        TextBuilder::default()
    }
    #[inline]
    fn push(builder: &mut TextBuilder, value: Option<&str>) {
        builder.push(value);
    }
    #[inline]
    fn text_bytes(builder: &TextBuilder) -> usize {
        builder.bytes.len()
    }
    fn finish(builder: &mut TextBuilder) -> ArrayRef {
        builder.finish()
    }
    fn view(array: &ArrayRef) -> Option<WordView> {
        WordView::of(array)
    }
    #[inline]
    fn get(view: &WordView, i: usize) -> Option<&str> {
        view.get(i)
    }
}

impl Kind for Text {
    type Item<'a> = &'a str;
    type Builder = TextBuilder;
    type View = StringArray;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn builder(_rows: usize) -> TextBuilder {
        TextBuilder::default()
    }
    #[inline]
    fn push(builder: &mut TextBuilder, value: &str) {
        builder.push(Some(value));
    }
    #[inline]
    fn text_bytes(builder: &TextBuilder) -> usize {
        builder.bytes.len()
    }
    fn finish(builder: &mut TextBuilder) -> ArrayRef {
        builder.finish()
    }
    fn view(array: &ArrayRef) -> Option<StringArray> {
        array.as_string_opt::<i32>().cloned()
    }
    #[inline]
    fn get(view: &StringArray, i: usize) -> &str {
        view.value(i)
    }
}

impl Kind for OptText {
    type Item<'a> = Option<&'a str>;
    type Builder = TextBuilder;
    type View = StringArray;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn builder(_rows: usize) -> Self::Builder {
        TextBuilder::default()
    }
    #[inline]
    fn push(builder: &mut Self::Builder, value: Option<&str>) {
        builder.push(value);
    }
    #[inline]
    fn text_bytes(builder: &TextBuilder) -> usize {
        builder.bytes.len()
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        builder.finish()
    }
    fn view(array: &ArrayRef) -> Option<StringArray> {
        Text::view(array)
    }
    #[inline]
    fn get(view: &StringArray, i: usize) -> Option<&str> {
        view.is_valid(i).then(|| view.value(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back_whatever_is_missing() {
        let cases: [&[Option<i64>]; 5] =
            [&[], &[None, None], &[Some(1), Some(2)], &[None, Some(3), None, None, Some(4)], &[Some(5), None]];
        let mut builder = IntBuilder::default();
        for expected in cases {
            expected.iter().for_each(|v| OptInt::push(&mut builder, *v));
            let array = builder.finish();
            let view = OptInt::view(&array).unwrap();
            let got: Vec<_> = (0..view.len()).map(|i| OptInt::get(&view, i)).collect();
            assert_eq!(got, expected);
            assert_eq!(array.null_count(), expected.iter().filter(|v| v.is_none()).count());
        }
    }

    #[test]
    fn texts_come_back_whatever_is_missing() {
        let cases: [&[Option<&str>]; 5] = [
            &[],
            &[None, None],
            &[Some("a"), Some("")],
            &[None, Some("äö"), None, None, Some("b")],
            &[Some("c"), None],
        ];
        let mut builder = TextBuilder::default();
        for expected in cases {
            expected.iter().for_each(|v| OptText::push(&mut builder, *v));
            assert_eq!(OptText::text_bytes(&builder), expected.iter().flatten().map(|t| t.len()).sum::<usize>());
            let array = builder.finish();
            let view = OptText::view(&array).unwrap();
            let got: Vec<_> = (0..view.len()).map(|i| OptText::get(&view, i)).collect();
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn many_values_and_gaps_come_back() {
        let expected: Vec<Option<i64>> = (0..1000).map(|i| (i % 7 > 2 || i > 900).then_some(i * i)).collect();
        let mut builder = IntBuilder::default();
        for _ in 0..2 {
            expected.iter().for_each(|v| OptInt::push(&mut builder, *v));
            let view = OptInt::view(&builder.finish()).unwrap();
            assert_eq!((0..view.len()).map(|i| OptInt::get(&view, i)).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn words_come_back_whether_short_long_or_many() {
        let mut builder = WordBuilder::default();
        let long = "a".repeat(40);
        let lengths: String = ('a'..='z').collect();
        let mut expected: Vec<Option<String>> = vec![Some(String::new()), None, Some(long.clone())];
        expected.extend((0..100).map(|i| Some(format!("w{}", i % 40))));
        expected.extend((0..20).map(|n| Some(lengths[..n].to_owned())));
        expected
            .extend(["ab", "ba", "abc", "acb", "abcde", "abcce", "abcdabcd", "abcdabcdabcd"].map(|w| Some(w.into())));
        expected.extend([Some("fifteen_bytes_a".into()), Some("sixteen_bytes_aa".into()), Some(long)]);
        for word in &expected {
            OptWord::push(&mut builder, word.as_deref());
        }
        let view = WordView::of(&builder.finish()).unwrap();
        let got: Vec<Option<String>> = (0..expected.len()).map(|i| view.get(i).map(str::to_owned)).collect();
        assert_eq!(got, expected);
        assert_eq!(builder.finish().len(), 0, "it begins anew");
    }
}
