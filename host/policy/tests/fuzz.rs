//! Random command lines. The installed shells run the lines that a rule for `ls` allows, and these
//! may run only `ls` and leave no file behind.
//!
//! The seed is fixed, so that failures are repeatable. `JAATO_FUZZ_TIMES` multiplies the number of
//! tries. Every program on the search path records that it ran and does nothing else. The shell
//! runs as an unused user, without a network, if the system permits.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jaato_policy::{
    CommandPattern, PluginSource, PolicyCall, RestOfCommand, Rule, RuleConditions, RuleFile,
    RuleLayer, RuleOutcome, Rules, decide,
};
use jaato_types::{PluginName, ToolName};
use serde_json::json;

use crate::skip::skip;

/// A user id that no system uses.
const UNUSED_ID: u32 = 54_321;

/// An absolute path, because the lines run with only the stubs on the search path.
const UNSHARE: &str = "/usr/bin/unshare";

/// How many lines are generated, and how many of them are run at most.
const LINES: u64 = 6_000;
const RUNS_MAX: u64 = 250;

/// The parts of lines: separators, joins, quotes, substitutions and harmless names.
const PIECES: &[&str] = &[
    "ls",
    "ls",
    "ls",
    "ls",
    "ls ",
    "ls ",
    " ",
    " ",
    " ",
    " ",
    "-l",
    "-la",
    "a",
    "b",
    "x",
    "rm",
    "id",
    "./x",
    "eval",
    "sh",
    "-c",
    "env",
    "exec",
    "command",
    "alias",
    "xargs",
    "PATH=.",
    "a=b",
    "rm x",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "\n",
    "\t",
    "\\",
    "\\\n",
    "'",
    "'",
    "\"",
    "\"",
    "''",
    "\"\"",
    "$",
    "$x",
    "${x}",
    "$(rm)",
    "$(",
    ")",
    "(",
    "`",
    "`rm`",
    "{",
    "}",
    "{}",
    "{a,b}",
    "<",
    ">",
    ">>",
    "2>",
    "2>&1",
    ">/dev/null",
    "</dev/null",
    "> /dev/null",
    "<<x",
    "<<<",
    "<(rm)",
    "#",
    "!",
    "!!",
    "~",
    "~/",
    "*",
    "?",
    "[a]",
    "=",
    "^",
    "%",
    "@",
    ":",
    ",",
    ".",
    "/",
    "..",
    "--",
    "-",
    "+",
    "if",
    "then",
    "fi",
    "do",
    "done",
    "for",
    "in",
    "time",
    "coproc",
    "function",
    "[[",
    "]]",
    "((",
    "))",
    "\u{a0}",
    "é",
    "\r",
    "$'",
    "\\x72m",
    "$\"",
    "$((",
    "1",
    "0",
    "2",
    "; rm",
    "&& ls",
    "| ls",
    "; ls",
    "\nls",
    "'a b'",
    "\"a;b\"",
];

/// Programs that only record that they ran.
const STUBS: &[&str] = &[
    "ls", "rm", "id", "x", "a", "b", "sh", "env", "xargs", "time", "l", "s", "lsls", "lsrm", "rmls",
];

struct LineGenerator(u64);

impl LineGenerator {
    fn next_number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn random_line(&mut self) -> String {
        let pieces = 1 + self.next_number() % 9;
        let mut line =
            if self.next_number().is_multiple_of(4) { String::new() } else { "ls".to_owned() };
        for _ in 0..pieces {
            line += PIECES[usize::try_from(self.next_number()).unwrap_or_default() % PIECES.len()];
        }
        line
    }
}

fn is_allowed_line(line: &str) -> bool {
    let (tool, plugin) = (ToolName::from("cli_based_tool"), PluginName::from("tool-cli"));
    let command = CommandPattern::parse("ls *", RestOfCommand::SafeOptions);
    let when = RuleConditions { command, ..RuleConditions::default() };
    let rules = vec![Rule { outcome: RuleOutcome::Allow, when, line: 1, why: None }];
    let file = RuleFile {
        layer: RuleLayer::User,
        path: "rules".into(),
        default: None,
        rules,
        broken: None,
    };
    let rules = Rules::from_files(vec![file]);
    let arguments = json!({ "command": line });
    let call =
        PolicyCall { source: PluginSource::Shipped, ..PolicyCall::new(&tool, &plugin, &arguments) };
    decide(&rules, &call).outcome == RuleOutcome::Allow
}

