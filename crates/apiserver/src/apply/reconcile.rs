//! Sets written when a part was still owned field by field, after the part became atomic: who
//! owned something in it owns it now as a whole.

use super::element::Element;
use super::fields::{FieldSet, Subset};
use crate::shape::{Form, ListKind, Shape};

pub(super) fn reconcile(shape: Shape<'_>, set: &mut FieldSet) {
    set.for_each_subset(&mut |element, subset| {
        if let Some(shape) = children(shape, element) {
            reconcile_subset(shape, subset);
        }
    });
}

fn reconcile_subset(shape: Shape<'_>, subset: &mut Subset) {
    if subset.children.is_empty() {
        return;
    }
    match shape.form() {
        Form::Map { atomic: true, .. } => *subset = Subset::member(),
        Form::Struct(form) if form.atomic => *subset = Subset::member(),
        Form::List(list) if list.kind == ListKind::Atomic => *subset = Subset::member(),
        _ => reconcile(shape, &mut subset.children),
    }
}

/// The shape under an element. Where nothing is known, nothing can have become atomic.
fn children<'s>(shape: Shape<'s>, element: &Element) -> Option<Shape<'s>> {
    match (shape.form(), element) {
        (Form::Struct(_) | Form::Map { .. }, Element::Field(name)) => shape.child(name),
        (Form::List(_), _) => Some(shape.items()),
        _ => None,
    }
}
