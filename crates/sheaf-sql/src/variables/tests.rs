//! What SET takes, refuses and cuts.

use super::*;

fn set(scope: Scope, name: &str, value: NewValue) -> Result<String> {
    let (mut session, mut global) = (Variables::default(), Variables::default());
    assign(&mut session, &mut global, scope, name, &value)?;
    let changed = if scope == Scope::Global {
        &global
    } else {
        &session
    };
    Ok(changed.get(name)?.to_string())
}

#[test]
fn the_table_is_sorted_and_its_defaults_are_valid() {
    for pair in DEFINITIONS.windows(2) {
        assert!(
            pair[0].name < pair[1].name,
            "{} < {}",
            pair[0].name,
            pair[1].name
        );
    }
    for definition in DEFINITIONS {
        let default = definition.default_value();
        let new = match &default {
            VariableValue::Integer(number) => NewValue::Integer(*number),
            VariableValue::Float(number) => NewValue::Float(*number),
            other => NewValue::Text(other.to_string()),
        };
        let (converted, truncated) = definition.convert(&new, &default).expect(definition.name);
        assert_eq!(
            (converted, truncated),
            (default, None),
            "{}",
            definition.name
        );
    }
}

#[test]
fn wrong_assignments_are_mysqls_errors() {
    let code = |scope, name, value| set(scope, name, value).map_err(|error| error.code).err();
    assert_eq!(
        code(Scope::Default, "no_such", NewValue::Integer(1)),
        Some(1193)
    );
    assert_eq!(
        code(Scope::Default, "version", NewValue::Text("9".into())),
        Some(1238)
    );
    assert_eq!(
        code(Scope::Default, "max_connections", NewValue::Integer(9)),
        Some(1229)
    );
    assert_eq!(
        code(
            Scope::Default,
            "sort_buffer_size",
            NewValue::Text("big".into())
        ),
        Some(1232)
    );
    assert_eq!(
        code(Scope::Default, "autocommit", NewValue::Integer(7)),
        Some(1231)
    );
    assert_eq!(
        code(
            Scope::Default,
            "optimizer_switch",
            NewValue::Text("mrr=perhaps".into())
        ),
        Some(1231)
    );
    assert_eq!(
        code(
            Scope::Default,
            "character_set_client",
            NewValue::Text("ebcdic".into())
        ),
        Some(1115)
    );
    assert_eq!(
        code(Scope::Default, "time_zone", NewValue::Text("+25:00".into())),
        Some(1298)
    );
}

#[test]
fn a_number_outside_the_limits_is_clamped_with_a_warning() {
    let (mut session, mut global) = (Variables::default(), Variables::default());
    let truncated = assign(
        &mut session,
        &mut global,
        Scope::Session,
        "read_rnd_buffer_size",
        &NewValue::Integer(-5),
    );
    assert_eq!(
        truncated,
        Ok(Some(Truncated {
            variable: "read_rnd_buffer_size".into(),
            value: "-5".into()
        }))
    );
    assert_eq!(session.mrr_buffer_bytes(), 1);
}

#[test]
fn mrr_buffer_size_and_read_rnd_buffer_size_are_one_variable() {
    let (mut session, mut global) = (Variables::default(), Variables::default());
    assert_eq!(session.mrr_buffer_bytes(), 256 << 10);
    assign(
        &mut session,
        &mut global,
        Scope::Session,
        "mrr_buffer_size",
        &NewValue::Integer(4 << 20),
    )
    .expect("valid");
    assert_eq!(
        session.get("read_rnd_buffer_size"),
        Ok(&VariableValue::Integer(4 << 20))
    );
    assert_eq!(global.mrr_buffer_bytes(), 256 << 10);
}

#[test]
fn optimizer_switch_merges_flags_and_keeps_unknown_ones() {
    let text = set(
        Scope::Session,
        "optimizer_switch",
        NewValue::Text("mrr=off,split_materialized=off".into()),
    )
    .expect("valid");
    assert!(text.contains("mrr=off,"), "{text}");
    assert!(text.contains("index_condition_pushdown=on"), "{text}");
    assert!(text.ends_with("split_materialized=off"), "{text}");
}

#[test]
fn read_only_and_super_read_only_follow_each_other() {
    let (mut session, mut global) = (Variables::default(), Variables::default());
    let mut set = |name: &str, on: bool| {
        let value = NewValue::Integer(on.into());
        assign(&mut session, &mut global, Scope::Global, name, &value).expect("valid");
        global.server_read_only()
    };
    assert_eq!(set("super_read_only", true), ServerReadOnly::All);
    assert_eq!(
        set("super_read_only", false),
        ServerReadOnly::WithoutPrivilege
    );
    assert_eq!(set("super_read_only", true), ServerReadOnly::All);
    assert_eq!(set("read_only", false), ServerReadOnly::Nobody);
    assert_eq!(set("read_only", true), ServerReadOnly::WithoutPrivilege);
}

#[test]
fn default_means_the_global_value() {
    let (mut session, mut global) = (Variables::default(), Variables::default());
    assign(
        &mut session,
        &mut global,
        Scope::Global,
        "join_buffer_size",
        &NewValue::Integer(1 << 20),
    )
    .expect("valid");
    assign(
        &mut session,
        &mut global,
        Scope::Session,
        "join_buffer_size",
        &NewValue::Default,
    )
    .expect("valid");
    assert_eq!(session.join_buffer_bytes(), 1 << 20);
}

#[test]
fn a_default_collation_brings_its_character_set() {
    let (mut session, mut global) = (Variables::default(), Variables::default());
    for (name, value) in [
        ("character_set_connection", NewValue::Text("latin1".into())),
        ("collation_connection", NewValue::Default),
    ] {
        assign(&mut session, &mut global, Scope::Session, name, &value).expect("valid");
    }
    assert_eq!(session.text("character_set_connection"), "utf8mb4");
    assert_eq!(session.text("collation_connection"), "utf8mb4_0900_ai_ci");
}
