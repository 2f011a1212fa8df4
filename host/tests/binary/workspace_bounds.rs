//! Tests limits on a workspace's settings and files: a trusted one is restricted, and an untrusted
//! one does no harm.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, symlink};

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::cli::{cli_house, shell_arguments};
use crate::house;
use crate::private::list_tree;
use crate::support::{House, NOBODY, Output, fixture, fixtures, is_root, set_mode};

fn trust_workspace(house: &House) {
    house.run(&["trust"]).code(0);
}

/// Returns the reported workspace values that have no effect.
fn unused_messages(output: &Output) -> Vec<String> {
    let lines = output.stderr.lines().filter(|line| line.contains("is not used"));
    lines.map(|line| line.split(['`']).nth(1).unwrap().to_owned()).collect()
}

#[test]
fn prompt_file_set_by_a_workspace_must_be_inside_it() {
    let house = house!();
    house.set_script(&json!({ "answers": [] }));
    house.write("home/secret", "the key");
    house.write("workspace/docs/prompt.md", "Be brief.");
    symlink(house.home().join("secret"), house.workspace().join("link")).unwrap();
    symlink(house.home(), house.workspace().join("folder")).unwrap();
    let fifo = house.workspace().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    let shown = |file: &str| {
        house.write("workspace/.jaato/config.toml", &format!("prompt.file = \"{file}\"\n"));
        trust_workspace(&house);
        let output = house.run(&["run", "--show-prompt", "hello"]);
        assert!(!output.to_string().contains("the key"), "{file}: {output}");
        output
    };
    assert!(shown("docs/prompt.md").code(0).stdout.contains("Be brief."));
    let secret = house.home().join("secret").display().to_string();
    for outside in ["~/secret", "../home/secret", "docs/../../home/secret", "/dev/zero", &secret] {
        let output = shown(outside).code(0);
        assert_eq!(unused_messages(&output), ["prompt.file"], "{outside}: {output}");
    }
    for refused in ["link", "folder/secret", "fifo", "docs"] {
        let output = shown(refused).code(3);
        assert!(output.stderr.contains("cannot use prompt file `"), "{refused}: {output}");
    }
    // A variable in the workspace's `.env` does not bypass this.
    fs::remove_file(house.workspace().join(".jaato/config.toml")).unwrap();
    house.write("workspace/.env", &format!("JAATO_PROMPT_FILE={secret}\n"));
    trust_workspace(&house);
    let output = house.run(&["run", "--show-prompt", "hello"]).code(0);
    assert_eq!(unused_messages(&output), ["JAATO_PROMPT_FILE"]);
    assert!(!output.stdout.contains("the key"));

    // The user may name any file, but jaato waits for none.
    fs::remove_file(house.workspace().join(".env")).unwrap();
    house.configure_more("[prompt]\nfile = \"/dev/zero\"\n");
    let output = house.run(&["run", "--show-prompt", "hello"]).code(3);
    assert!(output.stderr.contains("it is not a regular file"), "{output}");
}

#[test]
fn workspace_cannot_set_the_shell_or_allowed_folders() {
    let house = cli_house!();
    let evil = house.write("workspace/evil.sh", "#!/bin/sh\ntouch \"$PWD/ran\"\necho evil\n");
    set_mode(&evil, 0o755);
    house.write(
        "workspace/.jaato/config.toml",
        &format!(
            "[plugins.tool-cli]\nshell = \"{}\"\ntimeout_seconds = 7\n[plugins.environment-local]\nallowed_paths = [\"/\"]\n",
            evil.display()
        ),
    );
    trust_workspace(&house);
    let output = house.run(&["call", "cli_based_tool", &shell_arguments("echo honest")]).code(0);
    assert!(output.stdout.contains("honest"), "{output}");
    assert!(!house.workspace().join("ran").exists());
    let output = house.run(&["tool", "list"]).code(0);
    let mut told = unused_messages(&output);
    told.sort();
    assert_eq!(told, ["allowed_paths", "shell"], "{output}");
    assert!(output.stderr.contains("workspace/.jaato/config.toml:2)"), "{output}");

    // The user's own value applies instead, and their own file may set all of them.
    house.configure(&format!("[plugins.tool-cli]\nshell = \"{}\"\n", evil.display()));
    let output = house.run(&["call", "cli_based_tool", &shell_arguments("echo honest")]).code(0);
    assert!(output.stdout.contains("evil"), "{output}");
}

