//! Strategic merge patch: lists merge by the keys that the schema names, and directives steer the rest.
//!
//! Directives: `$patch: replace|delete|merge`, `$retainKeys`, `$setElementOrder/LIST`,
//! `$deleteFromPrimitiveList/LIST`. Null deletes a field. Lists without a merge strategy are replaced.

use serde_json::{Map, Value};

use crate::decode::Expected;
use crate::schema::{self, Field, Shape, Type};
use crate::status::ApiError;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

type Object = Map<String, Value>;

/// Applies the patch in `body`; also gives the text that Kubernetes shows for the patch in errors.
///
/// Errors: 400 for a body that is no JSON object or whose directives make no sense.
pub(super) fn apply(expected: Expected, current: &Value, body: &[u8]) -> Result<(Value, String), ApiError> {
    let patch = super::read_object(body)?;
    let shown = go_print(&patch);
    let entry = schema::find_kind(expected.group, expected.version, expected.kind);
    let original = current.as_object().cloned().unwrap_or_default();
    let Value::Object(patch) = patch else { return Ok((current.clone(), shown)) };
    Ok((Value::Object(merge_map(original, patch, entry)?), shown))
}

fn merge_map(mut original: Object, mut patch: Object, entry: Option<&Type>) -> Result<Object, ApiError> {
    match patch.remove(PATCH) {
        None => {}
        Some(Value::String(directive)) if directive == "merge" => {}
        Some(Value::String(directive)) if directive == "replace" => return Ok(strip_object(patch)),
        Some(Value::String(directive)) if directive == "delete" => return Ok(Map::new()),
        Some(directive) => return Err(bad_patch_type(&directive, &patch)),
    }
    retain_keys(&mut original, &mut patch)?;
    set_orders(&mut original, &mut patch, entry)?;
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix(DELETE_FROM) {
            delete_from(&mut original, list, &value)?;
            continue;
        }
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let field = entry.and_then(|entry| entry.fields.get(key.as_str()));
        let merged = match (original.remove(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                Value::Object(merge_map(old, new, field.and_then(|field| object_type(&field.shape)))?)
            }
            (Some(Value::Array(old)), Value::Array(new)) => merge_list(old, new, field)?,
            (_, new) => strip(new),
        };
        original.insert(key, merged);
    }
    Ok(original)
}

/// The type of an object, or of the entries of a list of objects.
fn object_type(shape: &Shape) -> Option<&'static Type> {
    match shape {
        Shape::Object(name) => schema::find(name),
        Shape::List(of) => object_type(of),
        Shape::Text
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Double
        | Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Raw
        | Shape::Fields
        | Shape::Map(_) => None,
    }
}

fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), ApiError> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let refuse = || ApiError::bad_request("invalid patch format of retainKeys");
    let Value::Array(keys) = &directive else { return Err(refuse()) };
    let kept = |key: &str| keys.iter().any(|one| one.as_str() == Some(key));
    if patch.keys().any(|key| !key.starts_with('$') && !kept(key)) {
        return Err(refuse());
    }
    original.retain(|key, _| kept(key));
    Ok(())
}

/// Carries out `$setElementOrder`, merging the list it is about when the patch also has it.
fn set_orders(original: &mut Object, patch: &mut Object, entry: Option<&Type>) -> Result<(), ApiError> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for key in keys {
        let name = &key[SET_ORDER.len()..];
        let Some(Value::Array(order)) = patch.remove(&key) else {
            return Err(ApiError::bad_request("invalid patch format of setElementOrder list"));
        };
        let field = entry.and_then(|entry| entry.fields.get(name));
        let merge_key = field.and_then(|field| field.merge_key);
        if !field.is_some_and(Field::merges) {
            continue;
        }
        let before = match original.get(name) {
            Some(Value::Array(items)) => items.clone(),
            Some(_) | None => Vec::new(),
        };
        let removed = patch.remove(&format!("{DELETE_FROM}{name}"));
        let merged = match patch.remove(name) {
            Some(Value::Array(new)) => match merge_list(before.clone(), new, field)? {
                Value::Array(items) => items,
                other => vec![other],
            },
            Some(Value::Null) => Vec::new(),
            Some(_) | None => before.clone(),
        };
        let mut holder = Map::new();
        holder.insert(name.to_owned(), Value::Array(merged));
        if let Some(removed) = removed {
            delete_from(&mut holder, name, &removed)?;
        }
        let Some(Value::Array(merged)) = holder.remove(name) else { continue };
        if !merged.is_empty() || original.contains_key(name) {
            let ordered = order_list(merged, &order, &before, merge_key);
            original.insert(name.to_owned(), Value::Array(ordered));
        }
    }
    Ok(())
}

