//! `ip('10.0.0.1')` and `cidr('10.0.0.0/8')`.

use std::net::IpAddr;

use cel::common::types::{CelString, STRING_TYPE, Type};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env};

use super::native::{NativeType, native, number, returned, truth};
use super::{Arguments, CallResult, failed, global, member, text};

static IP: Type = Type::new_unspecified_type("net.IP");
static CIDR: Type = Type::new_unspecified_type("net.CIDR");

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    length: u8,
}

impl NativeType for IpAddr {
    const TYPE: &'static Type = &IP;

    fn text(&self) -> String {
        self.to_string()
    }
}

impl NativeType for Network {
    const TYPE: &'static Type = &CIDR;

    fn text(&self) -> String {
        format!("{}/{}", self.address, self.length)
    }
}

/// The text of an address or network.
pub(super) fn text_of(value: &dyn cel::common::value::Val) -> Option<String> {
    super::native::text_of::<IpAddr>(value).or_else(|| super::native::text_of::<Network>(value))
}

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    let (ip, cidr) = (|| IP.to_owned(), || CIDR.to_owned());
    env.add_type(ip())?;
    env.add_type(cidr())?;
    global(env, "ip", &[STRING_TYPE], ip_of)?;
    global(env, "isIP", &[STRING_TYPE], is_ip)?;
    global(env, "ip.isCanonical", &[STRING_TYPE], is_canonical)?;
    member(env, "family", &[ip()], family)?;
    member(env, "isUnspecified", &[ip()], |arguments| tell(&arguments, IpAddr::is_unspecified))?;
    member(env, "isLoopback", &[ip()], |arguments| tell(&arguments, IpAddr::is_loopback))?;
    member(env, "isLinkLocalMulticast", &[ip()], |arguments| tell(&arguments, is_local_multicast))?;
    member(env, "isLinkLocalUnicast", &[ip()], |arguments| tell(&arguments, is_local_unicast))?;
    member(env, "isGlobalUnicast", &[ip()], |arguments| tell(&arguments, is_global_unicast))?;
    global(env, "string", &[ip()], written)?;
    global(env, "string", &[cidr()], written)?;
    global(env, "cidr", &[STRING_TYPE], cidr_of)?;
    global(env, "isCIDR", &[STRING_TYPE], is_cidr)?;
    for address in [ip(), STRING_TYPE] {
        member(env, "containsIP", &[cidr(), address], contains_ip)?;
    }
    for network in [cidr(), STRING_TYPE] {
        member(env, "containsCIDR", &[cidr(), network], contains_cidr)?;
    }
    member(env, "ip", &[cidr()], |arguments| returned(native::<Network>(&arguments[0])?.address))?;
    member(env, "masked", &[cidr()], |arguments| {
        returned(native::<Network>(&arguments[0])?.masked())
    })?;
    member(env, "prefixLength", &[cidr()], |arguments| {
        number(native::<Network>(&arguments[0])?.length.into())
    })
}

/// Addresses of one family are written one way: no zones, no IPv4 inside of IPv6.
fn parse_ip(text: &str) -> Result<IpAddr, String> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        Ok(address) => Ok(address),
        Err(_) => Err(format!("IP Address {text:?} parse error during conversion from string")),
    }
}

fn parse_cidr(text: &str) -> Result<Network, String> {
    let error = || "network address parse error during conversion from string".to_owned();
    let (address, length) = text.split_once('/').ok_or_else(error)?;
    let address = parse_ip(address).map_err(|_| error())?;
    let is_plain = length.bytes().all(|digit| digit.is_ascii_digit())
        && (length == "0" || !length.starts_with('0'));
    let length = length.parse::<u8>().ok().filter(|_| is_plain).ok_or_else(error)?;
    if length > bits(address) { Err(error()) } else { Ok(Network { address, length }) }
}

fn ip_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    parse_ip(text(&arguments[0])?).map_or_else(|error| failed("ip", error), returned)
}

fn cidr_of<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    parse_cidr(text(&arguments[0])?).map_or_else(|error| failed("cidr", error), returned)
}

fn is_ip<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    truth(parse_ip(text(&arguments[0])?).is_ok())
}

fn is_cidr<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    truth(parse_cidr(text(&arguments[0])?).is_ok())
}

fn is_canonical<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let text = text(&arguments[0])?;
    match parse_ip(text) {
        Ok(address) => truth(address.to_string() == text),
        Err(error) => failed("ip.isCanonical", error),
    }
}

fn family<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    number(if native::<IpAddr>(&arguments[0])?.is_ipv4() { 4 } else { 6 })
}

fn written<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let text = text_of(arguments[0].as_ref()).unwrap_or_default();
    Ok(CowVal::owned(CelString::from(text)))
}

fn tell<'b, 'v>(arguments: &[CowVal<'b, 'v>], question: fn(&IpAddr) -> bool) -> CallResult<'b, 'v> {
    truth(question(native::<IpAddr>(&arguments[0])?))
}

fn is_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_global_unicast(address: &IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !is_broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_local_unicast(address)
}

fn contains_ip<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let network = native::<Network>(&arguments[0])?;
    let address = match argument_text(&arguments[1]) {
        Some(text) => match parse_ip(text) {
            Ok(address) => address,
            Err(error) => return failed("containsIP", error),
        },
        None => *native::<IpAddr>(&arguments[1])?,
    };
    truth(network.holds(Network { address, length: bits(address) }))
}

fn contains_cidr<'b, 'v>(arguments: Arguments<'b, 'v>) -> CallResult<'b, 'v> {
    let network = native::<Network>(&arguments[0])?;
    let other = match argument_text(&arguments[1]) {
        Some(text) => match parse_cidr(text) {
            Ok(other) => other,
            Err(error) => return failed("containsCIDR", error),
        },
        None => *native::<Network>(&arguments[1])?,
    };
    truth(network.holds(other))
}

fn argument_text<'a>(argument: &'a CowVal<'_, '_>) -> Option<&'a str> {
    argument.downcast_ref::<CelString>().map(CelString::inner)
}

impl Network {
    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V4((u32::from(address) & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V6((u128::from(address) & mask).into())
            }
        };
        Self { address, ..self }
    }

    fn holds(self, other: Self) -> bool {
        self.length <= other.length
            && self.address.is_ipv4() == other.address.is_ipv4()
            && Self { length: self.length, ..other }.masked().address == self.masked().address
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
