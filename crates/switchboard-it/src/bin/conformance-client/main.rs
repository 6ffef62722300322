//! The client that the conformance suite starts for each scenario: a gateway with one server, in an
//! empty home, and a user who accepts everything.

mod script;

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use switchboard::approval::{ApprovalAnswer, Question};
use switchboard::auth::{Begun, SignInMethod};
use switchboard::config::layers::{self, Approvals, Config, ConfigSource, Layer, Tier};
use switchboard::config::parse;
use switchboard::failure::{Code, Failure};
use switchboard::host::{Abilities, CannotAsk, Host, HostFuture, ServerQuestion, Topic};
use switchboard::reply::Reply;
use switchboard::request::{CallRequest, Request};
use switchboard::{Environment, Gateway, Session};
use switchboard_it::authority::visit;
use switchboard_wire::{Raw, RpcError};

use self::script::{Tool, calls, filled_in};

const USAGE: &str = "usage: conformance-client URL";

const SERVER: &str = "conformance";

/// Environment variables of the suite: the values that a scenario needs besides the URL, and the
/// name of the scenario.
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";
const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";

/// The client metadata document that the suite's authorization servers expect.
const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Sign-ins before the client gives up.
const SIGN_INS: usize = 10;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            // A failed write to standard error cannot be reported.
            let _ = writeln!(io::stderr(), "conformance-client: {error}{cause}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url] = args.as_slice() else { return Err(USAGE.into()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(use_server(url))
}

/// Lists the tools and prompts of the server at `url`, and calls those of the scenario.
async fn use_server(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let process = Environment::of_process();
    let home = tempfile::tempdir()?;
    let place = home.path().to_string_lossy();
    let environment = Environment::made_of([("SWITCHBOARD_HOME", &*place)], home.path());
    let context = process.variable(CONTEXT).unwrap_or_default();
    let context = serde_json::from_str(context).unwrap_or_default();
    let scenario = process.variable(SCENARIO).unwrap_or_default();
    let config = only(url, &oauth(scenario, &context));
    let gateway = Gateway::builder(environment).config(config).on_demand().build();
    let session = gateway.session(Obliging);
    let used = use_all(&session, &context).await;
    drop(session);
    gateway.shutdown().await;
    Ok(used?)
}

async fn use_all(session: &Session, context: &Value) -> Result<(), Failure> {
    handle(session, Request::Connect { server: SERVER.to_owned() }).await?;
    let catalog = session.gateway().catalog();
    let tools: Vec<Tool> = catalog
        .tools()
        .map(|item| Tool {
            name: item.entry.name.as_str().to_owned(),
            schema: serde_json::from_str(item.entry.input_schema()).unwrap_or_default(),
        })
        .collect();
    for call in calls(context, &tools) {
        let (tool, server) = (call.tool, Some(SERVER.to_owned()));
        handle(session, Request::Call(CallRequest::new(tool, server, call.args.into()))).await?;
    }
    let listed = catalog.offered().flat_map(|listing| &listing.prompts);
    for prompt in listed {
        let required = prompt.arguments.iter().filter(|argument| argument.required);
        let args: Map<String, Value> =
            required.map(|argument| (argument.name.clone(), json!("test"))).collect();
        let (name, server) = (prompt.name.clone(), Some(SERVER.to_owned()));
        handle(session, Request::Prompt { name, server, args: args.into() }).await?;
    }
    Ok(())
}

/// Sends the request, after a sign-in if the server requires one.
async fn handle(session: &Session, request: Request) -> Result<Reply, Failure> {
    for _ in 0..SIGN_INS {
        match session.handle(request.clone()).await {
            Err(failure) if failure.code == Code::SignInRequired => sign_in(session).await?,
            answered => return answered,
        }
    }
    session.handle(request).await
}

async fn sign_in(session: &Session) -> Result<(), Failure> {
    let gateway = session.gateway();
    let server = gateway.usable(SERVER)?;
    match gateway.sign_in(&server).await?.begin(SignInMethod::Page).await? {
        Begun::Done(_) | Begun::Device(_) => Ok(()),
        Begun::Page(mut pending) => {
            let link = pending.link().as_str().to_owned();
            let (finished, _status) = tokio::join!(pending.finished(), visit(&link));
            finished.map(|_| ())
        }
    }
}

/// The `oauth` field of the server entry for a scenario.
fn oauth(scenario: &str, context: &Value) -> Value {
    let mut oauth = json!({ "clientMetadataUrl": CLIENT_DOCUMENT });
    for (key, name) in [("client_id", "clientId"), ("client_secret", "clientSecret")] {
        if let Some(value) = context.get(key) {
            oauth[name] = value.clone();
        }
    }
    if scenario.starts_with("auth/client-credentials") {
        oauth["grantType"] = json!("client_credentials");
    }
    oauth
}

/// A configuration with only this server.
fn only(url: &str, oauth: &Value) -> Config {
    let entry = json!({ "type": "http", "url": url, "oauth": oauth });
    let text = json!({ "mcpServers": { SERVER: entry } }).to_string();
    let source = ConfigSource { path: "conformance".into(), tier: Tier::User };
    let file = parse::parse(&text, &source);
    let nothing = Approvals {
        project_root: "/",
        file_hashes: &|_| Vec::new(),
        is_approved: &|_| false,
        was_approved: &|_| false,
    };
    layers::merge(&[Layer { source, file }], &nothing)
}

/// Approves every call, and answers every form with its defaults.
struct Obliging;

impl Host for Obliging {
    fn approve<'a>(&'a self, _: &'a Question) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>> {
        Box::pin(std::future::ready(Ok(ApprovalAnswer::Once)))
    }

    fn abilities(&self) -> Abilities {
        let form = json!({ "form": {} }).to_string();
        Abilities { elicitation: Some(Raw::from_json(form)), ..Abilities::default() }
    }

    fn answer<'a>(&'a self, question: ServerQuestion<'a>) -> HostFuture<'a, Result<Raw, RpcError>> {
        let answer = match question.topic {
            Topic::Elicitation => {
                let params = question.params.map_or("null", Raw::as_str);
                let params = serde_json::from_str(params).unwrap_or_default();
                Ok(Raw::from_json(filled_in(&params).to_string()))
            }
            Topic::Roots | Topic::Sampling => Err(question.topic.refused()),
        };
        Box::pin(std::future::ready(answer))
    }
}
