//! What is new of a session's output: shown as far as there is room, and where the rest of it is.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use crate::cut::{self, Ends};
use crate::echo;
use crate::keep::{self, HowMuch};
use crate::session::{Live, Session};
use crate::transcript::{FileFacts, Kept, New};

/// What is told of an output.
struct Told {
    text: String,
    /// The part of the text of the session that is new and not shown.
    left: Option<Left>,
    /// Bytes of a screen that are not shown.
    screen_bytes: u64,
}

/// What is left out.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    /// Its first byte, counted from the session's beginning.
    from: u64,
    to: u64,
    lines: u64,
    /// Bytes and line ends of all that is new.
    new: (u64, u64),
}

/// Adds what is new, marks it as told, and returns what is shown of it.
pub async fn tell(
    cx: &Reporter,
    session: &Session,
    answer: &mut Map<String, Value>,
    key: &str,
) -> String {
    let told = {
        let mut live = session.live();
        let told = take(&mut live);
        if live.screen.is_drawn() {
            let cursor = live.screen.cursor();
            answer.insert("full_screen".to_owned(), true.into());
            let (row, column) = (cursor.row + 1, cursor.column + 1);
            answer.insert("cursor".to_owned(), json!({ "row": row, "column": column }));
        }
        if told.left.is_some() {
            live.screen.release_memory();
        }
        told
    };
    answer.insert(key.to_owned(), told.text.clone().into());
    let mut messages = Vec::new();
    if told.screen_bytes > 0 {
        messages
            .push(format!("{} bytes in the middle of the screen are left out", told.screen_bytes));
    }
    if let Some(left) = told.left {
        keep::write(session, cx, HowMuch::All).await;
        let (file, lost) = {
            let transcript = &session.live().transcript;
            (transcript.file(), transcript.lost(left.from, left.to))
        };
        messages.push(message(&left, &file, lost));
        let (from, bytes, lines) = (left.from, left.to - left.from, left.lines);
        answer
            .insert("left_out".to_owned(), json!({ "from": from, "bytes": bytes, "lines": lines }));
        if let Some(path) = file.path {
            answer.insert("output_file".to_owned(), path.into());
        }
    }
    if !messages.is_empty() {
        answer.insert("truncated".to_owned(), true.into());
        answer.insert("truncation_message".to_owned(), messages.join("; ").into());
    }
    told.text
}

/// Gives a part of what was told before, from a byte on, as far as there is room.
///
/// # Errors
/// `invalid_arguments` behind its end; what keeps the file from being read.
pub async fn again(cx: &Reporter, session: &Session, from: u64) -> Result<Map<String, Value>> {
    let (kept, end, is_alive, room) = {
        let mut live = session.live();
        live.used = std::time::Instant::now();
        let transcript = &live.transcript;
        let (end, room) = (transcript.end().bytes, transcript.text_bytes_max());
        (transcript.kept(from), end, live.end.is_none(), room)
    };
    let (begin, text) = match kept {
        Kept::InFile { path, to } => keep::read(cx, &path, from, to).await?,
        Kept::InMemory { from, text } => (from, text),
        Kept::Nowhere => {
            let text = format!("shell_read: `from` is {from}, and {end} bytes were told so far");
            return Err(Error::new(ErrorKind::InvalidArguments, text)
                .with_hint("shell_read without `from` gives what is new"));
        }
    };
    let page = cut::page(&text, room);
    let next = begin + page.len() as u64;
    let mut answer = Map::new();
    answer.insert("output".to_owned(), page.into());
    answer.insert("from".to_owned(), begin.into());
    if next < end {
        answer.insert("next_from".to_owned(), next.into());
    }
    if begin > from {
        answer.insert("bytes_lost".to_owned(), (begin - from).into());
    }
    answer.insert("is_alive".to_owned(), is_alive.into());
    Ok(answer)
}

/// Takes what is new out of what is live.
fn take(live: &mut Live) -> Told {
    let room = live.transcript.text_bytes_max();
    if live.screen.is_full_screen() {
        // What stands below it is told when it is gone.
        live.mark_told();
        return screen(live, None);
    }
    if live.screen.is_drawn() {
        let above = live.screen.unseen_above();
        live.transcript.push(&above);
        let new = live.transcript.tell(room);
        live.mark_told();
        let left = (new.to != new.from).then(|| Left {
            from: new.from.bytes,
            to: new.to.bytes,
            lines: new.to.lines - new.from.lines,
            new: counts(&new),
        });
        return screen(live, left);
    }
    let unseen = live.screen.unseen();
    live.transcript.push(&unseen);
    let new = live.transcript.tell(room);
    live.mark_told();
    let told = shown(&new, &live.typed, room);
    if new.to != new.from {
        live.typed.clear();
    }
    told
}

fn screen(live: &Live, left: Option<Left>) -> Told {
    let whole = live.screen.lines().join("\n");
    let room = live.transcript.text_bytes_max();
    if cut::fits(&whole, room) {
        return Told { text: whole, left, screen_bytes: 0 };
    }
    let ends = Ends::of(&whole, room, |rest| rest);
    let bytes = (whole.len() - ends.head.len() - ends.tail.len()) as u64;
    let lines = line_ends(&whole) - line_ends(ends.head) - line_ends(ends.tail);
    Told { text: ends.joined(bytes, lines), left, screen_bytes: bytes }
}

