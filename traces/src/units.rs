//! Units as types, with checked arithmetic.
//!
//! A bare integer never carries a unit across a public function of this workspace: it is wrapped in one of these, or
//! its name ends in the unit (`time_ns`, `len_bytes`, `sector_512`). Arithmetic panics on overflow in every build
//! profile: a wrapped time or sector would silently corrupt a simulation, and 2^63 nanoseconds are 292 years.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Bytes in a page of every machine modelled here (i386 and x86-64 base pages).
pub const PAGE_BYTES: u64 = 4096;
/// Bytes in the block layer's sector, whatever the device's physical sector is.
pub const SECTOR_BYTES: u64 = 512;
/// Sectors in a page.
pub const SECTORS_PER_PAGE: u64 = PAGE_BYTES / SECTOR_BYTES;

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident, $suffix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);
            /// The largest value; used as "never" or "no limit".
            pub const MAX: Self = Self(u64::MAX);

            /// The bare number.
            #[inline]
            pub const fn get(self) -> u64 {
                self.0
            }
            /// Sum, or `None` on overflow.
            #[inline]
            pub const fn checked_add(self, rhs: Self) -> Option<Self> {
                match self.0.checked_add(rhs.0) {
                    Some(v) => Some(Self(v)),
                    None => None,
                }
            }
            /// Difference, or `None` where it would be negative.
            #[inline]
            pub const fn checked_sub(self, rhs: Self) -> Option<Self> {
                match self.0.checked_sub(rhs.0) {
                    Some(v) => Some(Self(v)),
                    None => None,
                }
            }
            /// Difference, zero where it would be negative.
            #[inline]
            pub const fn saturating_sub(self, rhs: Self) -> Self {
                Self(self.0.saturating_sub(rhs.0))
            }
        }

        impl Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, rhs: Self) -> Self {
                Self(self.0.checked_add(rhs.0).expect(concat!(stringify!($name), " overflow")))
            }
        }
        impl AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, rhs: Self) {
                *self = *self + rhs;
            }
        }
        impl Sub for $name {
            type Output = Self;
            #[inline]
            fn sub(self, rhs: Self) -> Self {
                Self(self.0.checked_sub(rhs.0).expect(concat!(stringify!($name), " underflow")))
            }
        }
        impl SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, rhs: Self) {
                *self = *self - rhs;
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{}", $suffix), self.0)
            }
        }
    };
}

unit!(
    /// A length of time, or a point in simulated time since the start of the trace, in nanoseconds.
    Nanos, " ns"
);
unit!(
    /// A number of bytes.
    Bytes, " B"
);
unit!(
    /// A number of 512-byte sectors, or a sector address.
    Sectors, " sectors"
);
unit!(
    /// A number of 4096-byte pages.
    Pages, " pages"
);

impl Nanos {
    /// From whole microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// From whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// From whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// As seconds, for printing only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Bytes {
    /// Pages that hold this many bytes, rounded up.
    pub const fn to_pages_ceil(self) -> Pages {
        Pages(self.0.div_ceil(PAGE_BYTES))
    }
    /// Sectors that hold this many bytes, rounded up.
    pub const fn to_sectors_ceil(self) -> Sectors {
        Sectors(self.0.div_ceil(SECTOR_BYTES))
    }
}

impl Pages {
    /// The bytes in these pages.
    pub const fn to_bytes(self) -> Bytes {
        Bytes(self.0 * PAGE_BYTES)
    }
    /// The sectors in these pages.
    pub const fn to_sectors(self) -> Sectors {
        Sectors(self.0 * SECTORS_PER_PAGE)
    }
}

impl Sectors {
    /// The bytes in these sectors.
    pub const fn to_bytes(self) -> Bytes {
        Bytes(self.0 * SECTOR_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_round_up_where_they_say_so() {
        assert_eq!(Bytes(1).to_pages_ceil(), Pages(1));
        assert_eq!(Bytes(4096).to_pages_ceil(), Pages(1));
        assert_eq!(Bytes(4097).to_sectors_ceil(), Sectors(9));
        assert_eq!(Pages(3).to_sectors(), Sectors(24));
    }

    #[test]
    #[should_panic(expected = "Nanos underflow")]
    fn subtraction_below_zero_panics() {
        let _ = Nanos(1) - Nanos(2);
    }
}
