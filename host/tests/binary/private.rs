//! Tests that jaato's own files are private to the user, and that files which another user may have
//! written are not used.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::{cli_house, shell_arguments};
use crate::house;
use crate::support::{
    Command, House, NOBODY, Output, can_start_as_nobody, fixture, is_root, set_mode, skip,
};

/// A user who owns nothing here.
const STRANGER: u32 = 64_711;

/// Lists a folder with everything in it.
pub fn list_tree(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        if path.is_dir() && !path.is_symlink() {
            found.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    found
}

/// Opens an installation to other users. Returns true if they can reach it.
fn can_others_reach(house: &House) -> bool {
    set_mode(house.path(), 0o755);
    house.path().ancestors().all(|folder| folder.metadata().unwrap().mode() & 0o011 != 0)
}

fn run_with_umask(house: &House, umask: &str, words: &[&str]) -> Output {
    let script = format!("umask {umask}; exec \"$0\" \"$@\"");
    Command::wrapped_in(house, "sh", &["-c", &script], words).run()
}

#[test]
fn created_files_are_private_for_every_umask() {
    for umask in ["000", "002", "022"] {
        let Some(house) = crate::cli::house_with_cli() else { return };
        house.set_script(&crate::cli::script_of_one_call("seq 200000"));
        let echo = house.write_given_file("echo.so", &fs::read(fixture("echo")).unwrap());
        house.write("workspace/AGENTS.md", "Be brief.");
        house.forget_descriptions();
        let run = |words: &[&str]| run_with_umask(&house, umask, words).code(0);
        run(&["plugin", "install", echo.to_str().unwrap()]);
        run(&["trust"]);
        run(&["call", "count_bytes_echo", r#"{"text": "a"}"#]);
        let digest = run(&["plugin", "list", "--json"]).json()["plugins"].clone();
        let own =
            digest.as_array().unwrap().iter().find(|it| it["name"] == "fixture-echo").unwrap();
        let (path, sha256) = (own["path"].as_str().unwrap(), own["sha256"].as_str().unwrap());
        run(&["plugin", "trust", path, "--sha256", sha256]);
        run(&["call", "count_bytes_echo", r#"{"text": "a"}"#]);
        run(&["run", "--yes", "print much"]);
        run(&["plugin", "disable", "fixture-echo"]);
        let places = [".cache", ".local"].map(|name| house.home().join(name));
        let all: Vec<_> = places.iter().flat_map(|place| list_tree(place)).collect();
        for name in
            ["descriptions.json", "trust.json", "ledger.jsonl", "plugins", "trusted", "outputs"]
        {
            assert!(all.iter().any(|path| path.ends_with(name)), "`{name}` is missing: {all:?}");
        }
        for path in all {
            let mode = path.metadata().unwrap().mode() & 0o7777;
            assert_eq!(mode & 0o077, 0, "umask {umask}: {} has mode {mode:o}", path.display());
        }
    }
}

/// Makes the cached description of a tool promise more than it does.
fn forge_cached_annotation(house: &House) {
    let mut cache: Value =
        serde_json::from_slice(&fs::read(house.descriptions_file()).unwrap()).unwrap();
    for entry in cache["entries"].as_object_mut().unwrap().values_mut() {
        for tool in entry["described"]["ok"]["tools"].as_array_mut().into_iter().flatten() {
            tool["annotations"] = json!({ "read_only": true });
            tool["auto_approval"] = json!(true);
        }
    }
    fs::write(house.descriptions_file(), cache.to_string()).unwrap();
}

fn listed_cli_tool(house: &House) -> String {
    let list = house.run(&["tool", "list"]).code(0).stdout;
    list.lines().find(|line| line.starts_with("cli_based_tool")).unwrap().to_owned()
}

#[test]
fn description_cache_owned_by_another_user_is_not_used() {
    let house = cli_house!();
    if !is_root() {
        return skip("only root can create files for another user");
    }
    let honest = listed_cli_tool(&house);
    assert!(!honest.contains("read-only"), "{honest}");
    forge_cached_annotation(&house);
    assert!(listed_cli_tool(&house).contains("read-only"), "the forged description is used");

    chown(house.descriptions_file(), Some(STRANGER), None).unwrap();
    assert_eq!(listed_cli_tool(&house), honest);
    let stderr = house.normalize_output(&house.run(&["tool", "list"]).stderr);
    let path = "$HOUSE/home/.cache/jaato/descriptions.json";
    assert_eq!(
        stderr,
        format!(
            "note: `{path}` is not used: user 64711 owns it\nhint: make it yours (`chown \"$(id -u)\" '{path}'`), or remove it\n"
        )
    );

    // The parent folder: a user with write access there may replace the cache folder.
    chown(house.descriptions_file(), Some(0), None).unwrap();
    if !can_others_reach(&house) {
        return skip("other users cannot reach the test folder");
    }
    set_mode(&house.home().join(".cache"), 0o777);
    assert_eq!(listed_cli_tool(&house), honest);
    let output = house.run(&["tool", "list"]);
    assert!(output.stderr.contains("hint: chmod go-w '"), "{output}");
    assert_eq!(output.stderr.matches("is not used").count(), 1, "{output}");
    set_mode(&house.home().join(".cache"), 0o700);
    assert!(listed_cli_tool(&house).contains("read-only"));
}

#[test]
fn trust_record_and_plugins_of_another_user_are_not_used() {
    let house = house!();
    if !is_root() {
        return skip("only root can create files for another user");
    }
    let echo = house.ship_to_user(&fixture("echo"));
    set_mode(&echo, 0o600);
    let listed = || house.run(&["plugin", "list", "--json"]).code(0);
    let status = |output: &Output| {
        let plugins = output.json()["plugins"].as_array().unwrap().clone();
        let echo = plugins.into_iter().find(|plugin| plugin["name"] == "fixture-echo");
        echo.map(|plugin| plugin["sha256"].as_str().unwrap().to_owned())
    };
    let digest = status(&listed()).unwrap();
    house.run(&["plugin", "trust", echo.to_str().unwrap(), "--sha256", &digest]).code(0);
    let inside = || house.run(&["plugin", "show", "fixture-echo"]).code(0).stdout;
    assert!(inside().contains("inside jaato"));

    let record = house.home().join(".local/share/jaato/trust.json");
    chown(&record, Some(STRANGER), None).unwrap();
    assert!(!inside().contains("inside jaato"));
    let output = house.run(&["tool", "list"]);
    assert!(output.stderr.contains("the record of trust cannot be used: "), "{output}");
    chown(&record, Some(0), None).unwrap();
    assert!(inside().contains("inside jaato"));

    // Another user's file in the user's plugin folder, and another user's folder.
    chown(&echo, Some(STRANGER), None).unwrap();
    assert_eq!(status(&listed()), None);
    chown(&echo, Some(0), None).unwrap();
    set_mode(&echo, 0o620);
    assert_eq!(status(&listed()), None);
    set_mode(&echo, 0o600);
    set_mode(&house.user_plugins(), 0o770);
    assert_eq!(status(&listed()), None);
    set_mode(&house.user_plugins(), 0o755);
    assert!(status(&listed()).is_some());
}

#[test]
fn plugins_next_to_the_binary_are_shipped_only_if_owner_and_modes_are_safe() {
    let house = house!();
    if !is_root() {
        return skip("only root can create files for another user");
    }
    let tools = || house.run(&["tool", "list"]).code(0);
    assert!(tools().stdout.contains("get_environment"));
    chown(house.shipped_folder(), Some(STRANGER), None).unwrap();
    let output = tools();
    assert!(!output.stdout.contains("get_environment"), "{output}");
    assert!(output.stderr.contains("is not used: user 64711 owns it"), "{output}");
    chown(house.shipped_folder(), Some(0), None).unwrap();

    // Above it, others could put another `plugins` in its place.
    if can_others_reach(&house) {
        set_mode(house.path(), 0o777);
        assert!(!tools().stdout.contains("get_environment"));
        set_mode(house.path(), 0o1777);
        assert!(tools().stdout.contains("get_environment"));
    }
    chown(house.path(), Some(STRANGER), None).unwrap();
    assert!(!tools().stdout.contains("get_environment"));
    chown(house.path(), Some(0), None).unwrap();

    // The owner of the program could have written anything into it. Uses a copy, because all tests
    // share the binary.
    let copy = house.path().join("bin/copy");
    // Copied by a program. If this process wrote the copy, children of other tests could inherit
    // the open file, and it would be busy.
    let copied = std::process::Command::new("cp").arg(house.binary()).arg(&copy).status();
    assert!(copied.unwrap().success());
    chown(&copy, Some(STRANGER), None).unwrap();
    chown(house.shipped_folder(), Some(STRANGER), None).unwrap();
    let program = copy.display().to_string();
    let output = Command::program(&house, &program, &["tool", "list"]).run().code(0);
    assert!(output.stdout.contains("get_environment"), "{output}");
}

#[test]
fn shipped_plugins_work_if_home_is_not_a_folder() {
    let house = cli_house!();
    let file = house.write("a-file", "");
    for home in [Path::new("/dev/null"), &file] {
        let at_home = |words: &[&str]| house.command(words).variable("HOME", home).run();
        let output = at_home(&["call", "cli_based_tool", &shell_arguments("echo works")]).code(0);
        assert!(output.stdout.contains("works"), "{output}");
        // A call reports plugins only if it fails. A missing ledger is reported immediately.
        assert!(output.stderr.contains("` cannot be used: not a directory"), "{output}");
        let hint = "hint: set `HOME` to a folder that you can write";
        let output = at_home(&["tool", "list"]).code(0);
        assert!(output.stdout.contains("cli_based_tool"), "{output}");
        assert_eq!(output.stderr.matches(hint).count(), 1, "{output}");
        house.write("workspace/AGENTS.md", "x");
        let output = at_home(&["trust"]).code(3);
        assert!(output.stderr.contains("Not a directory"), "{output}");
    }
}

#[test]
fn plugins_work_without_a_folder_for_temporary_files() {
    let house = house!(drops in "echo");
    for folder in [house.path().join("missing"), "relative".into()] {
        fs::remove_file(house.descriptions_file()).ok();
        let call = ["call", "count_bytes_echo", r#"{"text": "a b"}"#];
        let output = house.command(&call).variable("TMPDIR", folder).run().code(0);
        assert_eq!(output.json(), json!({ "bytes": 3 }));
    }
}

#[test]
fn outputs_of_a_killed_host_are_removed_by_the_next() {
    let house = cli_house!();
    let left = house.cache_folder().join("outputs/session-left");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("call_1-stdout.txt"), "much").unwrap();
    set_mode(&house.cache_folder(), 0o700);
    house.run(&["tool", "list"]).code(0);
    assert!(!left.exists());
}

#[test]
fn process_of_the_same_user_cannot_read_keys_from_the_host() {
    let house = cli_house!();
    if !is_root() || !can_start_as_nobody(&house) {
        return skip("only root can start the host as an ordinary user: root reads every memory");
    }
    for path in [house.home(), house.workspace(), house.path().join("run")] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    // Finds the host process, and tries what a plugin in a worker or a command could try.
    let script = "p=$PPID; while [ $p -gt 1 ] && [ \"$(cat /proc/$p/comm)\" != jaato ]; do p=$(cut -d' ' -f4 /proc/$p/stat); done; \
        [ $p -gt 1 ] && echo found; \
        for file in environ mem maps fd/0; do (exec 3</proc/$p/$file) 2>/dev/null && echo reads $file; done; echo end";
    let call = |variables: &[(&str, &str)]| {
        let mut command =
            house.command(&["call", "cli_based_tool", &shell_arguments(script)]).user(NOBODY);
        for (name, value) in variables {
            command = command.variable(name, *value);
        }
        let output = command.variable("OPENAI_API_KEY", "sk-a-key-that-stays-here").run().code(0);
        output.json()["stdout"].as_str().unwrap().to_owned()
    };
    assert_eq!(call(&[]), "found\nend\n");
    // The attempt succeeds if the protection is disabled.
    let open = call(&[("JAATO_DUMPABLE", "1")]);
    assert!(open.contains("reads environ"), "{open}");
}

#[test]
fn symlinked_cache_folder_is_followed() {
    let house = house!();
    house.forget_descriptions();
    let elsewhere = house.path().join("disk/cache");
    fs::create_dir_all(&elsewhere).unwrap();
    symlink(&elsewhere, house.home().join(".cache")).unwrap();
    house.run(&["tool", "list"]).expect_silent();
    assert!(elsewhere.join("jaato/descriptions.json").exists());
}
