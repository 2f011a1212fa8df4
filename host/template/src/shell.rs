//! Words of a command line that the user copies.

/// Quotes a text so that a shell reads it as one word. A text that needs no quotes stays unchanged.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+:@%,=".contains(c);
    // A leading `~` or `=` has a special meaning in some shells.
    let starts_plain = !text.starts_with(['~', '=']) && !text.is_empty();
    if starts_plain && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_word_is_read_back_unchanged_by_a_shell() {
        let words = [
            "plain",
            "a/b-c_d.so",
            "",
            "two words",
            "it's",
            r#""so" it said"#,
            "$HOME",
            "`date`",
            "a\nb",
            "~",
            "=ls",
            "*",
            "a;b",
            "a&b",
            "#",
            "!",
            r"back\slash",
            "é",
            "'",
            "''",
            "-n",
        ];
        for word in words {
            let script = format!("printf '<%s>' {}", shell_word(word));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("<{word}>"), "{script}");
        }
        assert_eq!(shell_word("target/release/liba.so"), "target/release/liba.so");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
    }
}
