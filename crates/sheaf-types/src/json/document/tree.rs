//! A document with changes: only the containers on the way to a change are taken apart, the rest stays in its bytes.

use std::borrow::Cow;

use super::{Builder, Document, Json, compare_keys};
use crate::json::JsonError;
use crate::json::room::ask;

/// A value that may be changed.
#[derive(Debug, Clone)]
pub enum Tree<'a> {
    /// As it is in its document.
    Stored(Json<'a>),
    Array(Vec<Tree<'a>>),
    /// By the order of keys, each once.
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
}

impl<'a> Tree<'a> {
    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        match self {
            Tree::Stored(json) => json.as_array().is_some(),
            Tree::Array(_) => true,
            Tree::Object(_) => false,
        }
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        match self {
            Tree::Stored(json) => json.as_object().is_some(),
            Tree::Array(_) => false,
            Tree::Object(_) => true,
        }
    }

    /// Takes a container apart.
    fn open(&mut self) {
        let Tree::Stored(json) = self else {
            return;
        };
        let count = match (json.as_array(), json.as_object()) {
            (Some(array), _) => array.len(),
            (_, Some(object)) => object.len(),
            (None, None) => 0,
        };
        if ask(count.saturating_mul(size_of::<(Cow<'_, str>, Tree<'_>)>())).is_err() {
            // The statement has been told to stop.
            return;
        }
        if let Some(array) = json.as_array() {
            *self = Tree::Array(array.iter().map(Tree::Stored).collect());
        } else if let Some(object) = json.as_object() {
            let member = |(key, value)| (Cow::Borrowed(key), Tree::Stored(value));
            *self = Tree::Object(object.iter().map(member).collect());
        }
    }

    /// The elements of an array.
    pub fn elements(&mut self) -> Option<&mut Vec<Tree<'a>>> {
        self.open();
        match self {
            Tree::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The members of an object, by the order of keys.
    pub fn members(&mut self) -> Option<&mut Vec<(Cow<'a, str>, Tree<'a>)>> {
        self.open();
        match self {
            Tree::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Writes it into a document.
    ///
    /// # Errors
    /// `TooDeep`, `TooBig` and `KeyTooLong`.
    pub fn write(&self, builder: &mut Builder) -> Result<(), JsonError> {
        // A tree is as deep as the builder allows: it fails before the recursion gets deeper.
        match self {
            Tree::Stored(json) => builder.json(*json),
            Tree::Array(elements) => {
                builder.begin_array()?;
                for element in elements {
                    element.write(builder)?;
                }
                builder.end()
            }
            Tree::Object(members) => {
                builder.begin_object()?;
                for (key, value) in members {
                    builder.key(key)?;
                    value.write(builder)?;
                }
                builder.end()
            }
        }
    }

    /// The document of this value.
    ///
    /// # Errors
    /// As [`Tree::write`].
    pub fn to_document(&self) -> Result<Document, JsonError> {
        if let Tree::Stored(json) = self {
            return Ok(json.to_document());
        }
        let mut builder = Builder::new();
        self.write(&mut builder)?;
        builder.finish()
    }
}

/// Where a key is among the members of an object, or where it would be.
pub(crate) fn find_key(members: &[(Cow<'_, str>, Tree<'_>)], key: &str) -> Result<usize, usize> {
    members.binary_search_by(|(other, _)| compare_keys(other.as_bytes(), key.as_bytes()))
}
