//! Devices: how long a request takes.

mod command_queue;
mod disk;
mod geometry;
mod null;
#[cfg(test)]
mod properties;
mod rotating;
mod ssd;
mod write_cache;

use kreplay_traces::units::Nanos;

use super::Dir;
use super::error::ConfigError;
use crate::config::{DeviceConfig, check};

/// A request as a device sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) dir: Dir,
    /// First sector.
    pub(crate) sector: u64,
    /// Sectors.
    pub(crate) nr: u32,
}

/// A command that a device holds until it chooses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldCommand {
    pub(crate) transfer: Transfer,
    /// Held since then.
    pub(crate) since: Nanos,
    /// Where its first sector lies, on a disk: it is looked at once a choice.
    place: Option<geometry::Place>,
}

/// A device's state and timing.
pub(crate) trait Device {
    /// Accepts a request; when it will be done, and how long the device works on it.
    fn serve(&mut self, now: Nanos, t: Transfer) -> Served;
    /// The same for a command that the device has held since an earlier time (see [`Device::reorders`]).
    fn serve_held(&mut self, now: Nanos, since: Nanos, t: Transfer) -> Served {
        let _ = since;
        self.serve(now, t)
    }
    /// Empties the write cache; when it is empty. Without one, what is complete is on the medium.
    fn flush(&mut self, now: Nanos) -> Nanos {
        now
    }
    /// It holds several commands and chooses among them: see [`Device::pick`].
    fn reorders(&self) -> bool {
        false
    }
    /// A command that it is going to hold.
    fn hold(&self, transfer: Transfer, since: Nanos) -> HeldCommand {
        HeldCommand { transfer, since, place: None }
    }
    /// Which of the commands that it holds it serves next.
    fn pick(&self, _: Nanos, _: &[HeldCommand]) -> usize {
        0
    }
}

/// Timing of an accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// When it is done.
    pub(crate) done_at: Nanos,
    /// Of that, service.
    pub(crate) service: Nanos,
}

/// Every device.
#[derive(Clone, Debug)]
pub(crate) enum AnyDevice {
    Rotating(rotating::Rotating),
    Null(null::Null),
    Ssd(ssd::Ssd),
    Disk(Box<disk::Disk>),
}

impl Device for AnyDevice {
    #[inline]
    fn serve(&mut self, now: Nanos, t: Transfer) -> Served {
        match self {
            Self::Rotating(d) => d.serve(now, t),
            Self::Null(d) => d.serve(now, t),
            Self::Ssd(d) => d.serve(now, t),
            Self::Disk(d) => d.serve(now, t),
        }
    }

    fn serve_held(&mut self, now: Nanos, since: Nanos, t: Transfer) -> Served {
        match self {
            Self::Rotating(d) => d.serve_held(now, since, t),
            Self::Null(d) => d.serve_held(now, since, t),
            Self::Ssd(d) => d.serve_held(now, since, t),
            Self::Disk(d) => d.serve_held(now, since, t),
        }
    }

    fn flush(&mut self, now: Nanos) -> Nanos {
        match self {
            Self::Rotating(d) => d.flush(now),
            Self::Null(d) => d.flush(now),
            Self::Ssd(d) => d.flush(now),
            Self::Disk(d) => d.flush(now),
        }
    }

    #[inline]
    fn reorders(&self) -> bool {
        matches!(self, Self::Disk(d) if d.reorders())
    }

    fn hold(&self, transfer: Transfer, since: Nanos) -> HeldCommand {
        match self {
            Self::Disk(d) => d.hold(transfer, since),
            Self::Rotating(_) | Self::Null(_) | Self::Ssd(_) => HeldCommand { transfer, since, place: None },
        }
    }

    fn pick(&self, now: Nanos, held: &[HeldCommand]) -> usize {
        match self {
            Self::Disk(d) => d.pick(now, held),
            Self::Rotating(_) | Self::Null(_) | Self::Ssd(_) => 0,
        }
    }
}

/// A device and how the queue above may use it.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    pub(crate) device: AnyDevice,
    /// Requests it takes at a time.
    pub(crate) queue_depth: u32,
    /// All such devices share a channel.
    pub(crate) shared_channel: bool,
}

/// Builds the device of a variant, once its numbers are known to be in their ranges.
pub(crate) fn build(config: &DeviceConfig) -> Result<Attached, ConfigError> {
    check::device(config)?;
    let (device, queue_depth, shared_channel) = match *config {
        DeviceConfig::Disk { ref preset, queue_depth, shared_channel, write_cache_bytes, order } => {
            (AnyDevice::Disk(Box::new(disk::Disk::new(preset, write_cache_bytes, order)?)), queue_depth, shared_channel)
        }
        DeviceConfig::Rotating { queue_depth, shared_channel, .. } => {
            (AnyDevice::Rotating(rotating::Rotating::new(config)?), queue_depth, shared_channel)
        }
        DeviceConfig::Ssd { queue_depth, .. } => (AnyDevice::Ssd(ssd::Ssd::new(config)?), queue_depth, false),
        DeviceConfig::Null { queue_depth } => (AnyDevice::Null(null::Null), queue_depth, false),
    };
    Ok(Attached { device, queue_depth, shared_channel })
}
