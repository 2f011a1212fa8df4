//! Chat completions: requests as they are sent, answers as servers send them.

mod options;
mod reply;
mod request;
