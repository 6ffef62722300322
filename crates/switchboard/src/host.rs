//! The user and the model behind a session, as far as the engine and its servers may ask.

use std::pin::Pin;

use switchboard_core::approval::{ApprovalAnswer, Question};
use switchboard_core::catalog::Era;
use switchboard_core::connection::ConnectionRequest;
use switchboard_core::content::ResultForm;
use switchboard_core::elicitation;
use switchboard_core::exact::Args;
use switchboard_core::name::ServerName;
use switchboard_wire::envelope::{INVALID_PARAMS, METHOD_NOT_FOUND};
use switchboard_wire::{Notification, Raw, RpcError};

/// A future that a host's answer comes from.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a host gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotAsk {
    /// The session has no user, or the host cannot ask.
    #[error("no user can be asked")]
    NoUser,
    /// The host asked, and no answer came.
    #[error("no answer came")]
    Unanswered,
}

/// The user's word about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The server may be connected.
    Given,
    /// The user declined.
    Refused,
}

/// Asks the user. A face implements this; without one, everything that asks is refused.
///
/// ```
/// use switchboard::approval::{ApprovalAnswer, Question};
/// use switchboard::exact::Args;
/// use switchboard::host::{CannotAsk, Host, HostFuture};
/// use switchboard::request::{CallRequest, Request};
/// use switchboard::{Environment, Gateway};
///
/// /// Approves one tool.
/// struct OnlyForget;
///
/// impl Host for OnlyForget {
///     fn approve<'a>(&'a self, question: &'a Question) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>> {
///         let is_forget = question.target().shown.to_string() == "demo_forget";
///         let answer = if is_forget { ApprovalAnswer::Once } else { ApprovalAnswer::No };
///         Box::pin(std::future::ready(Ok(answer)))
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// # let environment = Environment::made_of([("SWITCHBOARD_HOME", "/nowhere")], "/");
/// # let gateway = Gateway::builder(environment).demo().build();
/// let session = gateway.session(OnlyForget);
/// let call = CallRequest::new("demo_forget", None, Args::default());
/// let reply = session.handle(Request::Call(call)).await?;
/// assert_eq!(switchboard::render::text::reply(&reply), "Nothing was destroyed");
/// # gateway.shutdown().await;
/// # Ok(())
/// # })
/// # }
/// ```
pub trait Host: Send + Sync {
    /// May this call be made?
    fn approve<'a>(
        &'a self,
        question: &'a Question,
    ) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>>;

    /// May a server be connected that stands in no configuration? The user has to see the whole of
    /// what would run, or where it leads.
    fn approve_connection<'a>(
        &'a self,
        _wanted: &'a ConnectionRequest,
    ) -> HostFuture<'a, Result<Consent, CannotAsk>> {
        Box::pin(std::future::ready(Err(CannotAsk::NoUser)))
    }

    /// How it gets results.
    fn result_form(&self) -> ResultForm {
        ResultForm::default()
    }

    /// What a server may ask for here.
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// What a server that this client has to itself is told at the start: all that it may ask for
    /// on behalf of some request.
    fn declares(&self) -> Abilities {
        self.abilities()
    }

    /// How a server is greeted that this client has to itself and sees as it is; the server's own
    /// affair where nothing is said.
    fn era(&self) -> Option<Era> {
        None
    }

    /// Answers what a server asks, word for word as MCP has it.
    fn answer<'a>(&'a self, question: ServerQuestion<'a>) -> HostFuture<'a, Result<Raw, RpcError>> {
        let refused = question.topic.refused();
        Box::pin(std::future::ready(Err(refused)))
    }

    /// Hears what a server tells: log lines, changed resources. Must not wait.
    fn tell(&self, _server: &ServerName, _notice: &Notification) {}
}

/// A session without a user: it refuses whatever needs approval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headless;

impl Host for Headless {
    fn approve<'a>(&'a self, _: &'a Question) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>> {
        Box::pin(std::future::ready(Err(CannotAsk::NoUser)))
    }
}

