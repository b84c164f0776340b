//! What was reported on the kernel list in 2001, answered by replays: claims as data, figures, verdicts, causes.
//!
//! [`Registry`] holds the claims and the runs that they need; whoever simulates those runs says by [`Cells`] where the cells
//! are; [`evaluate`] takes the figures and judges; [`Answer::report`] makes a report of it that any renderer shows.

pub mod anova;
mod blame;
mod evaluate;
pub mod expr;
mod figures;
mod onset;
mod registry;
mod report;
mod rows;
mod starve;
mod verdict;
mod view;

pub use evaluate::{Answer, CellId, Cells, FigureValue, Pair, Row, Swept, evaluate};
pub use figures::{KINDS, Kind, Take};
pub use registry::{Claim, Registry, RegistryError, Run};
pub use verdict::{Tested, Verdict};
