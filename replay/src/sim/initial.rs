//! What is in memory when the trace begins: key `machine.cache`.
//!
//! `cold`: nothing. `warm`: what the trace's files held then, in the order of the trace's files, so far as it goes in; where it
//! does not, its end. `elsewhere`: files, with their names and inodes, that lie on another disk than the recorded one, as programs and
//! libraries do. Else a list as mincore or fincore give it: `PATH` or `PATH:FIRST-LAST,PAGE` of pages of 4 KiB, least recently
//! used first, separated by blanks. Pages are up to date, clean, read once, and on the lists where reads leave them.

use super::{Sim, SimError};
use crate::mm::page::flag;
use crate::program::{FileKind, Program};

/// Page ids of what was cached, least recently used first.
pub(super) fn cached(program: &Program, rule: &str) -> Result<Vec<u32>, String> {
    let held = |f: &crate::program::FileInfo| {
        let pages = if f.exists { f.initial_size.div_ceil(4096).min(u64::from(f.pages)) as u32 } else { 0 };
        f.first_page..f.first_page + pages
    };
    match rule {
        "" | "cold" => return Ok(Vec::new()),
        "elsewhere" => {
            let files = program.files.iter().filter(|f| f.elsewhere);
            return Ok(files.flat_map(|f| [f.name_page, f.inode_page].into_iter().flatten().chain(held(f))).collect());
        }
        "warm" => {
            let files = program.files.iter().filter(|f| f.kind == FileKind::Regular);
            return Ok(files.flat_map(held).collect());
        }
        _ => {}
    }
    let mut ids = Vec::new();
    for entry in rule.split_whitespace() {
        let (path, list) = match entry.rsplit_once(':') {
            Some((path, list)) if !path.is_empty() => (path, Some(list)),
            _ => (entry, None),
        };
        // A file that the trace never uses takes memory in reality, but its pages are nobody's here.
        let Some(f) = program.files.iter().find(|f| f.path == path) else { continue };
        let here = held(f);
        let Some(list) = list else {
            ids.extend(here);
            continue;
        };
        for range in list.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                return Err(format!("\"{entry}\": expected PATH or PATH:FIRST-LAST,PAGE with numbers of pages"));
            };
            ids.extend((first..=last).map_while(|i| here.start.checked_add(i)).take_while(|id| here.contains(id)));
        }
    }
    Ok(ids)
}

impl Sim<'_> {
    pub(super) fn fill_cache(&mut self) -> Result<(), SimError> {
        let ids = cached(self.program, &self.config.machine.cache)
            .map_err(|what| SimError::Config(format!("machine.cache: {what}")))?;
        // What others brought in is charged to them, and stays while they use it.
        let elsewhere = self.config.machine.cache == "elsewhere";
        let left = if elsewhere { u64::MAX } else { self.under_limit().unwrap_or(i64::MAX).max(0) as u64 };
        let room = self.mm.zones.free_above_high().min(left) as usize;
        for id in ids.iter().skip(ids.len().saturating_sub(room)).copied() {
            if self.mm.page(id).any(flag::PRESENT) {
                continue;
            }
            let Some(zone) = self.mm.zones.take_low() else { break };
            if self.mm.adopt_frame(id, zone) {
                self.mm.set(id, flag::UPTODATE | flag::REFERENCED);
                self.mm.unlock(id);
                if elsewhere {
                    self.mm.keep_uncharged(id);
                }
            } else {
                self.mm.zones.give(zone);
            }
        }
        if elsewhere {
            for file in (0..).zip(&self.program.files).filter(|(_, f)| f.elsewhere).map(|(i, _)| i) {
                self.mm.names.touch(file);
            }
        }
        // Nobody waits for these.
        self.mm.unlocked.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Builder;

    #[test]
    fn rules_name_pages_of_files_that_are_there() {
        let mut b = Builder::new();
        let (f, g) = (b.file(8, 8), b.file(8, 4));
        let p = b.build();
        let (a, c) = (&p.files[f as usize], &p.files[g as usize]);
        assert_eq!(cached(&p, "cold"), Ok(vec![]));
        assert_eq!(cached(&p, "warm").expect("warm").len(), 12);
        let list = format!("{}:2-3,7 {} /none:0-9", c.path, a.path);
        let mut expected = vec![c.first_page + 2, c.first_page + 3];
        expected.extend(a.first_page..a.first_page + 8);
        assert_eq!(cached(&p, &list), Ok(expected));
        assert!(cached(&p, &format!("{}:x", a.path)).unwrap_err().contains("FIRST-LAST"));
    }
}
