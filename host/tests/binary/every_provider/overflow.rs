//! Tests a conversation that exceeds the window, with every vendor's error: the gc frees space, and
//! the conversation continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{PROVIDERS, VendorScript, text_turn, unchanged_answer};
use crate::support::{fixtures, library_name};

/// Tokens of the window. Four bytes are one token.
const WINDOW: u64 = 2_500;

/// Number of prompts in the conversation. Two fit into the window, three do not.
const PROMPTS: usize = 5;

#[test]
fn room_is_made_when_a_vendor_says_that_the_conversation_is_too_long() {
    for provider in &PROVIDERS {
        let Some(house) = provider.new_house() else { return };
        let plugins = fixtures::test_house().unwrap().join("plugins");
        house.ship(&plugins.join(library_name("gc_truncate")));
        // The user configured a wrong window, so that the vendor has to report the overflow.
        house.configure_more(&format!("[models.\"{}\"]\ncontext_limit = 100000\n", provider.model));
        let turns = std::iter::repeat_n(text_turn("so be it"), PROMPTS).collect();
        let vendor = (provider.vendor)(VendorScript { turns, window: Some(WINDOW) });
        let refused = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&refused);
        let server = provider.serve(&vendor, move |answered| {
            counting.fetch_add(usize::from(answered.status == 400), Ordering::SeqCst);
            unchanged_answer(answered)
        });
        provider.configure_server(&house, &server);
        let words = ["chat", "--model", provider.model, "--tools", "none", "--system", "Be brief."];
        let line = |number: usize| format!("{number}: {}\n", "word ".repeat(600));
        let input: String = (0..PROMPTS).map(line).collect();
        let output = provider.command(&house, &words).input(&*input).run();
        assert_eq!(output.code, 0, "{}: {output}", provider.name);
        assert_eq!(output.stdout, "so be it\n".repeat(PROMPTS), "{}: {output}", provider.name);
        assert_eq!(vendor.accepted_requests().len(), PROMPTS, "{}: {output}", provider.name);
        assert!(refused.load(Ordering::SeqCst) > 0, "{}: {output}", provider.name);
        let last = vendor.accepted_requests().pop().unwrap().to_string();
        assert!(last.contains("4: word") && !last.contains("0: word"), "{}", provider.name);
    }
}
