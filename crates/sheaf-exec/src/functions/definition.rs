//! What a function is: one row of the table of functions.
//!
//! Each family of functions has a table `FUNCTIONS`. A row begins with a constructor that says when the result is NULL,
//! and goes on with what else is true of the function:
//!
//! ```text
//!   Function::strict("repeat", (2, 2), like_first, repeat)     name, numbers of arguments, type of the result, kernel
//!       .bytewise_but(&[1])                                    of bytes it makes bytes
//!       .growing()                                             the result may be much longer than the arguments
//!       .stops_at_null()                                       operands behind a NULL are not computed
//!       .whole_numbers(1, 2)                                   its second operand is a number
//!       .text_of(0, 1)                                         its text is that of the first operand
//! ```
//!
//! Whoever plans asks the row, and no list of names stands beside the table: the typing rule, the binder, CREATE TABLE
//! ... SELECT, defaults, generated columns and direct plans. What a row does not say does not hold. Then a result has
//! the widest type of its kind, no key is made of it, and no default calls a volatile function.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::Result;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs};

use super::argument::Call;
use super::truncated::NumberKind;
use super::{Operands, types};

/// The result type of a call.
pub type Returns = fn(&Operands<'_>) -> Result<Field>;
/// Computes a batch: as many values as [`Call::rows`].
pub type Kernel = fn(&Call<'_>) -> Result<ArrayRef>;

/// When the result is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullRule {
    /// If and only if an argument is NULL, or the result is too long.
    Strict,
    /// Never.
    Never,
    /// If and only if all arguments are.
    AllNull,
    /// As the kernel decides.
    Own,
}

/// Operands that are dates or times to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moments {
    None,
    /// From this one on, and before that one. A TIME is one of today.
    Dates(usize, usize),
    /// The first one, of which the month and the day may be zero.
    PartsOfDate,
    /// The first one.
    Time,
}

/// How long the results are, as far as operands tell: texts in characters, byte strings in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// By a rule of its own, or as long as results of the type can be.
    Own,
    /// An INT.
    Int,
    Fixed(u32),
    /// As long as this operand.
    OfOperand(usize),
    /// As long as the longest one of the operands from this one on.
    OfLongest(usize),
    /// As long as all operands together.
    OfAll,
    /// As long as the first operand, and no longer than this one says, which is a number.
    CutTo(usize),
    /// As long as this operand says, which is a number.
    FilledTo(usize),
    /// The first operand as often as this one says, which is a number.
    Repeated(usize),
    /// As long as the rest of the first operand from where the second says, and no longer than the third says.
    Part,
}

/// Operands that a function takes for numbers though they may be texts: of this kind, from that one on, and before
/// that one.
pub type NumberOperands = (NumberKind, usize, usize);

/// One scalar function.
#[derive(Clone, Copy)]
pub struct Function {
    pub name: &'static str,
    pub least_arguments: usize,
    pub most_arguments: usize,
    pub nulls: NullRule,
    /// The same arguments give different results (RAND, UUID, SLEEP).
    pub volatile: bool,
    /// The default of a column may call it for each row. Others are not asked.
    pub in_defaults: bool,
    /// Byte strings are taken byte by byte, and give a byte string.
    pub bytewise: bool,
    /// A bit for each argument that is a number only, as a position is: bytes there make no byte string of the result.
    pub numbers: u8,
    /// The result may be many times as long as the arguments, so that it may be too long, and NULL.
    pub growing: bool,
    /// The result is longer than all arguments together by little. But it may get the same argument many times.
    pub repeating: bool,
    /// It is NULL at the first operand that is NULL, and computes no other.
    pub stops_at_null: bool,
    /// It is NULL only where an operand is, or is divided by zero.
    pub is_arithmetic: bool,
    /// Of functions that take texts and others beside them. Texts that are no numbers are warned of.
    pub number_operands: [Option<NumberOperands>; 2],
    pub moments: Moments,
    /// The operands that its text is made of: the first one, and how many there are at most. The text has their
    /// character set.
    pub text_operands: (usize, usize),
    /// Its bytes are those of no column, so they yield to columns as literals do.
    pub makes_bytes: bool,
    pub length: Length,
    /// CREATE TABLE ... SELECT makes a column of it that may be NULL, whatever the operands are. Of texts it always
    /// does.
    pub null_in_doubt: bool,
    /// Of constants it makes an operand of keys: it depends on its operands alone, and its text yields to the
    /// collation of a column.
    pub is_key_operand: bool,
    pub returns: Returns,
    /// `None` for a marker.
    pub kernel: Option<Kernel>,
}

/// Any number of arguments.
pub const VARIADIC: usize = usize::MAX;

impl Function {
    /// NULL if an argument is NULL and only then.
    pub const fn strict(
        name: &'static str,
        arguments: (usize, usize),
        returns: Returns,
        kernel: Kernel,
    ) -> Function {
        Function {
            nulls: NullRule::Strict,
            kernel: Some(kernel),
            ..Self::marker(name, arguments, returns)
        }
    }

    /// The kernel decides about NULL.
    pub const fn new(
        name: &'static str,
        arguments: (usize, usize),
        returns: Returns,
        kernel: Kernel,
    ) -> Function {
        Function {
            nulls: NullRule::Own,
            ..Self::strict(name, arguments, returns, kernel)
        }
    }

