//! Rig files: what trials run on. One YAML file a rig; its existence registers it.

mod checks;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::capability::{CAPABILITY_NAMES, Capability};
use crate::constants::{Constant, Constants, STATED};
use crate::equipment::{self, Equipment};
use crate::foreign::{self, External};
use crate::mistake::Mistakes;
use crate::reader::{Fields, Reader, word};
use crate::scenario::{API_VERSION, Scenario, check_kind, read_capabilities, read_constants, read_name};
use crate::shape::{Field, FieldType, Shape};
use crate::stranger::stranger;
use crate::yaml::{self, Node};

/// The sort of a rig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RigKind {
    /// Everything in one thread under virtual time.
    Sim,
    /// Control plane and boards as processes.
    Host,
    /// Boards in emulators.
    Qemu,
    /// A control plane that is there already, reached by a kubeconfig.
    External,
}

impl RigKind {
    /// Every sort.
    pub const ALL: [RigKind; 4] = [RigKind::Sim, RigKind::Host, RigKind::Qemu, RigKind::External];

    /// The word for it in files.
    pub fn name(self) -> &'static str {
        match self {
            RigKind::Sim => "sim",
            RigKind::Host => "host",
            RigKind::Qemu => "qemu",
            RigKind::External => "external",
        }
    }

    /// What such a rig can offer.
    pub fn possible(self) -> BTreeSet<Capability> {
        Capability::ALL.into_iter().filter(|capability| self.can(*capability)).collect()
    }

    fn can(self, capability: Capability) -> bool {
        let external = self == RigKind::External;
        match capability {
            // A cluster that is there already has no driver for any of these, and is somebody else's to stop.
            Capability::Power
            | Capability::Hang
            | Capability::Link
            | Capability::Console
            | Capability::ControlPlane
            | Capability::SecondScheduler => !external,
            Capability::Flash | Capability::ConsoleInput => self == RigKind::Qemu,
            // Relays pass bytes on, not packets.
            Capability::LinkQuality => self != RigKind::Host && !external,
            // Relays and switches pass on what they are given.
            Capability::LinkGarbage => self == RigKind::Sim,
            Capability::Kubectl => self != RigKind::Sim,
            // They take processes beside the control plane.
            Capability::Etcd | Capability::SchedulerLog => matches!(self, RigKind::Host | RigKind::Qemu),
            Capability::ExclusiveCluster | Capability::PlayedNodes | Capability::BoardIdentity => true,
            Capability::VirtualTime => self.virtual_time(),
            // The other rigs bring their own control plane.
            Capability::ControllerManager => external,
            Capability::ControlPlaneFlags => !external,
            // Everywhere else it is a figure that the kubelet is configured with.
            Capability::Psram => !external,
        }
    }

    /// What such a rig offers unless its file says otherwise. That nothing else is on a cluster which others
    /// can use has to be said, and that images read their consoles: the rig's own does not.
    pub fn capabilities(self) -> BTreeSet<Capability> {
        let mut offered = self.possible();
        match self {
            RigKind::External => {
                offered.remove(&Capability::ExclusiveCluster);
                offered.remove(&Capability::ControllerManager);
            }
            RigKind::Qemu => {
                offered.remove(&Capability::ConsoleInput);
            }
            RigKind::Sim | RigKind::Host => {}
        }
        offered
    }

    /// Whether its time is virtual, so that instants are exact.
    pub fn virtual_time(self) -> bool {
        match self {
            RigKind::Sim => true,
            RigKind::Host | RigKind::Qemu | RigKind::External => false,
        }
    }
}

/// A rig.
#[derive(Debug, Clone, PartialEq)]
pub struct Rig {
    /// Its name.
    pub name: String,
    /// Its sort.
    pub kind: RigKind,
    /// The machine its boards are, as reports call it: `qemu-virt`, `host`, `sim`.
    pub machine: String,
    /// How many boards a trial may have.
    pub boards: usize,
    /// Every constant in force, the slack among them.
    pub constants: Constants,
    /// What it offers.
    pub capabilities: BTreeSet<Capability>,
    /// What it would offer but for something that this machine lacks: what that is, and what a person can do about it.
    pub absent: BTreeMap<Capability, String>,
    /// What its boards are.
    pub board: BoardProfile,
    /// The emulator's program and the arguments that select machine and processor, in place of the usual ones.
    pub emulator: Vec<String>,
    /// Images, storage, and the program that is a second scheduler.
    pub equipment: Equipment,
    /// The file of what is known of the implementation that runs on it, relative to the rig's own.
    pub limitations: Option<String>,
    /// Where the control plane is that the rig does not start; of the kind `external` only.
    pub external: Option<External>,
}

