use arrow::array::{
    ArrayRef, AsArray, BooleanArray, DictionaryArray, Int32Array, Int64Array, StringArray, UInt32Array,
};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnPath;

use super::*;

/// Numbers that look random and are the same each time.
fn mixed(i: usize) -> u64 {
    let z = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn schema() -> SchemaRef {
    let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let field = |name: &str, data_type: &DataType, nullable| Field::new(name, data_type.clone(), nullable);
    Arc::new(Schema::new(vec![
        field("time_ns", &DataType::Int64, false),
        field("few", &DataType::Int64, false),
        field("some", &DataType::Int64, true),
        field("none", &DataType::Int64, true),
        field("many", &DataType::Int64, true),
        field("extreme", &DataType::Int64, false),
        field("word", &words, false),
        field("maybe_word", &words, true),
        field("many_words", &words, false),
        field("text", &DataType::Utf8, false),
        field("maybe_text", &DataType::Utf8, true),
        field("flag", &DataType::Boolean, false),
    ]))
}

fn batch(rows: usize, seed: usize) -> RecordBatch {
    let at = |i: usize| mixed(i + seed * 1_000_003);
    let ints = |f: &dyn Fn(usize) -> Option<i64>| -> ArrayRef { Arc::new((0..rows).map(f).collect::<Int64Array>()) };
    let words = |f: &dyn Fn(usize) -> Option<String>| -> ArrayRef {
        let texts: Vec<Option<String>> = (0..rows).map(f).collect();
        Arc::new(texts.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>())
    };
    let texts =
        |f: &dyn Fn(usize) -> Option<String>| -> ArrayRef { Arc::new((0..rows).map(f).collect::<StringArray>()) };
    let columns: Vec<ArrayRef> = vec![
        ints(&|i| Some((seed * rows + i) as i64 * 1000 + (at(i) % 7) as i64)),
        ints(&|i| Some((at(i) % 5) as i64 * 512)),
        ints(&|i| (at(i) % 3 > 0).then_some((at(i) % 9) as i64)),
        ints(&|_| None),
        ints(&|i| (i % 11 > 0).then_some(at(i) as i64)),
        ints(&|i| Some(if i % 2 == 0 { i64::MIN } else { i64::MAX })),
        words(&|i| Some(format!("w{}", at(i) % 4))),
        words(&|i| (at(i) % 2 > 0).then(|| format!("v{}", at(i) % 60))),
        words(&|i| Some(format!("{:x}", at(i)))),
        texts(&|i| Some(if i % 100 < 90 { "same".to_owned() } else { format!("ä{}", at(i) % 3) })),
        texts(&|i| (at(i) % 4 > 0).then(|| "x".repeat((at(i) % 50) as usize) + &at(i).to_string())),
        Arc::new((0..rows).map(|i| Some(at(i) % 10 == 0)).collect::<BooleanArray>()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(40_000))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_statistics_enabled(ColumnPath::from("time_ns"), EnabledStatistics::Chunk)
        .set_column_encoding(ColumnPath::from("time_ns"), Encoding::DELTA_BINARY_PACKED)
        .set_column_encoding(ColumnPath::from("extreme"), Encoding::DELTA_BINARY_PACKED)
        .build()
}

fn encoded(batches: &[RecordBatch]) -> Bytes {
    let mut encoder = TableEncoder::new(Vec::new(), schema(), properties()).unwrap();
    batches.iter().for_each(|b| encoder.write(b).unwrap());
    encoder.finish().unwrap().into()
}

fn decoded(file: Bytes) -> (RecordBatch, Arc<ParquetMetaData>) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let metadata = Arc::clone(builder.metadata());
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    (concat_batches(&schema(), &batches).unwrap(), metadata)
}

/// Values, whatever dictionaries they have.
fn assert_same_values(got: &RecordBatch, wanted: &RecordBatch) {
    assert_eq!(got.num_rows(), wanted.num_rows());
    for (i, field) in schema().fields().iter().enumerate() {
        let plain = |array: &ArrayRef| match array.as_dictionary_opt::<Int32Type>() {
            Some(words) => take(words.values(), words.keys(), None).unwrap(),
            None => Arc::clone(array),
        };
        assert_eq!(&plain(got.column(i)), &plain(wanted.column(i)), "{}", field.name());
    }
}

#[test]
fn all_kinds_of_columns_come_back_over_pages_and_row_groups() {
    let batches = [batch(16_384, 1), batch(1, 2), batch(50_000, 3), batch(777, 4)];
    let file = encoded(&batches);
    assert_eq!(file, encoded(&batches), "same rows, same bytes");
    let (got, metadata) = decoded(file);
    assert_same_values(&got, &concat_batches(&schema(), &batches).unwrap());
    assert_eq!(metadata.row_groups().iter().map(|g| g.num_rows()).collect::<Vec<_>>(), [40_000, 27_162]);
    let group = metadata.row_group(0);
    let least = got.column(0).as_primitive::<Int64Type>().values()[..40_000].iter().min();
    let Some(parquet::file::statistics::Statistics::Int64(bounds)) = group.column(0).statistics() else {
        panic!("the times have bounds")
    };
    assert_eq!(bounds.min_opt(), least);
    assert!(group.columns()[1..].iter().all(|c| c.statistics().is_none()));
}

#[test]
fn each_column_takes_the_encoding_and_the_compression_that_pay() {
    let (_, metadata) = decoded(encoded(&[batch(20_000, 1), batch(20_000, 2)]));
    let column = |name: &str| {
        let group = metadata.row_group(0);
        group.columns().iter().find(|c| c.column_path().string() == name).unwrap()
    };
    let uses = |name: &str, encoding| column(name).encodings().any(|e| e == encoding);
    for name in ["few", "some", "word", "maybe_word", "text"] {
        assert!(uses(name, Encoding::RLE_DICTIONARY) && column(name).dictionary_page_offset().is_some(), "{name}");
    }
    for name in ["time_ns", "many", "extreme"] {
        assert!(uses(name, Encoding::DELTA_BINARY_PACKED) && !uses(name, Encoding::RLE_DICTIONARY), "{name}");
    }
    assert!(uses("many_words", Encoding::PLAIN) && !uses("many_words", Encoding::RLE_DICTIONARY));
    assert_eq!(column("many").compression(), Compression::UNCOMPRESSED);
    assert_ne!(column("text").compression(), Compression::UNCOMPRESSED);
}

#[test]
fn a_dictionary_may_be_given_up_half_way() {
    let calm: ArrayRef = Arc::new(Int64Array::from_iter_values((0..16_384).map(|i| i % 3)));
    let wild: ArrayRef = Arc::new(Int64Array::from_iter_values((0..16_384).map(|i| mixed(i) as i64)));
    let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]));
    let mut encoder = TableEncoder::new(Vec::new(), Arc::clone(&schema), WriterProperties::builder().build()).unwrap();
    for values in [&calm, &wild, &calm] {
        encoder.write(&RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(values)]).unwrap()).unwrap();
    }
    let file: Bytes = encoder.finish().unwrap().into();
    let batches: Vec<RecordBatch> =
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(Result::unwrap).collect();
    let got = concat_batches(&schema, &batches).unwrap();
    let got = got.column(0).as_primitive::<Int64Type>().values();
    assert_eq!(got[..16_384], calm.as_primitive::<Int64Type>().values()[..]);
    assert_eq!(got[16_384..32_768], wild.as_primitive::<Int64Type>().values()[..]);
    assert_eq!(got[32_768..], calm.as_primitive::<Int64Type>().values()[..]);
}

