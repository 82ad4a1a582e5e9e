use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn leaf(low: &[u8], high: Option<&[u8]>, keys: &[&[u8]]) -> Box<PageImage> {
    let mut page = Box::new([0; PAGE_SIZE]);
    NodeMut(&mut page).format(0, low, high);
    for key in keys {
        let prefix = Node(&page).prefix().len();
        NodeMut(&mut page).push(&key[prefix..], key);
    }
    page
}

fn keys(node: Node<'_>) -> Vec<Vec<u8>> {
    (0..node.count()).map(|slot| node.key(slot)).collect()
}

#[test]
fn a_node_stores_keys_without_what_its_fences_share() {
    let page = leaf(
        b"order/1",
        Some(b"order/9"),
        &[b"order/10", b"order/25", b"order/8"],
    );
    let node = Node(&page);
    assert_eq!(node.prefix(), b"order/");
    assert_eq!(node.suffix(1), b"25");
    assert_eq!(node.key(1), b"order/25");
    assert_eq!(node.value(1), b"order/25");
    assert_eq!(
        node.view().lower_bound(b"order/25"),
        Position {
            slot: 1,
            found: true
        }
    );
    assert_eq!(
        node.view().lower_bound(b"order/3"),
        Position {
            slot: 2,
            found: false
        }
    );
    assert_eq!(node.check(), Ok(()));
}

#[test]
fn heads_order_short_keys_as_memcmp_does() {
    let sorted: [&[u8]; 8] = [
        b"",
        b"\0",
        b"\0\0",
        b"a",
        b"a\0",
        b"a\0\0\0\0",
        b"a\0\0\0\x01",
        b"b",
    ];
    let page = leaf(b"", None, &sorted);
    assert_eq!(Node(&page).check(), Ok(()));
    for (slot, key) in sorted.iter().enumerate() {
        assert_eq!(
            Node(&page).view().lower_bound(key),
            Position { slot, found: true }
        );
    }
}

#[test]
fn an_inner_node_finds_the_child_that_covers_a_key() {
    let mut page = [0; PAGE_SIZE];
    NodeMut(&mut page).format(1, b"b", None);
    for (separator, child) in [(b"".as_slice(), 7u64), (b"f", 8), (b"k", 9)] {
        NodeMut(&mut page).push(separator, &child.to_le_bytes());
    }
    let node = Node(&page);
    let child = |key: &[u8]| node.child(node.view().child_slot(key)).0;
    let before = |key: &[u8]| node.child(node.view().child_slot_before(key)).0;
    assert_eq!(
        [
            child(b"b"),
            child(b"ezz"),
            child(b"f"),
            child(b"j"),
            child(b"z")
        ],
        [7, 7, 8, 8, 9]
    );
    assert_eq!(
        [before(b"f"), before(b"f\0"), before(b"k"), before(b"z")],
        [7, 8, 8, 9]
    );
    assert_eq!(node.key(0), b"b", "the first separator is the low fence");
    assert_eq!(node.check(), Ok(()));
}

#[test]
fn a_separator_is_as_short_as_can_be() {
    assert_eq!(separator(b"apple", b"banana"), b"b");
    assert_eq!(separator(b"banana", b"bandana"), b"band");
    assert_eq!(separator(b"a", b"ab"), b"ab");
}

#[test]
fn dead_bytes_are_reused_when_the_gap_is_too_small() {
    let mut page = leaf(b"", None, &[]);
    for i in 0..15u8 {
        NodeMut(&mut page).push(&[i], &[i; 1000]);
    }
    for slot in (0..15).rev().step_by(2) {
        NodeMut(&mut page).remove(slot);
    }
    NodeMut(&mut page).push(&[99], &[9; 4000]);
    let node = Node(&page);
    assert_eq!(node.check(), Ok(()));
    assert_eq!(
        keys(node),
        [
            vec![1],
            vec![3],
            vec![5],
            vec![7],
            vec![9],
            vec![11],
            vec![13],
            vec![99]
        ]
    );
    assert_eq!(node.value(3), [7; 1000]);
}

#[test]
fn a_ghost_is_a_bit_and_a_count() {
    let mut page = leaf(b"", None, &[b"a", b"b"]);
    NodeMut(&mut page).set_ghost(1, true);
    assert!(!Node(&page).is_ghost(0) && Node(&page).is_ghost(1));
    assert_eq!(Node(&page).ghost_count(), 1);
    assert_eq!(Node(&page).value(1), b"b", "the bytes of a ghost stay");
    NodeMut(&mut page).set_ghost(1, false);
    assert_eq!(Node(&page).ghost_count(), 0);
    NodeMut(&mut page).set_ghost(0, true);
    NodeMut(&mut page).remove(0);
    assert_eq!(Node(&page).ghost_count(), 0);
    assert_eq!(Node(&page).check(), Ok(()));
}

