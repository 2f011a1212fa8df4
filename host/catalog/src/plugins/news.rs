//! News about plugins: shown to each session once, soon, and in one line.

use std::collections::{HashSet, VecDeque};

use jaato_types::PluginName;

/// Maximum number of lines kept for silent sessions. The log has all of them.
const NEWS_MAX: usize = 256;

/// Levels of the log.
pub const WARN: u8 = 2;
/// As above.
pub const INFO: u8 = 3;

/// One line about a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginNews {
    /// The plugin, or `None` if its name is unknown.
    pub plugin: Option<PluginName>,
    /// The log level.
    pub level: u8,
    /// The line.
    pub text: String,
}

/// The lines, oldest first, by number.
#[derive(Debug, Default)]
pub struct NewsJournal {
    next: u64,
    lines: VecDeque<(u64, PluginNews)>,
}

/// The lines that a session has seen.
#[derive(Debug, Default)]
pub struct SeenNews {
    /// All lines before this number.
    before: u64,
    /// Some lines after it.
    early: HashSet<u64>,
}

impl PluginNews {
    /// Creates a line. Hints from separate lines are appended to it.
    pub fn new(plugin: Option<&PluginName>, level: u8, text: impl Into<String>) -> Self {
        let text = text.into().replace("\nhint: ", "; ").replace('\n', " ");
        Self { plugin: plugin.cloned(), level, text }
    }
}

impl NewsJournal {
    /// Adds a line.
    pub fn push(&mut self, news: PluginNews) {
        self.lines.push_back((self.next, news));
        self.next += 1;
        while self.lines.len() > NEWS_MAX {
            self.lines.pop_front();
        }
    }

    /// Returns the position for a new listener.
    pub fn current_position(&self) -> SeenNews {
        SeenNews { before: self.next, early: HashSet::new() }
    }

    /// Returns the lines that a session has not seen: all of them, or only those about one plugin.
    pub fn unseen_lines(&self, told: &mut SeenNews, about: Option<&str>) -> Vec<String> {
        let is_meant = |news: &PluginNews| {
            about.is_none_or(|name| news.plugin.as_ref().is_some_and(|it| it.as_str() == name))
        };
        let mut taken = Vec::new();
        for (number, news) in &self.lines {
            if *number >= told.before && is_meant(news) && told.early.insert(*number) {
                taken.push(news.text.clone());
            }
        }
        if about.is_none() {
            *told = self.current_position();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_news(plugin: &str, text: &str) -> PluginNews {
        PluginNews::new(Some(&PluginName::from(plugin)), INFO, text)
    }

    #[test]
    fn news_line_is_shown_once_and_early_if_its_plugin_is_called() {
        let mut journal = NewsJournal::default();
        journal.push(test_news("moon", "before"));
        let mut told = journal.current_position();
        journal.push(test_news("moon", "one\nhint: two"));
        journal.push(test_news("sun", "three"));
        assert_eq!(journal.unseen_lines(&mut told, Some("moon")), ["one; two"]);
        assert!(journal.unseen_lines(&mut told, Some("moon")).is_empty());
        assert_eq!(journal.unseen_lines(&mut told, None), ["three"]);
        journal.push(test_news("moon", "four"));
        assert_eq!(journal.unseen_lines(&mut told, None), ["four"]);
        assert!(journal.unseen_lines(&mut told, None).is_empty());
    }

    #[test]
    fn oldest_news_lines_are_dropped_at_the_limit() {
        let mut journal = NewsJournal::default();
        let mut told = journal.current_position();
        (0..=NEWS_MAX).for_each(|number| journal.push(test_news("moon", &number.to_string())));
        let taken = journal.unseen_lines(&mut told, None);
        assert_eq!((taken.len(), taken[0].as_str()), (NEWS_MAX, "1"));
    }
}
