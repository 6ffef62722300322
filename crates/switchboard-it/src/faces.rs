//! The faces of Switchboard behind one trait, so that a scenario can run on each.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::approval::ApprovalAnswer;

use crate::client::{Client, User};
use crate::harness::{Home, World, pass};
use crate::http_client::HttpClient;
use crate::program::{HttpServer, Installed, Programs};

/// One running gateway behind one of its faces.
pub trait Face: Sized {
    /// Starts a gateway with this configuration of the user, in a new home.
    fn open(programs: Programs, config: &str) -> impl Future<Output = Self>;

    /// The result text of one `mcp` call. A line `...` stands for text that differs on this face.
    fn ask(&mut self, arguments: &str) -> impl Future<Output = String>;

    /// The user's answers to the next approval questions.
    fn will_answer(&mut self, answers: &[ApprovalAnswer]);

    /// The approval questions so far: the tool and its arguments.
    fn asked(&self) -> Vec<String>;

    /// Advances the paused clock; no scenario does this on a face with a real clock.
    fn advance(&mut self, time: Duration) -> impl Future<Output = ()>;

    /// Restarts the gateway in the same home.
    fn restart(self) -> impl Future<Output = Self>;
}

/// The engine as a Rust program uses it.
pub struct Library {
    config: String,
    world: World,
}

impl Library {
    fn start(config: &str, home: Home) -> Self {
        let world = World::with(config).home(home).start();
        Self { config: config.to_owned(), world }
    }
}

impl Face for Library {
    async fn open(_: Programs, config: &str) -> Self {
        Self::start(config, Home::new())
    }

    async fn ask(&mut self, arguments: &str) -> String {
        self.world.ask(arguments).await
    }

    fn will_answer(&mut self, answers: &[ApprovalAnswer]) {
        self.world.host.will_answer(answers.iter().copied());
    }

    fn asked(&self) -> Vec<String> {
        self.world.host.asked()
    }

    async fn advance(&mut self, time: Duration) {
        pass(time).await;
    }

    async fn restart(self) -> Self {
        let home = self.world.shut_down().await;
        Self::start(&self.config, home)
    }
}

/// `switchboard serve` as an MCP client uses it, with a user who answers elicitations.
pub struct Served<C> {
    installed: Installed,
    connected: C,
}

pub type Stdio = Served<Client>;
pub type Http = Served<OverHttp>;

/// An MCP client on one transport.
pub trait Connected: Sized {
    fn to(installed: &Installed) -> impl Future<Output = Self>;
    fn mcp(&mut self, arguments: Value) -> impl Future<Output = String>;
    fn user(&mut self) -> &mut User;
    fn asked(&self) -> &[Value];
    /// Disconnects and ends the program.
    fn leave(self) -> impl Future<Output = ()>;
}

impl Connected for Client {
    async fn to(installed: &Installed) -> Self {
        installed.connect(json!({ "elicitation": {} })).await
    }

    async fn mcp(&mut self, arguments: Value) -> String {
        Client::mcp(self, arguments).await
    }

    fn user(&mut self) -> &mut User {
        &mut self.user
    }

    fn asked(&self) -> &[Value] {
        &self.user.asked
    }

    async fn leave(self) {
        self.end().await;
    }
}

/// An HTTP client and its server program.
pub struct OverHttp {
    server: HttpServer,
    client: HttpClient,
}

impl Connected for OverHttp {
    async fn to(installed: &Installed) -> Self {
        let server = installed.serve_http().await;
        let client = server.connect(json!({ "elicitation": {} })).await;
        Self { server, client }
    }

    async fn mcp(&mut self, arguments: Value) -> String {
        self.client.mcp(arguments).await
    }

    fn user(&mut self) -> &mut User {
        &mut self.client.user
    }

    fn asked(&self) -> &[Value] {
        &self.client.user.asked
    }

    async fn leave(self) {
        self.server.terminate();
        self.server.ended().await;
    }
}

impl<C: Connected> Served<C> {
    async fn start(installed: Installed) -> Self {
        let connected = C::to(&installed).await;
        Self { installed, connected }
    }
}

impl<C: Connected> Face for Served<C> {
    async fn open(programs: Programs, config: &str) -> Self {
        Self::start(Installed::with(programs, config)).await
    }

    async fn ask(&mut self, arguments: &str) -> String {
        self.connected.mcp(json_of(arguments)).await
    }

    fn will_answer(&mut self, answers: &[ApprovalAnswer]) {
        self.connected.user().answers.extend(answers.iter().copied().map(elicited));
    }

