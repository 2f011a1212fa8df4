//! Compiles the testkit's plugin in C with the compiler of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::skip::skip;

/// Compiles the plugin, in the variant that a macro of its names (or none). None, and a line that says why
/// the test is left out, where there is no compiler. `host` is the folder `host` of the checkout.
pub fn moon(host: &str, variant: Option<&str>) -> Option<PathBuf> {
    let api = Path::new(host).join("../plugin-api");
    // A folder of each package's own: their tests may run side by side.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_PKG_NAME"));
    std::fs::create_dir_all(&folder).unwrap();
    let place = folder.join(format!("libmoon_c{}.so", variant.unwrap_or_default()));
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-pthread", "-std=c11", "-pedantic", "-Wall", "-Wextra"])
        .args(["-Werror", "-D_GNU_SOURCE", "-I"])
        .arg(api.join("include"))
        .args(variant.map(|name| format!("-D{name}")))
        .arg(api.join("testkit/fixtures/c/moon.c"))
        .arg("-o")
        .arg(&place)
        .output();
    match built {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "the plugin in C does not build: {errors}");
            Some(place)
        }
        Err(error) => {
            skip(&format!("no compiler for C: `cc`: {error}"));
            None
        }
    }
}
