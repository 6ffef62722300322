//! Restricts the addresses to which requests on behalf of a server may go. Documents from the
//! network cannot permit further addresses.

// `core::net` is used because `std::net` would bring sockets into this crate.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// The class of an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Public,
    Loopback,
    /// Private networks: RFC 1918, carrier-grade NAT (RFC 6598), and unique local addresses.
    Private,
    /// Addresses that are never permitted: link-local, cloud metadata services, multicast, tunnels,
    /// documentation and unassigned ranges.
    Reserved,
}

/// The class of an address. An IPv6 address that contains an IPv4 address has the class of the IPv4
/// address.
pub fn class_of(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => class_of_v6(address),
    }
}

/// The class of an IPv4 address by the registry of special-purpose addresses (RFC 6890). Some
/// metadata services are not in the registry.
fn class_of_v4(address: Ipv4Addr) -> Class {
    match address.octets() {
        // Metadata services of Alibaba Cloud and Azure.
        [100, 100, 100, 200] | [168, 63, 129, 16] => Class::Reserved,
        [127, ..] => Class::Loopback,
        [10, ..] | [100, 64..=127, ..] | [172, 16..=31, ..] | [192, 168, ..] => Class::Private,
        // The ranges of "this host", link-local, IETF assignments, documentation, 6to4 relays and
        // benchmarking.
        [0, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Class::Reserved,
        // The ranges of multicast, future use and broadcast.
        [224..=255, ..] => Class::Reserved,
        _ => Class::Public,
    }
}

/// The class of an IPv6 address. Only `2000::/3` is assigned; Teredo and the other ranges in
/// `2001::/23` are excluded.
fn class_of_v6(address: Ipv6Addr) -> Class {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        // The ranges that contain an IPv4 address: IPv4-compatible (RFC 4291), IPv4-mapped, NAT64
        // (RFC 6052) and 6to4 (RFC 3056).
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            class_of_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Metadata services of AWS and Google Cloud.
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, ..] => Class::Reserved,
        [0xfc00..=0xfdff, ..] => Class::Private,
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Reserved,
        [0x2000..=0x3fff, ..] => Class::Public,
        _ => Class::Reserved,
    }
}

/// The addresses to which requests on behalf of one server may go.
///
/// Loopback addresses are permitted if the server's URL names one. Private addresses are permitted
/// if the server's URL has one. They are also permitted for hostnames that the user configured,
/// because these may belong to the user's own network.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The class of the host in the server's URL. A hostname is not resolved for this.
    server: Class,
    /// The hostnames in URLs that the user configured, including the server's.
    hosts: Vec<String>,
}

impl Reach {
    /// The permitted addresses for the server with this configured URL.
    pub fn of(server: &Url) -> Reach {
        let class = server.host().map_or(Class::Public, |host| class_of_host(&host));
        Reach { server: class, hosts: Vec::new() }.and(server)
    }

    /// Adds the hostname of another URL in the user's files. This does not permit loopback
    /// addresses.
    #[must_use]
    pub fn and(mut self, named_by_the_user: &Url) -> Reach {
        self.hosts.extend(named_by_the_user.host_str().map(plain));
        self
    }

    /// Whether requests to the hostname `host` may go to this address. If a hostname resolves to
    /// several addresses, all of them must be permitted, because a mixture indicates an attack.
    pub fn admits(&self, host: &str, address: IpAddr) -> bool {
        let host = plain(host);
        match class_of(address) {
            Class::Loopback => self.has_loopback(),
            // A hostname such as `localhost` always means this machine, whatever DNS says (RFC
            // 6761, 6.3).
            Class::Public => !is_local(&host),
            Class::Private => {
                !is_local(&host) && (self.server == Class::Private || self.hosts.contains(&host))
            }
            Class::Reserved => false,
        }
    }

    /// Whether the host in a URL is permitted. The addresses of a hostname are checked only when it
    /// is resolved.
    pub(super) fn admits_host(&self, host: &Host<&str>) -> bool {
        match host {
            Host::Ipv4(address) => self.admits(&host.to_string(), (*address).into()),
            Host::Ipv6(address) => self.admits(&host.to_string(), (*address).into()),
            Host::Domain(name) => self.has_loopback() || !is_local(name),
        }
    }

    /// Whether the server's URL leads to this machine.
    pub fn has_loopback(&self) -> bool {
        self.server == Class::Loopback
    }
}

/// The class of the host in a URL. A hostname is not resolved for this.
pub(super) fn class_of_host(host: &Host<&str>) -> Class {
    match host {
        Host::Ipv4(address) => class_of((*address).into()),
        Host::Ipv6(address) => class_of((*address).into()),
        Host::Domain(name) if is_local(name) => Class::Loopback,
        Host::Domain(_) => Class::Public,
    }
}

fn is_local(name: &str) -> bool {
    let name = plain(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// The canonical form of a hostname.
fn plain(host: &str) -> String {
    let host =
        Host::parse(host).map_or_else(|_| host.to_ascii_lowercase(), |host| host.to_string());
    host.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
