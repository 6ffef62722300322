//! The host of a session, which answers approval questions and server-to-client requests.

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

/// The future of a host's answer.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a host returned no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotAsk {
    /// The session has no user, or the host cannot ask.
    #[error("the user cannot be asked")]
    NoUser,
    /// The host asked, but the user did not answer.
    #[error("the user did not answer")]
    Unanswered,
}

/// The user's decision about the connection to an ad hoc server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The user permits the connection.
    Given,
    /// The user declined the connection.
    Refused,
}

/// Answers approval questions and server-to-client requests. Each face implements this trait; the
/// default methods refuse.
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
    /// Asks the user to approve a call.
    fn approve<'a>(
        &'a self,
        question: &'a Question,
    ) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>>;

    /// Asks the user to approve an ad hoc server. The user must see the complete command line or
    /// the URL.
    fn approve_connection<'a>(
        &'a self,
        _wanted: &'a ConnectionRequest,
    ) -> HostFuture<'a, Result<Consent, CannotAsk>> {
        Box::pin(std::future::ready(Err(CannotAsk::NoUser)))
    }

    /// The form in which the host receives results.
    fn result_form(&self) -> ResultForm {
        ResultForm::default()
    }

    /// The client capabilities for server-to-client requests.
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// The capabilities declared to a server whose connection this client owns: all that the server
    /// may request during any call.
    fn declares(&self) -> Abilities {
        self.abilities()
    }

    /// The era prescribed for a connection that this client owns in `serve --transparent`; `None`
    /// lets the server decide.
    fn era(&self) -> Option<Era> {
        None
    }

    /// Answers a server-to-client request with the result that MCP defines.
    fn answer<'a>(&'a self, question: ServerQuestion<'a>) -> HostFuture<'a, Result<Raw, RpcError>> {
        let refused = question.topic.refused();
        Box::pin(std::future::ready(Err(refused)))
    }

    /// Receives a notification of a server, such as a log message or a changed resource. Must not
    /// block.
    fn tell(&self, _server: &ServerName, _notice: &Notification) {}
}

/// The host of a session without a user: refuses every call that needs approval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headless;

impl Host for Headless {
    fn approve<'a>(&'a self, _: &'a Question) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>> {
        Box::pin(std::future::ready(Err(CannotAsk::NoUser)))
    }
}

/// A server-to-client request.
#[derive(Clone, Debug)]
pub struct ServerQuestion<'a> {
    /// The server that sends the request.
    pub server: &'a ServerName,
    /// The topic of the request.
    pub topic: Topic,
    /// The server's key for this request, if one response contains several.
    pub key: Option<&'a str>,
    /// The parameters of the request, unchanged.
    pub params: Option<&'a Raw>,
    /// The form field that requests a secret. The host must tell the user which server receives it,
    /// or refuse the form.
    pub asks_for_secret: Option<String>,
}

impl<'a> ServerQuestion<'a> {
    /// Refuses malformed elicitation parameters, because they cannot be checked for secrets.
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

/// The kinds of server-to-client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// `roots/list`: the directories that the client works on.
    Roots,
    /// `sampling/createMessage`: a completion of the client's model.
    Sampling,
    /// `elicitation/create`: input of the user.
    Elicitation,
}

impl Topic {
    /// All topics of server-to-client requests.
    pub const ALL: [Topic; 3] = [Topic::Roots, Topic::Sampling, Topic::Elicitation];

    /// The MCP method of the topic.
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

    /// The name of the capability for the topic.
    pub fn ability(self) -> &'static str {
        match self {
            Topic::Roots => "roots",
            Topic::Sampling => "sampling",
            Topic::Elicitation => "elicitation",
        }
    }

    /// The error for a server whose client does not offer the capability.
    pub fn refused(self) -> RpcError {
        let message = format!("this client does not offer {}", self.ability());
        RpcError::new(METHOD_NOT_FOUND, message)
    }
}

/// The client capabilities for server-to-client requests, each as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// The capability `roots`; `None` if the client lacks it.
    pub roots: Option<Raw>,
    /// The capability `sampling`; `None` if the client lacks it.
    pub sampling: Option<Raw>,
    /// The capability `elicitation`; `None` if the client lacks it.
    pub elicitation: Option<Raw>,
}

impl Abilities {
    /// All client capabilities whose server-to-client requests the gateway can forward.
    pub fn all() -> Abilities {
        let given = |json: &str| Some(Raw::from_json(json.to_owned()));
        Abilities {
            roots: given("{\"listChanged\":true}"),
            sampling: given("{}"),
            elicitation: given("{\"form\":{},\"url\":{}}"),
        }
    }

    /// The capability for this topic; `None` if the client lacks it.
    pub fn of(&self, topic: Topic) -> Option<&Raw> {
        match topic {
            Topic::Roots => self.roots.as_ref(),
            Topic::Sampling => self.sampling.as_ref(),
            Topic::Elicitation => self.elicitation.as_ref(),
        }
    }

    /// The capabilities for `topics` alone.
    #[must_use]
    pub(crate) fn only(self, topics: &[Topic]) -> Abilities {
        let kept = |topic, ability: Option<Raw>| ability.filter(|_| topics.contains(&topic));
        Abilities {
            roots: kept(Topic::Roots, self.roots),
            sampling: kept(Topic::Sampling, self.sampling),
            elicitation: kept(Topic::Elicitation, self.elicitation),
        }
    }

    /// The `capabilities` object of `initialize`.
    pub(crate) fn to_json(&self) -> String {
        let offered = Topic::ALL.into_iter().filter_map(|topic| Some((topic, self.of(topic)?)));
        let members: Vec<String> = offered
            .map(|(topic, ability)| format!("\"{}\":{}", topic.ability(), ability.as_str()))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}
