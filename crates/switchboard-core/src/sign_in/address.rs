//! Where requests on behalf of a server may go, whatever the documents of others say.

// Addresses, without the sockets of `std`.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Public,
    Loopback,
    /// Networks of homes, companies and providers.
    Private,
    /// Nothing that a document may send us to: links, metadata services, groups, tunnels, examples,
    /// and what nobody has been given yet.
    Reserved,
}

/// The class of an address; one that stands for an address of version 4 has the class of that one.
pub fn class_of(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => class_of_v6(address),
    }
}

/// The registry of special addresses (RFC 6890), and metadata services that lie outside of it.
fn class_of_v4(address: Ipv4Addr) -> Class {
    match address.octets() {
        // The metadata services of Alibaba Cloud and Azure.
        [100, 100, 100, 200] | [168, 63, 129, 16] => Class::Reserved,
        [127, ..] => Class::Loopback,
        [10, ..] | [100, 64..=127, ..] | [172, 16..=31, ..] | [192, 168, ..] => Class::Private,
        // This host, links, assignments of the IETF, examples, relays, benchmarks.
        [0, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Class::Reserved,
        // Groups, the future, everybody.
        [224..=255, ..] => Class::Reserved,
        _ => Class::Public,
    }
}

/// Only `2000::/3` has been given out; Teredo and its neighbours in `2001::/23` are taken out of it.
fn class_of_v6(address: Ipv6Addr) -> Class {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        // Compatible (RFC 4291), mapped, NAT64 (RFC 6052), 6to4 (RFC 3056).
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            class_of_v4(Ipv4Addr::new(a, b, c, d))
        }
        // The metadata services of AWS and Google Cloud.
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, ..] => Class::Reserved,
        [0xfc00..=0xfdff, ..] => Class::Private,
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Reserved,
        [0x2000..=0x3fff, ..] => Class::Public,
        _ => Class::Reserved,
    }
}

/// Where requests on behalf of one server may go.
///
/// Loopback is within reach if the server's URL names it, private addresses if the URL has one, or
/// for hosts that the user wrote, whose names may lead into their own network.
#[derive(Clone, Debug)]
pub struct Reach {
    /// What can be said of the server's URL without looking its name up.
    server: Class,
    /// The hosts that the user wrote.
    hosts: Vec<String>,
}

impl Reach {
    /// The reach of the server with this configured URL.
    pub fn of(server: &Url) -> Reach {
        let class = match server.host() {
            Some(Host::Ipv4(address)) => class_of(address.into()),
            Some(Host::Ipv6(address)) => class_of(address.into()),
            Some(Host::Domain(name)) if is_local(name) => Class::Loopback,
            Some(Host::Domain(_)) | None => Class::Public,
        };
        Reach { server: class, hosts: Vec::new() }.and(server)
    }

    /// The same with the host of an address that the user's own file names. It adds no loopback.
    #[must_use]
    pub fn and(mut self, named_by_the_user: &Url) -> Reach {
        self.hosts.extend(named_by_the_user.host_str().map(plain));
        self
    }

    /// Whether this is one of the addresses that requests to `host` may go to. A name that stands for
    /// one that is not must not be used at all: whoever gives good and bad ones means the bad.
    pub fn admits(&self, host: &str, address: IpAddr) -> bool {
        let host = plain(host);
        match class_of(address) {
            Class::Loopback => self.has_loopback(),
            // RFC 6761, 6.3: such names are this machine, whoever answers for them.
            Class::Public => !is_local(&host),
            Class::Private => {
                !is_local(&host) && (self.server == Class::Private || self.hosts.contains(&host))
            }
            Class::Reserved => false,
        }
    }

    /// Whether what the URL shows of its host is within reach. What a name stands for is seen only
    /// when it is looked up.
    pub(super) fn admits_host(&self, host: &Host<&str>) -> bool {
        match host {
            Host::Ipv4(address) => self.admits(&host.to_string(), (*address).into()),
            Host::Ipv6(address) => self.admits(&host.to_string(), (*address).into()),
            Host::Domain(name) => self.has_loopback() || !is_local(name),
        }
    }

    /// Whether the server is on this machine, by its URL.
    pub fn has_loopback(&self) -> bool {
        self.server == Class::Loopback
    }
}

/// Whether a host is this machine, by what its URL shows.
pub(super) fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => class_of((*address).into()) == Class::Loopback,
        Host::Ipv6(address) => class_of((*address).into()) == Class::Loopback,
        Host::Domain(name) => is_local(name),
    }
}

fn is_local(name: &str) -> bool {
    let name = plain(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// The one spelling of a host.
fn plain(host: &str) -> String {
    let host =
        Host::parse(host).map_or_else(|_| host.to_ascii_lowercase(), |host| host.to_string());
    host.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
