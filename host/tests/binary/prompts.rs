//! Tests prompts and skills: the model learns of them once and uses one, a user types one as a
//! command, and those of a workspace count only while it is trusted.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{House, fixtures, library_name, skip};

const SKILL: &str =
    "---\nname: moon\ndescription: Use when: the moon is asked for.\n---\nLook up.\n";

fn house_with_prompts() -> Option<House> {
    let house = House::new()?;
    house.ship(&fixtures::test_house()?.join("plugins").join(library_name("tool_prompts")));
    house.write("workspace/.agents/skills/moon/SKILL.md", SKILL);
    house.write("workspace/.agents/skills/moon/far.md", "The far side.\n");
    house.write(
        "home/.jaato/prompts/review.md",
        "---\ndescription: Reviews a file.\n---\nReview {{path}} as {{who:a friend}}.\n",
    );
    Some(house)
}

fn script_answers(house: &House, answers: Value) {
    house.set_script(&json!({ "answers": answers }));
}

fn use_prompt_answer(arguments: Value) -> Value {
    json!([{ "call": { "name": "use_prompt", "arguments": arguments } }])
}

fn expect_result(result: &str, steps: Value) -> Value {
    json!({ "expect": { "tool_result": result }, "steps": steps })
}

fn text_answer(text: &str) -> Value {
    json!([{ "text": text }])
}

#[test]
fn model_uses_a_skill_and_reads_its_files() {
    let Some(house) = house_with_prompts() else { return };
    house.run(&["trust"]).code(0);
    script_answers(
        &house,
        json!([
            {
                "expect": { "data": "- moon: Use when: the moon is asked for." },
                "steps": use_prompt_answer(json!({ "name": "moon" })),
            },
            expect_result(
                "Look up.",
                use_prompt_answer(json!({ "name": "moon", "file": "far.md" })),
            ),
            expect_result("The far side.", use_prompt_answer(json!({ "name": "sun" }))),
            expect_result("there are: moon, review", text_answer("it is full")),
        ]),
    );
    let output = house.run(&["run", "how is the moon?"]).code(0);
    assert_eq!(output.stdout, "it is full\n", "{output}");
    house.assert_no_processes();
}

#[test]
fn skills_are_not_announced_without_the_prompt_tool() {
    let Some(house) = house_with_prompts() else { return };
    house.run(&["trust"]).code(0);
    for (tools, told) in [("use_prompt", "moon: Use when"), ("none", "[]")] {
        let answer = json!({ "expect": { "data": told }, "steps": text_answer("hello") });
        script_answers(&house, json!([answer]));
        let output = house.run(&["run", "--tools", tools, "hi"]).code(0);
        assert_eq!(output.stdout, "hello\n", "{tools}: {output}");
    }
    house.assert_no_processes();
}

#[test]
fn prompt_command_sends_its_expanded_text() {
    let Some(house) = house_with_prompts() else { return };
    script_answers(
        &house,
        json!([
            { "expect": { "prompt": "Review src/a.rs as a friend." }, "steps": text_answer("one") },
            { "expect": { "prompt": "Review b as a stranger." }, "steps": text_answer("two") },
            { "expect": { "prompt": "plain" }, "steps": text_answer("three") },
        ]),
    );
    let input = "/review src/a.rs\n/prompt review b who='a stranger'\n/prompts\nplain\n";
    let output = house.command(&["chat"]).input(input).run().code(0);
    let list = "/review  Reviews a file. (user prompt)\n";
    assert_eq!(output.stdout, format!("one\ntwo\n{list}three\n"), "{output}");
    assert!(output.stderr.contains("/review says 1 line to the model"), "{output}");
    let words = house.run(&["command", "prompt", "--complete", "re"]).code(0);
    assert_eq!(words.stdout, "review\tReviews a file.\n");
    house.assert_no_processes();
}

#[test]
fn workspace_skills_count_only_while_the_workspace_is_trusted() {
    let Some(house) = house_with_prompts() else { return };
    let listed = |house: &House| {
        let answer = house.run(&["command", "prompts"]).code(0).json();
        answer["result"].as_str().unwrap().to_owned()
    };
    assert_eq!(listed(&house), "/review  Reviews a file. (user prompt)");
    let trusted = house.run(&["trust"]).code(0);
    assert!(trusted.stdout.contains(".agents/skills/moon/SKILL.md"), "{trusted}");
    assert!(listed(&house).starts_with("/moon  Use when: the moon is asked for. (project skill)"));
    house.write("workspace/.agents/skills/evil/SKILL.md", SKILL);
    assert_eq!(listed(&house), "/review  Reviews a file. (user prompt)");
    house.assert_no_processes();
}

