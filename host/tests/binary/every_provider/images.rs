//! Tests images that a vendor refuses or would refuse: no conversation fails because of them.

use std::fs;

use jaato_vendors::FakeVendor;
use serde_json::json;

use super::{
    AnswerPart, ModelTurn, PROVIDERS, Provider, text_turn, unchanged_answer, vendor_answer,
};
use crate::support::server::{Answer, Server};
use crate::support::{House, fixtures, library_name};
use crate::vendors::PNG;

/// The beginning of a PNG file as base64.
const ENCODED: &str = "iVBORw0KGgo";

/// Starts a vendor that refuses every request with an image.
fn serve_strictly(provider: &Provider, turns: impl IntoIterator<Item = ModelTurn>) -> Server {
    let vendor = provider.fake_vendor(turns);
    Server::start_with(move |asked| {
        if String::from_utf8_lossy(&asked.body).contains(ENCODED) {
            return Answer::error(400, "messages.0.content.1.image: Could not process image");
        }
        let vendor: &dyn FakeVendor = &*vendor;
        unchanged_answer(vendor_answer(vendor, asked))
    })
}

/// Returns an installation with an image, and the tool that reads it.
fn house_with_image(provider: &Provider, image: &[u8]) -> Option<House> {
    let house = provider.new_house()?;
    let built = fixtures::test_house()?;
    for plugin in ["environment_local", "tool_file_edit"] {
        house.ship(&built.join("plugins").join(library_name(plugin)));
    }
    fs::write(house.workspace().join("moon.png"), image).unwrap();
    Some(house)
}

/// Counts the requests with the image.
fn count_shown_images(provider: &Provider, server: &Server) -> usize {
    let asked = provider.completion_requests(server);
    asked.iter().filter(|it| String::from_utf8_lossy(&it.body).contains(ENCODED)).count()
}

#[test]
fn conversation_continues_without_an_image_that_the_vendor_refuses() {
    for provider in &PROVIDERS {
        let Some(house) = house_with_image(provider, PNG) else { return };
        let server = serve_strictly(provider, [text_turn("one"), text_turn("two")]);
        provider.configure_server(&house, &server);
        let words = ["chat", "--model", provider.model, "--tools", "none"];
        let input = "/attach moon.png\nwhat is it?\nthanks\n";
        let chat = provider.command(&house, &words).input(input).run().code(0);
        assert!(chat.stdout.ends_with("one\ntwo\n"), "{}: {chat}", provider.name);
        let told = "refused the request: trying again without moon.png (image/png)";
        assert!(chat.stderr.contains(told), "{}: {chat}", provider.name);
        assert_eq!(
            (count_shown_images(provider, &server), provider.completion_requests(&server).len()),
            (1, 3),
            "{}",
            provider.name
        );
        let sent = provider.completion_requests(&server).last().unwrap().json().to_string();
        assert!(sent.contains("it was left out: the provider refused it"), "{sent}");
    }
}

/// Starts a vendor that refuses the image of this height in requests with a text.
fn serve_strict_about_height(provider: &Provider, height: u8, text: &'static str) -> Server {
    let vendor = provider.fake_vendor(["one", "two"].map(text_turn));
    let encoded = encoded_beginning(height);
    Server::start_with(move |asked| {
        let body = String::from_utf8_lossy(&asked.body);
        if body.contains(&encoded) && body.contains(text) {
            return Answer::error(400, "Could not process image");
        }
        unchanged_answer(vendor_answer(&*vendor, asked))
    })
}

/// Returns an image of this height, at most 63.
fn png_of_height(height: u8) -> Vec<u8> {
    let mut image = PNG.to_vec();
    image[23] = height;
    image
}

/// Returns the beginning of such an image as base64, up to its height.
fn encoded_beginning(height: u8) -> String {
    const SIGNS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    format!("iVBORw0KGgoAAAANSUhEUgAAAAEAAAA{}", &SIGNS[usize::from(height)..][..1])
}

