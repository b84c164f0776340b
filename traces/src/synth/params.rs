//! Typed parameters of the loads.

use std::collections::BTreeMap;

use super::Load;
use crate::error::{Error, Result};

/// One parameter: a whole number with its unit in the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamSpec {
    /// Name.
    pub name: &'static str,
    /// Its name in the descriptions of the recorded runs (`run.json`).
    pub recorded: &'static str,
    /// Value if not set.
    pub default: u64,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// What it is.
    pub about: &'static str,
}

/// Short for a table of parameters.
pub(super) const fn param(
    name: &'static str,
    recorded: &'static str,
    default: u64,
    range: (u64, u64),
    about: &'static str,
) -> ParamSpec {
    ParamSpec { name, recorded, default, min: range.0, max: range.1, about }
}

/// The values of a load's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    load: &'static str,
    specs: &'static [ParamSpec],
    values: Vec<u64>,
}

impl Params {
    /// Every parameter at its default.
    pub fn defaults(load: &Load) -> Self {
        Self { load: load.name, specs: load.params, values: load.params.iter().map(|p| p.default).collect() }
    }

    /// Value of a parameter.
    ///
    /// # Panics
    /// If the load has no such parameter: names are fixed in the load's table.
    pub fn get(&self, name: &str) -> u64 {
        let i = self.specs.iter().position(|p| p.name == name);
        self.values[i.unwrap_or_else(|| panic!("load {} has no parameter {name}", self.load))]
    }

    /// Value of a yes/no parameter.
    pub(super) fn on(&self, name: &str) -> bool {
        self.get(name) != 0
    }

    /// Value of a parameter in MiB, as bytes.
    pub(super) fn mib(&self, name: &str) -> u64 {
        self.get(name) << 20
    }

    /// Set a parameter.
    ///
    /// # Errors
    /// An unknown name or a value out of range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<()> {
        let Some(i) = self.specs.iter().position(|p| p.name == name) else {
            let known: Vec<&str> = self.specs.iter().map(|p| p.name).collect();
            let known =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err(self.wrong(format!("no parameter {name:?}; {known}")));
        };
        let spec = &self.specs[i];
        if !(spec.min..=spec.max).contains(&value) {
            return Err(
                self.wrong(format!("{name}={value} is out of range, {} to {} are possible", spec.min, spec.max))
            );
        }
        self.values[i] = value;
        Ok(())
    }

    /// Set a parameter from `key=value`.
    ///
    /// # Errors
    /// As [`Params::set`], or text of another shape.
    pub fn set_text(&mut self, setting: &str) -> Result<()> {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(self.wrong(format!("{setting:?} is not of the form key=value")));
        };
        let number =
            value.trim().parse().map_err(|_| self.wrong(format!("{setting:?}: the value is not a whole number")))?;
        self.set(name.trim(), number)
    }

    /// All values by name.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.specs.iter().zip(&self.values).map(|(p, v)| (p.name.to_owned(), v.to_string())).collect()
    }

    fn wrong(&self, why: String) -> Error {
        Error::Param { load: self.load.to_owned(), why }
    }
}
