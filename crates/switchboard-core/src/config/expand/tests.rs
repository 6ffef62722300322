//! The expansion of every form of a template.

use proptest::prelude::*;

use super::*;

fn lookup(name: &str) -> Option<String> {
    match name {
        "A" => Some("alpha".to_owned()),
        "EMPTY" => Some(String::new()),
        "NEST" => Some("${A} ~ !x $env:A {env:A}".to_owned()),
        "BIG" => Some("x".repeat(40_000)),
        _ => None,
    }
}

const WITH: Surroundings<'_> =
    Surroundings { variable: &lookup, home: Some("/h/u"), project: Some("/p") };

fn check(text: &str, expected: Result<&str, &str>) {
    let expanded = expand(&Template::new(text), &WITH).map_err(|error| error.to_string());
    assert_eq!(expanded.as_deref().map_err(String::as_str), expected, "{text}");
}

#[test]
fn every_variable_form_is_expanded_once() {
    check("${A}-${env:A}-$env:A-{env:A}", Ok("alpha-alpha-alpha-alpha"));
    check("${X:-d}${A:-d}${EMPTY:-d}${EMPTY}${env:X:-}", Ok("dalphad"));
    check("${NEST}", Ok("${A} ~ !x $env:A {env:A}"));
    check("${X:-${A}}", Ok("${A}"));
    check("é${A}é", Ok("éalphaé"));
}

#[test]
fn incomplete_variable_syntax_stays_literal_text() {
    for text in ["$A", "${", "${}", "${A", "${A b}", "$env:", "{env:}", "{A}", "$$", "{}", "!x"] {
        check(text, Ok(text));
    }
}

#[test]
fn leading_tilde_is_the_home_directory() {
    check("~", Ok("/h/u"));
    check("~/x/~", Ok("/h/u/x/~"));
    check("~other", Ok("~other"));
    check(" ~", Ok(" ~"));
    let homeless = Surroundings { home: None, ..WITH };
    assert_eq!(expand(&Template::new("~"), &homeless), Err(ExpandError::NoHome));
    assert_eq!(expand(&Template::new("${userHome}"), &homeless), Err(ExpandError::NoHome));
}

#[test]
fn workspace_folder_and_user_home_variables_are_expanded() {
    check("${workspaceFolder}/run.js --in=${userHome}/x", Ok("/p/run.js --in=/h/u/x"));
    // Only `${workspaceFolder}` is special. With `env:`, it is an environment variable of that
    // name.
    check("${env:workspaceFolder}", Err("the environment variable `workspaceFolder` is not set"));
    let nowhere = Surroundings { project: None, ..WITH };
    let expanded = expand(&Template::new("${workspaceFolder}"), &nowhere);
    assert_eq!(expanded, Err(ExpandError::NoProject));
}

#[test]
fn url_allows_variables_only_after_its_host() {
    let check = |text: &str, expected: Result<&str, &str>| {
        let url = expand_url(&Template::new(text), &WITH).map_err(|error| error.to_string());
        assert_eq!(url.as_deref().map_err(String::as_str), expected, "{text}");
    };
    check("https://h:1/${A}?k={env:A}#$env:A", Ok("https://h:1/alpha?k=alpha#alpha"));
    check("https://h?${A}", Ok("https://h?alpha"));
    check("http://u@h/~/${X:-~}", Ok("http://u@h/~/~"));
    check("http://h/${NEST}", Ok("http://h/${A} ~ !x $env:A {env:A}"));
    check("http://h/${X}", Err("the environment variable `X` is not set"));
    let in_origin = "`A` is used in the scheme, user, host or port of a URL; \
    variables are allowed only after the host";
    for text in [
        "${A}",
        "${A}://h/",
        "https://${A}/",
        "https://${A:-h}/",
        "https://h.${A}",
        "https://h:${A}/",
        "https://u:${A}@h/",
        "https://{env:A}/",
        "https://$env:A/",
        // URL parsers skip empty hosts and read a backslash as a slash.
        "https:///${A}",
        "https://\\/${A}",
        "https://\t/${A}",
        "https://h\\${A}",
    ] {
        check(text, Err(in_origin));
    }
}

#[test]
fn missing_variable_or_oversized_expansion_is_an_error() {
    check("a${X}", Err("the environment variable `X` is not set"));
    check("{env:Y}", Err("the environment variable `Y` is not set"));
    check("${BIG}${BIG}", Err("the expanded value is larger than 65536 bytes"));
}

#[test]
fn leading_bang_makes_a_value_a_command() {
    let check = |text: &str, expected: Result<Expanded, ExpandError>| {
        assert!(expand_value(&Template::new(text), &WITH) == expected, "{text}");
    };
    let command = |words: &[&str]| {
        Ok(Expanded::Command(words.iter().map(|word| (*word).to_owned()).collect()))
    };
    check("!pass show 'a b'", command(&["pass", "show", "a b"]));
    check("!~/bin/get ${NEST}", command(&["/h/u/bin/get", "${A} ~ !x $env:A {env:A}"]));
    check("!!x ${A}", Ok(Expanded::Text("!x alpha".to_owned())));
    check("${NEST}", Ok(Expanded::Text("${A} ~ !x $env:A {env:A}".to_owned())));
    check("! ", Err(ExpandError::EmptyCommand));
    check("!a 'b", Err(ExpandError::OpenQuote));
    check("!a ${BIG} ${BIG}", Err(ExpandError::TooLarge { limit: 65_536 }));
}

#[test]
fn template_variables_are_listed_without_expansion() {
    let template = Template::new("${A}/{env:B}?${C:-${D}}$env:E.");
    assert_eq!(variables_in(&template), ["A", "B", "C", "E"]);
}

proptest! {
    #[test]
    fn variable_cannot_change_the_host_of_a_url(
        origin in "https?://[a-z@:$\\{\\}\\\\/?# ]{0,12}",
        value in "[a-z@:/?#\\\\.]{0,12}",
    ) {
        let with_value = |value: &str| {
            let value = value.to_owned();
            let variable = move |name: &str| (name == "V").then(|| value.clone());
            let with = Surroundings { variable: &variable, home: None, project: None };
            expand_url(&Template::new(format!("{origin}${{V}}")), &with)
        };
        // The part before the path is the same for every value of the variable.
        let place = |url: &str| url.splitn(3, '/').nth(2).map(|rest| {
            rest.split(['/', '?', '#', '\\']).next().unwrap_or_default().to_owned()
        });
        if let (Ok(url), Ok(plain)) = (with_value(&value), with_value("")) {
            prop_assert_eq!(place(&url), place(&plain));
        }
    }

    #[test]
    fn expanded_value_is_never_expanded_again(value in "[$\\{\\}a-zA-Z:!~-]{0,30}") {
        let variable = |name: &str| (name == "V").then(|| value.clone());
        let with = Surroundings { variable: &variable, home: Some("/h"), project: None };
        let expanded = expand_value(&Template::new("${V}$env:V"), &with);
        let twice = value.repeat(2);
        prop_assert!(expanded == Ok(Expanded::Text(twice)));
    }

    #[test]
    fn expanding_an_arbitrary_variable_template_never_panics(text in "\\PC{0,40}|[!~$\\{\\}env:A'\"\\\\ -]{0,40}") {
        expand_value(&Template::new(text.clone()), &WITH).ok();
        expand_url(&Template::new(text.clone()), &WITH).ok();
        variables_in(&Template::new(text));
    }
}
