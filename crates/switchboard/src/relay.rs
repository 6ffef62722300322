//! Forwards MCP methods to one server unchanged, for `serve --transparent`. Requests that run
//! something pass the pipeline.

mod rows;

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_core::catalog::Catalog;
use switchboard_core::catalog::pin::Pin;
use switchboard_core::catalog::resolve::Checked;
use switchboard_core::config::values::Pins;
use switchboard_core::exact::Args;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use switchboard_core::nesting;
use switchboard_core::render::caution;
use switchboard_wire::Raw;

use self::rows::PinnedList;
use crate::call;
use crate::explain;
use crate::log_level::LogLevel;
use crate::modes;
use crate::session::Session;
use crate::subscription::{Subscription, Wish};
use crate::upstream::lease::Caller;

/// A method that needs no approval, because it runs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The method `tools/list`.
    Tools,
    /// The method `resources/list`.
    Resources,
    /// The method `resources/templates/list`.
    ResourceTemplates,
    /// The method `prompts/list`.
    Prompts,
    /// The method `completion/complete`.
    Completion,
    /// The method `logging/setLevel`.
    LogLevel,
    /// The method `resources/subscribe`.
    Subscribe,
    /// The method `resources/unsubscribe`.
    Unsubscribe,
}

impl Lookup {
    /// All lookups.
    pub const ALL: [Lookup; 8] = [
        Lookup::Tools,
        Lookup::Resources,
        Lookup::ResourceTemplates,
        Lookup::Prompts,
        Lookup::Completion,
        Lookup::LogLevel,
        Lookup::Subscribe,
        Lookup::Unsubscribe,
    ];

    /// The name of the MCP method.
    pub fn method(self) -> &'static str {
        match self {
            Lookup::Tools => "tools/list",
            Lookup::Resources => "resources/list",
            Lookup::ResourceTemplates => "resources/templates/list",
            Lookup::Prompts => "prompts/list",
            Lookup::Completion => "completion/complete",
            Lookup::LogLevel => "logging/setLevel",
            Lookup::Subscribe => "resources/subscribe",
            Lookup::Unsubscribe => "resources/unsubscribe",
        }
    }

    /// Whether the server must remember the effect of the lookup for the session.
    fn is_kept(self) -> bool {
        matches!(self, Lookup::LogLevel | Lookup::Unsubscribe)
    }

    /// The lookup with this MCP method; `None` if the method is no lookup.
    pub fn of_method(method: &str) -> Option<Lookup> {
        Lookup::ALL.into_iter().find(|lookup| lookup.method() == method)
    }
}

/// The MCP methods that are not lookups: the session itself answers `initialize` and `ping`;
/// requests of the other methods pass the pipeline.
const OURS: [&str; 5] = ["initialize", "ping", "tools/call", "resources/read", "prompts/get"];

/// A method that only the server defines, not an MCP revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign<'m>(&'m str);

