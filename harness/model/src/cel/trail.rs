//! Where in an object a condition looks: through fields, elements of lists and the variables of macros. Unlike what a message
//! tells ([`Cel::paths`](super::Cel::paths)), a trail goes on behind an index: `object.status.conditions[0].type`.

use std::collections::BTreeSet;

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

/// The way from one of a condition's roots to something that it looks at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trail {
    /// `object`, `answer`.
    pub root: String,
    /// Down from there.
    pub steps: Vec<Down>,
}

/// One step down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Down {
    /// To a field of that name: `.phase`, `['phase']`.
    Field(String),
    /// To some element: `[0]`, or the variable of `all` and its like.
    Element,
    /// To a list that `map` or `filter` gathers of such; its elements are those again.
    Gathered,
}

impl Trail {
    fn down(mut self, step: Down) -> Trail {
        match (self.steps.last(), &step) {
            (Some(Down::Gathered), Down::Element) => {
                self.steps.pop();
            }
            (_, _) => self.steps.push(step),
        }
        self
    }
}

/// The trails to all fields that an expression names, without those that are the beginning of another one.
pub(super) fn trails(expr: &IdedExpr, roots: &[&str]) -> Vec<Trail> {
    let mut search = Search { roots, scope: Vec::new(), found: BTreeSet::new() };
    search.visit(expr);
    let all: Vec<Trail> = search.found.into_iter().collect();
    // They are sorted: what a trail is the beginning of follows at once.
    let goes_on = |index: usize, trail: &Trail| {
        all.get(index + 1).is_some_and(|next| next.root == trail.root && next.steps.starts_with(&trail.steps))
    };
    all.iter()
        .enumerate()
        .filter(|(index, trail)| !goes_on(*index, trail))
        .map(|(_, it)| it.clone())
        .collect()
}

struct Search<'a> {
    roots: &'a [&'a str],
    /// Variables of the macros around, and what each stands for, where that is known.
    scope: Vec<(String, Option<Trail>)>,
    found: BTreeSet<Trail>,
}

impl Search<'_> {
    fn visit(&mut self, expr: &IdedExpr) {
        if let Some(trail) =
            self.trail(expr).filter(|trail| matches!(trail.steps.last(), Some(Down::Field(_))))
        {
            self.found.insert(trail);
        }
        match &expr.expr {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select(select) => self.visit(&select.operand),
            Expr::Call(call) => {
                if let Some(target) = &call.target {
                    self.visit(target);
                }
                call.args.iter().for_each(|arg| self.visit(arg));
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.visit(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(of) => of.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Comprehension(of) => {
                self.visit(&of.iter_range);
                self.within(of, |search| {
                    search.visit(&of.loop_cond);
                    search.visit(&of.loop_step);
                    search.visit(&of.result);
                });
            }
        }
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key);
                self.visit(&entry.value);
            }
        }
    }

    /// Does something where the variables of a macro have their meaning.
    fn within<T>(&mut self, of: &ComprehensionExpr, inside: impl FnOnce(&mut Self) -> T) -> T {
        let element = self.trail(&of.iter_range).map(|range| range.down(Down::Element));
        let depth = self.scope.len();
        self.scope.push((of.accu_var.clone(), None));
        match &of.iter_var2 {
            // The first is an index or a key.
            Some(second) => {
                self.scope.push((of.iter_var.clone(), None));
                self.scope.push((second.clone(), element));
            }
            None => self.scope.push((of.iter_var.clone(), element)),
        }
        let result = inside(self);
        self.scope.truncate(depth);
        result
    }

    /// The way to what an expression stands for, if it stands for something below a root.
    fn trail(&mut self, expr: &IdedExpr) -> Option<Trail> {
        match &expr.expr {
            Expr::Ident(name) => match self.scope.iter().rfind(|(known, _)| known == name) {
                Some((_, meaning)) => meaning.clone(),
                None => {
                    let root = self.roots.contains(&name.as_str());
                    root.then(|| Trail { root: name.clone(), steps: Vec::new() })
                }
            },
            Expr::Select(select) => {
                Some(self.trail(&select.operand)?.down(Down::Field(select.field.clone())))
            }
            Expr::Call(call) => match (call.func_name.as_str(), &call.target, call.args.as_slice()) {
                ("_[_]" | "_[?_]" | "_?._", None, [of, at]) => {
                    let step = match &at.expr {
                        Expr::Literal(LiteralValue::String(key)) => Down::Field(key.inner().to_owned()),
                        _ => Down::Element,
                    };
                    Some(self.trail(of)?.down(step))
                }
                ("orValue" | "or" | "value", Some(of), _) => self.trail(of),
                ("dyn", None, [of]) => self.trail(of),
                (_, _, _) => None,
            },
            // `map` and `filter` gather a list, each time by adding a list of one to it.
            Expr::Comprehension(of) if matches!(of.accu_init.expr, Expr::List(_)) => {
                let element = gathered(&of.loop_step)?;
                let trail = self.within(of, |search| search.trail(element))?;
                Some(trail.down(Down::Gathered))
            }
            Expr::Comprehension(_)
            | Expr::Unspecified
            | Expr::List(_)
            | Expr::Literal(_)
            | Expr::Map(_)
            | Expr::Struct(_) => None,
        }
    }
}

/// What `map` and `filter` add to their list.
fn gathered(step: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &step.expr else { return None };
    match (call.func_name.as_str(), call.args.as_slice()) {
        ("_?_:_", [_, add, _]) => gathered(add),
        ("_+_", [_, IdedExpr { expr: Expr::List(one), .. }]) => one.elements.first(),
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cel, OBJECT};
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let cel = Cel::parse(text, &[OBJECT], ["n"]).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
        let show = |trail: &Trail| {
            trail.steps.iter().fold(trail.root.clone(), |shown, step| match step {
                Down::Field(name) => format!("{shown}.{name}"),
                Down::Element => format!("{shown}[]"),
                Down::Gathered => format!("{shown}*"),
            })
        };
        cel.trails().iter().map(show).collect()
    }

    #[test]
    fn trails_go_through_indices_macros_and_brackets() {
        for (text, expected) in [
            ("object.a.b == 1 && has(object.a)", &["object.a.b"][..]),
            ("object.a[0].b.c == 1", &["object.a[].b.c"]),
            ("object.a[n].b == 1", &["object.a[].b"]),
            ("object['a']['b'] == 1", &["object.a.b"]),
            ("object.a.exists(c, c.b == 'x')", &["object.a[].b"]),
            ("object.a.all(c, c.d.exists_one(e, e.f == c.b))", &["object.a[].b", "object.a[].d[].f"]),
            ("object.a.filter(c, c.b == 1)[0].d == 2", &["object.a[].b", "object.a[].d"]),
            ("object.a.map(c, c.b).exists(d, d.e == 2)", &["object.a[].b.e"]),
            ("object.a.map(c, c.b > 1, c.d)[0].e == 2", &["object.a[].b", "object.a[].d.e"]),
            ("object.?a.?b.orValue('none') == 'none'", &["object.a.b"]),
            ("object.a.all(n, n.b == 1) && n == object.c", &["object.a[].b", "object.c"]),
            ("{'x': object.a}.x.y == object.b", &["object.a", "object.b"]),
            ("size(object.a) == 1", &["object.a"]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
