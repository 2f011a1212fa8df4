//! A transcript as Markdown, as a page, and as JSON lines.

use expect_test::{expect, expect_file};
use jaato_sessions::{
    AgentTranscript, ImportSource, Transcript, TranscriptMessage, import_file, to_html,
    to_html_with_blobs, to_json_lines, to_markdown, to_mermaid, to_plantuml, to_sequence_json,
};
use jaato_types::{DataPart, Message, Part, Role, SessionId, ToolCall, ToolResult};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::sample::{PIXEL, content, hostile, sample, transcript};

#[test]
fn markdown_shows_calls_with_their_results_and_hides_opaque_data() {
    let markdown = to_markdown(&sample());
    expect_file!["fixtures/sample.md"].assert_eq(&markdown);
    for hidden in ["secret-signature", "secret-item"] {
        assert!(!markdown.contains(hidden), "{hidden}");
    }
}

/// Lists the texts of the headings of a document that are not in a block.
fn headings(markdown: &str) -> Vec<String> {
    let mut headings: Vec<String> = Vec::new();
    let (mut depth, mut in_heading) = (0, false);
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(tag) => {
                if matches!(tag, Tag::Heading { .. }) && depth == 0 {
                    headings.push(String::new());
                    in_heading = true;
                }
                depth += 1;
            }
            Event::End(tag) => {
                in_heading &= !matches!(tag, TagEnd::Heading(_));
                depth -= 1;
            }
            Event::Text(text) | Event::Code(text) if in_heading => {
                *headings.last_mut().unwrap() += &text;
            }
            _ => {}
        }
    }
    headings
}

#[test]
fn hostile_texts_cannot_add_or_hide_a_heading_in_markdown() {
    let markdown = to_markdown(&hostile());
    let headings = headings(&markdown);
    let senders: Vec<&str> =
        headings.iter().map(|it| it.split(" · ").next().unwrap()).skip(1).collect();
    assert_eq!(senders, ["User", "Model", "Model", "last heading"], "{markdown}");
    assert!(headings[0].starts_with("a # b </script>"), "{}", headings[0]);
    let controls = |it: &char| it.is_control() && *it != '\n';
    assert_eq!(markdown.chars().filter(controls).count(), 0);
    assert!(!markdown.contains('\u{202e}'));
}

#[test]
fn code_with_fences_is_shown_whole_in_a_longer_fence() {
    for run in 1..9 {
        let code = format!("a\n{}\nb", "`".repeat(run));
        let result = ToolResult::new("1", "t", content(json!({ "output": code })));
        let call = Part::ToolCall(ToolCall::new("1", "t", json!({ "text": code })));
        let messages =
            [Message::user(code.clone()), Message::model(vec![call]), Message::tool([result])];
        let messages = messages.map(|message| TranscriptMessage { message, ..Default::default() });
        let markdown = to_markdown(&transcript(messages.to_vec()));
        let events = Parser::new(&markdown);
        let mut blocks: Vec<String> = Vec::new();
        let mut in_block = false;
        for event in events {
            match event {
                Event::Start(Tag::CodeBlock(_)) => {
                    blocks.push(String::new());
                    in_block = true;
                }
                Event::End(TagEnd::CodeBlock) => in_block = false,
                Event::Text(text) if in_block => *blocks.last_mut().unwrap() += &text,
                _ => {}
            }
        }
        let whole = blocks.iter().filter(|it| **it == format!("{code}\n")).count();
        assert_eq!(whole, 2, "{markdown}");
    }
}

/// Lists the tags of a page without its style.
fn tags(page: &str) -> Vec<&str> {
    let (_, body) = page.split_once("</style>").unwrap();
    body.split('<').skip(1).map(|it| it.split('>').next().unwrap()).collect()
}

