//! Forms that ask for secrets, and forms that do not.

use serde_json::json;

use super::*;

fn field(name: &str, schema: Value) -> Option<String> {
    let form = json!({ "message": "Go on?", "requestedSchema": {
        "type": "object", "properties": { "other": { "type": "boolean" }, name: schema },
    } });
    asks_for_secret(form.as_object().unwrap())
}

fn text(name: &str) -> Option<String> {
    field(name, json!({ "type": "string" }))
}

#[test]
fn fields_for_secrets_are_known_by_name_in_any_spelling() {
    let names = "password|Password|PASS_WORD|user-password|userPassword|pass word|passwd|pwd|\
         passphrase|passcode|p4ssw0rd|pa$$word|p@ssword|p\u{430}ssword|\
         pass\u{200b}word|ｐａｓｓｗｏｒｄ|token|accessToken|api_key|apiKey|\
         API-KEY|apikey|secret|client_secret|privateKey|ssh_key|card_number|\
         creditCard|cvv|CVC|pin|PIN code|ssn|social_security_number|otp|\
         one_time_code|oneTimeCode|verification code|2fa|mfa_code|seed_phrase|\
         recoveryPhrase|mnemonic|session_cookie|bearer|credentials|iban|passwort|\
         Kennwort|contraseña|contrasen\u{303}a|contrasena|mot_de_passe|motDePasse|\
         senha|palavra-passe|wachtwoord|hasło|пароль|密码|パスワード|\
         비밀번호|şifre|heslo|jelszó|salasana|lösenord|כתובת סיסמה|\
         كلمة المرور|mật khẩu|รหัสผ่าน|\
         पासवर्ड|κωδικός|Kreditkartennummer|numéro de carte|\
         código de verificación|验证码|暗証番号|Geheimzahl|助记词";
    for name in names.split('|') {
        assert!(text(name).is_some(), "{name}");
    }
}

#[test]
fn fields_for_secrets_are_known_by_title_description_format_and_message() {
    let of = |key: &str, words: &str| field("value", json!({ "type": "string", key: words }));
    assert!(of("title", "Your API key").is_some());
    assert!(of("title", "PIN").is_some());
    assert!(of("description", "The one-time code from your phone, six digits long").is_some());
    assert!(of("description", "Geben Sie bitte hier Ihr Passwort für das Konto ein").is_some());
    assert!(of("format", "password").is_some());
    assert!(field("n", json!({ "type": "integer", "title": "PIN" })).is_some());
    assert!(field("n", json!({ "type": "integer", "title": "Card number" })).is_some());
    assert!(field("v", json!({ "title": "Password" })).is_some(), "no type is any type");
    let message = |message: &str, fields: Value| {
        let form = json!({ "message": message, "requestedSchema": { "properties": fields } });
        asks_for_secret(form.as_object().unwrap())
    };
    let typed = json!({ "value": { "type": "string" } });
    assert_eq!(message("Enter your GitHub password to go on.", typed.clone()).unwrap(), "value");
    assert!(message("請輸入您的密碼", typed.clone()).is_some());
    assert!(message("What is your favourite colour?", typed).is_none());
    assert!(message("Keep the password?", json!({ "ok": { "type": "boolean" } })).is_none());
}

#[test]
fn other_fields_are_no_secrets() {
    let names = "name|email|title|branch|shipping_address|opinion|pinned_by|company|\
         next_page_token|pageToken|continuationToken|keyboard|key|card|cards|message|\
         description|compass|passenger|secretary|tokenizer|seeds|code|postal_code|\
         country code|路径|имя|spinner|mapping|authentic";
    for name in names.split('|') {
        assert_eq!(text(name), None, "{name}");
    }
    for (name, schema) in [
        ("maxTokens", json!({ "type": "integer" })),
        ("tokens", json!({ "type": "number" })),
        ("max_password_length", json!({ "type": "integer" })),
        ("keep_password", json!({ "type": "boolean" })),
        (
            "method",
            json!({ "type": "string", "enum": ["password", "token"], "title": "Token or password" }),
        ),
    ] {
        assert_eq!(field(name, schema), None, "{name}");
    }
    let page = json!({ "message": "password", "url": "https://a.example/", "requestedSchema": {
        "properties": { "password": { "type": "string" } } } });
    assert_eq!(asks_for_secret(page.as_object().unwrap()), None);
}

/// Names of fields, titles and messages that ask for a secret, one list after the other.
const SECRET_NAMES: &str = "cc_number|ccnum|pan|csc|dbpass|pswd|creds|jwt|pat|master_key|masterkey|wallet_key|k3y|ap1_k3y|\
     github_token|user_pwd|x-api-key|expiry_and_cvv|iban_pin|mysql_pwd|connection_string|t0ken|\
     s3cret|webhook_secret|id_token|atm_pin|unlock_code|keystore_pass|drivers_license|\
     routing_number|security_answer|mothers_maiden_name|aws_secret_access_key";

