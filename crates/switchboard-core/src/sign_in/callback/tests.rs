//! Validation of OAuth callbacks.

use proptest::prelude::*;

use super::*;

const STATE: &str = "Zm9v-state_1";
const ISSUER: &str = "https://as.example";

/// The expected values for an authorization server that does not promise `iss`.
fn silent() -> Expected<'static> {
    Expected { state: STATE, issuer: ISSUER, issuer_promised: false }
}

fn promised() -> Expected<'static> {
    Expected { issuer_promised: true, ..silent() }
}

/// The code of a callback, or the error with its fields, as text.
fn outcome(judged: Result<Code, CallbackError>) -> String {
    match judged {
        Ok(code) => format!("code {}", code.reveal()),
        Err(error) => format!("{error:?}"),
    }
}

#[track_caller]
fn check(query: &str, expected: &str) {
    assert_eq!(outcome(of_query(query, &silent())), expected, "{query}");
}

#[test]
fn callback_with_wrong_state_is_rejected() {
    check("code=c&state=Zm9v-state_1", "code c");
    check("state=Zm9v%2Dstate%5F1&code=4%2F0A+b", "code 4/0A b");
    for stray in [
        "",
        "code=c",
        "code=c&state=",
        "code=c&state=zm9v-state_1",
        "code=c&state=Zm9v-state_1x",
        "code=c&state=Zm9v-state_1%00",
        "code=c&State=Zm9v-state_1",
        "code=c&state=Zm9v-state_1&state=Zm9v-state_1",
        "code=c&state=other&state=Zm9v-state_1",
        "error=access_denied&error_description=evil",
        "error=access_denied&state=other",
        "iss=https%3A%2F%2Fevil.example&code=c",
        "favicon.ico",
    ] {
        check(stray, "Stray");
    }
    check(&format!("state={STATE}&code={}", "c".repeat(LONGEST)), "Stray");
}

/// RFC 9207, section 2.4, for authorization servers that promise `iss` and for those that do not.
#[test]
fn callback_with_wrong_issuer_is_rejected() {
    let check = |iss: &str, when_silent: &str, when_promised: &str| {
        let query = format!("code=c&state={STATE}{iss}");
        assert_eq!(outcome(of_query(&query, &silent())), when_silent, "{query}");
        assert_eq!(outcome(of_query(&query, &promised())), when_promised, "{query}");
    };
    check("", "code c", "IssuerMissing");
    check("&iss=https%3A%2F%2Fas.example", "code c", "code c");
    // An issuer in another spelling is another issuer.
    for other in [
        "",
        "https://as.example/",
        "https://AS.example",
        "https://as.example:443",
        "HTTPS://as.example",
        "https://as.example%2520",
        "https://evil.example",
    ] {
        check(&format!("&iss={other}"), "IssuerOther", "IssuerOther");
    }
    let twice = "&iss=https://as.example&iss=https://as.example";
    let repeated = r#"Repeated { parameter: "iss" }"#;
    check(twice, repeated, repeated);
}

#[test]
fn error_text_of_another_issuer_is_not_shown() {
    let query = format!("state={STATE}&iss=https://evil.example&error=e&error_description=call+me");
    let judged = of_query(&query, &promised()).unwrap_err();
    assert_eq!(judged, CallbackError::IssuerOther);
    let unnamed = format!("state={STATE}&error=e&error_description=call+me");
    assert_eq!(of_query(&unnamed, &promised()).unwrap_err(), CallbackError::IssuerMissing);
}

#[test]
fn authorization_error_is_shown_as_one_short_escaped_line() {
    let check = |query: &str, expected: &str| {
        let query = format!("state={STATE}&{query}");
        assert_eq!(of_query(&query, &silent()).unwrap_err().to_string(), expected);
    };
    check("error=access_denied", "the authorization server refused the request: `access_denied`");
    check(
        "error=access_denied&error_description=You+said%0Ano&code=c",
        "the authorization server refused the request: `access_denied` (You said no)",
    );
    check("error=e&error_description=%20", "the authorization server refused the request: `e`");
    check(
        "error=%1B%5D0%3Bx%07&error_description=%E2%80%AEtxt",
        "the authorization server refused the request: `\\u{1b}]0;x\\u{7}` (\\u{202e}txt)",
    );
    let long = format!("error={0}&error_description={0}", "x".repeat(5_000));
    let CallbackError::Denied { error, description } =
        of_query(&format!("state={STATE}&{long}"), &silent()).unwrap_err()
    else {
        panic!("it is a refusal")
    };
    assert_eq!(error.chars().count(), LONGEST_ERROR);
    assert_eq!(description.unwrap().chars().count(), LONGEST_DESCRIPTION);
}