#[test]
fn page_has_only_the_elements_that_it_writes_itself() {
    let page = to_html(&hostile());
    let known = [
        "/head",
        "body",
        "header",
        "h1",
        "/h1",
        "p",
        "/p",
        "span",
        "/span",
        "code",
        "/code",
        "/header",
        "main",
        "/main",
        "article class=\"user\"",
        "article class=\"model\"",
        "/article",
        "h2",
        "/h2",
        "h3",
        "/h3",
        "h4",
        "/h4",
        "time",
        "/time",
        "div class=\"text\"",
        "/div",
        "pre",
        "/pre",
        "details class=\"thought\"",
        "details class=\"call\"",
        "/details",
        "summary",
        "/summary",
        "span class=\"note\"",
        "span class=\"model\"",
        "/body",
        "/html",
        // The image in the hostile text is a link.
        "a href=\"https://evil.example/pixel\"",
        "/a",
    ];
    for tag in tags(&page) {
        assert!(known.contains(&tag), "<{tag}>");
    }
    assert_eq!(page.matches("<script").count(), 0);
    assert!(page.contains("&lt;/script&gt;&lt;/pre&gt;&lt;/details&gt;&lt;script&gt;alert(1)"));
    assert!(page.contains("default-src 'none'; img-src data:; style-src 'unsafe-inline'"));
    let controls = |it: &char| it.is_control() && *it != '\n';
    assert_eq!(page.chars().filter(controls).count(), 0);
    for pair in ["article", "details", "summary", "pre", "div", "p", "h2", "h3", "span"] {
        let open = tags(&page).into_iter().filter(|it| it.split(' ').next() == Some(pair)).count();
        let close = tags(&page).into_iter().filter(|it| *it == format!("/{pair}")).count();
        assert_eq!(open, close, "{pair}");
    }
}

#[test]
fn page_loads_nothing_and_holds_each_result_whole() {
    let long: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    let mut transcript = sample();
    let result = ToolResult::new("2", "edit", content(json!({ "output": long })));
    transcript.messages[4].message.parts[1] = Part::ToolResult(result);
    let page = to_html(&transcript);
    assert!(page.contains(&long));
    for loading in ["src=", "url(", "@import", "<link", "<script", "<iframe", "secret-"] {
        assert!(!page.contains(loading), "{loading}");
    }
    assert!(page.contains("<summary><code>read</code> <span>src/moon.rs</span></summary>"));
    assert!(page.contains("prefers-color-scheme: dark"));
    assert!(page.contains("<article class=\"user unsent\">"));
    assert!(page.contains("<td>new</td>"));
}

#[test]
fn page_shows_images_by_their_bytes_and_names_everything_else() {
    let image = |bytes: &'static [u8]| move |_: &str| Some(bytes.to_vec());
    let page = to_html_with_blobs(&sample(), &image(PIXEL));
    assert_eq!(page.matches("<img src=\"data:image/png;base64,iVBORw0KGgo").count(), 2);
    // A script that claims to be an image is not one.
    for bytes in [b"<svg onload=x>".as_slice(), b"%PDF-1.7", b""] {
        let page = to_html_with_blobs(&sample(), &image(bytes));
        assert!(!page.contains("<img"));
        assert_eq!(page.matches("Attachment: moon.png (image/png)").count(), 2);
    }
    let limit = 8 * 1024 * 1024;
    for (size, shown) in [(limit, 2), (limit + 1, 0)] {
        let large = |_: &str| Some([PIXEL, &vec![0; size - PIXEL.len()]].concat());
        assert_eq!(to_html_with_blobs(&sample(), &large).matches("<img").count(), shown);
    }
}

fn through_json_lines(transcript: &Transcript) -> (Transcript, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.jsonl");
    std::fs::write(&path, to_json_lines(transcript)).unwrap();
    let imported = import_file(ImportSource::Jaato, &path, None).unwrap();
    (imported.transcript, imported.notes)
}

/// Returns a content with its name.
fn named(content: &[u8]) -> (String, Vec<u8>) {
    let digest = Sha256::digest(content);
    (digest.iter().map(|byte| format!("{byte:02x}")).collect(), content.to_vec())
}

#[test]
fn json_lines_bring_back_the_same_transcript() {
    let missing = "The content of 1 attachment is missing, because the export does not contain it.";
    assert_eq!(through_json_lines(&sample()), (sample(), vec![missing.to_owned()]));
    assert_eq!(through_json_lines(&hostile()), (hostile(), Vec::new()));
    let attached = Transcript {
        attachments: [PIXEL, b"one\n"].map(named).into(),
        attachments_folder: "/home/ann/sessions/a/attachments".to_owned(),
        ..hostile()
    };
    assert_eq!(through_json_lines(&attached), (attached.clone(), Vec::new()));
    let text = to_json_lines(&sample());
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines.len(), 1 + sample().messages.len());
    assert_eq!(
        lines[0],
        json!({
            "format": "jaato-transcript", "version": 1, "id": "20261128-143745-abcd",
            "name": "Fix the moon phase", "workspace": "/home/user/project",
            "begun_ms": 1_795_876_665_000_u64,
        })
    );
    assert_eq!(lines[1]["note"], "collected");
    assert_eq!(lines[2]["model"], "anthropic/claude-sonnet-4-5");
}

