//! Maps key names to the bytes that a terminal sends for them.
//!
//! `c-c` and similar keys come from `expectrl`'s control codes. Escape sequences follow xterm
//! (<https://invisible-island.net/xterm/ctlseqs/ctlseqs.html>).

use expectrl::ControlCode;

/// The byte of Ctrl-D.
pub const END_OF_TRANSMISSION: &[u8] = b"\x04";

/// Precedes pasted text for a program that requested it.
pub const PASTE_BEGIN: &[u8] = b"\x1b[200~";
/// Follows pasted text.
pub const PASTE_END: &[u8] = b"\x1b[201~";

/// The seed's keys, which are listed first for the model.
pub const CONTROL_KEYS: [&str; 5] = ["c-c", "c-d", "c-z", "c-l", "c-\\"];

/// Named keys, except `c-` and `m-` with a character: the name, the bytes, and the bytes for a
/// program that requested application cursor keys.
const NAMED: [(&str, &str, &str); 31] = [
    ("enter", "\r", "\r"),
    ("tab", "\t", "\t"),
    ("s-tab", "\x1b[Z", "\x1b[Z"),
    ("escape", "\x1b", "\x1b"),
    ("space", " ", " "),
    ("backspace", "\x7f", "\x7f"),
    ("delete", "\x1b[3~", "\x1b[3~"),
    ("insert", "\x1b[2~", "\x1b[2~"),
    ("up", "\x1b[A", "\x1bOA"),
    ("down", "\x1b[B", "\x1bOB"),
    ("right", "\x1b[C", "\x1bOC"),
    ("left", "\x1b[D", "\x1bOD"),
    ("home", "\x1b[H", "\x1bOH"),
    ("end", "\x1b[F", "\x1bOF"),
    ("page-up", "\x1b[5~", "\x1b[5~"),
    ("page-down", "\x1b[6~", "\x1b[6~"),
    ("c-left", "\x1b[1;5D", "\x1b[1;5D"),
    ("c-right", "\x1b[1;5C", "\x1b[1;5C"),
    ("f1", "\x1bOP", "\x1bOP"),
    ("f2", "\x1bOQ", "\x1bOQ"),
    ("f3", "\x1bOR", "\x1bOR"),
    ("f4", "\x1bOS", "\x1bOS"),
    ("f5", "\x1b[15~", "\x1b[15~"),
    ("f6", "\x1b[17~", "\x1b[17~"),
    ("f7", "\x1b[18~", "\x1b[18~"),
    ("f8", "\x1b[19~", "\x1b[19~"),
    ("f9", "\x1b[20~", "\x1b[20~"),
    ("f10", "\x1b[21~", "\x1b[21~"),
    ("f11", "\x1b[23~", "\x1b[23~"),
    ("f12", "\x1b[24~", "\x1b[24~"),
    ("c-space", "\0", "\0"),
];

/// The mode of the cursor keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorKeyMode {
    /// The initial mode.
    Normal,
    /// The mode that a full-screen program may request.
    Application,
}

/// Returns the bytes of a key, or `None` for an unknown name. Case does not matter, and the seed's
/// bare letters (`c` for `c-c`) are accepted.
pub fn key_bytes(name: &str, cursor_keys: CursorKeyMode) -> Option<Vec<u8>> {
    let lower = name.trim().to_ascii_lowercase();
    if let Some((_, normal, application)) = NAMED.iter().find(|named| named.0 == lower) {
        let sent = match cursor_keys {
            CursorKeyMode::Normal => normal,
            CursorKeyMode::Application => application,
        };
        return Some(sent.as_bytes().to_vec());
    }
    if let Some(key) = lower.strip_prefix("m-") {
        let mut sent = vec![0x1b];
        sent.extend(match single_character(key) {
            Some(character) => character.to_string().into_bytes(),
            None => key_bytes(key, cursor_keys)?,
        });
        return Some(sent);
    }
    let control = lower.strip_prefix("c-").or_else(|| {
        // Accepts the bare letters of the original.
        ["c", "d", "z", "l", "\\"].contains(&lower.as_str()).then_some(lower.as_str())
    })?;
    control_code(single_character(control)?)
}

fn single_character(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

fn control_code(key: char) -> Option<Vec<u8>> {
    let name = format!("^{}", key.to_ascii_uppercase());
    let code = ControlCode::try_from(name.as_str()).ok()?;
    let sent: &[u8] = code.as_ref();
    Some(sent.to_vec())
}

/// Lists the known keys for an error to the model.
pub fn known_keys() -> String {
    let named: Vec<_> = NAMED.iter().map(|named| named.0).collect();
    format!(
        "c-a to c-z (such as {}), m- before a key, {}",
        CONTROL_KEYS.join(", "),
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_key_bytes(name: &str, expected: Option<&[u8]>) {
        assert_eq!(key_bytes(name, CursorKeyMode::Normal).as_deref(), expected, "{name}");
    }

    #[test]
    fn original_key_names_send_their_control_codes() {
        check_key_bytes("c-c", Some(b"\x03"));
        check_key_bytes("c-d", Some(END_OF_TRANSMISSION));
        check_key_bytes("c-z", Some(b"\x1a"));
        check_key_bytes("c-l", Some(b"\x0c"));
        check_key_bytes("c-\\", Some(b"\x1c"));
        check_key_bytes("C-C", Some(b"\x03"));
        check_key_bytes("c", Some(b"\x03"));
        check_key_bytes("\\", Some(b"\x1c"));
    }

    #[test]
    fn every_letter_has_its_control_code() {
        for (number, letter) in (1_u8..).zip('a'..='z') {
            check_key_bytes(&format!("c-{letter}"), Some(&[number]));
        }
        check_key_bytes("c-]", Some(b"\x1d"));
        check_key_bytes("c-_", Some(b"\x1f"));
    }

    #[test]
    fn named_keys_and_alt_combinations_send_their_sequences() {
        check_key_bytes("Enter", Some(b"\r"));
        check_key_bytes("up", Some(b"\x1b[A"));
        check_key_bytes("f12", Some(b"\x1b[24~"));
        check_key_bytes("m-x", Some(b"\x1bx"));
        check_key_bytes("m-enter", Some(b"\x1b\r"));
        assert_eq!(key_bytes("up", CursorKeyMode::Application).as_deref(), Some(&b"\x1bOA"[..]));
    }

    #[test]
    fn unknown_key_names_are_rejected() {
        for name in ["bogus", "", "c-", "cc", "c-cc", "c-日", "x", "m-"] {
            check_key_bytes(name, None);
        }
        assert!(known_keys().contains("c-c, c-d, c-z, c-l, c-\\"), "{}", known_keys());
    }
}
