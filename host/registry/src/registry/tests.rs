//! Tests which plugin gets a name, which is refused, and why.

use jaato_types::CommandSpec;

use super::*;
use crate::{CommandEntry, CommandRefusal, CommandStatus};

fn plugin_candidate(
    path: &str,
    name: &str,
    trust: PluginFileTrust,
    tools: &[&str],
) -> PluginCandidate {
    let manifest =
        format!(r#"{{"v":1,"name":"{name}","version":"1","api":"1.0.0","kinds":["tool"]}}"#);
    let tools = tools.iter().map(|tool| ToolSpec {
        name: ToolName::from(*tool),
        description: String::new(),
        parameters: serde_json::json!({"type": "object"}),
        annotations: jaato_types::Annotations::default(),
        category: String::new(),
        availability: Availability::Discoverable,
        auto_approval: false,
        auto_background: false,
        traits: Vec::new(),
        examples: Vec::new(),
        available_if: None,
        run_if: None,
        ..ToolSpec::default()
    });
    let description = Description { tools: tools.collect(), ..Description::default() };
    PluginCandidate {
        path: path.into(),
        place: "user",
        description: (trust != PluginFileTrust::WorkspaceNot).then_some(Ok(description)),
        trust,
        manifest: Manifest::parse(manifest.as_bytes()).unwrap(),
    }
}

fn trusted_candidate(path: &str, name: &str, tools: &[&str]) -> PluginCandidate {
    plugin_candidate(path, name, PluginFileTrust::ByHash("aa".into()), tools)
}

#[track_caller]
fn check_registry(
    candidates: Vec<PluginCandidate>,
    rules: &RegistryRules,
    expected: &[&str],
) -> Registry {
    let registry = Registry::build(candidates, rules);
    let line = |entry: &PluginEntry| {
        let status = match &entry.status {
            PluginStatus::Refused(refusal) => refusal.to_string(),
            PluginStatus::Failed(error) => format!("failed: {error}"),
            other => format!("{other:?}"),
        };
        format!("{}: {status}", entry.candidate.path.display())
    };
    assert_eq!(registry.plugins().iter().map(line).collect::<Vec<_>>(), expected);
    registry
}

#[test]
fn taken_tool_name_is_left_out_and_plugin_without_other_tools_refused() {
    let registry = check_registry(
        vec![
            trusted_candidate("/a/moon.so", "moon", &["phase"]),
            trusted_candidate("/b/moon.so", "moon", &["tide"]),
            trusted_candidate("/b/sun.so", "sun", &["rise", "phase"]),
            trusted_candidate("/b/stars.so", "stars", &["phase"]),
            trusted_candidate("/b/thief.so", "thief", &["list_tools"]),
            trusted_candidate("/b/dawn.so", "dawn", &["glow", "list_tools"]),
        ],
        &RegistryRules::default(),
        &[
            "/a/moon.so: Active",
            "/b/moon.so: the plugin name `moon` is taken by `/a/moon.so`",
            "/b/sun.so: Active",
            "/b/stars.so: its tool name `phase` is taken by `/a/moon.so`",
            "/b/thief.so: jaato itself uses its tool name `list_tools`",
            "/b/dawn.so: Active",
        ],
    );
    let tools: Vec<_> = registry.tools().map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!(tools, ["glow", "phase", "rise"], "no tool of a refused plugin is left behind");
    assert_eq!(registry.tool("phase").unwrap().plugin.as_str(), "moon");
    let told: Vec<_> =
        registry.plugins().iter().flat_map(|it| &it.left_out).map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "tool `phase` is left out: the name is taken by `/a/moon.so`",
            "tool `list_tools` is left out: jaato itself uses the name",
        ]
    );
}

