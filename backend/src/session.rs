//! What a compilation carries besides its input: the cancellation checkpoint, phase switches, measurements.
//!
//! The backend does no IO and reads no clock of its own. A caller that wants times lends a clock; dumps and
//! times are collected here for the caller to print.

use std::time::Duration;

/// Lent by the caller of [`crate::compile()`].
pub struct Session<'a> {
    /// Called at every phase boundary and inside every loop that may exceed a millisecond. Cancels by
    /// unwinding.
    pub checkpoint: &'a dyn Fn(),
    /// Time since any fixed moment; without it nothing is timed.
    pub clock: Option<&'a dyn Fn() -> Duration>,
    pub switches: Switches,
    /// Time spent by phase, in the order in which phases first ran.
    pub times: Vec<(&'static str, Duration)>,
    /// Text of the function after a phase, in order.
    pub dumps: Vec<Dump>,
}

/// The function after a phase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dump {
    pub function: String,
    pub phase: &'static str,
    pub text: String,
}

impl Default for Session<'_> {
    fn default() -> Self {
        Session {
            checkpoint: &|| (),
            clock: None,
            switches: Switches::default(),
            times: Vec::new(),
            dumps: Vec::new(),
        }
    }
}

impl<'a> Session<'a> {
    pub fn new(checkpoint: &'a dyn Fn()) -> Self {
        Session { checkpoint, ..Session::default() }
    }

    pub fn checkpoint(&self) {
        (self.checkpoint)();
    }

    /// Runs `work` and adds its time to `phase`.
    pub fn timed<T>(&mut self, phase: &'static str, work: impl FnOnce(&mut Self) -> T) -> T {
        let Some(clock) = self.clock else { return work(self) };
        let start = clock();
        let value = work(self);
        let spent = clock().saturating_sub(start);
        match self.times.iter_mut().find(|(name, _)| *name == phase) {
            Some((_, total)) => *total += spent,
            None => self.times.push((phase, spent)),
        }
        value
    }
}

/// What to do with a phase besides running it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Switch {
    On,
    Off,
    Dump,
    Time,
    Verify,
}

/// Settings by phase name, from `PTX_PHASE=<name>/<on|off|dump|time|verify>[,…]`; the name `all` means each.
/// The last setting for a name counts.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Switches(Vec<(String, Switch)>);

impl Switches {
    /// Parses a comma-separated list. Names are compared with the phases by the caller, who knows them.
    pub fn parse(text: &str) -> Result<Switches, String> {
        let mut switches = Vec::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, action) = item
                .split_once('/')
                .ok_or_else(|| format!("`{item}` is not of the form <phase>/<switch>"))?;
            let switch = match action {
                "on" => Switch::On,
                "off" => Switch::Off,
                "dump" => Switch::Dump,
                "time" => Switch::Time,
                "verify" => Switch::Verify,
                _ => return Err(format!("`{action}` is none of on, off, dump, time, verify")),
            };
            switches.push((name.to_owned(), switch));
        }
        Ok(Switches(switches))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    fn of(&self, phase: &str) -> impl Iterator<Item = Switch> + '_ {
        let phase = phase.to_owned();
        self.0.iter().filter(move |(name, _)| *name == phase || name == "all").map(|(_, switch)| *switch)
    }

    pub fn is_on(&self, phase: &str) -> bool {
        !matches!(self.of(phase).filter(|s| matches!(s, Switch::On | Switch::Off)).last(), Some(Switch::Off))
    }

    pub fn wants(&self, phase: &str, switch: Switch) -> bool {
        self.of(phase).any(|s| s == switch)
    }

    pub fn wants_any(&self, switch: Switch) -> bool {
        self.0.iter().any(|(_, s)| *s == switch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_on_and_off_counts() {
        let switches = Switches::parse("all/off, GvnCse/on,OriCopyProp/dump").unwrap();
        assert!(switches.is_on("GvnCse"));
        assert!(!switches.is_on("OriCopyProp"));
        assert!(switches.wants("OriCopyProp", Switch::Dump));
        assert!(!switches.wants("GvnCse", Switch::Dump));
    }

    #[test]
    fn malformed_switches_are_refused() {
        assert!(Switches::parse("GvnCse").is_err());
        assert!(Switches::parse("GvnCse/maybe").is_err());
    }
}
