//! A trace directory as the compiler's source.

use crate::compile::source::{TraceSource, Visit};
use crate::compile::{CompileError, DeviceFact, EventRow, MachineFacts, SideTables};
use crate::program::{LinkInfo, LinkKind};
use kreplay_traces::error::Error;
use kreplay_traces::event::FaultRow;
use kreplay_traces::store::{self, DeviceSpec, LinkSpec, Manifest, TraceDir};
use kreplay_traces::units::{Nanos, Sectors};

/// Fact of a recording that names the directory it is about.
const MOUNT_FACT: &str = "mount";

/// A trace on disk, ready to be compiled.
#[derive(Clone, Debug)]
pub struct StoredTrace<'t> {
    trace: &'t TraceDir,
    side: SideTables,
}

impl<'t> StoredTrace<'t> {
    /// Reads the side tables.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub fn open(trace: &'t TraceDir) -> Result<Self, Error> {
        let manifest = trace.manifest();
        let mut side = SideTables {
            trace_id: manifest.trace_id.clone(),
            // The store's times count from the trace's start.
            origin_ns: Some(0),
            links: manifest.links.iter().map(link).collect(),
            machine: machine(manifest),
            ..SideTables::default()
        };
        trace.processes()?.for_each(|row| side.processes.push((&row).into()))?;
        trace.files()?.for_each(|row| side.files.push((&row).into()))?;
        Ok(Self { trace, side })
    }
}

impl TraceSource for StoredTrace<'_> {
    fn side(&self) -> &SideTables {
        &self.side
    }

    fn events(&mut self, visit: &mut Visit<'_>) -> Result<(), CompileError> {
        let read = |e: Error| CompileError::Source { message: e.to_string() };
        let mut calls = self.trace.syscalls().map_err(read)?;
        let mut faults = self.trace.faults().map_err(read)?;
        let mut fault: Option<FaultRow> = faults.next().map_err(read)?;
        while let Some(call) = calls.next().map_err(read)? {
            while let Some(f) = fault.filter(|f| (f.time_ns, f.line) < (call.time_ns, call.line)) {
                visit(EventRow::Fault(f))?;
                fault = faults.next().map_err(read)?;
            }
            visit(EventRow::Syscall(call))?;
        }
        while let Some(f) = fault {
            visit(EventRow::Fault(f))?;
            fault = faults.next().map_err(read)?;
        }
        Ok(())
    }
}

fn machine(manifest: &Manifest) -> MachineFacts {
    let generated = !manifest.sources.is_empty() && manifest.sources.iter().all(|s| s.format == "synth");
    // Files that do not name a device lie on the first: never on one that is for swapping.
    let (swap, data): (Vec<&DeviceSpec>, Vec<&DeviceSpec>) = manifest.machine.devices.iter().partition(|d| d.swap);
    MachineFacts {
        roots: manifest.machine.facts.get(MOUNT_FACT).cloned().into_iter().collect(),
        devices: data.into_iter().chain(swap).map(device).collect(),
        // A generator adds no time of its own between calls.
        tracer_floor: generated.then_some(Nanos::ZERO),
    }
}

fn device(spec: &DeviceSpec) -> DeviceFact {
    DeviceFact {
        dev: spec.dev,
        name: spec.name.clone().unwrap_or_else(|| format!("{}:{}", spec.dev >> 20, spec.dev & 0xf_ffff)),
        sectors: spec.sectors.map(Sectors),
        partitions: spec.partitions.iter().copied().map(Sectors).collect(),
    }
}

fn link(spec: &LinkSpec) -> LinkInfo {
    let kind = match spec.kind {
        store::LinkKind::Fifo => LinkKind::Fifo,
        store::LinkKind::Segments { mss_bytes, window_bytes, burst_bytes, tick_ns } => {
            LinkKind::Segments { mss: mss_bytes, window: window_bytes, burst: burst_bytes, tick: Nanos(tick_ns) }
        }
    };
    LinkInfo { kind, rate_bytes_s: spec.rate_bytes_s, clients: spec.clients }
}
