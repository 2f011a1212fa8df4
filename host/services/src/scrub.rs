//! Removes a secret from a server's answer, however the answer is split into pieces.
//!
//! Servers repeat a key that they reject, and their texts end up in errors, events and logs. The
//! bytes of a failure are cleaned as they arrive. Every error is cleaned again after the plugin has
//! created it, because only then are escapes decoded, and a server may also report an error in an
//! answer that began well.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use memchr::memmem;

/// How much of a file is searched at a time, in bytes.
const WINDOW_BYTES: usize = 256 * 1024;

/// Replaces a secret.
const MASK: &[u8] = b"********";

/// Shortest secret to search for. Placeholders for servers without keys (`ollama`, `none`) are
/// shorter, and removing them would damage other words.
const SECRET_BYTES_MIN: usize = 16;

/// Longest number of an HTML entity, with its semicolon: `x002d;`.
const ENTITY_BYTES_MAX: usize = 8;

/// Replaces one secret in a text that arrives in pieces.
#[derive(Clone)]
pub struct SecretScrubber {
    secret: Vec<u8>,
    /// The end of the received text, if it may be the beginning of the secret.
    held: Vec<u8>,
}

impl SecretScrubber {
    /// Creates a scrubber, or `None` if the secret is too short.
    pub fn for_secret(secret: &str) -> Option<Self> {
        (secret.len() >= SECRET_BYTES_MIN)
            .then(|| Self { secret: secret.as_bytes().to_vec(), held: Vec::new() })
    }

    /// Removes the secret from a whole text in any spelling: in upper or lower case,
    /// percent-encoded, or with JSON or HTML escapes. Also removes a prefix of at least half the
    /// secret, because texts get truncated.
    pub fn mask_secrets(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (found, spelled) = self.matching_prefix(rest);
            if 2 * found >= self.secret.len() {
                shown.push_str(&String::from_utf8_lossy(MASK));
                rest = &rest[spelled..];
            } else {
                shown.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        shown
    }

    /// Returns how many bytes of the secret a text begins with, and how many bytes spell them.
    fn matching_prefix(&self, text: &str) -> (usize, usize) {
        let mut spelled = 0;
        for (found, byte) in self.secret.iter().enumerate() {
            match spelling_length(*byte, &text.as_bytes()[spelled..]) {
                Some(length) => spelled += length,
                None => return (found, spelled),
            }
        }
        (self.secret.len(), spelled)
    }

    /// Overwrites the secret in a file that may still grow, from an offset on, by `*`.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn mask_in_file(&self, file: &File, from: u64) -> io::Result<()> {
        let finder = memmem::Finder::new(&self.secret);
        let overlap = self.secret.len() - 1;
        // The beginning may have been written before.
        let mut at = from.saturating_sub(overlap as u64);
        let mut window = vec![0; WINDOW_BYTES + overlap];
        loop {
            let read = read_at(file, &mut window, at)?;
            for found in finder.find_iter(&window[..read]) {
                file.write_all_at(&vec![b'*'; self.secret.len()], at + found as u64)?;
            }
            if read < window.len() {
                return Ok(());
            }
            at += WINDOW_BYTES as u64;
        }
    }

    /// Adds a piece, and returns the cleaned text that is complete so far.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let mut shown = Vec::with_capacity(self.held.len());
        let mut rest = self.held.as_slice();
        while !rest.is_empty() {
            if rest.starts_with(&self.secret) {
                shown.extend_from_slice(MASK);
                rest = &rest[self.secret.len()..];
            } else if self.secret.starts_with(rest) {
                break;
            } else {
                shown.push(rest[0]);
                rest = &rest[1..];
            }
        }
        self.held = rest.to_vec();
        shown
    }

    /// Returns the text that was held back.
    pub fn finish(self) -> Vec<u8> {
        self.held
    }
}

