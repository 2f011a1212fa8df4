//! Tests the cache of descriptions: a second start describes and opens nothing, and a damaged cache
//! does no harm.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::house;
use crate::support::answers::text_answer;
use crate::support::{Command, House, fixture, fixtures, library_name, set_mode, skip};

/// A describe that hangs takes its deadline of 5 s, so a faster run has not described it.
const TOO_FAST_FOR_A_DESCRIBE: Duration = Duration::from_secs(4);

#[test]
fn second_start_uses_the_cached_descriptions() {
    let house = house!(ships "hangs");
    let first = house.run(&["plugin", "list"]).code(0);
    let before = fs::metadata(house.descriptions_file()).unwrap();
    let started = Instant::now();
    let second = house.run(&["plugin", "list"]).code(0);
    assert!(started.elapsed() < TOO_FAST_FOR_A_DESCRIBE, "{second}");
    assert_eq!(first.to_string(), second.to_string());
    let after = fs::metadata(house.descriptions_file()).unwrap();
    // A write would have replaced the file with another one.
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
}

/// Lists the plugins that a command opens. The dynamic linker of glibc logs each library.
fn files_opened_by(house: &House, words: &[&str]) -> Vec<String> {
    let output = house.command(words).variable("LD_DEBUG", "files").run().code(0);
    let shipped = house.shipped_folder().display().to_string();
    let told = output.stderr.lines().filter(|line| line.contains("calling init: "));
    let names = told.filter_map(|line| line.split("calling init: ").nth(1));
    names.filter(|name| name.starts_with(&shipped)).map(str::to_owned).collect()
}

#[test]
fn run_opens_a_plugin_only_if_its_data_files_exist() {
    let Some(house) = House::new() else { return };
    for name in ["hook_command", "tool_mcp", "tool_memory", "tool_prompts"] {
        house.ship(&fixtures::test_house().unwrap().join("plugins").join(library_name(name)));
    }
    house.run(&["tool", "list"]).code(0);
    let opened = || {
        house.set_script(&json!({ "answers": [text_answer("done")] }));
        files_opened_by(&house, &["run", "go"])
    };
    let alone = opened();
    if alone.is_empty() {
        return skip("this system's dynamic linker does not list the files that it opens");
    }
    assert_eq!(alone.len(), 1, "only the provider is opened: {alone:?}");
    let store = json!({ "content": "It is dark.", "description": "far side", "tags": ["moon"] });
    for (name, prepare) in [
        (
            "hook_command",
            &(|| {
                house.write("home/.claude/settings.json", "{}");
                assert!(!opened().iter().any(|it| it.contains("hook_command")));
                house.write("workspace/.claude/settings.json", "{}");
            }) as &dyn Fn(),
        ),
        ("tool_mcp", &(|| drop(house.write("home/.mcp.json", "{}")))),
        ("tool_prompts", &|| drop(house.write("workspace/.claude/commands/far.md", "Look far."))),
        ("tool_memory", &|| drop(house.run(&["call", "store_memory", &store.to_string()]).code(0))),
    ] {
        assert!(!opened().iter().any(|it| it.contains(name)), "{name}");
        prepare();
        assert!(opened().iter().any(|it| it.contains(name)), "{name}");
    }
}

#[test]
fn a_list_opens_no_plugin_and_a_call_opens_one() {
    let house = house!(ships "probe");
    house.run(&["tool", "list"]).expect_silent();
    let opened = |words: &[&str]| files_opened_by(&house, words);
    let called = opened(&["call", "count"]);
    if called.is_empty() {
        return skip("this system's dynamic linker does not list the files that it opens");
    }
    let probe = house.shipped_folder().join("libfixture_probe.so").display().to_string();
    assert_eq!(called, [probe], "a call opens only its own plugin");
    for words in
        [&["tool", "list"][..], &["plugin", "list"], &["tool", "show", "echo"], &["config", "show"]]
    {
        assert_eq!(opened(words), Vec::<String>::new(), "{words:?}");
    }
}

#[test]
fn a_changed_file_is_described_again() {
    let house = house!();
    let file = house.ship_to_user(&fixture("probe"));
    let list = || house.run(&["tool", "list"]).code(0).stdout;
    assert!(list().contains("echo"));
    fs::write(&file, fs::read(house.shipped_folder().join("libtool_environment.so")).unwrap())
        .unwrap();
    assert!(!list().contains("echo"));
    fs::write(&file, fs::read(fixture("probe")).unwrap()).unwrap();
    assert!(list().contains("echo"));
    fs::remove_file(&file).unwrap();
    assert!(!list().contains("echo"));
}

