//! Flags of the control plane that it does not have, or that are the rig's to state.

use rigor_model::Scenario;
use rigor_model::mistake::Mistake;
use rigor_model::yaml::{Kind, Node};
use rigor_rigs::Infra;

/// The first flag of a file's trials that is refused by `check`, where it stands.
pub(crate) fn refused<'s>(
    root: &Node,
    scenarios: impl IntoIterator<Item = &'s Scenario>,
    check: &dyn Fn(&[String]) -> Result<(), Infra>,
) -> Option<Mistake> {
    let list = root.get("spec")?.get("controlPlane")?.get("flags")?;
    for scenario in scenarios {
        let Err(whole) = check(&scenario.flags) else { continue };
        let one =
            scenario.flags.iter().find_map(|flag| Some((flag, check(std::slice::from_ref(flag)).err()?)));
        let (flag, error) = match one {
            Some((flag, error)) => (Some(flag), error),
            // Each is right by itself, and all together are not.
            None => (None, whole),
        };
        let mistake = Mistake::new(place(list, flag).span.clone(), error.what);
        return Some(mistake.remedy(error.remedy.unwrap_or_else(|| "leave it out".to_owned())));
    }
    None
}

/// The item that is this flag; the whole list where a row of a table puts it in.
fn place<'n>(list: &'n Node, flag: Option<&String>) -> &'n Node {
    let Kind::List(items) = &list.kind else { return list };
    items.iter().find(|item| flag.is_some_and(|flag| item.as_text() == Some(flag))).unwrap_or(list)
}
