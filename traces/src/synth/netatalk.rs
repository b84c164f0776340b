//! `netatalk`: a file server with clients in closed loops behind one half-duplex link.

use super::layout::Image;
use super::params::param;
use super::script::{Pipe, Script, Task};
use super::{Load, ParamSpec, Params};
use crate::store::{LinkKind, LinkSpec};

const PARAMS: &[ParamSpec] = &[
    param("clients", "N", 5, (1, 8), "clients, each with a server process and a file"),
    param("size_mib", "SZ", 30, (1, 1024), "size of each client's file, MiB"),
    param("repeats", "REPS", 3, (1, 1000), "times the file is written and read back"),
    param("chunk_bytes", "CH", 8192, (1, 1 << 20), "bytes of a request or reply with data"),
    param("rate_mb_s", "RATE", 10, (1, 10_000), "the link's rate, 10^6 bytes/s, both directions together"),
    param("window", "WIN", 1, (1, 64), "requests a client has under way"),
    param("header_bytes", "HDR", 120, (0, 65_536), "bytes of a request or reply without data"),
];

pub(super) const LOAD: Load = Load {
    name: "netatalk",
    about: "clients of a file server write a file in requests and read it back, next request after the reply",
    params: PARAMS,
    generate,
};

/// What the tasks of one load share.
struct Server<'p> {
    p: &'p Params,
    link: usize,
}

fn generate(p: &Params, script: &mut Script<'_>) {
    Image::mount(script, false).everything(script);
    let clients = p.get("clients");
    let link = script.link(LinkSpec {
        kind: LinkKind::Fifo,
        rate_bytes_s: p.get("rate_mb_s") * 1_000_000,
        clients: u32::try_from(clients).unwrap_or(u32::MAX),
    });
    let server = Server { p, link };
    let mut main = script.main_task();
    let mut children = Vec::new();
    for client in 0..clients {
        if p.get("window") == 1 {
            children.push(server.closed_loop(script, &mut main, client));
        } else {
            children.extend(server.windowed(script, &mut main, client));
        }
    }
    for child in &children {
        script.wait(&mut main, child);
    }
    script.end(&mut main);
}

impl Server<'_> {
    fn phases(&self) -> u64 {
        2 * self.p.get("repeats")
    }

    fn requests(&self) -> u64 {
        self.p.mib("size_mib") / self.p.get("chunk_bytes")
    }

    /// Phases alternate: write the file, read it.
    fn writes(phase: u64) -> bool {
        phase.is_multiple_of(2)
    }

    fn request(&self, script: &mut Script<'_>, task: &mut Task, phase: u64) {
        let data = if Self::writes(phase) { self.p.get("chunk_bytes") } else { 0 };
        script.message(task, self.link, data + self.p.get("header_bytes"));
    }

    fn reply(&self, script: &mut Script<'_>, task: &mut Task, phase: u64) {
        let data = if Self::writes(phase) { 0 } else { self.p.get("chunk_bytes") };
        script.message(task, self.link, data + self.p.get("header_bytes"));
    }

    fn open(script: &mut Script<'_>, task: &mut Task, client: u64) -> i64 {
        task.set_client(format!("client {client}"));
        script.open(task, &format!("/mnt/g{client}"), "O_RDWR|O_CREAT|O_TRUNC")
    }

    fn serve(&self, script: &mut Script<'_>, task: &mut Task, fd: i64, phase: u64, request: u64) {
        let chunk = self.p.get("chunk_bytes");
        script.seek(task, fd, request * chunk);
        script.io(task, if Self::writes(phase) { "write" } else { "read" }, fd, chunk);
    }

    /// With one request under way, client and server take turns: one task is enough.
    fn closed_loop(&self, script: &mut Script<'_>, main: &mut Task, client: u64) -> Task {
        let mut task = script.clone_task(main);
        let fd = Self::open(script, &mut task, client);
        for phase in 0..self.phases() {
            for request in 0..self.requests() {
                self.request(script, &mut task, phase);
                self.serve(script, &mut task, fd, phase, request);
                self.reply(script, &mut task, phase);
            }
            script.mark(&mut task, &format!("phase {client} {phase}"));
        }
        script.mark(&mut task, &format!("client done {client}"));
        script.exit(&mut task);
        task
    }

    /// With more, a task a slot of the window, and the server's own. Slots take turns (the link and the server keep the
    /// order), so request `i` is slot `i % window`'s. A phase begins when the one before has all its replies.
    fn windowed(&self, script: &mut Script<'_>, main: &mut Task, client: u64) -> Vec<Task> {
        let window = self.p.get("window").min(self.requests().max(1)) as usize;
        let mut requests = script.pipe(main);
        let mut arrived = script.pipe(main);
        let mut replies: Vec<Pipe> = (0..window).map(|_| script.pipe(main)).collect();
        let mut begin: Vec<Pipe> = (0..window).map(|_| script.pipe(main)).collect();
        let mut server = script.clone_task(main);
        let fd = Self::open(script, &mut server, client);
        let mut slots: Vec<Task> = (0..window).map(|_| script.clone_task(main)).collect();
        for phase in 0..self.phases() {
            for request in 0..self.requests() {
                let slot = (request % window as u64) as usize;
                self.request(script, &mut slots[slot], phase);
                script.post(&mut slots[slot], &mut requests);
                script.take(&mut server, &mut requests);
                self.serve(script, &mut server, fd, phase, request);
                script.post(&mut server, &mut replies[slot]);
                script.take(&mut slots[slot], &mut replies[slot]);
                self.reply(script, &mut slots[slot], phase);
            }
            let (first, others) = slots.split_at_mut(1);
            others.iter_mut().for_each(|slot| script.post(slot, &mut arrived));
            others.iter().for_each(|_| script.take(&mut first[0], &mut arrived));
            script.mark(&mut first[0], &format!("phase {client} {phase}"));
            for (slot, pipe) in others.iter_mut().zip(&mut begin[1..]) {
                script.post(&mut first[0], pipe);
                script.take(slot, pipe);
            }
        }
        script.mark(&mut slots[0], &format!("client done {client}"));
        slots.push(server);
        slots.iter_mut().for_each(|task| script.exit(task));
        slots
    }
}
