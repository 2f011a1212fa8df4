//! Compiles the testkit's C plugin with this machine's compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

use jaato_plugin_testkit::skip;

/// Compiles the plugin, in the variant that one of its macros selects (or none). Returns `None` if
/// the compiler is missing, after printing that the test is skipped. `host` is the folder `host` of
/// the checkout.
pub fn compile_moon(host: &str, variant: Option<&str>) -> Option<PathBuf> {
    let source = Path::new(host).join("../plugin-api/testkit/tests/moon.c");
    compile_plugin(host, &source, variant)
}

/// Compiles a C plugin, as [`compile_moon`] does.
pub fn compile_plugin(host: &str, source: &Path, variant: Option<&str>) -> Option<PathBuf> {
    // A separate folder per package, because their tests may run at the same time.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_PKG_NAME"));
    std::fs::create_dir_all(&folder).unwrap();
    let name = source.file_stem().unwrap().to_str().unwrap();
    let place = folder.join(format!("lib{name}_c{}.so", variant.unwrap_or_default()));
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-pthread", "-std=c11", "-pedantic", "-Wall", "-Wextra"])
        .args(["-Werror", "-D_GNU_SOURCE", "-I"])
        .arg(Path::new(host).join("../plugin-api/include"))
        .args(variant.map(|variant| format!("-D{variant}")))
        .arg(source)
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
