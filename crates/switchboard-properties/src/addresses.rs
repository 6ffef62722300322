//! Which URLs of foreign documents are allowed, decided a second time by a list of networks.

use std::net::{IpAddr, Ipv6Addr};

use switchboard_core::sign_in::address::{Class, Reach, class_of};
use switchboard_core::sign_in::link::{LONGEST, Link, endpoint};
use url::Url;

/// The networks that are not public, all as IPv6. The network with the longest prefix decides the
/// class of an address.
const NETWORKS: &[(&str, u32, Class)] = &[
    ("::", 0, Class::Reserved),
    ("2000::", 3, Class::Public),
    ("::1", 128, Class::Loopback),
    ("2001::", 23, Class::Reserved),
    ("2001:db8::", 32, Class::Reserved),
    ("3fff::", 20, Class::Reserved),
    ("fc00::", 7, Class::Private),
    ("fd00:ec2::", 32, Class::Reserved),
    ("fd20:ce::", 32, Class::Reserved),
    ("::ffff:0.0.0.0", 96, Class::Public),
    ("::ffff:0.0.0.0", 104, Class::Reserved),
    ("::ffff:10.0.0.0", 104, Class::Private),
    ("::ffff:100.64.0.0", 106, Class::Private),
    ("::ffff:100.100.100.200", 128, Class::Reserved),
    ("::ffff:127.0.0.0", 104, Class::Loopback),
    ("::ffff:168.63.129.16", 128, Class::Reserved),
    ("::ffff:169.254.0.0", 112, Class::Reserved),
    ("::ffff:172.16.0.0", 108, Class::Private),
    ("::ffff:192.0.0.0", 120, Class::Reserved),
    ("::ffff:192.0.2.0", 120, Class::Reserved),
    ("::ffff:192.88.99.0", 120, Class::Reserved),
    ("::ffff:192.168.0.0", 112, Class::Private),
    ("::ffff:198.18.0.0", 111, Class::Reserved),
    ("::ffff:198.51.100.0", 120, Class::Reserved),
    ("::ffff:203.0.113.0", 120, Class::Reserved),
    ("::ffff:224.0.0.0", 100, Class::Reserved),
    ("::ffff:240.0.0.0", 100, Class::Reserved),
];

/// IPv6 networks with an embedded IPv4 address, and the bit at which the IPv4 address begins.
const WRAPPED: &[(&str, u32, u32)] = &[("::", 96, 96), ("64:ff9b::", 96, 96), ("2002::", 16, 16)];

/// The first line is the URL of a server; every other line is a URL of a document, or an IP address.
/// The core and this module classify each of them alike.
pub(crate) fn agree_with_a_list_of_networks(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.split('\n');
    let server = lines.next().and_then(|line| Url::parse(line).ok());
    let server = server.filter(|server| matches!(server.scheme(), "http" | "https"));
    let server = server.unwrap_or_else(|| Url::parse("https://mcp.example/").expect("is one"));
    let reach = Reach::of(&server);
    for line in lines.take(64) {
        if let Ok(address) = line.parse() {
            assert_eq!(class_of(address), class(address), "{address}");
        }
        let expected = within_reach(line, &server);
        let link = Link::of(line, &reach);
        assert_eq!(link.is_ok(), expected, "{line:?} for {server}: {link:?}");
        let endpoint = endpoint(line, &reach);
        assert_eq!(endpoint.is_ok(), expected && !line.contains('#'), "{line:?} for {server}");
        if let Err(bad) = link {
            let said = bad.to_string();
            assert!(said.chars().count() < 200 && !said.contains(char::is_control), "{said:?}");
        }
    }
    let mut bytes = [0; 16];
    for piece in input.chunks(16).take(64) {
        bytes.iter_mut().zip(piece).for_each(|(byte, given)| *byte = *given);
        let [a, b, c, d, ..] = bytes;
        for address in [IpAddr::from(bytes), IpAddr::from([a, b, c, d])] {
            assert_eq!(class_of(address), class(address), "{address}");
        }
    }
}

fn class(address: IpAddr) -> Class {
    let number = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .to_bits();
    let wrapped = WRAPPED.iter().find(|(network, length, _)| holds(network, *length, number));
    if let Some((_, _, start)) = wrapped.filter(|_| number != 1) {
        let inner = (number << start) >> 96;
        return class(IpAddr::from(Ipv6Addr::from_bits(0xffff_0000_0000 | inner)));
    }
    let networks = NETWORKS.iter().filter(|(network, length, _)| holds(network, *length, number));
    networks.max_by_key(|(_, length, _)| *length).expect("`::/0` holds every address").2
}

fn holds(network: &str, length: u32, number: u128) -> bool {
    let network: Ipv6Addr = network.parse().expect("is one");
    let ignored = 128 - length;
    network.to_bits().checked_shr(ignored) == number.checked_shr(ignored)
}

/// Whether the URL is allowed. The hostname is taken from the text of the URL, not from its parsed
/// form.
fn within_reach(text: &str, server: &Url) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let strange = |c: char| !c.is_ascii_graphic() || "\"<>\\^`{|}!$'();".contains(c);
    if text.contains(strange) || url.as_str().contains(strange) {
        return false;
    }
    if text.len().max(url.as_str().len()) > LONGEST {
        return false;
    }
    let secure = url.as_str().starts_with("https://");
    if !secure && !url.as_str().starts_with("http://") {
        return false;
    }
    let Some((host, class_of_host)) = host(&url) else { return false };
    if !begins_with(text, &url, &host) {
        return false;
    }
    let (own, class_of_server) = host_of_server(server);
    match class_of_host {
        // The class of a hostname is unknown before the DNS lookup.
        None => secure,
        Some(Class::Public) => secure,
        Some(Class::Loopback) => class_of_server == Some(Class::Loopback),
        Some(Class::Private) => secure && (class_of_server == Some(Class::Private) || host == own),
        Some(Class::Reserved) => false,
    }
}

/// Whether the text begins with the scheme and hostname that were parsed from it. IPv6 addresses may
/// differ in spelling.
fn begins_with(text: &str, url: &Url, host: &str) -> bool {
    let text = text.to_ascii_lowercase();
    if host.contains(':') {
        return text.starts_with(&format!("{}://[", url.scheme()));
    }
    let rest = text.strip_prefix(&format!("{}://{host}", url.scheme()));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#', ':']))
}

/// The hostname, and its class if it is an IP address or local; `None` for a URL with a user.
fn host(url: &Url) -> Option<(String, Option<Class>)> {
    let (_, rest) = url.as_str().split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    if authority.contains('@') {
        return None;
    }
    let host = match authority.rfind(']') {
        Some(end) => authority.get(1..end)?,
        None => authority.split(':').next()?,
    };
    let name = host.trim_end_matches('.');
    let local = name.rsplit('.').next() == Some("localhost");
    let class = match host.parse() {
        Ok(address) => Some(class(address)),
        Err(_) => local.then_some(Class::Loopback),
    };
    Some((host.to_owned(), class))
}

fn host_of_server(server: &Url) -> (String, Option<Class>) {
    let mut server = server.clone();
    // User and password of a URL do not change its hostname.
    let _may_have_no_host = server.set_username("").and(server.set_password(None));
    host(&server).unwrap_or_default()
}
