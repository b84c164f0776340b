//! Compile a trace into a program and simulate it under kernel variants.
//!
//! `compile` turns a trace directory into a [`program::Program`] once; [`config::Config`] says what a variant's kernel
//! does; the simulator runs the one under the other.

pub mod block;
pub mod config;
pub mod program;
pub mod prove;
