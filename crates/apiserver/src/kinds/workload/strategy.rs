//! Rules of how controllers replace their pods.

use crate::kinds::at::{At, Errors};
use crate::kinds::count::{at_most_all, count_or_percent, number_in};

pub(super) fn deployment(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" if !rolling.is_absent() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(rolling.forbidden(detail));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (down, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            count_or_percent(&down, errors);
            count_or_percent(&surge, errors);
            if number_in(&down) == 0 && number_in(&surge) == 0 {
                errors.push(down.invalid("may not be 0 when `maxSurge` is 0"));
            }
            at_most_all(&down, errors);
        }
        _ => errors.push(strategy.unsupported(&["Recreate", "RollingUpdate"])),
    }
}

pub(super) fn daemon(strategy: &At<'_>, errors: &mut Errors) {
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.get("rollingUpdate");
            let (down, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            count_or_percent(&down, errors);
            count_or_percent(&surge, errors);
            at_most_all(&down, errors);
            at_most_all(&surge, errors);
            match (number_in(&down) != 0, number_in(&surge) != 0) {
                (true, true) => {
                    errors.push(surge.invalid("may not be set when maxUnavailable is non-zero"));
                }
                (false, false) => errors.push(down.required("cannot be 0 when maxSurge is 0")),
                _ => {}
            }
        }
        _ => errors.push(strategy.unsupported(&["RollingUpdate", "OnDelete"])),
    }
}

pub(super) fn stateful(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" if !rolling.is_absent() => {
            errors.push(rolling.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            rolling.get("partition").not_negative(errors);
            let down = rolling.get("maxUnavailable");
            if !down.is_absent() {
                count_or_percent(&down, errors);
                if number_in(&down) == 0 {
                    errors.push(down.invalid("cannot be 0"));
                }
                at_most_all(&down, errors);
            }
        }
        _ => errors.push(strategy.invalid("must be 'RollingUpdate' or 'OnDelete'")),
    }
}
