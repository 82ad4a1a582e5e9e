//! What must hold for all documents: tried on random ones.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;
use sheaf_types::json::compare::compare;
use sheaf_types::json::functions::modify::{Change, change, remove};
use sheaf_types::json::functions::{contains, extract, merge, overlaps, structure};
use sheaf_types::json::path::{Index, Leg};
use sheaf_types::json::sort_key::sort_key;
use sheaf_types::json::text::{read, to_pretty, to_text};
use sheaf_types::json::{Builder, Document, Json, Path, Tree, View};
use sheaf_types::number::Int256;

/// A document as a tree of the standard library's.
#[derive(Debug, Clone, PartialEq)]
enum Model {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(i128, u8),
    WideDecimal(Int256, u8),
    Text(String),
    Date(i32),
    Time(i64),
    DateTime(i64),
    Timestamp(i64),
    Bytes(u8, Vec<u8>),
    Array(Vec<Model>),
    Object(BTreeMap<String, Model>),
}

impl Model {
    fn write(&self, builder: &mut Builder) {
        match self {
            Model::Null => builder.null(),
            Model::Bool(value) => builder.bool(*value),
            Model::Int(value) => builder.int(*value),
            Model::UInt(value) => builder.uint(*value),
            Model::Double(value) => builder.double(*value),
            Model::Decimal(unscaled, scale) => builder.decimal(*unscaled, *scale),
            Model::WideDecimal(unscaled, scale) => builder.wide_decimal(*unscaled, *scale),
            Model::Text(text) => builder.string(text),
            Model::Date(days) => builder.date(*days),
            Model::Time(micros) => builder.time(*micros),
            Model::DateTime(micros) => builder.datetime(*micros),
            Model::Timestamp(micros) => builder.timestamp(*micros),
            Model::Bytes(field_type, bytes) => builder.opaque(*field_type, bytes),
            Model::Array(elements) => {
                builder.begin_array().unwrap();
                elements.iter().for_each(|element| element.write(builder));
                builder.end()
            }
            Model::Object(members) => {
                builder.begin_object().unwrap();
                for (key, member) in members {
                    builder.key(key).unwrap();
                    member.write(builder);
                }
                builder.end()
            }
        }
        .unwrap();
    }

    fn document(&self) -> Document {
        let mut builder = Builder::new();
        self.write(&mut builder);
        builder.finish().unwrap()
    }

    fn of(json: Json<'_>) -> Model {
        match json.view() {
            View::Null => Model::Null,
            View::Bool(value) => Model::Bool(value),
            View::Int(value) => Model::Int(value),
            View::UInt(value) => Model::UInt(value),
            View::Double(value) => Model::Double(value),
            View::Decimal { unscaled, scale } => Model::Decimal(unscaled, scale),
            View::WideDecimal { unscaled, scale } => Model::WideDecimal(unscaled.into(), scale),
            View::String(text) => Model::Text(text.to_string()),
            View::Date(days) => Model::Date(days),
            View::Time(micros) => Model::Time(micros),
            View::DateTime(micros) => Model::DateTime(micros),
            View::Timestamp(micros) => Model::Timestamp(micros),
            View::Opaque { field_type, bytes } => Model::Bytes(field_type, bytes.to_vec()),
            View::Array(array) => Model::Array(array.iter().map(Model::of).collect()),
            View::Object(object) => Model::Object(
                object
                    .iter()
                    .map(|(key, value)| (key.to_string(), Model::of(value)))
                    .collect(),
            ),
        }
    }

    /// JSON_SET, by the model: only paths of members and of positions from the start.
    fn set(&mut self, legs: &[Leg], value: Model) {
        let Some((leg, rest)) = legs.split_first() else {
            *self = value;
            return;
        };
        match (leg, self) {
            (Leg::Member(key), Model::Object(members)) => match members.get_mut(key) {
                Some(member) => member.set(rest, value),
                None if rest.is_empty() => _ = members.insert(key.clone(), value),
                None => {}
            },
            (Leg::Cell(Index::FromStart(position)), Model::Array(elements)) => {
                match elements.get_mut(*position as usize) {
                    Some(element) => element.set(rest, value),
                    None if rest.is_empty() => elements.push(value),
                    None => {}
                }
            }
            (Leg::Cell(Index::FromStart(0)), single) => single.set(rest, value),
            (Leg::Cell(_), single) if rest.is_empty() => {
                *single = Model::Array(vec![single.clone(), value]);
            }
            _ => {}
        }
    }

    fn get(&self, legs: &[Leg]) -> Option<&Model> {
        legs.iter().try_fold(self, |value, leg| match (leg, value) {
            (Leg::Member(key), Model::Object(members)) => members.get(key),
            (Leg::Member(_), _) => None,
            (Leg::Cell(Index::FromStart(position)), Model::Array(elements)) => {
                elements.get(*position as usize)
            }
            (Leg::Cell(Index::FromStart(0)), single) => Some(single),
            _ => None,
        })
    }
}

