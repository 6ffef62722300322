//! The handler of each MCP method, with results from the fixtures.
#![expect(deprecated, reason = "the tested revisions have features that the SDK will remove")]

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, CompleteRequestParams,
    CompleteResult, CompletionInfo, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde_json::json;
use tokio::sync::broadcast;

use crate::dialogue::Turn;
use crate::fixtures::Fixtures;

/// The capacity of the change channel, more than a listener can lag.
const CHANGES_KEPT: usize = 16;

/// The state that all sessions share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) fixtures: Fixtures,
    pub(crate) changes: broadcast::Sender<Change>,
    eras: Eras,
}

/// The supported revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eras {
    /// The session-based revisions.
    Legacy,
    /// The stateless revision.
    Modern,
    Both,
}

/// The list that a tool reports as changed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Tools,
    Prompts,
}

impl Shared {
    pub(crate) fn load(eras: Eras) -> serde_json::Result<Self> {
        let (changes, _) = broadcast::channel(CHANGES_KEPT);
        Ok(Self { fixtures: Fixtures::load()?, changes, eras })
    }
}

/// One session, or one request of the stateless revision.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) shared: Arc<Shared>,
    level: Mutex<LoggingLevel>,
}

impl Handler {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, level: Mutex::new(LoggingLevel::Debug) }
    }

    /// Whether the client's log level includes `info`.
    pub(crate) fn logs_info(&self, context: &RequestContext<RoleServer>) -> bool {
        let level = match context.meta.protocol_version() {
            Some(_) => context.meta.log_level(),
            None => Some(*self.level.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        matches!(level, Some(LoggingLevel::Debug | LoggingLevel::Info))
    }

    fn known(&self, uri: &str) -> Result<(), ErrorData> {
        match self.shared.fixtures.content(uri) {
            Some(_) => Ok(()),
            None => Err(unknown_resource(uri)),
        }
    }
}

impl ServerHandler for Handler {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let known = ProtocolVersion::KNOWN_VERSIONS;
        match self.shared.eras {
            Eras::Both => Cow::Borrowed(known),
            Eras::Modern => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
            Eras::Legacy => {
                let legacy = known.iter().filter(|it| **it != ProtocolVersion::V_2026_07_28);
                Cow::Owned(legacy.cloned().collect())
            }
        }
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("conformance-server", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.shared.fixtures.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.fixtures.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, &context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.shared.fixtures.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(self.shared.fixtures.templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let content = self.shared.fixtures.content(&request.uri);
        let content = content.ok_or_else(|| unknown_resource(&request.uri))?;
        Ok(ReadResourceResult::new(vec![content]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.known(&request.uri)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.known(&request.uri)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(self.shared.fixtures.prompts.clone()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let fixtures = &self.shared.fixtures;
        if let Some(dialogue) = fixtures.dialogues.get(&request.name) {
            let turn = Turn {
                name: &request.name,
                responses: request.input_responses.as_ref(),
                state: request.request_state.as_deref(),
                client: &offered(&context),
            };
            if let Some(needed) = dialogue.next(&turn)? {
                return Ok(needed.into());
            }
        }
        let messages = fixtures.filled_in(&request.name, &request.arguments.unwrap_or_default());
        let messages =
            messages.ok_or_else(|| ErrorData::invalid_params("there is no such prompt", None))?;
        Ok(GetPromptResult::new(messages).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = self.shared.fixtures.completions(&request.argument.value);
        let values = CompletionInfo::new(values);
        Ok(CompleteResult::new(values.map_err(|error| ErrorData::internal_error(error, None))?))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = context.cancelled() => return Ok(()),
            };
            // The sink returns an error for a list without a subscription.
            let _ = match change {
                Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            };
        }
    }
}

/// The capabilities of the client of this request.
pub(crate) fn offered(context: &RequestContext<RoleServer>) -> ClientCapabilities {
    context.client_capabilities().unwrap_or_default()
}

fn unknown_resource(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })))
}
