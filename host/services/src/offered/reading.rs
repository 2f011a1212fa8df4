//! What a plugin may ask while it is asked something itself: what only reads.

use jaato_instances::Access;
use jaato_types::Error;
use jaato_types::hooks::{READING, only_reads};

use crate::call::Call;

/// Checks that an operation only reads, where the call may do no more.
pub(super) fn check(call: &Call, operation: &str) -> Result<(), Error> {
    match call.site.access {
        Access::Full => Ok(()),
        Access::Reads if READING.contains(&operation) => Ok(()),
        Access::Reads => Err(only_reads(operation)),
    }
}
