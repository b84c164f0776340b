//! Which block devices lie below a path, and where sysfs describes them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};

use crate::error::{RecordError, Result};

/// A block device as the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Kernel name (`sda`, `loop0`): of the whole disk, even where a partition was asked for.
    pub name: String,
    /// Major and minor number of the whole disk.
    pub number: (u64, u64),
    /// First sector of the partition that was asked for, 512-byte sectors; 0 for a whole disk.
    pub start_512: u64,
    /// Capacity of the whole disk in 512-byte sectors.
    pub sectors_512: u64,
    /// The disk's folder in sysfs.
    pub sysfs: PathBuf,
    /// Devices below (of a volume manager's or RAID's device), to the lowest; each once.
    pub below: Vec<Device>,
}

impl Device {
    /// The device of a path: a block special file itself, else the one that its file system is on.
    ///
    /// # Errors
    /// When there is no such path, or its file system lies on no block device (tmpfs, network, overlay).
    pub fn of(path: &Path) -> Result<Self> {
        let meta = fs::metadata(path).map_err(|e| {
            RecordError::usage(format!("{}: {e}", path.display()), "name a block device, or a folder that lies on one")
        })?;
        let number = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
        Self::numbered(number).ok_or_else(|| {
            RecordError::usage(
                format!("{} lies on no block device", path.display()),
                "name one with --device, or leave block events out with --no-block",
            )
        })
    }

    fn numbered(number: u64) -> Option<Self> {
        let sysfs = fs::canonicalize(format!("/sys/dev/block/{}:{}", major(number), minor(number))).ok()?;
        Self::at(&sysfs)
    }

    /// The device that a folder of sysfs describes; a partition's is the one of its disk.
    fn at(folder: &Path) -> Option<Self> {
        let partition = folder.join("partition").exists();
        let start_512 = if partition { number_in(&folder.join("start"))? } else { 0 };
        let sysfs = if partition { folder.parent()?.to_owned() } else { folder.to_owned() };
        let numbers = fs::read_to_string(sysfs.join("dev")).ok()?;
        let (major, minor) = numbers.trim().split_once(':')?;
        Some(Self {
            name: sysfs.file_name()?.to_string_lossy().replace('!', "/"),
            number: (major.parse().ok()?, minor.parse().ok()?),
            start_512,
            sectors_512: number_in(&sysfs.join("size"))?,
            below: lowest(&sysfs),
            sysfs,
        })
    }

    /// This device and all below it.
    pub fn all(&self) -> impl Iterator<Item = &Device> {
        std::iter::once(self).chain(&self.below)
    }

    /// The number as the kernel's trace filters write it.
    pub(crate) fn dev_t(&self) -> u64 {
        self.number.0 << 20 | self.number.1
    }
}

fn lowest(sysfs: &Path) -> Vec<Device> {
    let (mut out, mut seen) = (Vec::new(), BTreeSet::new());
    let names: BTreeSet<PathBuf> =
        fs::read_dir(sysfs.join("slaves")).into_iter().flatten().flatten().map(|e| e.path()).collect();
    for slave in names {
        let Some(device) = fs::canonicalize(slave).ok().and_then(|folder| Device::at(&folder)) else { continue };
        for each in device.all() {
            if seen.insert(each.number) {
                out.push(Device { below: Vec::new(), ..each.clone() });
            }
        }
    }
    out
}

/// The number that a file of one line holds.
pub(crate) fn number_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Where a block device is mounted, the last mount first.
pub(crate) fn mounted_at(device: &Path) -> Option<PathBuf> {
    let number = fs::metadata(device).ok()?.rdev();
    let table = fs::read_to_string("/proc/self/mounts").ok()?;
    let points = table.lines().rev().filter_map(|line| line.split(' ').nth(1)).map(unescaped);
    points.into_iter().find(|point| fs::metadata(point).is_ok_and(|m| m.dev() == number))
}

/// A path as the mount table writes it.
fn unescaped(point: &str) -> PathBuf {
    PathBuf::from(point.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
}

/// The mount point of the file system that a path is on, and its type.
pub(crate) fn mount_of(path: &Path) -> Option<(PathBuf, String)> {
    let path = fs::canonicalize(path).ok()?;
    let table = fs::read_to_string("/proc/self/mounts").ok()?;
    mount_in(&table, &path)
}

fn mount_in(table: &str, path: &Path) -> Option<(PathBuf, String)> {
    // Of several mounts on one point the last one is what is seen.
    let mut best: Option<(PathBuf, String)> = None;
    for line in table.lines() {
        let mut fields = line.split(' ');
        let (Some(_), Some(point), Some(kind)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let point = unescaped(point);
        let longer = |b: &(PathBuf, String)| point.components().count() >= b.0.components().count();
        if path.starts_with(&point) && best.as_ref().is_none_or(longer) {
            best = Some((point, kind.to_owned()));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts_and_of_two_on_one_point_the_last() {
        let table = "a / ext4 rw 0 0\nb /mnt xfs rw 0 0\nc /mnt/my\\040disk ext4 rw 0 0\nd /mnt btrfs rw 0 0\n";
        let at = |p: &str| mount_in(table, Path::new(p)).unwrap();
        assert_eq!(at("/mnt/my disk/x"), ("/mnt/my disk".into(), "ext4".into()));
        assert_eq!(at("/mnt/other"), ("/mnt".into(), "btrfs".into()));
        assert_eq!(at("/mntx"), ("/".into(), "ext4".into()));
    }

    #[test]
    fn a_partition_is_its_disk_from_a_sector_on() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("sda");
        let part = disk.join("sda1");
        fs::create_dir_all(&part).unwrap();
        for (file, text) in [("dev", "8:0\n"), ("size", "1000\n"), ("sda1/partition", "1\n"), ("sda1/start", "63\n")] {
            fs::write(disk.join(file), text).unwrap();
        }
        let device = Device::at(&part).unwrap();
        assert_eq!((device.name.as_str(), device.number, device.start_512), ("sda", (8, 0), 63));
        assert_eq!((device.sectors_512, device.dev_t()), (1000, 8 << 20));
        assert_eq!(Device::at(&disk).unwrap().start_512, 0);
    }

    #[test]
    fn a_path_without_a_device_says_what_to_do() {
        let error = Device::of(Path::new("/proc")).unwrap_err();
        assert!(error.to_string().contains("no block device"), "{error}");
        let error = Device::of(Path::new("/no/such/device")).unwrap_err();
        assert!(matches!(error, RecordError::Usage { .. }), "{error}");
    }
}
