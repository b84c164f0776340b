//! Which variants a command line means: names, globs, files, `+` changes and `--set` sweeps.

use super::error::{Place, VariantError, did_you_mean};
use super::library::Library;
use super::resolve::{Assignment, Variant, resolve};
use globset::GlobBuilder;
use std::path::Path;

/// More variants than this in one selection are taken for a mistake.
const MAX_VARIANTS: usize = 10_000;

impl Library {
    /// The variants that `patterns` name, each combined with every profile of `profiles` and with every combination
    /// of the values in `sweeps`, without repetition, in the order given.
    ///
    /// A pattern is a name or a glob (`linux-2.4.16*`) or the path of a `.toml` file, followed by any number of
    /// `+profile` and `+section.key=value`. A sweep is `section.key=a,b,c`. Globs leave profiles out.
    ///
    /// # Errors
    /// A pattern that matches nothing, an unknown key, a bad value, a broken file: with place and help.
    pub fn select(
        &mut self,
        patterns: &[String],
        profiles: &[String],
        sweeps: &[String],
    ) -> Result<Vec<Variant>, VariantError> {
        let combinations = combine(sweeps)?;
        let mut found: Vec<Variant> = Vec::new();
        for pattern in patterns {
            let (head, changes) = self.split(pattern);
            let (mut own_profiles, own_sets) = self.changes(pattern, &changes)?;
            own_profiles.extend(profiles.iter().cloned());
            for name in self.matching(head)? {
                for profile in &own_profiles {
                    self.expect_profile(profile)?;
                }
                for combination in &combinations {
                    let sets: Vec<Assignment> = own_sets.iter().chain(combination).cloned().collect();
                    let variant = resolve(self, &name, &own_profiles, &sets)?;
                    if !found.iter().any(|v| v.name == variant.name) {
                        found.push(variant);
                    }
                    if found.len() > MAX_VARIANTS {
                        return Err(VariantError::new(format!("more than {MAX_VARIANTS} variants"))
                            .help("name fewer, or fewer values in --set"));
                    }
                }
            }
        }
        Ok(found)
    }

    /// A pattern's head and its changes. A '+' may be part of a variant's name (the longest name counts) and of a file's path.
    fn split<'a>(&self, pattern: &'a str) -> (&'a str, Vec<&'a str>) {
        let from = pattern.rfind(".toml").map_or(0, |i| i + ".toml".len());
        let plus = pattern[from..].match_indices('+').map(|(i, _)| from + i);
        let ends: Vec<usize> = plus.chain([pattern.len()]).collect();
        let named = |&end: &usize| self.get(&pattern[..end]).is_some_and(|f| !f.profile);
        let first = ends.iter().rposition(named).unwrap_or(0);
        let head = &pattern[..ends[first]];
        (head, ends[first..].windows(2).map(|w| &pattern[w[0] + 1..w[1]]).collect())
    }

    fn changes(&self, pattern: &str, changes: &[&str]) -> Result<(Vec<String>, Vec<Assignment>), VariantError> {
        let mut profiles = Vec::new();
        let mut sets = Vec::new();
        for change in changes {
            match change.split_once('=') {
                Some((key, value)) => sets.push(Assignment { key: key.to_owned(), value: value.to_owned() }),
                None if change.is_empty() => {
                    return Err(VariantError::new(format!("nothing follows a '+' in \"{pattern}\""))
                        .help("write +profile or +section.key=value"));
                }
                None => profiles.push((*change).to_owned()),
            }
        }
        Ok((profiles, sets))
    }

    fn expect_profile(&self, name: &str) -> Result<(), VariantError> {
        match self.get(name) {
            Some(file) if file.profile => Ok(()),
            Some(_) => Err(VariantError::new(format!("\"{name}\" is a variant of its own, not a profile"))
                .help("give it with a -v of its own")),
            None => {
                let help = did_you_mean(name, self.names(true))
                    .unwrap_or_else(|| format!("the profiles are {}", self.names(true).collect::<Vec<_>>().join(", ")));
                Err(VariantError::new(format!("there is no profile \"{name}\"")).help(help))
            }
        }
    }

    /// Names that a pattern's head means.
    fn matching(&mut self, head: &str) -> Result<Vec<String>, VariantError> {
        if head.ends_with(".toml") {
            return Ok(vec![self.load(Path::new(head))?]);
        }
        if let Some(file) = self.get(head) {
            if file.profile {
                return Err(VariantError::new(format!("\"{head}\" is a profile, not a kernel"))
                    .help(format!("add it to a variant: linux-2.4.16+{head}")));
            }
            return Ok(vec![head.to_owned()]);
        }
        let glob = GlobBuilder::new(head)
            .build()
            .map_err(|e| VariantError::new(format!("\"{head}\" is not a correct pattern: {}", e.kind())))?
            .compile_matcher();
        let names: Vec<String> = self.names(false).filter(|n| glob.is_match(n)).map(str::to_owned).collect();
        if names.is_empty() { Err(self.unknown(head)) } else { Ok(names) }
    }
}

