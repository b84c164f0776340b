//! What is known of the block events: blktrace's letter and the layout of the payload.

/// How an event's payload is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `dev rwbs sector + n [comm]`.
    Bio,
    /// `dev rwbs sector + n [error]`.
    BioDone,
    /// `dev rwbs bytes (cmd) sector + n [priority] [comm]`.
    Request,
    /// `dev rwbs (cmd) sector + n [priority] [error]`.
    RequestDone,
    /// `[comm]`.
    Plug,
    /// `[comm] n`.
    Unplug,
    /// `dev rwbs sector / newsector [comm]`.
    Split,
    /// `dev rwbs sector + n <- (dev) sector`.
    Remap,
    /// Counted, not an event of a request's life.
    Other,
}

/// blktrace's letter and the shape of each block event.
pub(super) fn known(name: &[u8]) -> Option<(&'static str, Shape)> {
    Some(match name {
        b"block_bio_queue" => ("Q", Shape::Bio),
        b"block_getrq" => ("G", Shape::Bio),
        b"block_sleeprq" => ("S", Shape::Bio),
        b"block_bio_backmerge" => ("M", Shape::Bio),
        b"block_bio_frontmerge" => ("F", Shape::Bio),
        b"block_bio_bounce" => ("B", Shape::Bio),
        b"block_bio_complete" => ("C", Shape::BioDone),
        b"block_rq_insert" => ("I", Shape::Request),
        b"block_rq_issue" => ("D", Shape::Request),
        b"block_rq_merge" => ("M", Shape::Request),
        b"block_rq_complete" => ("C", Shape::RequestDone),
        b"block_rq_requeue" => ("R", Shape::RequestDone),
        b"block_plug" => ("P", Shape::Plug),
        b"block_unplug" | b"block_unplug_io" => ("U", Shape::Unplug),
        b"block_unplug_timer" => ("UT", Shape::Unplug),
        b"block_split" => ("X", Shape::Split),
        b"block_bio_remap" | b"block_remap" | b"block_rq_remap" => ("A", Shape::Remap),
        // A failed completion is also a block_rq_complete; the io_ pair is accounting around the same request.
        b"block_rq_error"
        | b"block_io_start"
        | b"block_io_done"
        | b"block_touch_buffer"
        | b"block_dirty_buffer"
        | b"blkdev_zone_mgmt" => ("", Shape::Other),
        _ => return None,
    })
}

/// An event that is counted, but is no step of a request's life.
pub(crate) fn is_accounting(name: &[u8]) -> bool {
    matches!(known(name), Some((_, Shape::Other)))
}
