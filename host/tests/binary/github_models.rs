//! Tests GitHub Models as documented and as it really works.

use std::sync::Arc;

use jaato_vendors::github::FakeGitHub;
use jaato_vendors::openai::{OpenAiAnswerPiece, OpenAiTurn};

use crate::house;
use crate::support::openai::{SECRET, assert_key_not_saved};
use crate::support::server::Server;
use crate::support::{Command, House};
use crate::vendors;

fn add_plugin(house: &House) {
    crate::support::ship_provider(house, "provider_github_models");
}

fn serve_vendor(vendor: &Arc<FakeGitHub>) -> Server {
    let vendor = Arc::clone(vendor);
    vendors::start_vendor_server(move |asked| vendor.answer(asked))
}

/// Builds a command that uses a server, with a token.
fn command_at(house: &House, server: &Server, words: &[&str]) -> Command {
    house
        .command(words)
        .variable("JAATO_GITHUB_ENDPOINT", format!("{}/inference", server.root_url()))
        .variable("GITHUB_TOKEN", SECRET)
}

#[test]
fn requests_are_sent_under_the_configured_github_organization() {
    for name in ["github-models", "github_models"] {
        let house = house!(add_plugin);
        let called =
            OpenAiAnswerPiece::Call("get_environment".to_owned(), "{\"aspect\":\"os\"}".to_owned());
        let vendor = Arc::new(FakeGitHub::new([
            OpenAiTurn::with_pieces([called]),
            OpenAiTurn::text("It is Linux."),
        ]));
        let server = serve_vendor(&vendor);
        let model = format!("{name}/openai/gpt-4o");
        let words = ["run", "--model", &model, "which system?"];
        let command =
            command_at(&house, &server, &words).variable("JAATO_GITHUB_ORGANIZATION", "moon");
        let output = command.run().code(0);
        assert_eq!(output.stdout, "It is Linux.\n");
        let path = "/orgs/moon/inference/chat/completions";
        assert_eq!(vendor.request_paths(), [path, path]);
        assert_eq!(vendor.accepted_requests().len(), 2);
        let last = server.requests().pop().unwrap();
        assert_eq!(last.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
        assert!(!output.to_string().contains(SECRET), "{output}");
        assert_key_not_saved(&house);
        house.assert_no_processes();
    }
}