/// What a rig's boards are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardProfile {
    /// `status.nodeInfo.architecture` and the arch label.
    pub arch: String,
    /// The board label.
    pub name: String,
    /// Labels of every board's Node.
    pub labels: BTreeMap<String, String>,
    /// Bytes of heap that a board has for itself and its pods (sim and host; an image has its own).
    pub heap_bytes: u32,
    /// Bytes of PSRAM.
    pub psram_bytes: u32,
    /// Numbers of the pins that pods may claim.
    pub gpio: Vec<u8>,
    /// Numbers of the pins that the board keeps.
    pub reserved_gpio: Vec<u8>,
    /// How many I²C buses.
    pub i2c: u8,
    /// How many UARTs.
    pub uart: u8,
    /// How many ADC channels.
    pub adc: u8,
    /// How many RMT transmitters.
    pub rmt_tx: u8,
    /// How many RMT receivers.
    pub rmt_rx: u8,
    /// How often a board reports its status, in milliseconds.
    pub status_millis: u32,
}

impl Default for BoardProfile {
    /// The pins and buses of an ESP32-C3 without its flash pins.
    fn default() -> Self {
        BoardProfile {
            arch: "riscv32imc".to_owned(),
            name: "qemu-virt".to_owned(),
            labels: BTreeMap::new(),
            heap_bytes: 200 * 1024,
            psram_bytes: 0,
            gpio: (0..=10).chain([18, 19, 20, 21]).collect(),
            reserved_gpio: (11..=17).collect(),
            i2c: 1,
            uart: 1,
            adc: 5,
            rmt_tx: 2,
            rmt_rx: 2,
            status_millis: 10_000,
        }
    }
}

static RIG: Shape = Shape::new(
    "Rig",
    "What trials run on.",
    &[
        Field::required("apiVersion", FieldType::Word(&[API_VERSION]), "The version of the language."),
        Field::required("kind", FieldType::Word(&["Rig"]), "Rig."),
        Field::required("metadata", FieldType::Shape(&METADATA), "What it is called."),
        Field::required("spec", FieldType::Shape(&SPEC), "What it is."),
    ],
);

static METADATA: Shape = Shape::new(
    "metadata",
    "What the rig is called.",
    &[
        Field::required("name", FieldType::Text, "Lower-case letters, digits and hyphens."),
        Field::optional("description", FieldType::Text, "A sentence for readers."),
    ],
);

static SPEC: Shape = Shape::new(
    "spec",
    "What the rig is.",
    &[
        Field::required("kind", FieldType::Word(&["sim", "host", "qemu", "external"]), "Its sort."),
        Field::optional("machine", FieldType::Text, "The machine its boards are, as reports call it."),
        Field::optional(
            "boards",
            FieldType::CountOrNames { max: 26 },
            "How many boards a trial may have, 10 if left out; external: the Node of each, {a: NODE, b: NODE}.",
        ),
        Field::required("constants", FieldType::Shape(&STATED), "Every constant, by name."),
        Field::optional(
            "kubeconfig",
            FieldType::Text,
            "external: the file; what KUBECONFIG names, or ~/.kube/config, if left out.",
        ),
        Field::optional(
            "context",
            FieldType::Text,
            "external: which of its contexts; the current one if left out.",
        ),
        Field::optional(
            "boardTokens",
            FieldType::Mapping(&FieldType::Text),
            "external: files with the boards' own bearer tokens, {a: FILE}.",
        ),
        Field::optional(
            "capabilities",
            FieldType::List(&FieldType::Word(CAPABILITY_NAMES)),
            "What it offers; all of its sort if left out.",
        ),
        Field::optional("board", FieldType::Shape(&BOARD), "What its boards are."),
        Field::optional(
            "emulator",
            FieldType::List(&FieldType::Text),
            "The emulator's program and its arguments for machine and processor.",
        ),
        equipment::IMAGES,
        equipment::STORAGE_BYTES,
        equipment::SCHEDULER,
        Field::optional(
            "limitations",
            FieldType::Text,
            "The file of known limitations and quarantine, by a path relative to this one.",
        ),
    ],
);

const PINS: FieldType = FieldType::List(&FieldType::Whole { min: 0, max: 63 });
const FEW: FieldType = FieldType::Whole { min: 0, max: 64 };

static BOARD: Shape = Shape::new(
    "board",
    "What the rig's boards are.",
    &[
        Field::optional("arch", FieldType::Text, "Architecture; riscv32imc if left out."),
        Field::optional("name", FieldType::Text, "The board label."),
        Field::optional("labels", FieldType::Mapping(&FieldType::Text), "Labels of every board's Node."),
        Field::optional(
            "heapBytes",
            FieldType::Whole { min: 32_768, max: u32::MAX },
            "Bytes of heap for the board and its pods.",
        ),
        Field::optional("psramBytes", FieldType::Whole { min: 0, max: u32::MAX }, "Bytes of PSRAM."),
        Field::optional("gpio", PINS, "Numbers of the pins that pods may claim."),
        Field::optional("reservedGpio", PINS, "Numbers of the pins that the board keeps."),
        Field::optional("i2c", FEW, "How many I2C buses."),
        Field::optional("uart", FEW, "How many UARTs."),
        Field::optional("adc", FEW, "How many ADC channels."),
        Field::optional("rmtTx", FEW, "How many RMT transmitters."),
        Field::optional("rmtRx", FEW, "How many RMT receivers."),
        Field::optional("report", FieldType::Duration, "How often a board reports its status."),
    ],
);

