//! Kinds of columns: how a field of a row becomes an Arrow array, and comes back.
//!
//! One zero-sized type a kind; the tables are lists of (field, kind). Builders copy borrowed text straight into Arrow
//! buffers, so appending a row allocates nothing of its own.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, BooleanArray, BooleanBuilder, Int32Array, Int64Array, Int64Builder,
    StringArray, StringBuilder, StringDictionaryBuilder,
};
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
    type Builder = Int64Builder;
    type View = Int64Array;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        DataType::Int64
    }
    fn builder(rows: usize) -> Int64Builder {
        Int64Builder::with_capacity(rows)
    }
    #[inline]
    fn push(builder: &mut Int64Builder, value: i64) {
        builder.append_value(value);
    }
    fn finish(builder: &mut Int64Builder) -> ArrayRef {
        Arc::new(builder.finish())
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
    type Builder = Sparse<Int64Builder>;
    type View = Int64Array;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        DataType::Int64
    }
    fn builder(_rows: usize) -> Self::Builder {
        Sparse::new(Int64Builder::new())
    }
    #[inline]
    fn push(builder: &mut Self::Builder, value: Option<i64>) {
        match value {
            None => builder.nulls += 1,
            Some(value) => builder.settled(Int64Builder::append_nulls).append_value(value),
        }
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        builder.finish(Int64Builder::append_nulls)
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
    type Builder = StringDictionaryBuilder<Int32Type>;
    type View = WordView;
    const NULLABLE: bool = false;
    fn data_type() -> DataType {
        word_type()
    }
    fn builder(_rows: usize) -> Self::Builder {
        StringDictionaryBuilder::new()
    }
    #[inline]
    fn push(builder: &mut Self::Builder, value: &str) {
        builder.append_value(value);
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        Arc::new(builder.finish())
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
    type Builder = Sparse<StringDictionaryBuilder<Int32Type>>;
    type View = WordView;
    const NULLABLE: bool = true;
    fn data_type() -> DataType {
        word_type()
    }
    fn builder(_rows: usize) -> Self::Builder {
        Sparse::new(StringDictionaryBuilder::new())
    }
    #[inline]
    fn push(builder: &mut Self::Builder, value: Option<&str>) {
        match value {
            None => builder.nulls += 1,
            Some(value) => builder.settled(StringDictionaryBuilder::append_nulls).append_value(value),
        }
    }
    fn finish(builder: &mut Self::Builder) -> ArrayRef {
        builder.finish(StringDictionaryBuilder::append_nulls)
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
