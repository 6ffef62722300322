//! Checks the URLs of elicitations.

use serde_json::Value;
use switchboard::elicitation::is_web_page;
use switchboard::exact::Args;
use switchboard_wire::RpcError;
use switchboard_wire::envelope::INVALID_PARAMS;

/// Refuses an elicitation whose URL may not be opened.
pub(super) fn leads_to_web_pages(question: &Args) -> Result<(), RpcError> {
    match question.values().get("url").map(Value::as_str) {
        Some(Some(url)) if is_web_page(url) => Ok(()),
        None => Ok(()),
        Some(_) => {
            let refused = "the URL must be `https` or lead to this machine";
            Err(RpcError::new(INVALID_PARAMS, refused))
        }
    }
}