#[test]
fn only_the_refused_one_of_several_new_images_is_left_out() {
    for provider in &PROVIDERS {
        let Some(house) = house_with_image(provider, PNG) else { return };
        let mut words = "see @moon.png".to_owned();
        for height in 2..=6 {
            fs::write(house.workspace().join(format!("{height}.png")), png_of_height(height))
                .unwrap();
            words.push_str(&format!(" @{height}.png"));
        }
        let server = serve_strict_about_height(provider, 4, "");
        provider.configure_server(&house, &server);
        let words = ["run", "--model", provider.model, "--tools", "none", &words];
        let run = provider.command(&house, &words).run().code(0);
        assert_eq!(run.stdout, "one\n", "{}: {run}", provider.name);
        let told = "refused the request: trying again without 4.png (image/png)\n";
        assert!(run.stderr.contains(told), "{}: {run}", provider.name);
        let sent = provider.completion_requests(&server).last().unwrap().json().to_string();
        let shown: Vec<u8> =
            (1..=6).filter(|height| sent.contains(&encoded_beginning(*height))).collect();
        assert_eq!(shown, [1, 2, 3, 5, 6], "{}: {run}", provider.name);
    }
}

#[test]
fn new_image_stays_when_an_earlier_one_is_refused() {
    for provider in &PROVIDERS {
        let Some(house) = house_with_image(provider, PNG) else { return };
        fs::write(house.workspace().join("sun.png"), png_of_height(2)).unwrap();
        let server = serve_strict_about_height(provider, 2, "now this");
        provider.configure_server(&house, &server);
        let words = ["chat", "--model", provider.model, "--tools", "none"];
        let input = "see @sun.png\nnow this: @moon.png\n";
        let chat = provider.command(&house, &words).input(input).run().code(0);
        assert!(chat.stdout.ends_with("one\ntwo\n"), "{}: {chat}", provider.name);
        let sent = provider.completion_requests(&server).last().unwrap().json().to_string();
        let shown = [1, 2].map(|height| sent.contains(&encoded_beginning(height)));
        assert_eq!(shown, [true, false], "{}: {chat}", provider.name);
    }
}

#[test]
fn refusal_that_names_no_image_is_tried_once_without_the_new_ones() {
    for provider in &PROVIDERS {
        let Some(house) = house_with_image(provider, PNG) else { return };
        fs::write(house.workspace().join("sun.png"), png_of_height(2)).unwrap();
        let server = Server::start_with(|_| Answer::error(400, "this parameter is wrong"));
        provider.configure_server(&house, &server);
        let words =
            ["run", "--model", provider.model, "--tools", "none", "see @moon.png and @sun.png"];
        let run = provider.command(&house, &words).run();
        assert!(run.stderr.contains("this parameter is wrong"), "{}: {run}", provider.name);
        assert_eq!(provider.completion_requests(&server).len(), 2, "{}: {run}", provider.name);
    }
}

#[test]
fn run_continues_without_a_refused_image_that_a_tool_read() {
    for provider in &PROVIDERS {
        let Some(house) = house_with_image(provider, PNG) else { return };
        let read = AnswerPart::Call("readFile", json!({ "path": "moon.png" }));
        let server = serve_strictly(provider, [ModelTurn::Says(vec![read]), text_turn("done")]);
        provider.configure_server(&house, &server);
        let words = ["run", "--model", provider.model, "--tools", "readFile", "look"];
        let run = provider.command(&house, &words).run().code(0);
        assert_eq!(run.stdout, "done\n", "{}: {run}", provider.name);
        assert_eq!(count_shown_images(provider, &server), 1, "{}: {run}", provider.name);
    }
}

#[test]
fn image_that_the_vendor_would_refuse_is_not_sent() {
    let wide = {
        let mut wide = PNG.to_vec();
        wide[16..24].copy_from_slice(&[0, 0, 0x23, 0x29, 0, 0, 0, 20]);
        wide
    };
    for (image, why, only) in [
        (&PNG[..50], "the file is damaged: it ends in the middle", None),
        (&wide, "it has 9001 x 20 pixels, and the model takes at most 8000", Some("anthropic")),
    ] {
        for provider in PROVIDERS.iter().filter(|it| only.is_none_or(|name| name == it.name)) {
            let Some(house) = house_with_image(provider, image) else { return };
            let server = serve_strictly(provider, [text_turn("I do not see it.")]);
            provider.configure_server(&house, &server);
            let words = ["run", "--model", provider.model, "--tools", "none", "see @moon.png"];
            let run = provider.command(&house, &words).run().code(0);
            let told = format!("moon.png (image/png) is not sent: {why}");
            assert!(run.stderr.contains(&told), "{}: {run}", provider.name);
            assert_eq!(
                (
                    count_shown_images(provider, &server),
                    provider.completion_requests(&server).len()
                ),
                (0, 1),
                "{}",
                provider.name
            );
        }
    }
}