#[test]
fn attachment_whose_content_was_changed_is_left_out() {
    let transcript = Transcript { attachments: [named(b"one")].into(), ..hostile() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.jsonl");
    let changed = to_json_lines(&transcript).replace("b25l", "dHdv");
    std::fs::write(&path, changed).unwrap();
    let imported = import_file(ImportSource::Jaato, &path, None).unwrap();
    assert_eq!(imported.transcript, hostile());
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
}

/// A small generator of numbers, so that each run tests the same cases.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn text(&mut self) -> String {
        let pieces =
            ["a", "\n", "```", "é", "\u{1f319}", "\"", "\\", "<b>", "\0", "\u{2028}", " ", "#"];
        let count = 1 + self.below(12);
        (0..count).map(|_| pieces[self.below(pieces.len() as u64) as usize]).collect()
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(u64::MAX - self.below(9)),
            3 => json!(-(self.below(1000) as f64) / 8.0),
            4 => json!(self.text()),
            5 => (0..self.below(3)).map(|_| self.value(depth - 1)).collect(),
            _ => (0..self.below(3)).map(|_| (self.text(), self.value(depth - 1))).collect(),
        }
    }

    fn answer_parts(&mut self, message: usize) -> Vec<Part> {
        let count = 1 + self.below(4) as usize;
        let part = |numbers: &mut Self, at: usize| match numbers.below(5) {
            0 => Part::thought(numbers.text()).with_signature(numbers.text()),
            1 => Part::opaque(numbers.value(2)),
            2 => Part::text(numbers.text()),
            3 => Part::Unknown(content(json!({ "type": "later", "x": numbers.value(2) }))),
            _ => {
                let arguments = numbers.value(2);
                Part::ToolCall(ToolCall::new(format!("{message}-{at}"), "tool", arguments))
            }
        };
        (0..count).map(|at| part(self, at)).collect()
    }

    fn messages(&mut self) -> Vec<TranscriptMessage> {
        let mut messages = Vec::new();
        for turn in 0..1 + self.below(5) as usize {
            let prompt = Message { role: Role::User, parts: vec![Part::text(self.text())] };
            messages.push(prompt);
            loop {
                let parts = self.answer_parts(messages.len() * 100 + turn);
                messages.push(Message::model(parts));
                let calls: Vec<ToolCall> = messages.last().unwrap().tool_calls().cloned().collect();
                if calls.is_empty() {
                    break;
                }
                let results = calls.into_iter().map(|call| ToolResult {
                    is_error: self.below(2) == 0,
                    attachments: (0..self.below(2)).map(|_| DataPart::blob("a/b", "c")).collect(),
                    ..ToolResult::new(call.id, call.name, content(json!({ "x": self.value(3) })))
                });
                messages.push(Message::tool(results.collect::<Vec<_>>()));
            }
        }
        let with_facts = |message| TranscriptMessage {
            at_ms: self.below(9_000_000) as i64 - 1000,
            message,
            model: (self.below(2) == 0).then(|| self.text()),
            note: (self.below(3) == 0).then(|| "broke off".to_owned()),
        };
        messages.into_iter().map(with_facts).collect()
    }
}

#[test]
fn json_lines_bring_back_any_transcript() {
    for seed in 0..300 {
        let mut numbers = Numbers(seed);
        let mut transcript = transcript(numbers.messages());
        transcript.name = numbers.text();
        transcript.begun_ms = -1;
        let (imported, notes) = through_json_lines(&transcript);
        assert_eq!(imported, transcript, "seed {seed}");
        assert!(notes.iter().all(|note| note.contains("attachment")), "seed {seed}: {notes:?}");
        // No text of any transcript makes a document that does not end.
        assert_eq!(headings(&(to_markdown(&transcript) + "\n# end\n")).last().unwrap(), "end");
        assert!(to_html(&transcript).ends_with("</main>\n</body>\n</html>\n"));
    }
}

