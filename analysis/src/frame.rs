//! The only place that knows polars: reading result tables and grouping them.
//!
//! Tables are read eagerly from bytes that were checked before, never by pattern or by URL, since parts of the path
//! (variant names) come from users. Whatever polars does with a damaged file, a panic included, becomes an [`Error`].
//! polars is not optimised in the dev profile: heavy per-row work belongs to the caller, over plain vectors.

use crate::error::{Error, Result};
use polars::prelude::*;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Some columns of one table.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    data: DataFrame,
    path: PathBuf,
}

/// The rows of a frame split by the text in one column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Split {
    /// The different texts, sorted; null is the empty text.
    pub labels: Vec<String>,
    /// For each row the index of its label.
    pub of_row: Vec<u32>,
}

impl Frame {
    /// Reads `columns` of the Parquet file `bytes`; `path` is for error messages.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes are no readable Parquet file, [`Error::Column`] if a column is missing.
    pub(crate) fn from_bytes(path: &Path, bytes: Vec<u8>, columns: &[&str]) -> Result<Frame> {
        guarded(path, || {
            let mut reader = ParquetReader::new(Cursor::new(bytes));
            let schema = reader.schema().map_err(|e| damaged(path, &e.to_string()))?;
            if let Some(missing) = columns.iter().find(|c| !schema.contains(c)) {
                return Err(Error::Column {
                    path: path.to_path_buf(),
                    column: (*missing).to_string(),
                    why: "the table has no such column".to_string(),
                });
            }
            let wanted = columns.iter().map(|c| (*c).to_string()).collect();
            let data = reader.with_columns(Some(wanted)).finish().map_err(|e| damaged(path, &e.to_string()))?;
            Ok(Frame { data, path: path.to_path_buf() })
        })
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.data.height()
    }

    /// A column of whole numbers.
    ///
    /// # Errors
    /// [`Error::Column`] if there is none of that name and type.
    pub(crate) fn ints(&self, name: &str) -> Result<Vec<Option<i64>>> {
        let column = self.column(name)?;
        let wide = column.cast(&DataType::Int64).map_err(|e| self.bad(name, &e.to_string()))?;
        let values = wide.i64().map_err(|e| self.bad(name, &e.to_string()))?;
        Ok(values.iter().collect())
    }

    /// A column of whole numbers that are never null.
    ///
    /// # Errors
    /// [`Error::Column`] if there is none of that name and type, or a value is null.
    pub(crate) fn whole(&self, name: &str) -> Result<Vec<i64>> {
        let values = self.ints(name)?;
        let row = values.iter().position(Option::is_none);
        match row {
            Some(row) => Err(self.bad(name, &format!("null in row {row}"))),
            None => Ok(values.into_iter().flatten().collect()),
        }
    }

    /// A column of truth values; null is false.
    ///
    /// # Errors
    /// [`Error::Column`] if there is none of that name and type.
    pub(crate) fn bools(&self, name: &str) -> Result<Vec<bool>> {
        let column = self.column(name)?;
        let values = column.bool().map_err(|e| self.bad(name, &e.to_string()))?;
        Ok(values.iter().map(|v| v.unwrap_or(false)).collect())
    }

    /// A column of texts. For small tables: each row becomes a `String`.
    ///
    /// # Errors
    /// [`Error::Column`] if there is none of that name and type.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<Option<String>>> {
        let column = self.column(name)?;
        let values = column.str().map_err(|e| self.bad(name, &e.to_string()))?;
        Ok(values.iter().map(|v| v.map(str::to_string)).collect())
    }

    /// Splits the rows by the text in a column that holds few different ones.
    ///
    /// # Errors
    /// [`Error::Column`] if there is none of that name and type.
    pub(crate) fn split(&self, name: &str) -> Result<Split> {
        let column = self.column(name)?;
        let values = column.str().map_err(|e| self.bad(name, &e.to_string()))?;
        let mut seen = indexmap::IndexSet::new();
        let mut of_row = Vec::with_capacity(values.len());
        for value in values.iter() {
            let (index, _) = seen.insert_full(value.unwrap_or(""));
            of_row.push(index as u32);
        }
        let mut order: Vec<usize> = (0..seen.len()).collect();
        order.sort_by_key(|&i| seen[i]);
        let mut rank = vec![0u32; seen.len()];
        for (new, &old) in order.iter().enumerate() {
            rank[old] = new as u32;
        }
        for index in &mut of_row {
            *index = rank[*index as usize];
        }
        Ok(Split { labels: order.iter().map(|&i| seen[i].to_string()).collect(), of_row })
    }

    /// Groups by a text column: for each different text (sorted) the number of rows and the sums of `columns`.
    ///
    /// # Errors
    /// [`Error::Column`] if a column is missing or has another type.
    pub(crate) fn sums_by(&self, key: &str, columns: &[&str]) -> Result<Vec<(String, i64, Vec<i64>)>> {
        let mut wanted = vec![col(key).fill_null(lit(""))];
        wanted.extend(columns.iter().map(|c| col(*c).cast(DataType::Int64)));
        let mut aggregates = vec![len().cast(DataType::Int64).alias("rows of the group")];
        aggregates.extend(columns.iter().map(|c| col(*c).sum()));
        let grouped = guarded(&self.path, || {
            self.data
                .clone()
                .lazy()
                .select(wanted)
                .group_by_stable([col(key)])
                .agg(aggregates)
                .collect()
                .map_err(|e| self.bad(key, &e.to_string()))
        })?;
        let grouped = Frame { data: grouped, path: self.path.clone() };
        let keys = grouped.texts(key)?;
        let counts = grouped.whole("rows of the group")?;
        let sums = columns.iter().map(|c| grouped.whole(c)).collect::<Result<Vec<_>>>()?;
        let mut rows: Vec<_> = keys
            .into_iter()
            .enumerate()
            .map(|(i, k)| (k.unwrap_or_default(), counts[i], sums.iter().map(|s| s[i]).collect()))
            .collect();
        rows.sort();
        Ok(rows)
    }

    fn column(&self, name: &str) -> Result<&Column> {
        self.data.column(name).map_err(|e| self.bad(name, &e.to_string()))
    }

    fn bad(&self, column: &str, why: &str) -> Error {
        Error::Column { path: self.path.clone(), column: column.to_string(), why: why.to_string() }
    }
}

fn damaged(path: &Path, why: &str) -> Error {
    Error::Damaged { path: path.to_path_buf(), why: why.to_string() }
}

/// Runs `work`; a panic inside (damaged files make decoders panic now and then) becomes an error.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_string())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "the decoder gave up".to_string());
        Err(damaged(path, &why))
    })
}
