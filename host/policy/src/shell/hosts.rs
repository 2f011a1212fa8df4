//! The hosts that a command line may name, also without `://`.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Analysis, SimpleCommand, WordKind, programs};

/// A host that a command line names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedHost {
    /// The host, in small letters.
    pub(crate) host: String,
    /// A word names it as the host to talk to.
    pub(crate) is_certain: bool,
}

impl Analysis {
    /// Returns the hosts that the line may name, each once.
    pub(crate) fn hosts(&self) -> Vec<NamedHost> {
        let mut hosts = Vec::new();
        for command in &self.commands {
            let words = command.words.get(1..).unwrap_or_default();
            let is_network = is_network(command);
            for word in words {
                if is_network && !word.text.starts_with('-') {
                    hosts.extend(operand_host(&word.text).map(NamedHost::certain));
                }
                tokens(&word.text, &mut hosts);
                // `-xhost`, and `-sLhost`.
                let glued = word.text.strip_prefix('-').unwrap_or_default();
                let letters = glued.chars().take_while(char::is_ascii_alphanumeric).count().min(8);
                (1..=letters).for_each(|count| tokens(&glued[count..], &mut hosts));
            }
        }
        let others = self.files.iter().map(|file| &file.text).chain(&self.texts);
        others.for_each(|text| tokens(text, &mut hosts));
        hosts.sort();
        hosts.dedup();
        hosts
    }

    /// Returns the first reason why the line may name a host that stands nowhere in it.
    pub(crate) fn unclear_hosts(&self) -> Option<&str> {
        self.unclear_names().or_else(|| self.commands.iter().find_map(unclear_hosts))
    }
}

fn is_network(command: &SimpleCommand) -> bool {
    programs::commands().network.has(&command.program_name().to_ascii_lowercase())
}

/// Programs decode hosts, expand patterns in them and know letters that stand for others.
fn unclear_hosts(command: &SimpleCommand) -> Option<&'static str> {
    let is_odd = |text: &str| {
        text.contains(['%', '{', '[', '*']) && !text.starts_with('[') || !text.is_ascii()
    };
    let mut words = command.words.iter().skip(1);
    let is_unclear = is_network(command)
        && words.any(|word| word.kind != WordKind::Literal || is_odd(authority(&word.text)));
    is_unclear.then_some("nobody knows which host this names")
}

/// Takes the scheme and the path off a word.
fn authority(text: &str) -> &str {
    let rest = match text.find(':') {
        Some(at) if is_scheme(&text[..at]) && text[at + 1..].starts_with(['/', '\\']) => {
            text[at + 1..].trim_start_matches(['/', '\\'])
        }
        _ => text,
    };
    rest.split(['/', '\\', '?', '#']).next().unwrap_or_default()
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Returns the host of a word that a network program talks to.
fn operand_host(text: &str) -> Option<String> {
    let authority = authority(text);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    };
    canonical(host)
}

/// Adds every part of a text that could be a host.
fn tokens(text: &str, hosts: &mut Vec<NamedHost>) {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    for token in text.split(|letter: char| !is_part(letter)) {
        let is_host = token.contains('.') || token.len() > 3;
        let host = canonical(token).filter(|_| is_host);
        hosts.extend(host.map(|host| NamedHost { host, is_certain: false }));
    }
    let is_part = |letter: char| letter.is_ascii_hexdigit() || ":.".contains(letter);
    for token in text.split(|letter: char| !is_part(letter)).filter(|it| it.contains("::")) {
        hosts.extend(canonical(token).map(|host| NamedHost { host, is_certain: false }));
    }
}

/// Writes a host in one form: small letters, no final dot, addresses with four numbers.
pub(crate) fn canonical(host: &str) -> Option<String> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.is_empty() {
        return None;
    }
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return Some(match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => address.to_string(),
        });
    }
    Some(loose_ipv4(&host).map_or(host, |address| address.to_string()))
}

/// Reads an IPv4 address as old programs do: one to four numbers, in octal and hexadecimal, too.
fn loose_ipv4(host: &str) -> Option<Ipv4Addr> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some("") => Some(0),
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(text, 8).ok(),
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    };
    let numbers: Vec<u32> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = numbers.split_last()?;
    if first.len() > 3 || first.iter().any(|number| *number > 255) {
        return None;
    }
    let room = 4 - first.len();
    let is_too_large = room < 4 && u64::from(*last) >= 1 << (8 * room);
    if is_too_large {
        return None;
    }
    let high = first.iter().enumerate().fold(0, |sum, (at, number)| sum | number << (24 - 8 * at));
    Some(Ipv4Addr::from(high | last))
}

impl NamedHost {
    fn certain(host: String) -> Self {
        Self { host, is_certain: true }
    }
}
