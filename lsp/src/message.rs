//! Parses one JSON-RPC message. For an invalid message, returns the error reply.
//!
//! The text of a document must always arrive, whatever it contains; otherwise the server's copy would be out of date.
//! Anything that Unicode does not allow in a text, for instance half a surrogate pair, becomes U+FFFD. This replacement
//! takes the same number of UTF-16 units and of bytes, so positions stay right.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};

#[derive(Debug)]
pub enum Message {
    /// A request or a notification.
    Call(Request),
    /// The client's reply to a request of the server.
    Reply(Response),
}

/// The error reply to an invalid message. The id may have a form that the protocol does not allow, such as 1.5.
#[derive(Debug, Serialize)]
pub struct Refusal {
    jsonrpc: &'static str,
    id: Option<Box<RawValue>>,
    error: Error,
}

impl Refusal {
    pub fn parse_error(reason: impl Into<String>) -> Self {
        Self::new(None, ErrorCode::ParseError, reason)
    }

    fn invalid(id: Option<&RawValue>, reason: impl Into<String>) -> Self {
        Self::new(id, ErrorCode::InvalidRequest, reason)
    }

    fn new(id: Option<&RawValue>, code: ErrorCode, reason: impl Into<String>) -> Self {
        let error = Error { code, message: reason.into().into(), data: None };
        Self { jsonrpc: "2.0", id: id.map(ToOwned::to_owned), error }
    }
}

/// The parts of a message, not parsed yet. So their nesting depth does not matter here.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Deserializes a field in which null is a value. Only a missing field is `None`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Parses a message.
///
/// # Errors
/// The error reply to an invalid message. `None` if no reply is possible.
pub fn parse(body: Vec<u8>) -> Result<Message, Option<Refusal>> {
    let text = text(body);
    if !text.trim_ascii_start().starts_with('{') {
        return Err(Some(match serde_json::from_str::<&RawValue>(&text) {
            Ok(_) => Refusal::invalid(None, "expected one JSON object; batches are not supported"),
            Err(error) => Refusal::parse_error(error.to_string()),
        }));
    }
    let parts: Envelope<'_> = serde_json::from_str(&text).map_err(|error| {
        Some(match error.is_data() {
            true => Refusal::invalid(None, error.to_string()),
            false => Refusal::parse_error(error.to_string()),
        })
    })?;
    let id = parts.id.map(read_id).transpose()?;
    if parts.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return Err(Some(Refusal::invalid(parts.id, "`jsonrpc` is not \"2.0\"")));
    }
    match (parts.method, id) {
        (Some(method), id) => call(method, id, &parts),
        (None, Some(id)) if parts.result.is_some() || parts.error.is_some() => reply(id, &parts),
        (None, _) => Err(Some(Refusal::invalid(parts.id, "not a request or response: `method` is missing"))),
    }
}

fn read_id(raw: &RawValue) -> Result<Id, Option<Refusal>> {
    match serde_json::from_str(raw.get()) {
        Ok(id @ (Id::Number(_) | Id::String(_))) => Ok(id),
        _ => {
            let is_answerable = raw.get().starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
            let reason = "`id` must be a 64-bit integer or a string";
            Err(Some(Refusal::invalid(is_answerable.then_some(raw), reason)))
        }
    }
}

fn call(method: &RawValue, id: Option<Id>, parts: &Envelope<'_>) -> Result<Message, Option<Refusal>> {
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        return Err(Some(Refusal::invalid(parts.id, "`method` is not a string")));
    };
    let mut request = Request::build(method.clone());
    match parts.params.map(|params| serde_json::from_str(params.get())).transpose() {
        // Some clients send null with `shutdown`.
        Ok(None | Some(Value::Null)) => {}
        Ok(Some(params)) => request = request.params::<Value>(params),
        Err(error) if id.is_some() => {
            return Err(Some(Refusal::new(parts.id, ErrorCode::InvalidParams, error.to_string())));
        }
        Err(error) => {
            tracing::warn!("{method} ignored: {error}");
            return Err(None);
        }
    }
    Ok(Message::Call(match id {
        Some(id) => request.id(id).finish(),
        None => request.finish(),
    }))
}

fn reply(id: Id, parts: &Envelope<'_>) -> Result<Message, Option<Refusal>> {
    let read = match (parts.result, parts.error) {
        (_, Some(error)) => serde_json::from_str(error.get()).map(Err),
        (result, None) => serde_json::from_str(result.map_or("null", RawValue::get)).map(Ok),
    };
    match read {
        Ok(body) => Ok(Message::Reply(Response::from_parts(id, body))),
        Err(error) => {
            tracing::warn!("response ignored: {error}");
            Err(None)
        }
    }
}

