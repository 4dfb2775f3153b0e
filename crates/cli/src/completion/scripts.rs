//! The scripts by which shells ask a program how its command line goes on.

/// A shell for which there is a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Fish,
    Zsh,
}

/// The script for the program called by any of these names.
pub(crate) fn script(shell: Shell, programs: &[&str]) -> String {
    let (function, names) = (programs[0], programs.join(" "));
    match shell {
        Shell::Bash => BASH.replace("FUNCTION", function).replace("PROGRAMS", &names),
        Shell::Zsh => ZSH.replace("FUNCTION", function).replace("PROGRAMS", &names),
        Shell::Fish => {
            let lines = programs
                .iter()
                .map(|program| format!("complete -c {program} -f -a '(__{function}_words)'\n"));
            format!("{}{}", FISH.replace("FUNCTION", function), lines.collect::<String>())
        }
    }
}

/// The line is read anew: bash takes words apart at `=` and `:`, and replaces the last part only.
const BASH: &str = r#"_FUNCTION() {
    local line="${COMP_LINE:0:COMP_POINT}" own="${COMP_WORDS[COMP_CWORD]}" typed found words=()
    read -ra words <<< "${line}"
    [[ "${line}" == *[[:space:]] ]] && words+=("")
    typed="${words[${#words[@]}-1]}"
    [[ "${typed}" == --*=* ]] && typed="${typed#*=}"
    [[ "${own}" == [=:] ]] && own=""
    found="$("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)"
    COMPREPLY=()
    if [[ "${found##*$'\n'}" == ":0" ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY=( $(compgen -f -- "${own}") )
        return
    fi
    while IFS= read -r line; do
        line="${line%%$'\t'*}"
        [[ -n "${line}" && "${line}" != :* ]] && COMPREPLY+=("${line#"${typed%"${own}"}"}")
    done <<< "${found}"
}
complete -F _FUNCTION PROGRAMS
"#;

const FISH: &str = r#"function __FUNCTION_words
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l found ($words[1] __complete $words[2..-1] "$last" 2>/dev/null)
    if test "$found[-1]" = ":0"
        __fish_complete_path "$last"
        return
    end
    set -l flag (string match -r -- '^--[^=]*=' "$last")
    for word in (string match -v -r '^:' -- $found)
        printf '%s%s\n' "$flag" "$word"
    end
end
"#;

const ZSH: &str = r#"#compdef PROGRAMS
_FUNCTION() {
    local -a found described
    local line tab=$'\t'
    found=("${(@f)$("${words[1]}" __complete "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
    [[ "${words[CURRENT]}" == --*=* ]] && compset -P 1 '*='
    if [[ "${found[-1]}" == ":0" ]]; then
        _files
        return
    fi
    for line in "${found[@]}"; do
        [[ -z "${line}" || "${line}" == :* ]] && continue
        line="${line//:/\\:}"
        described+=("${line//${tab}/:}")
    done
    _describe -V 'FUNCTION' described
}
compdef _FUNCTION PROGRAMS
"#;
