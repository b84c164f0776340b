//! Block-level replay: a recorded block trace drives an elevator and a device, without the memory above.
//!
//! [`compile`] turns the block events of a trace into a [`BlockProgram`] once; [`run`] plays it under a variant's queue,
//! elevator and device. What is replayed are the bios as their tasks queued them (Q events; where a device has none, its
//! requests as they were dispatched, D); what the recording says of the same bios further down (D and C) is kept beside
//! them for comparison and never drives anything.

mod compile;
mod engine;
mod plug;
mod program;
mod rows;
mod sequence;
mod slab;
#[cfg(test)]
mod tests;

pub use compile::{Rows, compile};
pub use engine::{BioDone, BlockReplayError, Observe, Replayed, run};
pub use program::{Action, BlockCoverage, BlockProgram, BlockTask, Flags, NO_UNPLUG, NONE, RecordedRequest};
pub use rows::replay;
pub use sequence::{Agreement, Dispatched, agreement};