/// Converts the bytes of a message to text.
fn text(mut body: Vec<u8>) -> String {
    replace_half_pairs(&mut body);
    String::from_utf8(body).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Replaces escapes such as `\ud800` that are half a surrogate pair, and surrogates that are encoded as if they were
/// characters.
fn replace_half_pairs(body: &mut [u8]) {
    let mut at = 0;
    while let Some(step) = memchr::memchr2(b'\\', 0xED, &body[at..]) {
        at += step;
        at += match (body[at], escaped_unit(&body[at..])) {
            (b'\\', Some(0xD800..=0xDBFF))
                if matches!(escaped_unit(&body[at + 6..]), Some(0xDC00..=0xDFFF)) =>
            {
                12
            }
            (b'\\', Some(0xD800..=0xDFFF)) => {
                body[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            (b'\\', _) => 2,
            _ if matches!(body.get(at + 1..at + 3), Some([0xA0..=0xBF, 0x80..=0xBF])) => {
                body[at..at + 3].copy_from_slice("\u{fffd}".as_bytes());
                3
            }
            _ => 1,
        };
        at = at.min(body.len());
    }
}

/// The UTF-16 unit of a `\uXXXX` at the start.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)? as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(body: &str) -> Value {
        match parse(body.into()) {
            Err(Some(refusal)) => {
                let refusal = serde_json::to_value(refusal).unwrap();
                json!([refusal["id"], refusal["error"]["code"]])
            }
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id() {
        assert_eq!(refused("{,}"), json!([null, -32700]));
        assert_eq!(refused(""), json!([null, -32700]));
        assert_eq!(refused("{}"), json!([null, -32600]));
        assert_eq!(refused("5"), json!([null, -32600]));
        assert_eq!(refused(r#"[{"jsonrpc":"2.0","method":"foo"}]"#), json!([null, -32600]));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1.5,"method":"foo"}"#), json!([1.5, -32600]));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":null,"method":"foo"}"#), json!([null, -32600]));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":[1],"method":"foo"}"#), json!([null, -32600]));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":7,"method":{}}"#), json!([7, -32600]));
        assert_eq!(refused(r#"{"jsonrpc":"1.0","id":"a","method":"foo"}"#), json!(["a", -32600]));
        assert_eq!(refused(r#"{"id":8,"method":"foo"}"#), json!([8, -32600]));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":7,"id":7}"#), json!([null, -32600]));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let call = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"foo","params":{deep}}}"#);
        assert_eq!(refused(&call), json!([9, -32602]));
        let notification = format!(r#"{{"jsonrpc":"2.0","method":"foo","params":{deep}}}"#);
        assert!(matches!(parse(notification.into()), Err(None)));
        let id = format!(r#"{{"jsonrpc":"2.0","id":{deep},"method":"foo"}}"#);
        assert_eq!(refused(&id), json!([null, -32600]));
        let very_deep = "[".repeat(1_000_000);
        assert_eq!(refused(&very_deep), json!([null, -32700]));
    }

    #[test]
    fn calls_and_replies_are_told_apart() {
        let request = |body: &str| match parse(body.into()) {
            Ok(Message::Call(request)) => request,
            other => panic!("{body}: {other:?}"),
        };
        let call = request(r#" {"jsonrpc":"2.0","id":"x","method":"shutdown","params":null}"#);
        assert_eq!(
            (call.method(), call.id(), call.params()),
            ("shutdown", Some(&"x".to_owned().into()), None)
        );
        let note = request(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        assert_eq!(note.id(), None);
        let reply = |body: &str| match parse(body.into()) {
            Ok(Message::Reply(reply)) => reply,
            other => panic!("{body}: {other:?}"),
        };
        assert!(reply(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).is_ok());
        let failed = reply(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#);
        assert_eq!(failed.error().map(|error| error.code.code()), Some(-32601));
    }

    #[test]
    fn half_pairs_become_characters_of_the_same_width() {
        let texts = |body: &[u8]| {
            let body = [br#"{"jsonrpc":"2.0","method":"m","params":[""#, body, br#""]}"#].concat();
            match parse(body) {
                Ok(Message::Call(request)) => request.params().unwrap()[0].as_str().unwrap().to_owned(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(texts(br"a\ud800b"), "a\u{fffd}b");
        assert_eq!(texts(br"\uDC00\ud83d\ude00\ud83d"), "\u{fffd}😀\u{fffd}");
        assert_eq!(texts(br"\\ud800\u0041"), r"\ud800A");
        assert_eq!(texts(b"x\xED\xA0\x80y"), "x\u{fffd}y");
        assert_eq!(texts("\u{d7ff}".as_bytes()), "\u{d7ff}");
        assert_eq!(texts(b"x\xFFy"), "x\u{fffd}y");
    }
}
