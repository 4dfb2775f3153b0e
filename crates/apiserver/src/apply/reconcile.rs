//! Sets written when a part was still owned field by field, after the part became atomic: who
//! owned something in it owns it now as a whole.

use super::element::Element;
use super::fields::{FieldSet, Part};
use crate::shape::{Form, ListKind, Shape};

pub(super) fn reconcile(shape: Shape<'_>, set: &mut FieldSet) {
    set.for_each_part(&mut |element, part| {
        if let Some(shape) = below(shape, element) {
            reconcile_part(shape, part);
        }
    });
}

fn reconcile_part(shape: Shape<'_>, part: &mut Part) {
    if part.below.is_empty() {
        return;
    }
    match shape.form() {
        Form::Map { atomic: true, .. } => *part = Part::member(),
        Form::Struct(form) if form.atomic => *part = Part::member(),
        Form::List(list) if list.kind == ListKind::Atomic => *part = Part::member(),
        _ => reconcile(shape, &mut part.below),
    }
}

/// The shape under an element. Where nothing is known, nothing can have become atomic.
fn below<'s>(shape: Shape<'s>, element: &Element) -> Option<Shape<'s>> {
    match (shape.form(), element) {
        (Form::Struct(_) | Form::Map { .. }, Element::Field(name)) => shape.child(name),
        (Form::List(_), _) => Some(shape.items()),
        _ => None,
    }
}
