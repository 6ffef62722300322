//! Signs in interactively or for a program: prints the URL to open, and waits for the sign-in.

use std::cell::Cell;
use std::convert::Infallible;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};
use switchboard::auth::tokens::Granted;
use switchboard::auth::{
    Begun, DevicePending, Pending, SignIn, SignInMethod, SignedIn, TokenLocation,
};
use switchboard::failure::{Code, Failure, Hint};
use switchboard::name::ServerName;
use switchboard::render::words::{clean_line, duration};

use crate::args::Format;
use crate::browser::Browser;
use crate::conversation::Conversation;
use crate::keyboard::Keyboard;
use crate::printer::Printer;
use crate::report::Stop;

const NAME: usize = 100;
const ADDRESS: usize = 500;

/// The method of the sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The user signs in with the browser of this machine, which is opened if there is a display.
    Browser,
    /// The user signs in with a browser elsewhere, and pastes its final URL.
    Paste,
    /// The user signs in on another device, by entering a code there.
    Device,
}

/// Where the URL to open is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    /// The URL is printed on standard output, because the command has no other result.
    AsData(Format),
    /// The URL is printed on standard error, because standard output is for the command's result.
    AsWords,
}

/// The sign-in to one server during a command.
pub(crate) struct Desk<'a> {
    conversation: &'a Conversation<'a>,
    server: &'a ServerName,
    told: Told,
}

/// Signs in to a server because a call requires it, if the settings allow that and there is a
/// terminal; otherwise returns the failure.
pub(crate) async fn for_a_call(
    conversation: &Conversation<'_>,
    failure: Failure,
) -> Result<(), Stop> {
    let is_wanted = failure.code == Code::SignInRequired
        && conversation.session.gateway().settings().auto_auth
        && conversation.app.printer.can_ask();
    let server = failure.hints.iter().find_map(|hint| match hint {
        Hint::SignIn(server) if is_wanted => Some(server.clone()),
        _ => None,
    });
    let Some(server) = server else { return Err(failure.into()) };
    let signed_in =
        Desk::new(conversation, &server, Told::AsWords).sign_in(Manner::Browser).await?;
    conversation.app.printer.note(&report(&signed_in, conversation.app.printer));
    Ok(())
}

