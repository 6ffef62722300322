//! A keyring for a program under test: a Secret Service on its own D-Bus, in this process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::task::AbortOnDropHandle;
use zbus::connection::{Builder, Connection};
use zbus::message::{Header, Message, Type};
use zbus::{Guid, ObjectPath, OwnedObjectPath, OwnedVariant, Variant};

const COLLECTION: &str = "/org/freedesktop/secrets/collection/login";
const SESSION: &str = "/org/freedesktop/secrets/session/1";
const PROMPT: &str = "/org/freedesktop/secrets/prompt/1";
const ATTRIBUTES: &str = "org.freedesktop.Secret.Item.Attributes";
const IS_LOCKED: &str = "org.freedesktop.Secret.Error.IsLocked";
const SERVICE_UNKNOWN: &str = "org.freedesktop.DBus.Error.ServiceUnknown";

/// How a keyring responds to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temper {
    Obliging,
    /// The keyring reports that it is locked.
    Locked,
    /// The keyring requires a prompt to the user.
    Asking,
    /// There is a bus without a keyring.
    Absent,
    /// The keyring accepts connections and never responds.
    Silent,
}

/// A bus with a keyring. Both end when this is dropped.
#[derive(Debug)]
pub struct Keyring {
    address: String,
    items: Arc<Mutex<Items>>,
    _directory: TempDir,
    _serving: AbortOnDropHandle<()>,
}

/// Attributes and secrets, by object path.
type Items = BTreeMap<String, (HashMap<String, String>, String)>;

/// A secret on the bus: session, parameters, value, type.
type Secret = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

impl Keyring {
    /// Starts the bus and the keyring. Needs a tokio runtime.
    pub fn start(temper: Temper) -> Keyring {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("bus");
        let listener = UnixListener::bind(&path).expect("a socket can be made");
        let items = Arc::new(Mutex::new(Items::new()));
        let serving = tokio::spawn(serve(listener, temper, Arc::clone(&items)));
        Keyring {
            address: format!("unix:path={}", path.display()),
            items,
            _directory: directory,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// The value of `DBUS_SESSION_BUS_ADDRESS`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Every stored secret, with its service.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let service = |attributes: &HashMap<String, String>| attributes["service"].clone();
        items.values().map(|(of, secret)| (service(of), secret.clone())).collect()
    }
}

async fn serve(listener: UnixListener, temper: Temper, items: Arc<Mutex<Items>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let items = Arc::clone(&items);
        connections.spawn(async move {
            match temper {
                Temper::Silent => {
                    let _held = stream;
                    std::future::pending().await
                }
                Temper::Obliging | Temper::Locked | Temper::Asking | Temper::Absent => {
                    // A client that times out disconnects during an exchange.
                    let _gone = talk(stream, temper, &items).await;
                }
            }
        });
    }
}

/// Serves until the client disconnects.
async fn talk(stream: UnixStream, temper: Temper, items: &Mutex<Items>) -> zbus::Result<()> {
    let builder = Builder::unix_stream(stream.into_std()?).server(Guid::generate()).p2p();
    let mut messages = builder.build_message_stream().await?;
    let connection = Connection::from(&messages);
    while let Some(Ok(message)) = messages.next().await {
        if message.message_type() == Type::MethodCall {
            answer(&connection, &message, temper, items).await?;
        }
    }
    Ok(())
}

async fn answer(
    connection: &Connection,
    message: &Message,
    temper: Temper,
    items: &Mutex<Items>,
) -> zbus::Result<()> {
    let header = message.header();
    let member = header.member().map(ToString::to_string).unwrap_or_default();
    if member == "Hello" {
        return connection.reply(&header, &":1.1").await;
    }
    let to_us = header.destination().is_some_and(|name| *name == "org.freedesktop.secrets");
    if temper == Temper::Absent || !to_us {
        return connection.reply_error(&header, SERVICE_UNKNOWN, &"no service has this name").await;
    }
    let of_item = header.path().map(ToString::to_string).unwrap_or_default();
    match member.as_str() {
        "OpenSession" => connection.reply(&header, &(Variant::from(""), path(SESSION))).await,
        "ReadAlias" => connection.reply(&header, &path(COLLECTION)).await,
        "SearchItems" => {
            let wanted: HashMap<String, String> = message.body().deserialize()?;
            let found = matching(items, &wanted);
            let none = Vec::new();
            let sorted = if temper == Temper::Locked { (none, found) } else { (found, none) };
            connection.reply(&header, &sorted).await
        }
        "CreateItem" => create(connection, message, &header, temper, items).await,
        "GetSecret" => {
            let secret = secret_of(items, &of_item);
            let secret = (path(SESSION), Vec::<u8>::new(), secret.into_bytes(), "text/plain");
            connection.reply(&header, &(secret,)).await
        }
        "Delete" => {
            items.lock().unwrap_or_else(PoisonError::into_inner).remove(&of_item);
            connection.reply(&header, &path("/")).await
        }
        other => panic!("a keyring has no method {other}"),
    }
}

async fn create(
    connection: &Connection,
    message: &Message,
    header: &Header<'_>,
    temper: Temper,
    items: &Mutex<Items>,
) -> zbus::Result<()> {
    match temper {
        Temper::Locked => return connection.reply_error(header, IS_LOCKED, &"it is locked").await,
        Temper::Asking => return connection.reply(header, &(path("/"), path(PROMPT))).await,
        Temper::Obliging | Temper::Absent | Temper::Silent => {}
    }
    let body = message.body();
    let (mut properties, secret, replace): (HashMap<String, OwnedVariant>, Secret, bool) =
        body.deserialize()?;
    let (_session, _parameters, value, _type) = secret;
    let attributes = properties.remove(ATTRIBUTES).expect("an item has attributes");
    let attributes = HashMap::<String, String>::try_from(attributes)?;
    let secret = String::from_utf8(value).expect("our secrets are text");
    assert!(replace, "the product replaces existing items");
    let at = matching(items, &attributes).first().map(ToString::to_string);
    let at = {
        let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
        let at = at.unwrap_or_else(|| format!("{COLLECTION}/{}", items.len()));
        items.insert(at.clone(), (attributes, secret));
        at
    };
    connection.reply(header, &(OwnedObjectPath::try_from(at)?, path("/"))).await
}

fn matching(items: &Mutex<Items>, wanted: &HashMap<String, String>) -> Vec<OwnedObjectPath> {
    let items = items.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = |attributes: &HashMap<String, String>| {
        wanted.iter().all(|(name, value)| attributes.get(name) == Some(value))
    };
    let found = items.iter().filter(|(_, (attributes, _))| fits(attributes));
    found.map(|(at, _)| OwnedObjectPath::try_from(at.clone()).expect("a path of ours")).collect()
}

fn secret_of(items: &Mutex<Items>, item: &str) -> String {
    let items = items.lock().unwrap_or_else(PoisonError::into_inner);
    items.get(item).map(|(_, secret)| secret.clone()).expect("an item that was found")
}

fn path(path: &'static str) -> ObjectPath<'static> {
    ObjectPath::from_static_str_unchecked(path)
}
