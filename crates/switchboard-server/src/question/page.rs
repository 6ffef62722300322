//! Which addresses an elicitation may lead to.

use serde_json::Value;
use switchboard::elicitation::is_web_page;
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