#[test]
fn workspace_cannot_loosen_the_users_settings() {
    let house = house!();
    house.configure(
        "offline = true\n[local]\ndownload = false\n[tools]\nenabled = [\"get_environment\"]\n",
    );
    let looser = "offline = false\nenvironment = \"docker\"\nplugin_dirs = [\"vendor\"]\n[local]\ndownload = true\n\
        [tools]\nenabled = [\"cli_based_tool\"]\n[tools.cli]\npass = [\"OPENAI_API_KEY\"]\n";
    house.write("workspace/.jaato/config.toml", looser);
    house.write(
        "workspace/.env",
        "JAATO_OFFLINE=no\nJAATO_LOCAL_DOWNLOAD=1\nJAATO_PLUGIN_PATH=/tmp\nJAATO_TOOLS_ENABLED=x\nJAATO_TOOLS_CLI_PASS=A\n",
    );
    trust_workspace(&house);
    let output = house.run(&["config", "show"]).code(0);
    let keys = ["offline", "plugin_dirs", "local.download", "tools.enabled", "tools.cli.pass"];
    let variables = [
        "JAATO_OFFLINE",
        "JAATO_LOCAL_DOWNLOAD",
        "JAATO_PLUGIN_PATH",
        "JAATO_TOOLS_ENABLED",
        "JAATO_TOOLS_CLI_PASS",
    ];
    let expected: Vec<_> = keys.into_iter().chain(variables).map(str::to_owned).collect();
    assert_eq!(unused_messages(&output), expected, "{output}");
    // Nothing else chose an environment.
    assert!(output.stdout.contains("environment = \"docker\""), "{output}");

    // A workspace may be stricter.
    house.configure("");
    fs::remove_file(house.workspace().join(".env")).unwrap();
    house.write(
        "workspace/.jaato/config.toml",
        "offline = true\n[tools]\nenabled = [\"get_environment\"]\n",
    );
    trust_workspace(&house);
    let output = house.run(&["config", "show"]).expect_silent();
    assert!(output.stdout.contains("offline = true"), "{output}");
}