/// Something that a server asks of the client that called it.
#[derive(Clone, Debug)]
pub struct ServerQuestion<'a> {
    /// The server that sends the request.
    pub server: &'a ServerName,
    /// What it requests.
    pub topic: Topic,
    /// What the server calls this question, where it asks several of one request.
    pub key: Option<&'a str>,
    /// Its parameters, as the server wrote them.
    pub params: Option<&'a Raw>,
    /// The field of a form in which its user would type a secret: they have to know which server
    /// gets it, or the form is refused.
    pub asks_for_secret: Option<String>,
}

impl<'a> ServerQuestion<'a> {
    /// Refuses a malformed form: it is unknown what it asks for.
    pub(crate) fn new(
        (server, key): (&'a ServerName, Option<&'a str>),
        topic: Topic,
        params: Option<&'a Raw>,
    ) -> Result<ServerQuestion<'a>, RpcError> {
        let asks_for_secret = match (topic, params) {
            (Topic::Elicitation, Some(params)) => {
                let unreadable =
                    |_| RpcError::new(INVALID_PARAMS, "malformed elicitation parameters");
                let params = Args::parse(params.as_str()).map_err(unreadable)?;
                elicitation::asks_for_secret(params.values())
            }
            _ => None,
        };
        Ok(ServerQuestion { server, topic, key, params, asks_for_secret })
    }
}

/// What servers may ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The directories that the client works on.
    Roots,
    /// Words of the client's model.
    Sampling,
    /// Words of the user.
    Elicitation,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Topic; 3] = [Topic::Roots, Topic::Sampling, Topic::Elicitation];

    /// The MCP method.
    pub fn method(self) -> &'static str {
        match self {
            Topic::Roots => "roots/list",
            Topic::Sampling => "sampling/createMessage",
            Topic::Elicitation => "elicitation/create",
        }
    }

    /// The topic of an MCP method.
    pub fn of_method(method: &str) -> Option<Topic> {
        Topic::ALL.into_iter().find(|topic| topic.method() == method)
    }

    /// The name of the capability.
    pub fn ability(self) -> &'static str {
        match self {
            Topic::Roots => "roots",
            Topic::Sampling => "sampling",
            Topic::Elicitation => "elicitation",
        }
    }

    /// The error for a server whose client does not offer this.
    pub fn refused(self) -> RpcError {
        let message = format!("this client does not offer {}", self.ability());
        RpcError::new(METHOD_NOT_FOUND, message)
    }
}

/// The client capabilities that concern servers, each as MCP writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// `roots`.
    pub roots: Option<Raw>,
    /// `sampling`.
    pub sampling: Option<Raw>,
    /// `elicitation`.
    pub elicitation: Option<Raw>,
}

impl Abilities {
    /// All that can be passed on.
    pub fn all() -> Abilities {
        let given = |json: &str| Some(Raw::from_json(json.to_owned()));
        Abilities {
            roots: given("{\"listChanged\":true}"),
            sampling: given("{}"),
            elicitation: given("{\"form\":{},\"url\":{}}"),
        }
    }

    /// The capability for this topic.
    pub fn of(&self, topic: Topic) -> Option<&Raw> {
        match topic {
            Topic::Roots => self.roots.as_ref(),
            Topic::Sampling => self.sampling.as_ref(),
            Topic::Elicitation => self.elicitation.as_ref(),
        }
    }

    /// What is left of them where only `topics` may be asked about.
    #[must_use]
    pub(crate) fn only(self, topics: &[Topic]) -> Abilities {
        let kept = |topic, ability: Option<Raw>| ability.filter(|_| topics.contains(&topic));
        Abilities {
            roots: kept(Topic::Roots, self.roots),
            sampling: kept(Topic::Sampling, self.sampling),
            elicitation: kept(Topic::Elicitation, self.elicitation),
        }
    }

    /// The object that `initialize` carries.
    pub(crate) fn to_json(&self) -> String {
        let offered = Topic::ALL.into_iter().filter_map(|topic| Some((topic, self.of(topic)?)));
        let members: Vec<String> = offered
            .map(|(topic, ability)| format!("\"{}\":{}", topic.ability(), ability.as_str()))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}