const SECRET_TITLES: &str = "P I N|P.I.N.|c v v|C.V.V.|o.t.p|S.S.N.|s s n|T O K E N|A P I  K E Y|P a s s w o r d|a P I N|\
     ᴘᴀssᴡᴏʀᴅ|🅿🅰🆂🆂🆆🅾🆁🅳|🄿🄸🄽|🇵🇮🇳|ⓟⓐⓢⓢⓦⓞⓡⓓ|ᵖᵃˢˢʷᵒʳᵈ|𝓹𝓪𝓼𝓼𝔀𝓸𝓻𝓭|P̶a̶s̶s̶w̶o̶r̶d̶|\
     Номер карты|Numero di carta|Código de seguridad|Código de un solo uso|Код из СМС|Clé d'API|\
     API 키|Zugangstoken|Privater Schlüssel|Clé privée|私钥|개인키|Мнемоника|복구 구문|\
     12 words of your wallet|СНИЛС|CPF|Codice fiscale|BSN|PESEL|Aadhaar number|Prüfnummer|\
     Cryptogramme|Kod SMS|Jeton d'accès|Private key (PEM)|秘密|🔑 key for the API|\
     رمز عبور|Kata laluan|Лозинка|Lozinka|Geslo|Parool|Slaptažodis|Parole|Fjalëkalimi|Գաղտնաբառ|\
     პაროლი|Құпия сөз|পাসওয়ার্ড|கடவுச்சொல்|Nenosiri|Lykilorð|Aðgangsorð|Haslo|Sifre|Пароля|\
     Contrasenya|Pasahitza|Cyfrinair|Wagwoord|گذرواژه|పాస్‌వర్డ్|ພາສາ ລະຫັດຜ່ານ|စကားဝှက်";

const SECRET_MESSAGES: &str = "Please paste your GitHub token below|Type the 6-digit code we sent to your phone|\
     Enter the code from your authenticator app|Write down the 12 words of your recovery phrase|\
     Please enter your PIN|Provide AWS credentials|What is your API key?|Digite sua senha|\
     Enter the last four digits of your SSN|It looks like ghp_xxxxxxxxxxxxxxxx";

/// The same for fields that take something else.
const OTHER_NAMES: &str = "num_tokens|pin_message|pass_rate|pass_fail|seed|random_seed|seed_value|bearer_of_news|\
     iban_country|cookie_recipe|pan_zoom|csc_file|primary_key|sort_key|issue_key|api_url|panel|\
     company|patch|path|pattern|span|expand|token_count|signature|otpional|hotpot|bank_holiday";

const OTHER_TITLES: &str = "Number of tokens to generate|Random seed|GPIO pin|Map pin colour|Pin version of the dependency|\
     Design tokens file|Cookie recipe|The secret ingredient of success|Password policy document title|\
     Pin a message to the channel|Pan and zoom level|The PIN number of the GPIO board|\
     Name of the parole officer|Parole d'une chanson|Clave de sol o de fa|Jira issue key|\
     SIN of the angle|Choose a card from the deck|Heslop (surname)|Source code language|\
     The code from the repository|Summary in 12 words";

#[test]
fn secrets_are_known_in_every_spelling_language_and_place() {
    let titled = |title: &str| field("value", json!({ "type": "string", "title": title }));
    let message = |message: &str| {
        let fields = json!({ "value": { "type": "string" } });
        let form = json!({ "message": message, "requestedSchema": { "properties": fields } });
        asks_for_secret(form.as_object().unwrap())
    };
    let missed = |list: &str, asks: &dyn Fn(&str) -> Option<String>| -> Vec<String> {
        list.split('|').filter(|text| asks(text).is_none()).map(str::to_owned).collect()
    };
    assert_eq!(missed(SECRET_NAMES, &text), Vec::<String>::new());
    assert_eq!(missed(SECRET_TITLES, &titled), Vec::<String>::new());
    assert_eq!(missed(SECRET_MESSAGES, &message), Vec::<String>::new());
    let alarms = |list: &str, asks: &dyn Fn(&str) -> Option<String>| -> Vec<String> {
        list.split('|').filter(|text| asks(text).is_some()).map(str::to_owned).collect()
    };
    assert_eq!(alarms(OTHER_NAMES, &text), Vec::<String>::new());
    assert_eq!(alarms(OTHER_TITLES, &titled), Vec::<String>::new());
    assert_eq!(alarms(OTHER_TITLES, &message), Vec::<String>::new());
}

#[test]
fn secrets_are_looked_for_wherever_a_form_has_text() {
    for schema in [
        json!({ "type": "string", "oneOf": [{ "const": "a", "title": "enter password" }] }),
        json!({ "type": "string", "enum": ["a"], "enumNames": ["Type your password"] }),
        json!({ "type": "string", "enum": ["my password is hunter2", "other"] }),
        json!({ "type": "string", "default": "your password here" }),
        json!({ "type": "string", "description": "e.g. AKIAIOSFODNN7EXAMPLE" }),
    ] {
        assert!(field("value", schema.clone()).is_some(), "{schema}");
    }
    for (key, text) in [("title", "Password form"), ("description", "Enter your password")] {
        let form = json!({ "message": "m", "requestedSchema": {
            key: text, "properties": { "v": { "type": "string" } } } });
        assert_eq!(asks_for_secret(form.as_object().unwrap()), Some("v".to_owned()), "{key}");
    }
}

#[test]
fn benign_phrase_excuses_nothing_beside_it() {
    for title in ["Password (see password policy)", "GPIO pin and PIN", "Random seed, your token"] {
        assert!(field("v", json!({ "type": "string", "title": title })).is_some(), "{title}");
    }
}

#[test]
fn name_of_a_field_cannot_speak_as_we_do() {
    let name = "x` is fine.\n\u{1b}[2JThe server `github` asks for a city (`password";
    let shown = text(name).unwrap();
    assert_eq!(shown, "x' is fine. The server 'github' asks for a city ('password");
    let long = text(&"password".repeat(100)).unwrap();
    assert_eq!(long.chars().count(), FIELD);
}
