//! A frame in the memory of its creator, so that one plugin's answer can be passed to another
//! without copying.

use std::fmt;
use std::ops::Deref;

use jaato_plugin_api::abi::abi_stable::std_types::RVec;

/// The bytes of an answer from a plugin or the host. Dropping them returns the memory to its
/// allocator.
pub struct FrameBytes(pub(crate) RVec<u8>);

impl FrameBytes {
    /// Returns the bytes as a buffer of the host. Copies them if they are a plugin's.
    pub fn into_vec(self) -> Vec<u8> {
        self.0.into_vec()
    }
}

impl From<Vec<u8>> for FrameBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Deref for FrameBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl fmt::Debug for FrameBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
