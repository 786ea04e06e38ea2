//! A deserializer that gives every field something, and notes on the way which fields there are and what stands in them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};

/// A text that most types read that are texts in JSON: a time is the pickiest of them.
const TEXT: &str = "1970-01-01T00:00:00Z";

/// What stands in a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A quantity, or whatever one likes.
    #[default]
    Plain,
    /// A text; instants are, too.
    Text,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// An object of that type.
    Of(&'static str),
    /// A list of such.
    List(Box<Sort>),
    /// Such under keys of the writer's choice.
    Map(Box<Sort>),
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sort::Plain => Ok(()),
            Sort::Text => f.write_str("text"),
            Sort::Number => f.write_str("number"),
            Sort::Boolean => f.write_str("boolean"),
            Sort::Of(name) => f.write_str(name),
            Sort::List(inner) => write!(f, "[{inner}]"),
            Sort::Map(inner) => write!(f, "{{{inner}}}"),
        }
    }
}

/// The types that were met, and their fields.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// By name.
    pub all: BTreeMap<&'static str, BTreeMap<&'static str, Sort>>,
    /// Where something stands that cannot be made from [`TEXT`]: it is plain, and left out.
    left_out: BTreeSet<Vec<&'static str>>,
    /// Where the tracer is.
    at: Vec<&'static str>,
    /// The field that was begun last: what a type refuses is in it.
    last: Vec<&'static str>,
}

impl Types {
    /// Goes through a type and all that are in it.
    pub fn trace<T: DeserializeOwned>(&mut self) {
        loop {
            self.at.clear();
            let (mut top, types) = (Sort::Plain, RefCell::new(std::mem::take(self)));
            let made = T::deserialize(Tracer { types: &types, sort: &mut top });
            *self = types.into_inner();
            match made {
                Ok(_) => break,
                // Without that field the next try comes further.
                Err(error) => assert!(self.left_out.insert(self.last.clone()), "{:?}: {error}", self.last),
            }
        }
        self.left_out.clear();
    }
}

/// Notes in `sort` what is asked for.
struct Tracer<'t> {
    types: &'t RefCell<Types>,
    sort: &'t mut Sort,
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(TEXT)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.sort = Sort::Boolean;
        visitor.visit_bool(true)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.sort = Sort::Number;
        visitor.visit_i32(1)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.sort = Sort::Number;
        visitor.visit_i64(1)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.sort = Sort::Number;
        visitor.visit_f64(1.0)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.sort = Sort::Text;
        visitor.visit_str(TEXT)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut inner = Sort::Plain;
        let made = visitor.visit_seq(Elements { types: self.types, sort: Some(&mut inner) });
        *self.sort = Sort::List(Box::new(inner));
        made
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut inner = Sort::Plain;
        let made = visitor.visit_map(Elements { types: self.types, sort: Some(&mut inner) });
        *self.sort = Sort::Map(Box::new(inner));
        made
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.sort = Sort::Of(name);
        let mut types = self.types.borrow_mut();
        let known = types.all.entry(name).or_default();
        for field in fields {
            known.entry(field).or_default();
        }
        assert_eq!(known.len(), fields.len(), "{name} is the name of two types");
        drop(types);
        visitor.visit_map(Members { types: self.types, name, fields: fields.iter(), field: "" })
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct enum
        identifier ignored_any
    }
}

/// The fields of a type, each once.
struct Members<'t> {
    types: &'t RefCell<Types>,
    name: &'static str,
    fields: std::slice::Iter<'static, &'static str>,
    field: &'static str,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let types = self.types.borrow();
        let is_left_out = |field: &str| {
            types.left_out.iter().any(|path| {
                path.split_last().is_some_and(|(last, above)| *last == field && above == types.at)
            })
        };
        let Some(field) = self.fields.find(|field| !is_left_out(field)) else { return Ok(None) };
        drop(types);
        self.field = field;
        let key: StrDeserializer<'_, Error> = (*field).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let mut sort = Sort::Plain;
        {
            let mut types = self.types.borrow_mut();
            types.at.push(self.field);
            types.last = types.at.clone();
        }
        let value = seed.deserialize(Tracer { types: self.types, sort: &mut sort })?;
        let mut types = self.types.borrow_mut();
        types.at.pop();
        if let Some(known) = types.all.get_mut(self.name) {
            known.insert(self.field, sort);
        }
        Ok(value)
    }
}

/// One element of a list, or one of a mapping of free keys.
struct Elements<'t> {
    types: &'t RefCell<Types>,
    sort: Option<&'t mut Sort>,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(sort) = self.sort.take() else { return Ok(None) };
        seed.deserialize(Tracer { types: self.types, sort }).map(Some)
    }
}

impl<'de> MapAccess<'de> for Elements<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        if self.sort.is_none() {
            return Ok(None);
        }
        let key: StrDeserializer<'_, Error> = "key".into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some(sort) = self.sort.take() else { return Err(serde::de::Error::custom("a value too many")) };
        seed.deserialize(Tracer { types: self.types, sort })
    }
}
