//! What a control plane is given to know people by, and to draw secrets from.

use std::collections::BTreeSet;
use std::io;

use super::Tokens;
use super::accounts::Issuer;
use crate::kubeconfig;
use crate::random::Random;

/// Where the secrets come from that are handed out.
#[derive(Debug)]
pub enum Secrets {
    /// The operating system.
    System,
    /// A seed, so that a simulated run repeats. Good for nothing else.
    Repeatable(Random),
}

impl Secrets {
    /// A secret of at least 192 bits, in hexadecimal digits.
    ///
    /// # Errors
    /// When the operating system gives none.
    pub fn draw(&self) -> io::Result<String> {
        match self {
            Self::System => Ok(kubeconfig::secret()?.iter().map(|byte| format!("{byte:02x}")).collect()),
            Self::Repeatable(random) => Ok(format!("{}{}", random.uid(), random.uid()).replace('-', "")),
        }
    }
}

/// Who is known, who issues tokens, and where secrets come from.
#[derive(Debug)]
pub struct Credentials {
    /// Static tokens besides those of the token file.
    pub tokens: Tokens,
    /// Issues and reads the tokens of service accounts; without one there are none.
    pub issuer: Option<Issuer>,
    /// For the tokens of boards.
    pub secrets: Secrets,
    /// The boards that have a client certificate of this control plane's own authority.
    pub certified: BTreeSet<String>,
}

impl Credentials {
    /// Nobody in particular, and secrets that repeat with the seed.
    pub fn repeatable(seed: u64) -> Self {
        Self {
            tokens: Tokens::default(),
            issuer: None,
            secrets: Secrets::Repeatable(Random::new(seed ^ 0x7365_6372, 0)),
            certified: BTreeSet::new(),
        }
    }
}
