//! Units, event schema, trace-directory store and compressed input streams.
//!
//! Every other crate depends on this one: parsers produce the rows of [`event`], the replay engine compiles them,
//! the analysis reads result tables written with the same conventions. A *trace* is what was recorded on a machine;
//! on disk it is a trace directory (see [`store`]).

pub mod encode;
pub mod error;
pub mod event;
pub mod hashing;
pub mod input;
pub mod owned;
pub mod publish;
pub mod schema;
pub mod store;
pub mod synth;
pub mod units;