/// Reads as much as there is, up to the length of the buffer.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Returns the length of a spelling of this byte at the start of a text.
fn spelling_length(byte: u8, text: &[u8]) -> Option<usize> {
    let is_it = |code: u32| u8::try_from(code).is_ok_and(|code| code.eq_ignore_ascii_case(&byte));
    let number = |digits: &[u8], radix| {
        let digits = std::str::from_utf8(digits).ok()?;
        u32::from_str_radix(digits, radix).ok().filter(|code| is_it(*code))
    };
    match text {
        [first, ..] if is_it(u32::from(*first)) => Some(1),
        [b'%', digits @ ..] => number(digits.get(..2)?, 16).map(|_| 3),
        [b'\\', b'u' | b'U', digits @ ..] => number(digits.get(..4)?, 16).map(|_| 6),
        [b'\\', first, ..] if *first == byte => Some(2),
        [b'&', b'#', rest @ ..] => {
            let end = rest.iter().take(ENTITY_BYTES_MAX).position(|byte| *byte == b';')?;
            let digits = &rest[..end];
            let code = match digits {
                [b'x' | b'X', digits @ ..] => number(digits, 16),
                _ => number(digits, 10),
            };
            code.map(|_| end + 3)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-sk-0123456789";

    #[test]
    fn a_secret_is_found_wherever_the_text_is_cut() {
        let text = format!("key sk-{SECRET}{SECRET}, not sk-sk-012345678x nor sk-");
        let clean = "key sk-****************, not sk-sk-012345678x nor sk-";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut scrubber = SecretScrubber::for_secret(SECRET).unwrap();
                let mut shown = scrubber.push(&text.as_bytes()[..first]);
                shown.extend(scrubber.push(&text.as_bytes()[first..second]));
                shown.extend(scrubber.push(&text.as_bytes()[second..]));
                shown.extend(scrubber.finish());
                assert_eq!(String::from_utf8(shown).unwrap(), clean, "{first} {second}");
            }
        }
        // In a complete text, most of the secret is as bad as all of it.
        let cleaned = "key sk-****************, not ********x nor sk-";
        assert_eq!(SecretScrubber::for_secret(SECRET).unwrap().mask_secrets(&text), cleaned);
    }

    #[test]
    fn a_secret_is_found_in_every_spelling() {
        let scrubber = SecretScrubber::for_secret(SECRET).unwrap();
        let escaped: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let encoded: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let entities: String =
            SECRET.bytes().map(|byte| format!("&#{byte};&#x{byte:X};")).collect();
        let entities = entities.split_inclusive(';').step_by(2).collect::<String>();
        for spelled in [
            SECRET.to_owned(),
            SECRET.to_uppercase(),
            SECRET.replace('-', "%2D"),
            SECRET.replace('-', "\\-"),
            SECRET.replace('-', "&#x2d;"),
            escaped.to_uppercase(),
            escaped,
            encoded,
            entities,
        ] {
            let cleaned = scrubber.mask_secrets(&format!("é {spelled}, {spelled}"));
            assert_eq!(cleaned, "é ********, ********", "{spelled}");
        }
    }

    #[test]
    fn half_a_secret_is_taken_out_and_less_is_not() {
        let scrubber = SecretScrubber::for_secret(SECRET).unwrap();
        assert_eq!(scrubber.mask_secrets(&format!("{}…", &SECRET[..8])), "********…");
        assert_eq!(scrubber.mask_secrets(&SECRET[..7]), SECRET[..7]);
    }

    #[test]
    fn escapes_of_something_else_are_left_alone() {
        let scrubber = SecretScrubber::for_secret(SECRET).unwrap();
        for text in
            ["%", "%7", "\\u00", "&#;", "&#xzz;", "%73k%", "\\", "50 % off", "漢字 &#99999;"]
        {
            assert_eq!(scrubber.mask_secrets(text), text);
        }
    }

    #[test]
    fn keys_shorter_than_the_minimum_are_not_masked() {
        assert!(SecretScrubber::for_secret("ollama").is_none());
        assert!(SecretScrubber::for_secret(&SECRET[1..]).is_none());
    }
}