#[track_caller]
fn assert_survives(house: &House, damage: &str, content: &[u8]) {
    fs::create_dir_all(house.cache_folder()).unwrap();
    fs::write(house.descriptions_file(), content).unwrap();
    let output = house.run(&["tool", "list"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{damage}: {output}");
    assert!(output.stdout.contains("get_environment"), "{damage}: {output}");
    let mended = fs::read(house.descriptions_file()).unwrap();
    let mended: serde_json::Value = serde_json::from_slice(&mended).unwrap();
    assert!(mended["entries"].as_object().is_some_and(|all| all.len() == 1), "{damage}");
}

#[test]
fn damaged_cache_is_rebuilt() {
    let house = house!();
    house.run(&["tool", "list"]).expect_silent();
    let good = fs::read(house.descriptions_file()).unwrap();
    assert_survives(&house, "cut", &good[..good.len() / 2]);
    assert_survives(&house, "empty", b"");
    assert_survives(&house, "no json", b"\xff\xfe\0");
    assert_survives(&house, "another shape", b"{\"v\":1,\"host_version\":\"x\",\"entries\":[]}");
    assert_survives(&house, "another version", b"{\"v\":99,\"entries\":{}}");
    assert_survives(&house, "nested without end", "[".repeat(100_000).as_bytes());
}

#[test]
fn cache_path_that_is_a_folder_causes_only_a_note() {
    let house = house!();
    house.forget_descriptions();
    fs::create_dir_all(house.descriptions_file()).unwrap();
    let output = house.run(&["tool", "list"]).code(0);
    assert!(output.stdout.contains("get_environment"), "{output}");
    assert_eq!(output.stderr.lines().count(), 2, "{output}");
    assert!(
        output
            .stderr
            .contains("descriptions.json` is not used: it is not a regular file\nhint: move"),
        "{output}"
    );
}

#[test]
fn full_disk_causes_only_a_note_and_tools_still_work() {
    let house = house!();
    fs::create_dir_all(house.cache_folder()).unwrap();
    let cache = house.cache_folder().display().to_string();
    // A disk of one page, in the command's own mount namespace.
    let script = format!(
        "mount -t tmpfs -o size=4k none '{cache}' && head -c 4096 /dev/zero > '{cache}/full' && exec \"$@\""
    );
    let before = ["-m", "sh", "-c", &script, "sh"];
    let has_program = std::process::Command::new("unshare").arg("--version").output().is_ok();
    let works = || Command::wrapped_in(&house, "unshare", &before, &["--version"]).run().code == 0;
    if !has_program || !works() {
        return skip("a small disk cannot be mounted here");
    }
    let output = Command::wrapped_in(&house, "unshare", &before, &["tool", "list"]).run().code(0);
    assert!(output.stdout.contains("get_environment"), "{output}");
    assert_eq!(output.stderr.lines().count(), 1, "{output}");
    assert!(output.stderr.contains("No space left"), "{output}");
    let words = ["call", "get_environment", r#"{"aspect": "cwd"}"#];
    let output = Command::wrapped_in(&house, "unshare", &before, &words).run().code(0);
    assert!(output.json()["cwd"].is_string(), "{output}");
}

#[test]
fn two_starts_at_once_leave_a_whole_cache() {
    let house = house!(ships "probe");
    let runs: Vec<_> = (0..4).map(|_| house.command(&["tool", "list"]).start()).collect();
    let outputs: Vec<_> = runs.into_iter().map(|run| run.finish().expect_silent().stdout).collect();
    assert!(outputs.iter().all(|output| *output == outputs[0]));
    let kept = fs::read(house.descriptions_file()).unwrap();
    serde_json::from_slice::<serde_json::Value>(&kept).unwrap();
    let left: Vec<_> = fs::read_dir(house.cache_folder()).unwrap().flatten().collect();
    let names: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{names:?}");
}

#[test]
fn cache_file_is_private_to_the_user() {
    let house = house!();
    house.run(&["tool", "list"]).expect_silent();
    let mode = fs::metadata(house.descriptions_file()).unwrap().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    set_mode(&house.descriptions_file(), 0o600);
}