#[test]
fn sequence_shows_prompts_requests_calls_and_results_in_order() {
    expect![[r#"
        sequenceDiagram
            participant p0 as user
            participant p1 as jaato
            participant p2 as anthropic/claude-sonnet-4-5
            participant p3 as read
            participant p4 as edit
            p0->>p1: Hello
            Note over p0,p1: collected
            p1->>p2: request
            p2-->>p1: Hi!
            p1->>p0: Hi!
            Note over p1,p0: collected
            p0->>p1: The moon is wrong. See `src/moon.rs`.
            p1->>p2: request
            p2-->>p1: read, edit
            p1->>p0: I look at the code and fix it: - read - edit
            p1->>p3: {"path":"src/moon.rs"}
            p1->>p4: {"path":"src/sun.rs","text":"fn a() {\n}\n","line":3}
            p3-->>p1: {"output":"fn phase() {}\n// ```\n"}
            p4-->>p1: error: {"error":{"kind":"not_found"}}
            p1->>p2: request
            p2-->>p1: | phase | light | |---|---| | new | 0 | ```rust fn phase() -…
            p1->>p0: | phase | light | |---|---| | new | 0 | ```rust fn phase() -…
            Note over p1,p0: broke off
            p0->>p1: And Mars?
            Note over p0,p1: not sent
    "#]]
    .assert_eq(&to_mermaid(&sample(), &[]));
    let plantuml = to_plantuml(&sample(), &[]);
    assert!(plantuml.starts_with("@startuml\ntitle Fix the moon phase\n"), "{plantuml}");
    assert!(plantuml.ends_with("@enduml\n"), "{plantuml}");
    let arrows = |text: &str| text.lines().filter(|line| line.contains("->")).count();
    assert_eq!(arrows(&plantuml), arrows(&to_mermaid(&sample(), &[])));

    let json = to_sequence_json(&sample(), &[]);
    let steps = json["steps"].as_array().unwrap();
    assert_eq!(steps.len(), arrows(&plantuml));
    let failed = steps.iter().find(|step| step["is_error"] == true).unwrap();
    assert_eq!((&failed["from"], &failed["kind"]), (&json!("edit"), &json!("tool_result")));
    assert!(failed["text"].as_str().unwrap().contains("not_found"), "{failed}");
}

#[test]
fn sequence_shows_agents_between_the_steps_of_their_openers() {
    let said = |at_ms: i64, role: Role, text: &str| TranscriptMessage {
        at_ms,
        message: Message { role, parts: vec![Part::text(text)], ..Message::default() },
        ..TranscriptMessage::default()
    };
    let session = |id: &str, messages: Vec<TranscriptMessage>| Transcript {
        id: SessionId::new(id),
        messages,
        ..Transcript::default()
    };
    let main = vec![said(1, Role::User, "Split it."), said(9, Role::Model, "All is done.")];
    let moon = vec![said(2, Role::User, "Find the moon."), said(7, Role::Model, "Found.")];
    // The clock was set back before the second message.
    let sun = vec![said(6, Role::User, "Find the sun."), said(5, Role::Model, "Hot.")];
    let agent = |opener: &str, transcript: Transcript| AgentTranscript {
        agent: "finder".to_owned(),
        opener: SessionId::new(opener),
        transcript,
    };
    let agents = [agent("a", session("b", moon)), agent("b", session("c", sun))];
    expect![[r#"
        sequenceDiagram
            participant p0 as user
            participant p1 as jaato
            participant p2 as agent finder
            participant p3 as agent finder 2
            participant p4 as model
            p0->>p1: Split it.
            p1->>p2: Find the moon.
            p2->>p3: Find the sun.
            p3->>p4: request
            p4-->>p3: Hot.
            p3->>p2: Hot.
            p2->>p4: request
            p4-->>p2: Found.
            p2->>p1: Found.
            p1->>p4: request
            p4-->>p1: All is done.
            p1->>p0: All is done.
    "#]]
    .assert_eq(&to_mermaid(&session("a", main.clone()), &agents));
    let json = to_sequence_json(&session("a", main), &agents);
    let second = json!({ "name": "agent finder 2", "session": "c", "opener": "b" });
    assert_eq!(json["agents"][1], second);
}

#[test]
fn hostile_texts_cannot_add_a_line_to_a_sequence() {
    let steps = to_sequence_json(&hostile(), &[])["steps"].as_array().unwrap().len();
    let noted = to_sequence_json(&hostile(), &[])["steps"].to_string().matches("\"note\"").count();
    for text in [to_mermaid(&hostile(), &[]), to_plantuml(&hostile(), &[])] {
        let arrows =
            text.lines().filter(|line| line.trim_start().starts_with('p') && line.contains("->"));
        assert_eq!(
            arrows.filter(|line| !line.trim_start().starts_with("participant")).count(),
            steps
        );
        let notes =
            text.lines().filter(|line| line.trim_start().to_lowercase().starts_with("note over"));
        assert_eq!(notes.count(), noted);
        assert!(
            !text.contains("<script>") && !text.contains('\u{1b}') && !text.contains('\u{202e}')
        );
    }
}
