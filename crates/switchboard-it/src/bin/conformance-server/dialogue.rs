//! Requests of the modern era that need several rounds: which round a retry answers, and what is
//! asked next.

use rmcp::model::{
    ClientCapabilities, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, RequestStateCodec,
};
use serde::{Deserialize, Serialize};

/// Nothing that is sealed here is worth a secret.
const KEY: [u8; 32] = *b"a fixture has nothing to protect";

#[derive(Debug, Deserialize)]
pub(crate) struct Dialogue {
    rounds: Vec<InputRequests>,
    /// The round travels with the client, and comes back unchanged or is refused.
    #[serde(default)]
    sealed: bool,
}

/// What the client has to carry.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Bookmark {
    dialogue: String,
    round: usize,
}

/// A request, or its repetition with what was asked for.
pub(crate) struct Turn<'a> {
    pub(crate) name: &'a str,
    pub(crate) responses: Option<&'a InputResponses>,
    pub(crate) state: Option<&'a str>,
    pub(crate) client: &'a ClientCapabilities,
}

impl Dialogue {
    /// What is still needed; `None` when all questions have been answered.
    pub(crate) fn next(&self, turn: &Turn<'_>) -> Result<Option<InputRequiredResult>, ErrorData> {
        let round = self.round(turn)?;
        let asked = self.questions(round, turn.client)?;
        let answered = turn.responses.is_some_and(|responses| {
            asked.keys().all(|key| responses.get(key).is_some_and(serde_json::Value::is_object))
        });
        let round = if answered { round + 1 } else { round };
        if round == self.rounds.len() {
            return Ok(None);
        }
        let state = self.sealed.then(|| seal(turn.name, round)).transpose()?;
        Ok(Some(InputRequiredResult::new(Some(self.questions(round, turn.client)?), state)))
    }

    fn round(&self, turn: &Turn<'_>) -> Result<usize, ErrorData> {
        let (true, Some(state)) = (self.sealed, turn.state) else { return Ok(0) };
        let refused = || ErrorData::invalid_params("the request state is not one of ours", None);
        let bookmark: Bookmark = codec().open_json(state).map_err(|_| refused())?;
        let ours = bookmark.dialogue == turn.name && bookmark.round < self.rounds.len();
        if ours { Ok(bookmark.round) } else { Err(refused()) }
    }

    /// Never more than the client said it can answer.
    fn questions(
        &self,
        round: usize,
        client: &ClientCapabilities,
    ) -> Result<InputRequests, ErrorData> {
        let mut questions = self.rounds.get(round).cloned().unwrap_or_default();
        questions.retain(|_, question| match question {
            InputRequest::CreateMessage(_) => client.sampling.is_some(),
            InputRequest::Elicitation(_) => client.elicitation.is_some(),
            InputRequest::ListRoots(_) => client.roots.is_some(),
            _ => false,
        });
        if questions.is_empty() {
            let wanted = ClientCapabilities::builder().enable_elicitation().build();
            return Err(ErrorData::missing_required_client_capability(wanted));
        }
        Ok(questions)
    }
}

fn seal(name: &str, round: usize) -> Result<String, ErrorData> {
    let bookmark = Bookmark { dialogue: name.to_owned(), round };
    codec().seal_json(&bookmark).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn codec() -> RequestStateCodec {
    RequestStateCodec::try_new(KEY).expect("the key is long enough")
}
