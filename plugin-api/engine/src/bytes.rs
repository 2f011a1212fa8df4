//! A frame in the memory of whoever made it: what one plugin answers another may be handed
//! uncopied.

use std::fmt;
use std::ops::Deref;

use jaato_plugin_api::abi::abi_stable::std_types::RVec;

/// Bytes that a plugin has answered, or the host. Dropping them gives them back to their maker's
/// allocator.
pub struct Bytes(pub(crate) RVec<u8>);

impl Bytes {
    /// Gives them as a buffer of the host's own; copied where they are a plugin's.
    pub fn into_vec(self) -> Vec<u8> {
        self.0.into_vec()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
