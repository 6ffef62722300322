//! One server as it is: methods of MCP passed through word for word, for a face that shows a
//! single server under its own names. What runs something still passes the pipeline.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_core::catalog::resolve::Checked;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use switchboard_wire::Raw;

use crate::call;
use crate::explain;
use crate::modes;
use crate::session::Session;
use crate::upstream::lease::Caller;

/// A method that asks a server for something without running any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
    Completion,
    LogLevel,
    Subscribe,
    Unsubscribe,
}

impl Lookup {
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

    pub fn of_method(method: &str) -> Option<Lookup> {
        Lookup::ALL.into_iter().find(|lookup| lookup.method() == method)
    }
}

/// What a completion or a subscription is about, by the name that its server has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// A resource, or a template of resources.
    Resource(&'a str),
    Prompt(&'a str),
}

impl Session {
    /// The server that something belongs to.
    pub fn owner(&self, of: &Reference<'_>) -> Result<ServerName, Failure> {
        modes::owner(self, of)
    }

    /// Hears of changes of a resource from now on. The connection is this session's alone and
    /// stays up meanwhile, so that the news comes to nobody else.
    pub async fn subscribe(&self, uri: &str, caller: &Caller) -> Result<(), Failure> {
        let server = self.owner(&Reference::Resource(uri))?;
        let lease = self.own_lease(&server).await?;
        let params = json!({ "uri": uri }).to_string();
        let subscribed = lease.look_up(Lookup::Subscribe.method(), params, caller).await;
        subscribed.map_err(|error| explain::lookup(error, &server))?;
        self.hold_subscription(uri, lease);
        Ok(())
    }

    pub async fn unsubscribe(&self, uri: &str, caller: &Caller) -> Result<(), Failure> {
        let server = self.owner(&Reference::Resource(uri))?;
        let Some(lease) = self.take_subscription(uri) else { return Ok(()) };
        let params = json!({ "uri": uri }).to_string();
        let ended = lease.look_up(Lookup::Unsubscribe.method(), params, caller).await;
        ended.map(drop).map_err(|error| explain::lookup(error, &server))
    }

    /// Asks the connected servers for log lines of this level and above.
    pub async fn set_log_level(&self, level: &str, caller: &Caller) {
        let params = json!({ "level": level }).to_string();
        for lease in self.connected() {
            if lease.hello().capabilities.logging {
                let asked = lease.look_up(Lookup::LogLevel.method(), params.clone(), caller);
                let _its_own_affair = asked.await;
            }
        }
    }

    /// Connects the server and keeps it for as long as the session lives; what it said of itself
    /// in answer to `initialize`.
    pub async fn open(&self, server: &str) -> Result<(ServerName, Raw), Failure> {
        let server = self.gateway().usable(server)?;
        let lease = self.lease(&server).await?;
        let hello = lease.hello().raw.clone();
        self.keep(lease);
        Ok((server, hello))
    }

    /// Asks the server, and gives its answer word for word.
    pub async fn look_up(
        &self,
        server: &ServerName,
        lookup: Lookup,
        params: Map<String, Value>,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        let lease = self.lease(server).await?;
        let params = Value::Object(params).to_string();
        let answer = lease.look_up(lookup.method(), params, caller).await;
        let answer = answer.map_err(|error| explain::lookup(error, server))?;
        Ok(if lookup == Lookup::Tools { self.callable(server, answer) } else { answer })
    }

    /// A page of tools without those that the configuration leaves out.
    fn callable(&self, server: &ServerName, page: Raw) -> Raw {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let catalog = self.gateway().catalog();
        let offered = |tool: &Value| {
            let named = Named::deserialize(tool).ok();
            named.is_some_and(|named| catalog.own_tool(server, &named.name).is_some())
        };
        let Ok(mut answer) = page.parse::<Map<String, Value>>() else { return page };
        let Some(tools) = answer.get_mut("tools").and_then(Value::as_array_mut) else {
            return page;
        };
        let before = tools.len();
        tools.retain(offered);
        if tools.len() == before { page } else { Raw::from_json(Value::Object(answer).to_string()) }
    }

    /// Calls a tool by the name that its server has for it.
    pub async fn call_by_own_name(
        &self,
        server: &ServerName,
        tool: &str,
        args: Map<String, Value>,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        let catalog = self.gateway().catalog();
        let target =
            catalog.own_tool(server, tool).ok_or_else(|| explain::unknown_tool(server, tool))?;
        let checked = target.check(args).map_err(explain::arguments)?;
        call::run(self, &catalog, checked, caller).await.map(|(_, answer)| answer)
    }

    pub async fn read_by_uri(
        &self,
        server: &ServerName,
        uri: &str,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        let catalog = self.gateway().catalog();
        let target = catalog
            .resource(server, uri)
            .ok_or_else(|| explain::unknown_resource(uri, &catalog))?;
        let checked = Checked { target, args: Map::new() };
        call::run(self, &catalog, checked, caller).await.map(|(_, answer)| answer)
    }

    pub async fn prompt_by_own_name(
        &self,
        server: &ServerName,
        name: &str,
        args: Map<String, Value>,
        caller: &Caller,
    ) -> Result<Raw, Failure> {
        let catalog = self.gateway().catalog();
        let target =
            catalog.prompt(server, name).ok_or_else(|| explain::unknown_prompt(name, &catalog))?;
        let checked = Checked { target, args };
        call::run(self, &catalog, checked, caller).await.map(|(_, answer)| answer)
    }

    /// Tells the servers that this session has to itself what its client told.
    pub async fn tell_own_servers(&self, method: &str, params: &str) {
        for lease in self.gateway().own_connections(self.id()) {
            lease.notify(method, params).await;
        }
    }
}
