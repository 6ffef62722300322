//! Interoperability with the rmcp SDK, as a client and as a server. All code with rmcp generics is
//! in this file, because it compiles slowly.

use std::pin::Pin;
use std::process::Stdio;

use rmcp::handler::client::ClientHandler;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    ContentBlock, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    GetPromptRequestParams, Implementation, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    Resource, ResourceContents, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleClient, RoleServer, RunningService, ServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use switchboard::Gateway;
use switchboard::dial::in_process::InProcess;
use switchboard_it::harness::{Home, World};
use switchboard_it::program::Installed;
use switchboard_wire::pipe::End;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::PROGRAMS;

/// A client whose user answers each elicitation with `once`.
struct Approver;

impl ClientHandler for Approver {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("approver", "1"))
    }

    async fn create_elicitation(
        &self,
        _question: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let once = json!({ "decision": "once" });
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(once))
    }
}

fn mcp(arguments: Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new("mcp").with_arguments(arguments)
}

fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    texts.map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn rmcp_client_uses_tools_prompts_resources_over_stdio() {
    let installed = Installed::with(
        PROGRAMS,
        r#"{ "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } } }"#,
    );
    let mut command = installed.command();
    let mut child =
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client = Approver.serve(pipes).await.unwrap();

    uses_everything(&client).await;

    client.cancel().await.unwrap();
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn rmcp_client_uses_tools_prompts_resources_over_http() {
    let installed = Installed::with(
        PROGRAMS,
        r#"{ "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } } }"#,
    );
    let server = installed.serve_http().await;
    // In this build the rmcp client has no default crypto provider.
    let _installed_before =
        tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let transport = StreamableHttpClientTransport::from_config(
        StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", server.address))
            .auth_header(server.token.clone()),
    );
    let client = Approver.serve(transport).await.unwrap();
    uses_everything(&client).await;
    client.cancel().await.unwrap();
}

async fn uses_everything(client: &RunningService<RoleClient, Approver>) {
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["mcp"]);
    for (arguments, is_error, expected) in [
        (json!({ "connect": "demo" }), false, "demo (30 tools):"),
        (json!({ "search": "add two numbers" }), false, "demo_add(a: number, b: number)"),
        (json!({ "tool": "demo_add", "args": { "a": 2, "b": 40 } }), false, "42"),
        (json!({ "tool": "demo_fail" }), true, "the disk is full"),
        (json!({ "tool": "demo_ad" }), true, "unknown_tool"),
        (json!({ "tool": "demo_delete_everything", "args": { "text": "gone" } }), false, "gone"),
    ] {
        let result = client.call_tool(mcp(arguments.clone())).await.unwrap();
        assert!(text(&result).starts_with(expected), "{arguments}: {}", text(&result));
        assert_eq!(result.is_error.unwrap_or(false), is_error, "{arguments}");
    }
    let image = client.call_tool(mcp(json!({ "tool": "demo_image" }))).await.unwrap();
    assert!(image.content.iter().any(|block| block.as_image().is_some()));

    let prompts = client.list_all_prompts().await.unwrap();
    let names: Vec<&str> = prompts.iter().map(|prompt| &*prompt.name).collect();
    assert_eq!(names, ["demo_greet", "demo_plain"]);
    client.get_prompt(GetPromptRequestParams::new("demo_plain")).await.unwrap();
    let resources = client.list_all_resources().await.unwrap();
    let uri = resources[0].uri.clone();
    client.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
}

/// An rmcp server with one tool and one resource.
#[derive(Clone)]
struct Adder;

impl ServerHandler for Adder {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities).with_instructions("Adds, and nothing else.")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let number = json!({ "type": "number" });
        let schema = json!({
            "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"],
        });
        let schema = schema.as_object().cloned().unwrap_or_default();
        let tool = Tool::new("add", "Adds two numbers", schema)
            .with_annotations(ToolAnnotations::new().read_only(true));
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let (Some(a), Some(b)) = (arguments["a"].as_f64(), arguments["b"].as_f64()) else {
            return Err(ErrorData::invalid_params("two numbers are needed", None));
        };
        if b < 0.0 {
            return Err(ErrorData::internal_error("this is no subtraction", None));
        }
        Ok(CallToolResult::structured(json!({ "sum": a + b })).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new("adder://manual", "manual")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let manual = ResourceContents::text("Give it two numbers.", request.uri);
        Ok(ReadResourceResult::new(vec![manual]).into())
    }
}

