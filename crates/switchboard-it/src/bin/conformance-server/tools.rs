//! The tools with effects: log, progress, server-to-client requests and change notifications.
#![expect(deprecated, reason = "the tested revisions have features that the SDK will remove")]

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateMessageRequestParams, ElicitRequestParams, ElicitationSchema, ErrorData, JsonObject,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, SamplingMessage,
};
use rmcp::service::{RequestContext, RoleServer, ServiceError};
use serde_json::json;

use crate::dialogue::Turn;
use crate::handler::{Change, Handler, offered};

/// The pause between messages: the suite expects them one by one, while the tool runs.
const PAUSE: Duration = Duration::from_millis(50);

impl Handler {
    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let fixtures = &self.shared.fixtures;
        let name = &*request.name;
        if let Some(result) = fixtures.results.get(name) {
            return Ok(result.clone().into());
        }
        if let Some(dialogue) = fixtures.dialogues.get(name) {
            let turn = Turn {
                name,
                responses: request.input_responses.as_ref(),
                state: request.request_state.as_deref(),
                client: &offered(context),
            };
            return match dialogue.next(&turn)? {
                Some(needed) => Ok(needed.into()),
                None => Ok(said(&format!("state-ok: {}", json!(request.input_responses)))),
            };
        }
        let arguments = request.arguments.unwrap_or_default();
        if let Some(form) = fixtures.forms.get(name) {
            return Ok(elicit(form, &arguments, context).await);
        }
        match name {
            "test_sampling" => Ok(sample(&arguments, context).await),
            "test_tool_with_logging" | "test_logging_tool" => Ok(self.log(context).await),
            "test_tool_with_progress" => Ok(report_progress(context).await),
            "test_missing_capability" => require_sampling(context),
            "test_trigger_tool_change" => Ok(self.announce(Change::Tools, context).await),
            "test_trigger_prompt_change" => Ok(self.announce(Change::Prompts, context).await),
            _ => Err(ErrorData::invalid_params("there is no such tool", None)),
        }
    }

    async fn log(&self, context: &RequestContext<RoleServer>) -> CallToolResponse {
        let messages =
            ["Tool execution started", "Tool processing data", "Tool execution completed"];
        if self.logs_info(context) {
            for message in messages {
                let message =
                    LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
                // A disconnected client is no error, here and below.
                let _ = context.peer.notify_logging_message(message).await;
                tokio::time::sleep(PAUSE).await;
            }
        }
        said("logged")
    }

    /// Notifies all stateless subscriptions, and the session of this call.
    async fn announce(
        &self,
        change: Change,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        // Sending fails if there is no subscription.
        let _ = self.shared.changes.send(change);
        if context.meta.protocol_version().is_none() {
            let _ = match change {
                Change::Tools => context.peer.notify_tool_list_changed().await,
                Change::Prompts => context.peer.notify_prompt_list_changed().await,
            };
        }
        said("announced")
    }
}

async fn report_progress(context: &RequestContext<RoleServer>) -> CallToolResponse {
    for progress in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, progress).with_total(100.0);
            let _ = context.peer.notify_progress(progress).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
    said("done")
}

async fn sample(arguments: &JsonObject, context: &RequestContext<RoleServer>) -> CallToolResponse {
    let messages = vec![SamplingMessage::user_text(text_of(arguments, "prompt"))];
    let asked = CreateMessageRequestParams::new(messages, 100);
    match context.peer.create_message(asked).await {
        Ok(answer) => said(&format!("LLM response: {}", json!(answer.message.content))),
        Err(error) => failed(&error),
    }
}

async fn elicit(
    form: &ElicitationSchema,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> CallToolResponse {
    let asked = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: text_of(arguments, "message").to_owned(),
        requested_schema: form.clone(),
    };
    match context.peer.create_elicitation(asked).await {
        Ok(answer) => {
            let (action, content) = (json!(answer.action), json!(answer.content));
            said(&format!("Elicitation completed: action={action}, content={content}"))
        }
        Err(error) => failed(&error),
    }
}

fn require_sampling(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    if offered(context).sampling.is_some() {
        return Ok(said("the client can sample"));
    }
    let wanted = ClientCapabilities::builder().enable_sampling().build();
    Err(ErrorData::missing_required_client_capability(wanted))
}

fn text_of<'a>(arguments: &'a JsonObject, name: &str) -> &'a str {
    arguments.get(name).and_then(serde_json::Value::as_str).unwrap_or("Fill in the form")
}

fn said(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn failed(error: &ServiceError) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into()
}
