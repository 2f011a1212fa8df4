//! The JSON of the services for a plugin's own data: store, secrets, counts, programs on the host,
//! and trusted workspace files.

use std::fmt::Write as _;

use jaato_types::count::{
    COUNT, COUNT_TOKENS, ModelInput, TokenCount, TokenCountAnswer, TokenCountInput,
};
use jaato_types::secret::{SecretDeleteAnswer, SecretGetAnswer, SecretName, SecretSetAnswer};
use jaato_types::store::*;
use jaato_types::workspace_file::*;
use jaato_types::{Message, ToolSpec, host_process, secret};

use super::ShapeList;

pub fn add_shapes(shapes: &mut ShapeList) {
    add_store_shapes(shapes);
    shapes.start_section("services: secrets");
    writeln!(shapes.text, "{} {} {}", secret::GET, secret::SET, secret::DELETE).unwrap();
    shapes.add(&SecretName { name: "token".to_owned() });
    shapes.add(&SecretGetAnswer::new(true));
    shapes.add(&SecretSetAnswer::new(true));
    shapes.add(&SecretDeleteAnswer::new(true));
    shapes.start_section("services: counts");
    writeln!(shapes.text, "{COUNT} {COUNT_TOKENS}").unwrap();
    shapes.add(&TokenCountInput {
        text: Some("moonlight".to_owned()),
        request: Some(ModelInput {
            system: "be kind".to_owned(),
            tools: vec![ToolSpec { name: "phase".into(), ..ToolSpec::default() }],
            messages: vec![Message::user("is it full?")],
        }),
        model: Some("moon/full".to_owned()),
    });
    let (model, why) = (Some("moon/full".to_owned()), Some("no count came".to_owned()));
    shapes.add(&TokenCountAnswer::estimate(3, model, why));
    shapes.add(&TokenCount { tokens: 3 });
    shapes.start_section("services: programs of the host's side");
    let [spawn, write] = [host_process::SPAWN, host_process::WRITE];
    writeln!(shapes.text, "{spawn} {write} {} {}", host_process::SIGNAL, host_process::END)
        .unwrap();
    shapes.start_section("services: files of the workspace that trust covers");
    writeln!(shapes.text, "{WORKSPACE_FILE_SET} {}", WORKSPACE_FILES.join(" ")).unwrap();
    shapes.add(&WorkspaceFileSet { name: ".mcp.json".to_owned() });
    shapes.add(&WorkspaceFileSetAnswer::default());
}

fn add_store_shapes(shapes: &mut ShapeList) {
    shapes.start_section("services: the store");
    writeln!(shapes.text, "{GET} {SET} {DELETE} {LIST} {FOLDER}").unwrap();
    shapes.add_all(&[StoreOwner::Person, StoreOwner::Workspace]);
    let (key, of) = ("phase".to_owned(), StoreOwner::Workspace);
    shapes.add(&StoreGet { key: key.clone(), of });
    shapes.add(&StoreValue::found("00"));
    shapes.add(&StoreSet { key: key.clone(), of, expected: Some(ABSENT.to_owned()) });
    shapes.add(&StoreSetAnswer::new("00"));
    shapes.add(&StoreDelete { key, of, expected: Some("00".to_owned()) });
    shapes.add(&StoreDeleteAnswer::new(true));
    shapes.add(&StoreList { prefix: "ph".to_owned(), of });
    shapes.add(&StoreKeys::new(vec![StoredKey::new("phase", 4)]));
    shapes.add(&StoreFolder { of });
}
