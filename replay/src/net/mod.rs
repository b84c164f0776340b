//! Network services in front of the simulated machine.

pub mod nfsd;
