//! Installs each package of `dist` in a container without a compiler and without a network, and
//! lets a model run a command there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use super::image::{self, ANN, IMAGE, ROOT};
use super::installed::{InstalledArchive, installed_archive, printed_text, target_folder};
use super::skip::skip;

/// A provider that reads the model's answers from a file.
const PROVIDER: &str = "libprovider_scripted.so";

/// The commands that a user types after the installation.
const MAIN_JOB: &str = "
    for name in as cc clang gcc ld rustc; do
        if command -v $name; then echo there is a compiler; exit 1; fi
    done
    mkdir \"$HOME/work\"
    cd \"$HOME/work\"
    jaato --version
    jaato call cli_based_tool '{\"command\": \"echo called\"}'
    jaato run --yes --config /given/config.toml --plugin-dir /given/plugins 'run a command'
";

/// Installs a package in a container like a user does, and runs the main job.
#[track_caller]
fn check_package_in_container(
    name: &str,
    user: &str,
    package: fn(&InstalledArchive) -> &Path,
    install: &str,
) {
    let Some(installed) = installed_archive() else { return };
    let given = match copy_into_container(installed, name) {
        Ok(given) => given,
        Err(reason) => return skip(&reason),
    };
    let package = package(installed);
    let file = package.file_name().unwrap().to_str().unwrap();
    fs::hard_link(package, given.join(file)).unwrap();
    let install = install.replace("FILE", &format!("/given/{file}"));
    let mut docker = Command::new("docker");
    docker.args(["run", "--rm", "--network", "none", "--user", user]);
    // A distribution's Python refuses to install anything without it.
    docker.args(["--env", "PIP_BREAK_SYSTEM_PACKAGES=1", "--volume"]);
    docker.arg(format!("{}:/given:ro", given.display())).arg(IMAGE);
    docker.args(["/bin/sh", "-ec", &format!("{install}\n{MAIN_JOB}")]);
    let output = docker.stdin(Stdio::null()).output().unwrap();
    let printed = printed_text(&output);
    assert!(output.status.success(), "{name}: {printed}");
    let expected = format!("jaato {}\n", env!("CARGO_PKG_VERSION"));
    for part in [&expected, "\"stdout\": \"called\\n\"", "The answer is 42.\n"] {
        assert!(printed.contains(part), "{name}, {part:?}: {printed}");
    }
}

/// The folder that the container sees: a provider, and its answers. Fails with the reason if the
/// container is unavailable.
fn copy_into_container(installed: &InstalledArchive, name: &str) -> Result<PathBuf, String> {
    image::import_image(installed)?;
    let provider = target_folder().join("fixtures/debug").join(PROVIDER);
    if !provider.is_file() {
        return Err("no scripted provider: `cargo xtask test` builds it".to_owned());
    }
    let given = installed.empty_folder(name);
    let plugins = given.join("plugins");
    fs::create_dir(&plugins).unwrap();
    fs::copy(provider, plugins.join(PROVIDER)).unwrap();
    let call = json!({ "name": "cli_based_tool", "arguments": { "command": "echo 4$((1 + 1))" } });
    let script = json!({ "answers": [
        { "steps": [{ "call": call }] },
        { "expect": { "tool_result": "42" }, "steps": [{ "text": "The answer is 42." }] },
    ] });
    fs::write(given.join("script.json"), script.to_string()).unwrap();
    let config = "model = \"scripted/test\"\n\
                  [plugins.provider-scripted]\nscript = \"/given/script.json\"\n";
    fs::write(given.join("config.toml"), config).unwrap();
    Ok(given)
}

#[test]
fn archive_runs_in_a_container_without_a_compiler() {
    let install = "tar -xzf FILE -C /tmp && PATH=$(echo /tmp/jaato-*)/bin:$PATH";
    check_package_in_container("container-tar", ROOT, InstalledArchive::archive_path, install);
}

#[test]
fn wheel_installs_and_runs_in_a_container_without_a_compiler() {
    let install = "python3 -m pip install --no-index FILE && \
                   PATH=$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"scripts\"))'):$PATH";
    check_package_in_container("container-pip", ROOT, InstalledArchive::wheel_path, install);
}

#[test]
fn wheel_runs_for_a_user_whose_group_can_write_to_all_files() {
    let install = "umask 002 && \
                   python3 -m pip install --no-index --user FILE && \
                   PATH=$HOME/.local/bin:$PATH";
    check_package_in_container("container-user", ANN, InstalledArchive::wheel_path, install);
}

#[test]
fn npm_package_installs_and_runs_in_a_container_without_a_compiler() {
    let install = "npm install --global --prefix /usr/local FILE";
    check_package_in_container("container-npm", ROOT, InstalledArchive::npm_path, install);
}