#[test]
fn symlinked_plugin_folder_of_a_workspace_is_not_used() {
    let house = house!();
    let vendor = house.workspace().join("vendor");
    fs::create_dir_all(&vendor).unwrap();
    fs::create_dir_all(house.workspace().join(".jaato")).unwrap();
    let plugins = house.workspace().join(".jaato/plugins");
    symlink("../vendor", &plugins).unwrap();
    trust_workspace(&house);
    // As after a `git pull`.
    fs::copy(fixture("echo"), vendor.join("echo.so")).unwrap();
    let tools = || house.run(&["tool", "list"]).code(0);
    assert!(!tools().stdout.contains("count_bytes_echo"));

    fs::remove_file(&plugins).unwrap();
    fs::create_dir(&plugins).unwrap();
    symlink("../../vendor/echo.so", plugins.join("link.so")).unwrap();
    trust_workspace(&house);
    let output = tools();
    assert!(!output.stdout.contains("count_bytes_echo"), "{output}");
    assert!(output.stderr.contains("links are not followed in a workspace"), "{output}");

    fs::remove_file(plugins.join("link.so")).unwrap();
    fs::copy(fixture("echo"), plugins.join("echo.so")).unwrap();
    trust_workspace(&house);
    assert!(tools().stdout.contains("count_bytes_echo"));
    // The running file is a copy with exactly that content, which no other user can write.
    let copies = fs::read_dir(house.cache_folder().join("workspace-plugins")).unwrap();
    let copies: Vec<_> = copies.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(copies.len(), 1);
    assert!(fs::read(&copies[0]).unwrap() == fs::read(plugins.join("echo.so")).unwrap());
    house.run(&["call", "count_bytes_echo", r#"{"text": "a"}"#]).code(0);
}

#[test]
fn unusual_files_in_the_jaato_folder_do_not_stop_jaato() {
    let deep = "d/".repeat(20);
    type PrepareHouse<'a> = &'a dyn Fn(&std::path::Path);
    let cases: [(&str, PrepareHouse<'_>); 4] = [
        ("a name that is not UTF-8", &|folder| {
            fs::write(folder.join(std::ffi::OsStr::from_bytes(b"m\xffn")), "").unwrap();
        }),
        ("too many files", &|folder| {
            for number in 0..4097 {
                fs::write(folder.join(number.to_string()), "").unwrap();
            }
        }),
        ("folders too deep", &|folder| fs::create_dir_all(folder.join(&deep)).unwrap()),
        ("an unreadable folder", &|folder| {
            fs::create_dir(folder.join("closed")).unwrap();
            set_mode(&folder.join("closed"), 0o000);
        }),
    ];
    for (name, make) in cases {
        for is_trusted_before in [false, true] {
            let house = house!();
            let folder = house.workspace().join(".jaato");
            house.write("workspace/.jaato/config.toml", "[session]\nsteps_max = 7\n");
            if is_trusted_before {
                trust_workspace(&house);
            }
            make(&folder);
            let mut command = house.command(&["plugin", "list"]);
            if is_root() {
                let own = [house.path().to_owned(), house.path().join("run")];
                for path in list_tree(&house.home()).into_iter().chain(own) {
                    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
                }
                command = command.user(NOBODY);
            }
            let output = command.run().code(0);
            assert!(output.stdout.contains("get_environment"), "{name}: {output}");
            let why = ["is not trusted", "is no longer trusted"];
            assert!(why.iter().any(|why| output.stderr.contains(why)), "{name}: {output}");
            // The test can then remove it.
            if folder.join("closed").exists() {
                set_mode(&folder.join("closed"), 0o700);
            }
        }
    }
}

#[test]
fn huge_sparse_plugin_file_is_refused_quickly() {
    let house = house!();
    // A plugin whose section table continues after its end. Gigabytes of it would be read into
    // memory.
    let mut elf = fs::read(fixture("echo")).unwrap();
    let number = |at: usize, bytes: usize| {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&elf[at..at + bytes]);
        usize::try_from(u64::from_le_bytes(number)).unwrap()
    };
    let (table, count) = (number(40, 8), number(60, 2));
    let mut sections = elf[table..table + count * 64].to_vec();
    let many = 2_000_000_usize;
    // So many that their number is stored in the first section.
    sections[32..40].copy_from_slice(&(many as u64).to_le_bytes());
    elf[60..62].copy_from_slice(&[0, 0]);
    elf.resize(elf.len().next_multiple_of(64), 0);
    let moved = elf.len();
    elf[40..48].copy_from_slice(&(moved as u64).to_le_bytes());
    elf.extend(sections);
    let plugin = house.workspace().join(".jaato/plugins/holes.so");
    fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    fs::write(&plugin, elf).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&plugin).unwrap();
    let listed = |sections: usize| {
        file.set_len((moved + sections * 64) as u64).unwrap();
        file.write_all_at(&(sections as u64).to_le_bytes(), moved as u64 + 32).unwrap();
        house.run(&["plugin", "list"]).code(0)
    };
    let refused = listed(many);
    assert!(
        refused.stderr.contains("holes.so` as a plugin: it is truncated or damaged"),
        "{refused}"
    );
    let taken = listed(count);
    assert!(taken.stdout.contains("fixture-echo"), "the headers themselves are right: {taken}");
}

const BEGIN: &str = "<!-- plugins' settings: made from the plugins, do not edit -->\n";
const END: &str = "<!-- end of plugins' settings -->";

/// Lists each setting of each shipped plugin, and whether a trusted workspace may set it.
fn settings_table(house: &House) -> String {
    let list = house.run(&["plugin", "list", "--json"]).code(0).json();
    let mut table = String::from("| plugin | setting | a trusted workspace |\n|---|---|---|\n");
    let mut rows = Vec::new();
    for plugin in list["plugins"].as_array().unwrap() {
        let schema = &plugin["description"]["config_schema"];
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let may = if property["x-jaato-workspace"] == Value::Bool(true) {
                "may set it"
            } else {
                "may not"
            };
            rows.push(format!("| `{}` | `{name}` | {may} |\n", plugin["name"].as_str().unwrap()));
        }
    }
    rows.sort();
    table.extend(rows);
    table
}

#[test]
fn documentation_lists_who_may_set_each_plugin_setting() {
    let Some(house) = House::without_plugins() else { return };
    let plugins = fixtures::test_house().unwrap().join("plugins");
    for plugin in fs::read_dir(plugins).unwrap() {
        house.ship(&plugin.unwrap().path());
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let text = fs::read_to_string(path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the table's first mark");
    let (_, tail) = rest.split_once(END).expect("the table's last mark");
    let table = settings_table(&house);
    assert!(table.lines().count() > 20, "{table}");
    expect_file![path].assert_eq(&format!("{head}{BEGIN}{table}{END}{tail}"));
}
