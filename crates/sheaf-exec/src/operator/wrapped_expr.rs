//! What wrappers of an expression, their field `inner`, say of themselves. They are there for something that happens on
//! the way: the inner one can be stopped, or is evaluated for fewer rows at a time.

/// Members of a [`PhysicalExpr`](datafusion_physical_expr::PhysicalExpr): it has the type of the inner one.
macro_rules! as_inner {
    () => {
        fn data_type(
            &self,
            schema: &::arrow::datatypes::Schema,
        ) -> ::datafusion_common::Result<::arrow::datatypes::DataType> {
            self.inner.data_type(schema)
        }

        fn nullable(
            &self,
            schema: &::arrow::datatypes::Schema,
        ) -> ::datafusion_common::Result<bool> {
            self.inner.nullable(schema)
        }

        fn return_field(
            &self,
            schema: &::arrow::datatypes::Schema,
        ) -> ::datafusion_common::Result<::arrow::datatypes::FieldRef> {
            self.inner.return_field(schema)
        }

        fn children(&self) -> Vec<&::std::sync::Arc<dyn ::datafusion_physical_expr::PhysicalExpr>> {
            vec![&self.inner]
        }

        fn fmt_sql(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            self.inner.fmt_sql(f)
        }
    };
}

/// Two of them are the same, and are printed, as the inner ones are.
macro_rules! same_as_inner {
    ($wrapper:ty) => {
        impl PartialEq for $wrapper {
            fn eq(&self, other: &Self) -> bool {
                self.inner.eq(&other.inner)
            }
        }

        impl Eq for $wrapper {}

        impl ::std::hash::Hash for $wrapper {
            fn hash<H: ::std::hash::Hasher>(&self, state: &mut H) {
                self.inner.hash(state);
            }
        }

        impl ::std::fmt::Display for $wrapper {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.inner, f)
            }
        }
    };
}

pub(crate) use {as_inner, same_as_inner};