#[test]
fn a_view_of_garbage_is_wrong_but_in_bounds() {
    let mut page = [0xFF; PAGE_SIZE];
    for fill in [0xFF, 0x00, 0x7F, 0x80, 0x3F] {
        page[header::PAGE_TYPE..].fill(fill);
        let view = NodeView(&page);
        view.covers(b"key");
        let slot = view.child_slot(b"key");
        view.child(slot);
        view.value_extent(view.lower_bound(b"key").slot);
        assert!(Node(&page).check().is_err() || fill == 0);
    }
}

/// What may happen to a leaf.
#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Remove(usize),
    Ghost(usize, bool),
    Split,
}

fn key_strategy() -> impl Strategy<Value = Vec<u8>> {
    // Few letters and a shared beginning, so that prefixes, equal heads and zero bytes all occur.
    prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', b'b', 0xFF]), 0..12).prop_map(
        |tail| {
            let mut key = b"k".to_vec();
            key.extend(tail);
            key
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (key_strategy(), prop::collection::vec(any::<u8>(), 0..700)).prop_map(|(key, value)| Step::Put(key, value)),
        2 => any::<usize>().prop_map(Step::Remove),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(at, ghost)| Step::Ghost(at, ghost)),
        1 => Just(Step::Split),
    ]
}

proptest! {
    #[test]
    fn a_leaf_behaves_as_a_sorted_map(steps in prop::collection::vec(step(), 1..200)) {
        let mut page = leaf(b"k", Some(b"l"), &[]);
        let mut model: BTreeMap<Vec<u8>, (Vec<u8>, bool)> = BTreeMap::new();
        for step in steps {
            let node = Node(&page);
            match step {
                Step::Put(key, value) => {
                    if !node.view().covers(&key) { continue; }
                    let position = node.view().lower_bound(&key);
                    prop_assert_eq!(position.found, model.contains_key(&key));
                    let suffix = key[node.prefix().len()..].to_vec();
                    let old = if position.found { node.value(position.slot).len() } else { 0 };
                    let needed = if position.found { value.len().saturating_sub(old) } else { entry_bytes(suffix.len(), value.len()) };
                    if needed > node.free_bytes() { continue; }
                    if position.found {
                        NodeMut(&mut page).set_value(position.slot, &value);
                        model.get_mut(&key).unwrap().0 = value;
                    } else {
                        NodeMut(&mut page).insert(position.slot, &suffix, &value, false);
                        model.insert(key, (value, false));
                    }
                }
                Step::Remove(at) if node.count() > 0 => {
                    let slot = at % node.count();
                    model.remove(&node.key(slot));
                    NodeMut(&mut page).remove(slot);
                }
                Step::Ghost(at, ghost) if node.count() > 0 => {
                    let slot = at % node.count();
                    model.get_mut(&node.key(slot)).unwrap().1 = ghost;
                    NodeMut(&mut page).set_ghost(slot, ghost);
                }
                Step::Split if node.count() > 1 => {
                    // Split, look at the right half, and merge it back: nothing may be lost or change.
                    let (at, separator) = split_position(node);
                    let mut right = Box::new([0; PAGE_SIZE]);
                    NodeMut(&mut right).format(0, &separator, node.high_fence());
                    NodeMut(&mut right).push_from(node, at..node.count());
                    let mut left = page.clone();
                    NodeMut(&mut left).truncate(at, &separator);
                    prop_assert_eq!(Node(&left).check(), Ok(()));
                    prop_assert_eq!(Node(&right).check(), Ok(()));
                    let mut merged = Box::new([0; PAGE_SIZE]);
                    NodeMut(&mut merged).format(0, node.low_fence(), node.high_fence());
                    NodeMut(&mut merged).push_from(Node(&left), 0..Node(&left).count());
                    NodeMut(&mut merged).push_from(Node(&right), 0..Node(&right).count());
                    page = merged;
                }
                _ => {}
            }
            let node = Node(&page);
            prop_assert_eq!(node.check(), Ok(()));
            let found: Vec<_> = (0..node.count()).map(|i| (node.key(i), (node.value(i).to_vec(), node.is_ghost(i)))).collect();
            let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
