//! Pseudo-calls of generated traces: names start with `x-`.

use kreplay_traces::event::SyscallRow;
use kreplay_traces::units::Nanos;

use super::{CompileError, World, args};
use crate::compile::fds::Target;
use crate::program::Op;

impl World<'_> {
    pub(super) fn pseudo(&mut self, r: &SyscallRow<'_>) -> Result<(), CompileError> {
        self.survey.generated = true;
        let wrong = |problem: String| CompileError::Pseudo { line: r.line, call: r.call.to_owned(), problem };
        match r.call {
            "x-mark" => {
                let name = r.path.ok_or_else(|| wrong("it needs a name (path)".into()))?;
                if let Some(out) = &mut self.out {
                    let (mark, _) = out.marks.insert_full(name.to_owned());
                    let mark = u32::try_from(mark).map_err(|_| CompileError::TooLarge { what: "marks".to_owned() })?;
                    self.emit(Op::Mark { mark });
                }
            }
            "x-compute" => {
                let time = r.dur_ns.and_then(|d| u64::try_from(d).ok());
                let time = time.ok_or_else(|| wrong("it needs dur_ns of at least 0".into()))?;
                self.emit(Op::Cpu { time: Nanos(time) });
            }
            "x-link" => {
                let link = self.link_argument(r).map_err(wrong)?;
                let bytes = r.len_bytes.and_then(|b| u32::try_from(b).ok());
                let bytes = bytes.ok_or_else(|| wrong("it needs len_bytes of less than 4 GiB".into()))?;
                self.emit(Op::Link { link, bytes });
            }
            "x-recvwrite" => {
                let link = self.link_argument(r).map_err(wrong)?;
                let link = u16::try_from(link).map_err(|_| wrong(format!("link={link} is above 65535")))?;
                let small = |key| args::number(r.args, key).and_then(|v| u32::try_from(v).ok());
                let chunk = small("chunk").filter(|c| *c > 0);
                let chunk = chunk.ok_or_else(|| wrong("it needs args \"chunk=BYTES\" above 0".into()))?;
                let client = small("client").unwrap_or(0);
                let clients = self.side.links[usize::from(link)].clients;
                if client >= clients {
                    return Err(wrong(format!("client={client}, but link {link} has {clients} clients")));
                }
                let client = u16::try_from(client).map_err(|_| wrong(format!("client={client} is above 65535")))?;
                let total = r.len_bytes.and_then(|b| u64::try_from(b).ok());
                let total = total.ok_or_else(|| wrong("it needs len_bytes of at least 0".into()))?;
                let fd = r.fd.ok_or_else(|| wrong("it needs fd".into()))?;
                let desc = self.resolve(r, fd, r.path);
                let target = desc.map(|d| (d, self.fds.target(d)));
                let Some((desc, Target::File { ofd, file, offset, .. })) = target else {
                    return Err(wrong(format!("fd {fd} is no file")));
                };
                if offset != 0 {
                    return Err(wrong(format!("it writes from the file's start, but fd {fd} stands at byte {offset}")));
                }
                self.survey.seeks(file);
                self.survey.size(file).wrote(total);
                let state = self.names.get_mut(file);
                state.grow_to(total);
                state.reaches(total, self.line);
                if let Target::File { offset, .. } = self.fds.target_mut(desc) {
                    *offset = total;
                }
                self.emit(Op::RecvWrite { ofd, total, chunk, link, client });
            }
            "x-ask" => {
                let link = self.link_argument(r).map_err(wrong)?;
                let clients = self.side.links[link as usize].clients;
                let client = args::number(r.args, "client").and_then(|v| u32::try_from(v).ok()).unwrap_or(0);
                if client >= clients {
                    return Err(wrong(format!("client={client}, but link {link} has {clients} clients")));
                }
                self.emit(Op::Ask { link, client });
            }
            _ => return Err(wrong("known are x-mark, x-compute, x-link, x-recvwrite and x-ask".into())),
        }
        Ok(())
    }

    fn link_argument(&self, r: &SyscallRow<'_>) -> Result<u32, String> {
        let link = args::number(r.args, "link").and_then(|v| u32::try_from(v).ok());
        let link = link.ok_or_else(|| "it needs args \"link=INDEX\"".to_owned())?;
        let links = self.side.links.len();
        if link as usize >= links {
            return Err(format!("link={link}, but the trace defines {links} links"));
        }
        Ok(link)
    }
}
