//! Compile a trace into a program and simulate it under kernel variants.
//!
//! `compile` turns a trace directory into a [`program::Program`] once; [`config::Config`] says what a variant's kernel
//! does; [`sim`] runs the one under the other and hands rows to a [`results::ResultSink`].

pub mod block;
pub mod config;
pub mod mm;
pub mod program;
pub mod reclaim;
pub mod results;
pub mod sim;
pub mod writeback;

#[cfg(test)]
mod testing;