fn scalar_of_json() -> impl Strategy<Value = Model> {
    prop_oneof![
        Just(Model::Null),
        any::<bool>().prop_map(Model::Bool),
        // What a text reads as: integers beyond 32 bits are unsigned.
        (i64::MIN..=i64::from(u32::MAX)).prop_map(Model::Int),
        (-3i64..3).prop_map(Model::Int),
        (1u64 << 32..=u64::MAX).prop_map(Model::UInt),
        proptest::num::f64::NORMAL.prop_map(Model::Double),
        (-3i32..3).prop_map(|halves| Model::Double(f64::from(halves) / 2.0)),
        ".{0,6}".prop_map(Model::Text),
        "[ab\\x00]{0,3}".prop_map(Model::Text),
    ]
}

fn scalar() -> impl Strategy<Value = Model> {
    prop_oneof![
        4 => scalar_of_json(),
        1 => any::<i64>().prop_map(Model::Int),
        1 => any::<u64>().prop_map(Model::UInt),
        1 => (any::<i128>(), 0u8..=38).prop_map(|(unscaled, scale)| Model::Decimal(unscaled >> 2, scale)),
        1 => (any::<u128>(), 1i128..1 << 40, 0u8..=30)
            .prop_map(|(low, high, scale)| Model::WideDecimal(Int256::of_parts(low, high), scale)),
        1 => (-30i128..30, 0u8..3).prop_map(|(unscaled, scale)| Model::Decimal(unscaled, scale)),
        1 => (-1000i32..1000).prop_map(Model::Date),
        1 => (-1000i64..1000).prop_map(Model::Time),
        1 => (-1000i64..1000).prop_map(Model::DateTime),
        1 => (-1000i64..1000).prop_map(Model::Timestamp),
        1 => (prop_oneof![Just(15u8), Just(16), Just(255)], any::<Vec<u8>>())
            .prop_map(|(field_type, bytes)| Model::Bytes(field_type, bytes)),
    ]
}

fn nested(scalar: impl Strategy<Value = Model> + 'static) -> impl Strategy<Value = Model> {
    scalar.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Model::Array),
            proptest::collection::btree_map("[abc]{0,3}", inner, 0..5).prop_map(Model::Object),
        ]
    })
}

fn legs() -> impl Strategy<Value = Vec<Leg>> {
    let leg = prop_oneof![
        "[abc]{0,2}".prop_map(Leg::Member),
        (0u32..4).prop_map(|position| Leg::Cell(Index::FromStart(position))),
    ];
    proptest::collection::vec(leg, 0..4)
}

fn path_of(legs: &[Leg]) -> Path {
    let mut text = "$".to_string();
    for leg in legs {
        match leg {
            Leg::Member(key) => text.push_str(&format!(".\"{key}\"")),
            Leg::Cell(Index::FromStart(position)) => text.push_str(&format!("[{position}]")),
            _ => unreachable!("no such legs are tried"),
        }
    }
    Path::parse(&text).unwrap()
}

/// Calls all that reads a document.
fn use_all(json: Json<'_>) {
    let _ = json.check();
    let _ = (to_text(json), to_pretty(json), sort_key(json));
    let _ = (
        json.depth(),
        structure::keys(json, None),
        structure::type_name(json),
    );
    for path in [
        "$.a",
        "$[0]",
        "$**.a",
        "$**[last]",
        "$[0 to 1].*",
        "$**[*]**[0]",
    ] {
        let path = Path::parse(path).unwrap();
        let _ = extract::extract(json, &[&path]);
    }
    let _ = (compare(json, json), overlaps::overlaps(json, json));
    let _ = contains::contains(json, json, None);
    let _ = merge::merge_preserve([json, json]).map(|tree| tree.to_document());
    let _ = merge::merge_patch(&[Some(json), Some(json)]).map(|tree| tree.to_document());
}