#[test]
fn taken_name_leaves_the_other_offers_of_its_plugin() {
    let moon = trusted_candidate("/a/moon.so", "moon", &["phase"]);
    let with = |name: &str, tools: &[&str], more: serde_json::Value| {
        let mut candidate = trusted_candidate(&format!("/b/{name}.so"), name, tools);
        let more: Description = serde_json::from_value(more).unwrap();
        if let Some(Ok(description)) = &mut candidate.description {
            *description = Description { tools: description.tools.clone(), ..more };
        }
        candidate
    };
    let provider = serde_json::json!({ "provider": { "name": "sky" } });
    let registry = check_registry(
        vec![
            moon,
            with("first", &[], provider.clone()),
            with("second", &["rise"], provider.clone()),
            with("third", &[], provider),
            with("guard", &["phase"], serde_json::json!({ "hooks": ["before_tool"] })),
            with("late", &["phase"], serde_json::json!({ "at_start": true })),
        ],
        &RegistryRules::default(),
        &[
            "/a/moon.so: Active",
            "/b/first.so: Active",
            "/b/second.so: Active",
            "/b/third.so: its provider name `sky` is taken by `/b/first.so`",
            "/b/guard.so: Active",
            "/b/late.so: Active",
        ],
    );
    assert_eq!(registry.provider("sky").unwrap().candidate.manifest.name.as_str(), "first");
    let second = registry.plugin("second").unwrap();
    assert!(second.description().unwrap().provider.is_none());
    let told: Vec<_> = second.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["provider `sky` is left out: the name is taken by `/b/first.so`"]);
}

#[test]
fn untrusted_plugin_is_used_but_not_from_an_untrusted_workspace() {
    let registry = check_registry(
        vec![
            plugin_candidate("/u/moon.so", "moon", PluginFileTrust::No("ff".into()), &["phase"]),
            plugin_candidate("/w/sun.so", "sun", PluginFileTrust::WorkspaceNot, &["rise"]),
        ],
        &RegistryRules::default(),
        &["/u/moon.so: Active", "/w/sun.so: NotTrusted"],
    );
    assert_eq!(registry.tool("phase").map(|tool| tool.status), Some(ToolStatus::Enabled));
    assert!(
        registry.tool("rise").is_none(),
        "its workspace is not trusted: it was never described"
    );
}

#[test]
fn the_rules_switch_off_plugins_and_tools() {
    let rules = RegistryRules {
        plugins_disabled: vec!["sun".into()],
        tools_enabled: Some(vec!["phase".into(), "tide".into()]),
        tools_disabled: vec!["tide".into()],
        tools_only: None,
    };
    let registry = check_registry(
        vec![
            trusted_candidate("/moon.so", "moon", &["phase", "tide", "crater"]),
            trusted_candidate("/sun.so", "sun", &["rise"]),
        ],
        &rules,
        &["/moon.so: Active", "/sun.so: Disabled"],
    );
    let status = |name| registry.tool(name).map(|tool| tool.status);
    assert_eq!(status("phase"), Some(ToolStatus::Enabled));
    assert_eq!(status("tide"), Some(ToolStatus::Disabled));
    assert_eq!(status("crater"), Some(ToolStatus::NotEnabled));
    assert_eq!(status("rise"), None);
}

#[test]
fn word_none_alone_leaves_out_every_tool() {
    let none = || Some(vec![NO_TOOLS.to_owned()]);
    for rules in [
        RegistryRules { tools_only: none(), ..RegistryRules::default() },
        RegistryRules { tools_enabled: none(), ..RegistryRules::default() },
        RegistryRules {
            tools_only: none(),
            tools_enabled: Some(vec!["phase".into()]),
            ..RegistryRules::default()
        },
    ] {
        let plugins = vec![trusted_candidate("/moon.so", "moon", &["phase", "none"])];
        let registry = check_registry(plugins, &rules, &["/moon.so: Active"]);
        let status: Vec<_> = registry.tools().map(|tool| tool.status).collect();
        assert_eq!(status, [ToolStatus::NotEnabled; 2]);
    }
}

#[test]
fn tool_name_with_a_star_matches_every_name_with_its_prefix() {
    let words = |words: &[&str]| Some(words.iter().map(|&it| it.to_owned()).collect::<Vec<_>>());
    let rules = RegistryRules {
        tools_only: words(&["ph*", "tide"]),
        tools_disabled: vec!["phase_*".into()],
        ..RegistryRules::default()
    };
    let status = |name: &str| rules.tool_status(name);
    assert_eq!(status("phase"), ToolStatus::Enabled);
    assert_eq!(status("ph"), ToolStatus::Enabled);
    assert_eq!(status("phase_of_moon"), ToolStatus::Disabled);
    assert_eq!(status("tide"), ToolStatus::Enabled);
    assert_eq!(status("tides"), ToolStatus::NotEnabled);
}

#[test]
fn tools_named_on_the_command_line_become_core_tools() {
    let rules =
        RegistryRules { tools_only: Some(vec!["phase".into()]), ..RegistryRules::default() };
    let registry = check_registry(
        vec![trusted_candidate("/moon.so", "moon", &["phase"])],
        &rules,
        &["/moon.so: Active"],
    );
    assert_eq!(registry.tool("phase").map(|tool| tool.spec.availability), Some(Availability::Core));
}

