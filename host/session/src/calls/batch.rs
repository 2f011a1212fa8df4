//! Cuts the calls of an answer into batches. Pure.

use jaato_types::ToolCall;

use crate::Toolbox;

/// Neighbouring calls that may run side by side form a batch; every other call is one of its own.
/// The order between batches is kept, so that what is read after a write is read after the write.
pub(super) fn batches<'a>(calls: &'a [ToolCall], toolbox: &Toolbox) -> Vec<&'a [ToolCall]> {
    let parallel = |call: &ToolCall| {
        // A call that cannot run is refused without effect: it may stand in any batch.
        toolbox.find(&call.name).map_or(true, |found| found.tool.is_parallel())
    };
    calls.chunk_by(|a, b| parallel(a) && parallel(b)).collect()
}
