//! Compile a trace into a program and simulate it under kernel variants.
//!
//! `compile` turns a trace directory into a [`program::Program`] once; [`variant`] makes a [`config::Config`] of a name;
//! [`sim`] runs the one under the other and hands rows to a [`results::ResultSink`]; [`matrix`] does that for many.

pub mod block;
pub mod blockreplay;
pub mod compile;
pub mod config;
pub mod dirty;
pub mod fit;
pub mod matrix;
pub mod mm;
pub mod model;
pub mod net;
pub mod program;
pub mod prove;
pub mod readahead;
pub mod reclaim;
pub mod results;
pub mod sim;
pub mod variant;
pub mod writeback;

#[cfg(test)]
mod testing;