#[test]
fn a_plugin_that_could_not_be_described_holds_its_name_and_says_why() {
    let mut broken = trusted_candidate("/a/moon.so", "moon", &[]);
    broken.description = Some(Err(Error::failed("it hangs")));
    check_registry(
        vec![broken, trusted_candidate("/b/moon.so", "moon", &["phase"])],
        &RegistryRules::default(),
        &[
            "/a/moon.so: failed: it hangs",
            "/b/moon.so: the plugin name `moon` is taken by `/a/moon.so`",
        ],
    );
}

fn with_commands(mut candidate: PluginCandidate, names: &[&str]) -> PluginCandidate {
    let command = |name: &&str| CommandSpec {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: serde_json::Value::Null,
        share_with_model: false,
        ..CommandSpec::default()
    };
    if let Some(Ok(description)) = &mut candidate.description {
        description.commands = names.iter().map(command).collect();
    }
    candidate
}

#[test]
fn command_with_a_taken_name_is_refused_but_its_plugin_is_kept() {
    let moon =
        with_commands(trusted_candidate("/a/moon.so", "moon", &["phase"]), &["full", "new", "new"]);
    let bad = ["full", "gc", "-x", "a b", "", "rise"];
    let sun = with_commands(trusted_candidate("/b/sun.so", "sun", &["shine"]), &bad);
    let registry = check_registry(
        vec![moon, sun],
        &RegistryRules::default(),
        &["/a/moon.so: Active", "/b/sun.so: Active"],
    );
    let line = |entry: CommandEntry<'_>| match &entry.status {
        CommandStatus::Refused(refusal) => format!("{}: {refusal}", entry.spec.name),
        other => format!("{} of {}: {other:?}", entry.spec.name, entry.plugin),
    };
    let taken: Vec<_> = registry.commands().map(line).collect();
    assert_eq!(taken, ["full of moon: Enabled", "new of moon: Enabled", "rise of sun: Enabled"]);
    let refused: Vec<_> = registry.refused_commands().map(line).collect();
    let bad_name = CommandRefusal::BadName;
    let expected = [
        "new: the name is taken by `/a/moon.so`".to_owned(),
        "full: the name is taken by `/a/moon.so`".to_owned(),
        "gc: jaato itself uses the name".to_owned(),
        format!("-x: {bad_name}"),
        format!("a b: {bad_name}"),
        format!(": {bad_name}"),
    ];
    assert_eq!(refused, expected);
}

#[test]
fn a_command_of_a_plugin_that_is_switched_off_is_not_there() {
    let moon = plugin_candidate("/u/moon.so", "moon", PluginFileTrust::No("ff".into()), &[]);
    let off = with_commands(trusted_candidate("/b/sun.so", "sun", &[]), &["rise"]);
    let rules = RegistryRules { plugins_disabled: vec!["sun".into()], ..RegistryRules::default() };
    let plugins = vec![with_commands(moon, &["full"]), off];
    let registry = check_registry(plugins, &rules, &["/u/moon.so: Active", "/b/sun.so: Disabled"]);
    assert_eq!(registry.command("full").map(|it| it.status), Some(CommandStatus::Enabled));
    assert!(registry.command("rise").is_none(), "a plugin that is switched off offers nothing");
}

#[test]
fn plugin_cannot_take_the_line_prefix_of_another_plugin() {
    let shipped = plugin_candidate("/s/cli.so", "tool-cli", PluginFileTrust::Shipped, &[]);
    let strangers = ["host", "jaato", "cli", "tool-host", "gc-cli", "moon"];
    let strangers = strangers.map(|name| trusted_candidate(&format!("/u/{name}.so"), name, &[]));
    let refused =
        |name: &str| format!("/u/{name}.so: {}", NameRefusal::Label(PluginName::from(name)));
    let registry = check_registry(
        [vec![shipped], strangers.into()].concat(),
        &RegistryRules::default(),
        &[
            "/s/cli.so: Active",
            &refused("host"),
            &refused("jaato"),
            &refused("cli"),
            "/u/tool-host.so: Active",
            "/u/gc-cli.so: Active",
            "/u/moon.so: Active",
        ],
    );
    let names = ["tool-cli", "tool-host", "gc-cli", "moon"].map(PluginName::from);
    let sources = names.each_ref().map(|name| registry.event_source_name(name));
    assert_eq!(sources, ["cli", "tool-host", "gc-cli", "moon"]);
}