#[test]
fn repeated_or_missing_callback_parameter_gives_no_code() {
    let of = |rest: &str| format!("state={STATE}&{rest}");
    check(&of(""), "NoCode");
    check(&of("code="), "NoCode");
    check(&of("code=a&code=b"), r#"Repeated { parameter: "code" }"#);
    check(&of("code=a&c%6Fde=a"), r#"Repeated { parameter: "code" }"#);
    check(&of("error=a&error=a&code=c"), r#"Repeated { parameter: "error" }"#);
    check(
        &of("error=a&error_description=a&error_description=a"),
        r#"Repeated { parameter: "error_description" }"#,
    );
    // Unused parameters may be repeated.
    check(&of("code=c&scope=a&scope=b&session_state=x"), "code c");
}

#[test]
fn pasted_callback_may_be_url_query_or_code() {
    let check = |text: &str, when_silent: &str, when_promised: &str| {
        assert_eq!(outcome(of_pasted(text, &silent())), when_silent, "{text}");
        assert_eq!(outcome(of_pasted(text, &promised())), when_promised, "{text}");
    };
    let good = "code=c&state=Zm9v-state_1&iss=https%3A%2F%2Fas.example";
    for around in ["http://127.0.0.1:4000/callback?", "127.0.0.1:4000/callback?", "?", ""] {
        check(&format!("  {around}{good}\n"), "code c", "code c");
        check(&format!("{around}{good}#_=_"), "code c", "code c");
    }
    check("http://127.0.0.1:4000/callback?code=c&state=other", "Stray", "Stray");
    check("code=c", "Stray", "Stray");
    check("iss=https://as.example", "NoCode", "NoCode");
    check("http://127.0.0.1:4000/callback?error=access_denied", "Stray", "Stray");
    // The authorization URL is not a callback.
    let begun = format!("https://as.example/authorize?response_type=code&state={STATE}");
    check(&begun, "NoCode", "NoCode");
    check("https://as.example/", "NoCode", "NoCode");
    check("4/0AbC-d_e==", "code 4/0AbC-d_e==", "CodeAlone");
    check("", "NoCode", "NoCode");
    check("two words", "NoCode", "NoCode");
    check("cödé", "NoCode", "NoCode");
    check(&"x".repeat(LONGEST + 1), "NoCode", "NoCode");
}

#[test]
fn authorization_code_and_state_are_not_printed() {
    let code = of_query(&format!("state={STATE}&code=hunter2"), &silent()).unwrap();
    assert_eq!(format!("{code:?}"), "Code(…)");
    insta::assert_snapshot!(format!("{:?}", silent()), @r#"Expected { issuer: "https://as.example", .. }"#);
}

/// Random queries that are nearly valid.
fn queries() -> impl Strategy<Value = String> {
    let name = prop_oneof!["state", "code", "iss", "error", "error_description", "[a-z%]{0,6}"];
    let value = prop_oneof![
        Just(STATE.to_owned()),
        Just(ISSUER.to_owned()),
        "[ -~]{0,12}",
        any::<String>(),
    ];
    let pair = (name, value).prop_map(|(name, value)| format!("{name}={value}"));
    proptest::collection::vec(pair, 0..6).prop_map(|pairs| pairs.join("&"))
}

proptest! {
    #[test]
    fn arbitrary_query_gives_no_code_without_state_and_issuer(
        query in prop_oneof![queries(), any::<String>()],
    ) {
        let says = |name: &str, value: &str| {
            let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
            let values: Vec<_> = pairs.iter().filter(|(found, _)| found == name).collect();
            matches!(values[..], [(_, found)] if found == value)
        };
        if of_query(&query, &promised()).is_ok() {
            prop_assert!(says("state", STATE) && says("iss", ISSUER));
        }
        if of_query(&query, &silent()).is_ok() {
            prop_assert!(says("state", STATE));
        }
        if let Err(error) = of_query(&query, &silent()) {
            prop_assert!(error.to_string().chars().count() < 500);
        }
    }

    #[test]
    fn arbitrary_pasted_text_cannot_bypass_the_issuer_check(
        text in prop_oneof![queries(), queries().prop_map(|query| format!("http://h/?{query}")), any::<String>()],
    ) {
        if of_pasted(&text, &promised()).is_ok() {
            prop_assert!(text.contains("state") && text.contains("iss"));
        }
        let _no_panic = of_pasted(&text, &silent());
    }
}