impl Rig {
    /// Reads a rig file.
    ///
    /// # Errors
    /// All mistakes of the file.
    pub fn parse(file: &str, source: &str) -> Result<Rig, Mistakes> {
        let mut mistakes = Vec::new();
        let root = yaml::parse_one(source, &mut mistakes);
        if let Some(mistake) = root.as_ref().and_then(|root| stranger(root, "Rig")) {
            return Err(Mistakes::new(file, source, vec![mistake]));
        }
        let mut reader = Reader::new(source);
        let rig = root.as_ref().and_then(|root| read(&mut reader, root));
        mistakes.append(&mut reader.mistakes);
        match rig {
            Some(rig) if mistakes.is_empty() => Ok(rig),
            Some(_) | None => Err(Mistakes::new(file, source, mistakes)),
        }
    }

    /// What a rig file looks like.
    pub fn shape() -> &'static Shape {
        &RIG
    }

    /// The JSON schema of rig files.
    pub fn schema() -> serde_json::Value {
        let mut schema = RIG.schema();
        schema["$schema"] = serde_json::json!("http://json-schema.org/draft-07/schema#");
        schema["title"] = serde_json::json!("rigor rig");
        schema
    }

    /// Why a scenario cannot run on this rig, if it cannot.
    pub fn refuses(&self, scenario: &Scenario) -> Option<String> {
        let lacks = self.lacks(scenario.boards.len(), &scenario.needs);
        let foreign = || foreign::refuses(self, self.external.as_ref()?, scenario);
        lacks
            .or_else(|| self.equipment.lacks(&self.name, scenario))
            .or_else(foreign)
            .or_else(|| self.contradicts(scenario))
    }

    /// Which boards or capabilities are missing, if any.
    pub fn lacks(&self, boards: usize, needs: &BTreeSet<Capability>) -> Option<String> {
        if boards > self.boards {
            return Some(format!("it needs {boards} boards, and the rig {} has {}", self.name, self.boards));
        }
        let missing = || needs.difference(&self.capabilities);
        let names: Vec<&str> = missing().map(|capability| capability.name()).collect();
        let why: String = missing()
            .filter_map(|capability| self.absent.get(capability))
            .map(|why| format!(": {why}"))
            .collect();
        (!names.is_empty()).then(|| format!("the rig {} lacks {}{why}", self.name, names.join(", ")))
    }
}

fn read(reader: &mut Reader<'_>, root: &Node) -> Option<Rig> {
    let fields = reader.open(root, &RIG)?;
    check_kind(reader, &fields, "Rig");
    let metadata = reader.open(fields.get("metadata")?, &METADATA);
    let name =
        metadata.as_ref().and_then(|fields| fields.get("name")).and_then(|node| read_name(reader, node));
    let spec_node = fields.get("spec")?;
    let spec = reader.open(spec_node, &SPEC)?;
    let machine = spec.get("machine").and_then(|node| reader.text(node));
    let kind = spec.get("kind").and_then(|node| word(reader, node, &RigKind::ALL, RigKind::name));
    let external = kind.and_then(|kind| foreign::read(reader, &spec, kind));
    let boards = match (&external, spec.get("boards")) {
        (Some(external), _) => u32::try_from(external.nodes.len()).ok(),
        (None, None) => Some(10),
        (None, Some(node)) => reader.whole(node, 0..=26),
    };
    let constants_node = spec.get("constants")?;
    let stated = read_constants(reader, Some(constants_node), false);
    let missing: Vec<Constant> =
        Constant::ALL.into_iter().filter(|constant| constants_node.get(constant.name()).is_none()).collect();
    foreign::check_missing(reader, constants_node, &missing, external.as_ref());
    checks::constants(reader, constants_node, &stated);
    let capabilities = spec.get("capabilities").map(|node| {
        let stated = read_capabilities(reader, Some(node));
        if let Some(kind) = kind {
            check_possible(reader, node, kind, &stated);
        }
        stated
    });
    let board = match spec.get("board") {
        Some(node) => reader.open(node, &BOARD).map(|fields| read_board(reader, &fields)),
        None => Some(BoardProfile::default()),
    };
    let emulator: Vec<String> = match spec.get("emulator") {
        Some(node) => reader.list(node).iter().filter_map(|item| reader.text(item)).collect(),
        None => Vec::new(),
    };
    let equipment = equipment::read(reader, &spec, kind, &emulator);
    let limitations = spec.get("limitations").and_then(|node| reader.text(node));
    let kind = kind?;
    let usual = match kind {
        RigKind::Sim => "sim",
        RigKind::Host => "host",
        RigKind::Qemu => "qemu-virt",
        RigKind::External => "external",
    };
    // Reports name the machine: only an emulator of one's own makes it another one.
    if let (Some(node), Some(machine)) = (spec.get("machine"), &machine)
        && machine != usual
        && emulator.is_empty()
        && external.is_none()
    {
        reader.wrong(
            &node.span,
            format!("boards of a {} rig are of the machine {usual}, not {machine}", kind.name()),
            "leave it out, or state under `emulator` the program and arguments that make it that machine",
        );
    }
    Some(Rig {
        name: name?,
        kind,
        machine: machine.unwrap_or_else(|| usual.to_owned()),
        boards: boards? as usize,
        constants: Constants::default().overridden(&stated),
        capabilities: capabilities.unwrap_or_else(|| kind.capabilities()),
        absent: BTreeMap::new(),
        board: board?,
        emulator,
        equipment,
        limitations,
        external,
    })
}

