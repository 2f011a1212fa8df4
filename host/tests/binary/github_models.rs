//! Runs against GitHub Models as it was documented, and as it is: no more.

use std::sync::Arc;

use jaato_plugin_testkit::vendors::github::{GitHub, Way};
use jaato_plugin_testkit::vendors::openai::{Said, Turn};

use crate::house;
use crate::openai::{SECRET, no_file_holds_the_key};
use crate::support::server::Server;
use crate::support::{Command, House};
use crate::vendors::{self, Form};

const RUN: [&str; 4] = ["run", "--model", "github-models/openai/gpt-4o", "hello"];

fn furnish(house: &House) {
    vendors::furnish(house, "provider_github_models");
}

fn serve(vendor: &Arc<GitHub>, form: Form) -> Server {
    let vendor = Arc::clone(vendor);
    vendors::serve(move |asked| vendor.answer(asked), form)
}

/// Begins a command line that is led to a server, with a token.
fn at(house: &House, server: &Server, words: &[&str]) -> Command {
    house
        .command(words)
        .variable("JAATO_GITHUB_ENDPOINT", format!("{}/inference", server.root_url()))
        .variable("GITHUB_TOKEN", SECRET)
}

#[test]
fn a_call_and_an_answer_are_attributed_to_the_organization() {
    for (form, name) in [(Form::Whole, "github-models"), (Form::Torn, "github_models")] {
        let house = house!();
        furnish(&house);
        let called = Said::Call("get_environment".to_owned(), "{\"aspect\":\"os\"}".to_owned());
        let vendor = Arc::new(GitHub::new([Turn::says([called]), Turn::text("It is Linux.")]));
        let server = serve(&vendor, form);
        let model = format!("{name}/openai/gpt-4o");
        let words = ["run", "--model", &model, "which system?"];
        let command = at(&house, &server, &words).variable("JAATO_GITHUB_ORGANIZATION", "moon");
        let output = command.run().code(0);
        assert_eq!(output.stdout, "It is Linux.\n");
        let path = "/orgs/moon/inference/chat/completions";
        assert_eq!(vendor.paths(), [path, path]);
        assert_eq!(vendor.accepted().len(), 2);
        let last = server.asked().pop().unwrap();
        assert_eq!(last.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
        assert!(!output.to_string().contains(SECRET), "{output}");
        no_file_holds_the_key(&house);
        house.nothing_lives();
    }
}

#[test]
fn the_service_that_is_no_more_is_one_line_and_is_not_asked_again() {
    let house = house!();
    furnish(&house);
    let vendor = Arc::new(GitHub::new([]).behind([Way::Retired]));
    let server = serve(&vendor, Form::Whole);
    let output = at(&house, &server, &RUN).run();
    assert_ne!(output.code, 0, "{output}");
    assert!(output.stderr.contains("GitHub Models was retired on 2026-07-30"), "{output}");
    assert!(output.stderr.contains("`JAATO_GITHUB_ENDPOINT`"), "{output}");
    assert_eq!(vendor.paths().len(), 1);
}

#[test]
fn a_token_without_permission_is_told_with_the_enterprise() {
    let house = house!();
    furnish(&house);
    let vendor = Arc::new(GitHub::new([]).behind([Way::Forbidden]));
    let server = serve(&vendor, Form::Whole);
    let command = at(&house, &server, &RUN).variable("JAATO_GITHUB_ENTERPRISE", "sky");
    let output = command.run();
    assert!(output.stderr.contains("`models: read`, as has the enterprise `sky`"), "{output}");
}

#[test]
fn a_limit_by_the_minute_is_waited_for() {
    let house = house!();
    furnish(&house);
    let ways = [Way::Limited("UserByMinute", 0), Way::Open];
    let vendor = Arc::new(GitHub::new([Turn::text("hello")]).behind(ways));
    let server = serve(&vendor, Form::Whole);
    assert_eq!(at(&house, &server, &RUN).run().code(0).stdout, "hello\n");
    assert_eq!(vendor.paths().len(), 2);
}
