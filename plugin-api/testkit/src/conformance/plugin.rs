//! Checks of all plugins.

use std::collections::BTreeSet;

use jaato_types::{Description, ErrorKind, FRAME_BYTES_MAX, Frame, PATH_ROOTS, PluginKind};
use serde_json::{Value, json};

use super::{
    ConformanceSuite, ConformanceVerdict, check_error_text, check_nothing_left, ensure, fuzz,
    prefix_error, tool,
};
use crate::{FakeHost, schema};

/// The manifest is readable, matches this plugin-api, and names the kinds of the suite.
pub fn manifest_kinds_match(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let manifest = host.manifest().map_err(prefix_error("manifest"))?;
    let (has, wants): (BTreeSet<_>, BTreeSet<_>) =
        (manifest.kinds.iter().collect(), suite.kinds.iter().collect());
    ensure(has == wants, || format!("its manifest has the kinds {has:?}, its suite {wants:?}"))?;
    ensure(has.len() == manifest.kinds.len(), || "the manifest lists a kind twice".into())?;
    let api = jaato_types::API_VERSION;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    ensure(major(&manifest.api) == major(api), || {
        format!("it is built for plugin-api {}, not {api}", manifest.api)
    })?;
    ensure(!manifest.version.is_empty(), || "the manifest has no version".into())
}

/// Tools and a provider are described if and only if the manifest names these kinds.
pub fn the_description_agrees_with_the_manifest(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let manifest = host.manifest().map_err(prefix_error("manifest"))?;
    let description = host.description().map_err(prefix_error("description"))?;
    let agrees = |kind: PluginKind, described: bool| {
        let named = manifest.kinds.contains(&kind);
        ensure(named == described, || {
            format!("kind {kind:?}: named in the manifest {named}, described {described}")
        })
    };
    // A plugin that opens with the session may set all its tools while it runs.
    let sets_tools = description.at_start && manifest.kinds.contains(&PluginKind::Tool);
    agrees(PluginKind::Tool, sets_tools || !description.tools.is_empty())?;
    agrees(PluginKind::Provider, description.provider.is_some())?;
    agrees(PluginKind::Hook, !description.hooks.is_empty())?;
    let is_known = |path: &&String| PATH_ROOTS.iter().any(|root| path.starts_with(root));
    let unknown = description.only_with_files.iter().find(|path| !is_known(path));
    ensure(unknown.is_none(), || {
        format!("a path of `only_with_files` starts with none of {PATH_ROOTS:?}: {unknown:?}")
    })?;
    let v = Description::VERSION;
    ensure(description.v == v, || {
        format!("the description has version {}, not {v}", description.v)
    })?;
    let blank = description.instructions.as_ref().is_some_and(|text| text.trim().is_empty());
    ensure(!blank, || "the instructions for the prompt are blank: leave them out".into())
}

/// Two descriptions are identical.
pub fn the_description_is_the_same_each_time(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let write = || {
        let description = host.describe().map_err(prefix_error("description"))?;
        serde_json::to_string(&description).map_err(|error| error.to_string())
    };
    let (first, second) = (write()?, write()?);
    ensure(first == second, || format!("it describes itself differently:\n{first}\n{second}"))
}

/// The arguments of commands and the configuration are closed objects with descriptions.
pub fn commands_and_configuration_have_schemas(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let description = host.description().map_err(prefix_error("description"))?;
    let mut names = BTreeSet::new();
    for command in &description.commands {
        let name = &command.name;
        let is_word = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '/');
        ensure(is_word, || format!("`{name}` is not a valid command name"))?;
        ensure(names.insert(name), || format!("there are two commands `{name}`"))?;
        let text = &command.description;
        let is_line = !text.trim().is_empty() && !text.contains('\n');
        ensure(is_line, || format!("command `{name}` needs one line for a list"))?;
        if !command.parameters.is_null() {
            tool::check_closed_object(&format!("command `{name}`"), &command.parameters)?;
        }
    }
    match &description.config_schema {
        Some(schema) => {
            tool::check_closed_object("the configuration", schema)?;
            // Missing configuration must have defaults, so that the plugin works without
            // configuration.
            match schema::check_schema(schema, &json!({})) {
                Err(error) if error.kind == ErrorKind::PluginMisbehaved => Err(error.message),
                Ok(()) | Err(_) => Ok(()),
            }
        }
        None => Ok(()),
    }
}

