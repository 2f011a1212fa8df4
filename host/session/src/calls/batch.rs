//! Splits the calls of an answer into batches. Pure.

use jaato_types::ToolCall;

use crate::Toolbox;

/// Neighbouring calls that may run in parallel form a batch. Every other call forms its own batch.
/// Batches keep their order, so that a read after a write sees that write.
pub(super) fn split_into_batches<'a>(
    calls: &'a [ToolCall],
    toolbox: &Toolbox,
) -> Vec<&'a [ToolCall]> {
    let parallel = |call: &ToolCall| {
        // A call that cannot run is refused without effect, so it may be in any batch.
        toolbox.find_tool(&call.name).map_or(true, |found| found.tool.is_parallel())
    };
    calls.chunk_by(|a, b| parallel(a) && parallel(b)).collect()
}
