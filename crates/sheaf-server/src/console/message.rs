//! What the page sends: an object in JSON, of few members that are no objects or arrays.
//!
//! A document takes several times the memory of its text. So it is looked at before, whether it is as small as that.

use sheaf_types::json::{Document, View, text};

use crate::http::answer::Answer;

const MAX_MEMBERS: usize = 16;

pub(super) struct Message(Document);

/// Whether a text has one bracket that opens, and few commas, outside of strings.
fn is_flat(text: &str) -> bool {
    let (mut is_string, mut is_escaped) = (false, false);
    let (mut opened, mut members) = (0, 1);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' | b'[' => opened += 1,
            b',' => members += 1,
            _ => {}
        }
    }
    opened <= 1 && members <= MAX_MEMBERS
}

impl Message {
    pub(super) fn read(body: &[u8]) -> Result<Message, Answer> {
        let wrong = || Answer::bad_request("the body is no flat object in JSON\n");
        let body = std::str::from_utf8(body).map_err(|_| wrong())?;
        if !is_flat(body) {
            return Err(wrong());
        }
        let document = text::read(body).map_err(|_| wrong())?;
        match document.as_json().as_object() {
            Some(_) => Ok(Message(document)),
            None => Err(wrong()),
        }
    }

    /// A member that is a text; a missing one is empty.
    pub(super) fn text(&self, name: &str) -> String {
        let object = self.0.as_json().as_object();
        match object
            .and_then(|object| object.get(name))
            .map(|value| value.view())
        {
            Some(View::String(text)) => text.to_string(),
            _ => String::new(),
        }
    }

    /// Whether a member is `true`.
    pub(super) fn is(&self, name: &str) -> bool {
        let object = self.0.as_json().as_object();
        let value = object.and_then(|object| object.get(name));
        value.is_some_and(|value| matches!(value.view(), View::Bool(true)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read() {
        let message = Message::read(r#"{"a": "x\"y", "b": true, "c": 1}"#.as_bytes());
        let Ok(message) = message else {
            panic!("it is an object");
        };
        assert_eq!(message.text("a"), "x\"y");
        assert_eq!(
            (message.text("c"), message.text("d")),
            (String::new(), String::new())
        );
        assert!(message.is("b") && !message.is("a") && !message.is("d"));
        let strings = Message::read(br#"{"a": "[{\"\\", "b": "{,,,,,,,,,,,,,,,,,,,}"}"#);
        assert!(strings.is_ok_and(|message| message.text("a") == "[{\"\\"));
        let many = format!("{{{}\"b\": 1}}", "\"a\": 1, ".repeat(MAX_MEMBERS));
        for wrong in [many.as_str(), "{\"a\": []}", "{\"a\": {}}"] {
            assert!(Message::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        for wrong in ["", "[]", "{", "\"a\"", "{\"a\": }"] {
            assert!(Message::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Message::read(b"{\"a\": \"\xff\"}").is_err());
    }
}
