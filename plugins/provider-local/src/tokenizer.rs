//! Converts text to tokens and back, with the vocabulary of a GGUF file.
//!
//! Text from users, tools and files is encoded *plainly*: the name of a control token stays text,
//! so that no file can end a turn.

use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::tokenizer::TokenizerFromGguf;
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use tokenizers::Tokenizer as Encoder;

use crate::gguf::{GgufFile, broken_file_error, first_line};

/// GGUF's token types for ordinary text.
const NORMAL: u32 = 1;
const BYTE: u32 = 6;

/// The vocabulary of one model.
pub struct ModelTokenizer {
    encoder: Encoder,
    /// The bytes of each token, empty for control tokens.
    bytes: Vec<Vec<u8>>,
    /// Tokens that are not text.
    control: Vec<u32>,
    turn_start: u32,
    turn_end: u32,
    end_of_text: Option<u32>,
}

impl ModelTokenizer {
    /// Reads the vocabulary.
    ///
    /// # Errors
    /// Kind `configuration` if it is missing or has no chat turns (`<|im_start|>`, `<|im_end|>`).
    pub fn from_gguf(gguf: &GgufFile) -> Result<Self> {
        let mut encoder = Encoder::from_gguf(&gguf.content)
            .map_err(|error| broken_file_error(gguf.path(), &first_line(&error)))?;
        encoder.set_encode_special_tokens(true);
        let names = token_names(gguf)?;
        let kinds = token_kinds(gguf)?;
        let is_text = |id: usize| kinds.get(id).is_none_or(|&kind| kind == NORMAL || kind == BYTE);
        let alphabet = byte_alphabet();
        let bytes = names.iter().enumerate().map(|(id, name)| {
            if is_text(id) { name_to_bytes(name, &alphabet) } else { Vec::new() }
        });
        let bytes = bytes.collect();
        let ids = 0..names.len();
        let control: Vec<u32> = ids.filter(|&id| !is_text(id)).map(|id| id as u32).collect();
        let find = |name: &str| control.iter().copied().find(|&id| names[id as usize] == name);
        let needed = |name: &str| {
            find(name).ok_or_else(|| {
                broken_file_error(
                    gguf.path(),
                    &format!("its vocabulary has no `{name}`, so it is not a chat model"),
                )
            })
        };
        let (turn_start, turn_end) = (needed("<|im_start|>")?, needed("<|im_end|>")?);
        let end_of_text = find("<|endoftext|>");
        Ok(Self { encoder, bytes, control, turn_start, turn_end, end_of_text })
    }

    /// Returns the number of tokens.
    pub fn vocabulary_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the token that begins a turn.
    pub fn turn_start(&self) -> u32 {
        self.turn_start
    }

    /// Returns the token that ends a turn.
    pub fn turn_end(&self) -> u32 {
        self.turn_end
    }

    /// Returns true if the token ends the model's answer.
    pub fn is_end_token(&self, token: u32) -> bool {
        token == self.turn_end || Some(token) == self.end_of_text
    }

    /// Returns all tokens that are not text, including those that end a turn.
    pub fn control_tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.control.iter().copied()
    }

    /// Returns the bytes of a token, empty for a control token. A character may span several
    /// tokens.
    pub fn token_bytes(&self, token: u32) -> &[u8] {
        self.bytes.get(token as usize).map_or(&[], Vec::as_slice)
    }

    /// Encodes text in which control tokens are only text.
    ///
    /// # Errors
    /// Kind `provider` if the tokenizer fails.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<u32>> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let encoding = self.encoder.encode_fast(text, false).map_err(|error| {
            Error::new(ErrorKind::Provider, format!("the tokenizer failed: {error}"))
        })?;
        Ok(encoding.get_ids().to_vec())
    }
}

fn token_names(gguf: &GgufFile) -> Result<Vec<&String>> {
    let key = "tokenizer.ggml.tokens";
    let names = gguf.metadata_value(key)?.to_vec().and_then(|names| {
        names.iter().map(Value::to_string).collect::<candle_core::Result<Vec<_>>>()
    });
    names.map_err(|error| {
        broken_file_error(gguf.path(), &format!("`{key}`: {}", first_line(&error)))
    })
}

fn token_kinds(gguf: &GgufFile) -> Result<Vec<u32>> {
    let key = "tokenizer.ggml.token_type";
    let kinds = gguf.metadata_value(key)?.to_vec().and_then(|kinds| {
        kinds
            .iter()
            .map(|kind| match kind {
                Value::I32(kind) => Ok(kind.unsigned_abs()),
                other => other.to_u32(),
            })
            .collect::<candle_core::Result<Vec<_>>>()
    });
    kinds.map_err(|error| {
        broken_file_error(gguf.path(), &format!("`{key}`: {}", first_line(&error)))
    })
}

/// Returns the inverse of GPT-2's mapping of bytes to printable characters, indexed by code point.
fn byte_alphabet() -> Vec<Option<u8>> {
    let mut alphabet = vec![None; 324];
    let mut spare = 256;
    for byte in 0..=u8::MAX {
        let printable = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        let code = if printable { usize::from(byte) } else { spare };
        if !printable {
            spare += 1;
        }
        alphabet[code] = Some(byte);
    }
    alphabet
}

fn name_to_bytes(name: &str, alphabet: &[Option<u8>]) -> Vec<u8> {
    let byte = |c: char| alphabet.get(c as usize).copied().flatten();
    // A name with a character outside the alphabet was not mapped, so it is its own text.
    name.chars().map(byte).collect::<Option<Vec<u8>>>().unwrap_or_else(|| name.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_alphabet_contains_every_byte_once() {
        let mut bytes: Vec<u8> = byte_alphabet().into_iter().flatten().collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn token_name_is_decoded_to_its_bytes() {
        let alphabet = byte_alphabet();
        assert_eq!(name_to_bytes("ĠtheĊ", &alphabet), b" the\n");
        assert_eq!(name_to_bytes("Ã¤", &alphabet), "ä".as_bytes());
        assert_eq!(name_to_bytes("漢", &alphabet), "漢".as_bytes());
    }
}
