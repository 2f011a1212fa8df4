//! The name of this system.

use std::env::consts::ARCH;

/// Returns the name of the system that this host is built for, in the form that compilers use.
pub fn target_triple() -> String {
    let arch = if ARCH == "x86" { "i686" } else { ARCH };
    let system = if cfg!(target_os = "macos") {
        "apple-darwin"
    } else if cfg!(target_os = "windows") {
        "pc-windows-msvc"
    } else if cfg!(target_env = "musl") {
        "unknown-linux-musl"
    } else {
        "unknown-linux-gnu"
    };
    format!("{arch}-{system}")
}