impl<'a> Desk<'a> {
    pub(crate) fn new(
        conversation: &'a Conversation<'a>,
        server: &'a ServerName,
        told: Told,
    ) -> Desk<'a> {
        Desk { conversation, server, told }
    }

    pub(crate) async fn sign_in(&self, manner: Manner) -> Result<SignedIn, Stop> {
        let sign_in = self.conversation.session.gateway().sign_in(self.server).await?;
        let way = match manner {
            Manner::Browser | Manner::Paste => SignInMethod::Page,
            Manner::Device => SignInMethod::Device,
        };
        match self.begin(&sign_in, way).await? {
            Begun::Done(signed_in) => Ok(signed_in),
            Begun::Page(pending) => self.at_page(pending, manner).await,
            Begun::Device(pending) => self.at_device(pending).await,
        }
    }

    async fn begin(&self, sign_in: &SignIn, way: SignInMethod) -> Result<Begun, Failure> {
        let (printer, shown) = (self.conversation.app.printer, self.shown());
        let queued = sign_in.queued();
        let stage = async || match *queued.borrow() {
            true => "another process is signing in; waiting".to_owned(),
            false => format!("finding out how to sign in to {shown}"),
        };
        let mut queue = sign_in.queued();
        let noting = async {
            if queue.wait_for(|queued| *queued).await.is_ok() && !printer.is_watched() {
                printer.note(&format!(
                    "note: another process is signing in to `{shown}`; waiting for it"
                ));
            }
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            begun = self.conversation.spinner.during(stage, sign_in.begin(way)) => begun,
            never = noting => match never {},
        }
    }

    async fn at_page(&self, mut pending: Pending, manner: Manner) -> Result<SignedIn, Stop> {
        let printer = self.conversation.app.printer;
        let url = pending.link().as_str();
        self.say(&format!("To sign in to `{}`, open this address:", self.shown()));
        self.tell(&json!({ "server": self.server.as_str(), "url": url }), &[url])?;
        if manner == Manner::Browser && printer.can_ask() {
            match Browser::of(&self.conversation.app.environment).open(pending.link()).await {
                Ok(()) => self.say("Opened it in your browser"),
                Err(cause) => self.say(&format!("The browser was not opened: {cause}")),
            }
        }
        let mut keyboard = None;
        if manner == Manner::Paste || printer.can_ask() {
            self.say("If the browser ends at a page that does not load, paste its address here");
            keyboard = Some(Keyboard::open());
        }
        let typed = Cell::new(0);
        let stage = async || match (typed.get(), manner) {
            (0, Manner::Paste) => "waiting for an address to be pasted".to_owned(),
            (0, Manner::Browser | Manner::Device) => "waiting for the browser".to_owned(),
            (count, _) => format!("{count} characters pasted; press Enter"),
        };
        let answered = self.answered(&mut pending, keyboard.as_mut(), &typed);
        Ok(self.conversation.spinner.during(stage, answered).await?)
    }

    /// Waits until the browser finishes the sign-in or the user pastes the final URL. An invalid
    /// URL does not end the wait.
    async fn answered(
        &self,
        pending: &mut Pending,
        mut keyboard: Option<&mut Keyboard>,
        typed: &Cell<usize>,
    ) -> Result<SignedIn, Failure> {
        loop {
            let line = async {
                match &mut keyboard {
                    Some(keyboard) => keyboard.line(typed).await,
                    None => std::future::pending().await,
                }
            };
            let pasted = tokio::select! {
                finished = pending.finished() => return finished,
                pasted = line => pasted,
            };
            match pending.complete(&pasted).await {
                Err(failure) if !pending.is_over() => {
                    let why = failure.chain().pop().unwrap_or_default();
                    self.conversation.spinner.warn(&format!("{why} (still waiting)"));
                }
                outcome => return outcome,
            }
        }
    }

    async fn at_device(&self, pending: DevicePending) -> Result<SignedIn, Stop> {
        let (url, code) = (pending.link().as_str(), pending.user_code());
        self.say(&format!(
            "To sign in to `{}`, open this address on any device, and enter this code there:",
            self.shown()
        ));
        let value = json!({ "server": self.server.as_str(), "url": url, "userCode": code });
        self.tell(&value, &[url, code])?;
        let stage = async || "waiting for the code to be entered".to_owned();
        Ok(self.conversation.spinner.during(stage, pending.finished()).await?)
    }

    /// Prints the URL and the code to open, each on a line of its own.
    fn tell(&self, value: &Value, lines: &[&str]) -> std::io::Result<()> {
        let printer = self.conversation.app.printer;
        match self.told {
            Told::AsData(Format { json: true }) => printer.json_line(value),
            Told::AsData(Format { json: false }) => printer.text(&lines.join("\n")),
            Told::AsWords => {
                printer.note(&lines.join("\n"));
                Ok(())
            }
        }
    }

    /// Prints a message for the user, unless the output is JSON.
    fn say(&self, words: &str) {
        if !matches!(self.told, Told::AsData(Format { json: true })) {
            self.conversation.app.printer.note(words);
        }
    }

    fn shown(&self) -> String {
        clean_line(self.server.as_str(), NAME).into_owned()
    }
}

/// The result of a sign-in: server, authorization server, scopes, lifetime and storage.
pub(crate) fn report(signed_in: &SignedIn, printer: Printer) -> String {
    let SignedIn { server, grant: Granted { issuer, scopes, expires, renewable }, kept } =
        signed_in;
    let palette = printer.err;
    let mut text = format!(
        "{} to {} at {}",
        palette.command("Signed in"),
        palette.name(clean_line(server.as_str(), NAME)),
        palette.name(clean_line(issuer, ADDRESS)),
    );
    let mut line = |name: &str, value: &str| text.push_str(&format!("\n  {name:<8}{value}"));
    if !scopes.is_empty() {
        line("scopes", &clean_line(&scopes.join(" "), ADDRESS));
    }
    let left = expires.map(|at| duration(at.duration_since(SystemTime::now()).unwrap_or_default()));
    match (left, renewable) {
        (Some(left), true) => line("token", &format!("valid for {left}, refreshed automatically")),
        (Some(left), false) => line("token", &format!("valid for {left}; then sign in again")),
        (None, _) => {}
    }
    match kept {
        None => {}
        Some(TokenLocation::Keyring) => line("stored", "in the keyring of the system"),
        Some(TokenLocation::File(path)) => {
            line("stored", &format!("{}, unencrypted; only you can read it", file_in(path)));
        }
        Some(TokenLocation::EncryptedFile(path)) => {
            line("stored", &format!("{}, encrypted", file_in(path)))
        }
    }
    text
}

/// The directory of a token file. The file's name is left out, because it is an opaque id.
fn file_in(path: &Path) -> String {
    let folder = path.parent().unwrap_or(path).to_string_lossy();
    format!("in a file in `{}`", clean_line(&folder, ADDRESS))
}
