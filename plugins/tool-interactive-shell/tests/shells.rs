//! Real shells that print marks, set up by a typed line or at their start.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::PathBuf;
use std::process::Command;

use expectrl::Expect;
use expectrl::session::OsSession;
use jaato_plugin_testkit::skip;
use tool_interactive_shell::marks::{
    MarkKind, MarkNonce, MarkScanner, MarkableShell, ShellInjection, ShellMark,
};
use tool_interactive_shell::screen::EmulatedScreen;

const NONCE: &str = "n0nce4theShells";

/// The way in which a shell is set up.
#[derive(Debug, Clone, Copy)]
enum SetupMethod {
    Line,
    Injection,
}

/// A shell on a terminal.
struct Terminal {
    session: OsSession,
    scanner: MarkScanner,
    screen: EmulatedScreen,
}

impl Terminal {
    /// Returns `None` if the program is not installed. The test is then skipped.
    fn new(program: &[&str], injection: &ShellInjection, home: &PathBuf) -> Option<Self> {
        let mut command = Command::new(program[0]);
        command.args(&injection.arguments).args(&program[1..]);
        command.env_clear().env("PATH", std::env::var_os("PATH")?);
        command.env("HOME", home).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command.envs(injection.variables.iter().map(|(name, value)| (name, value)));
        // Checks the search path, because a PTY's child could only exit.
        let path = std::env::var_os("PATH")?;
        if !std::env::split_paths(&path).any(|folder| folder.join(program[0]).is_file()) {
            skip(&format!("there is no `{}`", program[0]));
            return None;
        }
        let mut session = OsSession::spawn(command).unwrap();
        session.set_expect_timeout(Some(std::time::Duration::from_secs(30)));
        let scanner = MarkScanner::new(&MarkNonce::new(NONCE).unwrap());
        Some(Self { session, scanner, screen: EmulatedScreen::new(24, 200) })
    }

    /// Types a line and returns the marks up to the next prompt.
    fn type_line(&mut self, line: &str) -> Vec<MarkKind> {
        self.screen.mark_seen();
        self.session.send(format!("{line}\r")).unwrap();
        self.next_prompt()
    }

    fn next_prompt(&mut self) -> Vec<MarkKind> {
        let end = format!("\x1b]133;B;jaato={NONCE}\x07");
        let found = self.session.expect(end.as_bytes()).unwrap();
        self.screen.feed_output(found.as_bytes());
        let marks = self.scanner.scan(found.as_bytes());
        marks.into_iter().map(|ShellMark { kind, .. }| kind).collect()
    }
}

/// Checks a shell after its setup. `program` must not load a startup file that interferes.
fn check_shell(shell: MarkableShell, program: &[&str], way: SetupMethod) {
    use MarkKind::{CommandEnd, CommandStart, InputStart, PromptStart};
    let name = format!("{}-{way:?}-{}", program.join("-").replace('/', "_"), std::process::id());
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&home).unwrap();
    let nonce = MarkNonce::new(NONCE).unwrap();
    let injection = match way {
        SetupMethod::Line => ShellInjection::default(),
        SetupMethod::Injection => shell.startup_injection(&nonce, "$ ").unwrap(),
    };
    let Some(mut terminal) = Terminal::new(program, &injection, &home) else { return };
    let first = match way {
        SetupMethod::Line => terminal.type_line(&shell.setup_line(&nonce)),
        SetupMethod::Injection => terminal.next_prompt(),
    };
    assert_eq!(first[first.len() - 2..], [PromptStart, InputStart], "{first:?}");

    let ran = |code: i32| {
        let start = (shell != MarkableShell::Posix).then_some(CommandStart);
        start
            .into_iter()
            .chain([CommandEnd(Some(code)), PromptStart, InputStart])
            .collect::<Vec<_>>()
    };
    assert_eq!(terminal.type_line("sh -c 'exit 7'"), ran(7));
    // Marks without the nonce belong to a program.
    assert_eq!(terminal.type_line(r"printf '\033]133;D;9\007fo%s\n' rged"), ran(0));
    let text = terminal.screen.unseen_text().text;
    assert!(text.contains("forged") && !text.contains("133;D;9\u{7}"), "{text:?}");
    // The marks keep the status of the last command.
    assert_eq!(terminal.type_line("false"), ran(1));
    let status = if shell == MarkableShell::Fish { "$status" } else { "$?" };
    assert_eq!(terminal.type_line(&format!("echo x({status})x").replace(['(', ')'], "\"")), ran(0));
    let text = terminal.screen.unseen_text().text;
    assert!(text.contains("x1x"), "{text:?}");
    // A second setup does not print the marks twice.
    terminal.type_line(&shell.setup_line(&nonce));
    assert_eq!(terminal.type_line("true").iter().filter(|kind| **kind == PromptStart).count(), 1);
    if matches!((shell, way), (MarkableShell::Bash, SetupMethod::Injection)) {
        terminal.type_line("env");
        assert!(
            !terminal.screen.visible_lines().join("").contains(NONCE),
            "children know the nonce"
        );
    }
    assert!(terminal.screen.is_mid_line(), "{:?}", terminal.screen.visible_lines());
    drop(terminal);
    // A shell that is ending may still write its history there.
    let _ = std::fs::remove_dir_all(&home);
}

#[test]
fn bash_prints_marks_after_setup() {
    check_shell(MarkableShell::Bash, &["bash", "--noprofile", "--norc"], SetupMethod::Line);
    check_shell(MarkableShell::Bash, &["bash", "--noprofile", "--norc"], SetupMethod::Injection);
}

#[test]
fn bash_with_user_startup_files_prints_marks_after_setup() {
    check_shell(MarkableShell::Bash, &["bash", "-i"], SetupMethod::Injection);
}

#[test]
fn zsh_prints_marks_after_setup() {
    check_shell(MarkableShell::Zsh, &["zsh", "-f"], SetupMethod::Line);
}

#[test]
fn fish_prints_marks_after_setup() {
    check_shell(MarkableShell::Fish, &["fish"], SetupMethod::Line);
    check_shell(MarkableShell::Fish, &["fish"], SetupMethod::Injection);
}

#[test]
fn dash_prints_marks_after_setup() {
    check_shell(MarkableShell::Posix, &["dash", "-i"], SetupMethod::Line);
    check_shell(MarkableShell::Posix, &["dash", "-i"], SetupMethod::Injection);
}

#[test]
fn busybox_ash_prints_marks_after_setup() {
    check_shell(MarkableShell::Posix, &["busybox", "sh", "-i"], SetupMethod::Line);
    check_shell(MarkableShell::Posix, &["busybox", "sh", "-i"], SetupMethod::Injection);
}

/// `sh` may be any shell of this family.
#[test]
fn bash_accepts_the_posix_setup_line() {
    check_shell(
        MarkableShell::Posix,
        &["bash", "--posix", "--noprofile", "--norc"],
        SetupMethod::Line,
    );
}