#[test]
fn symlink_loops_and_bad_front_matter_affect_only_their_skills() {
    let Some(house) = house_with_prompts() else { return };
    let skills = house.workspace().join(".agents/skills");
    symlink(&skills, skills.join("loop")).unwrap();
    symlink("self", skills.join("self")).unwrap();
    symlink("/etc", skills.join("out")).unwrap();
    for (name, text) in [
        ("other", SKILL.to_owned()),
        ("none", "---\nname: none\n---\nx\n".to_owned()),
        ("open", "---\nname: open\n".to_owned()),
        ("alias", "---\na: &a\n  - x\ndescription:\n  - *a\n---\n".to_owned()),
        ("big", format!("---\nname: big\ndescription: b\n---\n{}", "x".repeat(300_000))),
    ] {
        house.write(&format!("workspace/.agents/skills/{name}/SKILL.md"), &text);
    }
    fs::write(skills.join("none/pipe.md"), "x").unwrap();
    house.run(&["trust"]).code(0);
    let answer = house.run(&["command", "prompts"]).code(0).json();
    let listed = answer["result"].as_str().unwrap();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 9, "{listed}");
    for (text, count) in [
        ("a link leads out of the folder", 1),
        ("is left out: it has no description", 1),
        ("is left out: its front matter has no end", 1),
        ("is left out: it has an alias", 1),
        ("is left out: it has more than 262144 bytes", 1),
        ("is left out: there is another `moon`", 1),
        ("its name `moon` is not the name of its folder, `other`", 1),
    ] {
        assert_eq!(lines.iter().filter(|line| line.contains(text)).count(), count, "{listed}");
    }
    house.assert_no_processes();
}

/// Part of the full tier: `cargo xtask setup --outside` downloads the validator.
#[test]
fn skill_format_validator_and_jaato_accept_the_same_skills() {
    let python = fixtures::target_folder().join("outside/python");
    if !python.join("skills_ref").is_dir() {
        return skip("no validator of skills: `cargo xtask setup --outside` fetches it");
    }
    let Some(house) = house_with_prompts() else { return };
    let skills = house.workspace().join(".agents/skills");
    // A colon in plain text. It is accepted, because many skills have one.
    fs::remove_dir_all(skills.join("moon")).unwrap();
    let front = |lines: &str| format!("---\n{lines}\n---\nDo it.\n");
    let long = |key: &str, count: usize| format!("{key}: {}", "x".repeat(count));
    for (name, lines) in [
        ("whole", "name: whole\ndescription: d\nlicense: MIT\ncompatibility: git".to_owned()),
        ("map", "name: map\ndescription: d\nmetadata:\n  author: me\n  version: \"1\"".to_owned()),
        ("tools", "name: tools\ndescription: d\nallowed-tools: Bash(git:*) Read".to_owned()),
        ("größe", "name: größe\ndescription: d".to_owned()),
        ("Capital", "name: Capital\ndescription: d".to_owned()),
        ("-edge", "name: -edge\ndescription: d".to_owned()),
        ("two--dashes", "name: two--dashes\ndescription: d".to_owned()),
        ("under_score", "name: under_score\ndescription: d".to_owned()),
        ("folder", "name: other-name\ndescription: d".to_owned()),
        ("nameless", "description: d".to_owned()),
        ("silent", "name: silent".to_owned()),
        ("long-text", format!("name: long-text\n{}", long("description", 1025))),
        ("full-text", format!("name: full-text\n{}", long("description", 1024))),
        ("needs", format!("name: needs\ndescription: d\n{}", long("compatibility", 501))),
    ] {
        house.write(&format!("workspace/.agents/skills/{name}/SKILL.md"), &front(&lines));
    }
    house.run(&["trust"]).code(0);
    let answer = house.run(&["command", "prompts"]).code(0).json();
    let listed = answer["result"].as_str().unwrap();
    for folder in fs::read_dir(skills).unwrap().flatten() {
        let mut validator = Command::new("python3");
        let said = validator.args(["-B", "-m", "skills_ref.cli", "validate"]).arg(folder.path());
        let said = said.env("PYTHONPATH", &python).output().unwrap();
        let name = folder.file_name().into_string().unwrap();
        let file = format!("skills/{name}/SKILL.md");
        let complains = listed.lines().any(|line| line.contains(&file));
        let text = [said.stdout, said.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("alid"), "the validator does not run: {text}");
        assert_eq!(complains, !said.status.success(), "{name}: {text}\n{listed}");
    }
}
