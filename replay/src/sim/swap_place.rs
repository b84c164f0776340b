//! Where the swap area lies: on a disk of its own, or behind everything else on the first disk.

use crate::config::Config;
use crate::program::DeviceInfo;
use kreplay_traces::units::Sectors;

/// The place of slot 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwapPlace {
    /// Index of its disk.
    pub(super) dev: u32,
    /// Its partition: elevators neither merge nor sort across partitions.
    pub(super) partition: u16,
    /// First sector.
    pub(super) first: Sectors,
}

impl SwapPlace {
    /// Swap as the configuration has it; `None` without swap. A disk of its own is added to `devices`.
    pub(super) fn attach(config: &Config, devices: &mut Vec<DeviceInfo>) -> Option<Self> {
        let size = Sectors(config.machine.swap * 2);
        if size == Sectors::ZERO {
            return None;
        }
        if config.swap.shares_disk
            && let Some(disk) = devices.first_mut()
        {
            let first = disk.sectors;
            disk.sectors = first + size;
            // Sectors of the others count their partition from 0 (before the first) to the number of partitions.
            let partition = u16::try_from(disk.partitions.len() + 1).unwrap_or(u16::MAX);
            return Some(Self { dev: 0, partition, first });
        }
        let dev = u32::try_from(devices.len()).ok()?;
        devices.push(DeviceInfo { name: "swap".into(), sectors: size, partitions: vec![Sectors(0)] });
        Some(Self { dev, partition: 0, first: Sectors::ZERO })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn disk() -> DeviceInfo {
        DeviceInfo { name: "hda".into(), sectors: Sectors(5000), partitions: vec![Sectors(0), Sectors(2000)] }
    }

    #[test]
    fn swap_has_a_disk_of_its_own_unless_it_shares_one() {
        let mut config = testing::config();
        config.machine.swap = 1024;
        let mut devices = vec![disk()];
        let place = SwapPlace::attach(&config, &mut devices).unwrap();
        assert_eq!(place, SwapPlace { dev: 1, partition: 0, first: Sectors(0) });
        assert_eq!((devices.len(), devices[1].sectors), (2, Sectors(2048)));

        config.swap.shares_disk = true;
        let mut devices = vec![disk()];
        let place = SwapPlace::attach(&config, &mut devices).unwrap();
        assert_eq!(place, SwapPlace { dev: 0, partition: 3, first: Sectors(5000) });
        assert_eq!((devices.len(), devices[0].sectors), (1, Sectors(7048)));

        config.machine.swap = 0;
        assert_eq!(SwapPlace::attach(&config, &mut devices), None);
    }
}
