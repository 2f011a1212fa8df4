//! The running calls: the label of each on the screen, and how much of its output is shown.
//!
//! On a terminal, the user sees the first lines as they arrive and the last lines when the call
//! ends. The lines between them are counted. A line is shown when it is complete. Until then it is
//! in the spinner's row, where a program may restart it as often as it likes. Elsewhere all output
//! is shown as it arrives, and a restarted line is shown in its last state. A background task has
//! no spinner, so its first lines are shown as they arrive, too.

use std::collections::VecDeque;

use jaato_runtime::types::{CallId, PluginName};

use super::result::counted;
use crate::terminal::exact_line;

/// Lines of a call that are shown as they arrive.
const FIRST_LINES_MAX: usize = 12;
/// Lines that are shown when the call ends.
const LAST_LINES_MAX: usize = 8;
/// Limit on the bytes of a line. The rest of a longer line is not shown.
const LINE_BYTES_MAX: usize = 4096;
/// The same if lines are folded. This is a few rows.
const FOLDED_LINE_BYTES_MAX: usize = 400;
/// Columns of the call's name in the spinner's row.
const WHAT_COLUMNS: usize = 30;
/// Limit on the calls that are tracked. The output of further calls is shown under their plugin's
/// label.
const CALLS_MAX: usize = 1000;

/// The running calls.
#[derive(Debug)]
pub struct Calls {
    running: Vec<Running>,
    is_folded: bool,
}

#[derive(Debug)]
struct Running {
    id: CallId,
    /// The plugin.
    source: String,
    /// The command or the tool.
    what: String,
    /// The number of the call among its plugin's running calls.
    number: usize,
    /// Whether the call continues in the background after it has its result.
    is_task: bool,
    output: Fold,
}

/// The output of a call and how much of it is shown.
#[derive(Debug, Default)]
struct Fold {
    first_lines: usize,
    /// The latest lines after the first ones, without their line ends.
    last: VecDeque<String>,
    left_out: usize,
    /// The last line, which is incomplete.
    open: Open,
    is_anything: bool,
    effect: ShownEffect,
}

/// How much of a call's effect the user has seen in rows other than its result.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShownEffect {
    #[default]
    Nothing,
    /// A change of a file.
    Change,
    /// All of it: a drawn plan, or the user's own answers to a form.
    Whole,
}

/// An incomplete line. A program may still restart it, as progress bars do.
#[derive(Debug, Default)]
struct Open {
    /// The part that is not shown yet.
    text: String,
    /// Whether a part of the line is shown.
    is_shown: bool,
    /// Characters that exceeded the limit.
    cut: usize,
    /// Whether the last character was `\r`. The next text ends the line or replaces it.
    is_at_return: bool,
    /// Whether the line was restarted.
    is_anew: bool,
}

/// How the output of a call ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Whether there was any output.
    pub has_shown: bool,
    /// How much of the call's effect other rows have shown.
    pub effect: ShownEffect,
    /// The output that was held back and must be shown now.
    pub rest: String,
}

impl Calls {
    /// Starts without a call. If `is_folded`, only the first and last lines are shown.
    pub fn new(is_folded: bool) -> Self {
        Self { running: Vec::new(), is_folded }
    }

    /// Records that a call begins. `what` is its command or its tool.
    pub fn begin(&mut self, id: &CallId, source: &str, what: &str) {
        if self.running.len() >= CALLS_MAX {
            return;
        }
        let numbers = self.running.iter().filter(|it| it.source == source).map(|it| it.number);
        let number = numbers.max().map_or(1, |most| most + 1);
        let (source, what) = (source.to_owned(), exact_line(what.trim(), WHAT_COLUMNS));
        let (id, output) = (id.clone(), Fold::default());
        self.running.push(Running { id, source, what, number, is_task: false, output });
    }

    /// Returns the label of a call: its plugin, and a number if other calls of the plugin run.
    pub fn label(&self, id: &CallId, source: &str) -> String {
        match self.find(id).filter(|running| running.number > 1) {
            Some(running) => format!("{source} {}", running.number),
            None => source.to_owned(),
        }
    }