/// A folder in which lines run.
struct ShellSandbox {
    root: PathBuf,
    has_unshare: bool,
}

impl ShellSandbox {
    fn new() -> Self {
        let root = std::env::temp_dir().join(format!("jaato-policy-fuzz-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for folder in ["", "stubs", "here"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let log = root.join("log");
        fs::write(&log, "").unwrap();
        fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
        for (folder, names) in [("stubs", STUBS), ("here", &["x"][..])] {
            for name in names {
                let stub = root.join(folder).join(name);
                fs::write(&stub, format!("#!/bin/sh\necho {name} >> '{}'\n", log.display()))
                    .unwrap();
                fs::set_permissions(stub, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        let tried = Command::new(UNSHARE).args(["-n", "true"]).stderr(Stdio::null()).status();
        let has_unshare = is_root() && tried.is_ok_and(|status| status.success());
        if !has_unshare {
            skip(
                "the lines of the fuzz run keep their network: `unshare -n` is missing or refused",
            );
        }
        Self { root, has_unshare }
    }

    /// Runs a line. Returns the programs that ran, or a description of what must not happen.
    fn run_line(&self, shell: &str, line: &str) -> Result<Vec<String>, String> {
        let log = self.root.join("log");
        fs::write(&log, "").unwrap();
        let mut command = match self.has_unshare {
            true => {
                let mut command = Command::new(UNSHARE);
                let id = UNUSED_ID.to_string();
                command.args(["-n", "--setuid", &id, "--setgid", &id, shell]);
                command
            }
            false => Command::new(shell),
        };
        if is_root() && !self.has_unshare {
            command.uid(UNUSED_ID).gid(UNUSED_ID);
        }
        command.args(["-c", line]).current_dir(self.root.join("here")).stdin(Stdio::null());
        command.env_clear().env("PATH", self.path()).env("HOME", self.root.join("here"));
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut left: Vec<String> = names_in(&self.root.join("here"));
        left.retain(|name| name != "x");
        if !left.is_empty() {
            left.iter().for_each(|name| drop(fs::remove_file(self.root.join("here").join(name))));
            return Err(format!("left files behind: {left:?}"));
        }
        if ["not found", "syntax error", "unexpected", "Permission denied"]
            .iter()
            .any(|sign| errors.contains(sign))
        {
            return Err(format!("tried something else: {errors}"));
        }
        Ok(fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect())
    }

    fn path(&self) -> PathBuf {
        self.root.join("stubs")
    }
}

impl Drop for ShellSandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt as _;
        own.uid() == 0
    })
}

#[test]
fn allow_rule_for_ls_lets_only_ls_run() {
    let shells: Vec<&str> = ["/bin/sh", "/bin/bash", "/bin/dash", "/bin/zsh", "/bin/ksh"]
        .into_iter()
        .filter(|shell| Path::new(shell).exists())
        .collect();
    let times = std::env::var("JAATO_FUZZ_TIMES").ok().and_then(|times| times.parse().ok());
    let times: u64 = times.unwrap_or(1);
    let yard = ShellSandbox::new();
    // The yard itself must detect such failures.
    assert_eq!(yard.run_line("/bin/sh", "ls; rm x").unwrap(), ["ls", "rm"]);
    assert!(yard.run_line("/bin/sh", "ls > y").is_err());
    assert!(yard.run_line("/bin/sh", "nothing-of-this-name").is_err());
    let mut random = LineGenerator(0x9e37_79b9_7f4a_7c15);
    let (mut allowed, mut wrong) = (0, String::new());
    for _ in 0..LINES * times {
        let line = random.random_line();
        if !is_allowed_line(&line) {
            continue;
        }
        allowed += 1;
        if allowed > RUNS_MAX * times {
            break;
        }
        for shell in &shells {
            match yard.run_line(shell, &line) {
                // zsh runs nothing if a pattern has no match.
                Ok(ran) if ran.is_empty() && *shell == "/bin/zsh" => {}
                Ok(ran) if ran.iter().all(|name| name == "ls") && !ran.is_empty() => {}
                Ok(ran) => _ = writeln!(wrong, "{shell} {line:?} ran {ran:?}"),
                Err(what) => _ = writeln!(wrong, "{shell} {line:?} {what}"),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(allowed > 100, "only {allowed} lines were allowed");
}
