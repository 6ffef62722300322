//! A server, `far`, that requires sign-in at a test authorization server, and gateways that are
//! signed in.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;
use switchboard::auth::{Begun, SignInMethod, SignedIn};
use switchboard::failure::Failure;
use switchboard_it::authority::{Authority, Record, visit};
use switchboard_it::harness::{Home, World};

/// A configuration with one server, `far`, that requires sign-in at this authorization server.
pub(super) fn config(authority: &Authority) -> String {
    json!({ "mcpServers": { "far": { "url": authority.mcp_url() } } }).to_string()
}

/// A gateway in this home directory, without a sign-in.
pub(super) fn world_in(home: &Home, authority: &Authority) -> World {
    World::with(&config(authority)).home(home.clone()).start()
}

/// A gateway that is signed in.
pub(super) async fn world(authority: &Authority) -> World {
    let world = world_in(&Home::new(), authority);
    sign_in(&world).await;
    world
}

/// Signs in with a browser.
pub(super) async fn sign_in(world: &World) -> SignedIn {
    let far = world.gateway.usable("far").unwrap();
    let begun = world.gateway.sign_in(&far).await.unwrap().begin(SignInMethod::Page).await.unwrap();
    let Begun::Page(mut pending) = begun else { panic!("the sign-in needs no browser") };
    let link = pending.link().clone();
    let (status, signed_in) = tokio::join!(visit(link.as_str()), pending.finished());
    assert_eq!(status, 200);
    signed_in.unwrap()
}

pub(super) async fn echo(world: &World, text: &str) -> Result<String, Failure> {
    world.call("far_echo", json!({ "text": text })).await
}

/// The counts of token refreshes, reused refresh tokens and sign-ins.
pub(super) fn tally(authority: &Authority) -> [usize; 3] {
    let Record { redemptions, replays, sign_ins, .. } = authority.ledger().now();
    [redemptions, replays, sign_ins]
}

/// The stored sign-ins below a home directory, by file name, without the empty lock files.
pub(super) fn kept(home: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(home.join("switchboard/state/tokens")).into_iter().flatten();
    let files = files.map(|file| file.unwrap().path()).filter(|path| path.is_file());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let files = files.map(|path| (name(&path), fs::read(path).unwrap()));
    files.filter(|(_, content)| !content.is_empty()).collect()
}
