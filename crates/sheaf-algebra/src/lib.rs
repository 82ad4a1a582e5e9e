//! The algebra: a bound query as a tree of operators over columns that are numbers.
//!
//! The binder (`sheaf-frontend/src/bind/`) makes such a tree of a syntax tree. From then on no name means anything. A
//! column is a [`ColumnId`], given once in a statement and never reused, so that a rule can move an expression through
//! any operator without asking what the expression captures on its way.
//!
//! ```text
//!   SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.o = o.id)
//!
//!   as bound                                 as the rules leave it
//!   Project #0                               Project #0
//!     Filter #4                                Join semi, #2 = #0
//!       DependentJoin mark #4                    Scan orders #0 #1
//!         Scan orders #0 #1                      Scan items #2 #3
//!         Filter #2 = #0       <- #0 is free
//!           Scan items #2 #3
//! ```
//!
//! # What the design decides
//!
//! 1. **A column is an id; an operator passes ids on.** A filter, a join, a sort or a limit gives the same ids as its
//!    input. Only Scan, Project, Group, Window, SetOperation, Values and a mark join make new ones. An outer join gives
//!    the ids of its inner side, where they may be NULL above it. What is not the same everywhere is therefore a
//!    property of the place ([`properties`]), not of the column.
//! 2. **Everything has its type when it is built.** A [`Scalar`] is made of operands that have types, by MySQL's typing
//!    rule ([`scalar::Typing`]). So there is no pass that finds types, and nothing that waits for one. The rule is the
//!    one of `sheaf_exec::typing`: the node is put to it with stand-ins for its operands, since an operand's type, and
//!    the value of a literal, are all that it decides by. There is no second meaning.
//! 3. **Comparisons are spelled out, and other uses of equality are not.** A comparison of texts compares their sort
//!    keys. Group, SetOperation and Sort name plain values, and mean MySQL's equality and order of these; the spelling
//!    is that of the executor ([`to_logical_plan`]).
//! 4. **A subquery is a dependent join from the start.** Its columns of the query around are free columns of the right
//!    side. No expression holds a subquery. In a condition there is a column instead: the mark of a
//!    [mark join](relation::DependentKind::Mark), which has three values as IN has, or the value of a
//!    [single join](relation::DependentKind::Single).
//! 5. **Unnesting is a rule** ([`rules::unnest`], after Neumann and Kemper, "Unnesting Arbitrary Queries", 2015). A
//!    dependent join without free columns is a join. What the right side takes from the left is pulled up if that needs
//!    no copy of the left side. Otherwise the right side is joined with the distinct values of what it takes, which
//!    always gets there. Whether an index probe for each row would cost less is to be decided by cost, and is not yet.
//! 6. **A group's key is a column.** What is computed is computed below. Columns that the keys determine are carried: a
//!    group gives the value of any of its rows. So the columns above a group are ids from below it, and
//!    ONLY_FULL_GROUP_BY is a question to [`properties::Properties::determined_in_a_run`].
//! 7. **Order is a property and a node.** Sort stands where the query asks for an order. What has it already is for
//!    rules to find.
//! 8. **Properties are derived, never stored.** A node derives them from those of its inputs when somebody asks for
//!    them, once.
//!
//! | folder or file | what it holds |
//! |---|---|
//! | [`mod@column`] | ids, and the table of a statement's columns |
//! | [`scalar`] | typed expressions, and how they are made |
//! | [`relation`] | the operators, one a file |
//! | [`properties`] | what is known of the rows of an operator |
//! | [`rules`] | rewrites, one a file, each with its identity as the heading |
//! | [`to_logical_plan`] | the tree as a plan for today's optimizer, until that takes the tree itself |
//! | [`printer`] | the tree as text, for tests |

pub mod column;
pub mod column_set;
pub mod printer;
pub mod properties;
pub mod relation;
pub mod rules;
pub mod scalar;
pub mod to_logical_plan;

pub use column::{Column, ColumnId, Columns};
pub use column_set::ColumnSet;
pub use relation::{Operator, Relation};
pub use scalar::Scalar;
