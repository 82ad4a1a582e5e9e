//! What the page sends: an object in JSON.

use sheaf_types::json::{Document, View, text};

use crate::http::answer::Answer;

pub(super) struct Message(Document);

impl Message {
    pub(super) fn read(body: &[u8]) -> Result<Message, Answer> {
        let wrong = || Answer::bad_request("the body is no object in JSON\n");
        let body = std::str::from_utf8(body).map_err(|_| wrong())?;
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
        for wrong in ["", "[]", "{", "\"a\"", "{\"a\": }"] {
            assert!(Message::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Message::read(b"{\"a\": \"\xff\"}").is_err());
    }
}
