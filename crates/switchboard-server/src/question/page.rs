//! Which addresses an elicitation may lead to.

use serde_json::Value;
use switchboard::exact::Args;
use switchboard_wire::RpcError;
use switchboard_wire::envelope::INVALID_PARAMS;

/// Refuses an elicitation with an address that may not be opened.
pub(super) fn leads_to_web_pages(question: &Args) -> Result<(), RpcError> {
    match question.values().get("url").map(Value::as_str) {
        Some(Some(url)) if is_web_page(url) => Ok(()),
        None => Ok(()),
        Some(_) => {
            let refused = "a question may lead to `https` and to this machine only";
            Err(RpcError::new(INVALID_PARAMS, refused))
        }
    }
}

/// Over TLS, or on this machine, and without a name that hides the host.
pub(crate) fn is_web_page(url: &str) -> bool {
    let local = ["http://localhost", "http://127.0.0.1", "http://[::1]"];
    let rest = match url.strip_prefix("https://") {
        Some(rest) => Some(rest),
        None => local.iter().find_map(|host| {
            let rest = url.strip_prefix(host)?;
            (rest.is_empty() || rest.starts_with([':', '/', '?', '#'])).then_some(rest)
        }),
    };
    let Some(rest) = rest else { return false };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    url.is_ascii()
        && !authority.contains('@')
        && !url.contains(|c: char| c.is_ascii_control() || c == ' ')
}
