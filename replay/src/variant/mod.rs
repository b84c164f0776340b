//! Kernel variants as TOML files: one file a variant, selected by name, glob or path, changed by `+` and `--set`.
//!
//! A file has a header (`name`, `about`, `extends`, `profile`, `sources`, `checked`), the sections of
//! [`crate::config::Config`], of which it sets what it changes, and a table `[evidence]` that says for a key or a whole
//! section how it is known. A profile may say in `where` what must be chosen below for it to count, and in `yields` which of
//! its keys give way together where the named variant's own file or the command line chooses one of them. Files lie in `replay/variants` (built in) or anywhere on disk.
//!
//! ```
//! use kreplay_replay::variant::Library;
//!
//! let mut library = Library::builtin()?;
//! let found = library.select(&["linux-2.4.16".into()], &[], &["machine.ram=64MiB,128MiB".into()])?;
//! assert_eq!(found[1].name, "linux-2.4.16+machine.ram=128MiB");
//! # Ok::<(), kreplay_replay::variant::VariantError>(())
//! ```

mod error;
mod file;
mod library;
mod recorded;
mod recorded_machine;
mod resolve;
mod schema;
mod select;
mod show;

pub use error::{Place, VariantError, nearest, nearest_or_longer};
pub use file::{Evidence, Reason};
pub use library::{Library, Summary};
pub use recorded::recorded_device;
pub(crate) use recorded_machine::priorities_of;
pub use recorded_machine::{RECORDED, names_machine, recorded_defaults};
pub use resolve::{Choice, NamePart, Variant};
pub use show::Difference;