    /// Replaced by the typing rule.
    pub const fn marker(
        name: &'static str,
        arguments: (usize, usize),
        returns: Returns,
    ) -> Function {
        Function {
            name,
            least_arguments: arguments.0,
            most_arguments: arguments.1,
            nulls: NullRule::Own,
            volatile: false,
            in_defaults: false,
            bytewise: false,
            numbers: 0,
            growing: false,
            repeating: false,
            stops_at_null: false,
            is_arithmetic: false,
            number_operands: [None; 2],
            moments: Moments::None,
            text_operands: (0, 0),
            makes_bytes: false,
            length: Length::Own,
            null_in_doubt: false,
            is_key_operand: false,
            returns,
            kernel: None,
        }
    }

    /// A call that is to be computed. A volatile function gives a value of its own to every row, whatever its
    /// arguments.
    pub(super) fn call<'a>(&self, args: &'a ScalarFunctionArgs) -> Call<'a> {
        let mut values = args.args.iter();
        let constant =
            !self.volatile && values.all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let bytewise = self.bytewise
            && match args.return_field.data_type() {
                DataType::Binary => true,
                DataType::Utf8View => false,
                _ => types::takes_bytes(&self.strings(&args.arg_fields)),
            };
        Call::new(args, (self.name, self.growing), constant, bytewise)
    }

    /// Whether results may be many times as long as arguments.
    pub(crate) fn lengthens(&self) -> bool {
        self.growing || self.repeating
    }

    /// Whether a result may be longer than max_allowed_packet: then it is NULL, though no argument is.
    pub(super) fn may_be_too_long(&self, fields: &[FieldRef]) -> bool {
        self.growing
            || self.name == "concat" && fields.iter().any(|field| types::may_be_long(field))
    }

    /// The arguments that are more than numbers.
    pub(super) fn strings<'f>(&self, fields: &'f [FieldRef]) -> Cow<'f, [FieldRef]> {
        if self.numbers == 0 {
            return Cow::Borrowed(fields);
        }
        let is_string = |at: usize| at >= u8::BITS as usize || self.numbers >> at & 1 == 0;
        let strings = fields.iter().enumerate().filter(|(at, _)| is_string(*at));
        strings.map(|(_, field)| Arc::clone(field)).collect()
    }
}

/// What is said of a function behind its constructor; see the [fields](Function).
impl Function {
    pub(super) const fn never_null(self) -> Function {
        Function {
            nulls: NullRule::Never,
            ..self
        }
    }

    pub(super) const fn null_of_nulls(self) -> Function {
        Function {
            nulls: NullRule::AllNull,
            ..self
        }
    }

    pub(super) const fn bytewise(self) -> Function {
        Function {
            bytewise: true,
            ..self
        }
    }

    /// As [`bytewise`](Self::bytewise), with arguments at these places that are numbers only.
    pub(super) const fn bytewise_but(self, places: &[usize]) -> Function {
        let mut numbers = 0;
        let mut at = 0;
        while at < places.len() {
            numbers |= 1 << places[at];
            at += 1;
        }
        Function {
            bytewise: true,
            numbers,
            ..self
        }
    }

    pub(super) const fn growing(self) -> Function {
        Function {
            growing: true,
            ..self
        }
    }

    pub(super) const fn repeating(self) -> Function {
        Function {
            repeating: true,
            ..self
        }
    }

    pub(super) const fn volatile(self) -> Function {
        Function {
            volatile: true,
            ..self
        }
    }

    pub(super) const fn in_defaults(self) -> Function {
        Function {
            in_defaults: true,
            ..self
        }
    }

    pub(super) const fn stops_at_null(self) -> Function {
        Function {
            stops_at_null: true,
            ..self
        }
    }

    pub(super) const fn arithmetic(self) -> Function {
        Function {
            is_arithmetic: true,
            ..self
        }
    }

    /// Operands from one on, and before another one.
    pub(super) const fn whole_numbers(self, from: usize, to: usize) -> Function {
        self.with_numbers((NumberKind::Integer, from, to))
    }

    pub(super) const fn decimals(self, from: usize, to: usize) -> Function {
        self.with_numbers((NumberKind::Decimal, from, to))
    }

    pub(super) const fn doubles(self, from: usize, to: usize) -> Function {
        self.with_numbers((NumberKind::Double, from, to))
    }

    const fn with_numbers(self, operands: NumberOperands) -> Function {
        let number_operands = match self.number_operands {
            [None, _] => [Some(operands), None],
            [first, None] => [first, Some(operands)],
            _ => panic!("more kinds of numbers than a row has room for"),
        };
        Function {
            number_operands,
            ..self
        }
    }

    pub(super) const fn dates(self, from: usize, to: usize) -> Function {
        self.with_moments(Moments::Dates(from, to))
    }

    pub(super) const fn parts_of_date(self) -> Function {
        self.with_moments(Moments::PartsOfDate)
    }

    pub(super) const fn time(self) -> Function {
        self.with_moments(Moments::Time)
    }

    const fn with_moments(self, moments: Moments) -> Function {
        Function { moments, ..self }
    }

    pub(super) const fn text_of(self, first: usize, most: usize) -> Function {
        Function {
            text_operands: (first, most),
            ..self
        }
    }

    pub(super) const fn makes_bytes(self) -> Function {
        Function {
            makes_bytes: true,
            ..self
        }
    }

    pub(super) const fn length(self, length: Length) -> Function {
        Function { length, ..self }
    }

    pub(super) const fn null_in_doubt(self) -> Function {
        Function {
            null_in_doubt: true,
            ..self
        }
    }

    pub(super) const fn key_operand(self) -> Function {
        Function {
            is_key_operand: true,
            ..self
        }
    }
}
