//! How far two dispatch sequences agree.

use std::collections::BTreeMap;

use crate::block::Dir;

/// A request as a device gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatched {
    /// Device.
    pub dev: u16,
    /// Direction.
    pub dir: Dir,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub nr: u32,
}

/// What two sequences have in common; counts of requests of the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Requests in the first.
    pub of: usize,
    /// ... whose first sector the second dispatches as often.
    pub found: usize,
    /// ... by a request of the same first sector and length.
    pub same: usize,
    /// Most requests that both dispatch in the same order (longest common subsequence of their first sectors).
    pub in_order: usize,
}

/// A place that is looked up: device, direction, sector.
type Place = (u16, Dir, u64);

/// Compares by first sectors: the k-th dispatch of a sector in `first` stands against the k-th one in `second`, whatever
/// request it is part of there.
pub fn agreement(first: &[Dispatched], second: &[Dispatched]) -> Agreement {
    let mut there: BTreeMap<Place, Vec<usize>> = first.iter().map(|r| ((r.dev, r.dir, r.sector), Vec::new())).collect();
    for (position, r) in second.iter().enumerate() {
        for (_, positions) in there.range_mut(covered(r)) {
            positions.push(position);
        }
    }
    let mut times: BTreeMap<Place, usize> = BTreeMap::new();
    let mut out = Agreement { of: first.len(), ..Agreement::default() };
    // Smallest last position of an ordered subsequence of each length.
    let mut tails: Vec<usize> = Vec::new();
    for r in first {
        let mut nth = 0;
        for (place, _) in there.range(covered(r)) {
            let n = times.entry(*place).or_default();
            if place.2 == r.sector {
                nth = *n;
            }
            *n += 1;
        }
        let Some(&position) = there[&(r.dev, r.dir, r.sector)].get(nth) else { continue };
        out.found += 1;
        out.same += usize::from(second[position] == *r);
        let at = tails.partition_point(|&t| t <= position);
        match tails.get_mut(at) {
            Some(t) => *t = position,
            None => tails.push(position),
        }
    }
    out.in_order = tails.len();
    out
}

fn covered(r: &Dispatched) -> std::ops::Range<Place> {
    (r.dev, r.dir, r.sector)..(r.dev, r.dir, r.sector + u64::from(r.nr).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(list: &[(u64, u32)]) -> Vec<Dispatched> {
        list.iter().map(|&(sector, nr)| Dispatched { dev: 0, dir: Dir::Read, sector, nr }).collect()
    }

    #[test]
    fn equal_sequences_agree_in_everything() {
        let a = reads(&[(8, 8), (0, 8), (8, 8)]);
        assert_eq!(agreement(&a, &a), Agreement { of: 3, found: 3, same: 3, in_order: 3 });
    }

    #[test]
    fn one_that_comes_late_costs_one() {
        let (a, b) = (reads(&[(0, 8), (100, 8), (200, 8), (300, 8)]), reads(&[(100, 8), (200, 8), (300, 8), (0, 8)]));
        assert_eq!(agreement(&a, &b), Agreement { of: 4, found: 4, same: 4, in_order: 3 });
    }

    #[test]
    fn a_merge_is_another_request_in_the_same_place() {
        let (a, b) = (reads(&[(0, 8), (8, 8), (100, 8)]), reads(&[(0, 16), (100, 8)]));
        assert_eq!(agreement(&a, &b), Agreement { of: 3, found: 3, same: 1, in_order: 3 });
    }

    #[test]
    fn what_is_missing_is_not_found() {
        let (a, b) = (reads(&[(0, 8), (0, 8)]), reads(&[(0, 8)]));
        assert_eq!(agreement(&a, &b), Agreement { of: 2, found: 1, same: 1, in_order: 1 });
    }
}
