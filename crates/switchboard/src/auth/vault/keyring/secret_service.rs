//! The Secret Service (freedesktop.org) over D-Bus: each operation opens and closes its own
//! connection.

use std::collections::HashMap;

use serde::Serialize;
use tokio::runtime;
use zbus::connection::{Builder, Connection};
use zbus::{DynamicType, Message, ObjectPath, OwnedObjectPath, OwnedVariant, Variant, fdo};

use super::{KeyringError, SERVICE};
use crate::env::Environment;
use crate::secret::Secret;

const BUS_NAME: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";
/// The object path that means "none".
const NOTHING: &str = "/";

const OF_SERVICE: &str = "org.freedesktop.Secret.Service";
const OF_COLLECTION: &str = "org.freedesktop.Secret.Collection";
const OF_ITEM: &str = "org.freedesktop.Secret.Item";
const IS_LOCKED: &str = "org.freedesktop.Secret.Error.IsLocked";

/// The address of a session bus that may offer the Secret Service.
pub(super) struct SecretService {
    address: String,
}

impl SecretService {
    /// The Secret Service at the user's session bus, if that bus is a Unix socket of this machine.
    pub(super) fn at_hand(environment: &Environment) -> Option<SecretService> {
        let address = match environment.variable("DBUS_SESSION_BUS_ADDRESS") {
            Some(addresses) => {
                addresses.split(';').find(|one| one.starts_with("unix:"))?.to_owned()
            }
            None => {
                let runtime = environment.variable("XDG_RUNTIME_DIR")?;
                // A path with other characters is not used, because they have to be escaped in a
                // D-Bus address.
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_/.\\*".contains(c);
                let usual = runtime.starts_with('/') && runtime.chars().all(plain);
                usual.then(|| format!("unix:path={runtime}/bus"))?
            }
        };
        Some(SecretService { address })
    }

    pub(super) fn read(&self, account: &str) -> Result<Option<Secret>, KeyringError> {
        self.with_bus(async |bus| {
            let Some(item) = bus.items(account).await?.into_iter().next() else { return Ok(None) };
            let session = bus.session().await?;
            let reply = bus.call(&item, OF_ITEM, "GetSecret", &session).await?;
            let body = reply.body();
            // A D-Bus structure has the same encoding as the sequence of its fields.
            let (_session, _parameters, value, _type): (OwnedObjectPath, Vec<u8>, Vec<u8>, String) =
                body.deserialize_ignore_signature().map_err(|_| KeyringError::Refused)?;
            let text = String::from_utf8(value).map_err(|_| KeyringError::Refused)?;
            Ok(Some(Secret::new(text)))
        })
    }

    pub(super) fn write(&self, account: &str, secret: &Secret) -> Result<(), KeyringError> {
        self.with_bus(async |bus| {
            let collection: OwnedObjectPath =
                bus.service("ReadAlias", &"default").await?.body().deserialize().map_err(broken)?;
            if collection.as_str() == NOTHING {
                return Err(KeyringError::Absent);
            }
            let session = bus.session().await?;
            let properties = HashMap::from([
                ("org.freedesktop.Secret.Item.Label", Variant::from("Switchboard")),
                ("org.freedesktop.Secret.Item.Attributes", Variant::from(attributes(account))),
            ]);
            let value = (&session, [0_u8; 0].as_slice(), secret.expose().as_bytes(), "text/plain");
            let replace = true;
            let body = (properties, value, replace);
            let made = bus.call(&collection, OF_COLLECTION, "CreateItem", &body).await?;
            let (_item, prompt): (OwnedObjectPath, OwnedObjectPath) =
                made.body().deserialize().map_err(broken)?;
            unprompted(&prompt)
        })
    }

    pub(super) fn remove(&self, account: &str) -> Result<(), KeyringError> {
        self.with_bus(async |bus| {
            for item in bus.items(account).await? {
                let removed = bus.call(&item, OF_ITEM, "Delete", &()).await?;
                let prompt: OwnedObjectPath = removed.body().deserialize().map_err(broken)?;
                unprompted(&prompt)?;
            }
            Ok(())
        })
    }

    fn with_bus<T>(
        &self,
        work: impl AsyncFnOnce(&Bus) -> Result<T, KeyringError>,
    ) -> Result<T, KeyringError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(KeyringError::Thread)?;
        let answer = runtime.block_on(async {
            let connecting = Builder::address(self.address.as_str()).build();
            // If no bus listens on the socket, the machine has no keyring.
            let connection = connecting.await.map_err(|_| KeyringError::Absent)?;
            work(&Bus { connection }).await
        });
        runtime.shutdown_background();
        answer
    }
}

struct Bus {
    connection: Connection,
}

impl Bus {
    async fn call(
        &self,
        path: &ObjectPath<'_>,
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<Message, KeyringError> {
        let called =
            self.connection.call_method(Some(BUS_NAME), path, Some(interface), method, body);
        called.await.map_err(classify)
    }

    async fn service(
        &self,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<Message, KeyringError> {
        let root = ObjectPath::from_static_str_unchecked(ROOT);
        self.call(&root, OF_SERVICE, method, body).await
    }

    /// Opens an unencrypted session: a process that can monitor the bus could also read the secrets
    /// directly.
    async fn session(&self) -> Result<OwnedObjectPath, KeyringError> {
        let opened = self.service("OpenSession", &("plain", Variant::from(""))).await?;
        let (_nothing, session): (OwnedVariant, OwnedObjectPath) =
            opened.body().deserialize().map_err(broken)?;
        Ok(session)
    }

    /// The unlocked items of an account. Locked items stay locked: to unlock them would prompt the
    /// user, who did not request it.
    async fn items(&self, account: &str) -> Result<Vec<OwnedObjectPath>, KeyringError> {
        let found = self.service("SearchItems", &attributes(account)).await?;
        let (open, locked): (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) =
            found.body().deserialize().map_err(broken)?;
        if open.is_empty() && !locked.is_empty() {
            return Err(KeyringError::Locked);
        }
        Ok(open)
    }
}

fn attributes(account: &str) -> HashMap<&str, &str> {
    HashMap::from([("service", SERVICE), ("account", account)])
}

/// A returned prompt means that the user has to unlock the keyring first.
fn unprompted(prompt: &OwnedObjectPath) -> Result<(), KeyringError> {
    if prompt.as_str() == NOTHING { Ok(()) } else { Err(KeyringError::Locked) }
}

fn broken(_error: zbus::Error) -> KeyringError {
    KeyringError::Refused
}

fn classify(error: zbus::Error) -> KeyringError {
    match error {
        zbus::Error::MethodError(name, _, _) if name.as_str() == IS_LOCKED => KeyringError::Locked,
        zbus::Error::FDO(error) => match *error {
            fdo::Error::ServiceUnknown(_) | fdo::Error::NameHasNoOwner(_) => KeyringError::Absent,
            _ => KeyringError::Refused,
        },
        _ => KeyringError::Refused,
    }
}