/// Every combination of the sweeps' values; the first sweep varies slowest.
fn combine(sweeps: &[String]) -> Result<Vec<Vec<Assignment>>, VariantError> {
    let mut all: Vec<Vec<Assignment>> = vec![Vec::new()];
    for sweep in sweeps {
        let Some((key, values)) = sweep.split_once('=') else {
            return Err(VariantError::new("--set needs a value")
                .at(Place::of("--set", sweep, sweep.len()..sweep.len()))
                .help(format!("write {sweep}=value, or {sweep}=one,two for a sweep")));
        };
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if values.iter().any(|v| v.is_empty()) {
            return Err(VariantError::new("--set has an empty value")
                .at(Place::of("--set", sweep, key.len() + 1..sweep.len()))
                .help("write key=value, or key=one,two for a sweep"));
        }
        if all.len().saturating_mul(values.len()) > MAX_VARIANTS {
            return Err(VariantError::new(format!("the sweeps make more than {MAX_VARIANTS} combinations")));
        }
        all = all
            .iter()
            .flat_map(|done| {
                values.iter().map(move |v| {
                    let mut next = done.clone();
                    next.push(Assignment { key: key.trim().to_owned(), value: (*v).to_owned() });
                    next
                })
            })
            .collect();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::library::tests::with;
    use super::*;
    use crate::config::DeviceConfig;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    fn select(patterns: &[&str], profiles: &[&str], sweeps: &[&str]) -> Result<Vec<Variant>, VariantError> {
        with(&[]).select(&strings(patterns), &strings(profiles), &strings(sweeps))
    }

    fn names(found: &[Variant]) -> Vec<&str> {
        found.iter().map(|v| v.name.as_str()).collect()
    }

    #[test]
    fn the_readme_pattern_matches_several_kernels_and_no_profile() {
        let found = select(&["linux-2.4.16*"], &[], &[]).unwrap();
        assert!(found.len() >= 4, "{:?}", names(&found));
        assert_eq!(found[0].name, "linux-2.4.16");
        assert!(names(&found).iter().all(|n| n.starts_with("linux-2.4.16")));
    }

    #[test]
    fn tables_in_a_section_are_set_key_by_key() {
        let sweeps = ["elevator.bfq.low-latency=false,true", "elevator.deadline.fifo-batch=3"];
        let found = select(&["linux-2.4.16"], &[], &sweeps).unwrap();
        let set: Vec<_> =
            found.iter().map(|v| (v.config.elevator.bfq.low_latency, v.config.elevator.deadline.fifo_batch)).collect();
        assert_eq!(set, [(false, 3), (true, 3)]);
        let e = select(&["linux-2.4.16"], &[], &["elevator.bfq.low-latancy=false"]).unwrap_err();
        assert_eq!(e.help.as_deref(), Some("did you mean `low-latency`?"), "{e}");
        // A file that extends another changes the keys that it names, and no others of their table.
        let aging =
            select(&["linux-2.4.7", "linux-2.4.9"], &[], &[]).unwrap().into_iter().map(|v| v.config.reclaim.aging);
        assert_eq!(aging.map(|a| (a.start, a.drop_behind)).collect::<Vec<_>>(), [(2, true), (2, false)]);
    }

    #[test]
    fn a_sweep_makes_every_combination_once_and_its_names_select_them_again() {
        let sweeps = ["machine.ram=64MiB,128MiB", "elevator.read-latency=64,512"];
        let found = select(&["linux-2.4.16", "linux-2.4.1[6]"], &[], &sweeps).unwrap();
        assert_eq!(
            names(&found),
            [
                "linux-2.4.16+machine.ram=64MiB+elevator.read-latency=64",
                "linux-2.4.16+machine.ram=64MiB+elevator.read-latency=512",
                "linux-2.4.16+machine.ram=128MiB+elevator.read-latency=64",
                "linux-2.4.16+machine.ram=128MiB+elevator.read-latency=512",
            ]
        );
        assert_eq!(found[2].config.machine.ram, 128 * 1024);
        let again = select(&[&found[2].name], &[], &[]).unwrap();
        assert_eq!(again, found[2..3]);
    }

    #[test]
    fn the_longest_name_counts() {
        let found = select(&["linux-2.4.9-ac15+aging+launder+machine.ram=128MiB+slowdisk"], &[], &[]).unwrap();
        assert_eq!(names(&found), ["linux-2.4.9-ac15+aging+launder+slowdisk+machine.ram=128MiB"]);
        assert_eq!(found[0].config.machine.ram, 128 * 1024);
        let again = select(&[&found[0].name], &[], &[]).unwrap();
        assert_eq!(again[0].config, found[0].config);
        let shorter = select(&["linux-2.4.9-ac15", "linux-2.4.9-ac14+aging"], &[], &[]).unwrap();
        assert_eq!(names(&shorter), ["linux-2.4.9-ac15", "linux-2.4.9-ac14+aging"]);
        assert_ne!(shorter[0].config.reclaim, shorter[1].config.reclaim);
    }

    #[test]
    fn a_profile_lies_over_the_variant() {
        let plain = &select(&["linux-2.4.16"], &[], &[]).unwrap()[0];
        let slow = &select(&["linux-2.4.16"], &["slowdisk"], &[]).unwrap()[0];
        assert_eq!(slow.name, "linux-2.4.16+slowdisk");
        assert_eq!(slow.config.reclaim, plain.config.reclaim);
        let DeviceConfig::Rotating { rotation_us, overhead_us, queue_depth, .. } = slow.config.device else {
            panic!("slowdisk rotates")
        };
        assert_eq!((rotation_us, overhead_us, queue_depth), (4170, 100, 4));
        assert_ne!(slow.config_hash(), plain.config_hash());
    }

    #[test]
    fn another_device_model_drops_the_keys_of_the_old_one() {
        let found = select(&["linux-2.4.16+device.model=null+device.queue-depth=2"], &[], &[]).unwrap();
        assert_eq!(found[0].config.device, DeviceConfig::Null { queue_depth: 2 });
        assert!(found[0].choices.iter().all(|c| c.key != "device.rotation-us"));
    }

    #[test]
    fn mistakes_get_a_place_and_a_hint() {
        let fail = |patterns: &[&str], profiles: &[&str], sweeps: &[&str]| {
            select(patterns, profiles, sweeps).expect_err("must fail").to_string()
        };
        insta::assert_snapshot!(fail(&["linux-2.4.61"], &[], &[]));
        insta::assert_snapshot!(fail(&["freebsd*"], &[], &[]));
        insta::assert_snapshot!(fail(&["slowdisk"], &[], &[]));
        insta::assert_snapshot!(fail(&["linux-2.4.16"], &["slowdsk"], &[]));
        insta::assert_snapshot!(fail(&["linux-2.4.16"], &[], &["elevator.read-latancy=3"]));
        insta::assert_snapshot!(fail(&["linux-2.4.16"], &[], &["machine.ram=64MiB,12 parsecs"]));
        insta::assert_snapshot!(fail(&["linux-2.4.16"], &[], &["machine.ram"]));
        insta::assert_snapshot!(fail(&["linux-2.4.16"], &[], &["machine.ram=1MiB"]));
        insta::assert_snapshot!(fail(&["linux-2.4.16"], &[], &["device.model=null"]));
        insta::assert_snapshot!(fail(&["no/such/file.toml"], &[], &[]));
        insta::assert_snapshot!(fail(&["linux-2.4.16"], &[], &["elevator.policy=linus-2.3"]));
    }

    #[test]
    fn every_builtin_kernel_resolves_and_gives_a_reason_for_each_choice() {
        for variant in select(&["*"], &[], &[]).unwrap() {
            for choice in &variant.choices {
                let reason = choice
                    .reason
                    .as_ref()
                    .unwrap_or_else(|| panic!("{}: {} has no evidence", variant.name, choice.key));
                assert!(!reason.note.is_empty(), "{}: {} says nothing", variant.name, choice.key);
            }
        }
    }

    #[test]
    fn every_builtin_profile_can_be_added() {
        let library = with(&[]);
        let profiles: Vec<String> = library.list().filter(|s| s.profile).map(|s| s.name).collect();
        assert!(profiles.len() >= 4);
        for profile in profiles {
            assert_eq!(select(&["linux-2.4.16"], &[&profile], &[]).unwrap().len(), 1);
        }
    }
}
