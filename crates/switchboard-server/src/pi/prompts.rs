//! Prompts of servers as commands of Pi.

use serde::Deserialize;
use serde_json::json;
use switchboard::Caller;
use switchboard::catalog::Prompt;
use switchboard::exact::Args;
use switchboard::name::ServerName;
use switchboard::pi::prompts as words;
use switchboard::render;
use switchboard::reply::Reply;
use switchboard::request::{Request, prompt_args};
use switchboard_wire::RpcError;

use super::{Pi, text, user_error};
use crate::answer::McpResult;
use crate::params::invalid_params;

/// A prompt command that the user typed.
#[derive(Deserialize)]
pub(super) struct Typed {
    server: String,
    prompt: String,
    /// The text that the user typed after the command.
    line: String,
}

impl Pi {
    /// Lists the prompt commands from the catalog; starts no server.
    pub(super) async fn prompts(&self, caller: Caller) -> Result<McpResult, RpcError> {
        let rows = self.listed(None, caller).await?;
        let commands = words::commands(&rows);
        let row = |one: &words::PromptCommand<'_>| {
            json!({
                "command": one.command,
                "server": one.server,
                "prompt": one.prompt,
                "description": one.description,
                "usage": one.usage,
            })
        };
        let prompts: Vec<_> = commands.iter().map(row).collect();
        let answer = json!({ "text": words::list(&commands), "prompts": prompts });
        Ok(McpResult::json(answer.to_string()))
    }

    pub(super) async fn prompt(&self, caller: Caller, typed: Typed) -> Result<McpResult, RpcError> {
        let Typed { server, prompt: name, line } = typed;
        let rows = self.listed(Some(server.clone()), caller.clone()).await?;
        let known = rows.iter().find(|(_, prompt)| prompt.name == name);
        let args = match known {
            // The prompt is unknown, which `handle_as` reports below.
            None => Args::default(),
            Some((server, prompt)) => prompt_args(prompt, &line)
                .map_err(|error| invalid_params(words::line_error(&error, server, prompt)))?,
        };
        let request = Request::Prompt { name, server: Some(server), args };
        match self.session.handle_as(request, caller).await.map_err(user_error)? {
            // Pi interprets text that begins with a slash as a command.
            Reply::Output(output) => match words::text(&output.content) {
                said if said.starts_with('/') => Ok(text(&format!(" {said}"))),
                said => Ok(text(&said)),
            },
            other => Ok(text(&render::text::reply(&other))),
        }
    }

    async fn listed(
        &self,
        server: Option<String>,
        caller: Caller,
    ) -> Result<Vec<(ServerName, Prompt)>, RpcError> {
        let request = Request::Prompts { server };
        match self.session.handle_as(request, caller).await.map_err(user_error)? {
            Reply::Prompts(rows) => Ok(rows),
            _ => Ok(Vec::new()),
        }
    }
}
