//! Kinds of columns: how a field of a row becomes an Arrow array, and comes back.
//!
//! One zero-sized type a kind; the tables are lists of (field, kind). Builders copy borrowed text straight into Arrow
//! buffers, so appending a row allocates nothing of its own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, BooleanBuilder, DictionaryArray,
    Int32Array, Int64Array, StringArray, StringBuilder,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
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
    /// Arrow's type.
    fn data_type() -> DataType;
    /// An empty builder.
    fn builder(rows: usize) -> Self::Builder;
    /// Append a value.
    fn push(builder: &mut Self::Builder, value: Self::Item<'_>);
    /// The array; the builder begins anew.
    fn finish(builder: &mut Self::Builder) -> ArrayRef;
    /// View of an array, `None` if it is of another type.
    fn view(array: &ArrayRef) -> Option<Self::View>;
    /// Value of row `i`.
    fn get(view: &Self::View, i: usize) -> Self::Item<'_>;
}

/// A builder that keeps a run of nulls as a number: most optional columns of a source are empty throughout.
pub(super) struct Sparse<B> {
    inner: B,
    nulls: usize,
}

impl<B: ArrayBuilder> Sparse<B> {
    fn new(inner: B) -> Self {
        Self { inner, nulls: 0 }
    }

    /// The builder behind, with the nulls so far appended by `append`.
    #[inline]
    fn settled(&mut self, append: impl FnOnce(&mut B, usize)) -> &mut B {
        if self.nulls > 0 {
            append(&mut self.inner, std::mem::take(&mut self.nulls));
        }
        &mut self.inner
    }

    fn finish(&mut self, append: impl FnOnce(&mut B, usize)) -> ArrayRef {
        self.settled(append).finish()
    }
}

/// Collects integers, of which some may be missing. A vector that keeps its size from batch to batch, where Arrow's own
/// builder would begin small each time; most optional columns of a source are empty or full throughout, so validity is
/// only kept where they are mixed.
#[derive(Default)]
pub(super) struct IntBuilder {
    values: Vec<i64>,
    /// `None` while all values are there.
    valid: Option<BooleanBufferBuilder>,
    /// Missing values at the end that are not in `values` yet.
    missing: usize,
}

impl IntBuilder {
    #[inline]
    fn push(&mut self, value: i64) {
        if self.missing > 0 {
            self.settle();
        }
        self.values.push(value);
        if let Some(valid) = &mut self.valid {
            valid.append(true);
        }
    }

    #[cold]
    fn settle(&mut self) {
        let (before, missing) = (self.values.len(), std::mem::take(&mut self.missing));
        let valid = self.valid.get_or_insert_with(|| {
            let mut valid = BooleanBufferBuilder::new(before + missing);
            valid.append_n(before, true);
            valid
        });
        valid.append_n(missing, false);
        self.values.resize(before + missing, 0);
    }

    fn finish(&mut self) -> ArrayRef {
        if self.missing > 0 {
            self.settle();
        }
        let room = Vec::with_capacity(self.values.len());
        let values = std::mem::replace(&mut self.values, room);
        let nulls = self.valid.take().map(|mut valid| NullBuffer::new(valid.finish()));
        Arc::new(Int64Array::new(ScalarBuffer::from(values), nulls))
    }
}

/// Words that are looked up by comparing, before a map is asked.
const FEW_WORDS: usize = 24;

/// Collects words of a small closed set. The usual few short ones are found by comparing them as numbers, which is several
/// times faster than hashing each.
#[derive(Default)]
pub(super) struct WordBuilder {
    keys: Vec<i32>,
    any_null: bool,
    words: Vec<String>,
    /// The first short words as numbers, and their keys.
    few: Vec<(u128, i32)>,
    index: HashMap<String, i32>,
}

impl WordBuilder {
    #[inline]
    fn push(&mut self, word: &str) {
        let key = match packed(word) {
            Some(number) => match self.few.iter().find(|(few, _)| *few == number) {
                Some((_, key)) => *key,
                None => self.look_up(word, Some(number)),
            },
            None => self.look_up(word, None),
        };
        self.keys.push(key);
    }

    #[inline]
    fn push_null(&mut self) {
        self.any_null = true;
        self.keys.push(-1);
    }

    fn look_up(&mut self, word: &str, number: Option<u128>) -> i32 {
        if let Some(key) = self.index.get(word) {
            return *key;
        }
        let key = self.words.len() as i32;
        self.words.push(word.to_owned());
        self.index.insert(word.to_owned(), key);
        if let Some(number) = number.filter(|_| self.few.len() < FEW_WORDS) {
            self.few.push((number, key));
        }
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

/// A word of up to 15 bytes as a number: its bytes and its length.
#[inline]
fn packed(word: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..word.len()).filter(|_| word.len() < 16)?.copy_from_slice(word.as_bytes());
    bytes[15] = word.len() as u8;
    Some(u128::from_le_bytes(bytes))
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
        builder.push(value);
    }
    fn finish(builder: &mut IntBuilder) -> ArrayRef {
        builder.finish()
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
        match value {
            None => builder.missing += 1,
            Some(value) => builder.push(value),
        }
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

impl Kind for Text {
    type Item<'a> = &'a str;
    type Builder = StringBuilder;
    type View = StringArray;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn builder(_rows: usize) -> StringBuilder {
        StringBuilder::new()
    }
    #[inline]
    fn push(builder: &mut StringBuilder, value: &str) {
        builder.append_value(value);
    }
    fn finish(builder: &mut StringBuilder) -> ArrayRef {
        Arc::new(builder.finish())
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
    type Builder = Sparse<StringBuilder>;
    type View = StringArray;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Utf8
    }
    fn builder(_rows: usize) -> Self::Builder {
        Sparse::new(StringBuilder::new())
    }
    #[inline]
    fn push(builder: &mut Self::Builder, value: Option<&str>) {
        match value {
            None => builder.nulls += 1,
            Some(value) => builder.settled(StringBuilder::append_nulls).append_value(value),
        }
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        builder.finish(StringBuilder::append_nulls)
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
    fn words_come_back_whether_short_long_or_many() {
        let mut builder = WordBuilder::default();
        let long = "a".repeat(40);
        let mut expected: Vec<Option<String>> = vec![Some(String::new()), None, Some(long.clone())];
        expected.extend((0..100).map(|i| Some(format!("w{}", i % 40))));
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