/// Assets have an id, a plain file name, a size and a digest, and models name existing assets.
pub fn assets_are_pinned(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let description = host.description().map_err(prefix_error("description"))?;
    let mut ids = BTreeSet::new();
    for asset in &description.assets {
        let id = asset.id.as_str();
        ensure(!id.is_empty() && ids.insert(id), || {
            format!("the asset id `{id}` is empty or a duplicate")
        })?;
        let file = asset.file_name.as_str();
        let is_plain = !file.is_empty() && !file.contains(['/', '\\']) && !file.starts_with('.');
        ensure(is_plain, || format!("asset `{id}`: `{file}` is not a plain file name"))?;
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let is_digest = asset.sha256.len() == 64 && asset.sha256.chars().all(is_hex);
        ensure(is_digest, || {
            format!("asset `{id}`: `{}` is not a hexadecimal SHA-256", asset.sha256)
        })?;
        ensure(asset.bytes > 0, || format!("asset `{id}` is empty"))?;
    }
    let models = description.provider.iter().flat_map(|provider| &provider.models);
    for model in models {
        if let Some(asset) = &model.asset {
            let is_there = ids.contains(asset.as_str());
            ensure(is_there, || format!("model `{}`: asset `{asset}` is unknown", model.name))?;
        }
    }
    Ok(())
}

/// An instance that is created from saved state saves the same state.
pub fn saved_state_is_restored(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let first = host.create(None).map_err(prefix_error("a fresh instance"))?;
    tool::run_examples(suite.examples, host, &first, |_, _| Ok(()))?;
    let saved = first.close().map_err(prefix_error("save"))?;
    let second =
        host.create(saved.as_ref()).map_err(prefix_error("an instance of what was saved"))?;
    let again = second.close().map_err(prefix_error("save again"))?;
    ensure(saved == again, || {
        let shown = |saved: Option<Value>| saved.unwrap_or_default().to_string();
        format!("saved first: {}\nsaved again: {}", shown(saved), shown(again))
    })
}

/// Malformed saved state is refused with an error, or a fresh instance is created.
pub fn bad_saved_state_is_refused_or_forgotten(
    _: &ConformanceSuite,
    host: &FakeHost,
) -> ConformanceVerdict {
    let values = [json!(42), json!("moon"), json!([]), json!({"no_such_field": [1]}), json!(true)];
    let frames = values.iter().filter_map(|value| Frame::write(value).ok());
    for frame in frames.chain(fuzz::bad_frames()) {
        let what = format!("an instance of {}", fuzz::display_frame(&frame));
        match host.create_from_frame(Some(frame)) {
            Ok(instance) => drop(instance.close().map_err(prefix_error(&what))?),
            Err(error) => check_error_text(&what, &error)?,
        }
    }
    Ok(())
}

/// An unknown operation is answered with `unknown_operation`, and an unknown command with an error.
pub fn unknown_operations_are_refused(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    let found = instance.operation("no_such_operation", Frame::empty()).wait().result;
    let kind = found.map_err(|error| error.kind);
    ensure(kind == Err(ErrorKind::UnknownOperation), || {
        format!("an unknown operation was answered with {kind:?}, not with `unknown_operation`")
    })?;
    match instance.command("no_such_command", json!({})) {
        Ok(_) => Err("an unknown command did not fail".into()),
        Err(error) => check_error_text("an unknown command", &error),
    }
}

/// A command with a malformed frame is answered with an error.
pub fn bad_command_frames_are_refused(_: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.instance().map_err(prefix_error("an instance"))?;
    fuzz::check_bad_frames_refused("a command", |frame| {
        instance.operation("command", frame).wait().result
    })
}

/// After good, bad and cancelled calls and after the close, the plugin holds nothing of the host.
pub fn no_objects_are_left(suite: &ConformanceSuite, host: &FakeHost) -> ConformanceVerdict {
    let instance = host.create(None).map_err(prefix_error("an instance"))?;
    tool::run_examples(suite.examples, host, &instance, |_, _| Ok(()))?;
    drop(instance.operation("no_such_operation", vec![0; FRAME_BYTES_MAX + 1]));
    drop(instance.start_frame("no_such_tool", Vec::new()));
    instance.close().map_err(prefix_error("close"))?;
    check_nothing_left(host)
}
