//! JSON values: what MySQL has answered, properties, tables.

mod evaluate;
mod properties;
mod recorded;
mod table;
