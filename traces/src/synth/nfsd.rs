//! `nfsd`: clients of a file server in the kernel, of which one has a congested network for a while.

use super::params::param;
use super::script::Script;
use super::{Load, ParamSpec, Params};
use crate::store::{LinkKind, LinkSpec};

const PARAMS: &[ParamSpec] = &[
    param("clients", "", 4, (1, 1000), "clients, each with a connection of its own"),
    param("threads", "", 8, (1, 1000), "server threads"),
    param("window", "", 16, (1, 10_000), "requests that a client keeps outstanding"),
    param("service_ms", "", 4, (0, 10_000), "time of a service, ms"),
    param("reply_bytes", "", 8192, (1, 1 << 20), "size of a reply, bytes"),
    param("send_buffer_bytes", "", 65_536, (0, 1 << 30), "send buffer of a connection, bytes"),
    param("rate_kb_s", "", 10_000, (1, 10_000_000), "what a client's network takes, 10^3 bytes/s"),
    param("congested_from_ms", "", 1000, (0, 1_000_000), "client 0's network stands still from then, ms"),
    param("congested_to_ms", "", 8000, (0, 1_000_000), "until then, ms"),
    param("duration_ms", "", 20_000, (1, 1_000_000), "time that the clients go on asking, ms"),
];

pub(super) const LOAD: Load = Load {
    name: "nfsd",
    about: "clients ask a request server as fast as it answers; one client's network is congested for a while",
    params: PARAMS,
    generate,
};

fn generate(p: &Params, script: &mut Script<'_>) {
    let small = |name| u32::try_from(p.get(name)).unwrap_or(u32::MAX);
    let link = script.link(LinkSpec {
        kind: LinkKind::Server {
            threads: small("threads"),
            window: small("window"),
            service_ms: small("service_ms"),
            reply_bytes: small("reply_bytes"),
            send_buffer_bytes: small("send_buffer_bytes"),
            congested_client: 0,
            congested_from_ms: small("congested_from_ms"),
            congested_to_ms: small("congested_to_ms"),
            duration_ms: small("duration_ms"),
        },
        rate_bytes_s: p.get("rate_kb_s") * 1000,
        clients: small("clients"),
    });
    for client in 0..p.get("clients") {
        let mut task = script.root_task(&format!("{} {client}", if client == 0 { "congested" } else { "healthy" }));
        if client == 0 {
            script.mark(&mut task, "start");
        }
        script.ask(&mut task, link, client);
        script.mark(&mut task, &format!("client done {client}"));
        script.exit(&mut task);
    }
}
