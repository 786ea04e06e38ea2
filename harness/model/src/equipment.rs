//! What a rig file states of programs and files besides the control plane and its boards: images to flash, storage, and the
//! program that is a second scheduler.

use std::collections::BTreeMap;

use crate::reader::{Fields, Reader};
use crate::rig::RigKind;
use crate::scenario::{Scenario, read_name};
use crate::shape::{Field, FieldType, Shape};
use crate::step::Step;
use crate::template;
use crate::verbs::Action;
use crate::yaml::Node;

/// What stands in `emulator` for the file that is a board's storage.
pub const STORAGE: &str = "storage";

/// What stands in a scheduler's `command` for the kubeconfig of its own.
pub const KUBECONFIG: &str = "kubeconfig";

/// What stands in a scheduler's `command` for its name.
pub const NAME: &str = "name";

/// What a rig is given besides control plane and boards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Equipment {
    /// Images that boards can be flashed with: names, and files relative to the rig's own.
    pub images: BTreeMap<String, String>,
    /// The size of what a board stores, in bytes, where its emulator is given a file for it.
    pub storage_bytes: Option<u32>,
    /// The program that is a second scheduler, in place of `toy-scheduler`.
    pub scheduler: Option<SchedulerProgram>,
}

/// A program that is a second scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerProgram {
    /// Program and arguments; `${kubeconfig}` and `${name}` stand in them.
    pub command: Vec<String>,
    /// Further arguments for a dry run, which binds nothing; the same holes stand in them.
    pub dry_run: Option<Vec<String>>,
    /// A part of the line that says it is ready; without one it is ready once it runs.
    pub ready: Option<String>,
}

pub(crate) static SCHEDULER_PROGRAM: Shape = Shape::new(
    "scheduler",
    "The program that is a second scheduler.",
    &[
        Field::required(
            "command",
            FieldType::List(&FieldType::Text),
            "Program and arguments; ${kubeconfig} is a file with an identity of its own, ${name} the scheduler's name.",
        ),
        Field::optional(
            "dryRun",
            FieldType::List(&FieldType::Text),
            "Further arguments with which it binds nothing and says what it would have bound.",
        ),
        Field::optional(
            "ready",
            FieldType::Text,
            "A part of the line by which it says that it is ready; without one it is once it runs.",
        ),
    ],
);

/// The greatest storage of a board: more than its flash chip holds, and little enough to be written at each start.
pub(crate) const MOST_STORAGE: u32 = 256 << 20;

pub(crate) const IMAGES: Field = Field::optional(
    "images",
    FieldType::Mapping(&FieldType::Text),
    "qemu: images to flash by name, {previous: FILE}; files are relative to this one.",
);
pub(crate) const STORAGE_BYTES: Field = Field::optional(
    "storageBytes",
    FieldType::Whole { min: 1, max: MOST_STORAGE },
    "qemu: the size of what a board keeps without power; `emulator` says with ${storage} where its file belongs.",
);
pub(crate) const SCHEDULER: Field = Field::optional(
    "scheduler",
    FieldType::Shape(&SCHEDULER_PROGRAM),
    "host, qemu: the program that is a second scheduler; toy-scheduler if left out.",
);

/// Reads what stands of it in a rig's `spec`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    spec: &Fields<'_>,
    kind: Option<RigKind>,
    emulator: &[String],
) -> Equipment {
    if let Some(kind) = kind {
        refuse_elsewhere(reader, spec, kind);
    }
    let entries = spec.get("images").map_or(&[][..], |node| reader.map(node));
    let mut images = BTreeMap::new();
    for entry in entries {
        let name = Node { span: entry.key_span.clone(), kind: crate::yaml::Kind::Text(entry.key.clone()) };
        if let (Some(name), Some(file)) = (read_name(reader, &name), reader.text(&entry.value)) {
            images.insert(name, file);
        }
    }
    let storage_bytes = spec.get("storageBytes").and_then(|node| reader.whole(node, 1..=MOST_STORAGE));
    check_storage(reader, spec, emulator);
    let scheduler = spec.get("scheduler").and_then(|node| read_scheduler(reader, node));
    Equipment { images, storage_bytes, scheduler }
}

/// Notes what a rig of that sort cannot make use of.
fn refuse_elsewhere(reader: &mut Reader<'_>, spec: &Fields<'_>, kind: RigKind) {
    let of = |key: &str| match key {
        "scheduler" => &[RigKind::Host, RigKind::Qemu][..],
        _ => &[RigKind::Qemu],
    };
    for key in ["images", "storageBytes", "scheduler"] {
        let kinds = of(key);
        if let Some(node) = spec.get(key).filter(|_| !kinds.contains(&kind)) {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            reader.wrong(
                &node.span,
                format!("`{key}` says nothing on a rig of kind {}", kind.name()),
                format!("leave it out, or write kind: {}", names.join(" or ")),
            );
        }
    }
}

