//! Chat completions: requests and answers as they are on the wire.

mod options;
mod reply;
mod request;
