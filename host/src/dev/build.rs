//! Runs cargo, and finds the library that it built.

use std::ffi::OsString;
use std::path::PathBuf;

use jaato_process::{
    ChildCommand, ChildOutput, ErrorOutput, Exit as ChildExit, ProcessError, StandardOutput,
};
use jaato_runtime::session_loop::Cancel;
use jaato_runtime::{supervisor, visible};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::DevelopmentRun;
use crate::exit::{CommandFailure, Exit};
use crate::report;

/// Builds the crate, and shows cargo's messages.
pub async fn build_crate(run: &DevelopmentRun, cancel: &Cancel) -> Result<PathBuf, CommandFailure> {
    let manifest = run.folder().join("Cargo.toml");
    let mut command = ChildCommand::new("cargo", run.folder());
    command.args =
        ["build", "--lib", "--message-format=json-render-diagnostics"].map(OsString::from).into();
    command.args.extend(["--manifest-path".into(), manifest.clone().into_os_string()]);
    command.args.extend(run.options.release.then(|| OsString::from("--release")));
    let variables = run.setup.variables.iter();
    command.variables = variables.map(|(name, value)| (name.into(), value.clone())).collect();
    command.stdout = StandardOutput::Piped;
    command.stderr = ErrorOutput::Separate(StandardOutput::Piped);
    let supervisor = supervisor(&run.setup);
    let mut child = supervisor.spawn(command).await.map_err(|error| cargo_failure(&error))?;
    let (printed, messages) = (child.stdout.take(), child.stderr.take());
    let built = async {
        let manifest = manifest.to_string_lossy();
        let (library, ()) = tokio::join!(find_library(printed, &manifest), show_messages(messages));
        (library, child.wait().await)
    };
    let (library, exit) = tokio::select! {
        biased;
        () = cancel.cancelled() => {
            // The build is ended. An error of that would say less than the cancellation.
            let _ = child.end().await;
            return Err(CommandFailure::new(Exit::Cancelled, "the build was cancelled"));
        }
        built = built => built,
    };
    match exit.map_err(|error| cargo_failure(&error))? {
        ChildExit::Code(0) => library.ok_or_else(|| {
            let text = format!("`{}` builds no plugin", manifest.display());
            CommandFailure::new(Exit::Plugin, text)
                .hint("a plugin has `crate-type = [\"cdylib\", \"rlib\"]` under `[lib]`")
        }),
        ChildExit::Code(_) | ChildExit::Signal(_) => {
            Err(CommandFailure::new(Exit::Failed, "the build failed; cargo says why above"))
        }
    }
}

/// Reads cargo's messages to the end. Returns the dylib of the crate with this manifest.
async fn find_library(printed: Option<ChildOutput>, manifest: &str) -> Option<PathBuf> {
    let mut lines = BufReader::new(printed?).lines();
    let mut library = None;
    // After a read error, cargo's exit code still decides.
    while let Ok(Some(line)) = lines.next_line().await {
        library = parse_library_path(&line, manifest).or(library);
    }
    library
}

/// Shows cargo's messages as they come.
async fn show_messages(messages: Option<ChildOutput>) {
    let Some(messages) = messages else { return };
    let mut lines = BufReader::new(messages).lines();
    // After a read error, cargo's exit code still decides.
    while let Ok(Some(line)) = lines.next_line().await {
        report::print_notes(&visible::visible_name(&line));
    }
}

/// Returns the dylib that a message of cargo names, if the message is about this manifest.
fn parse_library_path(line: &str, manifest: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["manifest_path"] != manifest {
        return None;
    }
    let files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
    let mut libraries = files.filter(|file| file.ends_with(std::env::consts::DLL_SUFFIX));
    libraries.next().map(PathBuf::from)
}

fn cargo_failure(error: &ProcessError) -> CommandFailure {
    let text = format!("cannot run `cargo`: {error}");
    CommandFailure::new(Exit::Failed, text).hint("https://rustup.rs installs Rust with cargo")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn library_is_that_of_the_crate_itself() {
        let dll = |name: &str| format!("/t/debug/{name}{}", std::env::consts::DLL_SUFFIX);
        let line = |manifest: &str, files: &[&str]| {
            let reason = "compiler-artifact";
            json!({ "reason": reason, "manifest_path": manifest, "filenames": files }).to_string()
        };
        let (own, rlib) = (dll("libmoon"), "/t/debug/libmoon.rlib");
        let find = |line: &str| parse_library_path(line, "/moon/Cargo.toml");
        assert_eq!(find(&line("/moon/Cargo.toml", &[rlib, &own])), Some(own.into()));
        assert_eq!(find(&line("/moon/Cargo.toml", &[rlib])), None);
        assert_eq!(find(&line("/sun/Cargo.toml", &[&dll("libsun")])), None);
        assert_eq!(find("warning: no JSON"), None);
    }
}