/// Storage has a size and a place, or neither.
fn check_storage(reader: &mut Reader<'_>, spec: &Fields<'_>, emulator: &[String]) {
    let placed = emulator.iter().any(|argument| template::names(argument).contains(&STORAGE));
    match (spec.get("storageBytes"), spec.get("emulator")) {
        (Some(node), _) if !placed => {
            let remedy = "name its file in `emulator`, for example -drive, \"if=none,id=storage,format=raw,file=${storage}\"";
            reader.wrong(&node.span, "no argument of `emulator` says where the storage belongs", remedy);
        }
        (None, Some(node)) if placed => {
            reader.wrong(
                &node.span,
                "`${storage}` has no size",
                "write storageBytes, for example storageBytes: 33554432",
            );
        }
        (Some(_) | None, _) => {}
    }
    let unknown =
        emulator.iter().flat_map(|argument| template::names(argument)).find(|name| *name != STORAGE);
    if let (Some(name), Some(node)) = (unknown, spec.get("emulator")) {
        reader.wrong(&node.span, format!("nothing is called `${{{name}}}`"), "known is ${storage}");
    }
}

fn read_scheduler(reader: &mut Reader<'_>, node: &Node) -> Option<SchedulerProgram> {
    let fields = reader.open(node, &SCHEDULER_PROGRAM)?;
    let command_node = fields.get("command")?;
    let items = reader.some_list(
        command_node,
        "a scheduler without a program",
        "write for example [my-scheduler, --kubeconfig, \"${kubeconfig}\"]",
    )?;
    let command = read_arguments(reader, items)?;
    let dry_run = match fields.get("dryRun") {
        Some(node) => {
            let items = reader.list(node);
            Some(read_arguments(reader, items)?)
        }
        None => None,
    };
    let ready = fields.get("ready").and_then(|node| reader.text(node));
    Some(SchedulerProgram { command, dry_run, ready })
}

fn read_arguments(reader: &mut Reader<'_>, items: &[Node]) -> Option<Vec<String>> {
    let mut arguments = Vec::new();
    for item in items {
        let text = reader.text(item)?;
        if let Some(name) = template::names(&text).into_iter().find(|name| ![KUBECONFIG, NAME].contains(name))
        {
            let message = format!("nothing is called `${{{name}}}`");
            reader.wrong(&item.span, message, "known are ${kubeconfig} and ${name}");
        }
        arguments.push(text);
    }
    Some(arguments)
}

impl Equipment {
    /// Which image a scenario flashes that is not here, and those that are.
    pub(crate) fn lacks(&self, rig: &str, scenario: &Scenario) -> Option<String> {
        let missing = flashed(&scenario.plan).into_iter().find(|image| !self.images.contains_key(*image))?;
        let known: Vec<&str> = self.images.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Some(format!("the rig {rig} has no image {missing}; its images are {known}"))
    }
}

/// The images that steps put on boards, by name.
fn flashed(steps: &[Step]) -> Vec<&str> {
    let mut images = Vec::new();
    for step in steps {
        if let Action::Parallel(acts) = &step.action {
            images.extend(flashed(acts));
        } else if let Action::Flash(flash) = &step.action {
            images.extend(flash.image.as_deref());
        }
    }
    images
}

#[cfg(test)]
mod tests {
    use crate::{Catalogue, Rig, Scenario};

    const CONSTANTS: &str = "{leaseDuration: 4s, renewInterval: 1s, noExecuteDelay: 3s, tolerationSeconds: 6s, checkPeriod: 500ms, retryPeriod: 1s, controllerPeriod: 1s, slack: 500ms}";
    const CATALOGUE: &str =
        "version: 2\nareas:\n  node:\n  - {id: NODE-03, profile: kube32, must: \"be so\"}\n";

    /// Why a rig with these lines does not run a scenario with this step.
    fn refused(lines: &str, step: &str) -> Option<String> {
        let rig = format!(
            "apiVersion: rigor.dev/v1alpha1\nkind: Rig\nmetadata: {{name: r}}\nspec:\n  kind: qemu\n  constants: {CONSTANTS}\n{lines}"
        );
        let scenario = format!(
            "apiVersion: rigor.dev/v1alpha1\nkind: Scenario\nmetadata: {{name: s, requirements: [NODE-03], profile: kube32}}\nspec:\n  rig: {{boards: 1}}\n  steps: [{step}]\n"
        );
        let rig = Rig::parse("r.yaml", &rig).unwrap_or_else(|mistakes| panic!("{mistakes:#}"));
        let catalogue = Catalogue::parse("requirements.yaml", CATALOGUE).unwrap();
        let scenarios = Scenario::parse("s.yaml", &scenario, &catalogue, &|_| Err("none".to_owned()));
        rig.refuses(&scenarios.unwrap_or_else(|mistakes| panic!("{mistakes:#}"))[0])
    }

    #[test]
    fn an_image_that_the_rig_does_not_state_is_told_at_listing() {
        let check = |lines: &str, step: &str, expected: Option<&str>| {
            assert_eq!(refused(lines, step).as_deref(), expected, "{step} with {lines}");
        };
        let images = "  images: {old: old.elf, older: older.elf}\n";
        check("", "{flash: {board: a}}", None);
        check("", "{flash: {board: a, image: old}}", Some("the rig r has no image old; its images are none"));
        check(images, "{flash: {board: a, image: older}}", None);
        let missing = Some("the rig r has no image new; its images are old, older");
        check(images, "{parallel: [{flash: {board: a, image: new}}]}", missing);
        check(images, "{send: {board: a, line: x}}", Some("the rig r lacks console-input"));
        check("  capabilities: [power]\n", "{flash: {board: a}}", Some("the rig r lacks flash"));
        check(
            "  capabilities: [power]\n",
            "{scheduler: {do: start}}",
            Some("the rig r lacks second-scheduler"),
        );
    }
}