#[test]
fn batches_may_be_slices_and_picks_of_others() {
    let whole = batch(3000, 9);
    let picked: Vec<u32> = (0..500).map(|i| (mixed(i) % 3000) as u32).collect();
    let columns = whole.columns().iter().map(|c| take(c, &UInt32Array::from(picked.clone()), None).unwrap()).collect();
    let picked = RecordBatch::try_new(schema(), columns).unwrap();
    let batches = [whole.slice(13, 1001), picked, whole.slice(2999, 1), whole.slice(5, 0)];
    let (got, _) = decoded(encoded(&batches));
    assert_same_values(&got, &concat_batches(&schema(), &batches).unwrap());
}

#[test]
fn a_file_without_rows_is_a_file() {
    let (got, metadata) = decoded_or_empty(encoded(&[]));
    assert_eq!((got, metadata.num_row_groups()), (0, 0));
}

fn decoded_or_empty(file: Bytes) -> (usize, Arc<ParquetMetaData>) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let metadata = Arc::clone(builder.metadata());
    (builder.build().unwrap().map(|b| b.unwrap().num_rows()).sum(), metadata)
}

#[test]
fn missing_values_of_a_column_that_has_none_are_an_error() {
    let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, true)]));
    let strict = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![Some(1), None]))]).unwrap();
    let mut encoder = TableEncoder::new(Vec::new(), strict, WriterProperties::builder().build()).unwrap();
    assert!(encoder.write(&batch).is_err());
    let wrong = RecordBatch::try_from_iter([("v", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
    assert!(encoder.write(&wrong).is_err());
}
