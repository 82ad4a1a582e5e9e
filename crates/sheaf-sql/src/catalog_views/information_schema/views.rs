//! Views: VIEWS.

use sheaf_table::Privileges;
use sheaf_table::view::ViewCheck;

use super::{AskedTables, LONG_TEXT, NAMES, TEXT, for_each_view};
use crate::change::find::through_view::has_changeable_columns;
use crate::definition::views::security_name;
use crate::error::Result;
use crate::query::rows::{Cells, Rows};
use crate::session::Session;

pub(super) fn views(session: &Session, asked: &AskedTables) -> Result<Rows> {
    let mut rows = Rows::new([
        ("TABLE_CATALOG", NAMES),
        ("TABLE_SCHEMA", NAMES),
        ("TABLE_NAME", NAMES),
        ("VIEW_DEFINITION", LONG_TEXT),
        ("CHECK_OPTION", TEXT),
        ("IS_UPDATABLE", TEXT),
        ("DEFINER", Cells::Text(288)),
        ("SECURITY_TYPE", TEXT),
        ("CHARACTER_SET_CLIENT", TEXT),
        ("COLLATION_CONNECTION", TEXT),
    ]);
    for_each_view(session, asked, |view| {
        let needed = Privileges::SELECT | Privileges::SHOW_VIEW;
        let may_see = session
            .client
            .require_on_table(&view.database, &view.name, needed);
        let definer = format!("{}@{}", view.definer.user, view.definer.host);
        rows.push(vec![
            "def".into(),
            view.database.clone().into(),
            view.name.clone().into(),
            match may_see {
                Ok(()) => view.query.clone().into(),
                Err(_) => "".into(),
            },
            match view.check {
                ViewCheck::None => "NONE",
                ViewCheck::Local => "LOCAL",
                ViewCheck::Cascaded => "CASCADED",
            }
            .into(),
            if has_changeable_columns(session, view) {
                "YES"
            } else {
                "NO"
            }
            .into(),
            definer.into(),
            security_name(view.security).into(),
            view.character_set.clone().into(),
            view.collation.clone().into(),
        ]);
    })?;
    Ok(rows)
}
