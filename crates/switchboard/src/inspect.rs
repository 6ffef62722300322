//! Sends one request to one server and returns its unchanged response, for authors of servers.
//! Requests that run something pass the gate like every call.

use serde_json::Value;
use switchboard_core::catalog::Resolved;
use switchboard_core::catalog::resolve::Checked;
use switchboard_core::exact::Args;
use switchboard_core::failure::{Code, Failure, Hint, Subject};
use switchboard_core::name::ServerName;
use switchboard_core::render::words::clean_line;
use switchboard_wire::{Raw, RpcError};

use crate::call;
use crate::explain;
use crate::modes;
use crate::relay::{Foreign, Lookup, Reference};
use crate::session::Session;
use crate::upstream::{CallError, Lease};

/// The response of a server to an inspected request.
#[derive(Debug)]
pub enum Inspected {
    /// The `result` of the response.
    Result(Raw),
    /// The `error` of the response, a JSON-RPC error.
    Error(RpcError),
}

#[derive(Debug, thiserror::Error)]
enum InspectError {
    #[error("`{method}` is a notification, which has no response")]
    Notification { method: String },
    #[error("`{written}` is not a method of MCP, but `{meant}` is")]
    Spelling { written: String, meant: &'static str },
    #[error("`{method}` needs the parameter `{key}`, a string")]
    Missing { method: &'static str, key: &'static str },
    #[error("`inspect` cannot send the parameter `{key}` with `{method}`")]
    Unsupported { method: &'static str, key: String },
}

/// A method whose requests need approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gated {
    Tool,
    Resource,
    Prompt,
}

/// How a request of a method is handled.
#[derive(Debug, PartialEq, Eq)]
enum InspectRoute {
    /// The stored handshake answers the request, and nothing is sent.
    Handshake,
    Gated(Gated),
    /// The request runs nothing, so it is sent without approval.
    Open,
}

impl Gated {
    const ALL: [Gated; 3] = [Gated::Tool, Gated::Resource, Gated::Prompt];

    fn method(self) -> &'static str {
        match self {
            Gated::Tool => "tools/call",
            Gated::Resource => "resources/read",
            Gated::Prompt => "prompts/get",
        }
    }

    /// The parameter that names the tool, resource or prompt.
    fn key(self) -> &'static str {
        match self {
            Gated::Tool | Gated::Prompt => "name",
            Gated::Resource => "uri",
        }
    }
}

impl Session {
    /// The result of the handshake, as a result of `initialize`.
    pub async fn inspect(&self, server: &str) -> Result<Raw, Failure> {
        let server = self.gateway().usable(server)?;
        Ok(self.lease(&server).await?.hello().to_initialize_result())
    }

    /// Sends one request and returns the response unchanged. A tool call, resource read or prompt
    /// needs the same approval as any call.
    pub async fn inspect_method(
        &self,
        server: &str,
        method: &str,
        params: Args,
    ) -> Result<Inspected, Failure> {
        let server = self.gateway().usable(server)?;
        let route = route(method).map_err(unusable)?;
        // Connects first, so that rules and pins apply to the current listing.
        let lease = self.lease(&server).await?;
        let answer = match route {
            InspectRoute::Handshake => Ok(lease.hello().to_initialize_result()),
            InspectRoute::Gated(gated) => {
                self.inspect_gated(&server, &lease, gated, params).await?
            }
            InspectRoute::Open => lease.look_up(method, params, &self.caller()).await,
        };
        match answer {
            Ok(result) => Ok(Inspected::Result(result)),
            Err(CallError::Refused(error)) => Ok(Inspected::Error(error)),
            Err(error) => Err(explain::lookup(error, &server)),
        }
    }

    async fn inspect_gated(
        &self,
        server: &ServerName,
        lease: &Lease,
        gated: Gated,
        mut params: Args,
    ) -> Result<Result<Raw, CallError>, Failure> {
        let (method, key) = (gated.method(), gated.key());
        let named = params.take(key).map(|named| named.into_value());
        let Some(Value::String(named)) = named else {
            return Err(unusable(InspectError::Missing { method, key }));
        };
        let arguments = params.take("arguments").map(Args::try_from).transpose();
        let args = arguments.map_err(|_| {
            unusable(InspectError::Unsupported { method, key: "arguments".to_owned() })
        })?;
        if let Some(key) = params.values().keys().next() {
            let key = clean_line(key, 100).into_owned();
            return Err(unusable(InspectError::Unsupported { method, key }));
        }
        let target = self.inspected(server, gated, &named)?;
        let caller = self.caller();
        // The arguments are not checked against the schema, so that the author sees the server's
        // own error.
        let checked = Checked { target, args: args.unwrap_or_default() };
        let approved = call::approve(self, checked, &caller).await?;
        Ok(lease.call(&approved, &caller).await)
    }

    fn inspected(
        &self,
        server: &ServerName,
        gated: Gated,
        named: &str,
    ) -> Result<Resolved, Failure> {
        let catalog = self.catalog();
        match gated {
            Gated::Tool => catalog.own_tool(server, named).ok_or_else(|| {
                explain::unknown_tool(server, named).hint(Hint::ListTools(server.clone()))
            }),
            Gated::Resource => modes::target(&catalog, server, &Reference::Resource(named)),
            Gated::Prompt => modes::target(&catalog, server, &Reference::Prompt(named)),
        }
    }
}

/// How a request of this method is handled. Refuses misspelt MCP methods: a lenient server could
/// accept one, which would bypass the gate.
fn route(method: &str) -> Result<InspectRoute, InspectError> {
    if method.starts_with("notifications/") {
        return Err(InspectError::Notification { method: clean_line(method, 100).into_owned() });
    }
    if let Some(gated) = Gated::ALL.into_iter().find(|gated| gated.method() == method) {
        return Ok(InspectRoute::Gated(gated));
    }
    match method {
        "initialize" => return Ok(InspectRoute::Handshake),
        "ping" => return Ok(InspectRoute::Open),
        _ => {}
    }
    if Lookup::of_method(method).is_some() || Foreign::method(method).is_some() {
        return Ok(InspectRoute::Open);
    }
    let known = Gated::ALL.into_iter().map(Gated::method);
    let known = known.chain(Lookup::ALL.into_iter().map(Lookup::method));
    let mut known = known.chain(["initialize", "ping"]);
    let meant = known.find(|known| method.trim().eq_ignore_ascii_case(known)).unwrap_or("ping");
    Err(InspectError::Spelling { written: clean_line(method, 100).into_owned(), meant })
}

fn unusable(error: InspectError) -> Failure {
    Failure::new(Code::BadRequest, Subject::Request, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_mcp_method_is_not_sent() {
        let check = |method: &str, expected: &str| {
            let route =
                route(method).map_or_else(|error| error.to_string(), |route| format!("{route:?}"));
            assert_eq!(route, expected, "{method:?}");
        };
        check("tools/call", "Gated(Tool)");
        check("resources/read", "Gated(Resource)");
        check("prompts/get", "Gated(Prompt)");
        check("initialize", "Handshake");
        check("tools/list", "Open");
        check("acme/forecast", "Open");
        check("Tools/Call", "`Tools/Call` is not a method of MCP, but `tools/call` is");
        check(" prompts/get", "`prompts/get` is not a method of MCP, but `prompts/get` is");
        check("notifications/x", "`notifications/x` is a notification, which has no response");
    }
}
