//! Decides which addresses are on the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges of IPv4 that are not public: (first address, length of the prefix). See IANA's registry
/// of special-purpose addresses. Clouds serve their metadata in 169.254.0.0/16.
const RESERVED_V4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
    // Azure's metadata and health probes, which the registry does not know.
    ([168, 63, 129, 16], 32),
];

/// Ranges within 2000::/3 that are not public.
const RESERVED_V6: [([u16; 2], u32); 3] = [
    // Special protocols, among them Teredo, whose inner address may be private.
    ([0x2001, 0], 23),
    ([0x2001, 0xdb8], 32),
    ([0x3fff, 0], 20),
];

/// Returns true if an address is on the public internet. An IPv6 address that contains an IPv4
/// address is public if both are.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let is_in = |(first, prefix): ([u8; 4], u32)| {
        let host_bits = 32 - prefix;
        bits.checked_shr(host_bits) == Ipv4Addr::from(first).to_bits().checked_shr(host_bits)
    };
    !RESERVED_V4.into_iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    match parts {
        // Mapped addresses, and NAT64, which reaches the inner address.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            return is_public_v4(embedded_v4(high, low));
        }
        // 6to4 reaches the inner address.
        [0x2002, high, low, ..] => return is_public_v4(embedded_v4(high, low)),
        _ => {}
    }
    let start = u32::from(parts[0]) << 16 | u32::from(parts[1]);
    let is_in = |([first, second], prefix): ([u16; 2], u32)| {
        let host_bits = 32 - prefix;
        start.checked_shr(host_bits)
            == (u32::from(first) << 16 | u32::from(second)).checked_shr(host_bits)
    };
    // Everything else, such as local addresses and multicast, is outside of 2000::/3.
    parts[0] >> 13 == 1 && !RESERVED_V6.into_iter().any(is_in)
}

fn embedded_v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_addresses(addresses: &[&str], expected: bool) {
        for text in addresses {
            assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn public_addresses_are_public_in_every_form() {
        check_addresses(
            &["1.1.1.1", "93.184.216.34", "100.128.0.1", "172.32.0.1", "198.20.0.1"],
            true,
        );
        check_addresses(&["2606:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888"], true);
        check_addresses(&["::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1"], true);
    }

    #[test]
    fn private_loopback_link_local_and_metadata_addresses_are_not_public() {
        check_addresses(
            &["0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255"],
            false,
        );
        check_addresses(&["127.0.0.1", "127.255.0.9", "169.254.169.254", "172.16.0.1"], false);
        check_addresses(&["172.31.255.255", "192.0.0.192", "192.168.1.1", "198.19.0.1"], false);
        check_addresses(&["224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"], false);
        check_addresses(&["168.63.129.16", "192.0.2.1", "198.51.100.1", "203.0.113.1"], false);
        check_addresses(
            &["::", "::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1"],
            false,
        );
        check_addresses(&["2001::1", "2001:db8::1", "100::1", "64:ff9b:1::1", "3fff::1"], false);
    }

    #[test]
    fn inner_address_decides_about_mapped_and_translated_addresses() {
        check_addresses(&["::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1"], false);
        check_addresses(&["64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1"], false);
        check_addresses(&["2002:a9fe:a9fe::", "2002:c0a8:101::"], false);
    }
}
