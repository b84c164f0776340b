//! A trace directory as a source: read twice, row by row, in constant memory.

use kreplay_traces::store::{Activity, LinkKind as StoredLinkKind, LinkSpec, MachineInfo, TraceDir};
use kreplay_traces::units::{Nanos, Sectors};

use super::CompileError;
use super::source::{DeviceFact, EventRow, MachineFacts, OwnedFile, OwnedProcess, SideTables, TraceSource, Visit};
use crate::program::{LinkInfo, LinkKind, RecordedMemory, ServerLoad};

/// An opened trace directory with its side tables read.
pub struct StoredTrace<'a> {
    dir: &'a TraceDir,
    side: SideTables,
}

impl<'a> StoredTrace<'a> {
    /// Read the side tables.
    ///
    /// # Errors
    /// [`CompileError::Source`] if a part is damaged or cannot be read.
    pub fn new(dir: &'a TraceDir) -> Result<Self, CompileError> {
        let manifest = dir.manifest();
        let mut side = SideTables {
            trace_id: manifest.trace_id.clone(),
            // The store has shifted all times to the trace's start.
            origin_ns: Some(0),
            links: manifest.links.iter().map(link).collect(),
            machine: MachineFacts {
                // Generated traces have no tracer.
                tracer_floor: manifest.sources.iter().any(|s| s.format == "synth").then_some(Nanos::ZERO),
                ..machine(&manifest.machine)
            },
            ..SideTables::default()
        };
        dir.processes().map_err(source)?.for_each(|p| side.processes.push(OwnedProcess::from(&p))).map_err(source)?;
        dir.files().map_err(source)?.for_each(|f| side.files.push(OwnedFile::from(&f))).map_err(source)?;
        let mut rows = Vec::new();
        dir.vmstats().map_err(source)?.for_each(|r| rows.push(r)).map_err(source)?;
        side.memory = RecordedMemory::of_rows(manifest.machine.ram_kib, &rows);
        Ok(Self { dir, side })
    }
}

impl TraceSource for StoredTrace<'_> {
    fn side(&self) -> &SideTables {
        &self.side
    }

    fn events(&mut self, visit: &mut Visit<'_>) -> Result<(), CompileError> {
        let mut rows = self.dir.activity().map_err(source)?;
        while let Some(row) = rows.next().map_err(source)? {
            match row {
                Activity::Syscall(r) => visit(EventRow::Syscall(r))?,
                Activity::Fault(f) => visit(EventRow::Fault(f))?,
            }
        }
        Ok(())
    }
}

fn source(e: kreplay_traces::error::Error) -> CompileError {
    CompileError::Source { message: e.to_string() }
}

fn link(l: &LinkSpec) -> LinkInfo {
    let kind = match l.kind {
        StoredLinkKind::Fifo => LinkKind::Fifo,
        StoredLinkKind::Segments { mss_bytes, window_bytes, burst_bytes, tick_ns } => {
            LinkKind::Segments { mss: mss_bytes, window: window_bytes, burst: burst_bytes, tick: Nanos(tick_ns) }
        }
        StoredLinkKind::Server {
            threads,
            window,
            service_ms,
            reply_bytes,
            send_buffer_bytes,
            congested_client,
            congested_from_ms,
            congested_to_ms,
            duration_ms,
        } => LinkKind::Server(ServerLoad {
            threads,
            window,
            service_ms,
            reply_bytes,
            send_buffer_bytes,
            congested: (congested_client, congested_from_ms, congested_to_ms),
            duration_ms,
        }),
    };
    LinkInfo { kind, rate_bytes_s: l.rate_bytes_s, clients: l.clients }
}

/// The file systems that the load used are what is simulated; swap devices hold no files and are the variant's choice.
fn machine(m: &MachineInfo) -> MachineFacts {
    let devices = m.devices.iter().filter(|d| !d.swap);
    MachineFacts {
        roots: m.mounts.iter().map(|mount| mount.path.clone()).collect(),
        devices: devices
            .map(|d| DeviceFact {
                dev: d.dev,
                name: d.name.clone().unwrap_or_else(|| format!("{}:{}", d.dev >> 20, d.dev & 0xf_ffff)),
                sectors: d.sectors.map(Sectors),
                partitions: d.partitions.iter().copied().map(Sectors).collect(),
                ext2: m.mounts.iter().any(|mount| mount.dev == Some(d.dev) && mount.fs.as_deref() == Some("ext2")),
            })
            .collect(),
        tracer_floor: None,
    }
}
