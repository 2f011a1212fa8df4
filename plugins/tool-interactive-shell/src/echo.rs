//! Removes the echo of typed text from an output. Pure.

/// Returns the output without typed lines that the program or its terminal has echoed.
///
/// Only whole lines at the start are removed. The first must equal the typed line, and the next
/// ones may begin with a prompt (`... `). Text that was typed without a line end stays, because
/// there may be nothing else to show.
pub fn strip_echo<'a>(output: &'a str, typed: &str) -> &'a str {
    let mut rest = output;
    let typed = typed.replace("\r\n", "\n").replace('\r', "\n");
    let Some((complete, _)) = typed.rsplit_once('\n') else { return output };
    for (number, line) in complete.split('\n').enumerate() {
        let Some((shown, behind)) = rest.split_once('\n') else { return rest };
        let is_echo = match (number, line.trim_end()) {
            (_, "") if number > 0 => shown.trim_end().len() <= PROMPT_CHARACTERS_MAX,
            (0, line) => shown.trim_end() == line,
            (_, line) => shown.trim_end().ends_with(line),
        };
        if !is_echo {
            return rest;
        }
        rest = behind;
    }
    rest
}

/// The maximum length of a line that counts as a prompt if an empty line was typed: `... `,
/// `dquote> `.
const PROMPT_CHARACTERS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_stripped_echo(output: &str, typed: &str, expected: &str) {
        assert_eq!(strip_echo(output, typed), expected);
    }

    #[test]
    fn echo_of_a_typed_line_is_removed() {
        check_stripped_echo("print('hello')\nhello\n>>> ", "print('hello')\n", "hello\n>>> ");
        check_stripped_echo("print(1)\n1\n>>> ", "print(1)\r\n", "1\n>>> ");
        check_stripped_echo("x = 1 \n>>> ", "x = 1\n", ">>> ");
    }

    #[test]
    fn echo_of_later_lines_after_prompts_is_removed() {
        let shown = "for i in range(2):\n...     print(i)\n... \n0\n1\n>>> ";
        check_stripped_echo(shown, "for i in range(2):\n    print(i)\n\n", "0\n1\n>>> ");
    }

    #[test]
    fn program_output_is_not_removed_as_echo() {
        check_stripped_echo("hello\n>>> ", "print('hello')\n", "hello\n>>> ");
        check_stripped_echo("yes\n", "y", "yes\n");
        check_stripped_echo("y", "y", "y");
        check_stripped_echo("", "x\n", "");
        check_stripped_echo("\nnext question: ", "\n", "next question: ");
        check_stripped_echo("a\nb\n", "a\nnot b at all\n", "b\n");
    }
}
