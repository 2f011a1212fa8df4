//! The omissions of an import, as sentences for the user.

use std::collections::BTreeMap;

/// The most lines whose numbers a note lists.
const LISTED_LINES_MAX: usize = 20;

/// The most unknown types that the notes list.
const LISTED_TYPES_MAX: usize = 20;

/// A kind of content that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportLoss {
    /// A signature of reasoning or of an answer.
    Signature,
    /// Reasoning that only its provider can read.
    EncryptedReasoning,
    /// A message of a subagent.
    SubagentMessage,
    /// A file with the conversation of a subagent.
    SubagentFile,
    /// Text that the program added for the model.
    AddedContext,
    /// A system prompt.
    SystemPrompt,
    /// A message on another branch.
    OtherBranch,
    /// A part that the program kept from the model.
    KeptFromModel,
    /// A command that the program ran without the model.
    LocalCommand,
    /// A message that the program wrote in the model's name, such as an error.
    ProgramAnswer,
    /// A call that the provider ran itself.
    ProviderCall,
    /// A result without a call.
    UnpairedResult,
    /// A second result of a call.
    SecondResult,
}

/// A kind of change that makes a conversation a valid history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportRepair {
    /// An image or a file.
    Attachment,
    /// A call without a result.
    MissingResult,
    /// A call whose id was taken or empty.
    RenamedCall,
    /// A tool whose name no provider accepts.
    RenamedTool,
    /// A prompt directly after another.
    MergedPrompt,
    /// A prompt without an answer before the next one.
    MissingAnswer,
    /// An answer without a prompt.
    MissingPrompt,
}

/// A noun in singular and plural, and what follows the verb.
type SentenceWords = (&'static str, &'static str, &'static str);

/// Collects what an import could not carry over.
#[derive(Debug, Default)]
pub struct ImportNotes {
    losses: BTreeMap<ImportLoss, u64>,
    repairs: BTreeMap<ImportRepair, u64>,
    unknown_types: BTreeMap<String, u64>,
    /// Records of further unknown types.
    other_unknown: u64,
    /// The first damaged lines.
    damaged_lines: Vec<u64>,
    /// The number of all damaged lines.
    damaged_count: usize,
    sentences: Vec<String>,
}

impl ImportNotes {
    /// Counts a loss.
    pub fn count_loss(&mut self, loss: ImportLoss) {
        self.count_losses(loss, 1);
    }

    /// Counts several losses of a kind.
    pub fn count_losses(&mut self, loss: ImportLoss, count: u64) {
        if count > 0 {
            *self.losses.entry(loss).or_default() += count;
        }
    }

    /// Counts a repair.
    pub fn count_repair(&mut self, repair: ImportRepair) {
        *self.repairs.entry(repair).or_default() += 1;
    }

    /// Counts a record or a part of an unknown type.
    pub fn count_unknown(&mut self, name: &str) {
        let shown = jaato_types::text::truncate_chars(&jaato_types::text::one_line(name), 60);
        // A hostile file could have a type per line.
        if self.unknown_types.len() >= LISTED_TYPES_MAX && !self.unknown_types.contains_key(&shown)
        {
            self.other_unknown += 1;
        } else {
            *self.unknown_types.entry(shown).or_default() += 1;
        }
    }

    /// Reports a damaged line.
    pub fn note_damaged_line(&mut self, line: u64) {
        self.damaged_count += 1;
        if self.damaged_lines.len() < LISTED_LINES_MAX {
            self.damaged_lines.push(line);
        }
    }

    /// Adds a sentence.
    pub fn add_sentence(&mut self, sentence: impl Into<String>) {
        self.sentences.push(sentence.into());
    }

    /// Returns all notes as sentences.
    pub fn into_sentences(self) -> Vec<String> {
        let Self { losses, repairs, unknown_types, mut sentences, .. } = self;
        sentences.extend(damaged_sentence(&self.damaged_lines, self.damaged_count));
        sentences.extend(
            losses.into_iter().map(|(loss, count)| format_sentence(loss.sentence_words(), count)),
        );
        sentences.extend(
            repairs.into_iter().map(|(it, count)| format_sentence(it.sentence_words(), count)),
        );
        for (name, count) in unknown_types {
            let records = count_with_noun(count, "record", "records");
            sentences
                .push(format!("{records} of the unknown type `{name}` could not be imported."));
        }
        if self.other_unknown > 0 {
            let records = count_with_noun(self.other_unknown, "record", "records");
            sentences.push(format!("{records} of other unknown types could not be imported."));
        }
        sentences
    }
}

fn format_sentence((one, many, rest): SentenceWords, count: u64) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{} {verb} {rest}.", count_with_noun(count, one, many))
}