    fn asked(&self) -> Vec<String> {
        self.connected.asked().iter().filter_map(question).collect()
    }

    async fn advance(&mut self, _: Duration) {
        unimplemented!("`advance` needs a face in process");
    }

    async fn restart(self) -> Self {
        let Self { installed, connected } = self;
        connected.leave().await;
        Self::start(installed).await
    }
}

/// The elicitation result for an answer of the user.
fn elicited(answer: ApprovalAnswer) -> Value {
    let decision = match answer {
        ApprovalAnswer::Once => "once",
        ApprovalAnswer::Tool => "session",
        ApprovalAnswer::Server => "server",
        ApprovalAnswer::No => "no",
    };
    json!({ "action": "accept", "content": { "decision": decision } })
}

/// The tool and its arguments, parsed from the message of an elicitation.
fn question(params: &Value) -> Option<String> {
    let message = params["message"].as_str()?;
    let (what, arguments) = message.split_once('\n')?;
    let mut quoted = what.split('`').skip(1).step_by(2);
    let (tool, server) = (quoted.next()?, quoted.next()?);
    // Short arguments are shown as `name: value`.
    let (name, value) = arguments.split_once(": ")?;
    Some(format!("{server}_{tool} {{\"{name}\":{value}}}"))
}

/// The command line: one process for each request.
pub struct CommandLine {
    installed: Installed,
}

impl Face for CommandLine {
    async fn open(programs: Programs, config: &str) -> Self {
        Self { installed: Installed::with(programs, config) }
    }

    async fn ask(&mut self, arguments: &str) -> String {
        let typed = Typed::of(&json_of(arguments));
        let Typed { mut words, says } =
            typed.expect("a scenario for `cli` has only requests with a command");
        let ran = self.installed.run(words.iter().map(String::as_str)).await;
        match (ran.code, says) {
            (Some(0), Says::InOwnWords) => return "...".to_owned(),
            (Some(0), Says::Result) => return ran.stdout,
            // An error result of the tool.
            (Some(1), Says::Result) => return ran.stderr.replacen("error: ", "", 1),
            (_, _) => words.push("--json".to_owned()),
        }
        let ran = self.installed.run(words.iter().map(String::as_str)).await;
        let report = &json_of(&ran.stdout)["error"];
        let of = |field: &str| report[field].as_str().unwrap_or_default();
        // Remedies differ between faces.
        format!("{}: {}\n...", of("code"), of("message"))
    }

    fn will_answer(&mut self, _: &[ApprovalAnswer]) {
        unimplemented!("answers of the user need a face with a user");
    }

    fn asked(&self) -> Vec<String> {
        Vec::new()
    }

    async fn advance(&mut self, _: Duration) {
        unimplemented!("`advance` needs a face in process");
    }

    async fn restart(self) -> Self {
        self
    }
}

/// The command line that corresponds to a request of a model.
#[derive(Debug)]
pub struct Typed {
    pub words: Vec<String>,
    says: Says,
}

#[derive(Debug, Clone, Copy)]
enum Says {
    /// The output is a list, which is formatted for people.
    InOwnWords,
    /// The output is the text of a result, equal on every face.
    Result,
}

impl Typed {
    /// The command line for a request; `None` if no command corresponds to it.
    pub fn of(request: &Value) -> Option<Self> {
        let asked: Vec<&str> = request.as_object()?.keys().map(String::as_str).collect();
        let text = |key: &str| request[key].as_str().unwrap_or_default();
        let (line, says): (&[&str], Says) = match asked.as_slice() {
            [] => (&["status"], Says::InOwnWords),
            ["tool"] => (&["call", text("tool")], Says::Result),
            ["tool", "args"] => (&["call", text("tool"), "--args"], Says::Result),
            ["tool", "server", "args"] => {
                (&["call", text("tool"), "--server", text("server"), "--args"], Says::Result)
            }
            ["search"] | ["search", "limit"] => (&["search", text("search")], Says::InOwnWords),
            ["search", "regex"] => (&["search", "--regex", text("search")], Says::InOwnWords),
            ["describe"] => (&["describe", text("describe")], Says::InOwnWords),
            ["connect"] => (&["connect", text("connect")], Says::InOwnWords),
            ["instructions"] => (&["instructions", text("instructions")], Says::InOwnWords),
            ["server"] => (&["tools", text("server")], Says::InOwnWords),
            _ => return None,
        };
        let mut words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        match &request["args"] {
            Value::Null => {}
            Value::String(json) => words.push(json.clone()),
            object => words.push(object.to_string()),
        }
        Some(Self { words, says })
    }
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON: {error}: {text}"))
}
