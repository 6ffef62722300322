//! The classes of addresses, and the addresses that a server's URL permits.

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn reach(server: &str) -> Reach {
    Reach::of(&Url::parse(server).unwrap())
}

#[test]
fn ipv4_ranges_are_classified_at_exact_bounds() {
    use Class::{Loopback, Private, Public, Reserved};
    // The first and last address of each range, with the classes before and after the range.
    let ranges = [
        ("0.0.0.0", "0.255.255.255", Reserved, Reserved, Public),
        ("10.0.0.0", "10.255.255.255", Private, Public, Public),
        ("100.64.0.0", "100.100.100.199", Private, Public, Reserved),
        ("100.100.100.201", "100.127.255.255", Private, Reserved, Public),
        ("127.0.0.0", "127.255.255.255", Loopback, Public, Public),
        ("168.63.129.16", "168.63.129.16", Reserved, Public, Public),
        ("169.254.0.0", "169.254.255.255", Reserved, Public, Public),
        ("172.16.0.0", "172.31.255.255", Private, Public, Public),
        ("192.0.0.0", "192.0.0.255", Reserved, Public, Public),
        ("192.0.2.0", "192.0.2.255", Reserved, Public, Public),
        ("192.88.99.0", "192.88.99.255", Reserved, Public, Public),
        ("192.168.0.0", "192.168.255.255", Private, Public, Public),
        ("198.18.0.0", "198.19.255.255", Reserved, Public, Public),
        ("198.51.100.0", "198.51.100.255", Reserved, Public, Public),
        ("203.0.113.0", "203.0.113.255", Reserved, Public, Public),
        ("224.0.0.0", "255.255.255.255", Reserved, Public, Reserved),
    ];
    let of = |number: u32| class_of(Ipv4Addr::from_bits(number).into());
    for (first, last, class, before, behind) in ranges {
        let [from, to]: [Ipv4Addr; 2] = [first, last].map(|text| text.parse().unwrap());
        let ends = [of(from.to_bits()), of(to.to_bits())];
        assert_eq!(ends, [class; 2], "{first} to {last}");
        let around = [of(from.to_bits().wrapping_sub(1)), of(to.to_bits().wrapping_add(1))];
        assert_eq!(around, [before, behind], "around {first} to {last}");
    }
}

#[test]
fn ipv6_addresses_are_classified_including_embedded_ipv4() {
    use Class::{Loopback, Private, Public, Reserved};
    let cases = [
        ("::", Reserved),
        ("::1", Loopback),
        ("::2", Reserved),
        ("::ffff:127.0.0.1", Loopback),
        ("::ffff:10.0.0.1", Private),
        ("::ffff:169.254.169.254", Reserved),
        ("::ffff:0.0.0.0", Reserved),
        ("::ffff:9.9.9.9", Public),
        ("::ffff:0:9.9.9.9", Reserved),
        ("::127.0.0.1", Loopback),
        ("::10.0.0.1", Private),
        ("::9.9.9.9", Public),
        ("64:ff9b::7f00:1", Loopback),
        ("64:ff9b::a00:1", Private),
        ("64:ff9b::a9fe:a9fe", Reserved),
        ("64:ff9b::909:909", Public),
        ("64:ff9b::1:0:0", Reserved),
        ("64:ff9b:1::909:909", Reserved),
        ("100::1", Reserved),
        ("1fff:ffff::", Reserved),
        ("2000::", Public),
        ("2001::1", Reserved),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Reserved),
        ("2001:2::1", Reserved),
        ("2001:1ff:ffff::", Reserved),
        ("2001:200::", Public),
        ("2001:db8::1", Reserved),
        ("2001:db9::1", Public),
        ("2002:7f00:1::", Loopback),
        ("2002:c0a8:1::1", Private),
        ("2002:a9fe:a9fe::", Reserved),
        ("2002:909:909::1", Public),
        ("2606:4700:4700::1111", Public),
        ("3fff::1", Reserved),
        ("3fff:fff::1", Reserved),
        ("3fff:1000::", Public),
        ("4000::", Reserved),
        ("5f00::1", Reserved),
        ("fbff:ffff::", Reserved),
        ("fc00::", Private),
        ("fd00:ec1::254", Private),
        ("fd00:ec2::254", Reserved),
        ("fd20:ce::254", Reserved),
        ("fdff:ffff::", Private),
        ("fe80::1", Reserved),
        ("fec0::1", Reserved),
        ("ff02::1", Reserved),
    ];
    for (address, class) in cases {
        assert_eq!(class_of(ip(address)), class, "{address}");
    }
}