/// Shows what is new without the echo of what was typed; of much both ends.
fn shown(new: &New, typed: &str, room: usize) -> Told {
    let text = echo::without(&new.head, typed);
    if new.tail.is_empty() && cut::fits(text, room) {
        return Told { text: text.to_owned(), left: None, screen_bytes: 0 };
    }
    let rest = |rest| if new.tail.is_empty() { rest } else { new.tail.as_str() };
    let ends = Ends::of(text, room, rest);
    let before = new.head.len() - text.len() + ends.head.len();
    let from = new.from.bytes + before as u64;
    let to = new.to.bytes - ends.tail.len() as u64;
    let lines_told = line_ends(&new.head[..before]) + line_ends(ends.tail);
    let lines = new.to.lines - new.from.lines - lines_told;
    let text = ends.joined(to - from, lines);
    Told { text, left: Some(Left { from, to, lines, new: counts(new) }), screen_bytes: 0 }
}

fn counts(new: &New) -> (u64, u64) {
    (new.to.bytes - new.from.bytes, new.to.lines - new.from.lines)
}

fn line_ends(text: &str) -> u64 {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64
}

/// Says how much is left out, and where it is.
fn message(left: &Left, file: &FileFacts, lost: u64) -> String {
    let Left { from, to, lines, new: (bytes, line_ends) } = left;
    let what = format!(
        "the new output has {bytes} bytes with {line_ends} line ends; {} bytes with {lines} line ends of it are left \
         out here",
        to - from
    );
    let read = format!("shell_read with `from` {from} gives them");
    let why = file.why.as_deref().unwrap_or("it was not written");
    let in_file = match file {
        FileFacts { path: Some(_), bytes, .. } if bytes >= to => {
            return format!("{what}. {read}, and output_file has all that this session has shown");
        }
        FileFacts { path: Some(_), bytes, .. } => format!(
            "output_file has only the first {bytes} bytes that this session has shown: {why}"
        ),
        FileFacts { path: None, .. } => format!("no file has them: {why}"),
    };
    if lost == 0 {
        return format!("{what}. {read}; {in_file}");
    }
    format!(
        "{what}, and {lost} bytes of these are kept nowhere. {read} as far as they are kept; {in_file}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Unseen;
    use crate::transcript::Transcript;

    fn new_of(transcript: &mut Transcript, text: &str) -> New {
        transcript.push(&Unseen { text: text.to_owned(), continues: true });
        transcript.tell(transcript.text_bytes_max())
    }

    #[test]
    fn what_is_left_out_is_counted_from_the_sessions_beginning_and_the_echo_is_not() {
        let mut transcript = Transcript::default();
        new_of(&mut transcript, "$ ");
        for lines in [4000, 100_000] {
            let text: String = (1..=lines).map(|number| format!("{number}\n")).collect();
            let all = format!("seq 1 {lines}\n{text}$ ");
            let before = transcript.end();
            let new = new_of(&mut transcript, &all);
            let told = shown(&new, &format!("seq 1 {lines}\n"), cut::text_bytes_max(None));
            assert!(told.text.starts_with("1\n2\n3\n"), "{:.40}", told.text);
            assert!(told.text.ends_with(&format!("\n{lines}\n$ ")));
            let left = told.left.unwrap();
            let (head, rest) = told.text.split_once("[… ").unwrap();
            let tail = rest.split_once("…]\n").unwrap().1;
            let (from, to) =
                ((left.from - before.bytes) as usize, (left.to - before.bytes) as usize);
            assert!(all[..from].ends_with(head) && &all[to..] == tail, "{left:?}");
            assert_eq!(left.lines, line_ends(&all[from..to]));
            assert_eq!(left.new, (all.len() as u64, lines + 1));
        }
    }

    #[test]
    fn a_short_output_is_shown_as_it_is() {
        let mut transcript = Transcript::default();
        let told = shown(&new_of(&mut transcript, "x\none\n"), "x\n", 1000);
        assert_eq!((told.text.as_str(), told.left, told.screen_bytes), ("one\n", None, 0));
    }

    #[test]
    fn a_result_shows_as_much_as_the_person_lets_it() {
        let text: String = (0..100_000).map(|number| format!("{number}\n")).collect();
        for room in [342, 12 * 1024, 200 * 1024] {
            let mut transcript = Transcript::of_results(room);
            let told = shown(&new_of(&mut transcript, &text), "", room);
            assert!(told.text.starts_with("0\n1\n") && told.text.ends_with("\n99999\n"));
            let bytes = json!(told.text).to_string().len();
            assert!((room - 100..=room).contains(&bytes), "{bytes} of {room}");
        }
    }

    #[track_caller]
    fn check_message(file: FileFacts, lost: u64, expected: &str) {
        let left = Left { from: 100, to: 900, lines: 80, new: (1000, 99) };
        let message = message(&left, &file, lost);
        let what = "the new output has 1000 bytes with 99 line ends; 800 bytes with 80 line ends of it are left out here";
        assert_eq!(message, format!("{what}{expected}"));
    }

    #[test]
    fn a_model_is_told_where_the_rest_is_and_what_is_kept_nowhere() {
        let (path, why) = (Some("/f".to_owned()), Some("it is full".to_owned()));
        check_message(
            FileFacts { path: path.clone(), bytes: 900, why: None },
            0,
            ". shell_read with `from` 100 gives them, and output_file has all that this session has shown",
        );
        check_message(
            FileFacts { path: path.clone(), bytes: 500, why: why.clone() },
            0,
            ". shell_read with `from` 100 gives them; output_file has only the first 500 bytes that this session has \
             shown: it is full",
        );
        check_message(
            FileFacts { path, bytes: 500, why: why.clone() },
            30,
            ", and 30 bytes of these are kept nowhere. shell_read with `from` 100 gives them as far as they are kept; \
             output_file has only the first 500 bytes that this session has shown: it is full",
        );
        check_message(
            FileFacts { path: None, bytes: 0, why },
            0,
            ". shell_read with `from` 100 gives them; no file has them: it is full",
        );
    }
}
