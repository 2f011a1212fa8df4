//! The boundary between the host and its plugins: traits with a stable ABI, and nothing else.
//!
//! A plugin exports one static, [`EXPORT_NAME`], which leads to a root module with two functions:
//! one describes the plugin, the other returns its factory. The factory creates instances. An
//! instance returns its facets (tools, gc, provider). Only integers, texts, buffers and futures
//! cross the boundary. Each payload is a *frame* (JSON and raw bytes, `jaato_types::Frame`).
//!
//! Plugin authors do not use this crate, because `jaato-plugin-sdk` offers plain Rust.
//! `docs/abi.md` describes what is frozen and what may be added.
//!
//! Invariants:
//! - No struct or enum crosses by value; traits grow only by appended methods with a default body.
//! - No panic crosses: the SDK fences what plugins export, and the engine fences the host's
//!   objects.
//! - A plugin is never unloaded.

pub mod abi;
pub mod c1;

/// The version of the boundary: `major.minor.patch`. A different major version is a different
/// boundary. Between two minor versions, the older one is the interface.
pub const API_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The name of the static that a plugin exports. A later boundary adds its own name.
pub const EXPORT_NAME: &str = "JAATO_PLUGIN_V1";

/// The name of the static that a plugin in C exports instead of [`EXPORT_NAME`].
pub const EXPORT_NAME_C1: &str = "JAATO_PLUGIN_C1";

/// The name of the section that contains the manifest on ELF and PE. (Mach-O: segment `__DATA`,
/// section `__jaato`.)
pub const MANIFEST_SECTION: &str = ".jaato_manifest";

/// The name of the manifest's section on Mach-O.
pub const MANIFEST_SECTION_MACHO: &str = "__jaato";

#[cfg(test)]
mod tests {
    #[test]
    fn api_version_equals_the_version_in_manifests() {
        assert_eq!(super::API_VERSION, jaato_types::API_VERSION);
    }
}
