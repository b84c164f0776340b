//! The trace directory: `manifest.json` and one folder of Parquet parts a table.
//!
//! ```text
//! TRACE/manifest.json
//! TRACE/syscall/part-00000.parquet
//! TRACE/block/part-00000.parquet
//! TRACE/vmstat/part-00000.parquet
//! ```
//!
//! [`TraceWriter`] makes one, [`TraceDir`] opens one. A part holds rows of one source, sorted by (time, line), with
//! the source's own time stamps; the manifest's clock section says how they are shifted, and readers give times since
//! the start of the trace.

mod activity;
mod align;
mod buffer;
mod copy;
mod decode;
mod dir;
mod manifest;
mod part;
mod reader;
mod source;
mod workdir;
mod writer;

pub use activity::{Activity, ActivityReader};
pub use copy::copy_tables;
pub use dir::TraceDir;
pub use manifest::{
    ClockInfo, ClockKind, DeviceSpec, FORMAT, LinkKind, LinkSpec, MANIFEST_FILE, MachineInfo, Manifest, MountSpec,
    PartInfo, SourceInfo,
};
pub use reader::TableReader;
pub use source::{SourceFacts, SourceKey, WriterOptions, hash_file};
pub use writer::TraceWriter;

#[cfg(test)]
mod tests;
