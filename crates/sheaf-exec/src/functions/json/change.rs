//! What changes documents, and joins them.

use arrow::array::ArrayRef;
use datafusion_common::Result;
use sheaf_types::json::functions::merge::{merge_patch, merge_preserve};
use sheaf_types::json::functions::modify::{Change, change, remove};
use sheaf_types::json::{Document, Tree};

use super::{documents, json};
use crate::functions::{Call, Function, VARIADIC};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("json_set", (3, VARIADIC), json, |call| {
        changed(call, Change::Set)
    }),
    Function::new("json_insert", (3, VARIADIC), json, |call| {
        changed(call, Change::Insert)
    }),
    Function::new("json_replace", (3, VARIADIC), json, |call| {
        changed(call, Change::Replace)
    }),
    Function::new("json_array_append", (3, VARIADIC), json, |call| {
        changed(call, Change::ArrayAppend)
    }),
    Function::new("json_array_insert", (3, VARIADIC), json, |call| {
        changed(call, Change::ArrayInsert)
    }),
    Function::new("json_remove", (2, VARIADIC), json, |call| {
        let (values, paths) = (call.document(0)?, call.paths(1, 1)?);
        documents(call, |row| {
            let Some(value) = values.get(row) else {
                return Ok(None);
            };
            let mut tree = Tree::Stored(value);
            for path in &paths {
                let Some(path) = path.get(row) else {
                    return Ok(None);
                };
                remove(&mut tree, path)?;
            }
            tree.to_document().map(Some)
        })
    }),
    Function::new("json_merge_patch", (2, VARIADIC), json, |call| {
        let values = call.documents(0)?;
        documents(call, |row| {
            let values: Vec<_> = values.iter().map(|value| value.get(row)).collect();
            merge_patch(&values)
                .map(|tree| tree.to_document())
                .transpose()
        })
    }),
    Function::new("json_merge_preserve", (2, VARIADIC), json, merged),
    Function::new("json_merge", (2, VARIADIC), json, merged),
];

fn merged(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.documents(0)?;
    documents(call, |row| {
        let values: Option<Vec<_>> = values.iter().map(|value| value.get(row)).collect();
        let tree = values.and_then(merge_preserve);
        tree.map(|tree| tree.to_document()).transpose()
    })
}

/// Pairs of a path and a value follow the document; each sees what those before it have changed.
fn changed(call: &Call<'_>, kind: Change) -> Result<ArrayRef> {
    let (values, paths) = (call.document(0)?, call.paths(1, 2)?);
    let news = call.json_values(2, 2)?;
    documents(call, |row| {
        let Some(value) = values.get(row) else {
            return Ok(None);
        };
        let news = news.iter().map(|new| new.document(row));
        let news = news.map(|new| Ok(new?.unwrap_or_else(Document::null)));
        let news = news.collect::<std::result::Result<Vec<Document>, _>>()?;
        let mut tree = Tree::Stored(value);
        for (path, new) in paths.iter().zip(&news) {
            let Some(path) = path.get(row) else {
                return Ok(None);
            };
            change(&mut tree, kind, path, Tree::Stored(new.as_json()))?;
        }
        tree.to_document().map(Some)
    })
}
