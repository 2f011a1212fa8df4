//! The boundary between the host and its plugins: traits with a stable ABI, and nothing else.
//!
//! A plugin exports one static, [`EXPORT_NAME`], that leads to a root module: how to describe the
//! plugin and how to get its factory. The factory makes instances; an instance gives out its facets
//! (tools, gc, provider). What crosses is integers, texts, buffers and futures; every payload is a
//! *frame* (JSON and raw bytes, `jaato_types::Frame`).
//!
//! Plugin authors do not use this crate: `jaato-plugin-sdk` gives them plain Rust. Rules of growth
//! and what is frozen: `docs/abi.md`.
//!
//! Invariants:
//! - No struct or enum crosses by value; traits grow only by appended methods with a default body.
//! - No panic crosses: the sdk fences what plugins export, the engine what the host lends.
//! - A plugin is never unloaded.

pub mod abi;
pub mod c1;

/// Version of the boundary: `major.minor.patch`. Another major is another boundary; of two minors
/// the older is the interface.
pub const API_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Name of the static that a plugin exports; a later boundary gets a name of its own beside it.
pub const EXPORT_NAME: &str = "JAATO_PLUGIN_V1";

/// Name of the static that a plugin in C exports in place of [`EXPORT_NAME`].
pub const EXPORT_NAME_C1: &str = "JAATO_PLUGIN_C1";

/// Name of the section that holds the manifest on ELF and PE. (Mach-O: segment `__DATA`, section
/// `__jaato`.)
pub const MANIFEST_SECTION: &str = ".jaato_manifest";

/// Name of the manifest's section on Mach-O.
pub const MANIFEST_SECTION_MACHO: &str = "__jaato";

#[cfg(test)]
mod tests {
    #[test]
    fn manifests_carry_the_version_of_the_boundary() {
        assert_eq!(super::API_VERSION, jaato_types::API_VERSION);
    }
}