    /// Takes a piece of a call's output. Returns the part to show now.
    pub fn output(&mut self, id: &CallId, text: &str) -> String {
        match self.running.iter_mut().find(|running| running.id == *id) {
            Some(running) => running.output.piece(text, self.is_folded, running.is_task),
            None => text.to_owned(),
        }
    }

    /// Records that other rows have shown a call's effect.
    pub fn has_shown(&mut self, id: &CallId, effect: ShownEffect) {
        if let Some(running) = self.running.iter_mut().find(|running| running.id == *id) {
            running.output.effect = running.output.effect.max(effect);
        }
    }

    /// Records that the user answered a plugin's form. If several calls of the plugin run, it is
    /// not known which one asked.
    pub fn form_answered(&mut self, plugin: &PluginName) {
        let sources = [plugin.as_str(), plugin.source()];
        let is_of = |call: &&mut Running| !call.is_task && sources.contains(&call.source.as_str());
        let mut calls = self.running.iter_mut().filter(is_of);
        if let (Some(running), None) = (calls.next(), calls.next()) {
            running.output.effect = ShownEffect::Whole;
        }
    }

    /// Records that a call continues in the background. From this point, its output does not wait
    /// for line ends. Returns the part of its last line to show now.
    pub fn is_task(&mut self, id: &CallId) -> String {
        let Some(running) = self.running.iter_mut().find(|running| running.id == *id) else {
            return String::new();
        };
        running.is_task = true;
        running.output.open_line()
    }

    /// Returns true if a call runs in the background.
    pub fn is_in_background(&self, id: &CallId) -> bool {
        self.find(id).is_some_and(|running| running.is_task)
    }

    /// Records that a call has its result. A call that continues in the background has not ended.
    pub fn end_call(&mut self, id: &CallId) -> Ended {
        if self.is_in_background(id) {
            return Ended::default();
        }
        self.end(id)
    }

    /// Records that a call has ended.
    pub fn end(&mut self, id: &CallId) -> Ended {
        match self.running.iter().position(|running| running.id == *id) {
            Some(at) => self.running.remove(at).output.end(),
            None => Ended::default(),
        }
    }

    /// Describes the running calls for the spinner. Returns `None` if only background tasks run.
    pub fn told(&self) -> Option<String> {
        let mut waited_for = self.running.iter().filter(|running| !running.is_task);
        let first = waited_for.next()?;
        let others: Vec<_> = waited_for.collect();
        if !others.is_empty() {
            let lines =
                others.iter().rev().chain([&first]).map(|call| call.output.open.text.trim());
            let line = lines.filter(|line| !line.is_empty()).map(|line| format!(": {line}")).next();
            return Some(format!("running {} calls{}", others.len() + 1, line.unwrap_or_default()));
        }
        let lines = first.output.lines();
        let so_far = if lines > FIRST_LINES_MAX {
            format!(", {}", counted(lines, "line"))
        } else {
            String::new()
        };
        let open = first.output.open.text.trim();
        let open = if open.is_empty() { String::new() } else { format!(": {open}") };
        Some(format!("running {}{so_far}{open}", first.what))
    }

    fn find(&self, id: &CallId) -> Option<&Running> {
        self.running.iter().find(|running| running.id == *id)
    }
}

