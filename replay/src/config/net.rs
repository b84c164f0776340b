//! What the network server in the kernel does: section `net`.

use serde::{Deserialize, Serialize};

/// The file server's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct NetConfig {
    /// What becomes of a reply for which a client's send buffer has no room.
    pub reply_strategy: ReplyStrategy,
}

/// What becomes of a reply without room, see [`crate::net::nfsd`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplyStrategy {
    /// Dropped, and asked for again: knfsd of 2.4 over UDP (net/sunrpc/svcsock.c, MSG_DONTWAIT).
    #[default]
    UdpDrop,
    /// The thread waits for room: TCP as it was first done.
    TcpBlock,
    /// The same with a thread for each connection.
    TcpThreadPerConn,
    /// Kept at the socket, the thread goes on.
    TcpDeferred,
    /// A request is begun only if there is room for its reply: 2.6.
    TcpReserve,
}
