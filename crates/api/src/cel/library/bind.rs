//! `cel.bind(name, value, body)`: a value with a name.

use cel::common::ast::{ComprehensionExpr, Expr, ListExpr, LiteralValue};
use cel::parser::{Macro, MacroExprHelper};
use cel::{DeclarationError, Env, IdedExpr};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_macro(Macro::receiver("bind", 3, |helper, target, args| {
        let is_cel = |target: &IdedExpr| matches!(&target.expr, Expr::Ident(name) if name == "cel");
        if !target.as_ref().is_some_and(is_cel) {
            return Ok(None);
        }
        let Expr::Ident(name) = args[0].expr.clone() else {
            return Err(helper
                .new_error(args[0].id, "cel.bind() variable names must be simple identifiers"));
        };
        let body = args.remove(2);
        let value = args.remove(1);
        Ok(Some(bind(helper, &name, value, body)))
    }))
}

/// `body` with `name` standing for `value`: a loop that runs no round, with the variable as its
/// accumulator.
pub(super) fn bind(
    helper: &mut MacroExprHelper<'_>,
    name: &str,
    value: IdedExpr,
    body: IdedExpr,
) -> IdedExpr {
    let comprehension = ComprehensionExpr {
        iter_range: helper.next_expr(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init: value,
        loop_cond: helper.next_expr(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: helper.next_expr(Expr::Ident(name.to_owned())),
        result: body,
    };
    helper.next_expr(Expr::Comprehension(Box::new(comprehension)))
}
