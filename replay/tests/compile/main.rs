//! From calls to operations, case by case: each small enough to be checked by hand.

mod descriptors;
mod layout;
mod memory;
mod names;
mod random;
mod stored;
mod tasks;
mod times;
mod trace;