fn delete_from(original: &mut Object, name: &str, values: &Value) -> Result<(), ApiError> {
    let Value::Array(values) = values else {
        return Err(ApiError::bad_request("invalid patch format of primitive list"));
    };
    if let Some(Value::Array(items)) = original.get_mut(name) {
        items.retain(|item| !values.contains(item));
    }
    Ok(())
}

fn merge_list(old: Vec<Value>, new: Vec<Value>, field: Option<&Field>) -> Result<Value, ApiError> {
    let Some(field) = field.filter(|field| field.merges()) else {
        return Ok(strip(Value::Array(new)));
    };
    let Some(key) = field.merge_key else {
        let mut merged = old.clone();
        for item in &new {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return Ok(Value::Array(order_list(merged, &new, &old, None)));
    };
    let (mut merged, new) = special_entries(old.clone(), new, key)?;
    let entry = object_type(&field.shape);
    for item in &new {
        let Value::Object(item) = item else { return Err(no_merge_key(item, key)) };
        let Some(wanted) = item.get(key) else {
            return Err(no_merge_key(&Value::Object(item.clone()), key));
        };
        match merged.iter_mut().find(|have| have.get(key) == Some(wanted)) {
            Some(have) => {
                let before = have.as_object().cloned().unwrap_or_default();
                *have = Value::Object(merge_map(before, item.clone(), entry)?);
            }
            None => merged.push(strip(Value::Object(item.clone()))),
        }
    }
    Ok(Value::Array(order_list(merged, &new, &old, Some(key))))
}

/// Carries out the entries that are directives and gives the rest.
fn special_entries(
    old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), ApiError> {
    let mut kept = old;
    let mut rest = Vec::new();
    let mut replace = false;
    for item in new {
        match item.get(PATCH).and_then(Value::as_str) {
            None if item.get(PATCH).is_none() => rest.push(item),
            Some("delete") => match item.get(key) {
                Some(wanted) => kept.retain(|have| have.get(key) != Some(wanted)),
                None => return Err(no_merge_key(&item, key)),
            },
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(ApiError::bad_request("merging lists cannot yet be specified in the patch"));
            }
            Some(_) | None => {
                let map = item.as_object().cloned().unwrap_or_default();
                return Err(bad_patch_type(item.get(PATCH).unwrap_or(&Value::Null), &map));
            }
        }
    }
    if replace {
        kept.clear();
    }
    Ok((kept, rest))
}

/// Orders a merged list: entries that the patch names come in its order, the others keep theirs.
fn order_list(merged: Vec<Value>, order: &[Value], before: &[Value], key: Option<&str>) -> Vec<Value> {
    let position = |list: &[Value], item: &Value| list.iter().position(|one| same(one, item, key));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| position(order, item).is_some());
    named.sort_by_key(|item| position(order, item));
    others.sort_by_key(|item| position(before, item));
    let mut ordered = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return ordered,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(named)) => match (position(before, other), position(before, named)) {
                (Some(other), Some(named)) => other < named,
                (_, _) => false,
            },
        };
        ordered.extend(if other_first { others.next() } else { named.next() });
    }
}

fn same(a: &Value, b: &Value, key: Option<&str>) -> bool {
    match key {
        Some(key) => a.get(key).is_some() && a.get(key) == b.get(key),
        None => a == b,
    }
}

/// A value that is new to the object: its nulls and directives go.
fn strip(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(strip_object(map)),
        Value::Array(items) => {
            let deleted = |item: &Value| item.get(PATCH).and_then(Value::as_str) == Some("delete");
            items.into_iter().filter(|item| !deleted(item)).map(strip).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

fn strip_object(map: Object) -> Object {
    let directive = |key: &str| {
        key == PATCH || key == RETAIN_KEYS || key.starts_with(SET_ORDER) || key.starts_with(DELETE_FROM)
    };
    let kept = map.into_iter().filter(|(key, value)| !value.is_null() && !directive(key));
    kept.map(|(key, value)| (key, strip(value))).collect()
}

fn bad_patch_type(directive: &Value, map: &Object) -> ApiError {
    let shown = match directive {
        Value::String(text) => text.clone(),
        other => go_print(other),
    };
    ApiError::bad_request(format!(
        "unknown patch type: {shown} in map: {}",
        go_print(&Value::Object(map.clone()))
    ))
}

fn no_merge_key(item: &Value, key: &str) -> ApiError {
    ApiError::bad_request(format!("map: {} does not contain declared merge key: {key}", go_print(item)))
}

/// A value as Go prints it with `%+v`.
fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_print).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", go_print(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}
