//! Kubernetes' quantities in CEL: `quantity('16Ki') < quantity(object.status.allocatable.memory)`.
//!
//! The functions are those of Kubernetes' own library, and the operators `==`, `<`, `+`, `-` besides. A
//! plain number is a quantity, too, because the API has both.

use std::any::Any;
use std::cmp::Ordering;

use cel::common::traits::{Adder, Comparer, Subtractor};
use cel::common::types::{CelBool, CelDouble, CelInt, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{Env, ExecutionError, add_member_overload, add_overload};

use crate::quantity::Quantity;

static TYPE: Type = Type::new_unspecified_type("kubernetes.Quantity");

/// A quantity as a value of CEL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CelQuantity(Quantity);

impl Val for CelQuantity {
    fn get_type(&self) -> &Type {
        <Self as Val>::cel_type()
    }

    fn cel_type() -> &'static Type {
        &TYPE
    }

    fn as_comparer(&self) -> Option<&dyn Comparer> {
        Some(self)
    }

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_subtractor<'b, 'v>(&'b self) -> Option<&'b (dyn Subtractor + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<CelQuantity>() == Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(*self)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for CelQuantity {}

/// The other side of an operator, which must be a quantity.
fn other(value: &dyn Val) -> Result<CelQuantity, ExecutionError> {
    value.downcast_ref::<CelQuantity>().copied().ok_or_else(|| ExecutionError::UnexpectedType {
        got: value.get_type().name().to_owned(),
        want: "kubernetes.Quantity".to_owned(),
    })
}

impl Comparer for CelQuantity {
    fn compare(&self, rhs: &dyn Val) -> Result<Ordering, ExecutionError> {
        Ok(self.0.cmp(&other(rhs)?.0))
    }
}

impl Adder for CelQuantity {
    fn add<'b, 'v>(&'b self, rhs: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Ok(CowVal::owned(add(self, &operand(rhs)?)?))
    }
}

impl Subtractor for CelQuantity {
    fn sub<'b, 'v>(&'b self, rhs: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Ok(CowVal::owned(sub(self, &operand(rhs)?)?))
    }
}

/// The right side of an arithmetic operator.
fn operand<'v>(value: &(dyn Val + 'v)) -> Result<CelQuantity, ExecutionError> {
    value
        .downcast_ref::<CelQuantity>()
        .copied()
        .ok_or_else(|| ExecutionError::function_error("quantity", "only quantities are added to quantities"))
}

/// Declares the functions.
pub(super) fn declare(env: &mut Env) {
    let declared = [
        add_overload!(env, fn quantity: (CelString) -> Result<CelQuantity>, id = "quantity_string"),
        add_overload!(env, fn quantity_of_int: (CelInt) -> CelQuantity, name = "quantity", id = "quantity_int"),
        add_overload!(env, fn quantity_of_double: (CelDouble) -> Result<CelQuantity>, name = "quantity", id = "quantity_double"),
        add_overload!(env, fn is_quantity: (CelString) -> CelBool),
        add_member_overload!(env, fn is_integer: (CelQuantity) -> CelBool),
        add_member_overload!(env, fn as_integer: (CelQuantity) -> Result<CelInt>),
        add_member_overload!(env, fn sign: (CelQuantity) -> CelInt),
        add_member_overload!(env, fn add: (CelQuantity, CelQuantity) -> Result<CelQuantity>),
        add_member_overload!(env, fn sub: (CelQuantity, CelQuantity) -> Result<CelQuantity>),
        add_member_overload!(env, fn is_greater_than: (CelQuantity, CelQuantity) -> CelBool),
        add_member_overload!(env, fn is_less_than: (CelQuantity, CelQuantity) -> CelBool),
        add_member_overload!(env, fn compare_to: (CelQuantity, CelQuantity) -> CelInt),
    ];
    debug_assert!(declared.iter().all(Result::is_ok), "{declared:?}");
}

fn quantity(text: &CelString<'_>) -> Result<CelQuantity, ExecutionError> {
    let text = text.inner();
    let read = Quantity::parse(text);
    read.map(CelQuantity)
        .ok_or_else(|| ExecutionError::function_error("quantity", format!("`{text}` is no quantity")))
}

fn quantity_of_int(number: &CelInt) -> CelQuantity {
    CelQuantity(Quantity::of_nano(i128::from(*number.inner()) * NANO))
}

fn quantity_of_double(number: &CelDouble) -> Result<CelQuantity, ExecutionError> {
    quantity(&CelString::from(number.inner().to_string()))
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    CelBool::from(Quantity::parse(text.inner()).is_some())
}

/// Thousand-millionths in one.
const NANO: i128 = 1_000_000_000;

fn is_integer(of: &CelQuantity) -> CelBool {
    CelBool::from(of.0.nano() % NANO == 0)
}

fn as_integer(of: &CelQuantity) -> Result<CelInt, ExecutionError> {
    let nano = of.0.nano();
    let whole = (nano % NANO == 0).then_some(nano / NANO).and_then(|whole| i64::try_from(whole).ok());
    whole
        .map(CelInt::from)
        .ok_or_else(|| ExecutionError::function_error("asInteger", "it is no whole number"))
}

fn sign(of: &CelQuantity) -> CelInt {
    CelInt::from(i64::try_from(of.0.nano().signum()).unwrap_or_default())
}

fn add(of: &CelQuantity, more: &CelQuantity) -> Result<CelQuantity, ExecutionError> {
    let sum = of.0.nano().checked_add(more.0.nano());
    sum.map(|nano| CelQuantity(Quantity::of_nano(nano)))
        .ok_or_else(|| ExecutionError::function_error("add", "too large"))
}

fn sub(of: &CelQuantity, less: &CelQuantity) -> Result<CelQuantity, ExecutionError> {
    let difference = of.0.nano().checked_sub(less.0.nano());
    difference
        .map(|nano| CelQuantity(Quantity::of_nano(nano)))
        .ok_or_else(|| ExecutionError::function_error("sub", "too large"))
}

fn is_greater_than(of: &CelQuantity, than: &CelQuantity) -> CelBool {
    CelBool::from(of.0 > than.0)
}

fn is_less_than(of: &CelQuantity, than: &CelQuantity) -> CelBool {
    CelBool::from(of.0 < than.0)
}

fn compare_to(of: &CelQuantity, with: &CelQuantity) -> CelInt {
    CelInt::from(match of.0.cmp(&with.0) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}
