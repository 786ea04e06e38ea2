//! Patterns as one line of YAML in flow style, for messages.

use std::fmt;

use serde_json::{Number, Value};

use super::{Comparison, Count, Operator, Pattern, Presence};

impl fmt::Display for Pattern {
    /// As one line of YAML in flow style.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Map(pairs) => {
                f.write_str("{")?;
                for (index, (key, pattern)) in pairs.iter().enumerate() {
                    write!(f, "{}{key}: {pattern}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            Pattern::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Pattern::Scalar(value) => write!(f, "{value}"),
            Pattern::Operators(all) => {
                f.write_str("{")?;
                for (index, operator) in all.iter().enumerate() {
                    write!(f, "{}{operator}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operator::Is(Presence::Present) => f.write_str("$is: present"),
            Operator::Is(Presence::Absent) => f.write_str("$is: absent"),
            Operator::Is(Presence::Any) => f.write_str("$is: any"),
            Operator::Regex(text) => write!(f, "$regex: {}", Value::String(text.clone())),
            Operator::Equal(value) => write!(f, "$eq: {value}"),
            Operator::NotEqual(value) => write!(f, "$ne: {value}"),
            Operator::Compare(comparison, value) => write!(f, "{}: {value}", comparison.name()),
            Operator::Quantity(all) => {
                f.write_str("$quantity: {")?;
                for (index, (comparison, value)) in all.iter().enumerate() {
                    write!(f, "{}{}: {value}", if index > 0 { ", " } else { "" }, comparison.name())?;
                }
                f.write_str("}")
            }
            Operator::Any(pattern) => write!(f, "$any: {pattern}"),
            Operator::All(pattern) => write!(f, "$all: {pattern}"),
            Operator::NoneOf(pattern) => write!(f, "$none: {pattern}"),
            Operator::ByKey(key, elements) => {
                write!(f, "$byKey: {{{key}: {{")?;
                for (index, (value, pattern)) in elements.iter().enumerate() {
                    write!(f, "{}{value}: {pattern}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}}")
            }
            Operator::Count(count) => write!(f, "$count: {count}"),
            Operator::OneOf(ways) => write!(f, "$oneOf: {}", Pattern::List(ways.clone())),
            Operator::Not(pattern) => write!(f, "$not: {pattern}"),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::All => f.write_str("all"),
            Count::Compared(conditions) => match conditions.as_slice() {
                [(Comparison::Equal, number)] => write!(f, "{}", Number::from(*number)),
                conditions => {
                    f.write_str("{")?;
                    for (index, (comparison, number)) in conditions.iter().enumerate() {
                        write!(f, "{}{}: {number}", if index > 0 { ", " } else { "" }, comparison.name())?;
                    }
                    f.write_str("}")
                }
            },
        }
    }
}
