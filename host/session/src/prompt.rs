//! Builds the system text, in a fixed order and once per session, so that prefix caches hit.

use jaato_policy::PolicyMode;
use jaato_types::ToolSpec;

use crate::estimate_tokens;

/// The host's own part of the system text. It is short, because even the smallest model reads it.
pub const BUILT_IN_PROMPT: &str = "\
You are an agent on the user's computer. Call a tool when it is needed to get the answer or to \
do the task; otherwise just answer. If a call fails, read its error and correct the call. Never \
invent a result. When the task is done, say briefly what came of it.";

/// The last part of the system text in the mode `plan`.
pub const PLAN_PROMPT: &str = "\
The session is in plan mode: only read-only tools run, other calls are denied. Read what you \
need, write a plan with `createPlan`, then call `startPlan`. If the user agrees, plan mode ends \
and you carry out the plan; if not, improve it.";

/// The parts of the system text besides the built-in one. All of them are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptParts {
    /// The user's own file; the label is its path.
    pub user_file: Option<PromptPart>,
    /// `AGENTS.md` or `CLAUDE.md` of each folder, from the repository's root down to the working
    /// directory; labels are the paths.
    pub agents_files: Vec<PromptPart>,
    /// Instructions of plugins with active tools. Labels are the plugins' names.
    pub plugins: Vec<PromptPart>,
    /// The text of `--system`.
    pub system: Option<String>,
}

/// A piece of the system text and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptPart {
    /// Where it comes from.
    pub label: String,
    /// The text.
    pub text: String,
}

/// The system text of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemPrompt {
    parts: Vec<PromptPart>,
}

impl SystemPrompt {
    /// Orders the parts: built-in, the user's file, `AGENTS.md`, plugins, `--system`. Empty ones
    /// are left out.
    pub fn build(parts: PromptParts) -> Self {
        let PromptParts { user_file, agents_files, plugins, system } = parts;
        let built_in = PromptPart::new("built-in", BUILT_IN_PROMPT);
        let ordered = std::iter::once(built_in)
            .chain(user_file)
            .chain(agents_files)
            .chain(plugins)
            .chain(system.map(|text| PromptPart::new("--system", text)));
        let trimmed = ordered.map(|part| PromptPart::new(part.label, part.text.trim()));
        Self { parts: trimmed.filter(|part| !part.text.is_empty()).collect() }
    }

    /// Adds the mode's part. Only `plan` has one. The parts before it stay the same.
    #[must_use]
    pub fn with_mode_part(mut self, mode: PolicyMode) -> Self {
        self.parts.extend(mode_prompt(mode).map(|text| PromptPart::new("mode plan", text)));
        self
    }

    /// Returns the parts, in order.
    pub fn parts(&self) -> &[PromptPart] {
        &self.parts
    }

    /// Returns the whole text, as it is in every request.
    pub fn text(&self) -> String {
        self.join_parts(None)
    }

    /// Returns the text with the mode's part at its end, as [`Self::with_mode_part`] adds it.
    pub fn text_for_mode(&self, mode: PolicyMode) -> String {
        self.join_parts(mode_prompt(mode))
    }

    fn join_parts(&self, last: Option<&str>) -> String {
        let texts: Vec<&str> =
            self.parts.iter().map(|part| part.text.as_str()).chain(last).collect();
        texts.join("\n\n")
    }

    /// Lists the parts of a request with estimated tokens: the parts of this text, then the tools.
    pub fn token_estimates<'a>(
        &self,
        tools: impl IntoIterator<Item = &'a ToolSpec>,
    ) -> Vec<(String, u64)> {
        let parts = self.parts.iter().map(|part| (part.label.clone(), estimate_tokens(&part.text)));
        let tools = tools.into_iter().map(|tool| {
            let text = format!("{}{}{}", tool.name, tool.description, tool.parameters);
            (format!("tool {}", tool.name), estimate_tokens(&text))
        });
        parts.chain(tools).collect()
    }
}

fn mode_prompt(mode: PolicyMode) -> Option<&'static str> {
    match mode {
        PolicyMode::Plan => Some(PLAN_PROMPT),
        PolicyMode::Ask | PolicyMode::AcceptEdits | PolicyMode::ReadOnly => None,
    }
}

impl PromptPart {
    /// Creates a part.
    pub fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_parts_are_in_fixed_order_and_empty_parts_are_left_out() {
        let prompt = SystemPrompt::build(PromptParts {
            system: Some("last".to_owned()),
            plugins: vec![PromptPart::new("cli", " plugin \n"), PromptPart::new("empty", "\n")],
            agents_files: vec![
                PromptPart::new("/r/AGENTS.md", "root"),
                PromptPart::new("/r/s/AGENTS.md", "sub"),
            ],
            user_file: Some(PromptPart::new("/home/u/prompt.md", "mine")),
        });
        let labels: Vec<&str> = prompt.parts().iter().map(|part| part.label.as_str()).collect();
        let expected =
            ["built-in", "/home/u/prompt.md", "/r/AGENTS.md", "/r/s/AGENTS.md", "cli", "--system"];
        assert_eq!(labels, expected);
        assert!(prompt.text().ends_with("mine\n\nroot\n\nsub\n\nplugin\n\nlast"));
    }

    #[test]
    fn only_plan_mode_adds_a_part_at_the_end_of_the_prompt() {
        let prompt = SystemPrompt::build(PromptParts::default());
        for mode in PolicyMode::ALL {
            let text = prompt.text_for_mode(mode);
            assert_eq!(prompt.clone().with_mode_part(mode).text(), text);
            let more = text.strip_prefix(&prompt.text()).unwrap().trim();
            assert_eq!(more, if mode == PolicyMode::Plan { PLAN_PROMPT } else { "" }, "{mode:?}");
        }
    }

    #[test]
    fn built_in_prompt_has_at_most_100_tokens() {
        assert!(estimate_tokens(BUILT_IN_PROMPT) <= 100, "{}", estimate_tokens(BUILT_IN_PROMPT));
    }
}
