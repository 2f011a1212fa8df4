//! Follows the model through a call, token by token, and determines which tokens may come next.

use std::sync::Arc;

use crate::gguf::first_line;
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv,
};
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;

use super::call::{CallFormat, grammar_for_answer};
use crate::tokenizer::ModelTokenizer;

/// The trie of a model's tokens, which all its grammars share. Building it takes a third of a
/// second.
pub struct CallGrammar {
    factory: ParserFactory,
}

impl CallGrammar {
    /// Builds the trie of a vocabulary.
    ///
    /// # Errors
    /// Kind `provider` if the vocabulary cannot be used.
    pub fn new(tokenizer: &Arc<ModelTokenizer>) -> Result<Self> {
        let environment: TokEnv = Arc::new(GrammarVocabulary::new(Arc::clone(tokenizer)));
        let capabilities = InferenceCapabilities { ff_tokens: true, ..Default::default() };
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&environment, capabilities, &slices)
            .map_err(|error| grammar_error(&error))?;
        factory.quiet();
        Ok(Self { factory })
    }

    /// Starts to follow a call that starts with `begun`.
    ///
    /// # Errors
    /// Kind `provider` if no grammar can be built, not even one that allows any arguments.
    pub fn start_matcher(&self, format: &CallFormat, begun: &str) -> Result<CallMatcher> {
        let strict = self.new_matcher(format.grammar_for_rest(begun, false));
        let mut matcher = match strict.get_error() {
            None => strict,
            // The host checks the arguments anyway. A schema that the grammar does not support must
            // not disable the tool.
            Some(_) => self.new_matcher(format.grammar_for_rest(begun, true)),
        };
        if let Some(error) = matcher.get_error() {
            return Err(Error::new(
                ErrorKind::Provider,
                format!("cannot build a grammar for the tools: {}", first_line(&error)),
            ));
        }
        let forced = matcher.compute_ff_tokens();
        Ok(CallMatcher { matcher, forced })
    }

    /// Starts to follow an answer that is a call, or JSON that matches the schema.
    ///
    /// # Errors
    /// Kind `invalid_arguments` if the schema has no grammar, because the answer could then fail to
    /// match.
    pub fn start_answer_matcher(&self, format: &CallFormat, schema: &Value) -> Result<CallMatcher> {
        let strict = self.new_matcher(grammar_for_answer(format, schema, false));
        let matcher = match strict.get_error() {
            None => strict,
            Some(_) => self.new_matcher(grammar_for_answer(format, schema, true)),
        };
        match matcher.get_error() {
            None => Ok(CallMatcher { matcher, forced: Vec::new() }),
            Some(error) => {
                let error = first_line(&error);
                let text = format!("the local model does not support the answer's schema: {error}");
                Err(Error::new(ErrorKind::InvalidArguments, text))
            }
        }
    }

    /// Returns the reason why these tools have no strict grammar, if there is one.
    pub fn strict_grammar_error(&self, format: &CallFormat) -> Option<String> {
        self.new_matcher(format.grammar_for_rest("", false))
            .get_error()
            .map(|error| first_line(&error))
    }

    fn new_matcher(&self, lark: String) -> Matcher {
        Matcher::new(self.factory.create_parser(TopLevelGrammar::from_lark(lark)))
    }
}

/// The state of a call in progress.
pub struct CallMatcher {
    matcher: Matcher,
    forced: Vec<TokenId>,
}

impl CallMatcher {
    /// Returns the tokens that must come next, and consumes them.
    ///
    /// # Errors
    /// Kind `provider` if the grammar fails.
    pub fn take_forced_tokens(&mut self) -> Result<Vec<u32>> {
        let forced = std::mem::take(&mut self.forced);
        if !forced.is_empty() {
            self.matcher.consume_tokens(&forced).map_err(|error| grammar_error(&error))?;
        }
        Ok(forced)
    }

    /// Returns true if the token may come next.
    ///
    /// # Errors
    /// Kind `provider` if the grammar fails.
    pub fn is_token_allowed(&mut self, token: u32) -> Result<bool> {
        let allowed =
            self.matcher.validate_tokens(&[token]).map_err(|error| grammar_error(&error))?;
        Ok(allowed == 1)
    }

    /// Sets the logits of all tokens that may not come next to minus infinity.
    ///
    /// # Errors
    /// Kind `provider` if the grammar fails.
    pub fn mask_logits(&mut self, logits: &mut [f32]) -> Result<()> {
        let allowed: SimpleVob =
            self.matcher.compute_mask().map_err(|error| grammar_error(&error))?;
        for (token, logit) in logits.iter_mut().enumerate() {
            if token >= allowed.len() || !allowed.is_allowed(token as u32) {
                *logit = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }

    /// Consumes a token.
    ///
    /// # Errors
    /// Kind `provider` if the token may not come next or the grammar fails.
    pub fn consume_token(&mut self, token: u32) -> Result<()> {
        self.matcher.consume_token(token).map_err(|error| grammar_error(&error))?;
        if !self.is_done() {
            self.forced = self.matcher.compute_ff_tokens();
        }
        Ok(())
    }

    /// Returns true if the call is complete.
    pub fn is_done(&self) -> bool {
        self.matcher.is_stopped()
    }
}

fn grammar_error(error: &impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Provider, format!("the grammar failed: {}", first_line(error)))
}

/// The model's tokens as the grammar sees them.
struct GrammarVocabulary {
    tokenizer: Arc<ModelTokenizer>,
    trie: TokTrie,
}

impl GrammarVocabulary {
    fn new(tokenizer: Arc<ModelTokenizer>) -> Self {
        let len = tokenizer.vocabulary_len();
        let mut words: Vec<Vec<u8>> =
            (0..len).map(|token| tokenizer.token_bytes(token as u32).to_vec()).collect();
        for token in tokenizer.control_tokens() {
            // The marker keeps control tokens out of all texts, regardless of their names.
            words[token as usize] =
                [&[TokTrie::SPECIAL_TOKEN_MARKER][..], format!("[{token}]").as_bytes()].concat();
        }
        let trie = TokTrie::from(&TokRxInfo::new(len as u32, tokenizer.turn_end()), &words);
        Self { tokenizer, trie }
    }
}

impl TokenizerEnv for GrammarVocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            // Greedy tokens spell the same bytes, and differ only from the model's habit.
            self.tokenizer
                .encode_plain(text)
                .unwrap_or_else(|_| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }
}
