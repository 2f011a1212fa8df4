//! The aspect `terminal`: the capabilities of the user's terminal.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::service::TerminalFacts;

use crate::facts::MachineFacts;

/// Returns the terminal's variables and the conclusions from them: colours, multiplexer, emulator,
/// graphics.
pub(crate) fn terminal_fields(facts: &MachineFacts) -> Map<String, Value> {
    let terminal = &facts.session.terminal;
    Map::from_iter([
        ("interactive".to_owned(), json!(is_interactive(terminal))),
        ("term".to_owned(), json!(non_empty_value(&terminal.term))),
        ("term_program".to_owned(), json!(non_empty_value(&terminal.term_program))),
        ("colorterm".to_owned(), json!(non_empty_value(&terminal.colorterm))),
        ("multiplexer".to_owned(), json!(detect_multiplexer(terminal))),
        ("color_depth".to_owned(), json!(detect_color_depth(terminal, facts.is_windows()))),
        ("emulator".to_owned(), json!(detect_emulator(terminal))),
        ("graphics".to_owned(), json!(detect_graphics_protocol(terminal))),
    ])
}

/// Returns true if a user can read the output and type input.
fn is_interactive(terminal: &TerminalFacts) -> bool {
    terminal.input_is_terminal && terminal.output_is_terminal
}

fn detect_multiplexer(terminal: &TerminalFacts) -> Option<&'static str> {
    if terminal.tmux {
        return Some("tmux");
    }
    let screen = terminal.screen || term_variable(terminal).contains("screen");
    screen.then_some("screen")
}

fn detect_color_depth(terminal: &TerminalFacts, is_windows: bool) -> &'static str {
    let colorterm = non_empty_value(&terminal.colorterm).unwrap_or_default();
    match term_variable(terminal) {
        _ if !terminal.output_is_terminal => "none",
        _ if matches!(colorterm, "truecolor" | "24bit") => "24bit",
        term if term.contains("256") => "256",
        "dumb" => "none",
        // A Windows console sets no `TERM` and shows colours. On other systems, a missing `TERM`
        // means unknown.
        "" if !is_windows => "none",
        _ => "basic",
    }
}

fn detect_emulator(terminal: &TerminalFacts) -> Option<&str> {
    non_empty_value(&terminal.term_program).or_else(|| match term_variable(terminal) {
        "linux" => Some("linux-console"),
        term if term.starts_with("xterm") => Some("xterm-compatible"),
        _ => None,
    })
}

/// Returns the graphics protocol. The user's setting wins. A multiplexer or a pipe drops graphics.
fn detect_graphics_protocol(terminal: &TerminalFacts) -> Option<&'static str> {
    match non_empty_value(&terminal.graphics).map(str::to_ascii_lowercase).as_deref() {
        Some("kitty") => return Some("kitty"),
        Some("iterm") => return Some("iterm"),
        Some("sixel") => return Some("sixel"),
        Some("none" | "off") => return None,
        Some(_) | None => {}
    }
    if !terminal.output_is_terminal || detect_multiplexer(terminal).is_some() {
        return None;
    }
    match non_empty_value(&terminal.term_program) {
        Some("kitty" | "ghostty" | "WezTerm") => return Some("kitty"),
        Some("iTerm.app") => return Some("iterm"),
        Some("mintty") => return Some("sixel"),
        Some(_) | None => {}
    }
    match term_variable(terminal) {
        "xterm-kitty" | "xterm-ghostty" | "wezterm" => Some("kitty"),
        "mlterm" | "foot" | "foot-extra" | "yaft-256color" => Some("sixel"),
        term if term.contains("sixel") => Some("sixel"),
        _ => None,
    }
}

fn term_variable(terminal: &TerminalFacts) -> &str {
    non_empty_value(&terminal.term).unwrap_or_default()
}