proptest! {
    #[test]
    fn documents_hold_what_was_written(model in nested(scalar())) {
        let document = model.document();
        document.as_json().check().unwrap();
        prop_assert_eq!(Model::of(document.as_json()), model);
    }

    #[test]
    fn texts_and_documents_are_inverse(model in nested(scalar_of_json())) {
        let document = model.document();
        let text = to_text(document.as_json());
        prop_assert_eq!(read(&text).unwrap(), document.clone());
        prop_assert_eq!(read(&to_pretty(document.as_json())).unwrap(), document);
    }

    #[test]
    fn order_of_members_in_a_text_does_not_matter(members in proptest::collection::vec(("[abc]{0,3}", 0..9), 0..8)) {
        let pairs: Vec<_> = members.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        let last: BTreeMap<_, _> = members.iter().cloned().collect();
        let sorted: Vec<_> = last.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        let document = read(&format!("{{{}}}", pairs.join(", "))).unwrap();
        document.as_json().check().unwrap();
        prop_assert_eq!(document, read(&format!("{{{}}}", sorted.join(","))).unwrap());
    }

    #[test]
    fn keys_sort_as_values_compare(a in nested(scalar()), b in nested(scalar())) {
        let (a, b) = (a.document(), b.document());
        let order = compare(a.as_json(), b.as_json());
        prop_assert_eq!(sort_key(a.as_json()).cmp(&sort_key(b.as_json())), order);
        prop_assert_eq!(compare(b.as_json(), a.as_json()), order.reverse());
        prop_assert_eq!(compare(a.as_json(), a.as_json()), Ordering::Equal);
    }

    #[test]
    fn numbers_sort_as_they_compare(a in scalar(), b in scalar()) {
        let (a, b) = (a.document(), b.document());
        let order = compare(a.as_json(), b.as_json());
        prop_assert_eq!(sort_key(a.as_json()).cmp(&sort_key(b.as_json())), order);
    }

    #[test]
    fn changes_are_those_of_the_model(
        mut model in nested(scalar()),
        changes in proptest::collection::vec((legs(), nested(scalar())), 1..4),
    ) {
        let document = model.document();
        let changes: Vec<_> = changes
            .iter()
            .map(|(legs, value)| (legs, path_of(legs), value, value.document()))
            .collect();
        let mut tree = Tree::Stored(document.as_json());
        for (legs, path, value, value_document) in &changes {
            change(&mut tree, Change::Set, path, Tree::Stored(value_document.as_json())).unwrap();
            model.set(legs, (*value).clone());
        }
        let changed = tree.to_document().unwrap();
        changed.as_json().check().unwrap();
        prop_assert_eq!(&changed, &model.document());
        for (legs, path, ..) in &changes {
            let found = path.find_one(changed.as_json()).map(Model::of);
            prop_assert_eq!(found.as_ref(), model.get(legs));
        }
    }

    #[test]
    fn what_is_removed_is_gone(model in nested(scalar()), key in "[abc]{0,3}") {
        let document = model.document();
        let path = path_of(&[Leg::Member(key.clone())]);
        let mut tree = Tree::Stored(document.as_json());
        remove(&mut tree, &path).unwrap();
        let mut expected = model;
        if let Model::Object(members) = &mut expected {
            members.remove(&key);
        }
        prop_assert_eq!(tree.to_document().unwrap(), expected.document());
    }

    #[test]
    fn random_bytes_are_read_safely(bytes in proptest::collection::vec(any::<u8>(), 0..60), code in 0u8..21) {
        let mut bytes = bytes;
        bytes.insert(0, code);
        if let Ok(json) = Json::new(&bytes) {
            use_all(json);
        }
    }

    #[test]
    fn damaged_documents_are_read_safely(
        model in nested(scalar()),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = model.document().into_bytes();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(json) = Json::new(&bytes) {
            use_all(json);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]{}:,\"\\\\a-f0-9eEu.+\\- \\n-]{0,20}") {
        if let Ok(document) = read(&text) {
            document.as_json().check().unwrap();
        }
    }

    #[test]
    fn any_path_is_read_or_refused(text in "[$]?[\\[\\]*. \"a-c0-3lastoä-]{0,12}") {
        if let Ok(path) = Path::parse(&text) {
            prop_assert_eq!(Path::parse(&path.to_string()).unwrap(), path);
        }
    }
}

#[test]
fn large_containers_have_wide_offsets() {
    let array = Model::Array((0..30_000).map(Model::Int).collect());
    let object = Model::Object(
        (0..20_000)
            .map(|number| (number.to_string(), array_of(number)))
            .collect(),
    );
    for model in [array, object] {
        let document = model.document();
        assert!(document.as_bytes().len() > 1 << 16);
        document.as_json().check().unwrap();
        assert_eq!(Model::of(document.as_json()), model);
    }
}

fn array_of(number: i64) -> Model {
    Model::Array(vec![Model::Int(number), Model::Text(number.to_string())])
}

#[test]
fn members_of_damaged_documents_are_not_visited_twice() {
    // An array in an array in an array ..., whose elements all are the same one.
    let mut inner = read("[1000000]").unwrap().into_bytes()[1..].to_vec();
    for _ in 0..60 {
        let size = inner.len();
        let mut outer = inner.clone();
        for _ in 0..2 {
            outer.push(15);
            outer.extend_from_slice(&(size as u16).to_le_bytes());
        }
        outer.extend_from_slice(&((size + 12) as u16).to_le_bytes());
        outer.extend_from_slice(&[2, 0, 1, 1]);
        inner = outer;
    }
    inner.insert(0, 15);
    let json = Json::new(&inner).unwrap();
    assert!(json.check().is_err());
    use_all(json);
}

#[test]
fn a_damaged_depth_is_not_counted_beyond_its_byte() {
    let mut bytes = read("[1]").expect("JSON").into_bytes();
    *bytes.last_mut().expect("a depth") = u8::MAX;
    let mut builder = Builder::new();
    builder.begin_array().expect("room");
    builder
        .json(Json::new(&bytes).expect("a container"))
        .expect("room");
    builder.end().expect("room");
    let document = builder.finish().expect("room");
    assert_eq!(document.as_json().depth(), usize::from(u8::MAX));
}
