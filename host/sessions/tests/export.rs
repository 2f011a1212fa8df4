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

use crate::sample::{PIXEL, hostile_transcript, json_object, sample_transcript, transcript_of};

#[test]
fn markdown_shows_calls_with_their_results_and_hides_opaque_data() {
    let markdown = to_markdown(&sample_transcript());
    expect_file!["fixtures/sample.md"].assert_eq(&markdown);
    for hidden in ["secret-signature", "secret-item"] {
        assert!(!markdown.contains(hidden), "{hidden}");
    }
}

/// Lists the texts of the headings of a document that are not in a block.
fn markdown_headings(markdown: &str) -> Vec<String> {
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
    let markdown = to_markdown(&hostile_transcript());
    let headings = markdown_headings(&markdown);
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
        let result = ToolResult::new("1", "t", json_object(json!({ "output": code })));
        let call = Part::ToolCall(ToolCall::new("1", "t", json!({ "text": code })));
        let messages =
            [Message::user(code.clone()), Message::model(vec![call]), Message::tool([result])];
        let messages = messages.map(|message| TranscriptMessage { message, ..Default::default() });
        let markdown = to_markdown(&transcript_of(messages.to_vec()));
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
fn page_tags(page: &str) -> Vec<&str> {
    let (_, body) = page.split_once("</style>").unwrap();
    body.split('<').skip(1).map(|it| it.split('>').next().unwrap()).collect()
}

#[test]
fn page_has_only_the_elements_that_it_writes_itself() {
    let page = to_html(&hostile_transcript());
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
    for tag in page_tags(&page) {
        assert!(known.contains(&tag), "<{tag}>");
    }
    assert_eq!(page.matches("<script").count(), 0);
    assert!(page.contains("&lt;/script&gt;&lt;/pre&gt;&lt;/details&gt;&lt;script&gt;alert(1)"));
    assert!(page.contains("default-src 'none'; img-src data:; style-src 'unsafe-inline'"));
    let controls = |it: &char| it.is_control() && *it != '\n';
    assert_eq!(page.chars().filter(controls).count(), 0);
    for pair in ["article", "details", "summary", "pre", "div", "p", "h2", "h3", "span"] {
        let open =
            page_tags(&page).into_iter().filter(|it| it.split(' ').next() == Some(pair)).count();
        let close = page_tags(&page).into_iter().filter(|it| *it == format!("/{pair}")).count();
        assert_eq!(open, close, "{pair}");
    }
}

#[test]
fn page_loads_nothing_and_holds_each_result_whole() {
    let long: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    let mut transcript = sample_transcript();
    let result = ToolResult::new("2", "edit", json_object(json!({ "output": long })));
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
    let page = to_html_with_blobs(&sample_transcript(), &image(PIXEL));
    assert_eq!(page.matches("<img src=\"data:image/png;base64,iVBORw0KGgo").count(), 2);
    // A script that claims to be an image is not one.
    for bytes in [b"<svg onload=x>".as_slice(), b"%PDF-1.7", b""] {
        let page = to_html_with_blobs(&sample_transcript(), &image(bytes));
        assert!(!page.contains("<img"));
        assert_eq!(page.matches("Attachment: moon.png (image/png)").count(), 2);
    }
    let limit = 8 * 1024 * 1024;
    for (size, shown) in [(limit, 2), (limit + 1, 0)] {
        let large = |_: &str| Some([PIXEL, &vec![0; size - PIXEL.len()]].concat());
        assert_eq!(to_html_with_blobs(&sample_transcript(), &large).matches("<img").count(), shown);
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
fn named_content(content: &[u8]) -> (String, Vec<u8>) {
    let digest = Sha256::digest(content);
    (digest.iter().map(|byte| format!("{byte:02x}")).collect(), content.to_vec())
}

#[test]
fn json_lines_bring_back_the_same_transcript() {
    let missing = "The content of 1 attachment is missing, because the export does not contain it.";
    assert_eq!(
        through_json_lines(&sample_transcript()),
        (sample_transcript(), vec![missing.to_owned()])
    );
    assert_eq!(through_json_lines(&hostile_transcript()), (hostile_transcript(), Vec::new()));
    let attached = Transcript {
        attachments: [PIXEL, b"one\n"].map(named_content).into(),
        attachments_folder: "/home/ann/sessions/a/attachments".to_owned(),
        ..hostile_transcript()
    };
    assert_eq!(through_json_lines(&attached), (attached.clone(), Vec::new()));
    let text = to_json_lines(&sample_transcript());
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines.len(), 1 + sample_transcript().messages.len());
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
    let transcript =
        Transcript { attachments: [named_content(b"one")].into(), ..hostile_transcript() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.jsonl");
    let changed = to_json_lines(&transcript).replace("b25l", "dHdv");
    std::fs::write(&path, changed).unwrap();
    let imported = import_file(ImportSource::Jaato, &path, None).unwrap();
    assert_eq!(imported.transcript, hostile_transcript());
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
}

/// A small generator of numbers, so that each run tests the same cases.
struct RandomTranscript(u64);

impl RandomTranscript {
    fn number_below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn random_text(&mut self) -> String {
        let pieces =
            ["a", "\n", "```", "é", "\u{1f319}", "\"", "\\", "<b>", "\0", "\u{2028}", " ", "#"];
        let count = 1 + self.number_below(12);
        (0..count).map(|_| pieces[self.number_below(pieces.len() as u64) as usize]).collect()
    }

    fn random_value(&mut self, depth: u64) -> Value {
        match self.number_below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.number_below(2) == 0),
            2 => json!(u64::MAX - self.number_below(9)),
            3 => json!(-(self.number_below(1000) as f64) / 8.0),
            4 => json!(self.random_text()),
            5 => (0..self.number_below(3)).map(|_| self.random_value(depth - 1)).collect(),
            _ => (0..self.number_below(3))
                .map(|_| (self.random_text(), self.random_value(depth - 1)))
                .collect(),
        }
    }

    fn random_answer_parts(&mut self, message: usize) -> Vec<Part> {
        let count = 1 + self.number_below(4) as usize;
        let part = |numbers: &mut Self, at: usize| match numbers.number_below(5) {
            0 => Part::thought(numbers.random_text()).with_signature(numbers.random_text()),
            1 => Part::opaque(numbers.random_value(2)),
            2 => Part::text(numbers.random_text()),
            3 => {
                Part::Unknown(json_object(json!({ "type": "later", "x": numbers.random_value(2) })))
            }
            _ => {
                let arguments = numbers.random_value(2);
                Part::ToolCall(ToolCall::new(format!("{message}-{at}"), "tool", arguments))
            }
        };
        (0..count).map(|at| part(self, at)).collect()
    }

    fn random_messages(&mut self) -> Vec<TranscriptMessage> {
        let mut messages = Vec::new();
        for turn in 0..1 + self.number_below(5) as usize {
            let prompt = Message { role: Role::User, parts: vec![Part::text(self.random_text())] };
            messages.push(prompt);
            loop {
                let parts = self.random_answer_parts(messages.len() * 100 + turn);
                messages.push(Message::model(parts));
                let calls: Vec<ToolCall> = messages.last().unwrap().tool_calls().cloned().collect();
                if calls.is_empty() {
                    break;
                }
                let results = calls.into_iter().map(|call| ToolResult {
                    is_error: self.number_below(2) == 0,
                    attachments: (0..self.number_below(2))
                        .map(|_| DataPart::blob("a/b", "c"))
                        .collect(),
                    ..ToolResult::new(
                        call.id,
                        call.name,
                        json_object(json!({ "x": self.random_value(3) })),
                    )
                });
                messages.push(Message::tool(results.collect::<Vec<_>>()));
            }
        }
        let with_facts = |message| TranscriptMessage {
            at_ms: self.number_below(9_000_000) as i64 - 1000,
            message,
            model: (self.number_below(2) == 0).then(|| self.random_text()),
            note: (self.number_below(3) == 0).then(|| "broke off".to_owned()),
        };
        messages.into_iter().map(with_facts).collect()
    }
}

#[test]
fn json_lines_bring_back_any_transcript() {
    for seed in 0..300 {
        let mut numbers = RandomTranscript(seed);
        let mut transcript = transcript_of(numbers.random_messages());
        transcript.name = numbers.random_text();
        transcript.begun_ms = -1;
        let (imported, notes) = through_json_lines(&transcript);
        assert_eq!(imported, transcript, "seed {seed}");
        assert!(notes.iter().all(|note| note.contains("attachment")), "seed {seed}: {notes:?}");
        // No text of any transcript makes a document that does not end.
        assert_eq!(
            markdown_headings(&(to_markdown(&transcript) + "\n# end\n")).last().unwrap(),
            "end"
        );
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
    .assert_eq(&to_mermaid(&sample_transcript(), &[]));
    let plantuml = to_plantuml(&sample_transcript(), &[]);
    assert!(plantuml.starts_with("@startuml\ntitle Fix the moon phase\n"), "{plantuml}");
    assert!(plantuml.ends_with("@enduml\n"), "{plantuml}");
    let arrows = |text: &str| text.lines().filter(|line| line.contains("->")).count();
    assert_eq!(arrows(&plantuml), arrows(&to_mermaid(&sample_transcript(), &[])));

    let json = to_sequence_json(&sample_transcript(), &[]);
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
    let steps = to_sequence_json(&hostile_transcript(), &[])["steps"].as_array().unwrap().len();
    let noted = to_sequence_json(&hostile_transcript(), &[])["steps"]
        .to_string()
        .matches("\"note\"")
        .count();
    for text in [to_mermaid(&hostile_transcript(), &[]), to_plantuml(&hostile_transcript(), &[])] {
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