impl Fold {
    fn piece(&mut self, text: &str, is_folded: bool, is_task: bool) -> String {
        self.is_anything |= !text.is_empty();
        let mut shown = String::new();
        for piece in text.split_inclusive(['\n', '\r']) {
            let line = piece.trim_end_matches(['\n', '\r']);
            let has_room = !is_folded || self.first_lines < FIRST_LINES_MAX;
            let waits = is_folded && !(is_task && has_room);
            if waits || self.open.is_anew || self.open.is_at_return {
                let max = if is_folded { FOLDED_LINE_BYTES_MAX } else { LINE_BYTES_MAX };
                self.open.push(line, max);
            } else {
                shown.push_str(line);
                self.open.is_shown |= !line.is_empty();
            }
            if piece.ends_with('\r') {
                self.open.is_at_return = true;
            } else if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.open).end();
                if has_room {
                    self.first_lines += 1;
                    shown.push_str(&line);
                    shown.push('\n');
                } else {
                    self.last.push_back(line);
                }
            }
            if self.last.len() > LAST_LINES_MAX {
                self.last.pop_front();
                self.left_out += 1;
            }
        }
        shown
    }

    /// Takes the held part of the last line, if it may be shown before the line ends.
    fn open_line(&mut self) -> String {
        if self.first_lines >= FIRST_LINES_MAX || self.open.is_anew || self.open.is_at_return {
            return String::new();
        }
        self.open.is_shown |= !self.open.text.is_empty();
        let cut = cut_note(std::mem::take(&mut self.open.cut));
        std::mem::take(&mut self.open.text) + &cut
    }

    fn lines(&self) -> usize {
        self.first_lines + self.last.len() + self.left_out
    }

    fn end(mut self) -> Ended {
        if !self.open.text.is_empty() {
            self.last.push_back(self.open.end());
        }
        if self.last.len() > LAST_LINES_MAX {
            self.last.pop_front();
            self.left_out += 1;
        }
        let mut rest = match self.left_out {
            0 => String::new(),
            count => format!("… {} …\n", counted(count, "line")),
        };
        for line in self.last {
            rest.push_str(&line);
            rest.push('\n');
        }
        Ended { has_shown: self.is_anything, effect: self.effect, rest }
    }
}

impl Open {
    fn push(&mut self, piece: &str, bytes_max: usize) {
        if piece.is_empty() {
            return;
        }
        if self.is_at_return {
            *self = Self { is_shown: self.is_shown, is_anew: true, ..Self::default() };
        }
        let room = if self.cut == 0 { bytes_max.saturating_sub(self.text.len()) } else { 0 };
        let (fits, rest) = piece.split_at(piece.floor_char_boundary(room));
        self.cut += rest.chars().count();
        self.text.push_str(fits);
    }

    /// Returns the text to show when the line ends. The text begins a new row if it differs from
    /// the part that was shown.
    fn end(self) -> String {
        let row = if self.is_shown && self.is_anew { "\n" } else { "" };
        format!("{row}{}{}", self.text, cut_note(self.cut))
    }
}

