//! One server as it is: methods of MCP passed through word for word, for a face that shows a
//! single server under its own names. What runs something still passes the pipeline.

use serde_json::{Map, Value};
use switchboard_core::catalog::resolve::Checked;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use switchboard_wire::Raw;

use crate::call;
use crate::explain;
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

impl Session {
    /// Connects the server and keeps it for as long as the session lives; what it said of itself
    /// in answer to `initialize`.
    pub async fn open(&self, server: &str) -> Result<(ServerName, Raw), Failure> {
        let server = self.gateway().catalog().active_server(server).map_err(explain::resolve)?;
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
        answer.map_err(|error| explain::lookup(error, server))
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
        let target = catalog.resource(server, uri).ok_or_else(|| explain::unknown_resource(uri))?;
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
        let target = catalog.prompt(server, name).ok_or_else(|| explain::unknown_prompt(name))?;
        let checked = Checked { target, args };
        call::run(self, &catalog, checked, caller).await.map(|(_, answer)| answer)
    }

    /// Tells the servers that this session has to itself what its client told.
    pub async fn tell_own_servers(&self, method: &str, params: &str) {
        for connection in self.gateway().own_connections(self.id()) {
            let _gone = connection.notify(method, params).await;
        }
    }
}