/// Returns a variable's value. An empty value counts as unset.
fn non_empty_value(variable: &Option<String>) -> Option<&str> {
    variable.as_deref().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::testing::{linux_machine, macos_machine, report_lines, windows_machine};

    #[track_caller]
    fn check_terminal(facts: MachineFacts, expected: Expect) {
        expected.assert_eq(&report_lines(&terminal_fields(&facts)));
    }

    /// Returns an interactive terminal with these values of `TERM`, `COLORTERM` and `TERM_PROGRAM`.
    fn interactive_terminal(term: &str, colorterm: &str, program: &str) -> TerminalFacts {
        TerminalFacts {
            input_is_terminal: true,
            output_is_terminal: true,
            term: Some(term.to_owned()),
            colorterm: Some(colorterm.to_owned()),
            term_program: Some(program.to_owned()),
            ..TerminalFacts::default()
        }
    }

    #[test]
    fn terminal_is_reported_for_each_operating_system() {
        check_terminal(
            linux_machine(),
            expect![[r#"
                color_depth = "256"
                colorterm = null
                emulator = "xterm-compatible"
                graphics = null
                interactive = true
                multiplexer = null
                term = "xterm-256color"
                term_program = null
            "#]],
        );
        check_terminal(
            macos_machine(),
            expect![[r#"
                color_depth = "24bit"
                colorterm = "truecolor"
                emulator = "iTerm.app"
                graphics = "iterm"
                interactive = true
                multiplexer = null
                term = "xterm-256color"
                term_program = "iTerm.app"
            "#]],
        );
        check_terminal(
            windows_machine(),
            expect![[r#"
                color_depth = "basic"
                colorterm = null
                emulator = null
                graphics = null
                interactive = true
                multiplexer = null
                term = null
                term_program = null
            "#]],
        );
    }

    #[test]
    fn piped_output_has_no_colours_or_graphics_but_keeps_its_variables() {
        let mut facts = macos_machine();
        facts.session.terminal.output_is_terminal = false;
        check_terminal(
            facts,
            expect![[r#"
                color_depth = "none"
                colorterm = "truecolor"
                emulator = "iTerm.app"
                graphics = null
                interactive = false
                multiplexer = null
                term = "xterm-256color"
                term_program = "iTerm.app"
            "#]],
        );
    }

    #[test]
    fn piped_input_is_not_interactive() {
        let terminal =
            TerminalFacts { input_is_terminal: false, ..interactive_terminal("xterm", "", "") };
        assert!(!is_interactive(&terminal));
        assert_eq!(detect_color_depth(&terminal, false), "basic");
    }

    #[test]
    fn colour_depth_follows_colorterm_then_term() {
        for (term, colorterm, depth) in [
            ("xterm", "truecolor", "24bit"),
            ("xterm", "24bit", "24bit"),
            ("xterm", "yes", "basic"),
            ("screen-256color", "", "256"),
            ("vt100", "", "basic"),
            ("dumb", "", "none"),
            ("", "", "none"),
        ] {
            assert_eq!(
                detect_color_depth(&interactive_terminal(term, colorterm, ""), false),
                depth,
                "{term} {colorterm}"
            );
        }
    }

    #[test]
    fn a_multiplexer_is_found_by_its_variable_or_by_term() {
        let plain = interactive_terminal("xterm", "", "");
        let named = interactive_terminal("screen.xterm", "", "");
        let found = [
            detect_multiplexer(&plain),
            detect_multiplexer(&named),
            detect_multiplexer(&TerminalFacts { screen: true, ..plain.clone() }),
            detect_multiplexer(&TerminalFacts { tmux: true, ..named }),
        ];
        assert_eq!(found, [None, Some("screen"), Some("screen"), Some("tmux")]);
    }

    #[test]
    fn emulator_is_named_by_term_program_or_by_term() {
        for (term, program, name) in [
            ("xterm-256color", "vscode", Some("vscode")),
            ("xterm", "", Some("xterm-compatible")),
            ("linux", "", Some("linux-console")),
            ("vt100", "", None),
        ] {
            assert_eq!(
                detect_emulator(&interactive_terminal(term, "", program)),
                name,
                "{term} {program}"
            );
        }
    }

    #[test]
    fn graphics_need_a_capable_terminal_and_no_multiplexer() {
        for (term, program, protocol) in [
            ("xterm-kitty", "", Some("kitty")),
            ("xterm-256color", "WezTerm", Some("kitty")),
            ("foot", "", Some("sixel")),
            ("xterm+sixel", "", Some("sixel")),
            ("xterm-256color", "Apple_Terminal", None),
        ] {
            let terminal = interactive_terminal(term, "", program);
            assert_eq!(detect_graphics_protocol(&terminal), protocol, "{term} {program}");
            assert_eq!(
                detect_graphics_protocol(&TerminalFacts { tmux: true, ..terminal }),
                None,
                "{term} in tmux"
            );
        }
    }

    #[test]
    fn user_setting_decides_graphics_even_in_a_multiplexer() {
        let inside = |graphics: &str| TerminalFacts {
            tmux: true,
            graphics: Some(graphics.to_owned()),
            ..interactive_terminal("xterm-kitty", "", "")
        };
        assert_eq!(detect_graphics_protocol(&inside("Sixel")), Some("sixel"));
        assert_eq!(
            detect_graphics_protocol(&TerminalFacts { tmux: false, ..inside("none") }),
            None
        );
        assert_eq!(
            detect_graphics_protocol(&TerminalFacts { tmux: false, ..inside("auto") }),
            Some("kitty")
        );
    }
}