/// Describes how much of a line is not shown.
fn cut_note(chars: usize) -> String {
    if chars == 0 { String::new() } else { format!(" … {} more", counted(chars, "character")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls_with_begun(ids: &[&str]) -> Calls {
        let mut calls = Calls::new(true);
        for id in ids {
            calls.begin(&CallId::from(*id), "cli", "cli_based_tool");
        }
        calls
    }

    #[test]
    fn calls_of_one_plugin_are_told_apart() {
        let mut calls = calls_with_begun(&["a", "b"]);
        let label = |calls: &Calls, id: &str| calls.label(&CallId::from(id), "cli");
        assert_eq!([label(&calls, "a"), label(&calls, "b")], ["cli", "cli 2"]);
        assert_eq!(calls.told().as_deref(), Some("running 2 calls"));
        calls.output(&"a".into(), "10 %");
        assert_eq!(calls.told().as_deref(), Some("running 2 calls: 10 %"));
        calls.end_call(&"a".into());
        assert_eq!(label(&calls, "b"), "cli 2", "a name stays");
        assert_eq!(calls.told().as_deref(), Some("running cli_based_tool"));
        calls.end_call(&"b".into());
        assert_eq!((calls.told(), label(&calls, "b")), (None, "cli".to_owned()));
    }

    #[test]
    fn first_and_last_lines_are_shown_and_the_rest_is_counted() {
        let mut calls = calls_with_begun(&["a"]);
        let id = CallId::from("a");
        let all: Vec<String> = (1..=100).map(|line| format!("{line}\n")).collect();
        let shown: String = all.iter().map(|line| calls.output(&id, line)).collect();
        assert_eq!(shown, all[..12].concat());
        assert_eq!(calls.told().as_deref(), Some("running cli_based_tool, 100 lines"));
        let rest = format!("… 80 lines …\n{}", all[92..].concat());
        let effect = ShownEffect::Nothing;
        assert_eq!(calls.end_call(&id), Ended { has_shown: true, effect, rest });
    }

    #[test]
    fn what_is_a_little_longer_is_shown_whole() {
        let mut calls = calls_with_begun(&["a"]);
        let id = CallId::from("a");
        let shown = calls.output(&id, &"line\n".repeat(20));
        let Ended { rest, .. } = calls.end_call(&id);
        assert_eq!(shown + &rest, "line\n".repeat(20));
        assert_eq!(calls.end_call(&id), Ended::default());
    }

    #[test]
    fn a_line_that_never_ends_is_bounded() {
        let mut calls = calls_with_begun(&["a"]);
        let id = CallId::from("a");
        calls.output(&id, &"\n".repeat(12));
        for _ in 0..3 {
            assert_eq!(calls.output(&id, &"é".repeat(100)), "");
        }
        let Ended { rest, .. } = calls.end_call(&id);
        assert_eq!(rest, "é".repeat(200) + " … 100 characters more\n");
    }

    #[test]
    fn a_line_that_is_begun_anew_is_shown_once() {
        let mut calls = calls_with_begun(&["a"]);
        let id = CallId::from("a");
        let pieces = ["get it\n 10 %\r 20 %", "\r", " 30 %\r\n", "all of it\r\r\nthere\r"];
        let shown: Vec<String> = pieces.iter().map(|piece| calls.output(&id, piece)).collect();
        assert_eq!(shown, ["get it\n", "", " 30 %\n", "all of it\n"]);
        assert_eq!(calls.told().as_deref(), Some("running cli_based_tool: there"));
        assert_eq!(calls.output(&id, "gone"), "");
        assert_eq!(calls.end_call(&id).rest, "gone\n");
    }

    #[test]
    fn where_nothing_is_folded_all_is_shown_as_it_comes() {
        let mut calls = Calls::new(false);
        let id = CallId::from("a");
        calls.begin(&id, "cli", "cli_based_tool");
        let shown = |calls: &mut Calls, piece: &str| calls.output(&id, piece);
        assert_eq!(shown(&mut calls, &"line\n".repeat(100)), "line\n".repeat(100));
        assert_eq!(shown(&mut calls, "half a "), "half a ");
        assert_eq!(shown(&mut calls, "line\r\n"), "line\n");
        for (piece, expected) in [
            ("\r10 %", ""),
            ("\r20 %", ""),
            ("\n", "20 %\n"),
            ("10 %", "10 %"),
            ("\r20 %\r30 %", ""),
            ("\r\nnext", "\n30 %\nnext"),
            ("\r", ""),
            ("other", ""),
        ] {
            assert_eq!(shown(&mut calls, piece), expected, "{piece:?}");
        }
        let rest = "\nother\n".to_owned();
        let effect = ShownEffect::Nothing;
        assert_eq!(calls.end_call(&id), Ended { has_shown: true, effect, rest });
        calls.begin(&id, "cli", "cli_based_tool");
        let wide = "x".repeat(2 * LINE_BYTES_MAX);
        assert_eq!(calls.output(&id, &wide), wide);
    }

    #[test]
    fn a_task_goes_on() {
        let mut calls = calls_with_begun(&["a"]);
        let id = CallId::from("a");
        assert_eq!(calls.output(&id, "begun: "), "");
        assert_eq!(calls.is_task(&id), "begun: ");
        assert_eq!((calls.end_call(&id), calls.told()), (Ended::default(), None));
        assert_eq!(calls.output(&id, "listening"), "listening");
        assert_eq!(calls.output(&id, "\n10 %\r20 %\r\n"), "\n10 %\n20 %\n");
        assert_eq!(calls.output(&id, "hi\n"), "hi\n");
        assert!(calls.end(&id).has_shown);
    }

    #[test]
    fn answered_form_belongs_to_the_only_running_call_of_its_plugin() {
        let effects = |ids: &[&str], plugin: &str| -> Vec<ShownEffect> {
            let mut calls = calls_with_begun(ids);
            calls.form_answered(&PluginName::from(plugin));
            ids.iter().map(|id| calls.end_call(&CallId::from(*id)).effect).collect()
        };
        let (nothing, whole) = (ShownEffect::Nothing, ShownEffect::Whole);
        assert_eq!(effects(&["a"], "tool-cli"), [whole]);
        assert_eq!(effects(&["a"], "cli"), [whole]);
        assert_eq!(effects(&["a"], "tool-other"), [nothing]);
        assert_eq!(effects(&["a", "b"], "tool-cli"), [nothing, nothing]);
    }
}
