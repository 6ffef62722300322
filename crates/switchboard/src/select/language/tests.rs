//! Valid filters and their outputs, errors, and functions that a filter cannot use.

use super::*;

const MOST: usize = 1 << 20;

fn given(code: &str, json: &str) -> String {
    match run(code, json, MOST) {
        Ok(bytes) => String::from_utf8(bytes).unwrap(),
        Err(Trouble::Invalid(why)) => format!("invalid: {why}"),
        Err(Trouble::Failed(why)) => format!("failed: {why}"),
        Err(Trouble::TooLarge) => "too large".to_owned(),
    }
}

#[track_caller]
fn gives(code: &str, json: &str, expected: &str) {
    assert_eq!(given(code, json), expected, "{code}");
}

#[test]
fn filter_outputs_are_lines_with_unquoted_strings() {
    let issues =
        r#"{"issues": [{"id": 1, "title": "a \"b\""}, {"id": 2, "title": "c"}], "n": null}"#;
    gives(".issues[].title", issues, "a \"b\"\nc\n");
    gives(".issues | map({id})", issues, "[{\"id\":1},{\"id\":2}]\n");
    gives(".issues[] | \"\\(.id): \\(.title)\"", issues, "1: a \"b\"\n2: c\n");
    gives(".n, .missing", issues, "null\nnull\n");
    gives("empty", issues, "");
    gives(".", "1 2\n[3]", "1\n2\n[3]\n");
}

#[test]
fn filter_keeps_numbers_as_written() {
    let numbers = r#"[12345678901234567890123, 1.0, 1.10, 1e400, -0, 0.1]"#;
    gives(".", numbers, "[12345678901234567890123,1.0,1.10,1e400,0,0.1]\n");
}

