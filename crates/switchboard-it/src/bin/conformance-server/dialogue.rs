//! Stateless requests that need several rounds of input: finds the round of a retry, and its next
//! input requests.

use rmcp::model::{
    ClientCapabilities, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    InputResponses, RequestStateCodec,
};
use serde::{Deserialize, Serialize};

/// A fixed key, because the sealed state is no secret.
const KEY: [u8; 32] = *b"a fixture has nothing to protect";

#[derive(Debug, Deserialize)]
pub(crate) struct Dialogue {
    rounds: Vec<InputRequests>,
    /// Whether `requestState` is sealed, so that a changed one is refused.
    #[serde(default)]
    sealed: bool,
}

/// The content of a sealed `requestState`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Bookmark {
    dialogue: String,
    round: usize,
}

/// A request, or its retry with input responses.
pub(crate) struct Turn<'a> {
    pub(crate) name: &'a str,
    pub(crate) responses: Option<&'a InputResponses>,
    pub(crate) state: Option<&'a str>,
    pub(crate) client: &'a ClientCapabilities,
}

impl Dialogue {
    /// The next input requests; `None` when all are answered.
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

    /// The input requests of a round that the client supports.
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