impl<'m> Foreign<'m> {
    /// Accepts a method that MCP does not define. `None` for a spelling variant of an MCP method: a
    /// lenient server could accept the variant, which would bypass the gate.
    pub fn method(method: &'m str) -> Option<Foreign<'m>> {
        let lookups = Lookup::ALL.iter().map(|lookup| lookup.method());
        let is_known = |known: &str| method.trim().eq_ignore_ascii_case(known);
        let known = OURS.into_iter().chain(lookups).any(is_known);
        (!known).then_some(Foreign(method))
    }
}

/// The resource or prompt of a completion or subscription, by the server's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// The URI of a resource, or of a template of resources.
    Resource(&'a str),
    /// The name of a prompt.
    Prompt(&'a str),
}

impl Session {
    /// Subscribes to changes of a resource.
    pub async fn subscribe(&self, uri: &str) -> Result<(), Failure> {
        let (server, own) = self.owner(&Reference::Resource(uri))?;
        let params = Args::of("uri", Value::from(own.as_str()));
        self.subscribe_at(&server, (uri, own), params, self.caller()).await.map(drop)
    }

    /// Subscribes to a resource with the client's URI `uri` and the server's URI `own`. Updates go
    /// to the session, so `caller` must not be a single request.
    async fn subscribe_at(
        &self,
        server: &ServerName,
        (uri, own): (&str, String),
        params: Args,
        caller: Caller,
    ) -> Result<Raw, Failure> {
        let (gateway, server) = (self.gateway().clone(), server.clone());
        let wish = Wish { gateway, caller, server, uri: own, params };
        let (answer, subscription) = wish.fulfil().await?;
        self.hold_subscription(uri.to_owned(), subscription);
        Ok(answer)
    }

    /// Ends the subscription to a resource. Succeeds also if there is none.
    pub async fn unsubscribe(&self, uri: &str, caller: &Caller) -> Result<(), Failure> {
        let Some(subscription) = self.take_subscription(uri) else { return Ok(()) };
        let Subscription { server, uri, .. } = subscription;
        let upstream = self.gateway().open_own_upstream(&server, &caller.listener)?;
        let Some(lease) = upstream.lease_if_up().filter(|lease| !lease.is_stateless()) else {
            return Ok(());
        };
        let params = Args::of("uri", Value::from(uri));
        let ended = lease.look_up(Lookup::Unsubscribe.method(), params, caller).await;
        ended.map(drop).map_err(|error| explain::lookup(error, &server))
    }

    /// Ends the subscriptions to these resources in a background task of the gateway, without
    /// waiting for the server.
    pub fn unsubscribe_in_background(self: &Arc<Self>, uris: Vec<String>) {
        let session = Arc::clone(self);
        self.gateway().run_beside(async move {
            let caller = session.caller();
            for uri in uris {
                let _already_gone = session.unsubscribe(&uri, &caller).await;
            }
        });
    }

    /// Requests log messages of this level and above from all servers, including those that connect
    /// later.
    pub async fn set_log_level(&self, level: LogLevel, caller: &Caller) {
        let levels = self.gateway().log_levels();
        levels.want(self.id(), level);
        for lease in self.connected() {
            let supports_logging = lease.hello().capabilities.logging && !lease.is_stateless();
            let wanted = levels.of(lease.owner()).filter(|_| supports_logging);
            if let Some(level) = wanted {
                let asked = lease.look_up(Lookup::LogLevel.method(), level.params(), caller);
                let _its_own_affair = asked.await;
            }
        }
    }

    /// Connects the server and holds the connection until the session ends. Returns the result of
    /// the handshake, as a result of `initialize`.
    pub async fn open(&self, server: &str) -> Result<(ServerName, Raw), Failure> {
        let server = self.gateway().usable(server)?;
        let lease = self.lease(&server).await?;
        let hello = plain(lease.hello().to_initialize_result());
        self.keep(lease);
        let hello = self.pinned_instructions(&server, hello).await?;
        Ok((server, hello))
    }

    /// The result of the handshake. Instructions that differ from their pin are marked, or removed
    /// with `pins: block`.
    async fn pinned_instructions(&self, server: &ServerName, hello: Raw) -> Result<Raw, Failure> {
        let pins = self.gateway().settings().pins;
        let Ok(mut said) = hello.parse::<Map<String, Value>>() else { return Ok(hello) };
        let Some(text) = said.get("instructions").and_then(Value::as_str) else {
            return Ok(hello);
        };
        if pins == Pins::Off {
            return Ok(hello);
        }
        let known = |catalog: &Catalog| {
            let listing = catalog.listing(server)?;
            listing.instructions.as_ref().map(|known| known.text == text)
        };
        if known(&self.catalog()) != Some(true) {
            self.refreshed(server).await?;
        }
        let catalog = self.catalog();
        let pin = catalog.shelf(server).map(|shelf| shelf.instructions_pin()).unwrap_or_default();
        if pin == Pin::Same {
            return Ok(hello);
        }
        match pins {
            Pins::Block => drop(said.remove("instructions")),
            Pins::Off | Pins::Warn => {
                let cautions = caution::of_instructions(pin, None).join("; ");
                let marked = Value::from(format!("({cautions})\n{text}"));
                said.insert("instructions".to_owned(), marked);
            }
        }
        Ok(Raw::from_json(Value::Object(said).to_string()))
    }

    /// Sends a lookup. Removes hidden characters from the result, limits its nesting, and applies
    /// the pins to tools and prompts.
    pub async fn look_up(
        &self,
        server: &ServerName,
        lookup: Lookup,
        params: Args,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        self.take_note(lookup, params.values());
        self.refuse_denied(server, lookup, params.values()).await?;
        let uri = params.values().get("uri").and_then(Value::as_str).map(str::to_owned);
        if let (Lookup::Subscribe, Some(uri)) = (lookup, uri) {
            let caller = Caller { meta: caller.meta.clone(), ..self.caller() };
            return self.subscribe_at(server, (&uri, uri.clone()), params, caller).await;
        }
        if lookup.is_kept() && self.lease(server).await?.is_stateless() {
            // The log level is already recorded: each later request to a stateless server carries
            // the level.
            return Ok(Raw::from_json("{}".to_owned()));
        }
        let answer = self.pass_on(server, lookup.method(), params, caller).await?;
        let list = match lookup {
            Lookup::Tools => PinnedList::Tools,
            Lookup::Prompts => PinnedList::Prompts,
            Lookup::Resources
            | Lookup::ResourceTemplates
            | Lookup::Completion
            | Lookup::LogLevel
            | Lookup::Subscribe
            | Lookup::Unsubscribe => return Ok(plain(answer)),
        };
        let pins = self.gateway().settings().pins;
        if pins != Pins::Off && list.has_news(&self.catalog(), server, &answer) {
            // Refreshes the listing, so that new rows are compared with the pins before the client
            // sees them.
            self.refreshed(server).await?;
        }
        Ok(plain(list.shown(&self.catalog(), server, pins, answer)))
    }

    /// Refuses a subscription or completion for a denied resource or prompt.
    async fn refuse_denied(
        &self,
        server: &ServerName,
        lookup: Lookup,
        params: &Map<String, Value>,
    ) -> Result<(), Failure> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let (uri, name) = match lookup {
            Lookup::Subscribe => (text(params.get("uri")), None),
            Lookup::Completion => {
                let of = params.get("ref");
                let member = |key: &str| text(of.and_then(|of| of.get(key)));
                (member("uri"), member("name"))
            }
            Lookup::Tools
            | Lookup::Resources
            | Lookup::ResourceTemplates
            | Lookup::Prompts
            | Lookup::LogLevel
            | Lookup::Unsubscribe => return Ok(()),
        };
        // Connects the server, because its listing is needed to resolve the names.
        let _listed = self.lease(server).await?;
        if let Some(uri) = &uri {
            modes::refuse_denied(self, server, &Reference::Resource(uri))?;
        }
        if let Some(name) = &name {
            modes::refuse_denied(self, server, &Reference::Prompt(name))?;
        }
        Ok(())
    }

    /// Sends a request of a method that MCP does not define.
    pub async fn ask_foreign(
        &self,
        server: &ServerName,
        Foreign(method): Foreign<'_>,
        params: Args,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        self.pass_on(server, method, params, caller).await
    }

    async fn pass_on(
        &self,
        server: &ServerName,
        method: &str,
        params: Args,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        let lease = self.lease(server).await?;
        let answer = lease.look_up(method, params, caller).await;
        answer.map_err(|error| explain::lookup(error, server))
    }

    /// Records the log level, or the end of a subscription, for later connections.
    fn take_note(&self, lookup: Lookup, params: &Map<String, Value>) {
        if lookup == Lookup::LogLevel
            && let Some(Ok(level)) = params.get("level").map(LogLevel::deserialize)
        {
            self.gateway().log_levels().want(self.id(), level);
        }
        if lookup == Lookup::Unsubscribe
            && let Some(uri) = params.get("uri").and_then(Value::as_str)
        {
            drop(self.take_subscription(uri));
        }
    }

    /// Calls a tool by the server's name for it.
    pub async fn call_by_own_name(
        &self,
        server: &ServerName,
        tool: &str,
        args: Args,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        let catalog = self.catalog();
        let target =
            catalog.own_tool(server, tool).ok_or_else(|| explain::unknown_tool(server, tool))?;
        let checked = target.check(args).map_err(explain::arguments)?;
        let (_, answer) = call::run(self, &catalog, checked, caller).await?;
        Ok(marked(answer))
    }

    /// Reads a resource by the server's URI for it.
    pub async fn read_by_uri(
        &self,
        server: &ServerName,
        uri: &str,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        let catalog = self.catalog();
        let target = modes::target(&catalog, server, &Reference::Resource(uri))?;
        let checked = Checked { target, args: Args::default() };
        let (_, answer) = call::run(self, &catalog, checked, caller).await?;
        Ok(marked(answer))
    }

    /// Gets a prompt by the server's name for it.
    pub async fn prompt_by_own_name(
        &self,
        server: &ServerName,
        name: &str,
        args: Args,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        let catalog = self.catalog();
        let target = modes::target(&catalog, server, &Reference::Prompt(name))?;
        let checked = Checked { target, args };
        let (_, answer) = call::run(self, &catalog, checked, caller).await?;
        Ok(plain(answer))
    }

    /// Forwards a notification of the client to the servers whose connections this session owns.
    pub async fn tell_own_servers(&self, method: &str, params: &str) {
        for lease in self.gateway().own_connections(self.id()) {
            lease.notify(method, params).await;
        }
    }
}

/// A handshake result or list for the client: without hidden characters, and with limited nesting.
fn plain(answer: Raw) -> Raw {
    edited(answer, nesting::plain_result)
}

/// The result of a call for the client: unchanged except for parts that nest too deep, with the
/// number of its hidden characters in `_meta`.
fn marked(answer: Raw) -> Raw {
    edited(answer, nesting::result)
}

fn edited(answer: Raw, edit: fn(&str) -> Cow<'_, str>) -> Raw {
    match edit(answer.as_str()) {
        Cow::Borrowed(_) => answer,
        Cow::Owned(edited) => Raw::from_json(edited),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_variant_of_an_mcp_method_is_refused() {
        for method in ["tools/call", "Tools/Call", " tools/call", "prompts/get\n", "PING"] {
            assert_eq!(Foreign::method(method), None, "{method:?}");
        }
        for lookup in Lookup::ALL {
            assert_eq!(Foreign::method(lookup.method()), None);
        }
        for method in ["acme/forecast", "tools", "tasks/get", ""] {
            assert_eq!(Foreign::method(method), Some(Foreign(method)));
        }
    }
}
