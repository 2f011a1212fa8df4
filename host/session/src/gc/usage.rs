//! Says what fills the context: the parts of the next request, with their tokens.
//!
//! The total is a provider's count, or the last reported usage plus an estimate of what came since.
//! Each part has its share of the total by its bytes, so the session's own ratio of tokens to bytes
//! corrects every part, and the parts add up.

use std::collections::BTreeMap;

use jaato_types::service::GcFacts;
use jaato_types::{DataContent, Message, Part, PluginName, Role};
use serde_json::json;

use super::json_bytes;
use crate::{Session, introspection};

/// The parts of the system text that are not instructions of plugins. All others are, except files,
/// whose labels are paths.
const SYSTEM_LABELS: [&str; 3] = ["built-in", "--system", "mode plan"];

/// The owner of the host's own tools.
const HOST_TOOLS: &str = "jaato";

/// What fills the context of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextUsage {
    /// `provider/model`.
    pub model: String,
    /// The context window in tokens.
    pub context_limit: u64,
    /// Where the number of tokens comes from.
    pub counted_by: ContextCounter,
    /// The tokens of the next request, without a further message of the user.
    pub total_tokens: u64,
    /// The parts, in the order of the request.
    pub parts: Vec<ContextPart>,
    /// The tokens of pinned turns, which the parts contain, too.
    pub pinned_tokens: u64,
    /// The settings of the gc, if there is one.
    pub gc: Option<GcFacts>,
}

/// The source of a number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextCounter {
    /// The provider counted this request.
    Provider,
    /// The provider's usage of the last request, and an estimate of what came since.
    LastUsage,
    /// A quarter of the bytes.
    Estimate,
}

/// A part of the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextPart {
    /// What it is: `system prompt`, `instructions`, `tools`, `history` or `objects`.
    pub part: &'static str,
    /// Which one: a file, a plugin, a kind of message.
    pub name: String,
    /// Its tokens.
    pub tokens: u64,
}

impl ContextCounter {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::LastUsage => "last usage",
            Self::Estimate => "estimate",
        }
    }
}

impl Session {
    /// Says what fills the context. `counted` is the provider's count of [`Session::next_request`],
    /// which the session then keeps.
    pub fn context_usage(&mut self, counted: Option<u64>) -> ContextUsage {
        let counted_by = match (counted, self.is_count_from_provider()) {
            (Some(tokens), _) => {
                self.record_token_count(tokens);
                ContextCounter::Provider
            }
            (None, true) => ContextCounter::LastUsage,
            (None, false) => ContextCounter::Estimate,
        };
        let total_tokens = self.tokens_in_use();
        let sized = self.part_bytes();
        let all: u64 = sized.iter().map(|(_, _, bytes)| bytes).sum();
        let share = |bytes: u64| {
            let tokens = u128::from(total_tokens) * u128::from(bytes) / u128::from(all.max(1));
            u64::try_from(tokens).unwrap_or(u64::MAX)
        };
        let part = |(part, name, bytes)| ContextPart { part, name, tokens: share(bytes) };
        let facts = self.facts();
        ContextUsage {
            model: facts.model,
            context_limit: self.gc.limit,
            counted_by,
            total_tokens,
            parts: sized.into_iter().map(part).collect(),
            pinned_tokens: share(self.pinned_bytes()),
            gc: facts.gc,
        }
    }

    /// Returns the bytes of each part, without empty ones.
    fn part_bytes(&self) -> Vec<(&'static str, String, u64)> {
        let mut parts = Vec::new();
        let mode = self.shared.rules.lock().mode;
        let system = self.system.clone().with_mode_part(mode);
        for piece in system.parts() {
            let label = piece.label.as_str();
            let is_system = SYSTEM_LABELS.contains(&label) || label.starts_with('/');
            let part = if is_system { "system prompt" } else { "instructions" };
            parts.push((part, piece.label.clone(), json_bytes(&piece.text)));
        }
        let toolbox = self.shared.current_tools();
        let mut by_plugin = BTreeMap::<String, u64>::new();
        for spec in &self.prefix.tools {
            let found = toolbox.find_tool(&spec.name).ok().map(|it| it.tool);
            let plugin: PluginName = introspection::tool_owner(found);
            let name = match plugin.as_str() {
                "" => HOST_TOOLS,
                name => name,
            };
            *by_plugin.entry(name.to_owned()).or_default() += json_bytes(spec);
        }
        parts.extend(by_plugin.into_iter().map(|(name, bytes)| ("tools", name, bytes)));
        let mut history = BTreeMap::<(&'static str, &'static str), u64>::new();
        for message in self.history.messages() {
            for part in &message.parts {
                *history.entry(part_kind(part, message)).or_default() += json_bytes(part);
            }
        }
        parts.extend(
            history.into_iter().map(|((part, name), bytes)| (part, name.to_owned(), bytes)),
        );
        parts.retain(|(_, _, bytes)| *bytes > 0);
        parts
    }

    fn pinned_bytes(&self) -> u64 {
        let pinned = self.pinned_messages();
        let messages = self.history.messages().enumerate();
        messages.filter(|(at, _)| pinned.contains(at)).map(|(_, message)| json_bytes(message)).sum()
    }
}

/// Returns the part to which a piece of a message belongs, and its name. They sort as they are
/// shown.
fn part_kind(part: &Part, message: &Message) -> (&'static str, &'static str) {
    match part {
        Part::ToolResult(_) => ("history", "tool results"),
        Part::Data(data) => match &data.content {
            DataContent::Json { json, .. } if json.get("environment").is_some() => {
                ("objects", "objects of tools")
            }
            DataContent::Json { .. } => ("history", "notes of jaato"),
            _ => ("history", "images and files"),
        },
        Part::Text { .. }
        | Part::ToolCall(_)
        | Part::Thought { .. }
        | Part::Opaque(_)
        | Part::ToolsChanged(_)
        | Part::Unknown(_) => match message.role {
            Role::Model => ("history", "assistant"),
            Role::User | Role::Tool | Role::Unknown => ("history", "user"),
        },
    }
}

impl ContextUsage {
    /// Returns the tokens that are left.
    pub fn free_tokens(&self) -> u64 {
        self.context_limit.saturating_sub(self.total_tokens)
    }

    /// Writes it as JSON. `would_free` is what a gc would free, if that is known.
    pub fn to_json(&self, would_free: Option<u64>) -> serde_json::Value {
        let (provider, model) = self.model.split_once('/').unwrap_or(("", &self.model));
        let part = |part: &ContextPart| json!({ "part": part.part, "name": part.name, "tokens": part.tokens });
        json!({
            "model": model,
            "provider": provider,
            "context_limit": self.context_limit,
            "total_tokens": self.total_tokens,
            "tokens_remaining": self.free_tokens(),
            "percent_used": crate::percent_used(self.total_tokens, self.context_limit),
            "counted_by": self.counted_by.name(),
            "parts": self.parts.iter().map(part).collect::<Vec<_>>(),
            "pinned_tokens": self.pinned_tokens,
            "gc_would_free": would_free,
            "gc": self.gc,
        })
    }
}