/// Notes capabilities that a rig of this sort cannot have.
fn check_possible(reader: &mut Reader<'_>, node: &Node, kind: RigKind, stated: &BTreeSet<Capability>) {
    let possible = kind.possible();
    let names = |set: &mut dyn Iterator<Item = &Capability>| {
        set.map(|capability| capability.name()).collect::<Vec<_>>().join(", ")
    };
    let beyond = names(&mut stated.difference(&possible));
    if !beyond.is_empty() {
        reader.wrong(
            &node.span,
            format!("a rig of kind {} cannot offer {beyond}", kind.name()),
            format!("leave it out; possible are {}", names(&mut possible.iter())),
        );
    }
}

fn read_board(reader: &mut Reader<'_>, fields: &Fields<'_>) -> BoardProfile {
    let usual = BoardProfile::default();
    let mut whole = |key: &str, usual: u32, max: u32| match fields.get(key) {
        Some(node) => reader.whole(node, 0..=max).unwrap_or(usual),
        None => usual,
    };
    let (heap_bytes, psram_bytes) =
        (whole("heapBytes", usual.heap_bytes, u32::MAX), whole("psramBytes", usual.psram_bytes, u32::MAX));
    let mut few = |key: &str, usual: u8| u8::try_from(whole(key, u32::from(usual), 64)).unwrap_or(usual);
    let (i2c, uart, adc) = (few("i2c", usual.i2c), few("uart", usual.uart), few("adc", usual.adc));
    let (rmt_tx, rmt_rx) = (few("rmtTx", usual.rmt_tx), few("rmtRx", usual.rmt_rx));
    let mut stated = BTreeSet::new();
    let mut pins = |key: &str, usual: Vec<u8>| match fields.get(key) {
        Some(node) => {
            let mut pins = Vec::new();
            for item in reader.list(node) {
                let Some(pin) = reader.whole(item, 0..=63).and_then(|pin| u8::try_from(pin).ok()) else {
                    continue;
                };
                if !stated.insert(pin) {
                    let message = format!("the pin {pin} stands here for the second time");
                    let remedy = "leave one of them: a pin is stated once, under gpio or under reservedGpio";
                    reader.wrong(&item.span, message, remedy);
                }
                pins.push(pin);
            }
            pins
        }
        None => usual,
    };
    let (gpio, reserved_gpio) = (pins("gpio", usual.gpio), pins("reservedGpio", usual.reserved_gpio));
    let mut text =
        |key: &str, usual: String| fields.get(key).and_then(|node| reader.text(node)).unwrap_or(usual);
    let (arch, name) = (text("arch", usual.arch), text("name", usual.name));
    let labels = match fields.get("labels") {
        Some(node) => {
            let entries = reader.map(node);
            checks::labels(reader, entries);
            entries.iter().filter_map(|entry| Some((entry.key.clone(), reader.text(&entry.value)?))).collect()
        }
        None => BTreeMap::new(),
    };
    let report = fields.get("report").and_then(|node| Some((node, reader.duration(node)?)));
    let status_millis = match report {
        Some((node, period)) => {
            checks::report(reader, node, period);
            u32::try_from(period.as_millis()).unwrap_or(u32::MAX)
        }
        None => usual.status_millis,
    };
    BoardProfile {
        arch,
        name,
        labels,
        heap_bytes,
        psram_bytes,
        gpio,
        reserved_gpio,
        i2c,
        uart,
        adc,
        rmt_tx,
        rmt_rx,
        status_millis,
    }
}