#[test]
fn server_url_decides_which_address_classes_are_admitted() {
    let (public, loopback, private, reserved) =
        ("9.9.9.9", "127.0.0.1", "10.1.1.1", "169.254.169.254");
    // A server's URL, the class of an address, and whether requests to the server's hostname and to
    // another hostname may go there.
    let cases = [
        ("https://mcp.example/mcp", private, [true, false]),
        ("https://mcp.example/mcp", loopback, [false, false]),
        ("https://mcp.example/mcp", reserved, [false, false]),
        ("https://mcp.example/mcp", public, [true, true]),
        ("https://9.9.9.9/mcp", private, [true, false]),
        ("https://9.9.9.9/mcp", loopback, [false, false]),
        ("http://127.0.0.1:9000/mcp", loopback, [true, true]),
        ("http://127.0.0.1:9000/mcp", private, [true, false]),
        ("http://127.0.0.1:9000/mcp", public, [true, true]),
        ("http://127.9.9.9/mcp", "::1", [true, true]),
        ("http://[::1]/mcp", loopback, [true, true]),
        ("http://[::ffff:127.0.0.1]/mcp", loopback, [true, true]),
        ("http://2130706433/mcp", loopback, [true, true]),
        ("http://0x7f.1/mcp", loopback, [true, true]),
        ("http://localhost/mcp", loopback, [true, true]),
        ("http://LOCALHOST./mcp", loopback, [true, true]),
        ("http://mcp.localhost/mcp", loopback, [true, true]),
        ("http://ⓛocalhost/mcp", loopback, [true, true]),
        // DNS cannot make `localhost` mean another machine.
        ("http://localhost/mcp", public, [false, true]),
        ("http://localhost/mcp", private, [false, false]),
        ("https://localhost.example/mcp", loopback, [false, false]),
        ("https://10.0.0.1/mcp", private, [true, true]),
        ("https://[fd00::1]/mcp", private, [true, true]),
        ("https://100.64.0.1/mcp", private, [true, true]),
        ("https://10.0.0.1/mcp", loopback, [false, false]),
        ("https://10.0.0.1/mcp", reserved, [false, false]),
        // Reserved addresses are not permitted even if the user configured one.
        ("http://169.254.169.254/mcp", reserved, [false, false]),
        ("http://169.254.169.254/mcp", loopback, [false, false]),
        ("http://169.254.169.254/mcp", private, [true, false]),
        ("http://0.0.0.0/mcp", loopback, [false, false]),
        ("unix:/run/mcp", private, [false, false]),
    ];
    for (server, address, expected) in cases {
        let url = Url::parse(server).unwrap();
        let reach = Reach::of(&url);
        let own = url.host_str().unwrap_or_default();
        let admitted = [own, "auth.example"].map(|host| reach.admits(host, ip(address)));
        assert_eq!(admitted, expected, "{server} and {address}");
    }
}

#[test]
fn configured_hostname_is_matched_in_every_spelling() {
    let reach = reach("https://mcp.example/mcp")
        .and(&Url::parse("https://bücher.example/metadata").unwrap())
        .and(&Url::parse("https://[fd00::1]/metadata").unwrap())
        .and(&Url::parse("https://10.0.0.1/metadata").unwrap())
        .and(&Url::parse("http://127.0.0.1/metadata").unwrap());
    let private = ip("10.0.0.1");
    for host in [
        "mcp.example",
        "MCP.Example",
        "mcp.example.",
        "mcp。example",
        "bücher.example",
        "xn--bcher-kva.example",
        "XN--BCHER-KVA.EXAMPLE.",
        "[fd00:0:0::1]",
        "10.0.0.1",
        "0xa.1",
        "167772161",
        "10.0.0.1",
    ] {
        assert!(reach.admits(host, private), "{host}");
    }
    for host in ["", ".", "example", "a.mcp.example", "mcp.example.org", "10.0.0.2", "mcp example"]
    {
        assert!(!reach.admits(host, private), "{host}");
    }
    assert!(!reach.admits("127.0.0.1", ip("127.0.0.1")), "the user's file adds no loopback");
}