#[test]
fn filter_supports_common_jq_functions() {
    gives(r#"map(select(test("^b"; "i")))"#, r#"["Bob","alice"]"#, "[\"Bob\"]\n");
    gives(
        r#"capture("(?<y>\\d+)-(?<m>\\d+)")"#,
        r#""on 2026-11""#,
        "{\"y\":\"2026\",\"m\":\"11\"}\n",
    );
    gives(r#"match("b+"; "g") | [.offset, .length]"#, r#""äbb b""#, "[1,2]\n[4,1]\n");
    gives(r#"sub("a"; "x"), gsub("a"; "x")"#, r#""banana""#, "bxnana\nbxnxnx\n");
    gives(r#"[splits(", *")], split(", ")"#, r#""a, b""#, "[\"a\",\"b\"]\n[\"a\",\"b\"]\n");
    gives("@base64, (@base64 | @base64d)", r#""hé""#, "aMOp\nhé\n");
    gives(
        "@csv, @tsv",
        r#"["a\"b\tc", 1, null, true]"#,
        "\"a\"\"b\tc\",1,,true\na\"b\\tc\t1\t\ttrue\n",
    );
    gives("pow(.; 2), sqrt, (. + 0.5 | floor)", "9", "81.0\n3.0\n9\n");
    gives("to_entries | map(.key)", r#"{"a": 1}"#, "[\"a\"]\n");
    gives("group_by(.k) | map(length)", r#"[{"k":1},{"k":2},{"k":1}]"#, "[2,1]\n");
    gives("[paths], (tojson | fromjson), keys", r#"{"a": 1}"#, "[[\"a\"]]\n{\"a\":1}\n[\"a\"]\n");
    gives("[limit(3; repeat(1))] | add", "null", "3\n");
    gives("reduce .[] as $x (0; . + $x)", "[1,2]", "3\n");
    gives(r#"try error("no") catch ."#, "null", "no\n");
}

/// Functions of jq that read other input, write, or end the process.
const FORBIDDEN: &[&str] = &[
    "env",
    "$ENV",
    "$ENV.PATH",
    "env.PATH",
    "input",
    "inputs",
    "[inputs]",
    "input_filename",
    "input_line_number",
    "$__prog_args",
    "$__prog_name",
    "$__loc__",
    "halt",
    "halt(1)",
    "halt_error",
    "halt_error(1)",
    "debug",
    "debug(1)",
    "debug_empty",
    "stderr",
    "stderr_empty",
    "now",
    "localtime",
    "strflocaltime(\"%Z\")",
    "todate",
    "mktime",
    "get_search_list",
    "modulemeta",
    "getenv(\"PATH\")",
    "system(\"id\")",
    "exec(\"id\")",
    "load(\"/etc/passwd\")",
    "open(\"/etc/passwd\")",
    "repl",
    "import \"a\" as a; .",
    "import \"a\" as $a; $a",
    "include \"a\"; .",
    "import \"/etc/passwd\" as $a; $a",
];

#[test]
fn filter_with_a_forbidden_function_is_invalid() {
    for code in FORBIDDEN {
        let outcome = run(code, "{}", MOST);
        assert!(matches!(outcome, Err(Trouble::Invalid(_))), "{code}: {outcome:?}");
        assert!(check(code).is_err(), "{code}");
    }
}

#[test]
fn native_jaq_functions_are_all_allowed_except_halt() {
    let mut theirs: Vec<&str> = jaq_core::funs::<FilterData>()
        .chain(jaq_std::base_funs())
        .chain(jaq_json::funs())
        .map(|(name, ..)| name)
        .filter(|name| !ALLOWED.contains(name))
        .collect();
    theirs.dedup();
    assert_eq!(theirs, ["halt"], "a native function of `jaq` was not reviewed");
}

#[test]
fn filter_errors_name_their_position() {
    let cases = [
        ("(", "1"),
        (".a | ", "1"),
        (".a ]", "1"),
        ("\"é\" | }", "1"),
        ("if . then 1", "1"),
        ("nosuch", "1"),
        ("$x", "1"),
        ("include \"a\"; .", "1"),
        (".a", "[1]"),
        (".[] | .a", r#"[{"a": 1}, 2]"#),
        (r#"test("(")"#, r#""a""#),
        (r#"test("a"; "q")"#, r#""a""#),
    ];
    let said = cases.map(|(code, json)| format!("{code}  => {}", given(code, json)));
    insta::assert_snapshot!(said.join("\n"), @r#"
    (  => invalid: expected closing parenthesis at its end
    .a |   => invalid: expected term at its end
    .a ]  => invalid: expected token at character 4, before `]`
    "é" | }  => invalid: expected token at character 7, before `}`
    if . then 1  => invalid: expected else or end at its end
    nosuch  => invalid: there is no function `nosuch/0`
    $x  => invalid: there is no variable `$x`
    include "a"; .  => invalid: modules cannot be imported or included
    .a  => failed: cannot index [1] with "a"
    .[] | .a  => failed: cannot index 2 with "a"
    test("(")  => failed: "not a regular expression: regex parse error:\n    (\n    ^\nerror: unclosed group"
    test("a"; "q")  => failed: "there is no flag `q`"
    "#);
}

#[test]
fn filter_error_messages_and_outputs_are_bounded() {
    let big = format!("[{}1]", "1,".repeat(100_000));
    let Err(Trouble::Failed(why)) = run(".a", &big, MOST) else { panic!("the filter must fail") };
    assert!(why.len() <= MESSAGE + 5 && why.starts_with("cannot index [1,1,"), "{why}");
    assert!(why.ends_with(r#",1,1] with "a""#) && why.contains(" … "), "{why}");
    let Err(Trouble::Invalid(why)) = run(&format!(". {}", "é".repeat(4_000)), "1", MOST) else {
        panic!("the filter must be invalid");
    };
    assert!(why.len() < 200, "{}", why.len());
    assert_eq!(run(".[]", &big, 1_000), Err(Trouble::TooLarge));
    assert_eq!(run("tostring", &big, 1_000), Err(Trouble::TooLarge));
}