impl InProcess for Adder {
    fn serve(&self, end: End) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let server = self.clone();
        Box::pin(async move {
            // A client may disconnect during the handshake.
            if let Ok(running) = ServiceExt::serve(server, (end.reader, end.writer)).await {
                let _ended = running.waiting().await;
            }
        })
    }
}

#[tokio::test]
async fn gateway_lists_searches_and_calls_an_rmcp_server() {
    let home = Home::new();
    let gateway = Gateway::builder(home.environment()).server("adder", Adder).build();
    let world = World::of_gateway(gateway, home);
    let mut story = String::new();
    for arguments in [
        json!({ "connect": "adder" }),
        json!({ "instructions": "adder" }),
        json!({ "search": "sum of numbers" }),
        json!({ "describe": "adder_add" }),
        json!({ "tool": "adder_add", "args": { "a": 2, "b": 40 } }),
        json!({ "tool": "adder_add", "args": { "a": 2, "b": -1 } }),
        json!({ "tool": "adder_read_manual" }),
        json!({}),
    ] {
        let said = world.ask(&arguments.to_string()).await;
        story.push_str(&format!(">>> {arguments}\n{said}\n"));
    }
    world.shut_down().await;
    insta::assert_snapshot!(story, @r#"
    >>> {"connect":"adder"}
    adder (2 tools):
    - adder_add: Adds two numbers
    - adder_read_manual: Read resource: adder://manual
    its instructions: mcp({ instructions: "adder" })
    >>> {"instructions":"adder"}
    Instructions of adder:

    Adds, and nothing else.
    >>> {"search":"sum of numbers"}
    adder_add(a: number, b: number)
      Adds two numbers
    >>> {"describe":"adder_add"}
    adder_add (read-only)
    Adds two numbers

    a: number
    b: number
    >>> {"tool":"adder_add","args":{"a":2,"b":40}}
    {"sum":42.0}
    >>> {"tool":"adder_add","args":{"a":2,"b":-1}}
    server_error: the server answered with an error: error -32603: this is no subtraction
    >>> {"tool":"adder_read_manual"}
    Give it two numbers.
    >>> {}
    MCP: 1/1 servers, 2 tools
    ✓ adder (2 tools)

    Parameters of mcp:
    - search: words
    - tool: tool to call
    - args: its arguments
    - describe: tool to describe
    - server: list its tools, or narrow to it
    - result: read on in a stored result
    - offset: where the page begins
    - limit: size of the page
    - select: jq filter on the JSON of a call or a stored result
    - grep: regular expression over the lines of a stored result
    - connect: connect a server, or refresh its tools
    - instructions: usage instructions of a server
    - regex: take the search as a regular expression
    - includeSchemas: false leaves signatures out of a search
    - action: `auth-start` or `auth-complete`, for the sign-in to `server`
    "#);
}

const CONFORMANCE_SERVER: &str = env!("CARGO_BIN_EXE_conformance-server");

/// Starts the server of the official SDK; returns its URL and its process, which ends when it is
/// dropped.
#[expect(clippy::disallowed_methods, reason = "a server that is not ours to start")]
async fn at_a_url() -> (String, Child) {
    let mut command = tokio::process::Command::new(CONFORMANCE_SERVER);
    let mut child = command.arg("0").stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    (said.next_line().await.unwrap().unwrap(), child)
}

/// The server supports both eras. Only in the stateless revision does it return its requests inside
/// responses.
#[tokio::test]
async fn session_based_client_answers_a_stateless_rmcp_server() {
    let (url, _child) = at_a_url().await;
    let form = json!({ "action": "accept", "content": { "name": "Ada" } });
    let words = json!({
        "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "tester",
    });
    let roots = json!({ "roots": [{ "uri": "file:///home" }] });
    for entry in
        [json!({ "command": CONFORMANCE_SERVER, "args": ["stdio"] }), json!({ "url": url })]
    {
        let config = json!({ "mcpServers": { "peer": entry } });
        let installed = Installed::with(PROGRAMS, &config.to_string());
        let able = json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} });
        let mut client = installed.connect(able).await;
        for (tool, answers) in [
            ("elicitation", vec![&form]),
            ("sampling", vec![&words]),
            ("list_roots", vec![&roots]),
            ("request_state", vec![&form]),
            ("multi_round", vec![&form, &form]),
        ] {
            let before = client.user.asked.len();
            client.user.answers.extend(answers.iter().copied().cloned());
            let tool = format!("peer_test_input_required_result_{tool}");
            let text = client.mcp(json!({ "tool": tool })).await;
            assert!(!text.contains("error"), "{tool}: {text}");
            assert_eq!(client.user.asked.len() - before, answers.len(), "{tool}: {text}");
        }
        client.end().await;
    }
}
