//! The arguments of `serve`: standard streams or HTTP, and which tools.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use switchboard::config::values::Toolset;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Serve over HTTP instead, at this address [default: 127.0.0.1:8377]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:8377",
        value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// Allow an address that other machines can reach; the traffic is not encrypted
    #[arg(long, requires = "http")]
    pub(crate) allow_remote: bool,
    /// Serve one server unchanged, under its own names, in place of the `mcp` tool
    #[arg(long, value_name = "SERVER", conflicts_with = "toolset")]
    pub(crate) transparent: Option<String>,
    /// The tools for hosts, instead of the setting `toolset`: the `mcp` tool, also all tools of all
    /// servers, or separate tools for connecting, listing, calling and reading
    #[arg(long, conflicts_with = "transparent", value_parser = toolset())]
    pub(crate) toolset: Option<Toolset>,
    /// The host that starts it, such as `claude-code` or `codex`, instead of the name that it
    /// reports; an unknown host gets safe defaults
    #[arg(long, value_name = "NAME", conflicts_with_all = ["http", "transparent"])]
    pub(crate) host: Option<String>,
    /// Append every message to and from servers to this file, secrets masked, up to 64 MiB
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

fn toolset() -> impl TypedValueParser<Value = Toolset> {
    let served = [Toolset::Auto, Toolset::Proxy, Toolset::Pair, Toolset::Direct, Toolset::Granular];
    PossibleValuesParser::new(served.map(Toolset::as_str))
        .map(|word| Toolset::from_word(&word).expect("a possible value is a toolset"))
}

/// `HOST:PORT`, or a port of this machine.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    let address = port.parse().map(local).or_else(|_| text.parse());
    address.map_err(|_| "expected a port, or an IP address and a port such as 127.0.0.1:8377")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_address_is_a_port_or_ip_and_port() {
        let check = |text: &str, expected: &str| {
            let read = address(text).map_or("refused".to_owned(), |address| address.to_string());
            assert_eq!(read, expected, "{text}");
        };
        check("9000", "127.0.0.1:9000");
        check("0", "127.0.0.1:0");
        check("localhost:9000", "127.0.0.1:9000");
        check("127.0.0.1:9000", "127.0.0.1:9000");
        check("[::1]:9000", "[::1]:9000");
        check("0.0.0.0:9000", "0.0.0.0:9000");
        for refused in ["", "localhost", "127.0.0.1", "example.com:80", "70000", ":80", "::1"] {
            check(refused, "refused");
        }
    }
}
