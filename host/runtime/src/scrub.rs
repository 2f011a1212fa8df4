//! Takes a secret out of what a server says, wherever the pieces are cut.
//!
//! Servers repeat a key that they refuse, and their words end up in errors, events and logs.

/// What stands in a secret's place.
const MASK: &[u8] = b"********";

/// Shortest secret that is looked for. What people give to servers that need none (`ollama`, `none`) is
/// shorter, and would be taken out of words that mean something else.
const SECRET_BYTES_MIN: usize = 16;

/// Replaces one secret in a text that comes in pieces.
#[derive(Clone)]
pub struct Scrubber {
    secret: Vec<u8>,
    /// The end of what came, where it may be the beginning of the secret.
    held: Vec<u8>,
}

impl Scrubber {
    /// Makes one; none for a secret that is too short to be one.
    pub fn of(secret: &str) -> Option<Self> {
        (secret.len() >= SECRET_BYTES_MIN)
            .then(|| Self { secret: secret.as_bytes().to_vec(), held: Vec::new() })
    }

    /// Cleans a whole text.
    pub fn clean(&self, text: &str) -> String {
        let secret = String::from_utf8_lossy(&self.secret);
        text.replace(&*secret, &String::from_utf8_lossy(MASK))
    }

    /// Takes a piece, and gives what can be shown of it and of those before.
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

    /// Gives what was held back.
    pub fn finish(self) -> Vec<u8> {
        self.held
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
                let mut scrubber = Scrubber::of(SECRET).unwrap();
                let mut shown = scrubber.push(&text.as_bytes()[..first]);
                shown.extend(scrubber.push(&text.as_bytes()[first..second]));
                shown.extend(scrubber.push(&text.as_bytes()[second..]));
                shown.extend(scrubber.finish());
                assert_eq!(String::from_utf8(shown).unwrap(), clean, "{first} {second}");
            }
        }
        assert_eq!(Scrubber::of(SECRET).unwrap().clean(&text), clean);
    }

    #[test]
    fn what_is_given_to_servers_without_keys_is_left_alone() {
        assert!(Scrubber::of("ollama").is_none());
        assert!(Scrubber::of(&SECRET[1..]).is_none());
    }
}
