//! A form as the type that expressions see: which fields there are, and what is in them.

use convoy_api::cel::{RESERVED, Type};
use convoy_api::schema::escaped;

use super::{Form, Scalar, Shape};

/// How deep a type is looked into. Forms that contain themselves, a JSON schema for one, end here.
const DEPTH_MAX: usize = 24;

/// The type of objects of this form. `name` tells it from others.
pub fn cel_type(shape: Shape<'_>, name: &str) -> Type {
    of(shape, name, DEPTH_MAX)
}

fn of(shape: Shape<'_>, name: &str, depth: usize) -> Type {
    let Some(depth) = depth.checked_sub(1) else { return Type::Dyn };
    match shape.form() {
        Form::Untyped | Form::Raw => Type::Dyn,
        Form::Scalar(scalar) => scalar_type(*scalar),
        Form::List(_) => Type::list(of(shape.items(), &format!("{name}.@idx"), depth)),
        Form::Map { values, .. } => {
            let values = shape.shapes.get(*values);
            Type::map(Type::String, of(values, &format!("{name}.@elem"), depth))
        }
        // Any field may be there, of any type.
        Form::Struct(form) if form.open => Type::Dyn,
        Form::Struct(form) => {
            let mut fields = Vec::new();
            for field in &form.fields {
                let of = of(shape.of(field), &format!("{name}.{}", field.name), depth);
                if RESERVED.contains(&field.name.as_str()) {
                    fields.push((field.name.to_string(), of.clone()));
                }
                fields.extend(escaped(&field.name).map(|escaped| (escaped, of)));
            }
            Type::object(name, fields)
        }
    }
}

fn scalar_type(scalar: Scalar) -> Type {
    match scalar {
        Scalar::Text => Type::String,
        Scalar::Boolean => Type::Bool,
        Scalar::Integer | Scalar::Integer32 => Type::Int,
        Scalar::Number => Type::Double,
        // Text or a number.
        Scalar::IntOrString | Scalar::Quantity => Type::Dyn,
        Scalar::Time | Scalar::MicroTime => Type::Timestamp,
        Scalar::Duration => Type::Duration,
        Scalar::Bytes => Type::Bytes,
    }
}