impl ImportLoss {
    /// Returns the noun in singular and plural, and what follows the verb.
    fn sentence_words(self) -> SentenceWords {
        let left_out = "left out";
        match self {
            Self::Signature => (
                "signature",
                "signatures",
                "left out, because only the provider of the model can use such data",
            ),
            Self::EncryptedReasoning => (
                "piece of encrypted reasoning",
                "pieces of encrypted reasoning",
                "left out, because only the provider of the model can read such data",
            ),
            Self::SubagentMessage => ("subagent message", "subagent messages", left_out),
            Self::SubagentFile => ("subagent conversation", "subagent conversations", left_out),
            Self::AddedContext => (
                "text that the program added for the model",
                "texts that the program added for the model",
                left_out,
            ),
            Self::SystemPrompt => ("system prompt", "system prompts", left_out),
            Self::OtherBranch => {
                ("message", "messages", "left out, because the session continued on another branch")
            }
            Self::KeptFromModel => (
                "command that the user ran without showing it to the model",
                "commands that the user ran without showing them to the model",
                left_out,
            ),
            Self::LocalCommand => (
                "command that the program ran without the model",
                "commands that the program ran without the model",
                left_out,
            ),
            Self::ProgramAnswer => (
                "answer that the program wrote itself, such as an error,",
                "answers that the program wrote itself, such as errors,",
                left_out,
            ),
            Self::ProviderCall => (
                "tool call that the provider ran itself",
                "tool calls that the provider ran itself",
                left_out,
            ),
            Self::UnpairedResult => {
                ("tool result without its call", "tool results without their calls", left_out)
            }
            Self::SecondResult => (
                "further result of a tool call that has one",
                "further results of tool calls that have one",
                left_out,
            ),
        }
    }
}

impl ImportRepair {
    /// Returns the noun in singular and plural, and what follows the verb.
    fn sentence_words(self) -> SentenceWords {
        match self {
            Self::Attachment => (
                "image or file",
                "images or files",
                "replaced by a line of text, because attachments are not imported",
            ),
            Self::MissingResult => (
                "tool call without a recorded result",
                "tool calls without a recorded result",
                "given an error as result",
            ),
            Self::RenamedCall => (
                "tool call",
                "tool calls",
                "given a new id, because the recorded id was empty or taken",
            ),
            Self::RenamedTool => {
                ("tool name", "tool names", "changed, because providers refuse the recorded form")
            }
            Self::MergedPrompt => (
                "prompt",
                "prompts",
                "merged with the prompt before, because no answer was recorded between them",
            ),
            Self::MissingAnswer => (
                "missing answer",
                "missing answers",
                "replaced by a line of text, because a prompt needs an answer before the next one",
            ),
            Self::MissingPrompt => (
                "missing prompt",
                "missing prompts",
                "replaced by a line of text, because an answer needs a prompt before it",
            ),
        }
    }
}

fn damaged_sentence(lines: &[u64], count: usize) -> Option<String> {
    let listed: Vec<String> = lines.iter().map(u64::to_string).collect();
    let more = count.saturating_sub(listed.len());
    match lines {
        [] => None,
        [line] => Some(format!("Line {line} is damaged and was left out.")),
        _ if more > 0 => {
            let listed = listed.join(", ");
            Some(format!("Lines {listed} and {more} more are damaged and were left out."))
        }
        _ => Some(format!("Lines {} are damaged and were left out.", listed.join(", "))),
    }
}

fn count_with_noun(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_sentences_with_counts() {
        let mut notes = ImportNotes::default();
        notes.count_loss(ImportLoss::Signature);
        notes.count_repair(ImportRepair::MissingResult);
        notes.count_repair(ImportRepair::MissingResult);
        notes.count_losses(ImportLoss::AddedContext, 0);
        notes.count_unknown("new\nthing");
        notes.note_damaged_line(7);
        assert_eq!(
            notes.into_sentences(),
            [
                "Line 7 is damaged and was left out.",
                "1 signature was left out, because only the provider of the model can use such data.",
                "2 tool calls without a recorded result were given an error as result.",
                "1 record of the unknown type `new thing` could not be imported.",
            ]
        );
    }

    #[test]
    fn long_lists_are_cut_with_their_rest_counted() {
        let mut notes = ImportNotes::default();
        for line in 1..=22 {
            notes.note_damaged_line(line);
            notes.count_unknown(&format!("type {line:02}"));
        }
        let sentences = notes.into_sentences();
        assert!(sentences[0].ends_with("19, 20 and 2 more are damaged and were left out."));
        assert_eq!(sentences.len(), 22);
        assert_eq!(sentences[21], "2 records of other unknown types could not be imported.");
    }
}
